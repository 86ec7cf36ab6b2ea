//! Ring buffers: shared memory of each rank for contributions that do not fit a slot but are worth two copies.
//!
//! A rank creates its ring buffer when it first needs it, without an agreement: the slots have its place, and notes
//! have places in it. A rank without memory for a ring buffer leaves its bytes in place, where readers fetch them.
//! Bytes in a ring buffer stay until all have finished the call, so a rank can run ahead by as many operations as fit.
//!
//! If possible, a ring buffer is larger than a processor's own cache: writing cache lines that their last reader still
//! holds takes four times as long as writing free lines.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use limosa_base::segment::Shared;
use limosa_base::slots::{Bytes, SlotSegment};

use super::call::SharedCall;
use super::{SharedGroup, select};
use crate::disagreement::{self, Difference};
use crate::notes::{Area, Notes, nonsense};
use limosa_mpi::check;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;

/// Number of ring buffers that this process has made.
static RINGS: AtomicUsize = AtomicUsize::new(0);

/// The ring buffers of a communicator's members, from the view of one of them.
pub(super) struct RingBuffers {
    /// Ring buffers by rank, once they are needed; `None` inside if there is no memory.
    mapped: Box<[OnceLock<Option<Shared<Bytes>>>]>,
    round: Mutex<Round>,
}

/// Position of this rank in its ring buffer. Positions only grow; the place in the ring buffer is the position modulo
/// its size.
#[derive(Default)]
struct Round {
    at: u64,
    /// Ranges that may be in use: the call that uses it, and its first position; the oldest first.
    used: VecDeque<(u64, u64)>,
}

impl Round {
    /// Takes the next `len` contiguous bytes of a ring buffer of `ring` bytes for a call. Returns their place, and the
    /// call, if any, that all must have finished before they are written to.
    fn take(&mut self, shared_call: u64, len: usize, ring: usize) -> (usize, Option<u64>) {
        let (len, ring) = (len as u64, ring as u64);
        if self.at % ring + len > ring {
            self.at = self.at.next_multiple_of(ring);
        }
        let (start, end) = (self.at, self.at + len);
        let mut before = None;
        while let Some((user, _)) = self.used.front().filter(|(_, begins)| begins + ring < end) {
            before = Some(*user);
            self.used.pop_front();
        }
        self.used.push_back((shared_call, start));
        self.at = end;
        ((start % ring) as usize, before)
    }
}

impl RingBuffers {
    pub(super) fn new(size: usize) -> RingBuffers {
        RingBuffers { mapped: (0..size).map(|_| OnceLock::new()).collect(), round: Mutex::default() }
    }
}

impl SharedGroup {
    /// Returns this rank's ring buffer; the first call creates it.
    fn own_ring(&self) -> Option<&Shared<Bytes>> {
        let make = || {
            let ring = if RINGS.fetch_add(1, Ordering::Relaxed) < select::MOST_RINGS {
                let place = self.engine.expect_host_memory().create_area(select::ring_bytes(self.size())).ok();
                place.and_then(|place| Some((place, self.map_ring(place)?)))
            } else {
                None
            };
            match ring {
                Some((place, memory)) => {
                    self.slots.share_area(place);
                    Some(memory)
                }
                None => {
                    RINGS.fetch_sub(1, Ordering::Relaxed);
                    None
                }
            }
        };
        self.rings.mapped[self.slots.me()].get_or_init(make).as_ref()
    }

    /// Returns the ring buffer of a rank that has posted its place.
    fn ring_of(&self, rank: usize) -> Option<&Shared<Bytes>> {
        self.rings.mapped[rank].get_or_init(|| self.map_ring(self.slots.area_of(rank)?)).as_ref()
    }

    fn map_ring(&self, place: u64) -> Option<Shared<Bytes>> {
        let memory: Shared<Bytes> =
            self.engine.expect_host_memory().map_area(place, select::ring_bytes(self.size())).ok()?;
        memory.mapping().populate();
        Some(memory)
    }

