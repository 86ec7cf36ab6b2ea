//! A call in the slots: one collective operation of one rank.
//!
//! [`super::post`] posts notes, [`super::posted`] reads them, and [`crate::notes`] has their content.

use std::cell::Cell;
use std::sync::atomic::{Ordering, fence};

use limosa_base::slots::{Awaited, Progress, RoundBuffers, SLOTS};

use super::{SharedGroup, select, wait};
use crate::call_log::{CallLog, OwnCalls};
use crate::disagreement;
use crate::kind::{Collective, Signature, Signed};
use crate::notes::{Area, Notes};
use crate::numbers::Numbers;
use limosa_mpi::comm::Comm;
use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::{Error, Result};

/// Polls of a copying rank, by a rank that gives up, before it asks whether that rank still lives.
const PATIENCE: u32 = 1000;

/// Number of calls for which a half of the round buffers is in use.
const HALVES: u64 = 2;

/// One collective operation of this rank.
pub(crate) struct SharedCall<'a> {
    pub(super) group: &'a SharedGroup,
    pub(super) comm: &'a Comm,
    numbers: &'a Numbers,
    number: Cell<u64>,
    pub(super) kind: Collective,
    /// Its signature, and that of the call before it in the upper half.
    word: Cell<u64>,
    finished: Cell<bool>,
    /// Whether a wait has failed: this rank takes no further part.
    gave_up: Cell<bool>,
}

