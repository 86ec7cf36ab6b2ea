//! Fetches: the operation behind the request of `MPI_Rget` and `MPI_Rget_accumulate`, which collects a target's
//! answers.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use limosa_mpi::comm::Comm;
use limosa_mpi::error::{Error, Result, error_of};
use limosa_mpi::fail;
use limosa_mpi::observe::Awaits;
use limosa_mpi::operation::{End, Operation};
use limosa_p2p::View;

use crate::station::{AwaitedAnswers, Station};
use crate::window::Window;

/// An access whose answers are pending.
pub(crate) struct Fetch {
    comm: Arc<Comm>,
    /// Handle of the window.
    window: usize,
    target: u32,
    station: Weak<Station>,
    pub answers: Arc<AwaitedAnswers>,
}

impl Fetch {
    /// Creates the fetch of an access to a target of a window.
    pub fn new(window: &Window, target: u32) -> Arc<Fetch> {
        let (comm, station) = (window.comm.clone(), Arc::downgrade(&window.station));
        let window = window.handle.load(Ordering::Relaxed);
        Arc::new(Fetch { comm, window, target, station, answers: AwaitedAnswers::new() })
    }

    /// Returns the reason why the operation cannot complete, if any.
    fn lost(&self) -> Option<Error> {
        self.comm.engine().lost_group(self.comm.coll_context()).map(error_of)
    }
}

impl Operation for Fetch {
    fn start(self: Arc<Self>) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "an operation on a window is started by its call and cannot be started again")
    }

    fn progress(&self) -> bool {
        self.answers.have_come() || self.comm.engine().is_impaired() && self.lost().is_some()
    }

    fn is_ready(&self, view: &View<'_>) -> bool {
        self.answers.have_come() || view.lost_group(self.comm.coll_context()).is_some()
    }

    fn finish(&self) -> Option<End> {
        self.look()
    }

    fn look(&self) -> Option<End> {
        if !self.answers.have_come() {
            let error = self.lost()?;
            // The memory belongs to the program again: later answers are not written there.
            if let Some(station) = self.station.upgrade() {
                station.state.lock().withdraw();
            }
            return Some(End { error: Some(error), ..End::empty() });
        }
        Some(End { error: self.answers.error(), ..End::empty() })
    }

    fn cancel(&self) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "operations on a window cannot be cancelled")
    }

    fn release(&self) -> Result<()> {
        Ok(())
    }

    fn window(&self) -> Option<usize> {
        Some(self.window)
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        Some(Awaits::Window { comm: &self.comm, target: Some(self.target as i32) })
    }
}
