//! Requests: what is under way, and how it ended.
//!
//! | phase | what is awaited | next |
//! |---|---|---|
//! | `Posted` | a matching message | `Pulling`, `Arriving`, `Streaming`, `Filling` or done; done (cancelled) |
//! | `Pulling` | the thread that copies from the sender's memory, without the lock | done; `Streaming` if refused |
//! | `Arriving` | the next parts of the message | done |
//! | `Streaming` | the rest of the bytes from the sender | done |
//! | `Filling` | the device, which has all bytes written to their place | done |
//! | `Queued` | room on the lane for an eager message | done, or `Unmatched` for a synchronous one |
//! | `Unmatched` | the receiver's word that the message was matched | done; done (cancelled) |
//! | `Offered` | the receiver's word: fetched, or stream or write it | done, `Feeding`, `Pushing`; done (cancelled) |
//! | `Feeding` | room for the next part, unless a device sends all; then that no device reads the message any more | done |
//! | `Pushing` | the thread that writes to the receiver's memory, without the lock | done; `Feeding` if refused |
//! | `Local` | a matching receive in this process | done; done (cancelled) |
//! | `Done` | the owner's look | free |
//!
//! If the peer that is needed dies, every phase but `Done` and `Local` ends with a failure (`state::death`).
//!
//! All fields are touched under the engine's lock only, except that `Pulling` and `Pushing` leave the region to the
//! thread that copies.

use crate::choice::Way;
use crate::matching::{EntryId, Envelope};
use crate::memory::Region;
use limosa_device::{DeviceError, Peer};
use std::fmt;

/// Names a request; a stale name is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    index: u32,
    generation: u32,
}

impl RequestId {
    /// As one word, for packets.
    pub fn to_wire(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The name in few bits.
    pub fn short(self) -> Short {
        Short { index: self.index, generation: self.generation % Short::GENERATIONS }
    }

    /// From a packet's word.
    pub fn from_wire(word: u64) -> RequestId {
        RequestId { index: word as u32, generation: (word >> 32) as u32 }
    }
}

/// A request's name in few bits. A stale one is recognised until [`Short::DISTANCE`] further requests have been
/// started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Slot.
    pub index: u32,
    /// Which use of the slot.
    pub generation: u32,
}

impl Short {
    /// Generations that are told apart.
    pub const GENERATIONS: u32 = 1 << 11;
    /// Requests that can be started before a name may come again: once the first slots have been freed, more than
    /// [`RESTING`] are used between two uses of the same one.
    pub const DISTANCE: u32 = 1 << 16;
    /// Slots up to which receives are started on the fast path ([`crate::Engine::try_start_receive`]).
    pub const FAST: usize = 1 << 16;
}

/// Free slots that are kept back, so that a slot is not used again before this many others. More would make names last
/// longer, and spread requests over more of the processor's cache.
const RESTING: usize = 32;

const _: () = assert!((Short::GENERATIONS - 1) * (RESTING as u32 + 1) >= Short::DISTANCE);

/// There is no such request, or not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// What the layer above wants to remember of a request that it does not keep itself. Requests with a label can be found
/// by their short names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Context id of the communicator.
    pub context: u64,
    /// A word of the layer above.
    pub note: usize,
    /// The partner's rank, `None` for any.
    pub peer: Option<i32>,
    /// The tag, `None` for any.
    pub tag: Option<i32>,
    /// A send, or a receive.
    pub is_send: bool,
}

/// What went wrong with an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message was longer than the receive buffer; the first `room` bytes were received.
    Truncated {
        /// Bytes of the message.
        sent: u64,
        /// Bytes of the receive buffer.
        room: u64,
    },
    /// There is no memory left for messages; says for which.
    NoMemory(String),
    /// The device failed; says how.
    Device(String),
    /// The partner has died, or cannot be reached any more; says who and how that is known.
    PeerDied(String),
    /// Something outside the program keeps processes that live from exchanging messages; says who and what.
    Severed(String),
    /// The program wanted the call to end ([`crate::interrupt`]), and what it waited for was withdrawn.
    Interrupted,
    /// A collective call on this context was interrupted here: this process is out of step with the others.
    OutOfStep,
    /// The members of a group have called different collectives on this context; says who called what.
    Disagreement {
        /// What sort of difference it is, as the layer above has numbered it.
        class: i32,
        /// Who called what.
        detail: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Truncated { sent, room } => {
                write!(f, "a message of {sent} bytes arrived for a receive buffer of {room} bytes")
            }
            Failure::NoMemory(what) | Failure::Device(what) | Failure::PeerDied(what) | Failure::Severed(what) => {
                f.write_str(what)
            }
            Failure::Disagreement { detail, .. } => f.write_str(detail),
            Failure::Interrupted => f.write_str("the program was interrupted while it waited here"),
            Failure::OutOfStep => f.write_str(
                "an earlier collective call on this communicator was interrupted here, so its ranks are out of step: \
                 go on with a communicator on which none was interrupted, or end the job",
            ),
        }
    }
}

