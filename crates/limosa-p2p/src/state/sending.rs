//! Sending: how a message begins, and the backlog.
//!
//! Packets that find no room wait in a backlog per peer, in order. Segments of streamed messages wait separately, so
//! that they delay nothing else.
//!
//! The backlog needs no limit of its own. Backlogged messages are not copied; the region is the user's buffer, kept
//! valid by the unfinished request. Other packets are few per request of this process or of the peer: an offer, an
//! answer, a recall.

use super::{
    DirectPhase, FAR_LENT, MIN_JOINT, Mode, PART_BYTES, ProtocolState, STREAM_BYTES, Unexpected, received, room_for,
};
use crate::completion::{Completion, Failure, RequestId};
use crate::matching::Envelope;
use crate::memory::Region;
use crate::request::{Phase, PieceList};
use crate::transfer::{MIN_PIECE, copy_region};
use crate::wire::{self, MAX_PIECES, Offer};
use limosa_device::{Data, DeviceError, Devices, Meta, Peer, Sent, Urgency};
use smallvec::SmallVec;
use tracing::{debug, trace};

/// A backlogged packet.
pub(super) enum Waiting {
    Control { meta: Meta, data: SmallVec<[u8; 64]>, urgency: Urgency },
    Eager { request: RequestId, meta: Meta, region: Region, sync: bool },
    Parts { request: RequestId, parts: Parts },
}

impl Waiting {
    /// Returns the send that completes with this packet.
    pub fn request(&self) -> Option<RequestId> {
        match self {
            Waiting::Control { .. } => None,
            Waiting::Parts { parts, .. } if parts.kept.is_some() => None,
            Waiting::Eager { request, .. } | Waiting::Parts { request, .. } => Some(*request),
        }
    }

    /// Returns the context of the message that the packet belongs to.
    fn context(&self) -> Option<u64> {
        match self {
            Waiting::Control { .. } => None,
            Waiting::Eager { meta, .. } => Some(wire::envelope(meta).context),
            Waiting::Parts { parts, .. } => Some(parts.context),
        }
    }
}

/// The unsent segments of an eager message.
pub(super) struct Parts {
    begin: Option<Meta>,
    context: u64,
    region: Region,
    sent: usize,
    /// Copy of the message, once its send is complete: the rest is sent from it.
    kept: Option<Box<[u8]>>,
}

impl Parts {
    /// Copies the message, so that the program can reuse its buffer. Returns false if there is no memory.
    fn keep(&mut self) -> bool {
        let mut copy = Vec::new();
        if copy.try_reserve_exact(self.region.len()).is_err() {
            return false;
        }
        copy.resize(self.region.len(), 0);
        self.region.read(0, &mut copy);
        let mut copy = copy.into_boxed_slice();
        // SAFETY: the copy is not moved, and is kept beside the region.
        self.region = unsafe { Region::contiguous(copy.as_mut_ptr(), copy.len()) };
        self.kept = Some(copy);
        true
    }

    /// Sends as many segments as there is room for. Returns whether these were all.
    #[inline]
    fn push(&mut self, devices: &mut Devices, to: Peer) -> Result<bool, DeviceError> {
        let len = self.region.len();
        if let Some(meta) = &self.begin {
            if devices.send(to, meta, Data::Bytes(&(len as u64).to_ne_bytes()), Urgency::Normal)? == Sent::NoRoom {
                return Ok(false);
            }
            self.begin = None;
        }
        while self.sent < len {
            let (offset, part) = (self.sent, PART_BYTES.min(len - self.sent));
            let mut fill = |bytes: &mut [u8]| self.region.read(offset, bytes);
            if devices.send(to, &wire::about(wire::PART, 0, 0), Data::Fill(part, &mut fill), Urgency::Normal)?
                == Sent::NoRoom
            {
                return Ok(false);
            }
            self.sent += part;
        }
        Ok(true)
    }
}