impl<'a> SharedCall<'a> {
    /// Begins call `number` of the communicator; `None` if it can no longer be done in shared memory.
    #[inline(always)]
    pub(crate) fn begin(
        group: &'a SharedGroup,
        comm: &'a Comm,
        numbers: &'a Numbers,
        number: u64,
        kind: Collective,
        signature: Signature,
    ) -> Option<SharedCall<'a>> {
        if group.passed() + 1 != number || group.impaired.load(Ordering::Relaxed) {
            group.resume(comm, number)?;
        }
        let word = group.next_word(signature);
        Some(SharedCall {
            group,
            comm,
            numbers,
            number: Cell::new(number),
            kind,
            word: Cell::new(word),
            finished: Cell::new(false),
            gave_up: Cell::new(false),
        })
    }

    /// Returns the number of the call.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Ends this call and begins a new call on all its ranks, to restart with a different algorithm.
    pub(super) fn renew(&self) {
        self.finish();
        self.number.set(self.numbers.next_blocking() + 1);
        // Ranks that differ have found this in the call that ends here, or will find it in the new one.
        self.word.set(self.word.get() as u32 as u64);
        self.finished.set(false);
    }

    /// Returns the signature that this call's notes carry.
    #[inline(always)]
    pub(super) fn signed(&self) -> Signed {
        Signed { kind: self.kind, word: self.word.get() }
    }

    /// Returns this rank's place in the group.
    #[inline]
    pub(super) fn me(&self) -> usize {
        self.group.slots.me()
    }

    /// Returns the number of ranks.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.group.size()
    }

    /// Returns the rank `distance` behind this one.
    pub(super) fn after(&self, distance: usize) -> usize {
        let rank = self.me() + distance;
        if rank < self.size() { rank } else { rank - self.size() }
    }

    /// Returns the bytes of a slot.
    pub(super) fn slot_bytes(&self) -> usize {
        self.group.slots.slot_bytes()
    }

    /// Returns the address of the part of a rank, or of the group, in this call: alternating halves of its memory.
    pub(super) fn part_of(&self, round_buffers: &RoundBuffers, rank: usize) -> *mut u8 {
        round_buffers
            .part_of(rank)
            .wrapping_add((self.number() % HALVES) as usize * (round_buffers.part_bytes() / HALVES as usize))
    }

    /// Whether a rank puts so many bytes in the slots at once in this operation.
    #[inline]
    pub(super) fn puts(&self, bytes: usize) -> bool {
        select::folds(self.group, self.kind, bytes)
    }

    /// Returns this rank's slot, after making room in it.
    pub(super) fn own_slot(&self) -> Result<Area> {
        self.make_room(SLOTS)?;
        Ok(self.group.slot(self.me(), self.number()))
    }

    /// Returns this rank's slot if `len` bytes fit there, else room on its ring buffer, if there is any.
    pub(super) fn own_area(&self, len: usize) -> Result<Option<Area>> {
        if len <= self.slot_bytes() { Ok(Some(self.own_slot()?)) } else { self.room_on_ring(len) }
    }

    /// Compares this rank's note with the posted notes of all other ranks: of two that differ, the later one sees it.
    ///
    /// # Errors
    /// Another rank has called something else.
    pub(super) fn compare(&self) -> Result<()> {
        fence(Ordering::SeqCst);
        match self.group.find_difference(self.number(), self.word.get()) {
            Some((rank, difference)) => Err(self.group.differ(rank, difference)),
            None => Ok(()),
        }
    }

    /// Records that this rank reads no notes or slots of the call any more.
    #[inline]
    pub(super) fn finish(&self) {
        if !self.finished.replace(true) {
            self.group.pass(self.number());
        }
    }

    // ---- waiting ---------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn wait(&self, awaited: Awaited) -> Result<()> {
        wait::wait(self.group, self.comm, (self.number(), self.word.get()), awaited).inspect_err(|_| self.give_up())
    }

    /// Gives up after a wait that has failed, because a member has died or the members disagree. The program gets its
    /// buffers back although other ranks may be about to access them. So this rank withdraws its notes, waits for ranks
    /// that are copying, and copies nothing itself any more.
    #[cold]
    pub(super) fn give_up(&self) {
        if self.gave_up.replace(true) {
            return;
        }
        let slots = &self.group.slots;
        slots.withdraw(self.number());
        self.finish();
        // The next call must check whether this communicator can still be used.
        self.group.passed.store(0, Ordering::Relaxed);
        for rank in (0..self.size()).filter(|rank| *rank != self.me()) {
            let mut yields = 0u32;
            while slots.is_copying(rank, self.number()) {
                yields = yields.wrapping_add(1);
                if yields.is_multiple_of(PATIENCE)
                    && !self.group.engine.expect_host_memory().is_alive(self.group.peers[rank])
                {
                    break;
                }
                std::thread::yield_now();
            }
        }
    }

    /// Gives up if an error says that another rank has: a third rank may be accessing this rank's memory.
    #[cold]
    pub(super) fn give_up_after(&self, error: &Error) {
        if error.class == MPI_ERR_PROC_ABORTED {
            self.give_up();
        }
    }

    /// Whether this rank takes no further part.
    pub(super) fn has_given_up(&self) -> bool {
        self.gave_up.get()
    }

    /// Copies between this rank's memory and that of another rank, which has posted its address in this call.
    ///
    /// # Errors
    /// That rank has withdrawn the address, or this rank takes no further part: `None` inside. Errors of copying.
    #[inline]
    pub(super) fn copy_with<E>(
        &self,
        rank: usize,
        copy: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<(), Option<E>> {
        let slots = &self.group.slots;
        if self.gave_up.get() {
            return Err(None);
        }
        slots.begin_copying(self.number());
        let outcome = if slots.is_withdrawn(rank, self.number()) { Err(None) } else { copy().map_err(Some) };
        slots.end_copying();
        outcome
    }

    /// Waits for a rank's note, or for that of the group, whose number is the number of ranks.
    #[inline]
    pub(super) fn wait_for(&self, rank: usize) -> Result<()> {
        let awaited = Awaited::Note(rank, self.number());
        if self.group.slots.holds(awaited) {
            // That rank is ahead, and may have written its next note too.
            self.group.slots.prefetch_note(rank, self.number() + 1);
            return Ok(());
        }
        self.wait(awaited)
    }

    /// Waits for the notes of all ranks.
    #[inline]
    pub(super) fn wait_for_all(&self) -> Result<()> {
        self.wait(Awaited::AllNotes(self.number()))?;
        // A rank in this call has finished the previous one.
        self.group.raise_floor(self.number() - 1);
        Ok(())
    }

    /// Finishes the call and waits until all ranks have.
    pub(super) fn finish_together(&self) -> Result<()> {
        self.finish();
        self.wait(Awaited::AllFinished(self.number()))?;
        self.group.raise_floor(self.number());
        Ok(())
    }

    /// Waits until no rank needs the note, or with `SLOTS` the slot, of the call `depth` calls ago any more.
    #[inline]
    pub(super) fn make_room(&self, depth: u64) -> Result<()> {
        if self.number() <= self.group.known_floor() + depth { Ok(()) } else { self.make_room_slowly(depth) }
    }

    #[cold]
    fn make_room_slowly(&self, depth: u64) -> Result<()> {
        if self.group.slots.least_finished() < self.number() - depth {
            // Waits for several calls: after a single one, a rank that runs ahead would soon be back. Without this
            // rank, the others come as far as it is now.
            self.wait(Awaited::AllFinished(self.number() - depth.div_ceil(2)))?;
        }
        self.group.raise_floor(self.group.slots.least_finished());
        Ok(())
    }

    /// Waits until all ranks have finished a call before this one.
    #[inline]
    pub(super) fn let_finish(&self, shared_call: u64) -> Result<()> {
        if shared_call > self.group.known_floor() { self.make_room_slowly(self.number() - shared_call) } else { Ok(()) }
    }

    /// Waits until this call's half of the round buffers is no longer in use.
    pub(super) fn make_room_in_round_buffers(&self) -> Result<()> {
        self.make_room(HALVES)
    }

    /// Records that this rank has reached a step.
    pub(super) fn advance(&self, step: Progress) {
        self.group.slots.advance(step);
        self.group.tell();
    }

    /// Records that all together have reached a step.
    pub(super) fn advance_all(&self, step: Progress) {
        self.group.slots.advance_all(step);
        self.group.tell();
    }
}

