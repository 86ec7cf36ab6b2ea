//! Reduce to all ranks (MPI-5 section 6.9.6).

pub(super) mod recursive_doubling;
pub(super) mod sliced;

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::node::{self, Kind};
use super::select::{self, select};
use super::{Call, Deal, Schedule, Task};
use crate::error::Result;
use crate::op::Op;

/// Gives all ranks the operands of all ranks combined, bit by bit the same. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<()> {
    let input = check(send, receive, op)?;
    match call.turn(Kind::Allreduce, input.bytes()) {
        Some(turn) => node::allreduce(&turn, input, receive, op),
        None => super::run(call.comm, plan(call, send, receive, op)?),
    }
}

/// The operands, checked.
fn check<'a>(send: Option<&'a Buffer>, receive: &'a Buffer, op: &Op) -> Result<&'a Buffer> {
    if let Some(send) = send {
        check_apart(send, receive)?;
    }
    let input = send.unwrap_or(receive);
    op.check(&input.datatype)?;
    Ok(input)
}

/// Prepares what [`run`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Task> {
    let input = check(send, receive, op)?;
    let bytes = input.bytes();
    match call.desk(bytes) {
        Some(desk) => Ok(Task::at(desk, Deal::reduction(Kind::Allreduce, op, input, call.size(), 0..bytes, Some(receive)))),
        None => plan(call, send, receive, op).map(Task::from),
    }
}

/// Plans that all ranks get the operands of all ranks combined, bit by bit the same. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let input = check(send, receive, op)?;
    let mut schedule = Schedule::new(call);
    schedule.reduce_with(op.clone(), input.datatype.clone());
    let plan = select(select::ALLREDUCE, schedule.size(), input.bytes(), Some(op));
    plan(&mut schedule, input, receive)?;
    Ok(schedule)
}