impl ProtocolState {
    /// Starts a send to another process. Returns `None` if it is complete.
    pub fn send(
        &mut self,
        devices: &mut Devices,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
        mode: Mode,
    ) -> Result<Option<RequestId>, Failure> {
        let len = region.len();
        let is_far = devices.is_far(peer);
        let is_whole = len <= self.whole_limit || (is_far && self.fits_packet(devices, peer, len, mode));
        let is_eager = is_whole || (len <= self.eager_limit && mode == Mode::Standard && !is_far);
        let has_credit = is_eager && (!is_far || self.spend_credit(devices, peer, len));
        // A question for credit may have found the peer dead.
        self.check(peer, envelope.context)?;
        self.traffic.send(len);
        // An empty message without credit needs no offer: it is sent at once, and its send waits for the receive.
        if !has_credit && len > 0 {
            debug!("rendezvous: offers {len} bytes to {peer}, {envelope:?}");
            let is_short = is_eager && mode == Mode::Standard;
            let kind = if is_short { wire::OFFER_SHORT } else { wire::OFFER };
            return self.send_offer(devices, peer, wire::enveloped(kind, envelope), region).map(Some);
        }
        if !is_whole {
            debug!("eager in segments: {len} bytes to {peer}, {envelope:?}");
            return self.send_parts(devices, peer, envelope, region);
        }
        trace!("eager: {len} bytes to {peer}, {envelope:?}");
        if mode == Mode::Synchronous || !has_credit {
            let request = self.requests.insert(Phase::Queued, Region::empty());
            let meta = wire::enveloped(wire::EAGER_SYNC, envelope);
            self.queue(devices, peer, Waiting::Eager { request, meta, region, sync: true });
            return self.check_broken().map(|()| Some(request));
        }
        let meta = wire::enveloped(wire::EAGER, envelope);
        if self.backlog[peer as usize].is_empty() {
            if len >= FAR_LENT && is_far && region.as_bytes().is_some() {
                return self.send_whole_from_there(devices, peer, &meta, region);
            }
            match send_eager(devices, peer, &meta, &region, None) {
                Ok(Sent::Done) => return Ok(None),
                Ok(Sent::NoRoom) => {}
                Err(error) => return Err(self.send_failed(error)),
            }
        }
        let request = self.requests.insert(Phase::Queued, Region::empty());
        self.queue(devices, peer, Waiting::Eager { request, meta, region, sync: false });
        Ok(Some(request))
    }

    /// Sends a whole message that a device may read in place. Returns `None` if the send is complete.
    fn send_whole_from_there(
        &mut self,
        devices: &mut Devices,
        peer: Peer,
        meta: &Meta,
        region: Region,
    ) -> Result<Option<RequestId>, Failure> {
        let bytes = region.as_bytes().expect("the caller has checked that it is contiguous");
        // SAFETY: as in `feed_part`.
        let sent = unsafe { devices.send_lent(peer, meta, bytes, Urgency::Normal) };
        if sent.map_err(|error| self.send_failed(error))? == Sent::NoRoom {
            let request = self.requests.insert(Phase::Queued, Region::empty());
            self.queue(devices, peer, Waiting::Eager { request, meta: *meta, region, sync: false });
            return Ok(Some(request));
        }
        let packets = devices.packets_to(peer);
        if devices.is_away(peer, packets) {
            return Ok(None);
        }
        let len = region.len() as u64;
        self.interest += 1;
        let request = self.requests.insert(Phase::Feeding { peer, receive: 0, sent: len, len, packets }, region);
        self.feeding.push_back(request);
        Ok(Some(request))
    }

    /// Returns whether a message that is longer than a segment travels whole to a remote receiver.
    fn fits_packet(&self, devices: &Devices, peer: Peer, len: usize, mode: Mode) -> bool {
        // A synchronous send's number travels with the message.
        let most = devices.max_data(peer) - if mode == Mode::Synchronous { 8 } else { 0 };
        len <= most.min(self.eager_limit)
    }

    /// Sends a short message at once to a peer that has been sent to before. Returns false, without effect, if there is
    /// no room or any other obstacle.
    #[inline(always)]
    pub fn send_now(&mut self, devices: &mut Devices, peer: Peer, envelope: &Envelope, bytes: &[u8]) -> bool {
        let is_backlogged = || !self.backlogged.is_empty() && !self.backlog[peer as usize].is_empty();
        if bytes.len() > self.whole_limit || self.impaired || is_backlogged() {
            return false;
        }
        let sent = devices.try_send(peer, &wire::enveloped(wire::EAGER, envelope), bytes);
        if sent {
            self.traffic.send(bytes.len());
        }
        sent
    }

    pub(super) fn send_parts(
        &mut self,
        devices: &mut Devices,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
    ) -> Result<Option<RequestId>, Failure> {
        let (begin, context) = (Some(wire::enveloped(wire::BEGIN, envelope)), envelope.context);
        let mut parts = Parts { begin, context, region, sent: 0, kept: None };
        if self.backlog[peer as usize].is_empty()
            && parts.push(devices, peer).map_err(|error| self.send_failed(error))?
        {
            return Ok(None);
        }
        let request = self.requests.insert(Phase::Queued, Region::empty());
        self.queue(devices, peer, Waiting::Parts { request, parts });
        self.check_broken().map(|()| Some(request))
    }

