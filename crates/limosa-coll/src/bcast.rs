//! Broadcast (MPI-5 section 6.4).

use super::buffer::Buffer;
use super::by_messages;
use super::kind::Signature;
use super::one_step;
use super::plan::MessagePlan;
use super::select::{Selected, select};
use super::shared::{self, Collective};
use super::{Call, Plan, Recorder, Schedule, composed};
use limosa_mpi::error::Result;

/// Copies the root's buffer to all ranks.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_NO_MEM`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, buffer: &Buffer, root: i32) -> Result<()> {
    let rank = call.comm.check_root(root)? as usize;
    let call = &call.signed(Signature::rooted(Collective::Bcast, rank));
    match call.shared_call(Collective::Bcast, buffer.bytes()) {
        Some(shared_call) => shared::bcast(&shared_call, buffer, rank),
        None => {
            let call = &call.on(buffer.bytes());
            work(call, buffer, rank)?.run(call)
        }
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, buffer: &Buffer, root: i32) -> Result<Plan> {
    let rank = call.comm.check_root(root)? as usize;
    let call = &call.signed(Signature::rooted(Collective::Bcast, rank)).on(buffer.bytes());
    match call.mailbox_use_to_move_by_root(Collective::Bcast, buffer.bytes(), buffer.bytes()) {
        Some(mailbox_use) => one_step::bcast(Recorder::new(Collective::Bcast, call, mailbox_use.limits), buffer, rank)
            .map(|exchange| Plan::at(mailbox_use, exchange)),
        None => plan(call, buffer, root).map(Plan::from),
    }
}

/// Plans a copy of the root's buffer to all ranks.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, buffer: &Buffer, root: i32) -> Result<Schedule> {
    let root = call.comm.check_root(root)? as usize;
    let call = &call.signed(Signature::rooted(Collective::Bcast, root)).on(buffer.bytes());
    work(call, buffer, root)?.into_schedule(call)
}

fn work(call: &Call<'_>, buffer: &Buffer, root: usize) -> Result<MessagePlan> {
    match select(call, Collective::Bcast, by_messages::BCAST, buffer.bytes(), None) {
        Selected::Composed(hosts) => Ok(MessagePlan::Composed(composed::bcast(hosts, buffer, root))),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| plan(s, buffer, root)),
    }
}
