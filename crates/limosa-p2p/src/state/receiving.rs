//! Receiving: how a receive begins, gets its message, and is cancelled.

use super::{Begun, Deferred, Direct, DirectPhase, ProtocolState, Unexpected, UnlockedJob, received};
use crate::arriving::ArrivalTarget;
use crate::choice::TransferPath;
use crate::completion::{Completion, RequestId};
use crate::matching::{EntryId, Envelope, Pattern};
use crate::memory::Region;
use crate::request::Phase;
use crate::transfer::{Pull, copy_region};
use crate::wire::{self, Offer};
use limosa_base::clock;
use limosa_device::{Address, Devices, Peer, Urgency};
use smallvec::SmallVec;
use tracing::debug;

impl ProtocolState {
    // ---- unexpected messages ---------------------------------------------------------------------------------------

    /// Returns whether so much is held that only a thread that needs a message takes more.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.unexpected_bytes > self.unexpected_limit
    }

    /// Holds an unexpected message until it is received.
    pub(super) fn hold(&mut self, envelope: &Envelope, message: Unexpected) -> EntryId {
        debug!("unexpected: {envelope:?}, {} bytes held", message.held_bytes());
        self.completed |= self.sleep_conditions.include(envelope);
        self.unexpected_bytes += message.held_bytes();
        self.hold_credit(&message);
        let entry = self.matcher.store(envelope, message);
        self.jobs.extend(self.listeners.unasked(envelope));
        entry
    }

    /// Subtracts a message that is no longer held.
    #[inline]
    pub(super) fn release(&mut self, message: &Unexpected) {
        self.unexpected_bytes -= message.held_bytes();
        self.release_credit(message);
        if self.held_back && self.unexpected_bytes <= self.unexpected_limit / 2 {
            self.held_back = false;
            self.jobs.push(UnlockedJob::TakePackets);
        }
    }

    /// Handles `OFFER`: a message waits at its sender.
    pub(super) fn offer_arrived(&mut self, from: Peer, envelope: &Envelope, offer: Offer, is_short: bool) {
        let receive =
            match self.direct_for(envelope).map(|direct| std::mem::replace(&mut direct.region, Region::empty())) {
                Some(region) => {
                    let id = self.requests.insert(Phase::Pulling, Region::empty());
                    self.direct.as_mut().expect("it was found a moment ago").phase = DirectPhase::Fetching(id);
                    Some((id, region))
                }
                None => self.matcher.arrive(envelope).map(|id| (id, self.take_posted(id))),
            };
        match receive {
            Some((id, region)) => self.fetch(id, from, envelope, &offer, region),
            None if self.impaired && self.deaths.disagree(envelope.context) => self.give_back(from, offer.send),
            None if self.can_hold() => {
                let entry = self.hold(envelope, Unexpected::Offer { from, offer });
                if is_short {
                    self.may_fetch(from, entry);
                }
            }
            None => self.no_memory(from, offer.len),
        }
    }

    /// Handles `RECALL`: a sender wants a message back. Returns whether it was unmatched and is forgotten here.
    pub(super) fn recall_arrived(&mut self, from: Peer, envelope: &Envelope, send: u64) -> bool {
        let theirs = |u: &Unexpected| match u {
            Unexpected::Eager { from: f, sync: Some(s), .. } => *f == from && *s == send,
            Unexpected::Offer { from: f, offer } => *f == from && offer.send == send,
            _ => false,
        };
        let given = self.matcher.take_where(envelope, theirs);
        given.iter().for_each(|message| self.release(message));
        given.is_some()
    }

    /// Starts a receive.
    pub fn receive(&mut self, devices: &mut Devices, pattern: &Pattern, region: Region) -> RequestId {
        if self.impaired
            && let Some(failure) = self.lost(pattern)
        {
            return self.failed(failure);
        }
        match self.matcher.take(pattern) {
            Some((envelope, message)) => self.receive_matched(devices, &envelope, message, region),
            None => {
                if region.len() > self.eager_limit {
                    self.interest += 1;
                }
                // The entry and the request refer to each other.
                let id = self.requests.next_id();
                let entry = self.matcher.post(pattern, id);
                self.requests.insert(Phase::Posted { entry }, region)
            }
        }
    }

    /// Returns whether no message is held and no receive is posted, so that a receive that begins now may take the next
    /// packet of a peer.
    #[inline(always)]
    pub fn is_next_receive(&self) -> bool {
        self.direct.is_none() && self.matcher.posted_len() == 0 && self.matcher.unexpected_len() == 0 && !self.impaired
    }

    /// Starts a receive for which the calling thread is about to wait.
    #[inline]
    pub fn receive_blocking(&mut self, devices: &mut Devices, pattern: &Pattern, region: Region) -> Begun {
        if self.direct.is_some() || self.matcher.posted_len() > 0 || self.impaired {
            return Begun::Request(self.receive(devices, pattern, region));
        }
        match self.matcher.take(pattern) {
            None => {
                self.interest += usize::from(region.len() > self.eager_limit);
                let epoch = self.requests.epoch;
                self.direct = Some(Direct { pattern: *pattern, region, phase: DirectPhase::Waiting, epoch });
                Begun::Direct
            }
            Some((envelope, message @ Unexpected::Eager { sync: None, .. })) => {
                self.release(&message);
                let Unexpected::Eager { data, .. } = message else { unreachable!("it was matched above") };
                let n = data.len().min(region.len());
                region.write(0, &data[..n]);
                self.traffic.receive(n as u64);
                self.run_deferred(devices);
                Begun::Done(received(&envelope, data.len() as u64, region.len() as u64))
            }
            Some((envelope, message)) => Begun::Request(self.receive_matched(devices, &envelope, message, region)),
        }
    }

    /// Returns whether the direct receive is complete.
    #[inline]
    pub fn direct_done(&self) -> bool {
        match self.direct.as_ref().map(|d| &d.phase) {
            Some(DirectPhase::Waiting | DirectPhase::Arriving) => false,
            Some(DirectPhase::Fetching(id)) => self.requests.get(*id).is_none_or(|r| matches!(r.phase, Phase::Done)),
            Some(DirectPhase::Done(_)) | None => true,
        }
    }

    /// Completes the direct receive like this, unless its message has begun to arrive.
    #[cold]
    pub fn end_direct_unless_begun(&mut self, end: Completion) {
        if let Some(Direct { region, phase: phase @ DirectPhase::Waiting, .. }) = &mut self.direct {
            self.interest -= usize::from(region.len() > self.eager_limit);
            *phase = DirectPhase::Done(end);
        }
    }

    /// Takes the completion of the direct receive.
    #[inline]
    pub fn take_direct(&mut self) -> Completion {
        match self.direct.take().map(|d| d.phase) {
            Some(DirectPhase::Done(completion)) => {
                self.traffic.receive(completion.bytes);
                completion
            }
            Some(DirectPhase::Fetching(id)) => self.requests.remove(id).unwrap_or_default(),
            Some(DirectPhase::Waiting | DirectPhase::Arriving) | None => Completion::default(),
        }
    }

    /// Returns the direct receive, if it is waiting and matches this envelope. The message then belongs to it.
    #[inline]
    pub(super) fn direct_for(&mut self, envelope: &Envelope) -> Option<&mut Direct> {
        let direct =
            self.direct.as_mut().filter(|d| matches!(d.phase, DirectPhase::Waiting) && d.pattern.matches(envelope))?;
        self.interest -= usize::from(direct.region.len() > self.eager_limit);
        Some(direct)
    }

    /// Receives a message that was taken from the matcher.
    pub fn receive_matched(
        &mut self,
        devices: &mut Devices,
        envelope: &Envelope,
        message: Unexpected,
        region: Region,
    ) -> RequestId {
        if let Some(failure) = self.broken.clone() {
            return self.failed(failure);
        }
        debug!("matched an unexpected message: {envelope:?}");
        let id = match message {
            Unexpected::Fetched { request, .. } => request,
            _ => self.requests.insert(Phase::Pulling, Region::empty()),
        };
        self.release(&message);
        match message {
            Unexpected::Eager { from, data, sync } => {
                let n = data.len().min(region.len());
                region.write(0, &data[..n]);
                self.complete_receive(id, envelope, data.len() as u64, region.len() as u64);
                if let Some(send) = sync {
                    self.tell(devices, from, wire::about(wire::DONE, send, 0), &[]);
                }
            }
            Unexpected::Arriving { from, slot, total } => {
                let room = region.len();
                let (data, more) = self.arrivals.take(from, slot, || ArrivalTarget::Request(id, region.clone()));
                region.write(0, &data[..data.len().min(room)]);
                if more {
                    self.requests.get_mut(id).expect("just inserted").phase = Phase::Arriving;
                } else if data.len() < total {
                    let failure = self
                        .unreachable(from)
                        .expect("the rest of a message can be missing only if its sender has died");
                    self.complete(id, Completion::failed(failure));
                } else {
                    self.complete_receive(id, envelope, total as u64, room as u64);
                }
            }
            Unexpected::Offer { from, offer } => {
                self.fetch(id, from, envelope, &offer, region);
            }
            Unexpected::Fetched { from, slot, total, .. } => {
                self.receive_fetched(id, envelope, from, slot, total, region);
            }
            Unexpected::Local { send, len } => {
                // The send exists: it ends by being received or cancelled, and both take the message out of the
                // matcher.
                if let Some(source) = self.requests.get(send) {
                    copy_region(&source.region, &region, (len as usize).min(region.len()));
                    self.settle_send(send, false);
                }
                self.complete_receive(id, envelope, len, region.len() as u64);
            }
        }
        self.run_deferred(devices);
        id
    }

    /// Takes the region out of a posted receive that has just been matched.
    pub(super) fn take_posted(&mut self, id: RequestId) -> Region {
        let request = self.requests.get_mut(id).expect("a posted receive lives until it is matched");
        request.phase = Phase::Pulling;
        let region = std::mem::replace(&mut request.region, Region::empty());
        if region.len() > self.eager_limit {
            self.interest -= 1;
        }
        region
    }

    pub(super) fn fetch(&mut self, id: RequestId, from: Peer, envelope: &Envelope, offer: &Offer, region: Region) {
        let bytes = offer.len.min(region.len() as u64);
        self.traffic.receive(bytes);
        let request = self.requests.get_mut(id).expect("the caller's request");
        request.completion = received(envelope, offer.len, region.len() as u64);
        self.deferred.push(Deferred::Fetch(Pull {
            request: id,
            from,
            at: Address::default(),
            offer: *offer,
            region,
            bytes,
        }));
    }

    /// Does the work that was queued until the device was free, in order.
    #[inline]
    pub fn run_deferred(&mut self, devices: &mut Devices) {
        if !self.deferred.is_empty() {
            self.run_all_deferred(devices);
        }
    }

    fn run_all_deferred(&mut self, devices: &mut Devices) {
        let mut all = std::mem::take(&mut self.deferred);
        let mut rest = all.drain(..);
        while let Some(deferred) = rest.next() {
            match deferred {
                Deferred::Fetch(fetch) => self.begin_fetch(devices, fetch, rest.len() == 0),
                Deferred::Straight { request, ticket } => self.send_straight(devices, request, ticket),
                Deferred::Packet { to, meta, data, urgency } => self.control(devices, to, meta, &data, urgency),
            }
        }
        drop(rest);
        // Reuses the allocation of the list.
        self.deferred = all;
    }

    /// Starts to pull an offered message, or asks for it to be streamed or written. `is_last`: no other message is
    /// about to be fetched.
    fn begin_fetch(&mut self, devices: &mut Devices, fetch: Pull, is_last: bool) {
        let (from, pieces) = (fetch.from, fetch.offer.pieces);
        if fetch.bytes > 0
            && let Some(failure) = self.unreachable(from)
        {
            self.complete(fetch.request, Completion::failed(failure));
            return;
        }
        let is_listed = pieces > 0 && fetch.bytes > 0;
        let reach = if is_listed { devices.reach(from) } else { None };
        let fetch = Pull { at: reach.unwrap_or_default(), ..fetch };
        // Both paths are possible if a thread is present on both sides and has nothing else to copy meanwhile.
        let alone = is_last && self.interest == 0 && self.jobs.is_empty();
        let path = if reach.is_some() && alone && self.may_stream && pieces == 1 && devices.is_waiting(from) {
            let path = self.choice.next(fetch.bytes);
            if let Some(r) = self.requests.get_mut(fetch.request) {
                r.incoming = Some((path, clock::now_ns()));
            }
            path
        } else if reach.is_some() {
            TransferPath::Pull
        } else {
            TransferPath::Stream
        };
        debug!("rendezvous: {} bytes from {from} by {path:?}", fetch.bytes);
        match path {
            TransferPath::Pull
                if self.in_service
                    && pieces == 1
                    && fetch.region.as_contiguous().is_some()
                    && devices.is_waiting(from) =>
            {
                self.accept(devices, fetch, true);
            }
            TransferPath::Pull => self.jobs.push(UnlockedJob::Pull(fetch)),
            TransferPath::Stream => self.accept(devices, fetch, false),
        }
    }

    /// Asks for an offered message to be streamed or, if `to_be_written`, to be written to the receive buffer if
    /// possible.
    pub fn accept(&mut self, devices: &mut Devices, fetch: Pull, to_be_written: bool) {
        let Pull { request, from, offer, ref region, bytes, .. } = fetch;
        if bytes == 0 {
            self.finish_fetch(devices, request, from, offer.send);
            return;
        }
        if let Some(failure) = self.unreachable(from) {
            self.complete(request, Completion::failed(failure));
            return;
        }
        let mut data = SmallVec::<[u8; 16]>::from_slice(&bytes.to_ne_bytes());
        let mut kind = wire::ACCEPT;
        let mut phase = Phase::Streaming { peer: from, expected: bytes, received: 0 };
        if let (true, Some(address)) = (to_be_written, region.as_contiguous()) {
            data.extend_from_slice(&(address as u64).to_ne_bytes());
        } else if let Some(ticket) = self.expect_straight(devices, &fetch) {
            (kind, phase) = (wire::ACCEPT_STRAIGHT, Phase::Filling { peer: from });
            data.extend_from_slice(&ticket.to_ne_bytes());
        }
        if let Some(r) = self.requests.get_mut(request) {
            r.phase = phase;
            r.region = fetch.region;
        }
        self.interest += 1;
        let meta = wire::about(kind, offer.send, request.to_wire());
        self.control(devices, from, meta, &data, Urgency::Urgent);
    }

    /// Completes a receive whose offered message has been pulled.
    pub fn finish_fetch(&mut self, devices: &mut Devices, request: RequestId, from: Peer, send: u64) {
        self.arrived(request);
        if let Some(r) = self.requests.get(request) {
            let completion = r.completion.clone();
            self.complete(request, completion);
        }
        self.tell(devices, from, wire::about(wire::DONE, send, 0), &[]);
    }

    /// Completes a send whose message was written to the receiver's memory; or streams the message if that failed.
    pub fn finish_push(&mut self, devices: &mut Devices, send: RequestId, done: bool) {
        let Some(request) = self.requests.get_mut(send) else { return };
        let Phase::Pushing { peer, receive, len } = request.phase else { return };
        request.phase = Phase::Feeding { peer, receive, sent: 0, len, packets: 0 };
        if let Some(failure) = self.broken.clone() {
            // The failure ends the send: no more bytes are counted or sent.
            self.complete(send, if done { Completion::default() } else { Completion::failed(failure) });
        } else if done {
            self.tell(devices, peer, wire::about(wire::WRITTEN, receive, 0), &[]);
            self.settle_send(send, false);
        } else if let Some(failure) = self.unreachable(peer) {
            self.fail_send(send, &failure);
        } else {
            self.feeding.push_back(send);
        }
    }

    /// Requests that an operation ends before it is matched. A send whose receiver must be asked completes with the
    /// answer.
    pub fn cancel(&mut self, devices: &mut Devices, id: RequestId) {
        let Some(request) = self.requests.get(id) else { return };
        match &request.phase {
            Phase::Posted { entry } => {
                let (entry, large) = (*entry, request.region.len() > self.eager_limit);
                if self.matcher.withdraw(entry).is_some() {
                    self.interest -= usize::from(large);
                    self.complete(id, Completion { cancelled: true, ..Completion::default() });
                }
            }
            Phase::Unmatched { peer, envelope } | Phase::Offered { peer, envelope, .. } => {
                let (peer, meta) = (*peer, wire::enveloped(wire::RECALL, envelope));
                self.control(devices, peer, meta, &id.to_wire().to_ne_bytes(), Urgency::Urgent);
            }
            Phase::Local { envelope } => {
                let envelope = *envelope;
                let mine = |u: &Unexpected| matches!(u, Unexpected::Local { send, .. } if *send == id);
                if let Some(message) = self.matcher.take_where(&envelope, mine) {
                    self.release(&message);
                    self.settle_send(id, true);
                }
            }
            Phase::Pulling | Phase::Arriving | Phase::Streaming { .. } | Phase::Filling { .. } | Phase::Done => {}
            // The receive of a fetched message does not know the request before it is matched.
            Phase::Fetching { .. } => {}
            Phase::Queued | Phase::Feeding { .. } | Phase::Pushing { .. } => {}
        }
    }
}
