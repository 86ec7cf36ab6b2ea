//! The protocols: the state under the engine's lock, and the handling of packets.
//!
//! - **Eager**: up to the eager limit the bytes travel with the envelope; the send is complete when they are on the
//!   lane. Messages longer than a segment travel in several ([`crate::arriving`]).
//! - **Rendezvous**: longer messages are offered (`OFFER`, the RTS) and wait at the sender. The receiver pulls them
//!   from the sender's memory. Where it cannot (no cross-memory attach, or too many small pieces), it asks for them to
//!   be streamed (`ACCEPT`, the CTS).
//!
//! `sending` and `receiving` start messages; this file has the common parts and the packet handlers.
//!
//! Handlers run inside a device's poll, so they never touch its receiving side. Work that needs the device is queued
//! ([`Deferred`]), and so is work that needs the lock released ([`UnlockedJob`]). The engine does both right after the
//! poll.
//!
//! **Unexpected messages** are held, up to a limit ([`ProtocolState::is_full`]). Back-pressure beyond it:
//! - a visit that waits for nothing (of the helper, of the alarm, at the end of any call) takes no more packets. They
//!   stay on their lanes; when a lane is full, its sender's messages stay at the sender: a blocking send waits, a
//!   non-blocking one is queued;
//! - a call that needs a message (it receives, waits, tests, probes) takes every packet, since its message may be
//!   behind a flood of others. A waiting rank may thus hold more than the limit; only a lack of memory stops it;
//! - without such a call, packets are taken again when receives have reduced the held messages to half of the limit.
//!
//! Remote peers send at most a window of eager messages ahead of the receives ([`credit`]).
//!
//! When a packet is lost, because a device failed or there is no memory for it, messages may be missing or out of
//! order. All pending operations that wait for a message fail, and so do all that are started later
//! ([`ProtocolState::break_down`]).

use crate::arriving::{Arrival, ArrivalTarget, Arrivals};
use crate::choice::Choice;
use crate::completion::{Completion, Failure, RequestId};
use crate::engine::{Listeners, SleepConditions, Traffic};
use crate::handlers::{Actions, Handlers};
use crate::matching::{Envelope, Matcher, Pattern};
use crate::memory::Region;
use crate::request::{Continuation, Owner, Phase, Requests};
use crate::transfer::{Pull, Push};
use crate::wire::{self, Offer};
use limosa_base::{clock, reserve};
use limosa_device::{Devices, Meta, Peer, Urgency};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod credit;
mod death;
mod receiving;
mod sending;
mod straight;

use credit::Credit;
use death::Deaths;
pub use death::{Concerns, Needs};
use sending::Waiting;

/// Shortest message, in bytes, that both sides copy jointly: a shorter one is copied before the sender's help pays.
const MIN_JOINT: usize = 128 * 1024;

/// Bytes of a segment of an eager message; shorter messages travel whole.
pub(crate) const PART_BYTES: usize = 4096;
/// Length in bytes from which an eager message to a remote peer is not copied for the device, so that its send
/// completes a little later.
const FAR_LENT: usize = 32 * 1024;

/// Bytes of a segment of a streamed message: few enough that packing, transport and unpacking overlap. To a remote peer
/// a segment fills a packet.
const STREAM_BYTES: usize = 8 * 1024;

/// Completion rule of a send: when the message has left, or when it is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Standard and ready mode.
    Standard,
    /// Synchronous mode.
    Synchronous,
}

/// Memory in bytes for holding an unexpected message, beside its data.
const HELD_BYTES: usize = size_of::<Unexpected>() + 160;

