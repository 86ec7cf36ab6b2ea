//! Pools of shared-memory blocks for messages in flight: one process takes blocks cyclically, and the receivers return
//! them.
//!
//! Blocks are taken cyclically from a memory of twice a processor's own cache ([`most_slots`]). Writing a line that is
//! still in the last receiver's cache takes several times as long as writing one that has been evicted (measurements
//! are in docs/performance.md).
//!
//! ```text
//!   given_back  [u32; SLOTS]            entry `s`: the last generation returned of the block at slot `s`
//!   slots       SLOTS x SLOT_BYTES
//! ```
//!
//! Contract:
//! - only the owner takes blocks ([`Blocks::take`]); the receiver of a block returns it, once;
//! - a block is not reused before it was returned; blocks in use are skipped and do not delay others;
//! - each block has a holder, the receiving process; if that has died, the owner reclaims its blocks
//!   ([`Blocks::take_back`]);
//! - a block is identified by its first slot and its generation, which is never 0: zeroed memory is a pool without
//!   returned blocks.

use crate::sync::{AtomicU32, Ordering};

/// Bytes of a slot; a block consists of consecutive slots.
pub const SLOT_BYTES: usize = 1024;
/// Slots that a pool has at most.
pub const SLOTS: usize = if cfg!(loom) { 2 } else { 3072 };
/// Bytes of a pool in shared memory.
pub const POOL_BYTES: usize = size_of::<GivenBack>() + SLOTS * SLOT_BYTES;

/// Returns the number of slots for a pool on this machine: twice the second-level cache of a processor. In less memory
/// the receiver still has the lines of a block in its cache when they are written again; more memory gains nothing.
#[cfg(not(loom))]
pub fn most_slots() -> usize {
    (2 * crate::cpu::own_cache_bytes().unwrap_or(1 << 20) / SLOT_BYTES).clamp(SLOTS / 3, SLOTS)
}

/// Shared part of a pool: the returned generations.
#[cfg_attr(not(loom), repr(C, align(4096)))]
pub struct GivenBack([AtomicU32; SLOTS]);

// SAFETY: atomics only, for which any bytes are valid.
#[cfg(not(loom))]
unsafe impl crate::segment::Foreign for GivenBack {}

/// Returns the byte offset of a block from the start of the shared part.
///
/// `None` if no block of so many bytes can begin at slot `start`.
#[inline]
pub fn place(start: u32, bytes: usize) -> Option<usize> {
    let first = start as usize * SLOT_BYTES;
    let inside = (start as usize) < SLOTS && bytes <= SLOTS * SLOT_BYTES - first;
    inside.then_some(size_of::<GivenBack>() + first)
}

impl GivenBack {
    /// Returns a block to its owner: its bytes are not read any more.
    #[inline]
    pub fn give(&self, start: u32, generation: u32) {
        // Pairs with the acquire load in `Blocks::busy`.
        self.0[start as usize % SLOTS].store(generation, Ordering::Release);
    }
}

/// The owner's record of the blocks in use.
pub struct Blocks {
    next: usize,
    /// Number of slots in use of the pool so far.
    room: usize,
    /// Number of slots that may ever be in use.
    most: usize,
    /// For each slot, the first slot of its block, counted from 1; 0 if it is free.
    block: Vec<u16>,
    /// For each first slot, the last block that began there.
    blocks: Vec<Block>,
}

#[derive(Clone, Default)]
struct Block {
    slots: u16,
    generation: u32,
    /// The receiving process.
    holder: u32,
}

impl Blocks {
    /// Returns the record of an empty pool that grows to `most` slots, up to [`SLOTS`].
    pub fn new(most: usize) -> Blocks {
        let most = most.min(SLOTS);
        Blocks { next: 0, room: 0, most, block: vec![0; most], blocks: vec![Block::default(); most] }
    }

    /// Returns whether all slots that may ever be in use are in use.
    pub fn is_grown(&self) -> bool {
        self.room == self.most
    }

    /// Returns the number of slots that may be used; [`Blocks::grow`] adds more.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Adds slots that may be used.
    pub fn grow(&mut self, slots: usize) {
        self.room = (self.room + slots).min(self.most);
    }

    /// Returns whether the next block of so many bytes would lie beyond the slots that may be used.
    #[inline]
    pub fn at_end(&self, bytes: usize) -> bool {
        !self.is_grown() && self.next + bytes.div_ceil(SLOT_BYTES) > self.room
    }

