//! Blocking collectives directly in shared memory, where all members of a communicator share a machine.
//!
//! A communicator's first blocking collective sets up a [`SlotSegment`] for it, by messages. All members learn together
//! whether it can be used ([`SharedGroup::establish`]). From then on a blocking collective is a [`SharedCall`] in the
//! slots:
//!
//! - A contribution that fits a slot is copied in by its owner and copied out by each reader: two copies, one flag.
//! - A larger contribution, of which several fit a rank's *ring buffer*, goes the same way through the ring buffer.
//! - A still larger one stays in place. Its address is posted in the slots, and the bytes are copied once, from process
//!   to process. In a reduction every rank combines the next free piece, and writes the result to the ranks that
//!   receive it.
//! - Or it passes in rounds through round buffers beside the slots, where that is cheaper.
//!
//! Contract
//! - All members make a communicator's calls in the same order, with the same numbers: those of the blocking
//!   collectives.
//! - All select the same protocol, by values that are equal on all ranks of a correct program: number of ranks, bytes,
//!   and the properties found at set-up. Where only one rank knows the lengths, its note has the protocol.
//! - Every rank posts its number of bytes, and readers check it. Ranks that disagree get an error; no rank waits for
//!   ever.
//! - Reductions combine from the highest rank to the lowest, `a0 op (a1 op (a2 ...))`, so all ranks get the same bits
//!   whichever rank combines. Scans combine from the lowest, with each rank's operand behind those of lower ranks.
//! - A call returns after all other ranks have finished with this rank's buffer.
//!
//! | module | holds |
//! |---|---|
//! | `call` | one operation: its number, its steps, its memory in the slots |
//! | `post`, `posted` | posting this rank's note, and reading those of other ranks (see `crate::notes`) |
//! | `wait` | spinning, yielding and sleeping until a condition holds |
//! | `transfer` | copies between processes, by both partners together |
//! | `fold`, `pieces` | combining operands: whole, or by pieces if they are large ([`crate::pieces`]) |
//! | `ring` | ring buffers of ranks, for contributions that do not fit a slot |
//! | `rounds` | large collectives in rounds through shared memory |
//! | `host` | members of one host of several, for composed operations |
//! | `select` | the thresholds |
//! | `immediate` | the executor of one-step algorithms: all operations that only move data |
//! | `neighbours` | exchanges with neighbours in a topology |
//! | `rooted` | steps of one-step algorithms from one rank to all, or from all to one, for long data |
//! | `reduce` | reductions |

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use limosa_base::fork;
use limosa_base::slots::{Common, RoundBuffers, SlotSegment};
use limosa_job::config;
use limosa_p2p::{Engine, Peer};

use super::call_log::Inquirer;
use super::choice::{self, Resolved, counts};
use super::disagreement::{self, Difference};
use super::exchange::allgather_by_messages;
use super::kind::{KINDS, Signature};
use super::notes;
use super::numbers::Numbers;
use limosa_mpi::comm::Comm;
use limosa_mpi::group::Group;
use ring::RingBuffers;

mod call;
mod fold;
mod host;
mod immediate;
mod neighbours;
mod pieces;
mod post;
mod posted;
mod reduce;
mod ring;
mod rooted;
mod rounds;
mod select;
mod transfer;
mod wait;

pub(super) use crate::kind::Collective;
pub(super) use call::SharedCall;
pub(super) use host::HostGroup;
pub(super) use immediate::{allgather, alltoall, barrier, bcast, gather, scatter};
pub(super) use neighbours::{Exchange, Sent, neighbours};
pub(super) use reduce::{allreduce, exscan, reduce, reduce_scatter, scan};
pub use wait::look;

/// Shared memory of a communicator's members for their collectives.
pub struct SharedGroup {
    engine: Arc<Engine>,
    /// The context of the communicator's collectives, and all its members.
    context: u64,
    comm_group: Arc<Group>,
    /// Ranks of the members in the communicator.
    ranks: Box<[u32]>,
    slots: SlotSegment,
    /// Whether a process may have died, or collectives may have ended.
    impaired: Arc<AtomicBool>,
    /// Address of the slot segment.
    place: u64,
    /// World ranks of the members.
    peers: Box<[Peer]>,
    /// Whether all ranks can read and write each other's memory.
    pull: bool,
    /// Whether there are fewer processors than processes.
    oversubscribed: bool,
    /// Selected path of each kind of operation.
    choices: [Resolved; KINDS],
    /// The latest call that all members are known to have finished.
    floor: AtomicU64,
    /// The latest call that this rank has finished.
    passed: AtomicU64,
    /// Signature of that call, as far as it is known to have begun on this rank; in the lower half.
    signature: AtomicU64,
    /// In a group of some of the members: signature of the operation before the one whose stages are done here; 0 if it
    /// is not known.
    before: AtomicU64,
    /// Round buffers, made when they are first needed; `None` inside if there is not enough memory.
    round_buffers: OnceLock<Option<RoundBuffers>>,
    round_buffers_place: AtomicU64,
    rings: RingBuffers,
}