impl Drop for SharedCall<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl SharedGroup {
    #[inline]
    fn known_floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    #[inline]
    fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Checks whether call `number` can be done here; `None` if not.
    #[cold]
    #[inline(never)]
    fn resume(&self, comm: &Comm, number: u64) -> Option<()> {
        if self.impaired.load(Ordering::Relaxed) && self.engine.lost_group(self.context).is_some() {
            return None;
        }
        if self.passed() + 1 != number {
            // Collectives in between went by messages, or failed before they began or in the middle.
            self.compare_last(comm)?;
            self.pass(number - 1);
            self.signature.store(self.signature_by_messages(comm, number), Ordering::Relaxed);
        }
        Some(())
    }

    /// Compares the last call here, which the next note does not describe; `None` if ranks differ.
    fn compare_last(&self, comm: &Comm) -> Option<()> {
        let (last, word) = (self.passed(), self.signature.load(Ordering::Relaxed));
        if last == 0 || self.size() != comm.size() {
            return Some(());
        }
        let (rank, difference) = match self.find_difference(last, word) {
            Some(found) => found,
            None => return Some(()),
        };
        let _ = self.differ(rank, difference);
        None
    }

    /// Returns how another rank's last call on the communicator differs from this rank's, if no rank has found that so
    /// far.
    pub(crate) fn unseen_difference(&self, comm: &Comm) -> Option<String> {
        let (last, word) = (self.passed(), self.signature.load(Ordering::Relaxed));
        if last == 0 || self.size() != comm.size() || self.engine.lost_group(self.context).is_some() {
            return None;
        }
        let (rank, difference) = self.find_difference(last, word)?;
        let [rank, me] = [rank, self.slots.me()].map(|place| self.ranks[place] as usize);
        Some(disagreement::in_words([rank, me], difference))
    }

    /// Stores the preceding call of this rank for the next call, which is the first stage of an operation.
    pub(super) fn follow(&self, before: Option<Signature>) {
        self.before.store(before.map_or(0, |signature| signature.word().into()), Ordering::Relaxed);
    }

    /// Returns the signature of the call before call `number`, if that went by messages; 0 if it is not known.
    fn signature_by_messages(&self, comm: &Comm, number: u64) -> u64 {
        if self.size() != comm.size() {
            // Stages among some of the members have a numbering of their own.
            return self.before.load(Ordering::Relaxed);
        }
        // Calls here count from 1.
        let before = number.checked_sub(2).and_then(|before| CallLog::of(comm)?.blocking(before));
        before.map_or(0, |signature| signature.word().into())
    }

    /// Returns the word of the next call, which has this signature.
    #[inline(always)]
    fn next_word(&self, signature: Signature) -> u64 {
        let word = self.signature.load(Ordering::Relaxed) << 32 | u64::from(signature.word());
        self.signature.store(word, Ordering::Relaxed);
        word
    }

    #[inline]
    fn pass(&self, number: u64) {
        self.passed.store(number, Ordering::Relaxed);
        self.slots.finish(number);
        self.tell();
    }
}

impl OwnCalls for SharedGroup {
    #[cold]
    fn called(&self, number: u64) -> Option<Signature> {
        // Calls here count from 1.
        let (slots, me, call) = (&self.slots, self.slots.me(), number + 1);
        let of_note = || slots.noted(me, call).map(|word| word as u32);
        let of_next_note = || slots.noted(me, call + 1).map(|word| (word >> 32) as u32);
        of_note().or_else(of_next_note).and_then(Signature::of_word)
    }
}

/// Keeps the first of several errors.
#[derive(Default)]
pub(super) struct First(Option<Error>);

impl First {
    /// Returns the value, unless it is an error.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }

    /// Returns the first error, if there was one.
    pub(super) fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
