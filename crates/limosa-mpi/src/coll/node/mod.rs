//! Blocking collectives straight in shared memory, where all members of a communicator share a machine.
//!
//! A communicator's first blocking collective sets up a [`Stage`] for it, by messages, and all members learn together whether it can be used
//! ([`Node::of`]). From then on a blocking collective is a [`Turn`] on the stage:
//!
//! - what fits a slot of the stage is written there by who has it and read by who needs it: one copy in, one copy out, one flag;
//! - what is larger, but small enough that a rank can run ahead by several such operations, goes the same way over the rank's own *belt*;
//! - what is larger still stays where it is; its address is written to the stage, and the bytes are copied once, from one process's memory to another's; in a
//!   reduction every rank works on the next piece that nobody has taken, and brings the result to those who want it;
//! - or it passes through an annex of the stage in rounds, where that is cheaper.
//!
//! Contract
//! - All members take a communicator's turns in the same order, and give a turn the same number: that of the blocking collective.
//! - All choose the same protocol, by what is equal on all ranks of a correct program: number of ranks, bytes, and what was found at set-up. Where
//!   only one rank knows the lengths, what it has written says how.
//! - Every rank says how many bytes it has, and who reads them checks. Ranks that disagree get an error; none waits for ever because of it.
//! - Reductions combine from the highest rank to the lowest, `a0 op (a1 op (a2 ...))`, so that all ranks get the same bits whoever computes; scans from
//!   the lowest, each rank putting its own operand behind what those before it have.
//! - Nobody returns while another rank still reads or writes its buffer.
//!
//! | module | holds |
//! |---|---|
//! | `turn` | one operation: its number, its steps, its memory on the stage |
//! | `post`, `posted` | notes: posting and reading what ranks contribute |
//! | `wait` | spinning, yielding and sleeping until something is there |
//! | `transfer` | copies between processes, done by both partners together |
//! | `memory` | contiguous views of buffers, scratch memory |
//! | `fold`, `pieces` | combining operands: in one go, or by pieces for large ones |
//! | `belt` | memory of each rank's own, for what does not fit a slot |
//! | `annex` | large collectives in rounds through shared memory |
//! | `select` | the thresholds |
//! | `barrier`, `rooted`, `everyone`, `reduce` | the operations |

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use limosa_base::stage::{Annex, Common, Stage};
use limosa_job::config;
use limosa_p2p::{Engine, Peer};

use super::Call;
use crate::comm::Comm;
use crate::instance;
use belt::Belts;

mod annex;
mod barrier;
mod belt;
mod everyone;
mod fold;
mod memory;
mod pieces;
mod post;
mod posted;
mod reduce;
mod rooted;
mod select;
mod transfer;
mod turn;
mod wait;

pub(super) use barrier::barrier;
pub(super) use everyone::{allgather, alltoall};
pub(super) use fold::Reducer;
pub(super) use memory::Scratch;
pub(super) use posted::name_of;
pub(super) use reduce::{allreduce, exscan, reduce, reduce_scatter, scan};
pub(super) use rooted::{bcast, gather, scatter};
pub(super) use turn::{Kind, Turn};
pub(super) use wait::look;

/// What a communicator's members share for their collectives.
pub struct Node {
    stage: Stage,
    /// Where the stage's memory is.
    place: u64,
    /// World ranks of the members.
    peers: Box<[Peer]>,
    /// All can read and write each other's memory.
    pull: bool,
    /// There are fewer processors than processes.
    crowded: bool,
    /// A turn that all members are known to have finished.
    floor: AtomicU64,
    /// The turn that this rank has finished last.
    passed: AtomicU64,
    /// More memory, made when it is first needed; `None` inside if there is not enough.
    annex: OnceLock<Option<Annex>>,
    annex_place: AtomicU64,
    belts: Belts,
}

/// What a rank says about the stage at set-up.
const MAPPED: u8 = 1;
const CAN_PULL: u8 = 2;
const CROWDED: u8 = 4;

/// Ranks do not know alike how many bytes there are.
pub(super) const ANY_BYTES: usize = usize::MAX;

/// Communicators of this process that have a stage.
static STAGES: AtomicUsize = AtomicUsize::new(0);

/// No area.
const NOWHERE: u64 = u64::MAX;

impl Node {
    /// What the members of this communicator share, set up at the first call, which is a collective one; `None` where there is nothing to gain
    /// or no memory.
    #[inline]
    pub(super) fn of(comm: &Comm) -> Option<&Node> {
        match comm.node.get() {
            Some(node) => node.as_deref(),
            None => Node::first(comm),
        }
    }

