//! Listeners: a layer above observes unexpected messages of collective contexts, and statements of other members
//! ([`Engine::say`]). Comparing these with its own calls, it finds members whose calls differ.
//!
//! Statements for a context without a listener are dropped. Its unexpected messages are reported to the listener that
//! registers later.

use std::any::Any;
use std::sync::{Arc, Weak};

use super::{Core, Engine};
use crate::matching::Envelope;
use crate::state::{ProgramJob, UnlockedJob};
use crate::wire;
use limosa_device::{Peer, Urgency};
use rustc_hash::FxHashMap;

/// Listener of a context. Its functions are called with the engine's lock: they are short, do not block, and do not
/// call the engine. A job that they return runs without the lock.
pub trait Listener: Any + Send + Sync {
    /// Observes a message for which no receive is posted.
    fn unasked(&self, envelope: &Envelope) -> Option<ProgramJob>;

    /// Observes a statement of another process about the group ([`Engine::say`]).
    fn told(&self, from: Peer, words: Words) -> Option<ProgramJob>;
}

/// Statement of one member to another.
pub type Words = [u64; wire::SAID];

/// The listeners of an engine, by context.
#[derive(Default)]
pub(crate) struct Listeners {
    all: FxHashMap<u64, Weak<dyn Listener>>,
    /// Number of listeners that triggers the removal of dropped ones.
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

    /// Reports an unexpected message to its context's listener. Returns the listener's job.
    #[inline]
    pub fn unasked(&self, envelope: &Envelope) -> Option<UnlockedJob> {
        if self.all.is_empty() {
            return None;
        }
        self.all.get(&envelope.context)?.upgrade()?.unasked(envelope).map(UnlockedJob::Layer)
    }

    /// Reports a statement to its context's listener. Returns the listener's job.
    #[cold]
    pub fn told(&self, from: Peer, context: u64, words: Words) -> Option<UnlockedJob> {
        self.all.get(&context)?.upgrade()?.told(from, words).map(UnlockedJob::Layer)
    }
}

impl Engine {
    /// Registers the listener of a context, for as long as it lives.
    pub fn listen(&self, context: u64, listener: &Arc<dyn Listener>) {
        let mut core = self.core.lock();
        core.state.listeners.add(context, listener);
        self.leave(core);
        self.overhear_again(context, &**listener);
    }

    /// Returns the listener of a context, if it is of this type.
    pub fn listener<T: Listener>(&self, context: u64) -> Option<Arc<T>> {
        let listener: Arc<dyn Any + Send + Sync> = self.core.lock().state.listeners.all.get(&context)?.upgrade()?;
        listener.downcast().ok()
    }

    /// Reports to the listener all unexpected messages of its context that have arrived before.
    pub fn overhear_again(&self, context: u64, listener: &dyn Listener) {
        let mut core = self.core.lock();
        let Core { state, .. } = &mut *core;
        let found = state.matcher.unexpected().filter(|(envelope, _)| envelope.context == context);
        state.jobs.extend(found.filter_map(|(envelope, _)| listener.unasked(envelope)).map(UnlockedJob::Layer));
        self.leave(core);
    }

    /// Sends a statement about a context's group to its listener at another process. The listener is called when a
    /// thread of that process is in the library; or at once, by its helper, if the statement is urgent. Without effect
    /// where the context can no longer be used.
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
