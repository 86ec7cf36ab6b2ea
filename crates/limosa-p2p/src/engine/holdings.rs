//! Objects that an engine holds: for tests, which check that none leak, and for reports of unreceived messages.

use super::Engine;
use crate::matching::Envelope;

/// Numbers of objects that an engine holds. All are 0 when every operation is complete and taken, and every message
/// received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Requests, complete or not.
    pub requests: usize,
    /// Posted receives.
    pub posted: usize,
    /// Unexpected messages.
    pub unexpected: usize,
    /// Bytes of the unexpected messages.
    pub unexpected_bytes: usize,
    /// Messages whose segments are arriving.
    pub arriving: usize,
    /// Backlogged packets and streamed messages.
    pub waiting: usize,
    /// Reasons to serve urgent traffic.
    pub interest: usize,
    /// Jobs that have not begun.
    pub jobs: usize,
    /// Offers that were not announced to the receivers' helpers.
    pub unannounced: usize,
}

/// An unexpected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreceived {
    /// Envelope of the message.
    pub envelope: Envelope,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether the send completes only when the message is received.
    pub sender_waits: bool,
}

/// Counters since the start of the engine: messages of the program, and of collectives by messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages sent.
    pub sent: u64,
    /// Bytes of the messages sent.
    pub sent_bytes: u64,
    /// Messages received, or being fetched.
    pub received: u64,
    /// Bytes of the messages received.
    pub received_bytes: u64,
    /// Messages copied from or to the memory of another process by this one.
    pub copied: u64,
    /// Times that a blocked thread went to sleep.
    pub sleeps: u64,
    /// Times that the helper thread was called.
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
    /// Returns the counters so far.
    pub fn traffic(&self) -> Traffic {
        self.core.lock().state.traffic
    }

    /// Returns the unexpected messages, oldest first.
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

    /// Returns some of the messages of [`Engine::unreceived`], in bounded time.
    pub fn some_unreceived(&self) -> Vec<(Envelope, u64)> {
        let core = self.core.lock();
        core.state.matcher.some_unexpected().map(|(envelope, message)| (*envelope, message.len())).collect()
    }

    /// Returns the numbers of objects that the engine holds.
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
