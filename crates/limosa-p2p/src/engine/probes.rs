//! Probes: inspecting unexpected messages, and extracting them for a later receive.

use super::sleepers::WaitReason;
use super::{Engine, Observer};
use crate::completion::{Completion, Failure, RequestId};
use crate::interrupt::Interrupted;
use crate::matching::{Envelope, Pattern};
use crate::memory::Region;
use crate::state::Unexpected;

/// A message that a matched probe has extracted, to be received once.
pub struct Matched {
    envelope: Envelope,
    message: Unexpected,
}

impl Matched {
    /// Returns source, tag and length of the message.
    pub fn completion(&self) -> Completion {
        seen(&self.envelope, &self.message)
    }
}

fn seen(envelope: &Envelope, message: &Unexpected) -> Completion {
    Completion { source: envelope.source, tag: envelope.tag, bytes: message.len(), ..Completion::default() }
}

impl Engine {
    /// Returns envelope and length of the message that a receive with this pattern would get now, if any.
    ///
    /// # Errors
    /// [`Failure::Device`], [`Failure::NoMemory`], and [`Failure::PeerDied`] if there is none and a possible sender has
    /// died.
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

    /// Waits for a message that a receive with this pattern would get, without extracting it.
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
            WaitReason::Message(*pattern),
        );
        match waited {
            Ok(()) => found.expect("the wait ends when something is found"),
            Err(Interrupted) => Err(Failure::Interrupted),
        }
    }

    /// Extracts the message that a receive with this pattern would get now, if any (a matched probe).
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

    /// Receives a message that a matched probe has extracted.
    pub fn receive_matched(&self, matched: Matched, region: Region) -> RequestId {
        let mut core = self.core.lock();
        let core_ref = &mut *core;
        let id = core_ref.state.receive_matched(&mut core_ref.devices, &matched.envelope, matched.message, region);
        self.leave(core);
        id
    }
}