/// Flags that a rank announces about the slots at set-up.
const MAPPED: u8 = 1;
const CAN_PULL: u8 = 2;
const OVERSUBSCRIBED: u8 = 4;

/// Number of bytes of which ranks may have different knowledge.
pub(super) const ANY_BYTES: usize = choice::UNKNOWN_BYTES;

/// Number of communicators of this process that have a slot segment.
static SEGMENTS: AtomicUsize = AtomicUsize::new(0);

/// Place of an area that does not exist.
const NOWHERE: u64 = u64::MAX;

/// The slots of a group that is being set up, from the view of one member.
struct FoundSlots {
    /// The slots; `None` if this member cannot map them.
    slots: Option<SlotSegment>,
    place: u64,
    slot_bytes: usize,
    /// Place and bytes of the memory that this member has created for them, if it is the first member.
    made: Option<(u64, usize)>,
}

impl FoundSlots {
    /// Creates the slots at the first member, and announces their place and the bytes of a slot to the others.
    fn find(comm: &Comm, engine: &Engine, members: &[u32], me: usize, number: u64) -> Option<FoundSlots> {
        let size = members.len();
        let memory = engine.expect_host_memory();
        let map = |place, slot_bytes| {
            let memory = memory.map_area::<Common>(place, SlotSegment::bytes(size, slot_bytes)).ok()?;
            Some(SlotSegment::new(memory, size, me, slot_bytes))
        };
        let slot_bytes = select::slot_bytes(size, SEGMENTS.load(Ordering::Relaxed));
        let bytes = SlotSegment::bytes(size, slot_bytes);
        let made = if me == 0 { memory.create_area(bytes).unwrap_or(NOWHERE) } else { NOWHERE };
        let mine = if made == NOWHERE { None } else { map(made, slot_bytes) };
        if let Some(slots) = &mine {
            slots.open();
        }
        let told = [made.to_ne_bytes(), (slot_bytes as u64).to_ne_bytes()].concat();
        let told = allgather_by_messages(comm, members, number, &told).ok()?;
        let place = u64::from_ne_bytes(*told.first_chunk()?);
        let slot_bytes = u64::from_ne_bytes(*told[8..].first_chunk()?) as usize;
        let is_sound = place != NOWHERE
            && slot_bytes.is_multiple_of(64)
            && slot_bytes >= size * notes::LINE
            && slot_bytes <= 1 << 20;
        let slots = mine.or_else(|| if is_sound { map(place, slot_bytes) } else { None });
        Some(FoundSlots { slots, place, slot_bytes, made: (made != NOWHERE).then_some((made, bytes)) })
    }
}

impl SharedGroup {
    /// Sets up the shared memory of this communicator, if all members share memory. All members call this.
    pub(super) fn establish(comm: &Comm, engine: &Arc<Engine>, numbers: &Numbers) -> Option<SharedGroup> {
        let size = comm.size();
        if size == 1 || size > select::MAX_RANKS {
            return None;
        }
        let peers = comm.world().shared_addresses(comm.group())?;
        let members: Vec<u32> = (0..size as u32).collect();
        SharedGroup::establish_among(comm, engine, &members, peers, SharedGroup::next_numbers(numbers))
    }

    /// Sets up the shared memory of some members, whose ascending ranks are `members` and include this process. All of
    /// them call this, with the same numbers. The result does not concern the other members.
    fn establish_part(comm: &Comm, engine: &Arc<Engine>, members: &[u32], numbers: [u64; 2]) -> Option<SharedGroup> {
        if members.len() == 1 || members.len() > select::MAX_RANKS {
            return None;
        }
        let group = Group::from_world_ranks(
            members.iter().map(|member| comm.group().world_rank(*member as usize)).collect::<Option<_>>()?,
        );
        let peers = comm.world().shared_addresses(&group)?;
        SharedGroup::establish_among(comm, engine, members, peers, numbers)
    }

    /// Draws the numbers of the operations that set up a group.
    fn next_numbers(numbers: &Numbers) -> [u64; 2] {
        std::array::from_fn(|_| numbers.next_blocking())
    }

