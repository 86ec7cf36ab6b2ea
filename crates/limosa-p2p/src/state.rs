//! The protocols: what a process knows under its engine's lock, and what it does when a packet arrives.
//!
//! - **Eager**: up to the eager limit the bytes travel with the envelope; the send is done when they are on the lane. Those longer than a part
//!   travel in several ([`crate::arriving`]).
//! - **Offer**: longer messages wait at the sender. The receiver fetches them from the sender's memory, or asks for them to be streamed where
//!   it cannot (no cross-memory attach, or too many small pieces).
//!
//! Packets that find no room wait in a backlog per peer, in order; parts of streamed messages wait apart, so that they hold up nothing else.
//!
//! Handlers never touch the device's receiving side (they run inside its poll); what needs the device, or must happen without the lock, is
//! noted down ([`Deferred`], [`Job`]) and done by the engine right after.
//!
//! When a packet is lost, because the device failed or there is no memory for it, order and completeness of messages cannot be kept any more:
//! everything that waits for a message fails then, and so does everything that is started later ([`State::break_down`]).

use crate::arriving::{Arrival, Arrivals, Target};
use crate::matching::{Envelope, Matcher, Pattern};
use crate::memory::Region;
use crate::request::{Completion, Continuation, Failure, Owner, Phase, PieceList, RequestId, Requests};
use crate::transfer::{Pull, copy_region};
use crate::wire::{self, Offer};
use limosa_device::{Data, Device, DeviceError, Meta, Peer, Sent, Urgency};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Most pieces that are offered for fetching one by one; more are packed by streaming.
const MAX_PIECES: usize = 4096;
/// Mean length of a piece from which fetching piece by piece is worth it, in bytes.
pub(crate) const MIN_PIECE: usize = 8 * 1024;
/// Shortest message that both sides copy together: a shorter one is over before the sender's joining pays.
const MIN_JOINT: usize = 128 * 1024;

/// Bytes of a part of an eager message; shorter ones travel whole.
pub(crate) const PART_BYTES: usize = 4096;

/// Bytes of a part of a streamed message: few enough that packing, travelling and unpacking overlap.
const STREAM_BYTES: usize = 8 * 1024;

/// Whether a send is done when the message is away, or when it is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Standard and ready mode.
    Standard,
    /// Synchronous mode.
    Synchronous,
}

/// A message that no receive was posted for.
pub(crate) enum Unexpected {
    Eager {
        from: Peer,
        data: Box<[u8]>,
        sync: Option<u64>,
    },
    /// One that comes, or came, in parts, kept under this number.
    Arriving {
        from: Peer,
        slot: usize,
        total: usize,
    },
    Offer {
        from: Peer,
        offer: Offer,
    },
    Local {
        send: RequestId,
        len: u64,
    },
}

impl Unexpected {
    pub fn len(&self) -> u64 {
        match self {
            Unexpected::Eager { data, .. } => data.len() as u64,
            Unexpected::Arriving { total, .. } => *total as u64,
            Unexpected::Offer { offer, .. } => offer.len,
            Unexpected::Local { len, .. } => *len,
        }
    }
}

/// A packet that waits for room.
enum Waiting {
    Control { meta: Meta, data: SmallVec<[u8; 64]>, urgency: Urgency },
    Eager { request: RequestId, meta: Meta, region: Region, sync: bool },
    Parts { request: RequestId, parts: Parts },
}

/// The parts of an eager message that are still to be sent.
struct Parts {
    begin: Option<Meta>,
    region: Region,
    sent: usize,
}

impl Parts {
    /// Sends as many as there is room for; true if these were all.
    #[inline]
    fn push(&mut self, device: &mut dyn Device, to: Peer) -> Result<bool, DeviceError> {
        let len = self.region.len();
        if let Some(meta) = &self.begin {
            if device.send(to, meta, Data::Bytes(&(len as u64).to_ne_bytes()), Urgency::Normal)? == Sent::NoRoom {
                return Ok(false);
            }
            self.begin = None;
        }
        while self.sent < len {
            let (offset, part) = (self.sent, PART_BYTES.min(len - self.sent));
            let mut fill = |bytes: &mut [u8]| self.region.read(offset, bytes);
            if device.send(to, &wire::about(wire::PART, 0, 0), Data::Fill(part, &mut fill), Urgency::Normal)? == Sent::NoRoom {
                return Ok(false);
            }
            self.sent += part;
        }
        Ok(true)
    }
}

/// To be done with the device, right after polling it.
pub(crate) enum Deferred {
    Fetch { request: RequestId, from: Peer, offer: Offer, region: Region, bytes: u64 },
}

/// To be done without the lock.
pub(crate) enum Job {
    Pull(Pull),
    Continue(Continuation, Completion),
}

