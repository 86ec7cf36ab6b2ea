//! Alltoall (MPI-5 section 6.8). `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw` differ only in how the program
//! describes the blocks.

use super::buffer::Blocks;
use super::by_messages;
use super::exchange::Messages;
use super::one_step;
use super::plan::MessagePlan;
use super::select::{Selected, select};
use super::shared::{self, Collective};
use super::{Call, Plan, Recorder, Schedule, composed};
use limosa_mpi::error::Result;

/// Sends a block from every rank to every rank. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    let call = &call.signed(Collective::Alltoall);
    if let Some(send) = send {
        send.check_apart_from_blocks(call.size(), receive)?;
    }
    // Only pairs of ranks know lengths that are not equal: without single copies, ranks could not agree on a path.
    let all = if receive.are_even() { receive.bytes(0).saturating_mul(call.size()) } else { shared::ANY_BYTES };
    match call.shared_call(Collective::Alltoall, all) {
        Some(shared_call) => shared::alltoall(&shared_call, send, receive),
        None => {
            let call = &with_length(call, send, receive);
            work(call, send, receive)?.run(call)
        }
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<Plan> {
    let call = &call.signed(Collective::Alltoall);
    if let Some(send) = send {
        send.check_apart_from_blocks(call.size(), receive)?;
    }
    let call = &with_length(call, send, receive);
    let mailbox_use = if receive.are_even() {
        call.mailbox_use_to_move(Collective::Alltoall, receive.bytes(0).saturating_mul(call.size()))
    } else {
        call.mailbox_use_for_any(Collective::Alltoall, send.unwrap_or(receive).all_bytes(call.size()))
    };
    match mailbox_use {
        Some(mailbox_use) => {
            one_step::alltoall(Recorder::new(Collective::Alltoall, call, mailbox_use.limits), send, receive)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan(call, send, receive).map(Plan::from),
    }
}

/// Plans a block from every rank to every rank. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<Schedule> {
    let call = &call.signed(Collective::Alltoall);
    if let Some(send) = send {
        send.check_apart_from_blocks(call.size(), receive)?;
    }
    let call = &with_length(call, send, receive);
    work(call, send, receive)?.into_schedule(call)
}

/// Whether all blocks have one length, which all ranks know.
fn are_even(send: Option<&Blocks>, receive: &Blocks) -> bool {
    receive.are_even() && send.is_none_or(Blocks::are_even)
}

fn with_length<'a>(call: &Call<'a>, send: Option<&Blocks>, receive: &Blocks) -> Call<'a> {
    if are_even(send, receive) { call.on(receive.bytes(0)) } else { call.signed(Collective::Alltoall) }
}

fn work(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<MessagePlan> {
    // Only pairs of ranks know lengths that are not equal: ranks could not agree on an algorithm.
    let is_even = are_even(send, receive);
    let bytes = if is_even { receive.bytes(0) } else { usize::MAX };
    match select(call, Collective::Alltoall, by_messages::ALLTOALL, bytes, None) {
        Selected::Composed(hosts) if is_even => {
            composed::alltoall(hosts, send, receive, bytes).map(MessagePlan::Composed)
        }
        Selected::Composed(_) => MessagePlan::flat(call, |s| one_step::alltoall(Messages::new(s), send, receive)),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| plan(s, send, receive)),
    }
}
