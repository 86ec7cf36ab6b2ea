//! What an engine holds: for tests, which see to it that nothing is left behind, and for reports of what nobody has
//! received.

use super::Engine;
use crate::matching::Envelope;

/// Numbers of what an engine holds. All are 0 when every operation is over and its end was taken, and every message was
/// received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Requests, whether done or not.
    pub requests: usize,
    /// Receives that wait for a message.
    pub posted: usize,
    /// Messages that wait for a receive.
    pub unexpected: usize,
    /// Their bytes.
    pub unexpected_bytes: usize,
    /// Messages whose parts are arriving.
    pub arriving: usize,
    /// Packets and streamed messages that wait for room.
    pub waiting: usize,
    /// Reasons to serve urgent traffic.
    pub interest: usize,
    /// Work that nobody has begun.
    pub jobs: usize,
    /// Offers of which nobody has told the receivers' helpers.
    pub unannounced: usize,
}

impl Engine {
    /// The messages that have arrived and wait for a receive, with their bytes, oldest first.
    pub fn unreceived(&self) -> Vec<(Envelope, u64)> {
        let core = self.core.lock();
        core.state.matcher.unexpected().map(|(envelope, message)| (*envelope, message.len())).collect()
    }

    /// Some of the messages that [`Engine::unreceived`] gives, found in a short time.
    pub fn some_unreceived(&self) -> Vec<(Envelope, u64)> {
        let core = self.core.lock();
        core.state.matcher.some_unexpected().map(|(envelope, message)| (*envelope, message.len())).collect()
    }

    /// What the engine holds now.
    pub fn holdings(&self) -> Holdings {
        let core = self.core.lock();
        let state = &core.state;
        Holdings {
            requests: state.requests.in_phase(|_| true).len(),
            posted: state.matcher.posted_len(),
            unexpected: state.matcher.unexpected_len(),
            unexpected_bytes: state.unexpected_bytes,
            arriving: state.arriving(),
            waiting: state.waiting(),
            interest: state.interest,
            jobs: state.jobs.len() + state.deferred.len() + state.continuations,
            unannounced: state.unannounced.len(),
        }
    }
}