/// A receive that a thread is blocked in. There is at most one, and it is older than all posted receives: it is matched first, without being
/// posted, and needs no request unless the message is an offered one.
pub(crate) struct Direct {
    pattern: Pattern,
    region: Region,
    phase: DirectPhase,
}

enum DirectPhase {
    Waiting,
    Arriving,
    Fetching(RequestId),
    Done(Completion),
}

/// How a blocking receive begins.
pub(crate) enum Begun {
    /// It is over.
    Done(Completion),
    /// It is the direct receive.
    Direct,
    /// It is an ordinary request.
    Request(RequestId),
}

pub(crate) struct State {
    pub rank: Peer,
    pub eager_limit: usize,
    pub requests: Requests,
    pub matcher: Matcher<RequestId, Unexpected>,
    direct: Option<Direct>,
    arrivals: Arrivals,
    pub deferred: Vec<Deferred>,
    pub jobs: Vec<Job>,
    backlog: Vec<VecDeque<Waiting>>,
    /// Peers with a backlog.
    behind: Vec<Peer>,
    /// Requests that are being streamed out.
    feeding: VecDeque<RequestId>,
    /// Posted receives beyond the eager limit and sends that wait for their receiver: a reason to serve urgent traffic.
    pub interest: usize,
    /// Requests with continuations: a reason to serve all traffic.
    pub continuations: usize,
    /// Something was completed for which another thread may be asleep.
    pub completed: bool,
    /// Messages have been lost, for this reason.
    pub broken: Option<Failure>,
    /// Bytes of unexpected eager messages held.
    pub unexpected_bytes: usize,
    /// Which offered sends this process can help to copy, by joint.
    pub joints: Joints,
    /// Receivers of offers whose helper threads have not been told: a sender that waits anyway tells them only after a while.
    pub unannounced: SmallVec<[Peer; 4]>,
}

/// The joints of this process.
#[derive(Default)]
pub(crate) struct Joints {
    /// The send that each is lent to.
    lent: SmallVec<[Option<RequestId>; 4]>,
    /// Those that a thread is helping with now: not to be lent before it is done.
    busy: u32,
    /// How many are lent.
    pub count: usize,
}

impl Joints {
    fn lend(&mut self, device: &dyn Device, rank: Peer) -> Option<usize> {
        let all = device.joints(rank);
        self.lent.resize(all.len(), None);
        let index = (0..all.len()).find(|&i| self.lent[i].is_none() && self.busy & (1 << i) == 0)?;
        all[index].lend();
        self.count += 1;
        Some(index)
    }

    fn give_back(&mut self, index: usize) {
        self.lent[index] = None;
        self.count -= 1;
    }
}

impl State {
    pub fn new(rank: Peer, size: u32, eager_limit: usize) -> State {
        State {
            rank,
            eager_limit,
            requests: Requests::default(),
            matcher: Matcher::default(),
            direct: None,
            arrivals: Arrivals::new(size),
            deferred: Vec::new(),
            jobs: Vec::new(),
            backlog: (0..size).map(|_| VecDeque::new()).collect(),
            behind: Vec::new(),
            feeding: VecDeque::new(),
            interest: 0,
            continuations: 0,
            completed: false,
            broken: None,
            unexpected_bytes: 0,
            joints: Joints::default(),
            unannounced: SmallVec::new(),
        }
    }

    // ---- ends of requests ------------------------------------------------------------------------------------------

    pub fn complete(&mut self, id: RequestId, completion: Completion) {
        let Some(request) = self.requests.get_mut(id) else { return };
        if let Phase::Offered { joint: Some(index), .. } = &request.phase {
            self.joints.give_back(*index);
        }
        request.phase = Phase::Done;
        request.completion = completion;
        self.completed = true;
        if !matches!(request.owner, Owner::Waiter) {
            let request = self.requests.remove(id).expect("it was there a moment ago");
            if let Owner::Continuation(then) = request.owner {
                self.continuations -= 1;
                self.jobs.push(Job::Continue(then, request.completion));
            }
        }
    }

    /// Ends all communication, for good. The first reason counts.
    #[cold]
    pub fn break_down(&mut self, failure: Failure) {
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(failure.clone());
        self.backlog.iter_mut().for_each(VecDeque::clear);
        self.behind.clear();
        self.feeding.clear();
        self.arrivals.clear();
        self.interest = 0;
        if let Some(Direct { phase: phase @ (DirectPhase::Waiting | DirectPhase::Arriving), .. }) = &mut self.direct {
            *phase = DirectPhase::Done(Completion { failure: Some(failure.clone()), ..Completion::default() });
            self.completed = true;
        }
        for id in self.requests.awaiting_messages() {
            self.complete(id, Completion { failure: Some(failure.clone()), ..Completion::default() });
        }
    }

