//! Barrier (MPI-5 section 6.3).

mod dissemination;

use super::one_step;
use super::shared::{self, Kind};
use super::{Call, Plan, Recorder, Schedule};
use limosa_mpi::error::Result;

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
#[inline]
pub fn run(call: &Call<'_>) -> Result<()> {
    // One byte stands for none, so that a table can have it go by messages.
    match call.shared_call(Kind::Barrier, 1) {
        Some(shared_call) => shared::barrier(&shared_call),
        None => super::run(call.comm, plan(call)),
    }
}

/// Begins a barrier in the background.
///
/// # Errors
/// None so far: what goes wrong is told at the end.
pub fn background(call: &Call<'_>) -> Result<Plan> {
    Ok(match call.mailbox_use(Kind::Barrier, 0) {
        Some(mailbox_use) => {
            let exchange = one_step::barrier(Recorder::new(Kind::Barrier, call, mailbox_use.limits))?;
            Plan::at(mailbox_use, exchange)
        }
        None => plan(call).into(),
    })
}

/// Plans a barrier.
pub fn plan(call: &Call<'_>) -> Schedule {
    let mut schedule = Schedule::new(call);
    dissemination::plan(&mut schedule);
    schedule
}
