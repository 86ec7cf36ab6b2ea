//! Requests: pending operations, and completed ones until their owners take them.
//!
//! | phase | waits for | next |
//! |---|---|---|
//! | `Posted` | a matching message | `Pulling`, `Arriving`, `Streaming`, `Filling` or done; done (cancelled) |
//! | `Pulling` | the thread that copies from the sender's memory, without the lock | done; `Streaming` if refused |
//! | `Arriving` | the next segments of the message | done |
//! | `Fetching` | the bytes of a message that no receive has matched, from the sender | done; `Streaming` when matched |
//! | `Streaming` | the rest of the bytes from the sender | done |
//! | `Filling` | the device, which writes all bytes to the receive buffer | done |
//! | `Queued` | room on the lane for an eager message | done, or `Unmatched` for a synchronous one |
//! | `Unmatched` | the receiver's answer that the message was matched | done; done (cancelled) |
//! | `Offered` | the receiver's answer: fetched, or a request to stream or write it | done, `Feeding`, `Pushing`; done (cancelled) |
//! | `Feeding` | room for the next segment; at the end, the device's release of the message | done |
//! | `Pushing` | the thread that writes to the receiver's memory, without the lock | done; `Feeding` if refused |
//! | `Local` | a matching receive in this process | done; done (cancelled) |
//! | `Done` | the owner, which takes the completion | free |
//!
//! If a needed peer dies, every phase but `Done` and `Local` ends with a failure (`state::death`).
//!
//! All fields are accessed under the engine's lock only. Exception: in `Pulling` and `Pushing` the copying thread
//! accesses the region without it.

use crate::choice::TransferPath;
use crate::completion::{Completion, Label, Received, RequestId, Short};
use crate::matching::{EntryId, Envelope};
use crate::memory::Region;
use limosa_device::Peer;

/// Number of free slots kept back, so that a slot is reused only after this many others: once the first slots have been
/// freed, more requests than this are started between two uses of the same slot. A larger number would make names last
/// longer, but spread requests over more of the processor's cache.
const RESTING: usize = 32;

const _: () = assert!((Short::GENERATIONS - 1) * (RESTING as u32 + 1) >= Short::DISTANCE);

/// Function that runs at the completion of a request, without the engine's lock.
pub type Continuation = Box<dyn FnOnce(&crate::Engine, Completion) + Send>;

/// Owner of a request's completion.
pub(crate) enum Owner {
    /// A caller, which will take it.
    Waiter,
    /// None: the slot is freed on completion.
    Released,
    /// This function, which is run on completion; the slot is freed. `is_served`: service threads complete it while the
    /// program computes.
    Continuation { then: Continuation, is_served: bool },
}

/// List of contiguous pieces (address, length), in the form that a peer reads.
pub(crate) type PieceList = Box<[(u64, u64)]>;

/// Phase of a request: see the table of the module, for `slot` [`crate::arriving`], and for `packets`
/// [`limosa_device::Device::is_away`]. Phases own nothing, so that a transition is a plain store.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    Posted { entry: EntryId },
    Pulling,
    Arriving,
    Fetching { peer: Peer, slot: usize, len: u64 },
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
    /// Memory of the message, while the protocols need it.
    pub region: Region,
    /// Piece list of an offer, which the receiver reads from here.
    pub pieces: PieceList,
    /// Path of an arriving rendezvous message, and its start time in nanoseconds.
    pub incoming: Option<(TransferPath, u64)>,
    pub owner: Owner,
    pub label: Option<Label>,
    /// Value of [`Requests::epoch`] when the request began.
    pub epoch: u64,
    pub completion: Completion,
}

impl Request {
    /// Returns whether this is a send that `peer` has not received yet, so that a packet of that peer may complete it.
    pub fn is_send_to(&self, peer: Peer) -> bool {
        match self.phase {
            Phase::Unmatched { peer: to, .. } | Phase::Offered { peer: to, .. } | Phase::Feeding { peer: to, .. } => {
                to == peer
            }
            _ => false,
        }
    }

    /// Completes the request, and releases the message's memory.
    #[inline]
    pub fn done(&mut self) {
        self.phase = Phase::Done;
        self.incoming = None;
        self.region.clear();
        if !self.pieces.is_empty() {
            self.pieces = Box::new([]);
        }
    }
}

/// Result of [`Requests::take`].
pub(crate) enum Taken {
    /// No request has this name.
    Unknown,
    /// The request is incomplete.
    Pending,
    /// The request was complete and is freed: its label's note, whether it was a send, and its completion.
    Done { note: usize, is_send: bool, end: Completion },
}

