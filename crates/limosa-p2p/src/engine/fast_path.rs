//! The fast path: short messages that are sent or received in one visit to the engine, by a thread that gets the
//! engine's lock at once.
//!
//! Every function here does all of its work or none. After doing none, the caller takes the general path, which
//! determines the reason and reports errors.

use super::{Core, Engine};
use crate::completion::{Label, Received, RequestId, Short};
use crate::matching::{Envelope, Pattern};
use crate::memory::Region;
use crate::request::Phase;
use crate::wire;
use limosa_device::{Meta, Peer};

/// An element of [`Engine::try_wait`]'s list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastWait {
    /// A labelled request.
    Request(Short),
    /// Nothing to wait for.
    Nothing,
    /// An object that the fast path cannot wait for.
    Unknown,
}

impl Engine {
    /// Sends a message like [`Engine::send`] in standard mode, if it completes at once.
    #[inline(always)]
    pub fn try_send(&self, peer: Peer, envelope: &Envelope, bytes: &[u8]) -> bool {
        let Some(mut core) = self.core.try_lock() else { return false };
        let Core { devices, state, .. } = &mut *core;
        peer != self.rank && state.send_now(devices, peer, envelope, bytes)
    }

    /// Receives a message from `peer` like [`Engine::receive_blocking`], if it has arrived. The pattern's source is the
    /// rank of that peer.
    #[inline(always)]
    pub fn try_receive(&self, peer: Peer, pattern: &Pattern, to: &mut [u8]) -> Option<Received> {
        self.core.try_lock()?.try_take(peer, pattern, to)
    }

    /// Starts a receive like [`Engine::receive_labelled`], by taking a message from `peer` if it has arrived, and by
    /// posting the receive otherwise. The pattern's source is the rank of that peer, if there is one.
    ///
    /// # Safety
    /// The memory must stay writable and otherwise untouched until completion.
    #[inline(always)]
    pub unsafe fn try_start_receive(
        &self,
        peer: Option<Peer>,
        pattern: &Pattern,
        to: &mut [u8],
        label: Label,
    ) -> Option<RequestId> {
        let mut core = self.core.try_lock()?;
        if !core.state.requests.is_small() {
            return None;
        }
        if let Some(received) = peer.and_then(|peer| core.try_take(peer, pattern, to)) {
            return Some(core.state.requests.insert_done(label, received));
        }
        // SAFETY: the caller's promise.
        let region = unsafe { Region::contiguous(to.as_mut_ptr(), to.len()) };
        core.try_post(pattern, region, label)
    }

    /// Waits like [`Engine::wait_each`] if all requests have completed successfully; returns false, without effect,
    /// otherwise. `done` is called for all `n`, with the envelope and length of a received message.
    #[inline(always)]
    pub fn try_wait(
        &self,
        n: usize,
        awaited: impl Fn(usize) -> FastWait,
        mut done: impl FnMut(usize, Option<Received>),
    ) -> bool {
        let Some(mut core) = self.core.try_lock() else { return false };
        let requests = &mut core.state.requests;
        for i in 0..n {
            match awaited(i) {
                FastWait::Nothing => {}
                FastWait::Request(short) if requests.has_succeeded(short) => {}
                _ => return false,
            }
        }
        for i in 0..n {
            done(i, if let FastWait::Request(short) = awaited(i) { requests.take_succeeded(short) } else { None });
        }
        true
    }
}

impl Core {
    /// Receives the next message of `peer` if it has arrived, in one cell, fits the buffer, and no other receive could
    /// match it.
    #[inline(always)]
    fn try_take(&mut self, peer: Peer, pattern: &Pattern, to: &mut [u8]) -> Option<Received> {
        if !self.state.is_next_receive() {
            return None;
        }
        let (wanted, mask) = wire::wanted(pattern)?;
        let (word, len) = self.devices.try_take(peer, &wanted, mask, to)?;
        self.state.traffic.receive(len as u64);
        let Envelope { source, tag, .. } = wire::envelope(&Meta { words: [pattern.context, word], ..wanted });
        Some(Received { source, tag, bytes: len as u64 })
    }

    /// Posts a receive, if that affects no other thread.
    #[inline(never)]
    fn try_post(&mut self, pattern: &Pattern, region: Region, label: Label) -> Option<RequestId> {
        let state = &mut self.state;
        if region.len() > state.eager_limit || state.impaired || state.matcher.unexpected_len() > 0 {
            return None;
        }
        let id = state.requests.next_id();
        let entry = state.matcher.post(pattern, id);
        state.requests.insert(Phase::Posted { entry }, region);
        state.requests.get_mut(id)?.label = Some(label);
        Some(id)
    }
}