    /// A request that has failed already.
    #[cold]
    fn failed(&mut self, failure: Failure) -> RequestId {
        let id = self.requests.insert(Phase::Done);
        self.complete(id, Completion { failure: Some(failure), ..Completion::default() });
        id
    }

    fn complete_receive(&mut self, id: RequestId, envelope: &Envelope, sent: u64, room: u64) {
        self.complete(id, received(envelope, sent, room));
    }

    fn complete_send(&mut self, id: RequestId) {
        self.complete(id, Completion::default());
    }

    /// Marks a send that waited for its receiver as done, whatever the receiver did with it.
    fn settle_send(&mut self, id: RequestId, cancelled: bool) {
        let waits = self.requests.get(id).is_some_and(|r| {
            matches!(r.phase, Phase::Unmatched { .. } | Phase::Offered { .. } | Phase::Feeding { .. } | Phase::Local { .. })
        });
        if waits {
            self.interest -= 1;
            self.complete(id, Completion { cancelled, ..Completion::default() });
        }
    }

    // ---- sending ---------------------------------------------------------------------------------------------------

    /// Starts a send to another process; `None` if it is done already.
    pub fn send(
        &mut self,
        device: &mut dyn Device,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
        mode: Mode,
    ) -> Result<Option<RequestId>, Failure> {
        self.check_broken()?;
        let len = region.len();
        if len > self.eager_limit || (mode == Mode::Synchronous && len > PART_BYTES) {
            return self.send_offer(device, peer, envelope, region).map(Some);
        }
        if len > PART_BYTES {
            return self.send_parts(device, peer, envelope, region);
        }
        if mode == Mode::Synchronous {
            let request = self.requests.insert(Phase::Queued);
            let meta = wire::enveloped(wire::EAGER_SYNC, envelope);
            self.queue(device, peer, Waiting::Eager { request, meta, region, sync: true });
            return self.check_broken().map(|()| Some(request));
        }
        let meta = wire::enveloped(wire::EAGER, envelope);
        if self.backlog[peer as usize].is_empty() {
            match send_eager(device, peer, &meta, &region, None) {
                Ok(Sent::Done) => return Ok(None),
                Ok(Sent::NoRoom) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let request = self.requests.insert(Phase::Queued);
        self.queue(device, peer, Waiting::Eager { request, meta, region, sync: false });
        Ok(Some(request))
    }

    fn send_parts(
        &mut self,
        device: &mut dyn Device,
        peer: Peer,
        envelope: &Envelope,
        region: Region,
    ) -> Result<Option<RequestId>, Failure> {
        let mut parts = Parts { begin: Some(wire::enveloped(wire::BEGIN, envelope)), region, sent: 0 };
        if self.backlog[peer as usize].is_empty() && parts.push(device, peer)? {
            return Ok(None);
        }
        let request = self.requests.insert(Phase::Queued);
        self.queue(device, peer, Waiting::Parts { request, parts });
        self.check_broken().map(|()| Some(request))
    }

    fn send_offer(&mut self, device: &mut dyn Device, peer: Peer, envelope: &Envelope, region: Region) -> Result<RequestId, Failure> {
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
        let joint = if len >= MIN_JOINT && count == 1 { self.joints.lend(device, self.rank) } else { None };
        let send = self.requests.insert(Phase::Offered { peer, envelope: *envelope, region, joint, _pieces: list });
        if let Some(index) = joint {
            self.joints.lent[index] = Some(send);
        }
        self.interest += 1;
        let joint = joint.map_or(0, |index| index as u64 + 1);
        let offer = Offer { send: send.to_wire(), len: len as u64, address, pieces: count, joint };
        self.unannounced.push(peer);
        self.control(device, peer, wire::enveloped(wire::OFFER, envelope), &offer.encode(), Urgency::Normal);
        self.check_broken().map(|()| send)
    }

    #[inline]
    fn check_broken(&self) -> Result<(), Failure> {
        match &self.broken {
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        }
    }

    /// Starts a send to this process itself; `None` if it is done already.
    pub fn send_local(&mut self, envelope: &Envelope, region: Region, mode: Mode) -> Result<Option<RequestId>, Failure> {
        self.check_broken()?;
        let len = region.len();
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
        // Without memory for a copy the message waits where it is.
        if mode == Mode::Standard
            && len <= self.eager_limit
            && let Some(mut data) = room_for(len)
        {
            data.resize(len, 0);
            region.read(0, &mut data);
            self.unexpected_bytes += len;
            self.matcher.store(envelope, Unexpected::Eager { from: self.rank, data: data.into(), sync: None });
            return Ok(None);
        }
        let send = self.requests.insert(Phase::Local { envelope: *envelope, region });
        self.interest += 1;
        self.matcher.store(envelope, Unexpected::Local { send, len: len as u64 });
        Ok(Some(send))
    }

    // ---- receiving -------------------------------------------------------------------------------------------------

    /// Starts a receive.
    pub fn receive(&mut self, device: &mut dyn Device, pattern: &Pattern, region: Region) -> RequestId {
        if let Some(failure) = self.broken.clone() {
            return self.failed(failure);
        }
        match self.matcher.take(pattern) {
            Some((envelope, message)) => self.receive_matched(device, &envelope, message, region),
            None => {
                if region.len() > self.eager_limit {
                    self.interest += 1;
                }
                // The entry's name and the request's name each other.
                let id = self.requests.next_id();
                let entry = self.matcher.post(pattern, id);
                self.requests.insert(Phase::Posted { pattern: *pattern, entry, region })
            }
        }
    }

    /// Starts a receive that the calling thread is going to wait for.
    #[inline]
    pub fn receive_blocking(&mut self, device: &mut dyn Device, pattern: &Pattern, region: Region) -> Begun {
        if self.direct.is_some() || self.matcher.posted_len() > 0 || self.broken.is_some() {
            return Begun::Request(self.receive(device, pattern, region));
        }
        match self.matcher.take(pattern) {
            None => {
                self.interest += usize::from(region.len() > self.eager_limit);
                self.direct = Some(Direct { pattern: *pattern, region, phase: DirectPhase::Waiting });
                Begun::Direct
            }
            Some((envelope, Unexpected::Eager { data, sync: None, .. })) => {
                self.unexpected_bytes -= data.len();
                let n = data.len().min(region.len());
                region.write(0, &data[..n]);
                Begun::Done(received(&envelope, data.len() as u64, region.len() as u64))
            }
            Some((envelope, message)) => Begun::Request(self.receive_matched(device, &envelope, message, region)),
        }
    }

    /// True if the direct receive is over.
    #[inline]
    pub fn direct_done(&self) -> bool {
        match self.direct.as_ref().map(|d| &d.phase) {
            Some(DirectPhase::Waiting | DirectPhase::Arriving) => false,
            Some(DirectPhase::Fetching(id)) => self.requests.get(*id).is_none_or(|r| matches!(r.phase, Phase::Done)),
            Some(DirectPhase::Done(_)) | None => true,
        }
    }

    /// Ends the direct receive, which is over.
    #[inline]
    pub fn take_direct(&mut self) -> Completion {
        match self.direct.take().map(|d| d.phase) {
            Some(DirectPhase::Done(completion)) => completion,
            Some(DirectPhase::Fetching(id)) => self.requests.remove(id).map(|r| r.completion).unwrap_or_default(),
            Some(DirectPhase::Waiting | DirectPhase::Arriving) | None => Completion::default(),
        }
    }

    /// The direct receive, if it waits for a message with this envelope, which is then its own.
    #[inline]
    fn direct_for(&mut self, envelope: &Envelope) -> Option<&mut Direct> {
        let direct = self.direct.as_mut().filter(|d| matches!(d.phase, DirectPhase::Waiting) && d.pattern.matches(envelope))?;
        self.interest -= usize::from(direct.region.len() > self.eager_limit);
        Some(direct)
    }

    /// Receives a message that was taken from the matcher.
    pub fn receive_matched(&mut self, device: &mut dyn Device, envelope: &Envelope, message: Unexpected, region: Region) -> RequestId {
        if let Some(failure) = self.broken.clone() {
            return self.failed(failure);
        }
        let id = self.requests.insert(Phase::Pulling);
        self.unexpected_bytes -= if let Unexpected::Eager { data, .. } = &message { data.len() } else { 0 };
        match message {
            Unexpected::Eager { from, data, sync } => {
                let n = data.len().min(region.len());
                region.write(0, &data[..n]);
                self.complete_receive(id, envelope, data.len() as u64, region.len() as u64);
                if let Some(send) = sync {
                    self.tell(device, from, wire::about(wire::DONE, send, 0), &[]);
                }
            }
            Unexpected::Arriving { from, slot, total } => {
                let room = region.len();
                let (data, more) = self.arrivals.take(from, slot, || Target::Request(id, region.clone()));
                region.write(0, &data[..data.len().min(room)]);
                self.unexpected_bytes -= total;
                if more {
                    self.requests.get_mut(id).expect("just inserted").phase = Phase::Arriving;
                } else {
                    self.complete_receive(id, envelope, total as u64, room as u64);
                }
            }
            Unexpected::Offer { from, offer } => {
                self.fetch(id, from, envelope, &offer, region);
                self.run_deferred(device);
            }
            Unexpected::Local { send, len } => {
                if let Some(Phase::Local { region: source, .. }) = self.requests.get(send).map(|r| &r.phase) {
                    copy_region(source, &region, (len as usize).min(region.len()));
                }
                self.settle_send(send, false);
                self.complete_receive(id, envelope, len, region.len() as u64);
            }
        }
        id
    }

    /// Takes the region out of a posted receive that has just been matched.
    fn take_posted(&mut self, id: RequestId) -> Region {
        let request = self.requests.get_mut(id).expect("a posted receive lives until it is matched");
        let Phase::Posted { region, .. } = std::mem::replace(&mut request.phase, Phase::Pulling) else {
            unreachable!("only posted receives are in the matcher");
        };
        if region.len() > self.eager_limit {
            self.interest -= 1;
        }
        region
    }

    fn fetch(&mut self, id: RequestId, from: Peer, envelope: &Envelope, offer: &Offer, region: Region) {
        let request = self.requests.get_mut(id).expect("the caller's request");
        let room = region.len() as u64;
        let bytes = offer.len.min(room);
        request.completion = Completion {
            source: envelope.source,
            tag: envelope.tag,
            bytes,
            cancelled: false,
            failure: (offer.len > room).then_some(Failure::Truncated { sent: offer.len, room }),
        };
        self.deferred.push(Deferred::Fetch { request: id, from, offer: *offer, region, bytes });
    }

    /// Does what had to wait until the device was free.
    pub fn run_deferred(&mut self, device: &mut dyn Device) {
        while let Some(Deferred::Fetch { request, from, offer, region, bytes }) = self.deferred.pop() {
            if offer.pieces > 0 && offer.pieces <= MAX_PIECES as u64 && bytes > 0 && device.can_pull(from) {
                self.jobs.push(Job::Pull(Pull { request, from, offer, region, bytes }));
            } else {
                self.accept(device, request, from, &offer, region, bytes);
            }
        }
    }

    /// Asks for an offered message to be streamed.
    pub fn accept(&mut self, device: &mut dyn Device, request: RequestId, from: Peer, offer: &Offer, region: Region, bytes: u64) {
        if bytes == 0 {
            self.finish_fetch(device, request, from, offer.send);
            return;
        }
        if let Some(failure) = self.broken.clone() {
            self.complete(request, Completion { failure: Some(failure), ..Completion::default() });
            return;
        }
        if let Some(r) = self.requests.get_mut(request) {
            r.phase = Phase::Streaming { region, expected: bytes, received: 0 };
        }
        self.interest += 1;
        let meta = wire::about(wire::ACCEPT, offer.send, request.to_wire());
        self.control(device, from, meta, &bytes.to_ne_bytes(), Urgency::Urgent);
    }

    /// All bytes of an offered message have been copied.
    pub fn finish_fetch(&mut self, device: &mut dyn Device, request: RequestId, from: Peer, send: u64) {
        if let Some(r) = self.requests.get(request) {
            let completion = r.completion.clone();
            self.complete(request, completion);
        }
        self.tell(device, from, wire::about(wire::DONE, send, 0), &[]);
    }

    /// Asks for an operation to end before it is matched. A send whose receiver must be asked ends when the answer comes.
    pub fn cancel(&mut self, device: &mut dyn Device, id: RequestId) {
        let Some(request) = self.requests.get(id) else { return };
        match &request.phase {
            Phase::Posted { pattern, entry, region } => {
                let (pattern, entry, large) = (*pattern, *entry, region.len() > self.eager_limit);
                if self.matcher.withdraw(entry, &pattern).is_some() {
                    self.interest -= usize::from(large);
                    self.complete(id, Completion { cancelled: true, ..Completion::default() });
                }
            }
            Phase::Unmatched { peer, envelope } | Phase::Offered { peer, envelope, .. } => {
                let (peer, meta) = (*peer, wire::enveloped(wire::RECALL, envelope));
                self.control(device, peer, meta, &id.to_wire().to_ne_bytes(), Urgency::Urgent);
            }
            Phase::Local { envelope, .. } => {
                let envelope = *envelope;
                let mine = |u: &Unexpected| matches!(u, Unexpected::Local { send, .. } if *send == id);
                if self.matcher.take_where(&envelope, mine).is_some() {
                    self.settle_send(id, true);
                }
            }
            Phase::Pulling | Phase::Arriving | Phase::Streaming { .. } | Phase::Queued | Phase::Feeding { .. } | Phase::Done => {}
        }
    }

    // ---- packets that arrive ---------------------------------------------------------------------------------------

    /// Handles one packet; false if it makes no sense.
    #[must_use]
    pub fn handle(&mut self, from: Peer, meta: &Meta, data: &[u8], answers: &mut Vec<(Peer, Meta)>) -> bool {
        if self.broken.is_some() {
            return true; // The rest of a burst in which one packet was lost.
        }
        match meta.kind {
            wire::EAGER => self.eager_arrived(from, &wire::envelope(meta), data, None, answers),
            wire::EAGER_SYNC => {
                let Some(send) = wire::word(data, 0) else { return false };
                self.eager_arrived(from, &wire::envelope(meta), &data[8..], Some(send), answers);
            }
            wire::BEGIN => {
                let Some(total) = wire::word(data, 0).and_then(|total| usize::try_from(total).ok()) else { return false };
                return self.begin_arrival(from, &wire::envelope(meta), total);
            }
            wire::PART => return self.part_arrived(from, data),
            wire::OFFER => {
                let Some(offer) = Offer::decode(data) else { return false };
                let envelope = wire::envelope(meta);
                let receive = match self.direct_for(&envelope).map(|direct| std::mem::replace(&mut direct.region, Region::empty())) {
                    Some(region) => {
                        let id = self.requests.insert(Phase::Pulling);
                        self.direct.as_mut().expect("it was found a moment ago").phase = DirectPhase::Fetching(id);
                        Some((id, region))
                    }
                    None => self.matcher.arrive(&envelope).map(|id| (id, self.take_posted(id))),
                };
                match receive {
                    Some((id, region)) => self.fetch(id, from, &envelope, &offer, region),
                    None => self.matcher.store(&envelope, Unexpected::Offer { from, offer }),
                }
            }
            wire::ACCEPT => {
                let Some(len) = wire::word(data, 0) else { return false };
                return self.accepted(RequestId::from_wire(meta.words[0]), from, meta.words[1], len);
            }
            wire::STREAM => return self.streamed(RequestId::from_wire(meta.words[0]), meta.words[1], data),
            wire::DONE => self.settle_send(RequestId::from_wire(meta.words[0]), false),
            wire::RECALL => {
                let Some(send) = wire::word(data, 0) else { return false };
                let theirs = |u: &Unexpected| match u {
                    Unexpected::Eager { from: f, sync: Some(s), .. } => *f == from && *s == send,
                    Unexpected::Offer { from: f, offer } => *f == from && offer.send == send,
                    _ => false,
                };
                let given = self.matcher.take_where(&wire::envelope(meta), theirs).is_some();
                answers.push((from, wire::about(wire::RECALLED, send, u64::from(given))));
            }
            wire::RECALLED => {
                if meta.words[1] != 0 {
                    self.settle_send(RequestId::from_wire(meta.words[0]), true);
                }
            }
            _ => return false,
        }
        true
    }

    #[inline]
    fn eager_arrived(&mut self, from: Peer, envelope: &Envelope, data: &[u8], sync: Option<u64>, answers: &mut Vec<(Peer, Meta)>) {
        if let Some(direct) = self.direct_for(envelope) {
            let (sent, room) = (data.len(), direct.region.len());
            direct.region.write(0, &data[..sent.min(room)]);
            direct.phase = DirectPhase::Done(received(envelope, sent as u64, room as u64));
            self.completed = true;
            if let Some(send) = sync {
                answers.push((from, wire::about(wire::DONE, send, 0)));
            }
            return;
        }
        match self.matcher.arrive(envelope) {
            Some(id) => {
                let region = self.take_posted(id);
                let n = data.len().min(region.len());
                region.write(0, &data[..n]);
                self.complete_receive(id, envelope, data.len() as u64, region.len() as u64);
                if let Some(send) = sync {
                    answers.push((from, wire::about(wire::DONE, send, 0)));
                }
            }
            None => {
                let Some(mut kept) = self.room_for_unexpected(from, data.len()) else { return };
                kept.extend_from_slice(data);
                self.unexpected_bytes += data.len();
                self.matcher.store(envelope, Unexpected::Eager { from, data: kept.into(), sync });
            }
        }
    }

    /// Memory for a message that no receive was posted for; all communication ends if there is none.
    fn room_for_unexpected(&mut self, from: Peer, bytes: usize) -> Option<Vec<u8>> {
        let room = room_for(bytes);
        if room.is_none() {
            self.break_down(Failure::NoMemory(format!(
                "no memory for a message of {bytes} bytes from process {from} that no receive was posted for; {} bytes in such messages \
                 are held already: receive them sooner, or synchronise the processes",
                self.unexpected_bytes
            )));
        }
        room
    }

    /// A message begins whose parts will follow.
    fn begin_arrival(&mut self, from: Peer, envelope: &Envelope, total: usize) -> bool {
        if self.arrivals.from(from).is_some() {
            return false;
        }
        let target = if let Some(direct) = self.direct_for(envelope) {
            direct.phase = DirectPhase::Arriving;
            Target::Direct
        } else if let Some(id) = self.matcher.arrive(envelope) {
            let region = self.take_posted(id);
            self.requests.get_mut(id).expect("it was posted").phase = Phase::Arriving;
            Target::Request(id, region)
        } else {
            let Some(room) = self.room_for_unexpected(from, total) else { return true };
            self.unexpected_bytes += total;
            let slot = self.arrivals.keep(room);
            self.matcher.store(envelope, Unexpected::Arriving { from, slot, total });
            Target::Kept(slot)
        };
        *self.arrivals.from(from) = Some(Arrival { envelope: *envelope, total, received: 0, target });
        true
    }

    /// The next part of the message that began last.
    #[inline]
    fn part_arrived(&mut self, from: Peer, data: &[u8]) -> bool {
        let Some(arrival) = self.arrivals.current(from) else { return false };
        let offset = arrival.received;
        arrival.received += data.len();
        let last = arrival.received == arrival.total;
        if data.is_empty() || arrival.received > arrival.total {
            return false;
        }
        let write = |region: &Region| {
            let n = data.len().min(region.len().saturating_sub(offset));
            if n > 0 {
                region.write(offset, &data[..n]);
            }
        };
        match &arrival.target {
            Target::Direct => write(&self.direct.as_ref().expect("it waits for the rest").region),
            Target::Request(_, region) => write(region),
            Target::Kept(slot) => {
                let slot = *slot;
                self.arrivals.kept(slot).extend_from_slice(data);
            }
        }
        if !last {
            return true;
        }
        let Some(arrival) = self.arrivals.from(from).take() else { return false };
        let (envelope, total) = (arrival.envelope, arrival.total as u64);
        match arrival.target {
            Target::Direct => {
                let direct = self.direct.as_mut().expect("it waits for the rest");
                direct.phase = DirectPhase::Done(received(&envelope, total, direct.region.len() as u64));
                self.completed = true;
            }
            Target::Request(id, region) => self.complete_receive(id, &envelope, total, region.len() as u64),
            Target::Kept(_) => {}
        }
        true
    }

    fn accepted(&mut self, id: RequestId, from: Peer, receive: u64, len: u64) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return false };
        match std::mem::replace(&mut request.phase, Phase::Done) {
            Phase::Offered { peer, region, joint, .. } if peer == from && len <= region.len() as u64 => {
                if let Some(index) = joint {
                    self.joints.give_back(index);
                }
                request.phase = Phase::Feeding { peer, region, receive, sent: 0, len };
                self.feeding.push_back(id);
                true
            }
            other => {
                request.phase = other;
                false
            }
        }
    }

