//! Intake of an operation under way: from notes, from slots, and from the memory of other ranks.

use std::ops::Range;

use limosa_base::copy::copy_here;
use limosa_base::slots::BODY_BYTES;
use limosa_p2p::memory::Region;
use smallvec::SmallVec;

use super::exchange::{Intake, Operands};
use super::lent::{combine_lent, read_lent};
use super::operation::BackgroundOp;
use crate::buffer::{Blocks, Buffer};
use crate::memory::{Scratch, write};
use crate::notes::{Location, Notes, PostedBytes, SlotNote, failed_for_all, given_up, nonsense};
use crate::reducer::Reducer;
use limosa_mpi::error::Result;

impl BackgroundOp {
    /// Copies this rank's intake, which is available, to its buffer.
    ///
    /// # Errors
    /// Ranks disagree; errors of the operation and of the machine.
    pub(super) fn fetch(&self) -> Result<()> {
        match &self.exchange.intake {
            Intake::Nothing => Ok(()),
            Intake::Signals => {
                if self.last_publishes() {
                    Ok(())
                } else {
                    (0..self.mailboxes.size()).try_for_each(|rank| self.found(rank, false, 0).map(|_| ()))
                }
            }
            Intake::One { from, is_part, into } => {
                let place = self.found(*from, *is_part, into.len())?;
                // SAFETY: so many bytes are there.
                unsafe { self.bring(*from, place, into) }
            }
            Intake::Each { into, is_part, .. } => self.fetch_each(into, *is_part),
            Intake::Neighbours(incoming) => self.fetch_from_neighbours(incoming),
            Intake::Pieces(reduction) => reduction.finish(&self.mailboxes, self.number(), self.exchange.call),
            Intake::Combined { operands, part, into, for_all } => {
                if *for_all && self.last_publishes() {
                    return self.fetch_for_all(into, part.len());
                }
                let region = into.region();
                if let Some(start) = region.as_contiguous() {
                    // SAFETY: the program's result, which has this many bytes.
                    return unsafe { self.combine(operands, part, start) };
                }
                let scratch = Scratch::take(part.len())?;
                // SAFETY: scratch memory of this many bytes.
                unsafe {
                    self.combine(operands, part, scratch.start())?;
                    write(&region, std::slice::from_raw_parts(scratch.start(), part.len()));
                }
                Ok(())
            }
        }
    }

    fn fetch_each(&self, into: &Blocks, is_part: bool) -> Result<()> {
        let (size, me) = (self.mailboxes.size(), self.mailboxes.slots.me());
        let mut outcome = Ok(());
        for rank in (1..size).map(|distance| (me + distance) % size) {
            let region = into.region(rank);
            // SAFETY: so many bytes are there.
            let brought =
                self.found(rank, is_part, region.len()).and_then(|place| unsafe { self.bring(rank, place, &region) });
            outcome = outcome.and(brought);
        }
        outcome
    }

    /// Copies a rank's bytes to the region, as many as it has.
    ///
    /// # Safety
    /// As many bytes must be available.
    #[inline]
    pub(super) unsafe fn bring(&self, rank: usize, place: Option<Location>, into: &Region) -> Result<()> {
        match place {
            // SAFETY: the caller's promise.
            Some(Location::Here(start)) => write(into, unsafe { std::slice::from_raw_parts(start, into.len()) }),
            Some(Location::There { address }) => {
                read_lent(&*self.mailboxes, rank, address, into)?;
                return self.check_lent(rank);
            }
            _ => {}
        }
        Ok(())
    }

    fn fetch_for_all(&self, into: &Buffer, len: usize) -> Result<()> {
        let (mailboxes, number) = (&*self.mailboxes, self.number());
        let found = mailboxes.find(mailboxes.size(), number, self.exchange.call);
        if !matches!(found, Ok(PostedBytes { place: Location::Here(_), .. })) {
            // Ranks disagree, or the operation failed. Each rank finds out by itself with which rank.
            (0..mailboxes.size()).try_for_each(|rank| self.found(rank, false, len).map(|_| ()))?;
            return Err(failed_for_all(self.exchange.call.kind));
        }
        if let Location::Here(start) = found?.check(mailboxes.size() - 1, len)?.place {
            // SAFETY: so many bytes are there.
            write(&into.region(), unsafe { std::slice::from_raw_parts(start, len) });
        }
        Ok(())
    }

