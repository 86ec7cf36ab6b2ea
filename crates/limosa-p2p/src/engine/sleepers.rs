//! Threads that sleep in the engine beside threads of the same process that poll.
//!
//! | who is there | the doorbell | who takes in what arrives |
//! |---|---|---|
//! | all sleep | `Asleep` | all are woken |
//! | some sleep, one polls | `Awake` or `Lookout` | that one, which wakes them when they may wait for it |
//! | some sleep, that one has left | the same, with the alarm set | each visit; after the alarm the sleepers, woken |
//!
//! A thread that sleeps is not woken for messages of other threads: to wake it, and to have it sleep again, takes many
//! times as long as a message. So it does not slow down a thread that communicates. Instead it is woken
//! ([`Awaited`])
//! - when requests end that had begun before the last one fell asleep. Nobody who sleeps waits for a later one
//!   ([`crate::request::Requests::turn`]);
//! - when a message is held that its probe asks for;
//! - when a handler of packets says so ([`crate::handlers::Actions::notify`]), or somebody by [`Engine::notify`];
//! - when messages are lost or nothing begins on some context any more;
//! - by another process that has changed shared memory: if anybody may wait for such a change, the doorbell is in state
//!   `Lookout` ([`limosa_base::doorbell`]).
//!
//! Beside a thread that waits for anything else the doorbell stays `Asleep`.
//!
//! Whoever has polled for sleepers hands over to them before it runs code of the program, which may wait for what they
//! do.

use super::{Core, Engine};
use crate::matching::{Envelope, Pattern};
use limosa_base::doorbell::State as Bell;
use smallvec::SmallVec;

/// What a condition is about, and whether the program may end the wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The ends of requests that had begun before.
    Requests,
    /// Such as end by themselves: the wait cannot be ended.
    CertainRequests,
    /// That a message is held which this pattern asks for.
    Message(Pattern),
    /// These, and what somebody tells of.
    News,
    /// Anything that shows in the engine.
    Anything,
}

/// What threads that are asleep wait for besides the ends of requests that had begun before.
#[derive(Default)]
pub(crate) struct Wishes {
    messages: SmallVec<[Pattern; 2]>,
    news: u32,
    anything: u32,
}

impl Wishes {
    /// A thread falls asleep.
    pub fn add(&mut self, awaited: Awaited) {
        match awaited {
            Awaited::Requests | Awaited::CertainRequests => {}
            Awaited::Message(pattern) => self.messages.push(pattern),
            Awaited::News => self.news += 1,
            Awaited::Anything => self.anything += 1,
        }
    }

    /// It has woken.
    pub fn remove(&mut self, awaited: Awaited) {
        match awaited {
            Awaited::Requests | Awaited::CertainRequests => {}
            Awaited::Message(pattern) => {
                let at = self.messages.iter().position(|other| *other == pattern).expect("it was added");
                self.messages.swap_remove(at);
            }
            Awaited::News => self.news -= 1,
            Awaited::Anything => self.anything -= 1,
        }
    }

    /// Somebody may wait for the end of any request.
    #[inline]
    pub fn include_all(&self) -> bool {
        self.anything > 0
    }

    /// Somebody may wait for this message to be held.
    #[inline]
    pub fn include(&self, envelope: &Envelope) -> bool {
        self.anything > 0 || self.messages.iter().any(|pattern| pattern.matches(envelope))
    }
}

impl Core {
    /// Whether a thread in a blocking call polls.
    pub(super) fn has_poller(&self) -> bool {
        self.waiters > self.sleepers
    }
}

impl Engine {
    /// Whether a polling thread sees all that others would be woken for, except for what wakes them all the same.
    #[inline]
    fn can_look_for_others(&self, core: &Core) -> bool {
        match core.sleepers {
            0 => core.state.serves_urgently(),
            _ => core.state.wishes.anything == 0 && self.options.independent_progress,
        }
    }

    /// This thread is going to poll: there is no need to wake the helper, or threads that sleep, for what it sees.
    #[inline]
    pub(super) fn look_out(&self, core: &Core) {
        if self.can_look_for_others(core) {
            match core.sleepers {
                0 => self.doorbell.set(Bell::Awake),
                _ => self.doorbell.look_out(core.state.wishes.news == 0),
            }
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
        if core.sleepers > 0 && self.doorbell.is_polled() {
            self.doorbell.hand_over();
        }
    }

    /// Threads sleep and are not woken for what arrives: somebody has polled for them.
    #[inline]
    pub(super) fn has_looked_for_sleepers(&self, core: &Core) -> bool {
        core.sleepers > 0 && core.state.wishes.anything == 0 && self.doorbell.is_polled()
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
