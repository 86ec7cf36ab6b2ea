//! Barrier (MPI-5 section 6.3).

mod dissemination;

use super::node::{self, Kind};
use super::{Call, Deal, Schedule, Task};
use crate::error::Result;

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
#[inline]
pub fn run(call: &Call<'_>) -> Result<()> {
    match call.turn(Kind::Barrier, 0) {
        Some(turn) => node::barrier(&turn),
        None => super::run(call.comm, plan(call)),
    }
}

/// Begins a barrier in the background.
///
/// # Errors
/// None so far: what goes wrong is told at the end.
pub fn background(call: &Call<'_>) -> Result<Task> {
    Ok(match call.desk(0) {
        Some(desk) => Task::at(desk, Deal::barrier()),
        None => plan(call).into(),
    })
}

/// Plans a barrier.
pub fn plan(call: &Call<'_>) -> Schedule {
    let mut schedule = Schedule::new(call);
    dissemination::plan(&mut schedule);
    schedule
}