    /// Takes a block for process `holder`. Returns its first slot and generation, or `None` if there is no free block
    /// of that length.
    #[inline]
    pub fn take(&mut self, given_back: &GivenBack, bytes: usize, holder: u32) -> Option<(u32, u32)> {
        let slots = bytes.div_ceil(SLOT_BYTES).max(1);
        let (mut at, mut left) = (self.next, self.room);
        loop {
            if at + slots > self.room {
                left = left.checked_sub(self.room - at)?;
                at = 0;
                if slots > self.room {
                    return None;
                }
            }
            match (at..at + slots).find(|&slot| self.busy(given_back, slot)) {
                None => break,
                Some(slot) => {
                    let first = usize::from(self.block[slot]) - 1;
                    let beyond = first + usize::from(self.blocks[first].slots);
                    left = left.checked_sub(beyond - at)?;
                    at = beyond;
                }
            }
        }
        self.block[at..at + slots].fill(at as u16 + 1);
        let generation = self.blocks[at].generation.wrapping_add(1).max(1);
        self.blocks[at] = Block { slots: slots as u16, generation, holder };
        self.next = at + slots;
        Some((at as u32, generation))
    }

    /// Returns whether a slot belongs to a block in use. Frees the block if it was returned.
    #[inline]
    fn busy(&mut self, given_back: &GivenBack, slot: usize) -> bool {
        let Some(first) = usize::from(self.block[slot]).checked_sub(1) else { return false };
        let Block { slots, generation, .. } = self.blocks[first];
        // Pairs with the release store in `GivenBack::give`.
        if given_back.0[first].load(Ordering::Acquire) != generation {
            return true;
        }
        self.block[first..first + usize::from(slots)].fill(0);
        false
    }

    /// Returns a process that holds blocks: the one with the lowest number above `after`, or else the lowest.
    pub fn next_holder(&self, after: u32) -> Option<u32> {
        let firsts = (0..self.room).filter(|first| usize::from(self.block[*first]) == first + 1);
        // Those above `after` come first, then those up to it.
        firsts.map(|first| self.blocks[first].holder).min_by_key(|holder| (*holder <= after, *holder))
    }

