//! Threads that sleep in the engine while threads of the same process poll.
//!
//! | threads | doorbell | handling of traffic |
//! |---|---|---|
//! | all sleep | `Asleep` | all are woken |
//! | some sleep, one polls | `Awake` or `Delegated` | by the polling thread, which wakes sleepers that may wait for it |
//! | some sleep, the polling one has left | the same, with the alarm set | by each visit; after the alarm by the woken sleepers |
//!
//! A sleeping thread is not woken for messages of other threads: waking it and letting it sleep again takes many times
//! as long as a message, and would slow down the communicating thread. It is woken ([`WaitReason`])
//! - when requests complete that had begun before the last thread fell asleep. No sleeping thread waits for a later one
//!   ([`crate::request::Requests::epoch`]);
//! - when a message is held that its probe matches;
//! - when a packet handler asks for it ([`crate::handlers::Actions::notify`]), or a caller of [`Engine::notify`];
//! - when messages are lost, or a context can no longer be used;
//! - by another process that has changed shared memory. If any thread may wait for such a change, the doorbell is in
//!   state `Delegated` ([`limosa_base::doorbell`]).
//!
//! Beside a thread that waits for anything else the doorbell stays `Asleep`.
//!
//! A thread that has polled for sleepers ends the delegation before it runs code of the program, which may wait for
//! what the sleepers do.

use super::{Core, Engine};
use crate::matching::{Envelope, Pattern};
use limosa_base::doorbell::DoorbellState;
use smallvec::SmallVec;

/// Subject of a wait condition, and whether the program may interrupt the wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// Completions of requests that had begun before the wait.
    Requests,
    /// Completions that are certain to come: the wait cannot be interrupted.
    CertainRequests,
    /// The arrival of an unexpected message that this pattern matches.
    Message(Pattern),
    /// Completions, and changes announced by [`Engine::notify`] or a ring.
    News,
    /// Any visible change in the engine.
    Anything,
}

/// Conditions of the sleeping threads, beside the completion of requests that had begun before.
#[derive(Default)]
pub(crate) struct SleepConditions {
    messages: SmallVec<[Pattern; 2]>,
    news: u32,
    anything: u32,
}

impl SleepConditions {
    /// Adds the condition of a thread that falls asleep.
    pub fn add(&mut self, reason: WaitReason) {
        match reason {
            WaitReason::Requests | WaitReason::CertainRequests => {}
            WaitReason::Message(pattern) => self.messages.push(pattern),
            WaitReason::News => self.news += 1,
            WaitReason::Anything => self.anything += 1,
        }
    }

    /// Removes the condition of a thread that has woken.
    pub fn remove(&mut self, reason: WaitReason) {
        match reason {
            WaitReason::Requests | WaitReason::CertainRequests => {}
            WaitReason::Message(pattern) => {
                let at = self.messages.iter().position(|other| *other == pattern).expect("it was added");
                self.messages.swap_remove(at);
            }
            WaitReason::News => self.news -= 1,
            WaitReason::Anything => self.anything -= 1,
        }
    }

    /// Returns whether a thread may wait for the completion of any request.
    #[inline]
    pub fn include_all(&self) -> bool {
        self.anything > 0
    }

    /// Returns whether a thread may wait for this unexpected message.
    #[inline]
    pub fn include(&self, envelope: &Envelope) -> bool {
        self.anything > 0 || self.messages.iter().any(|pattern| pattern.matches(envelope))
    }
}

impl Core {
    /// Returns whether a thread in a blocking call polls.
    pub(super) fn has_poller(&self) -> bool {
        self.waiters > self.sleepers
    }
}

impl Engine {
    /// Returns whether a polling thread sees everything for which the sleepers must be woken, except what wakes them in
    /// any case.
    #[inline]
    fn can_poll_for_others(&self, core: &Core) -> bool {
        match core.sleepers {
            0 => core.state.serves_urgently(),
            _ => core.state.sleep_conditions.anything == 0 && self.options.independent_progress,
        }
    }

    /// Announces that this thread polls: its traffic need not wake the helper or sleeping threads.
    #[inline]
    pub(super) fn delegate_polling(&self, core: &Core) {
        if self.can_poll_for_others(core) {
            match core.sleepers {
                0 => self.doorbell.set(DoorbellState::Awake),
                _ => self.doorbell.delegate_polling(core.state.sleep_conditions.news == 0),
            }
        }
    }

    /// Wakes the sleepers if anything was completed that they may wait for.
    #[inline]
    pub(super) fn wake_sleepers(&self, core: &mut Core) {
        if core.sleepers > 0 && std::mem::take(&mut core.state.completed) {
            self.doorbell.wake_own();
        }
    }

    /// Lets sleepers poll for themselves again. Called before this thread, which has polled for them, runs code of the
    /// program: that code may wait for what the sleepers do.
    pub(super) fn end_delegation(&self, core: &Core) {
        if core.sleepers > 0 && self.doorbell.is_polled() {
            self.doorbell.end_delegation();
        }
    }

    /// Returns whether threads sleep that rely on the polling of another thread.
    #[inline]
    pub(super) fn has_polled_for_sleepers(&self, core: &Core) -> bool {
        core.sleepers > 0 && core.state.sleep_conditions.anything == 0 && self.doorbell.is_polled()
    }

    /// Wakes other sleepers, before this thread sleeps, if anything was completed that they may wait for.
    pub(super) fn wake_others(&self, core: &mut Core) {
        // A completion in this visit may concern another sleeper. This thread has polled already, and sets the state
        // again if needed.
        if std::mem::take(&mut core.state.completed) && core.sleepers > 1 {
            self.doorbell.wake_own();
        }
    }
}
