//! Threads that sleep in the engine beside threads of the same process that poll.
//!
//! | who is there | the doorbell | who takes in what arrives |
//! |---|---|---|
//! | all sleep | `Asleep` | all are woken |
//! | some sleep, one polls | `Awake` | the one that polls; it wakes them when what they may wait for has ended |
//! | some sleep, that one has left | `Awake`, with the alarm set | each visit; after the alarm the sleepers, woken |
//!
//! A thread that sleeps is not woken for messages of other threads: to wake it, and to have it sleep again, takes many
//! times as long as a message. So it does not slow down a thread that communicates.
//!
//! A sleeper that waits for something else than the ends of requests ([`super::waiting::Awaited`]) has to look itself:
//! beside one the doorbell stays `Asleep`. Nobody who sleeps waits for a request that has begun after the last one fell
//! asleep: its end wakes nobody ([`crate::request::Requests::turn`]).
//!
//! Whoever has polled for sleepers hands over to them before it runs code of the program, which may wait for what they
//! do.

use super::{Core, Engine};
use limosa_base::doorbell::State as Bell;

impl Engine {
    /// Whether a polling thread sees all that others would be woken for. What sleepers wait for outside the engine it
    /// does not see.
    #[inline]
    pub(super) fn can_look_for_others(&self, core: &Core) -> bool {
        match core.sleepers {
            0 => core.state.serves_urgently(),
            _ => core.state.lookers == 0 && self.options.independent_progress && self.doorbell.is(Bell::Asleep),
        }
    }

    /// Wakes sleepers if something was completed that they may wait for.
    #[inline]
    pub(super) fn wake_sleepers(&self, core: &mut Core) {
        if core.sleepers > 0 && std::mem::take(&mut core.state.completed) {
            self.doorbell.wake_own();
        }
    }

    /// Has sleepers look for themselves again, before this thread, which has polled for them, runs code of the program:
    /// that may wait for what they do.
    pub(super) fn hand_over(&self, core: &Core) {
        if core.sleepers > 0 && self.doorbell.is(Bell::Awake) {
            self.doorbell.set(Bell::Asleep);
            self.doorbell.wake_own();
        }
    }

    /// Threads sleep and are not woken for what arrives: somebody has polled for them.
    #[inline]
    pub(super) fn has_looked_for_sleepers(&self, core: &Core) -> bool {
        core.sleepers > 0 && core.state.lookers == 0 && self.doorbell.is(Bell::Awake)
    }

    /// Before this thread sleeps: wakes other sleepers if something was completed that they may wait for.
    pub(super) fn wake_others(&self, core: &mut Core) {
        // What was completed here may be what another sleeper waits for; this thread has looked already and sets the
        // state again if need be.
        if std::mem::take(&mut core.state.completed) && core.sleepers > 1 {
            self.doorbell.wake_own();
        }
    }
}