struct Slot {
    generation: u32,
    /// Whether the slot is in use. The contents of a free slot are meaningless; they stay in place because moving them
    /// costs more than everything else here.
    used: bool,
    /// Next slot in the list of free slots.
    next: u32,
    request: Request,
}

/// All requests of a process.
#[derive(Default)]
pub(crate) struct Requests {
    slots: Vec<Slot>,
    free: FreeSlots,
    /// Number of times that a thread has fallen asleep for a new condition. No sleeping thread waits for a request of
    /// the current epoch, which began later.
    pub epoch: u64,
}

/// Queue of the free slots: first freed, first reused.
#[derive(Default)]
struct FreeSlots {
    first: u32,
    last: u32,
    len: usize,
}

impl FreeSlots {
    /// Returns the slot that [`FreeSlots::pop`] would take; `None` while all are kept back.
    #[inline(always)]
    fn first(&self) -> Option<u32> {
        if self.len > RESTING { Some(self.first) } else { None }
    }

    /// Takes the next slot.
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
    /// Returns the name of the request that is inserted next.
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
        slot.request.epoch = self.epoch;
        RequestId { index, generation: slot.generation }
    }

    /// Returns whether the next request has a slot below [`Short::FAST`].
    #[inline(always)]
    pub fn is_small(&self) -> bool {
        self.slots.len() < Short::FAST
    }

    /// Inserts a labelled request that has succeeded already.
    #[inline(always)]
    pub fn insert_done(&mut self, label: Label, received: Received) -> RequestId {
        let (index, slot) = match self.free.pop(&mut self.slots) {
            Some(free) => free,
            None => {
                let index = self.grow(Phase::Done, Region::empty()).index;
                (index, &mut self.slots[index as usize])
            }
        };
        // The other fields of a free slot are those of a complete request.
        slot.request.label = Some(label);
        let Received { source, tag, bytes } = received;
        let end = &mut slot.request.completion;
        (end.source, end.tag, end.bytes) = (source, tag, bytes);
        RequestId { index, generation: slot.generation }
    }

    /// Returns whether the labelled request of this name is complete, is owned by a caller, and has neither failed nor
    /// been cancelled.
    #[inline(always)]
    pub fn has_succeeded(&self, short: Short) -> bool {
        self.find(short).is_some_and(|(_, request)| {
            matches!(request.phase, Phase::Done)
                && request.completion.failure.is_none()
                && !request.completion.cancelled
        })
    }

    /// Frees a request for which [`Requests::has_succeeded`]. Returns envelope and length of its message, `None` for a
    /// send or if it is gone.
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
            incoming: None,
            owner: Owner::Waiter,
            label: None,
            epoch: self.epoch,
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

    /// Returns the labelled request of this name, if a caller owns it.
    #[inline]
    pub fn find(&self, short: Short) -> Option<(RequestId, &Request)> {
        let slot = self.slots.get(short.index as usize)?;
        let known =
            slot.generation % Short::GENERATIONS == short.generation && slot.used && slot.request.label.is_some();
        let asked_about = known && matches!(slot.request.owner, Owner::Waiter);
        asked_about.then_some((RequestId { index: short.index, generation: slot.generation }, &slot.request))
    }

    /// Takes the completion of the labelled request of this name.
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

    /// Frees a request. Returns its completion.
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
    /// Returns the requests that only a message can complete, as opposed to a copy in progress.
    pub fn awaiting_messages(&self) -> Vec<RequestId> {
        self.in_phase(|phase| !matches!(phase, Phase::Done | Phase::Pulling | Phase::Pushing { .. }))
    }

    /// Returns the requests in such a phase: for slow paths.
    pub fn in_phase(&self, wanted: impl Fn(&Phase) -> bool) -> Vec<RequestId> {
        let name = |(index, slot): (usize, &Slot)| RequestId { index: index as u32, generation: slot.generation };
        self.slots.iter().enumerate().filter(|(_, slot)| slot.used && wanted(&slot.request.phase)).map(name).collect()
    }

    /// Returns whether a labelled request of this context has not been taken yet.
    pub fn has_labelled(&self, context: u64) -> bool {
        self.used().any(|r| r.label.is_some_and(|l| l.context == context))
    }

    /// Returns the number of pending sends that their owner has released.
    pub fn released_sends(&self) -> usize {
        let sends = |r: &Request| {
            matches!(r.owner, Owner::Released)
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
            // Names of all ages: from the first use of the table, and from reused slots.
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