    fn establish_among(
        comm: &Comm,
        engine: &Arc<Engine>,
        members: &[u32],
        peers: Box<[Peer]>,
        numbers: [u64; 2],
    ) -> Option<SharedGroup> {
        let size = members.len();
        let me = members.iter().position(|member| *member == comm.rank())?;
        let FoundSlots { slots, place, slot_bytes, made } = FoundSlots::find(comm, engine, members, me, numbers[0])?;
        let can_pull =
            peers.iter().enumerate().all(|(rank, peer)| rank == me || engine.expect_peer_memory().can_access(*peer));
        let wanted = config::get().coll == config::CollPath::Auto;
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        let answer = flag(slots.is_some() && wanted, MAPPED)
            | flag(can_pull, CAN_PULL)
            | flag(engine.oversubscribed(), OVERSUBSCRIBED);
        let answers = allgather_by_messages(comm, members, numbers[1], &[answer]).ok();
        let all = |bit| answers.as_ref().is_some_and(|answers| answers.iter().all(|answer| answer & bit != 0));
        if !all(MAPPED) {
            if let Some((place, bytes)) = made {
                engine.expect_host_memory().free_area(place, bytes);
            }
            return None;
        }
        let slots = slots?;
        SEGMENTS.fetch_add(1, Ordering::Relaxed);
        let pull = all(CAN_PULL);
        let found = choice::MemoryTraits {
            ranks: size,
            direct: pull,
            slot: slot_bytes,
            ring: select::ring_bytes(size),
            speaks: me == 0,
        };
        Some(SharedGroup {
            engine: engine.clone(),
            context: comm.coll_context(),
            comm_group: comm.group().clone(),
            ranks: members.into(),
            slots,
            impaired: engine.impaired_flag(),
            place,
            peers,
            pull,
            choices: choice::resolve(found),
            oversubscribed: answers
                .as_ref()
                .is_some_and(|answers| answers.iter().any(|answer| answer & OVERSUBSCRIBED != 0)),
            floor: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            signature: AtomicU64::new(0),
            before: AtomicU64::new(0),
            round_buffers: OnceLock::new(),
            round_buffers_place: AtomicU64::new(0),
            rings: RingBuffers::new(size),
        })
    }

    /// Returns the number of members.
    pub(super) fn size(&self) -> usize {
        self.slots.size()
    }

    /// Whether so many bytes are moved without messages in this operation.
    #[inline]
    pub(super) fn can_move(&self, kind: Collective, bytes: usize) -> bool {
        self.choice(kind).is_shared(bytes)
    }

    /// Counts an operation on so many bytes without messages.
    #[inline(always)]
    pub(super) fn count(&self, kind: Collective, bytes: usize) {
        counts::count(kind, || self.choice(kind).algorithm(kind, bytes));
    }

    #[inline]
    fn choice(&self, kind: Collective) -> &Resolved {
        &self.choices[kind as usize - 1]
    }

    /// Wakes the ranks whose wait condition now holds. Called after each change that other ranks may wait for.
    #[inline]
    fn tell(&self) {
        if self.slots.has_sleepers() {
            self.tell_sleepers();
        }
    }

    #[cold]
    fn tell_sleepers(&self) {
        let memory = self.engine.expect_host_memory();
        self.slots.for_each_wakeable(|member| memory.ring(self.peers[member]));
        // A rank that waits for another rank cannot see that this rank has called something else.
        let me = self.slots.me();
        for member in (0..self.size()).filter(|member| *member != me) {
            if let Some((number, word)) = self.slots.declared(member)
                && let Some(own) = self.slots.noted(me, number)
                && disagreement::between((number, own), (number, word)).is_some()
            {
                memory.ring(self.peers[member]);
            }
        }
    }

    /// Returns a member that is or was in a different call than this rank, whose call has this number and word; and the
    /// difference.
    fn find_difference(&self, number: u64, word: u64) -> Option<(usize, Difference)> {
        let slots = &self.slots;
        (0..self.size()).filter(|member| *member != slots.me()).find_map(|member| {
            let said = [number, number + 1].map(|of| Some((of, slots.noted(member, of)?)));
            let mut said = said.into_iter().chain([slots.declared(member)]).flatten();
            said.find_map(|said| disagreement::between(said, (number, word))).map(|difference| (member, difference))
        })
    }

    /// Returns an inquirer to the ranks whose note is missing, for a wait in a call with this number and word.
    fn inquirer<'a>(&'a self, comm: &'a Comm, number: u64, word: u64) -> impl limosa_mpi::observe::Inquiry + 'a {
        let signature = Signature::of_word(word as u32).unwrap_or_default();
        Inquirer::new(comm, signature, None, move |tell| {
            let is_missing = |place: &usize| self.slots.noted(*place, number).is_none();
            (0..self.size()).filter(is_missing).for_each(|place| tell(self.ranks[place] as usize));
        })
    }

    /// Records that all members have finished this call.
    fn raise_floor(&self, number: u64) {
        if self.floor.load(Ordering::Relaxed) < number {
            self.floor.store(number, Ordering::Relaxed);
        }
    }
}

impl Drop for SharedGroup {
    fn drop(&mut self) {
        if fork::in_child() {
            // The shared memory belongs to the parent.
            return;
        }
        SEGMENTS.fetch_sub(1, Ordering::Relaxed);
        if self.round_buffers.get().is_some_and(Option::is_some) {
            rounds::ROUND_BUFFERS.fetch_sub(1, Ordering::Relaxed);
        }
        self.forget_ring();
        if self.slots.leave() {
            self.free_round_buffers();
            self.free_rings();
            self.engine
                .expect_host_memory()
                .free_area(self.place, SlotSegment::bytes(self.size(), self.slots.slot_bytes()));
        }
    }
}