    pub(super) fn send_offer(
        &mut self,
        devices: &mut Devices,
        peer: Peer,
        meta: Meta,
        region: Region,
    ) -> Result<RequestId, Failure> {
        let len = region.len();
        let mut pieces: Vec<(u64, u64)> = Vec::new();
        if region.mean_piece() >= MIN_PIECE {
            region.pieces(0, len, &mut |address, bytes| {
                pieces.push((address as u64, bytes as u64));
                pieces.len() <= MAX_PIECES
            });
        }
        let list: PieceList = if pieces.len() <= MAX_PIECES { pieces.into() } else { Box::new([]) };
        let address = if list.len() == 1 { list[0].0 } else { list.as_ptr() as u64 };
        let count = list.len() as u64;
        let joint = if len >= MIN_JOINT && count == 1 { self.joints.lend(devices, self.rank) } else { None };
        let send = self.requests.insert(Phase::Offered { peer, envelope: wire::envelope(&meta), joint }, region);
        self.requests.get_mut(send).expect("just inserted").pieces = list;
        if let Some(index) = joint {
            self.joints.lent[index] = Some(send);
        }
        self.interest += 1;
        let joint = joint.map_or(0, |index| index as u64 + 1);
        let offer = Offer { send: send.to_wire(), len: len as u64, address, pieces: count, joint };
        self.unannounced.push((peer, send));
        self.control(devices, peer, meta, &offer.encode(), Urgency::Normal);
        self.check_broken().map(|()| send)
    }

    /// Checks that this peer can be sent to on this context.
    #[inline]
    fn check(&self, peer: Peer, context: u64) -> Result<(), Failure> {
        self.unreachable(peer).or_else(|| self.lost_group(context)).map_or(Ok(()), Err)
    }

    #[inline]
    pub(super) fn check_broken(&self) -> Result<(), Failure> {
        match &self.broken {
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        }
    }

    /// Starts a send to this process itself. Returns `None` if it is complete.
    pub fn send_local(
        &mut self,
        envelope: &Envelope,
        region: Region,
        mode: Mode,
    ) -> Result<Option<RequestId>, Failure> {
        self.check_broken()?;
        let len = region.len();
        self.traffic.send(len);
        if let Some(direct) = self.direct_for(envelope) {
            // Another thread of this process waits for it.
            let room = direct.region.len();
            copy_region(&region, &direct.region, len.min(room));
            direct.phase = DirectPhase::Done(received(envelope, len as u64, room as u64));
            self.completed = true;
            return Ok(None);
        }
        if let Some(id) = self.matcher.arrive(envelope) {
            let target = self.take_posted(id);
            copy_region(&region, &target, len.min(target.len()));
            self.complete_receive(id, envelope, len as u64, target.len() as u64);
            return Ok(None);
        }
        // Without memory for a copy the message stays in the user's buffer.
        if mode == Mode::Standard
            && len <= self.eager_limit
            && let Some(mut data) = room_for(len)
        {
            data.resize(len, 0);
            region.read(0, &mut data);
            self.hold(envelope, Unexpected::Eager { from: self.rank, data: data.into(), sync: None });
            return Ok(None);
        }
        let send = self.requests.insert(Phase::Local { envelope: *envelope }, region);
        self.interest += 1;
        self.hold(envelope, Unexpected::Local { send, len: len as u64 });
        Ok(Some(send))
    }

    // ---- backlog ---------------------------------------------------------------------------------------------------

    /// Sends a small packet, or appends it to the backlog.
    pub fn control(&mut self, devices: &mut Devices, to: Peer, meta: Meta, data: &[u8], urgency: Urgency) {
        self.queue(devices, to, Waiting::Control { meta, data: SmallVec::from_slice(data), urgency });
    }

    pub(super) fn tell(&mut self, devices: &mut Devices, to: Peer, meta: Meta, data: &[u8]) {
        self.control(devices, to, meta, data, Urgency::Normal);
    }

    pub(super) fn queue(&mut self, devices: &mut Devices, to: Peer, packet: Waiting) {
        if self.impaired && self.unreachable(to).is_some() {
            return;
        }
        let first = self.backlog[to as usize].is_empty();
        self.backlog[to as usize].push_back(packet);
        if first {
            self.flush_peer(devices, to);
            if !self.backlog[to as usize].is_empty() {
                debug!("no room: packets for {to} wait");
                self.backlogged.push(to);
            }
        }
    }

