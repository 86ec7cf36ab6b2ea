//! Belts: memory of each rank's own that it shares, gone through in a circle, for what does not fit a slot but is worth two copies.
//!
//! A rank makes its belt when it first needs it, and tells nobody: the place is on the stage, and notes say where on the belt something is. So ranks
//! need not agree on it; who gets no memory for a belt leaves its bytes where they are, and others fetch them there. What was put on a belt stays
//! until all have finished the turn, so that a rank can run ahead by as many operations as fit.
//!
//! A belt is larger than a processor's own cache, where that is possible: to write cache lines that their last reader still holds takes four times as
//! long as to write lines that nobody holds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use limosa_base::segment::Shared;
use limosa_base::stage::Bytes;

use super::turn::{Area, Turn};
use super::{Node, select};
use crate::error::Result;
use crate::fail;
use crate::instance;

/// Belts that this process has made.
static BELTS: AtomicUsize = AtomicUsize::new(0);

/// The belts of a communicator's members, as one of them sees them.
pub(super) struct Belts {
    /// By rank, once they are needed; `None` inside if there is no memory.
    mapped: Box<[OnceLock<Option<Shared<Bytes>>>]>,
    round: Mutex<Round>,
}

/// How this rank goes round its belt. Positions only grow; on the belt they are what remains of them after whole rounds.
#[derive(Default)]
struct Round {
    at: u64,
    /// What may be in use: by which turn, and where it begins; the oldest first.
    used: VecDeque<(u64, u64)>,
}

impl Round {
    /// Takes the next `len` bytes of a belt of `belt`, in one piece, for a turn. Returns where they begin on the belt, and the turn that all must have
    /// finished before they are written to, if there is any.
    fn take(&mut self, turn: u64, len: usize, belt: usize) -> (usize, Option<u64>) {
        let (len, belt) = (len as u64, belt as u64);
        if self.at % belt + len > belt {
            self.at = self.at.next_multiple_of(belt);
        }
        let (start, end) = (self.at, self.at + len);
        let mut before = None;
        while let Some((user, _)) = self.used.front().filter(|(_, begins)| begins + belt < end) {
            before = Some(*user);
            self.used.pop_front();
        }
        self.used.push_back((turn, start));
        self.at = end;
        ((start % belt) as usize, before)
    }
}

impl Belts {
    pub(super) fn new(size: usize) -> Belts {
        Belts { mapped: (0..size).map(|_| OnceLock::new()).collect(), round: Mutex::default() }
    }
}

impl Node {
    /// This rank's belt, which is made if that has not been tried.
    fn own_belt(&self) -> Option<&Shared<Bytes>> {
        let make = || {
            let belt = if BELTS.fetch_add(1, Ordering::Relaxed) < select::MOST_BELTS {
                let place = instance::engine().commons().create_area(select::belt_bytes(self.size())).ok();
                place.and_then(|place| Some((place, self.map_belt(place)?)))
            } else {
                None
            };
            match belt {
                Some((place, memory)) => {
                    self.stage.share_area(place);
                    Some(memory)
                }
                None => {
                    BELTS.fetch_sub(1, Ordering::Relaxed);
                    None
                }
            }
        };
        self.belts.mapped[self.stage.me()].get_or_init(make).as_ref()
    }

    /// The belt of a rank that has told of it.
    fn belt_of(&self, rank: usize) -> Option<&Shared<Bytes>> {
        self.belts.mapped[rank].get_or_init(|| self.map_belt(self.stage.area_of(rank)?)).as_ref()
    }

    fn map_belt(&self, place: u64) -> Option<Shared<Bytes>> {
        let memory: Shared<Bytes> = instance::engine().commons().map_area(place, select::belt_bytes(self.size())).ok()?;
        memory.mapping().populate();
        Some(memory)
    }

    /// Gives the memory of all belts back; called by the last user.
    pub(super) fn free_belts(&self) {
        let commons = instance::engine().commons();
        (0..self.size())
            .filter_map(|rank| self.stage.area_of(rank))
            .for_each(|place| commons.free_area(place, select::belt_bytes(self.size())));
    }

    /// This process does not use its belt any more.
    pub(super) fn forget_belt(&self) {
        if self.stage.area_of(self.stage.me()).is_some() {
            BELTS.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Turn<'_> {
    /// Room for `len` bytes on this rank's belt, in use until all have finished the turn; `None` if there is no memory for a belt.
    ///
    /// # Errors
    /// Those of waiting.
    pub(super) fn room_on_belt(&self, len: usize) -> Result<Option<Area>> {
        let Some(belt) = self.node.own_belt() else { return Ok(None) };
        let all = belt.mapping().len();
        let len = len.next_multiple_of(LINE);
        if len > all {
            return Ok(None);
        }
        let (offset, before) = self.node.belts.round.lock().unwrap_or_else(PoisonError::into_inner).take(self.number(), len, all);
        debug_assert!(before.is_none_or(|turn| turn < self.number()), "a turn takes room once");
        if let Some(turn) = before {
            self.let_finish(turn)?;
        }
        Ok(Some(Area { start: belt.mapping().address(offset), bytes: len, on_belt: Some(offset) }))
    }

    /// What a rank that has posted a note has on its belt.
    ///
    /// # Errors
    /// `MPI_ERR_INTERN` if there is no such place, `MPI_ERR_NO_MEM` if it cannot be mapped.
    pub(super) fn area_on_belt(&self, rank: usize, offset: u64, bytes: u64) -> Result<Area> {
        let Some(belt) = self.node.belt_of(rank) else {
            fail!(
                MPI_ERR_NO_MEM,
                "the shared memory in which rank {rank} has put its bytes cannot be mapped; LIMOSA_COLL=p2p does without"
            );
        };
        match offset.checked_add(bytes) {
            Some(end) if end <= belt.mapping().len() as u64 => {
                Ok(Area { start: belt.mapping().address(offset as usize), bytes: bytes as usize, on_belt: Some(offset as usize) })
            }
            _ => Err(self.nonsense(rank)),
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
            for (turn, len) in (1u64..).zip(lens) {
                let (start, before) = round.take(turn, len, 64);
                finished = finished.max(before.unwrap_or(0));
                for owner in &mut owners[start..start + len] {
                    prop_assert!(*owner <= finished);
                    *owner = turn;
                }
            }
        }
    }
}