    /// Reclaims all blocks of a process that has ended: it can neither read nor return them.
    pub fn take_back(&mut self, holder: u32) {
        for first in 0..self.room {
            if usize::from(self.block[first]) == first + 1 && self.blocks[first].holder == holder {
                self.block[first..first + usize::from(self.blocks[first].slots)].fill(0);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    fn pool() -> Box<GivenBack> {
        Box::new(GivenBack(std::array::from_fn(|_| AtomicU32::new(0))))
    }

    fn slots_of((start, _): (u32, u32), bytes: usize) -> std::ops::Range<usize> {
        start as usize..start as usize + bytes.div_ceil(SLOT_BYTES)
    }

    #[test]
    fn blocks_never_overlap_whatever_the_order_in_which_they_come_back() {
        let (shared, mut blocks) = (pool(), Blocks::new(SLOTS / 2));
        let mut live: Vec<((u32, u32), usize)> = Vec::new();
        let mut random = 12345usize;
        let mut refused = 0;
        for _ in 0..100_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bytes = 1 + (random >> 33) % 40_000;
            if blocks.at_end(bytes) {
                blocks.grow(256);
            }
            match blocks.take(&shared, bytes, 0) {
                Some(block) => {
                    let new = slots_of(block, bytes);
                    assert!(new.end <= blocks.room() && place(block.0, bytes).is_some());
                    assert!(live.iter().all(
                        |(other, b)| slots_of(*other, *b).end <= new.start || new.end <= slots_of(*other, *b).start
                    ));
                    live.push((block, bytes));
                }
                None => refused += 1,
            }
            if live.len() > 130 || (!live.is_empty() && (random >> 20) % 5 < 2) {
                let (block, _) = live.swap_remove((random >> 40) % live.len());
                shared.give(block.0, block.1);
            }
        }
        assert!(refused > 0, "the pool was never full");
    }

    #[test]
    fn a_block_that_stays_away_holds_up_no_others() {
        let (shared, mut blocks) = (pool(), Blocks::new(SLOTS));
        blocks.grow(SLOTS);
        let kept = blocks.take(&shared, 5000, 0).expect("an empty pool has room");
        let mut others = VecDeque::new();
        for _ in 0..10_000 {
            let block = blocks.take(&shared, 9000, 0).expect("only one block is missing");
            assert!(slots_of(block, 9000).all(|slot| !slots_of(kept, 5000).contains(&slot)));
            others.push_back(block);
            if others.len() > 3 {
                let block = others.pop_front().expect("there are four");
                shared.give(block.0, block.1);
            }
        }
    }

    #[test]
    fn blocks_of_a_dead_process_are_taken_again_and_those_of_others_are_not() {
        let (shared, mut blocks) = (pool(), Blocks::new(SLOTS));
        blocks.grow(12);
        let kept = blocks.take(&shared, 2 * SLOT_BYTES, 3).expect("an empty pool has room");
        for holder in [7, 7, 3, 7, 9] {
            blocks.take(&shared, 2 * SLOT_BYTES, holder).expect("there is room");
        }
        assert_eq!(blocks.take(&shared, 1, 0), None);
        assert_eq!([0, 3, 7, 9].map(|after| blocks.next_holder(after)), [Some(3), Some(7), Some(9), Some(3)]);
        blocks.take_back(7);
        assert_eq!([0, 3, 9].map(|after| blocks.next_holder(after)), [Some(3), Some(9), Some(3)]);
        let again: Vec<_> =
            (0..3).map(|_| blocks.take(&shared, 2 * SLOT_BYTES, 3).expect("three came back").0).collect();
        assert_eq!(again, [2, 4, 8]);
        assert_eq!(blocks.take(&shared, 1, 0), None);
        shared.give(kept.0, kept.1);
        assert_eq!(blocks.take(&shared, 1, 0).map(|block| block.0), Some(kept.0));
    }

    #[test]
    fn a_block_that_cannot_be_has_no_place() {
        assert_eq!(place(SLOTS as u32, 0), None);
        assert_eq!(place(SLOTS as u32 - 1, SLOT_BYTES + 1), None);
        assert_eq!(place(u32::MAX, 1), None);
        assert_eq!(place(SLOTS as u32 - 1, SLOT_BYTES), Some(POOL_BYTES - SLOT_BYTES));
    }

    #[test]
    fn too_long_a_block_is_refused() {
        let (shared, mut blocks) = (pool(), Blocks::new(SLOTS));
        assert_eq!(blocks.take(&shared, 1, 0), None);
        blocks.grow(4);
        assert_eq!(blocks.take(&shared, 5 * SLOT_BYTES, 0), None);
        assert!(blocks.take(&shared, 4 * SLOT_BYTES, 0).is_some());
        assert_eq!(blocks.take(&shared, 1, 0), None);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Pool {
        given_back: GivenBack,
        bytes: [UnsafeCell<u64>; SLOTS],
        /// First slots and generations of the blocks sent, counted from 1.
        sent: [AtomicU32; 3],
    }

    #[test]
    fn a_block_is_not_written_before_its_reader_has_given_it_back() {
        loom::model(|| {
            let pool = Arc::new(Pool {
                given_back: GivenBack(std::array::from_fn(|_| AtomicU32::new(0))),
                bytes: std::array::from_fn(|_| UnsafeCell::new(0)),
                sent: std::array::from_fn(|_| AtomicU32::new(0)),
            });
            let reader = {
                let pool = pool.clone();
                thread::spawn(move || {
                    for (number, sent) in pool.sent.iter().enumerate() {
                        let mut block = 0;
                        while block == 0 {
                            thread::yield_now();
                            block = sent.load(Ordering::Acquire);
                        }
                        let (start, generation) = (block >> 8, block & 0xff);
                        // SAFETY: loom checks that the owner does not write now.
                        pool.bytes[start as usize].with(|bytes| assert_eq!(unsafe { *bytes }, number as u64));
                        pool.given_back.give(start, generation);
                    }
                })
            };
            let mut blocks = Blocks::new(SLOTS);
            blocks.grow(SLOTS);
            for (number, sent) in pool.sent.iter().enumerate() {
                let (start, generation) = loop {
                    match blocks.take(&pool.given_back, 1, 0) {
                        Some(block) => break block,
                        None => thread::yield_now(),
                    }
                };
                // SAFETY: loom checks that there is no concurrent reader.
                pool.bytes[start as usize].with_mut(|bytes| unsafe { *bytes = number as u64 });
                sent.store(start << 8 | generation, Ordering::Release);
            }
            reader.join().unwrap();
        });
    }
}
