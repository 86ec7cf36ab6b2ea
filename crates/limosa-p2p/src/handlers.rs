//! Packets of other layers: windows, files and control have kinds of their own, and handlers for them.
//!
//! A layer registers its handlers once, before its first packet can arrive
//! ([`Engine::register`](crate::Engine::register)), and sends packets with
//! [`Engine::send_packet`](crate::Engine::send_packet). Packets of one peer are handled in the order in which they were
//! sent, messages among them.
//!
//! Contract of a handler:
//! - it runs under the engine's lock, inside the poll of a device, on any thread, including the helper. It is short,
//!   does not block, does not call the engine, and runs no code of the program;
//! - the packet's data are valid only during the call;
//! - it does not touch the receiving side of a device. Packets to send go to [`Actions::send`], unlocked work to
//!   [`Actions::run_unlocked`]. The engine does both right after the poll. Several threads may do unlocked work at the
//!   same time: jobs of different polls run in no particular order;
//! - data are untrusted, since another process sent them. The handler checks every number, and returns false for an
//!   invalid packet. That ends all communication with an error that names the kind.
//!
//! A layer whose operations wait for packets fails them itself when a peer dies. It registers a [`DeathHook`]
//! ([`Engine::on_death`](crate::Engine::on_death)), to which the contract of handlers applies.
//!
//! Kinds of messages are not in the table: they are matched directly ([`crate::state`]), since they dominate the
//! traffic.

use crate::Engine;
use crate::completion::Failure;
use crate::state::{Deferred, UnlockedJob};
use limosa_device::{Meta, Peer, Urgency};
use smallvec::SmallVec;

/// First kind that is looked up in the table; lower kinds are messages.
pub(crate) const FIRST_KIND: u8 = 32;
/// Kinds per chapter.
const KINDS: u8 = 32;

/// A layer with packet kinds of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    /// One-sided communication.
    Windows,
    /// Files.
    Files,
    /// Jobs that join or leave, and their data.
    Control,
}

impl Chapter {
    /// Returns the kind of this chapter's packets for its handler number `index`.
    ///
    /// # Panics
    /// If the index exceeds the 32 kinds of a chapter.
    pub const fn kind(self, index: u8) -> u8 {
        assert!(index < KINDS, "a chapter has 32 kinds");
        FIRST_KIND + self as u8 * KINDS + index
    }
}

/// Handles a packet from a peer. Returns false if the packet is invalid.
pub type Handler = Box<dyn FnMut(&mut Actions<'_>, Peer, &Meta, &[u8]) -> bool + Send>;

/// Called once for each dead peer, after all its packets, with the failure for operations that need that peer.
pub type DeathHook = Box<dyn FnMut(&mut Actions<'_>, Peer, &Failure) + Send>;

/// Requests of a handler to the engine.
pub struct Actions<'a> {
    pub(crate) deferred: &'a mut Vec<Deferred>,
    pub(crate) jobs: &'a mut Vec<UnlockedJob>,
    pub(crate) completed: &'a mut bool,
}

impl Actions<'_> {
    /// Sends a packet to `to` after the poll, behind the backlog of that peer.
    pub fn send(&mut self, to: Peer, meta: Meta, data: &[u8], urgency: Urgency) {
        self.deferred.push(Deferred::Packet { to, meta, data: SmallVec::from_slice(data), urgency });
    }

    /// Wakes the sleeping threads of this process, whose conditions may hold now.
    pub fn notify(&mut self) {
        *self.completed = true;
    }

    /// Runs a job without the lock, on the polling thread.
    pub fn run_unlocked(&mut self, job: Box<dyn FnOnce(&Engine) + Send>) {
        self.jobs.push(UnlockedJob::Layer(job));
    }
}

/// The handlers of an engine, by kind.
#[derive(Default)]
pub(crate) struct Handlers(Vec<Option<Handler>>);

impl Handlers {
    pub fn register(&mut self, chapter: Chapter, handlers: Vec<Handler>) {
        assert!(handlers.len() <= usize::from(KINDS), "a chapter has 32 kinds");
        let first = usize::from(chapter.kind(0) - FIRST_KIND);
        self.0.resize_with(self.0.len().max(first + handlers.len()), || None);
        for (place, handler) in self.0[first..].iter_mut().zip(handlers) {
            assert!(place.is_none(), "{chapter:?} has registered its handlers already");
            *place = Some(handler);
        }
    }

    #[inline]
    pub fn find(&mut self, kind: u8) -> Option<&mut Handler> {
        self.0.get_mut(usize::from(kind.checked_sub(FIRST_KIND)?))?.as_mut()
    }
}
