//! Broadcast (MPI-5 section 6.4).

pub(super) mod binomial;
pub(super) mod scatter_exchange;

use super::buffer::Buffer;
use super::node::{self, Kind};
use super::select::{self, select};
use super::{Call, Deal, Schedule, Task};
use crate::error::Result;

/// Gives all ranks what the root's buffer holds.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_NO_MEM`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, buffer: &Buffer, root: i32) -> Result<()> {
    let rank = call.comm.check_root(root)? as usize;
    match call.turn(Kind::Bcast, buffer.bytes()) {
        Some(turn) => node::bcast(&turn, buffer, rank),
        None => super::run(call.comm, plan(call, buffer, root)?),
    }
}

/// Prepares what [`run`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, buffer: &Buffer, root: i32) -> Result<Task> {
    let rank = call.comm.check_root(root)? as usize;
    match call.desk_to_move_by_root(buffer.bytes(), buffer.bytes()) {
        Some(desk) => Deal::bcast(call, desk.terms, buffer, rank).map(|deal| Task::at(desk, deal)),
        None => plan(call, buffer, root).map(Task::from),
    }
}

/// Plans that all ranks get what the root's buffer holds.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, buffer: &Buffer, root: i32) -> Result<Schedule> {
    let root = call.comm.check_root(root)? as usize;
    let mut schedule = Schedule::new(call);
    let plan = select(select::BCAST, schedule.size(), buffer.bytes(), None);
    plan(&mut schedule, buffer, root)?;
    Ok(schedule)
}