impl std::error::Error for Failure {}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        match error {
            DeviceError::NoMemory { .. } => Failure::NoMemory(error.to_string()),
            DeviceError::Corrupt { .. } => Failure::Device(error.to_string()),
            DeviceError::Severed { .. } | DeviceError::Storage { .. } => Failure::Severed(error.to_string()),
            DeviceError::Died { .. } | DeviceError::Left { .. } => Failure::PeerDied(error.to_string()),
        }
    }
}

/// How an operation ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Rank of the sender in the communicator (receives).
    pub source: i32,
    /// Tag (receives).
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
    /// The operation was cancelled.
    pub cancelled: bool,
    /// What went wrong, if anything; boxed, since ends are handed about a lot and failures are rare.
    pub failure: Option<Box<Failure>>,
}

impl Completion {
    /// The end of an operation that failed.
    #[cold]
    pub(crate) fn failed(failure: Failure) -> Completion {
        Completion { failure: Some(Box::new(failure)), ..Completion::default() }
    }
}

/// What was received by a receive that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What is to happen when a request is done. Runs without the engine's lock.
pub type Continuation = Box<dyn FnOnce(&crate::Engine, Completion) + Send>;

/// Who wants to know about the end of a request.
pub(crate) enum Owner {
    /// Somebody will look.
    Waiter,
    /// Nobody; the slot is freed at the end.
    Nobody,
    /// This is run at the end, and the slot freed.
    Continuation(Continuation),
}

/// A list of contiguous pieces as a peer reads it: address, length.
pub(crate) type PieceList = Box<[(u64, u64)]>;

/// See the table above, and for `packets` [`limosa_device::Device::is_away`]. Phases own nothing, so that changing one
/// is a plain store.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    Posted { entry: EntryId },
    Pulling,
    Arriving,
    Streaming { peer: Peer, expected: u64, received: u64 },
    Filling { peer: Peer },
    Queued,
    Unmatched { peer: Peer, envelope: Envelope },
    Offered { peer: Peer, envelope: Envelope, joint: Option<usize> },
    Feeding { peer: Peer, receive: u64, sent: u64, len: u64, packets: u32 },
    Pushing { peer: Peer, receive: u64, len: u64 },
    Local { envelope: Envelope },
    Done,
}

pub(crate) struct Request {
    pub phase: Phase,
    /// The message's memory, as long as the protocols need it.
    pub region: Region,
    /// What an offer names, which the receiver reads from here.
    pub pieces: PieceList,
    /// Which way an offered message comes, and since when.
    pub coming: Option<(Way, u64)>,
    pub owner: Owner,
    pub label: Option<Label>,
    /// See [`Requests::turn`].
    pub born: u64,
    pub completion: Completion,
}

impl Request {
    /// This is a send that `peer` has not taken yet, so that a packet of that peer may end it.
    pub fn is_send_to(&self, peer: Peer) -> bool {
        match self.phase {
            Phase::Unmatched { peer: to, .. } | Phase::Offered { peer: to, .. } | Phase::Feeding { peer: to, .. } => {
                to == peer
            }
            _ => false,
        }
    }

    /// Nothing is awaited any more: lets go of the message's memory.
    #[inline]
    pub fn done(&mut self) {
        self.phase = Phase::Done;
        self.coming = None;
        self.region.clear();
        if !self.pieces.is_empty() {
            self.pieces = Box::new([]);
        }
    }
}

/// What became of a request that was asked about.
pub(crate) enum Taken {
    /// There is none of this name.
    Unknown,
    /// It is not done.
    Pending,
    /// It was done, and is gone: its label's note, whether it was a send, and its end.
    Done { note: usize, is_send: bool, end: Completion },
}

struct Slot {
    generation: u32,
    /// The slot is in use. A free slot's contents are meaningless; they stay in place because moving them costs more
    /// than everything else here.
    used: bool,
    /// The free slot behind this free one.
    next: u32,
    request: Request,
}