    #[cold]
    fn first(comm: &Comm) -> Option<&Node> {
        // Without an engine there is nothing to set up, and plans are made for their own sake.
        instance::get()?;
        let engine = instance::engine();
        comm.node.get_or_init(|| Node::establish(comm, engine).map(Box::new)).as_deref()
    }

    fn establish(comm: &Comm, engine: &Engine) -> Option<Node> {
        let (size, me) = (comm.size(), comm.rank() as usize);
        if size == 1 || size > select::MAX_RANKS {
            return None;
        }
        let commons = engine.commons();
        let map = |place, slot_bytes| {
            let memory = commons.map_area::<Common>(place, Stage::bytes(size, slot_bytes)).ok()?;
            Some(Stage::new(memory, size, me, slot_bytes))
        };
        // Rank 0 makes the stage and tells the others where it is, and how large its slots are.
        let slot_bytes = select::slot_bytes(size, STAGES.load(Ordering::Relaxed));
        let bytes = Stage::bytes(size, slot_bytes);
        let made = if me == 0 { commons.create_area(bytes).unwrap_or(NOWHERE) } else { NOWHERE };
        let mine = if made == NOWHERE { None } else { map(made, slot_bytes) };
        if let Some(stage) = &mine {
            stage.open();
        }
        let told = [made.to_ne_bytes(), (slot_bytes as u64).to_ne_bytes()].concat();
        let told = super::allgather_by_messages(&Call::by_messages(comm), &told).ok()?;
        let place = u64::from_ne_bytes(*told.first_chunk()?);
        let slot_bytes = u64::from_ne_bytes(*told[8..].first_chunk()?) as usize;
        let is_sound = place != NOWHERE && slot_bytes.is_multiple_of(64) && slot_bytes >= size * post::LINE && slot_bytes <= 1 << 20;
        let stage = mine.or_else(|| if is_sound { map(place, slot_bytes) } else { None });

        let peers: Box<[Peer]> = (0..size).map(|rank| comm.world_rank_of(rank as i32)).collect::<Result<_, _>>().ok()?;
        let can_pull = peers.iter().enumerate().all(|(rank, peer)| rank == me || engine.can_pull(*peer));
        let wanted = config::get().coll == config::CollPath::Auto;
        let flag = |is_set, bit| if is_set { bit } else { 0 };
        let answer = flag(stage.is_some() && wanted, MAPPED) | flag(can_pull, CAN_PULL) | flag(engine.oversubscribed(), CROWDED);
        let answers = super::allgather_by_messages(&Call::by_messages(comm), &[answer]).ok();
        let all = |bit| answers.as_ref().is_some_and(|answers| answers.iter().all(|answer| answer & bit != 0));
        if !all(MAPPED) {
            if made != NOWHERE {
                commons.free_area(made, bytes);
            }
            return None;
        }
        let stage = stage?;
        STAGES.fetch_add(1, Ordering::Relaxed);
        Some(Node {
            stage,
            place,
            peers,
            pull: all(CAN_PULL),
            crowded: answers.as_ref().is_some_and(|answers| answers.iter().any(|answer| answer & CROWDED != 0)),
            floor: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            annex: OnceLock::new(),
            annex_place: AtomicU64::new(0),
            belts: Belts::new(size),
        })
    }

    fn size(&self) -> usize {
        self.stage.size()
    }

    /// Whether so many bytes can be moved in this operation.
    pub(super) fn can_move(&self, kind: Kind, bytes: usize) -> bool {
        self.pull || bytes <= self.stage.slot_bytes() || (bytes != ANY_BYTES && !matches!(kind, Kind::Gather | Kind::Scatter))
    }

    /// Rings those who sleep until something is the case that is the case now. Called after each change that others may wait for.
    #[inline]
    fn tell(&self) {
        if self.stage.anybody_asleep() {
            let commons = instance::engine().commons();
            self.stage.for_each_wakeable(|member| commons.ring(self.peers[member]));
        }
    }

    /// All members are known to have finished this turn.
    fn raise_floor(&self, number: u64) {
        if self.floor.load(Ordering::Relaxed) < number {
            self.floor.store(number, Ordering::Relaxed);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if instance::in_forked_child() {
            // What is shared belongs to the parent.
            return;
        }
        STAGES.fetch_sub(1, Ordering::Relaxed);
        if self.annex.get().is_some_and(Option::is_some) {
            annex::ANNEXES.fetch_sub(1, Ordering::Relaxed);
        }
        self.forget_belt();
        if self.stage.leave() {
            self.free_annex();
            self.free_belts();
            instance::engine().commons().free_area(self.place, Stage::bytes(self.size(), self.stage.slot_bytes()));
        }
    }
}
