//! What can be done immediately: short messages that are sent or received within one visit to the engine, by a thread
//! that gets the engine's lock at once.
//!
//! Every function here does all of its work or none of it. Where it does none, for whatever reason, the caller goes the
//! general path, which finds the reason and reports it if it is an error.

use super::{Core, Engine};
use crate::matching::{Envelope, Pattern};
use crate::memory::Region;
use crate::request::{Label, Phase, Received, RequestId, Short};
use crate::wire;
use limosa_device::{Meta, Peer};

/// What [`Engine::try_wait`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A labelled request.
    Request(Short),
    /// Nothing.
    Nothing,
    /// Something that it cannot wait for.
    Unknown,
}

impl Engine {
    /// Sends a message as [`Engine::send`] in standard mode, if it is done then.
    #[inline(always)]
    pub fn try_send(&self, peer: Peer, envelope: &Envelope, bytes: &[u8]) -> bool {
        let Some(mut core) = self.core.try_lock() else { return false };
        let Core { devices, state, .. } = &mut *core;
        peer != self.rank && state.send_now(devices, peer, envelope, bytes)
    }

    /// Receives a message from `peer` as [`Engine::receive_blocking`], if it is there. The pattern's source is that
    /// peer's rank.
    #[inline(always)]
    pub fn try_receive(&self, peer: Peer, pattern: &Pattern, to: &mut [u8]) -> Option<Received> {
        self.core.try_lock()?.try_take(peer, pattern, to)
    }

    /// As [`Engine::receive_labelled`]. Takes a message from `peer` if it is there, and posts the receive otherwise.
    /// The pattern's source is the rank of that peer, if there is one.
    ///
    /// # Safety
    /// The memory must stay writable and otherwise untouched until the receive is done.
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

    /// As [`Engine::wait_each`], if all requests are done and none has failed or was cancelled; false otherwise. `done`
    /// is called for all `n`, with what a receive has received.
    #[inline(always)]
    pub fn try_wait(
        &self,
        n: usize,
        awaited: impl Fn(usize) -> Awaited,
        mut done: impl FnMut(usize, Option<Received>),
    ) -> bool {
        let Some(mut core) = self.core.try_lock() else { return false };
        let requests = &mut core.state.requests;
        for i in 0..n {
            match awaited(i) {
                Awaited::Nothing => {}
                Awaited::Request(short) if requests.has_succeeded(short) => {}
                _ => return false,
            }
        }
        for i in 0..n {
            done(i, if let Awaited::Request(short) = awaited(i) { requests.take_succeeded(short) } else { None });
        }
        true
    }
}

impl Core {
    /// Receives the next message of `peer` if it is there, in one cell, fits, and no other receive could get it.
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

    /// Posts a receive, if that changes nothing for anybody else.
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