/// A message for which no receive was posted.
pub(crate) enum Unexpected {
    Eager {
        from: Peer,
        data: Box<[u8]>,
        sync: Option<u64>,
    },
    /// A message in segments, held in this slot.
    Arriving {
        from: Peer,
        slot: usize,
        total: usize,
    },
    Offer {
        from: Peer,
        offer: Offer,
    },
    /// An offered message that is being fetched, or was, into this slot.
    Fetched {
        from: Peer,
        request: RequestId,
        slot: usize,
        total: usize,
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
            Unexpected::Arriving { total, .. } | Unexpected::Fetched { total, .. } => *total as u64,
            Unexpected::Offer { offer, .. } => offer.len,
            Unexpected::Local { len, .. } => *len,
        }
    }

    /// Returns whether the send completes only when the message is received.
    pub fn sender_waits(&self) -> bool {
        match self {
            Unexpected::Eager { sync, .. } => sync.is_some(),
            Unexpected::Arriving { .. } | Unexpected::Fetched { .. } => false,
            Unexpected::Offer { .. } | Unexpected::Local { .. } => true,
        }
    }
}

/// Work with the device, queued until the poll has ended.
pub(crate) enum Deferred {
    /// Fetch an offered message.
    Fetch(Pull),
    /// Send an offered message directly to the receive buffer, for which the receiver has given this ticket.
    Straight { request: RequestId, ticket: u64 },
    /// Send a packet of another layer.
    Packet { to: Peer, meta: Meta, data: SmallVec<[u8; 64]>, urgency: Urgency },
}

/// Work for a thread of the program only, without the lock.
pub type ProgramJob = Box<dyn FnOnce(&crate::Engine) + Send>;

/// Work that needs the lock released.
pub(crate) enum UnlockedJob {
    Pull(Pull),
    Push(Push),
    /// Take the packets that were left on their lanes.
    TakePackets,
    /// Run a function of another layer's handler.
    Layer(ProgramJob),
    Continue(Continuation, Completion),
}

/// The direct receive: a receive in which a thread is blocked. There is at most one, and it is older than all posted
/// receives. It is matched first, without being posted, and needs a request only for an offered message.
pub(crate) struct Direct {
    pattern: Pattern,
    region: Region,
    phase: DirectPhase,
    /// Epoch in which it began, as for requests.
    epoch: u64,
}

enum DirectPhase {
    Waiting,
    Arriving,
    Fetching(RequestId),
    Done(Completion),
}

/// Start of a blocking receive.
pub(crate) enum Begun {
    /// It is complete.
    Done(Completion),
    /// It became the direct receive.
    Direct,
    /// It became an ordinary request.
    Request(RequestId),
}

pub(crate) struct ProtocolState {
    pub rank: Peer,
    pub eager_limit: usize,
    /// Longest message, in bytes, that travels in one packet.
    whole_limit: usize,
    pub requests: Requests,
    pub matcher: Matcher<RequestId, Unexpected>,
    direct: Option<Direct>,
    arrivals: Arrivals,
    pub deferred: Vec<Deferred>,
    pub jobs: Vec<UnlockedJob>,
    /// Jobs for threads of the program only. Each counts as a continuation.
    pub for_program: Vec<ProgramJob>,
    backlog: Vec<VecDeque<Waiting>>,
    /// Peers with a backlog.
    backlogged: Vec<Peer>,
    /// Requests that are being streamed out.
    feeding: VecDeque<RequestId>,
    /// Posted receives beyond the eager limit, and sends that wait for their receiver: a reason to serve urgent
    /// traffic.
    pub interest: usize,
    /// Layers that serve peers: another reason.
    pub served: usize,
    /// Requests with continuations that are served: a reason to serve all traffic.
    pub continuations: usize,
    /// Set when a completion may concern a sleeping thread.
    pub completed: bool,
    /// Conditions of the sleeping threads.
    pub sleep_conditions: SleepConditions,
    /// Reason why messages have been lost.
    pub broken: Option<Failure>,
    /// Set when messages have been lost or a peer has died: a started operation may have failed already.
    pub impaired: bool,
    /// Copy of `impaired` for readers without the lock.
    pub is_impaired: Arc<AtomicBool>,
    pub deaths: Deaths,
    /// Memory in bytes that unexpected messages take.
    pub unexpected_bytes: usize,
    unexpected_limit: usize,
    credit: Credit,
    /// Counters since the start.
    pub traffic: Traffic,
    /// Set when packets were left on their lanes because of the limit.
    pub held_back: bool,
    /// Whether offered messages may be streamed although they could be pulled: a thread is here, and stays until its
    /// wait is over.
    pub may_stream: bool,
    /// Whether the helper makes this progress: the program may be computing, so waiting partners should do the copying.
    pub in_service: bool,
    choice: Choice,
    /// Handlers of packets that are not messages.
    pub handlers: Handlers,
    /// Listeners of collective contexts.
    pub listeners: Listeners,
    /// Joint copies in which this process can help.
    pub joints: Joints,
    /// Offers that were not announced to the receivers' helpers. A sender that waits anyway announces them only after a
    /// while.
    pub unannounced: SmallVec<[(Peer, RequestId); 4]>,
}

