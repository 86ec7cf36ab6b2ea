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

/// A message that has arrived and waits for a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreceived {
    /// Where it comes from.
    pub envelope: Envelope,
    /// Its length.
    pub bytes: u64,
    /// Its sender cannot complete the send before it is received.
    pub sender_waits: bool,
}

/// What an engine has done since it was started: messages of the program, and those of collectives that go by messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages that were started to be sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages that were received, or begun to be fetched.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Messages copied from or to the memory of another process by this one.
    pub copied: u64,
    /// How often a blocked thread went to sleep.
    pub sleeps: u64,
    /// How often the helper thread was called.
    pub helped: u64,
}

impl Traffic {
    #[inline(always)]
    pub(crate) fn send(&mut self, bytes: usize) {
        self.sent += 1;
        self.sent_bytes += bytes as u64;
    }

    #[inline(always)]
    pub(crate) fn receive(&mut self, bytes: u64) {
        self.received += 1;
        self.received_bytes += bytes;
    }
}

impl Engine {
    /// What the engine has done so far.
    pub fn traffic(&self) -> Traffic {
        self.core.lock().state.traffic
    }

    /// The messages that have arrived and wait for a receive, oldest first.
    pub fn unreceived(&self) -> Vec<Unreceived> {
        let core = self.core.lock();
        let all = core.state.matcher.unexpected();
        all.map(|(envelope, message)| Unreceived {
            envelope: *envelope,
            bytes: message.len(),
            sender_waits: message.sender_waits(),
        })
        .collect()
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