    /// Returns the location of the bytes that this rank expects from a rank; `None` if there are none, or if they come
    /// by message.
    #[inline]
    fn found(&self, rank: usize, is_part: bool, expected: usize) -> Result<Option<Location>> {
        let most = match &self.exchange.intake {
            Intake::Each { most, .. } => *most,
            _ => usize::MAX,
        };
        if expected > most {
            return Ok(None);
        }
        let (number, kind) = (self.number(), self.exchange.call);
        let found = if is_part {
            self.mailboxes.find_part(rank, number, kind)
        } else {
            self.mailboxes.find(rank, number, kind)
        };
        Ok((expected > 0).then_some(found?.check(rank, expected)?.place))
    }

    /// Combines the operands of the first ranks, which are available: this part of them.
    ///
    /// # Errors
    /// Ranks disagree about the length; errors of the operation.
    ///
    /// # Safety
    /// `into` must have room for the part, and no other thread may use it.
    unsafe fn combine(&self, operands: &Operands, part: &Range<usize>, into: *mut u8) -> Result<()> {
        let all = operands.like.bytes();
        let led = self.mailboxes.leading_op(self.number(), self.exchange.call);
        let reducer = Reducer::new(&operands.op, &operands.like, true).led_by(led);
        if self.lends() {
            let addresses = (0..operands.ranks).map(|rank| match self.found(rank, false, all)? {
                Some(Location::There { address }) => Ok(address),
                _ => Err(nonsense(rank)),
            });
            let addresses = addresses.collect::<Result<SmallVec<[u64; 16]>>>()?;
            // SAFETY: the ranks have lent so many bytes; the rest is the caller's promise.
            return unsafe {
                combine_lent(&*self.mailboxes, &reducer, &addresses, part, into, |rank| self.check_lent(rank))
            };
        }
        for rank in (0..operands.ranks).rev() {
            let from = match self.found(rank, false, all)? {
                Some(Location::Here(start)) => start.wrapping_add(part.start),
                None => continue,
                Some(_) => return Err(nonsense(rank)),
            };
            // SAFETY: the part lies within the bytes that the rank has left; the rest is the caller's promise.
            unsafe {
                if rank + 1 == operands.ranks {
                    copy_here(from, into, part.len());
                } else {
                    reducer.combine(from, into, part.len())?;
                }
            }
        }
        Ok(())
    }

    /// Checks, after bytes were read from a rank's memory, that the rank has not given up meanwhile: the bytes would
    /// then not be those it lent.
    pub(super) fn check_lent(&self, rank: usize) -> Result<()> {
        if self.mailboxes.slots.is_withdrawn(rank, self.number()) {
            return Err(given_up(rank, self.exchange.call.kind));
        }
        Ok(())
    }

    /// Combines the operands in place of this rank's contribution; all other ranks wait for the result.
    pub(super) fn combine_for_all(&self, operands: &Operands, part: &Range<usize>) -> Result<SlotNote> {
        let (mailboxes, number, kind, len) = (&*self.mailboxes, self.number(), self.exchange.call, part.len());
        if len <= BODY_BYTES {
            let mut note = SlotNote::of_bytes(len);
            // SAFETY: the note has room for this many bytes.
            unsafe { self.combine(operands, part, note.bytes())? };
            return Ok(note);
        }
        let scratch = Scratch::take(len)?;
        // SAFETY: scratch memory of this many bytes; then this rank's operand, of as many bytes, which no other rank
        // reads.
        unsafe {
            self.combine(operands, part, scratch.start())?;
            let me = mailboxes.slots.me();
            if let Location::Here(own) = mailboxes.find(me, number, kind)?.place {
                copy_here(scratch.start(), own.cast_mut(), len);
            }
            Ok(SlotNote::of_rank(me))
        }
    }
}