    /// Sends the backlog of this peer as far as there is room. Returns whether there was progress.
    pub(super) fn flush_peer(&mut self, devices: &mut Devices, to: Peer) -> bool {
        let mut any = false;
        while let Some(mut packet) = self.backlog[to as usize].pop_front() {
            if let Waiting::Parts { request, parts } = &mut packet {
                let (request, before, is_open) = (*request, parts.sent, parts.kept.is_none());
                match parts.push(devices, to) {
                    Ok(true) => {
                        any = true;
                        if is_open {
                            self.complete_send(request);
                        }
                    }
                    Ok(false) => {
                        any |= parts.sent > before;
                        self.backlog[to as usize].push_front(packet);
                        return any;
                    }
                    Err(error) => {
                        let failure = self.send_failed(error);
                        if is_open {
                            self.complete(request, Completion::failed(failure));
                        }
                    }
                }
                continue;
            }
            let sent = match &packet {
                Waiting::Parts { .. } => unreachable!("parts are sent above"),
                Waiting::Control { meta, data, urgency } => devices.send(to, meta, Data::Bytes(data), *urgency),
                Waiting::Eager { request, meta, region, sync } => {
                    send_eager(devices, to, meta, region, sync.then_some(request.to_wire()))
                }
            };
            match (sent, packet) {
                (Ok(Sent::Done), Waiting::Eager { request, meta, sync, .. }) => {
                    any = true;
                    if sync {
                        if let Some(r) = self.requests.get_mut(request) {
                            r.phase = Phase::Unmatched { peer: to, envelope: wire::envelope(&meta) };
                        }
                        self.interest += 1;
                    } else {
                        self.complete_send(request);
                    }
                }
                (Ok(Sent::Done), _) => any = true,
                (Ok(Sent::NoRoom), packet) => {
                    self.backlog[to as usize].push_front(packet);
                    return any;
                }
                (Err(error), Waiting::Eager { request, .. }) => {
                    let failure = self.send_failed(error);
                    self.complete(request, Completion::failed(failure));
                }
                (Err(error), _) => self.device_failed(error, false),
            }
        }
        any
    }

    /// Fails the backlogged sends on this context, whose receivers may make no more room. Messages that have begun to
    /// leave continue.
    #[cold]
    pub(super) fn end_queued(&mut self, context: u64, failure: &Failure) {
        for peer in 0..self.backlog.len() {
            // The peer stays on the list of backlogged peers; the next flush may find nothing for it.
            for mut packet in std::mem::take(&mut self.backlog[peer]) {
                let ended = packet.request().filter(|_| packet.context() == Some(context));
                let goes_on = match &mut packet {
                    Waiting::Parts { parts, .. } if ended.is_some() && parts.begin.is_none() => {
                        if !parts.keep() {
                            self.backlog[peer].push_back(packet);
                            continue;
                        }
                        true
                    }
                    _ => ended.is_none(),
                };
                if let Some(request) = ended {
                    self.complete(request, Completion::failed(failure.clone()));
                }
                if goes_on {
                    self.backlog[peer].push_back(packet);
                }
            }
        }
    }

    /// Sends all backlogs as far as there is room. Returns whether there was progress. `polled`: a device was polled,
    /// which may have made room.
    pub fn flush(&mut self, devices: &mut Devices, polled: bool) -> bool {
        let mut any = false;
        let has_room = |devices: &Devices, peer| polled || !devices.finds_room_by_polls(peer);
        for i in (0..self.backlogged.len()).rev() {
            let to = self.backlogged[i];
            if !has_room(devices, to) {
                continue;
            }
            any |= self.flush_peer(devices, to);
            if self.broken.is_some() {
                return any;
            }
            if self.backlog[to as usize].is_empty() {
                self.backlogged.swap_remove(i);
            }
        }
        for _ in 0..self.feeding.len() {
            let Some(id) = self.feeding.pop_front() else { break };
            if let Some(Phase::Feeding { peer, .. }) = self.requests.get(id).map(|r| r.phase)
                && !has_room(devices, peer)
            {
                self.feeding.push_back(id);
                continue;
            }
            match self.feed(devices, id) {
                Ok((sent, finished)) => {
                    any |= sent;
                    if !finished {
                        self.feeding.push_back(id);
                    }
                }
                Err(error) => self.device_failed(error, false),
            }
        }
        any
    }