    fn streamed(&mut self, id: RequestId, offset: u64, data: &[u8]) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return false };
        let Phase::Streaming { region, expected, received } = &mut request.phase else { return false };
        if offset.checked_add(data.len() as u64).is_none_or(|end| end > *expected) {
            return false;
        }
        region.write(offset as usize, data);
        *received += data.len() as u64;
        if *received == *expected {
            let completion = request.completion.clone();
            self.interest -= 1;
            self.complete(id, completion);
        }
        true
    }

    // ---- the way out -----------------------------------------------------------------------------------------------

    /// Sends a small packet, or queues it behind others.
    pub fn control(&mut self, device: &mut dyn Device, to: Peer, meta: Meta, data: &[u8], urgency: Urgency) {
        self.queue(device, to, Waiting::Control { meta, data: SmallVec::from_slice(data), urgency });
    }

    fn tell(&mut self, device: &mut dyn Device, to: Peer, meta: Meta, data: &[u8]) {
        self.control(device, to, meta, data, Urgency::Normal);
    }

    fn queue(&mut self, device: &mut dyn Device, to: Peer, packet: Waiting) {
        if self.broken.is_some() {
            return;
        }
        let first = self.backlog[to as usize].is_empty();
        self.backlog[to as usize].push_back(packet);
        if first {
            self.flush_peer(device, to);
            if !self.backlog[to as usize].is_empty() {
                self.behind.push(to);
            }
        }
    }

    /// Sends what waits for this peer as far as there is room; true if anything went.
    fn flush_peer(&mut self, device: &mut dyn Device, to: Peer) -> bool {
        let mut any = false;
        while let Some(mut packet) = self.backlog[to as usize].pop_front() {
            if let Waiting::Parts { request, parts } = &mut packet {
                let (request, before) = (*request, parts.sent);
                match parts.push(device, to) {
                    Ok(true) => {
                        any = true;
                        self.complete_send(request);
                    }
                    Ok(false) => {
                        any |= parts.sent > before;
                        self.backlog[to as usize].push_front(packet);
                        return any;
                    }
                    Err(error) => {
                        let failure = Some(error.into());
                        self.complete(request, Completion { failure, ..Completion::default() });
                    }
                }
                continue;
            }
            let sent = match &packet {
                Waiting::Parts { .. } => unreachable!("parts are sent above"),
                Waiting::Control { meta, data, urgency } => device.send(to, meta, Data::Bytes(data), *urgency),
                Waiting::Eager { request, meta, region, sync } => send_eager(device, to, meta, region, sync.then_some(request.to_wire())),
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
                    let failure = Some(error.into());
                    self.complete(request, Completion { failure, ..Completion::default() });
                }
                (Err(error), _) => self.break_down(error.into()),
            }
        }
        any
    }

    /// Sends what waits, as far as there is room; true if anything went.
    pub fn flush(&mut self, device: &mut dyn Device) -> bool {
        let mut any = false;
        for i in (0..self.behind.len()).rev() {
            let to = self.behind[i];
            any |= self.flush_peer(device, to);
            if self.broken.is_some() {
                return any;
            }
            if self.backlog[to as usize].is_empty() {
                self.behind.swap_remove(i);
            }
        }
        for _ in 0..self.feeding.len() {
            let Some(id) = self.feeding.pop_front() else { break };
            match self.feed(device, id) {
                Ok((sent, finished)) => {
                    any |= sent;
                    if !finished {
                        self.feeding.push_back(id);
                    }
                }
                Err(error) => self.break_down(error.into()),
            }
        }
        any
    }

    /// Streams a message as far as there is room: whether anything went, and whether that was all.
    fn feed(&mut self, device: &mut dyn Device, id: RequestId) -> Result<(bool, bool), DeviceError> {
        let mut any = false;
        loop {
            let Some(request) = self.requests.get_mut(id) else { return Ok((any, true)) };
            let Phase::Feeding { peer, region, receive, sent, len } = &mut request.phase else { return Ok((any, true)) };
            if *sent == *len {
                self.settle_send(id, false);
                return Ok((true, true));
            }
            let part = (*len - *sent).min(STREAM_BYTES.min(device.max_data()) as u64) as usize;
            let offset = *sent as usize;
            let meta = wire::about(wire::STREAM, *receive, *sent);
            // Urgent, since the receiver may be computing and somebody must empty the lane.
            match device.send(*peer, &meta, Data::Fill(part, &mut |to| region.read(offset, to)), Urgency::Urgent)? {
                Sent::Done => {
                    *sent += part as u64;
                    any = true;
                }
                Sent::NoRoom => return Ok((any, false)),
            }
        }
    }

    /// True if packets or parts wait for room.
    pub fn has_backlog(&self) -> bool {
        !self.behind.is_empty() || !self.feeding.is_empty()
    }

    /// Asks all peers for which something waits to make room and to wake this process then.
    pub fn want_room(&mut self, device: &mut dyn Device) {
        for &peer in &self.behind {
            device.want_room(peer);
        }
        for &id in &self.feeding {
            if let Some(Phase::Feeding { peer, .. }) = self.requests.get(id).map(|r| &r.phase) {
                device.want_room(*peer);
            }
        }
    }
}

