//! Interrupts of blocked calls: a signal has arrived, and the program does not want to wait any longer.
//!
//! The standard does not define interrupted calls, so a wait normally continues after a signal handler has run.
//! Languages whose handlers run later, at a safe point of an interpreter, need more: the interpreter waits for the
//! call. For these the layer above registers a hook, once. A blocked call calls it
//! - when a signal has ended the thread's sleep (its handler was installed without `SA_RESTART`);
//! - [`ASK_AFTER`] after it began to sleep, for a signal that arrived while it was awake or that another thread
//!   received; then repeatedly, at intervals that double up to [`ASK_AT_LEAST`];
//! - every [`ASK_AFTER`] while it polls.
//!
//! The hook runs the program's handlers in the waiting thread, without the engine's lock, and returns whether the
//! program wants the call to end. The call then withdraws its operation: it cancels a posted receive, recalls a send,
//! or abandons a collective. If a partner is already copying, it waits for completion instead. Requests of the program
//! stay pending. Without a hook nothing changes.

use crate::completion::{Completion, Failure};
use limosa_base::thread;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Runs the program's pending signal handlers. Returns whether the blocked call is to end. Called by any thread, even
/// without a signal.
pub type Hook = fn() -> bool;

static HOOK: OnceLock<Hook> = OnceLock::new();

/// Error of a blocked call that the program has interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl Interrupted {
    /// Returns the completion of a withdrawn operation.
    #[cold]
    pub fn completion(self) -> Completion {
        Completion { failure: Some(Box::new(Failure::Interrupted)), ..Completion::default() }
    }
}

/// Time after which a sleeping or polling call first calls the hook without having been woken by a signal.
pub const ASK_AFTER: Duration = Duration::from_millis(100);
/// Longest interval between two calls of the hook by a sleeping call.
const ASK_AT_LEAST: Duration = Duration::from_secs(1);

/// Schedule of a sleeping call's calls of the hook.
#[derive(Default)]
pub(crate) struct Asking {
    /// Time of the next call; `None` before the first sleep.
    due: Option<Instant>,
    /// Number of calls so far.
    asked: u32,
}

impl Asking {
    /// Returns the time until the next call; `None` if no signal can concern this thread.
    pub(crate) fn left(&mut self) -> Option<Duration> {
        if !may_come() {
            return None;
        }
        let now = Instant::now();
        Some(self.due.get_or_insert_with(|| now + ASK_AFTER).saturating_duration_since(now))
    }

    /// Calls the hook, and schedules the next call. Returns whether the program wants the calling thread's call to end.
    #[cold]
    pub(crate) fn ask(&mut self) -> bool {
        let is_wanted = wanted();
        self.asked += 1;
        self.due = Some(Instant::now() + (ASK_AFTER * (1 << self.asked.min(4))).min(ASK_AT_LEAST));
        is_wanted
    }
}

/// Registers the hook. Later calls have no effect.
pub fn set_hook(hook: Hook) {
    HOOK.get_or_init(|| hook);
}

/// Returns whether a signal may concern this thread: there is a hook, and handlers run in a process's first thread.
pub fn may_come() -> bool {
    HOOK.get().is_some() && thread::is_first()
}

/// Calls the hook. Returns whether the program wants the calling thread's call to end.
#[cold]
pub fn wanted() -> bool {
    HOOK.get().is_some_and(|hook| hook())
}