/// All requests of a process.
#[derive(Default)]
pub(crate) struct Requests {
    slots: Vec<Slot>,
    free: FreeSlots,
    /// How often threads have fallen asleep for something new. Nobody who sleeps waits for a request of the present
    /// turn: it began later.
    pub turn: u64,
}

/// The free slots in the order in which they are used again: first freed, first used.
#[derive(Default)]
struct FreeSlots {
    first: u32,
    last: u32,
    len: usize,
}

impl FreeSlots {
    /// The slot that [`FreeSlots::pop`] would give; `None` while all are kept back.
    #[inline(always)]
    fn first(&self) -> Option<u32> {
        if self.len > RESTING { Some(self.first) } else { None }
    }

    /// Takes the next slot into use.
    #[inline(always)]
    fn pop<'s>(&mut self, slots: &'s mut [Slot]) -> Option<(u32, &'s mut Slot)> {
        let index = self.first()?;
        let slot = &mut slots[index as usize];
        self.first = slot.next;
        self.len -= 1;
        slot.used = true;
        Some((index, slot))
    }

    #[inline(always)]
    fn push(&mut self, slots: &mut [Slot], index: u32) {
        match self.len {
            0 => self.first = index,
            _ => slots[self.last as usize].next = index,
        }
        self.last = index;
        self.len += 1;
    }
}

impl Requests {
    /// The name of the request that is inserted next.
    #[inline]
    pub fn next_id(&self) -> RequestId {
        match self.free.first() {
            Some(index) => RequestId { index, generation: self.slots[index as usize].generation },
            None => RequestId { index: self.slots.len() as u32, generation: 1 },
        }
    }

    #[inline]
    pub fn insert(&mut self, phase: Phase, region: Region) -> RequestId {
        let Some((index, slot)) = self.free.pop(&mut self.slots) else { return self.grow(phase, region) };
        slot.request.phase = phase;
        slot.request.region = region;
        slot.request.born = self.turn;
        RequestId { index, generation: slot.generation }
    }

    /// True if the next request has a slot below [`Short::FAST`].
    #[inline(always)]
    pub fn is_small(&self) -> bool {
        self.slots.len() < Short::FAST
    }

    /// A labelled request that has succeeded already.
    #[inline(always)]
    pub fn insert_done(&mut self, label: Label, received: Received) -> RequestId {
        let (index, slot) = match self.free.pop(&mut self.slots) {
            Some(free) => free,
            None => {
                let index = self.grow(Phase::Done, Region::empty()).index;
                (index, &mut self.slots[index as usize])
            }
        };
        // The rest of a free slot is as in a request that is done.
        slot.request.label = Some(label);
        let Received { source, tag, bytes } = received;
        let end = &mut slot.request.completion;
        (end.source, end.tag, end.bytes) = (source, tag, bytes);
        RequestId { index, generation: slot.generation }
    }

    /// True if the labelled request of this name is done, somebody will ask about it, and it has neither failed nor
    /// been cancelled.
    #[inline(always)]
    pub fn has_succeeded(&self, short: Short) -> bool {
        self.find(short).is_some_and(|(_, request)| {
            matches!(request.phase, Phase::Done)
                && request.completion.failure.is_none()
                && !request.completion.cancelled
        })
    }

    /// Frees a request that [`Requests::has_succeeded`]; gives what it has received, `None` for a send. Nothing happens
    /// if it is gone.
    #[inline(always)]
    pub fn take_succeeded(&mut self, short: Short) -> Option<Received> {
        let slot = self.slots.get_mut(short.index as usize)?;
        if slot.generation % Short::GENERATIONS != short.generation || !slot.used {
            return None;
        }
        slot.used = false;
        slot.generation = slot.generation.wrapping_add(1);
        let is_send = slot.request.label.take().is_some_and(|label| label.is_send);
        let Completion { source, tag, bytes, .. } = slot.request.completion;
        self.free.push(&mut self.slots, short.index);
        if is_send { None } else { Some(Received { source, tag, bytes }) }
    }

    #[cold]
    fn grow(&mut self, phase: Phase, region: Region) -> RequestId {
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 requests are under way at once");
        let request = Request {
            phase,
            region,
            pieces: Box::new([]),
            coming: None,
            owner: Owner::Waiter,
            label: None,
            born: self.turn,
            completion: Completion::default(),
        };
        self.slots.push(Slot { generation: 1, used: true, next: 0, request });
        RequestId { index, generation: 1 }
    }

