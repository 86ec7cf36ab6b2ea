//! Direct transfers: a remote device, which offers no memory access as [`limosa_device::PeerMemory`] does, moves a
//! message from the send buffer to the receive buffer after both sides have registered them.

use super::{Deferred, ProtocolState};
use crate::completion::RequestId;
use crate::request::Phase;
use crate::transfer::Pull;
use limosa_device::{Devices, Peer};

impl ProtocolState {
    /// Registers the receive buffer for a direct transfer of an offered message. Returns the ticket for the sender, if
    /// possible.
    pub(super) fn expect_straight(&mut self, devices: &mut Devices, fetch: &Pull) -> Option<u64> {
        let Pull { request, from, offer, region, bytes, .. } = fetch;
        let address = region.as_contiguous().filter(|_| offer.pieces == 1 && devices.is_far(*from))?;
        let room = limosa_device::slice(address as u64, *bytes as usize);
        // SAFETY: the memory belongs to a request, which releases it on completion. The request completes when the
        // device says so, or when the device has reported the sender's death. If communication has ended for another
        // reason, the device is not called any more.
        unsafe { devices.expect_straight(*from, room, request.to_wire()) }
    }

    /// Handles `ACCEPT_STRAIGHT`: the receiver has registered a buffer for this many bytes of an offered message.
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

    /// Completes the local side of a direct transfer: the message has left the send buffer, or filled the receive
    /// buffer.
    pub fn ended_straight(&mut self, id: RequestId) {
        // A request that has failed meanwhile is in another phase.
        match self.requests.get(id).map(|r| r.phase) {
            Some(Phase::Filling { .. }) => self.streamed_all(id),
            Some(Phase::Feeding { .. }) => self.settle_send(id, false),
            _ => {}
        }
    }

    /// Sends an offered message directly to the receive buffer.
    pub(super) fn send_straight(&mut self, devices: &mut Devices, id: RequestId, ticket: u64) {
        let Some(request) = self.requests.get(id) else { return };
        let (Phase::Feeding { peer, len, .. }, [(address, _)]) = (&request.phase, &*request.pieces) else { return };
        let (peer, bytes) = (*peer, limosa_device::slice(*address, *len as usize));
        // SAFETY: a send completes when its bytes have left, unless it fails. After a failure no process uses the
        // message, and the bytes are those of the user's buffer or of later data in it.
        if let Err(error) = unsafe { devices.send_straight(peer, ticket, bytes, id.to_wire()) } {
            self.device_failed(error, false);
        }
    }
}
