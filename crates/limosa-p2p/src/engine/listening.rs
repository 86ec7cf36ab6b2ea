//! What a layer above overhears in the contexts of groups that act together: messages for which no receive was posted,
//! and what other members say of themselves. By comparing them with what this process does there it finds members that
//! differ.
//!
//! A context without a listener hears nothing: what members say of it is dropped, and its messages are told to the
//! listener that comes later.

use std::any::Any;
use std::sync::{Arc, Weak};

use super::{Core, Engine};
use crate::matching::Envelope;
use crate::state::{Job, ProgramJob};
use crate::wire;
use limosa_device::{Peer, Urgency};
use rustc_hash::FxHashMap;

/// Listens to a context. Its functions are called with the engine's lock: they are short, do not block, and do not call
/// the engine. What they return is done without the lock.
pub trait Listener: Any + Send + Sync {
    /// A message is there for which no receive was posted.
    fn unasked(&self, envelope: &Envelope) -> Option<ProgramJob>;

    /// Another process says something about the group ([`Engine::say`]).
    fn told(&self, from: Peer, words: Words) -> Option<ProgramJob>;
}

/// What one member says to another one.
pub type Words = [u64; wire::SAID];

/// The listeners of an engine, by context.
#[derive(Default)]
pub(crate) struct Listeners {
    all: FxHashMap<u64, Weak<dyn Listener>>,
    /// Beyond so many, those that are gone are looked for.
    tidy_at: usize,
}

impl Listeners {
    fn add(&mut self, context: u64, listener: &Arc<dyn Listener>) {
        const FEW: usize = 16;
        if self.all.len() >= self.tidy_at {
            self.all.retain(|_, listener| listener.strong_count() > 0);
            self.tidy_at = FEW.max(2 * self.all.len());
        }
        self.all.insert(context, Arc::downgrade(listener));
    }

    /// A message is there for which no receive was posted: what is to be done about it.
    #[inline]
    pub fn unasked(&self, envelope: &Envelope) -> Option<Job> {
        if self.all.is_empty() {
            return None;
        }
        self.all.get(&envelope.context)?.upgrade()?.unasked(envelope).map(Job::Layer)
    }

    /// A process says something about a group: what is to be done about it.
    #[cold]
    pub fn told(&self, from: Peer, context: u64, words: Words) -> Option<Job> {
        self.all.get(&context)?.upgrade()?.told(from, words).map(Job::Layer)
    }
}

impl Engine {
    /// Has a context listened to for as long as the listener lives.
    pub fn listen(&self, context: u64, listener: &Arc<dyn Listener>) {
        let mut core = self.core.lock();
        core.state.listeners.add(context, listener);
        self.leave(core);
        self.overhear_again(context, &**listener);
    }

    /// The listener of a context, if it is of this type.
    pub fn listener<T: Listener>(&self, context: u64) -> Option<Arc<T>> {
        let listener: Arc<dyn Any + Send + Sync> = self.core.lock().state.listeners.all.get(&context)?.upgrade()?;
        listener.downcast().ok()
    }

    /// Tells the listener once more of all messages of its context that nobody has asked for.
    pub fn overhear_again(&self, context: u64, listener: &dyn Listener) {
        let mut core = self.core.lock();
        let Core { state, .. } = &mut *core;
        let found = state.matcher.unexpected().filter(|(envelope, _)| envelope.context == context);
        state.jobs.extend(found.filter_map(|(envelope, _)| listener.unasked(envelope)).map(Job::Layer));
        self.leave(core);
    }

    /// Says something about the group of a context to its listener at another process. That hears it when one of its
    /// threads is in the library, or at once, by its helper, if it is urgent. Nothing is said where nothing can be done
    /// any more.
    pub fn say(&self, to: Peer, context: u64, words: Words, urgency: Urgency) {
        let mut core = self.core.lock();
        let Core { devices, state, .. } = &mut *core;
        if state.lost_group(context).is_none() {
            let (meta, data) = wire::said(context, words);
            state.control(devices, to, meta, &data, urgency);
        }
        self.leave(core);
    }
}