    /// Streams a message as far as there is room. Returns whether there was progress, and whether the message is
    /// complete.
    pub(super) fn feed(&mut self, devices: &mut Devices, id: RequestId) -> Result<(bool, bool), DeviceError> {
        let mut any = false;
        loop {
            let Some(request) = self.requests.get_mut(id) else { return Ok((any, true)) };
            let region = &request.region;
            let Phase::Feeding { peer, receive, sent, len, packets } = &mut request.phase else {
                return Ok((any, true));
            };
            if *sent == *len {
                if !devices.is_away(*peer, *packets) {
                    return Ok((any, false));
                }
                self.settle_send(id, false);
                return Ok((true, true));
            }
            let meta = wire::about(wire::STREAM, *receive, *sent);
            match feed_part(devices, *peer, &meta, region, *sent as usize, *len - *sent)? {
                0 => return Ok((any, false)),
                part => {
                    *sent += part as u64;
                    *packets = devices.packets_to(*peer);
                    any = true;
                }
            }
        }
    }

    /// Returns the number of backlogged packets and streamed messages.
    pub fn waiting(&self) -> usize {
        self.feeding.len() + self.backlogged.iter().map(|&peer| self.backlog[peer as usize].len()).sum::<usize>()
    }

    /// Returns whether peers may be waiting for this process to serve urgent packets.
    #[inline]
    pub fn serves_urgently(&self) -> bool {
        self.interest + self.served > 0
    }

    /// Returns whether packets or segments are backlogged.
    pub fn has_backlog(&self) -> bool {
        !self.backlogged.is_empty() || !self.feeding.is_empty()
    }

    /// Returns whether a backlogged packet may be needed by its receiver. Statements that this process made while it
    /// waited are not: their receivers may have left since.
    pub fn has_needed_backlog(&self) -> bool {
        let is_said = |waiting: &Waiting| matches!(waiting, Waiting::Control { meta, .. } if meta.kind == wire::SAY);
        !self.feeding.is_empty() || self.backlogged.iter().any(|peer| !self.backlog[*peer as usize].iter().all(is_said))
    }

    /// Asks all peers with a backlog to make room and then ring this process. Returns whether to try sending once more.
    pub fn want_room(&mut self, devices: &mut Devices) -> bool {
        let mut must_try = false;
        for &peer in &self.backlogged {
            devices.want_room(peer);
            must_try |= !devices.finds_room_by_polls(peer);
        }
        for &id in &self.feeding {
            // Bytes that were sent but are still in the device need no room.
            if let Some(Phase::Feeding { peer, sent, len, .. }) = self.requests.get(id).map(|r| &r.phase)
                && sent < len
            {
                devices.want_room(*peer);
                must_try |= !devices.finds_room_by_polls(*peer);
            }
        }
        must_try
    }
}

/// Sends the next segment of a streamed message, of which `rest` bytes from `offset` on are unsent. Returns its length,
/// or 0 if there is no room.
fn feed_part(
    devices: &mut Devices,
    peer: Peer,
    meta: &Meta,
    region: &Region,
    offset: usize,
    rest: u64,
) -> Result<usize, DeviceError> {
    let (is_far, most) = (devices.is_far(peer), devices.max_data(peer));
    let part = rest.min(if is_far { most } else { most.min(STREAM_BYTES) } as u64) as usize;
    // Urgent: the receiver may be computing, and its helper must then empty the lane.
    let sent = match region.as_bytes() {
        // SAFETY: a streamed send completes when its packets have left, unless it fails. After a failure no process
        // uses the message, and the bytes are those of the user's buffer or of later data in it.
        Some(bytes) if is_far => unsafe {
            devices.send_lent(peer, meta, &bytes[offset..offset + part], Urgency::Urgent)
        },
        _ => devices.send(peer, meta, Data::Fill(part, &mut |to| region.read(offset, to)), Urgency::Urgent),
    }?;
    Ok(if sent == Sent::Done { part } else { 0 })
}

#[inline]
fn send_eager(
    devices: &mut Devices,
    to: Peer,
    meta: &Meta,
    region: &Region,
    sync: Option<u64>,
) -> Result<Sent, DeviceError> {
    let len = region.len();
    match sync {
        None => match region.as_bytes() {
            Some(bytes) => devices.send(to, meta, Data::Bytes(bytes), Urgency::Normal),
            None => devices.send(to, meta, Data::Fill(len, &mut |bytes| region.read(0, bytes)), Urgency::Normal),
        },
        Some(send) => {
            let mut fill = |bytes: &mut [u8]| {
                bytes[..8].copy_from_slice(&send.to_ne_bytes());
                region.read(0, &mut bytes[8..]);
            };
            devices.send(to, meta, Data::Fill(len + 8, &mut fill), Urgency::Normal)
        }
    }
}
