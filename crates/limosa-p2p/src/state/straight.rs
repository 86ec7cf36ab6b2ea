//! Messages that a device moves straight from the memory of their sender to that of their receiver: a far device, which
//! cannot access memory by itself as [`limosa_device::PeerMemory`] does, but can be told on both sides where to read and
//! write.

use super::{Deferred, State};
use crate::request::{Phase, RequestId};
use crate::transfer::Pull;
use limosa_device::{Devices, Peer};

impl State {
    /// Lets the sender of an offered message send it straight to its place: the ticket for that, if it is possible.
    pub(super) fn expect_straight(&mut self, devices: &mut Devices, fetch: &Pull) -> Option<u64> {
        let Pull { request, from, offer, region, bytes, .. } = fetch;
        let address = region.as_contiguous().filter(|_| offer.pieces == 1 && devices.is_far(*from))?;
        let room = limosa_device::slice(address as u64, *bytes as usize);
        // SAFETY: the memory belongs to a request, which lets go of it when it ends. It ends when the device says so, or
        // when the device has said that the sender has died. When nothing can be received any more for another reason,
        // the device is not called any more either.
        unsafe { devices.expect_straight(*from, room, request.to_wire()) }
    }

    /// The receiver has made room for an offered message, just so long, and waits for it there.
    pub(super) fn accepted_straight(&mut self, id: RequestId, from: Peer, receive: u64, len: u64, ticket: u64) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return false };
        match request.phase {
            Phase::Offered { peer, joint, .. }
                if peer == from && request.pieces.len() == 1 && len <= request.pieces[0].1 =>
            {
                if let Some(index) = joint {
                    self.joints.give_back(index);
                }
                request.phase = Phase::Feeding { peer, receive, sent: len, len, packets: 0 };
                self.deferred.push(Deferred::Straight { request: id, ticket });
                true
            }
            _ => false,
        }
    }

    /// A message that travels straight between the memory of two processes has left here, or has come.
    pub fn ended_straight(&mut self, id: RequestId) {
        // One that has failed meanwhile has another phase.
        match self.requests.get(id).map(|r| r.phase) {
            Some(Phase::Filling { .. }) => self.streamed_all(id),
            Some(Phase::Feeding { .. }) => self.settle_send(id, false),
            _ => {}
        }
    }

    /// Sends an offered message straight to the room that its receiver has made for it.
    pub(super) fn send_straight(&mut self, devices: &mut Devices, id: RequestId, ticket: u64) {
        let Some(request) = self.requests.get(id) else { return };
        let (Phase::Feeding { peer, len, .. }, [(address, _)]) = (&request.phase, &*request.pieces) else { return };
        let (peer, bytes) = (*peer, limosa_device::slice(*address, *len as usize));
        // SAFETY: a send ends when its bytes are away, unless it fails. Then nobody wants its message any more, and the
        // bytes are those of the user's buffer or of what came after it there.
        if let Err(error) = unsafe { devices.send_straight(peer, ticket, bytes, id.to_wire()) } {
            self.device_failed(error, false);
        }
    }
}
