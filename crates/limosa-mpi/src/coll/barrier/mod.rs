//! Barrier (MPI-5 section 6.3).

mod dissemination;

use super::{Call, Schedule};

/// Plans a barrier.
pub fn plan(call: &Call<'_>) -> Schedule {
    let mut schedule = Schedule::new(call);
    dissemination::plan(&mut schedule);
    schedule
}
