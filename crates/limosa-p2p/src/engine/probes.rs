//! Probes: looking at messages that no receive was posted for, and taking them to be received later.

use super::sleepers::Awaited;
use super::{Engine, Observer};
use crate::interrupt::Interrupted;
use crate::matching::{Envelope, Pattern};
use crate::memory::Region;
use crate::request::{Completion, Failure, RequestId};
use crate::state::Unexpected;

/// A message taken by a matched probe, to be received once.
pub struct Matched {
    envelope: Envelope,
    message: Unexpected,
}

impl Matched {
    /// Source, tag and length of the message.
    pub fn completion(&self) -> Completion {
        seen(&self.envelope, &self.message)
    }
}

fn seen(envelope: &Envelope, message: &Unexpected) -> Completion {
    Completion { source: envelope.source, tag: envelope.tag, bytes: message.len(), ..Completion::default() }
}

impl Engine {
    /// The message that a receive with this pattern would get now, if there is one.
    ///
    /// # Errors
    /// [`Failure::Device`], [`Failure::NoMemory`], [`Failure::PeerDied`] if there is none and a peer that could send
    /// one has died.
    pub fn probe(&self, pattern: &Pattern) -> Result<Option<Completion>, Failure> {
        let mut core = self.core.lock();
        let mut found = core.state.matcher.probe(pattern).map(|(e, m)| seen(e, m));
        if found.is_none() {
            self.progress(&mut core);
            found = core.state.matcher.probe(pattern).map(|(e, m)| seen(e, m));
        }
        let lost = if core.state.impaired { core.state.lost(pattern) } else { None };
        self.leave(core);
        lost.map_or(Ok(found), Err)
    }

    /// Waits for a message that a receive with this pattern would get; the message stays.
    ///
    /// # Errors
    /// As for [`Engine::probe`], and [`Failure::Interrupted`].
    pub fn block_on_probe(&self, pattern: &Pattern, observer: &dyn Observer) -> Result<Completion, Failure> {
        let mut found = None;
        let waited = self.block_with(
            &mut |state| {
                found = match if state.impaired { state.lost(pattern) } else { None } {
                    Some(failure) => Some(Err(failure)),
                    None => state.matcher.probe(pattern).map(|(e, m)| Ok(seen(e, m))),
                };
                found.is_some()
            },
            observer,
            Awaited::Message(*pattern),
        );
        match waited {
            Ok(()) => found.expect("the wait ends when something is found"),
            Err(Interrupted) => Err(Failure::Interrupted),
        }
    }

    /// Takes the message that a receive with this pattern would get now, if there is one (a matched probe).
    ///
    /// # Errors
    /// As for [`Engine::probe`].
    pub fn probe_matched(&self, pattern: &Pattern) -> Result<Option<Matched>, Failure> {
        let mut core = self.core.lock();
        let mut taken = core.state.matcher.take(pattern);
        if taken.is_none() {
            self.progress(&mut core);
            taken = core.state.matcher.take(pattern);
        }
        let lost = if taken.is_none() && core.state.impaired { core.state.lost(pattern) } else { None };
        self.leave(core);
        let taken = taken.map(|(envelope, message)| Matched { envelope, message });
        lost.map_or(Ok(taken), Err)
    }

    /// Receives a message that a matched probe took.
    pub fn receive_matched(&self, matched: Matched, region: Region) -> RequestId {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let id = core_ref.state.receive_matched(&mut core_ref.devices, &matched.envelope, matched.message, region);
        self.leave(core);
        id
    }
}
