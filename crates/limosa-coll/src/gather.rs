//! Gather (MPI-5 section 6.5).

use super::buffer::{Blocks, Buffer};
use super::by_messages;
use super::choice::counts::count_messages;
use super::exchange::Messages;
use super::kind::Signature;
use super::one_step;
use super::plan::MessagePlan;
use super::select::{Selected, select};
use super::shared::{self, Collective};
use super::{Call, Plan, Recorder, Schedule, composed};
use limosa_mpi::error::Result;
use limosa_mpi::fail;

/// Gathers contributions of equal length at the root (`MPI_Gather`). Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<()> {
    let rank = check(call, send, receive, root)?;
    let call = &call.signed(Signature::rooted(Collective::Gather, rank));
    match call.shared_call(Collective::Gather, bytes_of_one(send, receive, rank)) {
        Some(shared_call) => shared::gather(&shared_call, send, receive, rank),
        None => {
            let call = &call.on(bytes_of_one(send, receive, rank));
            work(call, send, receive, rank)?.run(call)
        }
    }
}

/// Gathers contributions of any length at the root (`MPI_Gatherv`). Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run_v(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<()> {
    let rank = check(call, send, receive, root)?;
    let call = &call.signed(Signature::rooted(Collective::Gather, rank));
    // Only the root knows all lengths: without single copies, ranks could not agree on a path.
    match call.shared_call(Collective::Gather, shared::ANY_BYTES) {
        Some(shared_call) => shared::gather(&shared_call, send, receive, rank),
        None => super::run(call.comm, plan_v(call, send, receive, root)?),
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Plan> {
    let rank = check(call, send, receive, root)?;
    let bytes = bytes_of_one(send, receive, rank);
    let call = &call.signed(Signature::rooted(Collective::Gather, rank)).on(bytes);
    match call.mailbox_use_to_move_by_root(Collective::Gather, bytes, bytes) {
        Some(mailbox_use) => {
            one_step::gather(Recorder::new(Collective::Gather, call, mailbox_use.limits), send, receive, rank)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan(call, send, receive, root).map(Plan::from),
    }
}

/// Plans what [`run_v`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background_v(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Plan> {
    let rank = check(call, send, receive, root)?;
    let call = &call.signed(Signature::rooted(Collective::Gather, rank));
    match call.mailbox_use_for_any(Collective::Gather, send.map_or(0, Buffer::bytes)) {
        Some(mailbox_use) => {
            one_step::gather(Recorder::new(Collective::Gather, call, mailbox_use.limits), send, receive, rank)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan_v(call, send, receive, root).map(Plan::from),
    }
}

/// Plans a gather of contributions of equal length at the root (`MPI_Gather`).
///
/// `send` is `None` for `MPI_IN_PLACE`; `receive` is significant at the root only.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Schedule> {
    let root = check(call, send, receive, root)?;
    let call = &call.signed(Signature::rooted(Collective::Gather, root)).on(bytes_of_one(send, receive, root));
    work(call, send, receive, root)?.into_schedule(call)
}

fn work(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: usize) -> Result<MessagePlan> {
    let bytes = bytes_of_one(send, receive, root);
    match select(call, Collective::Gather, by_messages::GATHER, bytes, None) {
        Selected::Composed(hosts) => composed::gather(hosts, send, receive, root, bytes).map(MessagePlan::Composed),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| plan(s, send, receive, root)),
    }
}

/// Plans a gather of contributions of any length at the root (`MPI_Gatherv`). Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`].
pub fn plan_v(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Schedule> {
    let root = check(call, send, receive, root)?;
    let call = &call.signed(Signature::rooted(Collective::Gather, root));
    let mut schedule = Schedule::new(call);
    // Only the root knows all lengths, so ranks could not agree on an algorithm.
    count_messages(Collective::Gather, "linear");
    one_step::gather(Messages::new(&mut schedule), send, receive, root)?;
    Ok(schedule)
}

/// Returns the bytes of one rank's contribution.
fn bytes_of_one(send: Option<&Buffer>, receive: Option<&Blocks>, root: usize) -> usize {
    send.map_or_else(|| receive.map_or(0, |blocks| blocks.bytes(root)), Buffer::bytes)
}

fn check(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<usize> {
    let root = call.comm.check_root(root)? as usize;
    if send.is_none() && call.comm.rank() as usize != root {
        fail!(
            MPI_ERR_BUFFER,
            "sendbuf is MPI_IN_PLACE at rank {}, but only the root, rank {root}, may pass it",
            call.comm.rank()
        );
    }
    if let (Some(send), Some(receive)) = (send, receive) {
        receive.check_apart_from(call.size(), send)?;
    }
    Ok(root)
}
