//! Partial reductions (MPI-5 section 6.11): rank i gets the operands of the ranks up to itself combined, or of those before itself.

mod doubling;

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::node::{self, Kind};
use super::{Call, Deal, Schedule, Task};
use crate::error::Result;
use crate::op::Op;

/// `MPI_Scan`. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<()> {
    let input = check(send, receive, op)?;
    match call.turn(Kind::Scan, input.bytes()) {
        Some(turn) => node::scan(&turn, input, receive, op),
        None => super::run(call.comm, plan(call, send, receive, op)?),
    }
}

/// `MPI_Exscan`. `send` is `None` for `MPI_IN_PLACE`. At rank 0 the receive buffer keeps what it holds.
///
/// # Errors
/// As for [`run`].
pub fn run_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<()> {
    let input = check(send, receive, op)?;
    match call.turn(Kind::Exscan, input.bytes()) {
        Some(turn) => node::exscan(&turn, input, receive, op),
        None => super::run(call.comm, plan_exclusive(call, send, receive, op)?),
    }
}

/// Prepares what [`run`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Task> {
    let input = check(send, receive, op)?;
    let bytes = input.bytes();
    match call.desk(bytes) {
        Some(desk) => Ok(Task::at(desk, Deal::reduction(Kind::Scan, op, input, call.rank() + 1, 0..bytes, Some(receive)))),
        None => plan(call, send, receive, op).map(Task::from),
    }
}

/// Prepares what [`run_exclusive`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Task> {
    let input = check(send, receive, op)?;
    let bytes = input.bytes();
    match call.desk(bytes) {
        Some(desk) => Ok(Task::at(desk, Deal::reduction(Kind::Exscan, op, input, call.rank(), 0..bytes, Some(receive)))),
        None => plan_exclusive(call, send, receive, op).map(Task::from),
    }
}

/// Plans `MPI_Scan`. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let mut schedule = begin(call, send, receive, op)?;
    doubling::inclusive(&mut schedule, send.unwrap_or(receive), receive)?;
    Ok(schedule)
}

/// Plans `MPI_Exscan`. `send` is `None` for `MPI_IN_PLACE`. At rank 0 the receive buffer keeps what it holds.
///
/// # Errors
/// As for [`plan`].
pub fn plan_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let mut schedule = begin(call, send, receive, op)?;
    doubling::exclusive(&mut schedule, send.unwrap_or(receive), receive)?;
    Ok(schedule)
}

fn begin(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    check(send, receive, op)?;
    let mut schedule = Schedule::new(call);
    schedule.reduce_with(op.clone(), receive.datatype.clone());
    Ok(schedule)
}

/// The operands, checked.
fn check<'a>(send: Option<&'a Buffer>, receive: &'a Buffer, op: &Op) -> Result<&'a Buffer> {
    if let Some(send) = send {
        check_apart(send, receive)?;
    }
    op.check(&receive.datatype)?;
    Ok(send.unwrap_or(receive))
}
