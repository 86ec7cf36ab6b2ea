//! Allgather (MPI-5 section 6.7).

use super::buffer::{Blocks, Buffer};
use super::by_messages;
use super::choice::Subject;
use super::one_step;
use super::plan::MessagePlan;
use super::select::{Selected, select};
use super::shared::{self, Collective};
use super::{Call, Plan, Recorder, Schedule, composed};
use limosa_mpi::error::Result;

/// Gives all ranks all contributions, of any length (`MPI_Allgather`, `MPI_Allgatherv`). `send` is `None` for
/// `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let call = &call.signed(Collective::Allgather);
    check(send, receive, call.size())?;
    let most = receive.most_bytes(call.size());
    match call.shared_call(Collective::Allgather, most) {
        Some(shared_call) => shared::allgather(&shared_call, send, receive),
        None => {
            let call = &call.on(length(receive, call.size()));
            work(call, send, receive)?.run(call)
        }
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Plan> {
    let call = &call.signed(Collective::Allgather);
    check(send, receive, call.size())?;
    let call = &call.on(length(receive, call.size()));
    match call.mailbox_use_to_move(Collective::Allgather, receive.most_bytes(call.size())) {
        Some(mailbox_use) => {
            one_step::allgather(Recorder::new(Collective::Allgather, call, mailbox_use.limits), send, receive)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan(call, send, receive).map(Plan::from),
    }
}

/// Plans that all ranks get all contributions, of any length (`MPI_Allgather`, `MPI_Allgatherv`). `send` is `None` for
/// `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Schedule> {
    let call = &call.signed(Collective::Allgather).on(length(receive, call.size()));
    check(send, receive, call.size())?;
    work(call, send, receive)?.into_schedule(call)
}

fn work(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<MessagePlan> {
    let subject = if receive.are_even() { Collective::Allgather.into() } else { Subject::ALLGATHERV };
    let bytes = length(receive, call.size());
    match select(call, subject, by_messages::ALLGATHER, bytes, None) {
        Selected::Composed(hosts) => composed::allgather(hosts, send, receive).map(MessagePlan::Composed),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| plan(s, send, receive)),
    }
}

/// Returns the bytes of one contribution, or, if they differ, of all.
fn length(receive: &Blocks, ranks: usize) -> usize {
    if receive.are_even() { receive.bytes(0) } else { receive.all_bytes(ranks) }
}

fn check(send: Option<&Buffer>, receive: &Blocks, ranks: usize) -> Result<()> {
    if let Some(send) = send {
        receive.check_apart_from(ranks, send)?;
    }
    Ok(())
}
