//! A turn on the stage: one collective operation of one rank.
//!
//! Posting notes is in [`super::post`], reading them in [`super::posted`].

use std::cell::Cell;
use std::sync::atomic::Ordering;

use limosa_base::stage::{Annex, Awaited, SLOTS, Step};

use super::{Node, select, wait};
use crate::comm::Comm;
use crate::error::{Error, Result};

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // named like the standard's
pub(in crate::coll) enum Kind {
    Barrier = 1,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
}

impl Kind {
    /// All ranks wait for all others.
    pub(in crate::coll) fn is_among_all(self) -> bool {
        matches!(self, Kind::Barrier | Kind::Allgather | Kind::Alltoall | Kind::Allreduce | Kind::ReduceScatter)
    }
}

/// Turns that a half of the annex is in use.
const HALVES: u64 = 2;

/// Memory of a rank on the stage, for one turn.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
    /// Where on the rank's belt; `None` in a slot.
    pub(super) on_belt: Option<usize>,
}

/// One collective operation of this rank.
pub(in crate::coll) struct Turn<'a> {
    pub(super) node: &'a Node,
    pub(super) comm: &'a Comm,
    number: Cell<u64>,
    pub(super) kind: Kind,
    finished: Cell<bool>,
}

impl<'a> Turn<'a> {
    /// Begins turn `number` of the communicator.
    #[inline]
    pub(in crate::coll) fn begin(node: &'a Node, comm: &'a Comm, number: u64, kind: Kind) -> Turn<'a> {
        let turn = Turn { node, comm, number: Cell::new(number), kind, finished: Cell::new(false) };
        if node.passed() + 1 != number {
            // Collectives in between went by messages, or failed before they began.
            node.pass(number - 1);
        }
        turn
    }

    /// The number of the turn.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Ends this turn and begins another one, which all ranks do that are in it: for beginning anew in another way.
    pub(super) fn renew(&self) {
        self.finish();
        self.number.set(self.comm.coll_seq.fetch_add(1, Ordering::Relaxed) + 1);
        self.finished.set(false);
    }

    /// This rank.
    #[inline]
    pub(super) fn me(&self) -> usize {
        self.comm.rank() as usize
    }

    /// Number of ranks.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.node.size()
    }

    /// The rank `distance` behind this one.
    pub(super) fn after(&self, distance: usize) -> usize {
        let rank = self.me() + distance;
        if rank < self.size() { rank } else { rank - self.size() }
    }

    /// Bytes of a slot.
    pub(super) fn slot_bytes(&self) -> usize {
        self.node.stage.slot_bytes()
    }

    /// Where the part of a rank, or of the group, is in this turn: half of what it has in all, in turns.
    pub(super) fn part_of(&self, annex: &Annex, rank: usize) -> *mut u8 {
        annex.part_of(rank).wrapping_add((self.number() % HALVES) as usize * (annex.part_bytes() / HALVES as usize))
    }

    /// Most bytes that a rank puts on the stage in this operation.
    #[inline]
    pub(super) fn most_put(&self) -> usize {
        select::most_put(self.node, self.kind)
    }

    /// The slot of a rank.
    pub(super) fn slot_of(&self, rank: usize) -> Area {
        Area { start: self.node.stage.slot_of(rank, self.number()), bytes: self.slot_bytes(), on_belt: None }
    }

    /// This rank's slot, with room made in it.
    pub(super) fn own_slot(&self) -> Result<Area> {
        self.make_room(SLOTS)?;
        Ok(self.slot_of(self.me()))
    }

    /// This rank's slot if so many bytes fit there, else room on its belt, if there is any.
    pub(super) fn own_area(&self, len: usize) -> Result<Option<Area>> {
        if len <= self.slot_bytes() { Ok(Some(self.own_slot()?)) } else { self.room_on_belt(len) }
    }

    /// This rank reads no notes or slots of the turn any more.
    #[inline]
    pub(super) fn finish(&self) {
        if !self.finished.replace(true) {
            self.node.pass(self.number());
        }
    }

    // ---- waiting ---------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn wait(&self, awaited: Awaited) -> Result<()> {
        wait::wait(self.node, self.comm, awaited)
    }

    /// Waits for a rank's note, or for that of the group, whose number is the number of ranks.
    #[inline]
    pub(super) fn wait_for(&self, rank: usize) -> Result<()> {
        let awaited = Awaited::Note(rank, self.number());
        if self.node.stage.holds(awaited) {
            // That rank is ahead, and may have written its next note too.
            self.node.stage.prefetch_note(rank, self.number() + 1);
            return Ok(());
        }
        self.wait(awaited)
    }

    /// Waits for the notes of all ranks.
    #[inline]
    pub(super) fn wait_for_all(&self) -> Result<()> {
        self.wait(Awaited::AllNotes(self.number()))?;
        // Who is in this turn has finished the one before.
        self.node.raise_floor(self.number() - 1);
        Ok(())
    }

    /// Finishes the turn and waits until all ranks have.
    pub(super) fn finish_together(&self) -> Result<()> {
        self.finish();
        self.wait(Awaited::AllFinished(self.number()))?;
        self.node.raise_floor(self.number());
        Ok(())
    }

    /// Waits until the note, or with `SLOTS` the slot, of the turn `depth` turns ago is needed by nobody any more.
    #[inline]
    pub(super) fn make_room(&self, depth: u64) -> Result<()> {
        if self.number() <= self.node.known_floor() + depth { Ok(()) } else { self.make_room_slowly(depth) }
    }

    #[cold]
    fn make_room_slowly(&self, depth: u64) -> Result<()> {
        if self.node.stage.least_finished() < self.number() - depth {
            // Not for a single one: who runs ahead of the others would soon be back. Without this rank they come as far as it is now.
            self.wait(Awaited::AllFinished(self.number() - depth.div_ceil(2)))?;
        }
        self.node.raise_floor(self.node.stage.least_finished());
        Ok(())
    }

    /// Waits until all ranks have finished a turn before this one.
    #[inline]
    pub(super) fn let_finish(&self, turn: u64) -> Result<()> {
        if turn > self.node.known_floor() { self.make_room_slowly(self.number() - turn) } else { Ok(()) }
    }

    /// Waits until this turn's half of the annex is in use no more.
    pub(super) fn make_room_in_annex(&self) -> Result<()> {
        self.make_room(HALVES)
    }

    /// This rank has come to a step.
    pub(super) fn advance(&self, step: Step) {
        self.node.stage.advance(step);
        self.node.tell();
    }

    /// All together have come to a step.
    pub(super) fn advance_all(&self, step: Step) {
        self.node.stage.advance_all(step);
        self.node.tell();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Node {
    #[inline]
    fn known_floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    #[inline]
    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    #[inline]
    fn pass(&self, number: u64) {
        self.passed.store(number, Ordering::Relaxed);
        self.stage.finish(number);
        self.tell();
    }
}

/// Keeps the first of several errors.
#[derive(Default)]
pub(super) struct First(Option<Error>);

impl First {
    /// The value, unless it is an error.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }

    /// The first error, if there was one.
    pub(super) fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
