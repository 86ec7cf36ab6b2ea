//! Generalized requests (MPI-5 section 13.2): the program does the operation itself and says when it is complete.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | open | the operation is under way | complete, abandoned |
//! | complete | `MPI_Grequest_complete` was called | |
//! | abandoned | `MPI_Request_free` was called first: the end is of no interest | released |
//! | released | both were called, in this order | |
//!
//! The program's functions are called without a lock, by the thread that makes the call that needs them: `query` by
//! those that return a status, `free` by the one that takes the end, or by the last of `MPI_Request_free` and
//! `MPI_Grequest_complete`.

use crate::error::Result;
use crate::fail;
use crate::observe::Awaits;
use crate::operation::{End, Operation};
use crate::world;
use limosa_p2p::View;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const OPEN: u8 = 0;
const COMPLETE: u8 = 1;
const ABANDONED: u8 = 2;
const RELEASED: u8 = 3;

/// The program's functions. Errors carry the codes that they return.
pub struct Callbacks {
    /// Describes the end of the operation; its error is that of the function.
    pub query: Box<dyn Fn() -> End + Send + Sync>,
    /// The request is not needed any more.
    pub free: Box<dyn Fn() -> Result<()> + Send + Sync>,
    /// The operation is to be cancelled; the argument says whether it is complete.
    pub cancel: Box<dyn Fn(bool) -> Result<()> + Send + Sync>,
}

/// An operation of the program.
pub struct Generalized {
    state: AtomicU8,
    callbacks: Callbacks,
}

impl Generalized {
    /// One that is under way (`MPI_Grequest_start`).
    pub fn start(callbacks: Callbacks) -> Arc<Generalized> {
        Arc::new(Generalized { state: AtomicU8::new(OPEN), callbacks })
    }

    fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMPLETE
    }

    /// Whether the request was freed before the operation was complete.
    pub fn was_abandoned(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), ABANDONED | RELEASED)
    }

    /// Completes the operation (`MPI_Grequest_complete`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` if it was before; that of the program's `free`.
    pub fn complete(&self) -> Result<()> {
        if self.state.compare_exchange(OPEN, COMPLETE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            if let Some(engine) = world::of_job_if_any().and_then(|world| world.engine_if_any()) {
                engine.notify();
            }
            return Ok(());
        }
        if self.state.compare_exchange(ABANDONED, RELEASED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return (self.callbacks.free)();
        }
        fail!(MPI_ERR_REQUEST, "MPI_Grequest_complete has been called for this request already")
    }
}

impl Operation for Generalized {
    fn start(self: Arc<Self>) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "only persistent requests can be started, and this one is not")
    }

    fn progress(&self) -> bool {
        self.is_complete()
    }

    fn is_ready(&self, _view: &View<'_>) -> bool {
        self.is_complete()
    }

    fn finish(&self) -> Option<End> {
        let mut end = self.look()?;
        // The code of the function that is called last counts (MPI-5 section 13.2); an error of the first is not lost.
        if let Err(error) = (self.callbacks.free)() {
            end.error = Some(error);
        }
        Some(end)
    }

    fn look(&self) -> Option<End> {
        self.is_complete().then(|| (self.callbacks.query)())
    }

    fn cancel(&self) -> Result<()> {
        (self.callbacks.cancel)(self.is_complete())
    }

    fn release(&self) -> Result<()> {
        match self.state.compare_exchange(OPEN, ABANDONED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(_) => (self.callbacks.free)(),
        }
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        None
    }
}
