//! Interrupting a blocked call: a signal has come, and the program does not want to wait any longer.
//!
//! The standard knows no interrupted calls, so a wait goes on after a signal handler has run. Languages whose handlers
//! run later, at a safe point of an interpreter, cannot do with that: the interpreter waits for the call. For these the
//! layer above registers a hook, once. A blocked call asks it
//! - when a signal has ended the thread's sleep (its handler was installed without `SA_RESTART`);
//! - once, [`ASK_AFTER`] after it began to sleep, for a signal that came while it was still looking;
//! - every [`ASK_AFTER`] while it polls.
//!
//! The hook runs the program's handlers in the thread that waits, without the engine's lock, and says whether the
//! program wants the call to end. The call then withdraws what it waits for: a posted receive is cancelled, a send is
//! recalled, a collective is given up. What cannot be withdrawn any more, since a partner is copying, is awaited.
//! Requests of the program stay under way. Without a hook nothing is asked and nothing changes.

use crate::request::{Completion, Failure};
use limosa_base::thread;
use std::sync::OnceLock;
use std::time::Duration;

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