/// The end of a receive into `room` bytes.
#[inline]
fn received(envelope: &Envelope, sent: u64, room: u64) -> Completion {
    let failure = (sent > room).then_some(Failure::Truncated { sent, room });
    Completion { source: envelope.source, tag: envelope.tag, bytes: sent.min(room), cancelled: false, failure }
}

/// An empty list with room for `bytes` bytes, if there is memory for it.
#[inline]
fn room_for(bytes: usize) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    list.try_reserve_exact(bytes).ok().map(|()| list)
}

#[inline]
fn send_eager(device: &mut dyn Device, to: Peer, meta: &Meta, region: &Region, sync: Option<u64>) -> Result<Sent, DeviceError> {
    let len = region.len();
    match sync {
        None => device.send(to, meta, Data::Fill(len, &mut |bytes| region.read(0, bytes)), Urgency::Normal),
        Some(send) => {
            let mut fill = |bytes: &mut [u8]| {
                bytes[..8].copy_from_slice(&send.to_ne_bytes());
                region.read(0, &mut bytes[8..]);
            };
            device.send(to, meta, Data::Fill(len + 8, &mut fill), Urgency::Normal)
        }
    }
}

impl State {
    /// How a request ended, if it has.
    pub fn end_of(&self, id: RequestId) -> Option<Completion> {
        let request = self.requests.get(id)?;
        matches!(request.phase, Phase::Done).then(|| request.completion.clone())
    }

    /// An offered send whose receiver is copying and could be helped: its joint, and the memory that it reads.
    pub fn joint_to_help(&mut self, device: &dyn Device) -> Option<(usize, Peer, Region)> {
        let index = (0..self.joints.lent.len())
            .find(|&i| self.joints.lent[i].is_some() && self.joints.busy & (1 << i) == 0 && device.joints(self.rank)[i].is_open())?;
        let Phase::Offered { peer, region, .. } = &self.requests.get(self.joints.lent[index]?)?.phase else { return None };
        let found = (index, *peer, region.clone());
        self.joints.busy |= 1 << index;
        Some(found)
    }

    /// The thread that helped with a joint is done.
    pub fn helped(&mut self, index: usize) {
        self.joints.busy &= !(1 << index);
    }

    /// Sends whose receivers have not taken them, but that nobody waits for any more.
    pub fn sends_pending(&self) -> usize {
        self.requests.released_sends()
    }
}
