//! Storage of a set of mailboxes: notes, slots, and large slots beside them ([`crate::notes`] has the forms).

use limosa_base::clock;
use limosa_base::slots::{BODY_BYTES, Bytes, NOTES, RoundBuffers, SLOTS, SlotSegment};
use limosa_p2p::{Engine, Peer};

use super::{LARGE_BYTES, Mailboxes, Pending};
use crate::disagreement::{self, Difference};
use crate::kind::Signed;
use crate::notes::{Area, Notes, SlotNote, nonsense};
use limosa_mpi::error::{Error, Result};

/// Large slots of a rank.
pub(super) const LARGE_SLOTS: usize = 2;

/// Longest wait for another member to join the job, to find out whether its memory can be read.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The large slots of all ranks.
pub(super) struct Large {
    memory: RoundBuffers,
    pub(super) slot_bytes: usize,
    /// Whether all members can read each other's memory.
    pub(super) can_lend: bool,
}

impl Large {
    /// Joins the large slots of this name; the first rank to join sets their size.
    pub(super) fn join(engine: &Engine, name: u64, peers: &[Peer], me: usize, slot_bytes: usize) -> Option<Large> {
        const CAN_LEND: u64 = 1;
        let size = peers.len();
        let can_lend = if can_lend(engine, peers, me) { CAN_LEND } else { 0 };
        let bytes = |slot_bytes| RoundBuffers::bytes(size - 1, LARGE_SLOTS * slot_bytes);
        let memory = engine.expect_host_memory();
        let found =
            memory.join_area(name, size, || Some((bytes(slot_bytes), (slot_bytes as u64) << 1 | can_lend))).ok()??;
        let slot_bytes = ((found.about >> 1) as usize).min(LARGE_BYTES);
        let memory = memory.map_area::<Bytes>(found.place, bytes(slot_bytes)).ok()?;
        Some(Large {
            memory: RoundBuffers::new(memory, LARGE_SLOTS * slot_bytes),
            slot_bytes,
            can_lend: found.about & CAN_LEND != 0,
        })
    }

    /// Returns a rank's large slot, counted from 1.
    fn slot(&self, rank: usize, slot: usize) -> Area {
        let start = self.memory.part_of(rank).wrapping_add((slot - 1) * self.slot_bytes);
        Area { start, bytes: self.slot_bytes, number: slot as u64 }
    }
}

/// Returns whether the memory of the other members can be read, as far as is known. The members are processes of one
/// job, so the answer for one holds for all; at least one must have joined.
fn can_lend(engine: &Engine, peers: &[Peer], me: usize) -> bool {
    let joined =
        || peers.iter().enumerate().filter(|(rank, peer)| *rank != me && engine.expect_host_memory().pid(**peer) != 0);
    let end = clock::now_ns() + PATIENCE_NS;
    while joined().next().is_none() && clock::now_ns() < end {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    joined().next().is_some() && joined().all(|(_, peer)| engine.expect_peer_memory().can_access(*peer))
}

/// Form of a contribution's bytes.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// So many bytes for all, or for each rank.
    Block { len: usize },
    /// A table of parts.
    Table,
    /// A table of so many blocks.
    Blocks { count: usize },
}

impl Mailboxes {
    /// Returns how many operations in which a rank leaves `bytes` can be under way at a time.
    pub(super) fn depth(&self, bytes: usize) -> u64 {
        if bytes <= BODY_BYTES {
            NOTES
        } else if bytes <= self.slots.slot_bytes() {
            SLOTS
        } else {
            LARGE_SLOTS as u64
        }
    }

    /// Returns the operation that all must have finished before this rank can leave `bytes` in operation `number`.
    pub(super) fn needs_finished(&self, pending: &Pending, number: u64, bytes: usize) -> u64 {
        if bytes <= self.slots.slot_bytes().max(BODY_BYTES) {
            number.saturating_sub(self.depth(bytes))
        } else {
            number.saturating_sub(NOTES).max(pending.large[pending.next_large])
        }
    }

    /// Leaves `all` bytes, written by `fill`, and posts a note of operation `number` about them.
    pub(super) fn leave(
        &self,
        pending: &mut Pending,
        (number, call): (u64, Signed),
        content: Content,
        all: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let note = match content {
            Content::Block { len } if all <= BODY_BYTES => return self.post_bytes(number, call, [len, all], fill),
            _ => {
                let area = self.own_area(pending, number, all);
                // SAFETY: all ranks have finished with what was in this rank's area before.
                fill(unsafe { area.first(all) });
                match content {
                    Content::Block { len } => SlotNote::of_area(len, &area),
                    Content::Table => SlotNote::of_table(&Area { bytes: all, ..area }),
                    Content::Blocks { count } => SlotNote::of_blocks(&Area { bytes: all, ..area }, count),
                }
            }
        };
        self.post(number, call, &note);
    }

    /// Returns this rank's slot for operation `number`, or a large slot, in which `bytes` fit.
    #[inline(always)]
    fn own_area(&self, pending: &mut Pending, number: u64, bytes: usize) -> Area {
        let me = self.slots.me();
        if bytes <= self.slots.slot_bytes() { self.slot(me, number) } else { self.own_large_area(pending, number) }
    }

    #[inline(never)]
    fn own_large_area(&self, pending: &mut Pending, number: u64) -> Area {
        let me = self.slots.me();
        let slot = pending.next_large(number);
        self.large().expect("what does not fit a slot was found to fit a large one").slot(me, slot + 1)
    }
}

impl Notes for Mailboxes {
    const FORM: &'static str = "the non-blocking or persistent form of ";

    #[inline]
    fn slots(&self) -> &SlotSegment {
        &self.slots
    }

    fn warn(&self, [rank, leader]: [usize; 2], difference: Difference) {
        // May be called with the engine's lock, under which the program's source line cannot be found.
        disagreement::warn([self.slots.me(), rank, leader], difference, String::new());
    }

    fn differ(&self, rank: usize, difference: Difference) -> Error {
        // May be called with the engine's lock: the rank that has posted later ends all collectives.
        disagreement::error([Some(rank).filter(|rank| *rank < self.size()), Some(self.slots.me())], difference)
    }

    /// Areas beside the slots are large slots.
    fn area_beside(&self, rank: usize, area: u64, bytes: u64) -> Result<*mut u8> {
        match self.large() {
            Some(large) if area <= LARGE_SLOTS as u64 && bytes <= large.slot_bytes as u64 => {
                Ok(large.slot(rank, area as usize).start)
            }
            _ => Err(nonsense(rank)),
        }
    }
}

impl Pending {
    /// Returns the large slot to be used next, which is free; it then belongs to operation `number`.
    fn next_large(&mut self, number: u64) -> usize {
        let slot = self.next_large;
        self.large[slot] = number;
        self.next_large = (slot + 1) % LARGE_SLOTS;
        slot
    }
}
