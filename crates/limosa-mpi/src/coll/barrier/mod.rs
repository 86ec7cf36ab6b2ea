//! Barrier (MPI-5 section 6.3).

mod dissemination;

use super::node::{self, Kind};
use super::{Call, Schedule};
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

/// Plans a barrier.
pub fn plan(call: &Call<'_>) -> Schedule {
    let mut schedule = Schedule::new(call);
    dissemination::plan(&mut schedule);
    schedule
}