/// The joint copies of this process.
#[derive(Default)]
pub(crate) struct Joints {
    /// The send to which each is lent.
    lent: SmallVec<[Option<RequestId>; 4]>,
    /// Bit mask of those that a thread is helping with: not to be lent until it has finished.
    busy: u32,
    /// Number of lent joint copies.
    pub count: usize,
}

impl Joints {
    fn lend(&mut self, devices: &Devices, rank: Peer) -> Option<usize> {
        let all = devices.joints(rank);
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

impl ProtocolState {
    pub fn new(rank: Peer, size: u32, eager_limit: usize, unexpected_limit: usize) -> ProtocolState {
        ProtocolState {
            rank,
            eager_limit,
            whole_limit: eager_limit.min(PART_BYTES),
            requests: Requests::default(),
            matcher: Matcher::default(),
            direct: None,
            arrivals: Arrivals::new(size),
            deferred: Vec::new(),
            jobs: Vec::new(),
            for_program: Vec::new(),
            backlog: (0..size).map(|_| VecDeque::new()).collect(),
            backlogged: Vec::new(),
            feeding: VecDeque::new(),
            interest: 0,
            served: 0,
            continuations: 0,
            completed: false,
            sleep_conditions: SleepConditions::default(),
            broken: None,
            impaired: false,
            is_impaired: Arc::default(),
            deaths: Deaths::default(),
            unexpected_bytes: 0,
            unexpected_limit,
            credit: Credit::new(size, unexpected_limit),
            traffic: Traffic::default(),
            held_back: false,
            may_stream: false,
            in_service: false,
            choice: Choice::default(),
            handlers: Handlers::default(),
            listeners: Listeners::default(),
            joints: Joints::default(),
            unannounced: SmallVec::new(),
        }
    }

    /// Returns whether there are jobs; with `by_program`, including those for threads of the program only.
    #[inline]
    pub fn has_jobs(&self, by_program: bool) -> bool {
        !self.jobs.is_empty() || (by_program && !self.for_program.is_empty())
    }

    /// Adds a peer, with the next number.
    pub fn add_peer(&mut self) {
        self.backlog.push(VecDeque::new());
        self.arrivals.add_peer();
        self.credit.add_peer();
    }

    // ---- completion of requests ------------------------------------------------------------------------------------

    /// Records the completion of an operation of this epoch: a thread may sleep for it, or for any completion.
    #[inline]
    fn note_end(&mut self, epoch: u64) {
        self.completed |= epoch != self.requests.epoch || self.sleep_conditions.include_all();
    }

    #[inline]
    pub fn complete(&mut self, id: RequestId, completion: Completion) {
        let Some(request) = self.requests.get_mut(id) else { return };
        let epoch = request.epoch;
        if let Phase::Offered { joint: Some(index), .. } = &request.phase {
            self.joints.give_back(*index);
        }
        request.done();
        request.completion = completion;
        let is_awaited = matches!(request.owner, Owner::Waiter);
        self.note_end(epoch);
        if !is_awaited {
            let request = self.requests.get_mut(id).expect("it was there a moment ago");
            let owner = std::mem::replace(&mut request.owner, Owner::Released);
            let completion = self.requests.remove(id).expect("it was there a moment ago");
            if let Owner::Continuation { then, is_served } = owner {
                self.completed = true;
                self.continuations -= usize::from(is_served);
                self.jobs.push(UnlockedJob::Continue(then, completion));
            }
        }
    }

    /// Ends all communication, permanently. The first reason is kept.
    #[cold]
    pub fn break_down(&mut self, failure: Failure) {
        if self.broken.is_some() {
            return;
        }
        self.broken = Some(failure.clone());
        self.impair();
        self.backlog.iter_mut().for_each(VecDeque::clear);
        self.backlogged.clear();
        self.feeding.clear();
        self.arrivals.clear();
        self.interest = 0;
        if let Some(Direct { phase: phase @ (DirectPhase::Waiting | DirectPhase::Arriving), .. }) = &mut self.direct {
            *phase = DirectPhase::Done(Completion::failed(failure.clone()));
            self.completed = true;
        }
        for id in self.requests.awaiting_messages() {
            self.complete(id, Completion::failed(failure.clone()));
        }
    }

    /// Marks the engine as impaired: from now on a started operation may have failed already. Wakes all sleeping
    /// threads.
    fn impair(&mut self) {
        self.impaired = true;
        self.completed = true;
        self.is_impaired.store(true, Ordering::Relaxed);
    }

    /// Inserts a request that has failed already.
    #[cold]
    fn failed(&mut self, failure: Failure) -> RequestId {
        let id = self.requests.insert(Phase::Done, Region::empty());
        self.complete(id, Completion::failed(failure));
        id
    }

    fn complete_receive(&mut self, id: RequestId, envelope: &Envelope, sent: u64, room: u64) {
        self.traffic.receive(sent.min(room));
        self.complete(id, received(envelope, sent, room));
    }

    fn complete_send(&mut self, id: RequestId) {
        self.complete(id, Completion::default());
    }

    /// Completes a send on the word of its receiver `peer`. Returns false if there is no such send.
    fn settle_send_to(&mut self, peer: Peer, id: RequestId, cancelled: bool) -> bool {
        let waits = self.requests.get(id).is_some_and(|r| r.is_send_to(peer));
        if waits {
            self.settle_send(id, cancelled);
        }
        waits
    }

    /// Completes a send that waited for its receiver, whatever the receiver did with the message.
    fn settle_send(&mut self, id: RequestId, cancelled: bool) {
        self.interest -= 1;
        self.unannounced.retain(|(_, offer)| *offer != id);
        self.complete(id, Completion { cancelled, ..Completion::default() });
    }

    // ---- arriving packets ------------------------------------------------------------------------------------------

    /// Handles one packet. Returns false if the packet is invalid.
    #[must_use]
    pub fn handle(&mut self, from: Peer, meta: &Meta, data: &[u8], answers: &mut Vec<(Peer, Meta)>) -> bool {
        if self.impaired && self.is_ignored(from, meta.kind) {
            return true;
        }
        let envelope = || wire::checked_envelope(meta);
        match meta.kind {
            wire::EAGER => {
                let Some(envelope) = envelope() else { return false };
                self.eager_arrived(from, &envelope, data, None, answers);
            }
            wire::EAGER_SYNC => {
                let (Some(envelope), Some(send)) = (envelope(), wire::word(data, 0)) else { return false };
                self.eager_arrived(from, &envelope, &data[8..], Some(send), answers);
            }
            wire::BEGIN => {
                let (Some(envelope), Some(total)) = (envelope(), wire::word(data, 0)) else { return false };
                return self.begin_arrival(from, &envelope, total);
            }
            wire::PART => return self.part_arrived(from, data),
            wire::OFFER | wire::OFFER_SHORT => {
                let (Some(envelope), Some(offer)) = (envelope(), Offer::decode(data)) else { return false };
                self.offer_arrived(from, &envelope, offer, meta.kind == wire::OFFER_SHORT);
            }
            wire::FETCH => return self.offers_fetched(from, data),
            wire::ACCEPT | wire::ACCEPT_STRAIGHT => return self.offer_accepted(from, meta, data),
            wire::WRITTEN => return self.written(RequestId::from_wire(meta.words[0]), from),
            wire::STREAM => return self.streamed(RequestId::from_wire(meta.words[0]), from, meta.words[1], data),
            wire::DONE => return self.settle_send_to(from, RequestId::from_wire(meta.words[0]), false),
            wire::RECALL => {
                let (Some(envelope), Some(send)) = (envelope(), wire::word(data, 0)) else { return false };
                let given = self.recall_arrived(from, &envelope, send);
                answers.push((from, wire::about(wire::RECALLED, send, u64::from(given))));
            }
            // A send that was not returned may have completed meanwhile.
            wire::RECALLED if meta.words[1] == 0 => {}
            wire::RECALLED => return self.given_back(from, RequestId::from_wire(meta.words[0])),
            wire::END_GROUP => return self.group_ended(meta, data),
            wire::ASK => answers.extend(self.credit.ask(from, meta.words[0]).map(|answer| (from, answer))),
            wire::CREDIT => return self.credit.grant(from, meta.words[0]),
            wire::SAY => return self.told(from, meta, data),
            wire::LEAVE => self.peer_left(from),
            wire::PARTED => return self.others_parted(from, meta, data),
            kind => {
                let Some(handler) = self.handlers.find(kind) else { return false };
                return handler(
                    &mut Actions { deferred: &mut self.deferred, jobs: &mut self.jobs, completed: &mut self.completed },
                    from,
                    meta,
                    data,
                );
            }
        }
        true
    }

    /// Handles `END_GROUP`: another member has found that the members of a group disagree.
    fn group_ended(&mut self, meta: &Meta, data: &[u8]) -> bool {
        let Some((context, failure)) = wire::disagreement(meta, data) else { return false };
        self.end_group(context, failure);
        true
    }

    /// Handles `SAY`: a statement of another member about a group.
    fn told(&mut self, from: Peer, meta: &Meta, data: &[u8]) -> bool {
        let Some((context, words)) = wire::saying(meta, data) else { return false };
        self.jobs.extend(self.listeners.told(from, context, words));
        true
    }

    /// Returns whether a packet comes too late and must be ignored: the rest of a burst of which one packet was lost,
    /// or a dead peer's answer to a failed send.
    #[cold]
    fn is_ignored(&self, from: Peer, kind: u8) -> bool {
        let answers_a_send =
            matches!(kind, wire::FETCH | wire::ACCEPT | wire::ACCEPT_STRAIGHT | wire::DONE | wire::RECALLED);
        self.broken.is_some() || self.deaths.is_silent(from) || (answers_a_send && self.deaths.includes(from))
    }

    #[inline]
    fn eager_arrived(
        &mut self,
        from: Peer,
        envelope: &Envelope,
        data: &[u8],
        sync: Option<u64>,
        answers: &mut Vec<(Peer, Meta)>,
    ) {
        if let Some(direct) = self.direct_for(envelope) {
            let (sent, room) = (data.len(), direct.region.len());
            direct.region.write(0, &data[..sent.min(room)]);
            direct.phase = DirectPhase::Done(received(envelope, sent as u64, room as u64));
            let epoch = direct.epoch;
            self.note_end(epoch);
            if let Some(send) = sync {
                answers.push((from, wire::about(wire::DONE, send, 0)));
            }
            return;
        }
        match self.matcher.arrive(envelope) {
            Some(id) => {
                self.deliver(id, envelope, data);
                if let Some(send) = sync {
                    answers.push((from, wire::about(wire::DONE, send, 0)));
                }
            }
            None => {
                let Some(mut kept) = self.room_for_unexpected(from, data.len()) else { return };
                kept.extend_from_slice(data);
                self.hold(envelope, Unexpected::Eager { from, data: kept.into(), sync });
            }
        }
    }

    /// Completes a matched receive, which has been removed from the matcher, with a whole message.
    #[inline]
    fn deliver(&mut self, id: RequestId, envelope: &Envelope, data: &[u8]) {
        let request = self.requests.get_mut(id).expect("a posted receive lives until it is matched");
        let (sent, room) = (data.len(), request.region.len());
        request.region.write(0, &data[..sent.min(room)]);
        self.interest -= usize::from(room > self.eager_limit);
        self.traffic.receive(sent.min(room) as u64);
        let end = received(envelope, sent as u64, room as u64);
        if let Owner::Waiter = request.owner {
            request.done();
            request.completion = end;
            let epoch = request.epoch;
            self.note_end(epoch);
        } else {
            self.complete(id, end);
        }
    }

    /// Allocates memory for an unexpected message. Ends all communication if there is none.
    fn room_for_unexpected(&mut self, from: Peer, bytes: usize) -> Option<Vec<u8>> {
        let room = if self.can_hold() { room_for(bytes) } else { None };
        if room.is_none() {
            self.no_memory(from, bytes as u64);
        }
        room
    }

    /// Makes room for one more unexpected message, apart from its data. Returns false if there is no memory.
    fn can_hold(&mut self) -> bool {
        reserve::hold() && self.matcher.make_room() && self.arrivals.make_room()
    }

    #[cold]
    fn no_memory(&mut self, from: Peer, bytes: u64) {
        self.break_down(Failure::NoMemory(format!(
            "no memory for a message of {bytes} bytes from process {from} that no receive was posted for; {} bytes are \
             taken by such messages \
             already: receive them sooner, or synchronise the processes",
            self.unexpected_bytes
        )));
    }

    /// Handles `BEGIN`: the segments of a message will follow.
    fn begin_arrival(&mut self, from: Peer, envelope: &Envelope, total: u64) -> bool {
        if self.arrivals.from(from).is_some() || total == 0 || total > wire::MAX_EAGER as u64 {
            return false;
        }
        let total = total as usize;
        let target = if let Some(direct) = self.direct_for(envelope) {
            direct.phase = DirectPhase::Arriving;
            ArrivalTarget::Direct
        } else if let Some(id) = self.matcher.arrive(envelope) {
            let region = self.take_posted(id);
            self.requests.get_mut(id).expect("it was posted").phase = Phase::Arriving;
            ArrivalTarget::Request(id, region)
        } else {
            let Some(room) = self.room_for_unexpected(from, total) else { return true };
            let slot = self.arrivals.keep(room);
            self.hold(envelope, Unexpected::Arriving { from, slot, total });
            ArrivalTarget::Kept(slot)
        };
        *self.arrivals.from(from) = Some(Arrival { envelope: *envelope, total, received: 0, target });
        true
    }

    /// Handles `PART`: the next segment of the message that began last.
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
            ArrivalTarget::Direct => write(&self.direct.as_ref().expect("it waits for the rest").region),
            ArrivalTarget::Request(_, region) => write(region),
            ArrivalTarget::Kept(slot) => {
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
            ArrivalTarget::Direct => {
                let direct = self.direct.as_mut().expect("it waits for the rest");
                direct.phase = DirectPhase::Done(received(&envelope, total, direct.region.len() as u64));
                let epoch = direct.epoch;
                self.note_end(epoch);
            }
            ArrivalTarget::Request(id, region) => self.complete_receive(id, &envelope, total, region.len() as u64),
            ArrivalTarget::Kept(_) => {}
        }
        true
    }

    /// Handles `ACCEPT`: the receiver of an offered message asks for its bytes.
    fn offer_accepted(&mut self, from: Peer, meta: &Meta, data: &[u8]) -> bool {
        let (id, receive) = (RequestId::from_wire(meta.words[0]), meta.words[1]);
        match (meta.kind, wire::word(data, 0), wire::word(data, 1)) {
            (wire::ACCEPT, Some(len), address) => self.accepted(id, from, receive, len, address),
            (_, Some(len), Some(ticket)) => self.accepted_straight(id, from, receive, len, ticket),
            _ => false,
        }
    }

    fn accepted(&mut self, id: RequestId, from: Peer, receive: u64, len: u64, address: Option<u64>) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return false };
        match request.phase {
            Phase::Offered { peer, joint, .. } if peer == from && len <= request.region.len() as u64 => {
                if let Some(index) = joint {
                    self.joints.give_back(index);
                }
                if let Some(address) = address {
                    request.phase = Phase::Pushing { peer, receive, len };
                    self.jobs.push(UnlockedJob::Push(Push {
                        request: id,
                        to: peer,
                        region: request.region.clone(),
                        address,
                        bytes: len,
                    }));
                } else {
                    request.phase = Phase::Feeding { peer, receive, sent: 0, len, packets: 0 };
                    self.feeding.push_back(id);
                }
                true
            }
            _ => false,
        }
    }

    fn streamed(&mut self, id: RequestId, from: Peer, offset: u64, data: &[u8]) -> bool {
        let Some(request) = self.requests.get_mut(id) else { return false };
        if let Phase::Fetching { .. } = request.phase {
            return self.fetched(id, from, offset, data);
        }
        let Phase::Streaming { peer, expected, received } = &mut request.phase else { return false };
        let bytes = data.len() as u64;
        if *peer != from || offset.checked_add(bytes).is_none_or(|end| end > *expected) || bytes > *expected - *received
        {
            return false;
        }
        // A message that was fetched before it was received may be longer than the receive buffer.
        let room = request.region.len().saturating_sub(offset as usize);
        if room > 0 {
            request.region.write(offset as usize, &data[..data.len().min(room)]);
        }
        *received += bytes;
        if *received == *expected {
            self.streamed_all(id);
        }
        true
    }

    /// Handles `WRITTEN`: the sender has written a message to the receive buffer.
    fn written(&mut self, id: RequestId, from: Peer) -> bool {
        let waits = self
            .requests
            .get(id)
            .is_some_and(|r| matches!(r.phase, Phase::Streaming { peer, received: 0, .. } if peer == from));
        if waits {
            self.streamed_all(id);
        }
        waits
    }

    fn streamed_all(&mut self, id: RequestId) {
        let Some(completion) = self.requests.get(id).map(|r| r.completion.clone()) else { return };
        self.interest -= 1;
        self.arrived(id);
        self.complete(id, completion);
    }
}

