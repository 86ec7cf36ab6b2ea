//! Gather (MPI-5 section 6.5).

pub(super) mod binomial;
pub(super) mod linear;

use super::buffer::{Blocks, Buffer, check_apart};
use super::node::{self, Kind};
use super::select::{self, select};
use super::{Call, Deal, Schedule, Task};
use crate::error::Result;
use crate::fail;

/// Gives the root contributions of equal length (`MPI_Gather`). Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<()> {
    let rank = check(call, send, receive, root)?;
    match call.turn(Kind::Gather, bytes_of_one(send, receive, rank)) {
        Some(turn) => node::gather(&turn, send, receive, rank),
        None => super::run(call.comm, plan(call, send, receive, root)?),
    }
}

/// Gives the root contributions of any length (`MPI_Gatherv`). Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run_v(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<()> {
    let rank = check(call, send, receive, root)?;
    // Only the root knows all lengths: without single copies ranks could not agree.
    match call.turn(Kind::Gather, node::ANY_BYTES) {
        Some(turn) => node::gather(&turn, send, receive, rank),
        None => super::run(call.comm, plan_v(call, send, receive, root)?),
    }
}

/// Prepares what [`run`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Task> {
    let rank = check(call, send, receive, root)?;
    let bytes = bytes_of_one(send, receive, rank);
    match call.desk_to_move_by_root(bytes, bytes) {
        Some(desk) => Deal::gather(call, desk.terms, send, receive, rank).map(|deal| Task::at(desk, deal)),
        None => plan(call, send, receive, root).map(Task::from),
    }
}

/// Prepares what [`run_v`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background_v(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Task> {
    let rank = check(call, send, receive, root)?;
    match call.desk_for_any(true) {
        Some(desk) => Deal::gather(call, desk.terms, send, receive, rank).map(|deal| Task::at(desk, deal)),
        None => plan_v(call, send, receive, root).map(Task::from),
    }
}

/// Plans that the root gets contributions of equal length (`MPI_Gather`).
///
/// `send` is `None` for `MPI_IN_PLACE`; `receive` is significant at the root only.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Schedule> {
    let root = check(call, send, receive, root)?;
    let bytes = bytes_of_one(send, receive, root);
    let mut schedule = Schedule::new(call);
    let plan = select(select::GATHER, schedule.size(), bytes, None);
    plan(&mut schedule, send, receive, root)?;
    Ok(schedule)
}

/// Plans that the root gets contributions of any length (`MPI_Gatherv`). Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`].
pub fn plan_v(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<Schedule> {
    let root = check(call, send, receive, root)?;
    let mut schedule = Schedule::new(call);
    // Only the root knows all lengths, so that there is nothing that ranks could choose by.
    linear::plan(&mut schedule, send, receive, root)?;
    Ok(schedule)
}

/// Bytes of one rank.
fn bytes_of_one(send: Option<&Buffer>, receive: Option<&Blocks>, root: usize) -> usize {
    send.map_or_else(|| receive.map_or(0, |blocks| blocks.bytes(root)), Buffer::bytes)
}

fn check(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Result<usize> {
    let root = call.comm.check_root(root)? as usize;
    if send.is_none() && call.comm.rank() as usize != root {
        fail!(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE at rank {}, but only the root, rank {root}, may pass it", call.comm.rank());
    }
    if let (Some(send), Some(receive)) = (send, receive) {
        check_apart(send, &receive.of(0))?;
        check_apart(send, &receive.of(root))?;
    }
    Ok(root)
}
