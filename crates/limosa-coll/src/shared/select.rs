//! Sizes of the shared memory of collectives, and of the pieces in which they use it. The table of [`crate::choice`]
//! selects algorithms by number of bytes.
//!
//! Measured in November 2026 on two cores of a Xeon of the Sapphire Rapids generation (2 MB of second-level cache each)
//! with 2, 4 and 8 ranks, in loops of 8 B to 4 MB; sizes of ring buffers on two cores of an AMD EPYC (1 MB each), in
//! loops of 64 and 256 KB. All sizes depend only on what all ranks know: the numbers of ranks and bytes, and the
//! properties found at set-up.

use super::{Collective, SharedGroup};

/// Most ranks of a communicator: a slot must have room for a table of all ranks.
pub(super) const MAX_RANKS: usize = 256;

/// Returns the bytes of a slot, on a communicator of `ranks` ranks when `live` others have a slot segment. Between two
/// ranks single copies win from about 8 KB on; programs with many communicators get smaller slots, to save memory.
pub(super) fn slot_bytes(ranks: usize, live: usize) -> usize {
    const MANY: usize = 16;
    if live < MANY { 8 << 10 } else { (ranks * 16).next_multiple_of(1 << 10) }
}

/// Most round buffers of a process at a time, if large collectives can do without.
pub(super) const MOST_ROUND_BUFFERS: usize = 8;

/// Returns the bytes of a part of the round buffers for `ranks` ranks; a call uses half of it. More would be faster for
/// operands of a megabyte and more, but parts should stay in the cache, and the memory is occupied.
pub(super) fn part_bytes(ranks: usize) -> usize {
    const ALL: usize = 2 << 20;
    (ALL / ranks / 2).next_multiple_of(4 << 10).clamp(8 << 10, 128 << 10) * 2
}

/// Returns the bytes of a share of a transfer of `len` bytes that two processes copy together.
pub(super) fn share_bytes(len: usize) -> usize {
    len.div_ceil(2).next_multiple_of(4 << 10).clamp(8 << 10, 128 << 10)
}

/// Length in bytes below which parts of a scatter are copied by their receivers alone, which then have them in their
/// caches.
pub(super) const SCATTER_TOGETHER: usize = 512 << 10;

/// Returns the bytes of a chunk of a broadcast through the round buffers.
pub(super) fn chunk_bytes(half: usize) -> usize {
    half.min(64 << 10)
}

/// Returns the bytes that a rank combines at once in the round buffers, of `len` in a round.
pub(super) fn combine_bytes(len: usize, ranks: usize) -> usize {
    len.div_ceil(ranks).next_multiple_of(64).clamp(4 << 10, 16 << 10)
}

/// Whether the rank that arrives last decides operations with a common result, instead of each rank for itself. When
/// ranks share processors, most of them then poll one line after waking up.
pub(super) fn meets_in_the_middle(group: &SharedGroup) -> bool {
    group.oversubscribed && group.size() > 2
}

/// Whether so many bytes of an operation, which do not fit the slots, go through the round buffers.
pub(super) fn in_rounds(group: &SharedGroup, kind: Collective, bytes: usize) -> bool {
    group.choice(kind).takes_rounds(bytes)
}

/// Returns the bytes of a ring buffer on a communicator of `ranks` ranks. With two ranks, ring buffers are larger than
/// second-level caches; more ranks have to share the third-level cache.
pub(super) fn ring_bytes(ranks: usize) -> usize {
    const ALL: usize = 8 << 20;
    if ranks == 2 { 2 << 20 } else { (ALL / ranks).next_multiple_of(4 << 10).clamp(64 << 10, 1 << 20) }
}

/// Most ring buffers of a process at a time.
pub(super) const MOST_RINGS: usize = 8;

/// Whether a rank puts so many bytes at once in its slot or ring buffer, where readers take or combine them.
#[inline]
pub(super) fn folds(group: &SharedGroup, kind: Collective, bytes: usize) -> bool {
    group.choice(kind).puts(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_an_round_buffers_is_bounded() {
        for ranks in 2..=64 {
            assert!(part_bytes(ranks) * (ranks + 1) <= (5 << 20) / 2 + part_bytes(ranks), "{ranks}");
            assert!(part_bytes(ranks).is_multiple_of(4 * 64 * 2), "quarters begin on cache lines");
        }
    }

    #[test]
    fn a_part_has_room_for_some_bytes_of_each_rank_in_a_quarter() {
        for ranks in 2..=MAX_RANKS {
            assert!(part_bytes(ranks) / 4 / ranks >= 1, "{ranks}");
        }
    }

    #[test]
    fn the_memory_of_belts_is_bounded() {
        for ranks in 2..=MAX_RANKS {
            assert!(ring_bytes(ranks) * ranks <= 16 << 20, "{ranks}");
        }
    }

    #[test]
    fn a_table_of_all_ranks_fits_a_slot() {
        for live in [0, 15, 16, 1000] {
            assert!((2..=MAX_RANKS).all(|ranks| ranks * 16 <= slot_bytes(ranks, live)), "{live}");
        }
    }
}
