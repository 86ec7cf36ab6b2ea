//! Ends of ranks: those that end the job, those that do not, and how each has ended.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::board::{Board, Seat};
use crate::view::State;

impl Board {
    /// Records that the launcher ends the job. It calls this before it signals the ranks.
    pub fn set_ending(&self) {
        self.header().ending.store(1, Release);
    }

    /// Returns whether the job ends, because the launcher ends it or a rank has aborted it: the deaths of ranks are its
    /// consequence.
    pub fn is_ending(&self) -> bool {
        let header = self.header();
        header.ending.load(Acquire) != 0 || header.abort_state.load(Acquire) != 0
    }
}

impl Seat<'_> {
    /// Records the wait status of the rank's process, in the form of `waitpid`. The launcher calls this before
    /// [`Seat::exited`].
    pub fn set_wait_status(&self, status: i32) {
        self.entry().wait_status.store(status as u32, Relaxed);
    }

    /// Returns the wait status of the rank's process, in the form of `waitpid`; `None` before the launcher has seen its
    /// end.
    pub fn wait_status(&self) -> Option<i32> {
        let has_ended = self.entry().state.load(Acquire) == State::Exited as u32;
        has_ended.then(|| self.entry().wait_status.load(Relaxed) as i32)
    }

    /// Records whether the job goes on if the process of this rank dies.
    pub fn set_expendable(&self, is_expendable: bool) {
        self.entry().expendable.store(is_expendable.into(), Release);
    }

    /// Returns whether the job goes on if the process of this rank dies.
    pub fn is_expendable(&self) -> bool {
        self.entry().expendable.load(Acquire) != 0
    }
}
