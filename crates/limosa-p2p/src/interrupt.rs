//! Interrupting a blocked call: a signal has come, and the program does not want to wait any longer.
//!
//! The standard knows no interrupted calls, so a wait goes on after a signal handler has run. Languages whose handlers
//! run later, at a safe point of an interpreter, cannot do with that: the interpreter waits for the call. For these the
//! layer above registers a hook, once. A blocked call asks it
//! - when a signal has ended the thread's sleep (its handler was installed without `SA_RESTART`);
//! - [`ASK_AFTER`] after it began to sleep, for a signal that came while it was not asleep or that another thread has
//!   got, and again and again while it sleeps, each time after twice as long, up to [`ASK_AT_LEAST`];
//! - every [`ASK_AFTER`] while it polls.
//!
//! The hook runs the program's handlers in the thread that waits, without the engine's lock, and says whether the
//! program wants the call to end. The call then withdraws what it waits for: a posted receive is cancelled, a send is
//! recalled, a collective is given up. What cannot be withdrawn any more, since a partner is copying, is awaited.
//! Requests of the program stay under way. Without a hook nothing is asked and nothing changes.

use crate::request::{Completion, Failure};
use limosa_base::thread;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Runs what the program has to do after a signal; true if it wants the blocked call to end. Called by any thread, also
/// when no signal has come.
pub type Hook = fn() -> bool;

static HOOK: OnceLock<Hook> = OnceLock::new();

/// A blocked call has ended because the program wants so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl Interrupted {
    /// The end of what was withdrawn.
    #[cold]
    pub fn completion(self) -> Completion {
        Completion { failure: Some(Box::new(Failure::Interrupted)), ..Completion::default() }
    }
}

/// When a call that sleeps or polls asks without having been woken by a signal.
pub const ASK_AFTER: Duration = Duration::from_millis(100);
/// The longest time between two questions of a call that sleeps.
const ASK_AT_LEAST: Duration = Duration::from_secs(1);

/// When one call that sleeps asks.
#[derive(Default)]
pub(crate) struct Asking {
    /// The next time; `None`: it has not slept yet.
    due: Option<Instant>,
    /// How often it has asked.
    asked: u32,
}

impl Asking {
    /// How long it may sleep until it asks; `None` if no signal may be meant for it.
    pub(crate) fn left(&mut self) -> Option<Duration> {
        if !may_come() {
            return None;
        }
        let now = Instant::now();
        Some(self.due.get_or_insert_with(|| now + ASK_AFTER).saturating_duration_since(now))
    }

    /// Asks the program whether the calling thread's call is to end.
    #[cold]
    pub(crate) fn ask(&mut self) -> bool {
        let is_wanted = wanted();
        self.asked += 1;
        self.due = Some(Instant::now() + (ASK_AFTER * (1 << self.asked.min(4))).min(ASK_AT_LEAST));
        is_wanted
    }
}

/// Registers the hook. The first one stays.
pub fn set_hook(hook: Hook) {
    HOOK.get_or_init(|| hook);
}

/// A signal may be meant for what this thread waits for: there is a hook, and handlers run in a process's first thread.
pub fn may_come() -> bool {
    HOOK.get().is_some() && thread::is_first()
}

/// Asks the program whether the calling thread's call is to end.
#[cold]
pub fn wanted() -> bool {
    HOOK.get().is_some_and(|hook| hook())
}