    /// Frees the memory of all ring buffers; called by the last user.
    pub(super) fn free_rings(&self) {
        let memory = self.engine.expect_host_memory();
        (0..self.size())
            .filter_map(|rank| self.slots.area_of(rank))
            .for_each(|place| memory.free_area(place, select::ring_bytes(self.size())));
    }

    /// Releases this process's own ring buffer.
    pub(super) fn forget_ring(&self) {
        if self.slots.area_of(self.slots.me()).is_some() {
            RINGS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl SharedCall<'_> {
    /// Returns room for `len` bytes in this rank's ring buffer, in use until all have finished the call; `None` if
    /// there is no memory for a ring buffer.
    ///
    /// # Errors
    /// Errors of waiting.
    pub(super) fn room_on_ring(&self, len: usize) -> Result<Option<Area>> {
        let Some(ring) = self.group.own_ring() else { return Ok(None) };
        let all = ring.mapping().len();
        let len = len.next_multiple_of(LINE);
        if len > all {
            return Ok(None);
        }
        let (offset, before) =
            self.group.rings.round.lock().unwrap_or_else(PoisonError::into_inner).take(self.number(), len, all);
        debug_assert!(before.is_none_or(|shared_call| shared_call < self.number()), "a shared_call takes room once");
        if let Some(shared_call) = before {
            self.let_finish(shared_call)?;
        }
        Ok(Some(Area { start: ring.mapping().address(offset), bytes: len, number: 1 + offset as u64 }))
    }
}

impl Notes for SharedGroup {
    const FORM: &'static str = "";

    #[inline]
    fn slots(&self) -> &SlotSegment {
        &self.slots
    }

    fn warn(&self, [rank, leader]: [usize; 2], difference: Difference) {
        let ranks = [self.slots.me(), rank, leader].map(|place| self.ranks[place] as usize);
        disagreement::warn(ranks, difference, check::site());
    }

    fn differ(&self, rank: usize, difference: Difference) -> Error {
        let rank_of = |place: usize| self.ranks.get(place).map(|rank| *rank as usize);
        let error = disagreement::error([rank_of(rank), rank_of(self.slots.me())], difference);
        disagreement::raise(&self.engine, self.context, &self.comm_group, error)
    }

    /// Areas beside the slots are places on ring buffers, counted from 1.
    fn area_beside(&self, rank: usize, area: u64, bytes: u64) -> Result<*mut u8> {
        let Some(ring) = self.ring_of(rank) else {
            fail!(
                MPI_ERR_NO_MEM,
                "the shared memory in which rank {rank} has put its bytes cannot be mapped; LIMOSA_COLL=p2p works \
         without it"
            );
        };
        let offset = area - 1;
        match offset.checked_add(bytes) {
            Some(end) if end <= ring.mapping().len() as u64 => Ok(ring.mapping().address(offset as usize)),
            _ => Err(nonsense(rank)),
        }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_in_the_way_must_be_finished() {
        let mut round = Round::default();
        assert_eq!(round.take(1, 40, 100), (0, None));
        assert_eq!(round.take(2, 40, 100), (40, None));
        assert_eq!(round.take(3, 40, 100), (0, Some(1)));
        assert_eq!(round.take(4, 100, 100), (0, Some(3)));
    }

    proptest! {
        #[test]
        fn bytes_in_use_are_given_to_nobody_else(lens in proptest::collection::vec(1usize..=64, 1..100)) {
            let (mut round, mut owners) = (Round::default(), [0u64; 64]);
            let mut finished = 0;
            for (shared_call, len) in (1u64..).zip(lens) {
                let (start, before) = round.take(shared_call, len, 64);
                finished = finished.max(before.unwrap_or(0));
                for owner in &mut owners[start..start + len] {
                    prop_assert!(*owner <= finished);
                    *owner = shared_call;
                }
            }
        }
    }
}