    #[inline]
    fn slot(&mut self, id: RequestId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation && slot.used)
    }

    #[inline]
    pub fn get(&self, id: RequestId) -> Option<&Request> {
        self.slots
            .get(id.index as usize)
            .filter(|slot| slot.generation == id.generation && slot.used)
            .map(|slot| &slot.request)
    }

    #[inline]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.slot(id).map(|slot| &mut slot.request)
    }

    /// The labelled request of this name that somebody will ask about.
    #[inline]
    pub fn find(&self, short: Short) -> Option<(RequestId, &Request)> {
        let slot = self.slots.get(short.index as usize)?;
        let known =
            slot.generation % Short::GENERATIONS == short.generation && slot.used && slot.request.label.is_some();
        let asked_about = known && matches!(slot.request.owner, Owner::Waiter);
        asked_about.then_some((RequestId { index: short.index, generation: slot.generation }, &slot.request))
    }

    /// Takes the end of the labelled request of this name.
    #[inline]
    pub fn take(&mut self, short: Short) -> Taken {
        let Some((id, request)) = self.find(short) else { return Taken::Unknown };
        match (&request.phase, &request.label) {
            (Phase::Done, Some(label)) => {
                let (note, is_send) = (label.note, label.is_send);
                self.remove(id).map_or(Taken::Unknown, |end| Taken::Done { note, is_send, end })
            }
            _ => Taken::Pending,
        }
    }

    /// Frees a request; gives its end.
    #[inline]
    pub fn remove(&mut self, id: RequestId) -> Option<Completion> {
        let slot = self.slot(id)?;
        slot.used = false;
        slot.generation = slot.generation.wrapping_add(1);
        slot.request.done();
        slot.request.owner = Owner::Waiter;
        slot.request.label = None;
        let completion = std::mem::take(&mut slot.request.completion);
        self.free.push(&mut self.slots, id.index);
        Some(completion)
    }
}

impl Requests {
    /// Requests that only a message can complete, as opposed to a copy that is being made.
    pub fn awaiting_messages(&self) -> Vec<RequestId> {
        self.in_phase(|phase| !matches!(phase, Phase::Done | Phase::Pulling | Phase::Pushing { .. }))
    }

    /// Requests in such a phase: for slow paths.
    pub fn in_phase(&self, wanted: impl Fn(&Phase) -> bool) -> Vec<RequestId> {
        let name = |(index, slot): (usize, &Slot)| RequestId { index: index as u32, generation: slot.generation };
        self.slots.iter().enumerate().filter(|(_, slot)| slot.used && wanted(&slot.request.phase)).map(name).collect()
    }

    /// True if a labelled request of this context has not been taken yet.
    pub fn has_labelled(&self, context: u64) -> bool {
        self.used().any(|r| r.label.is_some_and(|l| l.context == context))
    }

    /// Sends under way that were released by their owner.
    pub fn released_sends(&self) -> usize {
        let sends = |r: &Request| {
            matches!(r.owner, Owner::Nobody)
                && matches!(
                    r.phase,
                    Phase::Queued
                        | Phase::Unmatched { .. }
                        | Phase::Offered { .. }
                        | Phase::Feeding { .. }
                        | Phase::Pushing { .. }
                )
        };
        self.used().filter(|r| sends(r)).count()
    }

    fn used(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().filter(|slot| slot.used).map(|slot| &slot.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(requests: &mut Requests) -> RequestId {
        let id = requests.insert(Phase::Queued, Region::empty());
        requests.get_mut(id).expect("just inserted").label =
            Some(Label { context: 0, note: 0, peer: None, tag: None, is_send: true });
        id
    }

    #[test]
    fn a_stale_name_is_recognised_for_as_long_as_promised() {
        for window in [1, 2, 31, 32, 33, 64, 1000] {
            // Names of all ages: from the first use of the table, and from when slots are used again.
            for used_before in [0, 1, 40, 5000] {
                let mut requests = Requests::default();
                for _ in 0..used_before {
                    let id = labelled(&mut requests);
                    requests.remove(id);
                }
                let stale = labelled(&mut requests);
                requests.remove(stale);
                let mut started = 0;
                while started < Short::DISTANCE {
                    let ids: Vec<_> =
                        (0..window.min(Short::DISTANCE - started)).map(|_| labelled(&mut requests)).collect();
                    started += ids.len() as u32;
                    assert!(requests.find(stale.short()).is_none(), "after {started} requests, {window} at once");
                    for id in ids {
                        assert_eq!(requests.find(id.short()).map(|(found, _)| found), Some(id));
                        requests.remove(id);
                    }
                }
            }
        }
    }
}
