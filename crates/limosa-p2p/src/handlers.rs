//! Packets of other layers: windows, files and control have kinds of their own, and handlers for them.
//!
//! A layer registers its handlers once, before its first packet can come
//! ([`Engine::register`](crate::Engine::register)), and sends packets with
//! [`Engine::send_packet`](crate::Engine::send_packet). Packets of one peer are handled in the order in which they were
//! sent, messages among them.
//!
//! Contract of a handler:
//! - it runs under the engine's lock, inside the poll of a device, on whatever thread is there, the helper's too: it is
//!   short, does not block, does not call the engine and runs no code of the program;
//! - it has the packet's data during the call only;
//! - it does not touch the receiving side of a device. What it wants sent goes to [`Actions::send`], what must happen
//!   without the lock to [`Actions::run_unlocked`]; the engine does both right after the poll. Without the lock,
//!   several threads may do so at the same time: jobs of different polls run in no particular order;
//! - data come from another process: it checks every number, and returns false for a packet that makes no sense. That
//!   ends all communication with an error that names the kind.
//!
//! A layer whose operations wait for packets ends them itself when a peer dies: it registers a [`DeathHook`]
//! ([`Engine::on_death`](crate::Engine::on_death)), to which the contract of handlers applies.
//!
//! The kinds of messages are not in the table: they are matched directly ([`crate::state`]), since most traffic is
//! theirs.

use crate::Engine;
use crate::request::Failure;
use crate::state::{Deferred, Job};
use limosa_device::{Meta, Peer, Urgency};
use smallvec::SmallVec;

/// Kinds from here on are looked up in the table; those below are messages.
pub(crate) const FIRST_KIND: u8 = 32;
/// Kinds of a chapter.
const KINDS: u8 = 32;

/// A layer that has packets of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chapter {
    /// One-sided communication.
    Windows,
    /// Files.
    Files,
    /// Jobs that join or leave, and what is to be known of them.
    Control,
}

impl Chapter {
    /// The kind of this chapter's packets that its handler number `index` is for.
    ///
    /// # Panics
    /// A chapter has 32 kinds.
    pub const fn kind(self, index: u8) -> u8 {
        assert!(index < KINDS, "a chapter has 32 kinds");
        FIRST_KIND + self as u8 * KINDS + index
    }
}

/// Handles a packet from a peer; false if it makes no sense.
pub type Handler = Box<dyn FnMut(&mut Actions<'_>, Peer, &Meta, &[u8]) -> bool + Send>;

/// Is told that a peer has died, and in which words operations that need it are to fail; once for each peer, after all
/// its packets.
pub type DeathHook = Box<dyn FnMut(&mut Actions<'_>, Peer, &Failure) + Send>;

/// What a handler may ask for.
pub struct Actions<'a> {
    pub(crate) deferred: &'a mut Vec<Deferred>,
    pub(crate) jobs: &'a mut Vec<Job>,
    pub(crate) completed: &'a mut bool,
}

impl Actions<'_> {
    /// Has a packet sent to `to` after the poll, behind what waits for that peer.
    pub fn send(&mut self, to: Peer, meta: Meta, data: &[u8], urgency: Urgency) {
        self.deferred.push(Deferred::Packet { to, meta, data: SmallVec::from_slice(data), urgency });
    }

    /// What threads of this process wait for may be the case now: those that sleep look again.
    pub fn notify(&mut self) {
        *self.completed = true;
    }

    /// Has this done without the lock, by the thread that polls.
    pub fn run_unlocked(&mut self, job: Box<dyn FnOnce(&Engine) + Send>) {
        self.jobs.push(Job::Layer(job));
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