impl ProtocolState {
    /// Records the duration of a rendezvous message for the choice of the path.
    fn arrived(&mut self, id: RequestId) {
        let Some(request) = self.requests.get(id) else { return };
        if let Some((path, since)) = request.incoming {
            self.choice.learn(path, request.completion.bytes, clock::now_ns().saturating_sub(since));
        }
    }
}

/// Returns the completion of a receive into `room` bytes.
#[inline]
fn received(envelope: &Envelope, sent: u64, room: u64) -> Completion {
    let failure = if sent > room { Some(Box::new(Failure::Truncated { sent, room })) } else { None };
    Completion { source: envelope.source, tag: envelope.tag, bytes: sent.min(room), cancelled: false, failure }
}

/// Allocates an empty vector with room for `bytes` bytes, if there is memory.
#[inline]
fn room_for(bytes: usize) -> Option<Vec<u8>> {
    let mut list = Vec::new();
    list.try_reserve_exact(bytes).ok().map(|()| list)
}

impl ProtocolState {
    /// Returns the number of messages that are arriving in segments, or were and are held.
    pub fn arriving(&self) -> usize {
        self.arrivals.count()
    }

    /// Returns the completion of a request, if it is complete.
    pub fn end_of(&self, id: RequestId) -> Option<Completion> {
        let request = self.requests.get(id)?;
        matches!(request.phase, Phase::Done).then(|| request.completion.clone())
    }

    /// Returns an offered send whose receiver is copying and can be helped: its joint copy, receiver and source region.
    pub fn joint_to_help(&mut self, devices: &Devices) -> Option<(usize, Peer, Region)> {
        let index = (0..self.joints.lent.len()).find(|&i| {
            self.joints.lent[i].is_some() && self.joints.busy & (1 << i) == 0 && devices.joints(self.rank)[i].is_open()
        })?;
        let request = self.requests.get(self.joints.lent[index]?)?;
        let Phase::Offered { peer, .. } = request.phase else { return None };
        let found = (index, peer, request.region.clone());
        self.joints.busy |= 1 << index;
        Some(found)
    }

    /// Records that a thread has finished helping with a joint copy.
    pub fn helped(&mut self, index: usize) {
        self.joints.busy &= !(1 << index);
        if self.impaired {
            self.end_sends_to_the_dead();
        }
    }

    /// Returns the number of released sends that their receivers have not taken.
    pub fn sends_pending(&self) -> usize {
        self.requests.released_sends()
    }
}
