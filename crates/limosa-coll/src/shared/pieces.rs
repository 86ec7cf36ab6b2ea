//! Reductions of large operands, by pieces.
//!
//! Every rank says where its operand is, and where it wants its result. Then each takes the next piece that nobody has
//! taken, copies that piece of everybody's operand, combines, and brings the result to all who want it, while it is
//! still in its cache. A piece is read and written by nobody else, so that operand and result may be the same memory.
//! Ranks that share a processor need not take turns: whoever is running works.
//!
//! Cost for n bytes and p ranks on c processors: (p - 1) n (copies in) + (p - 1) n (copies out, when all want all) + (p
//! - 1) n (combining), all over min(p, c).

use super::call::{First, SharedCall};
use super::fold::Reducer;
use super::rounds::{self, Rounds};
use super::select;
use super::transfer::{pull, push};
use crate::buffer::Buffer;
use crate::memory::{Flat, Scratch};
use crate::notes::{Location, nonsense};
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

/// Who gets what of the result.
#[derive(Clone, Copy)]
pub(super) enum Delivery<'a> {
    /// All ranks, all of it.
    All,
    /// One rank.
    To(usize),
    /// Each rank its part, which ends at this byte.
    Parts(&'a [usize]),
    /// Each rank what those before it have, combined, and perhaps its own.
    Prefixes {
        /// With its own operand.
        with_own: bool,
    },
}

/// What is known of a rank's memory.
#[derive(Clone, Copy)]
struct Rank {
    operand: u64,
    result: u64,
}

/// Reduces. `result` is where this rank wants what it gets, if anything; with `apart` it is not written to before all
/// have finished.
///
/// # Errors
/// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if ranks have different numbers of bytes (all of them get an error then),
/// `MPI_ERR_NO_MEM`, and errors of the machine.
pub(super) fn reduce(
    shared_call: &SharedCall<'_>,
    reducer: &Reducer<'_>,
    input: &Buffer,
    result: Option<&Region>,
    apart: bool,
    delivery: Delivery<'_>,
) -> Result<()> {
    let bytes = input.bytes();
    let by_rounds = select::in_rounds(shared_call.group, shared_call.kind, bytes)
        && reducer.element() <= select::part_bytes(shared_call.size()) / 2;
    if by_rounds && let Some(rounds) = Rounds::begin(shared_call, bytes, None)? {
        return rounds::reduce(&rounds, reducer, input, result, apart, delivery);
    }
    let operand = Flat::packed(&input.region())?;
    let room = match result {
        Some(region) if apart => Some(Flat::temporary(region.len())?),
        Some(region) => Some(Flat::room(region)?),
        None => None,
    };
    shared_call.offer(bytes, operand.start(), room.as_ref().map_or(std::ptr::null(), |room| room.start()))?;
    shared_call.wait_for_all()?;
    let ranks = (0..shared_call.size()).map(|rank| {
        let posted = shared_call.posted(rank)?.check(rank, bytes)?;
        let Location::There { address, result } = posted.place else { return Err(nonsense(rank)) };
        Ok(Rank { operand: address, result })
    });
    let ranks = ranks.collect::<Result<Vec<Rank>>>()?;

    let element = reducer.element();
    let piece = (select::piece_bytes(bytes, shared_call.size()) / element).max(1) * element;
    let scratch = Scratch::take(2 * piece)?;
    let work = Work {
        shared_call,
        reducer,
        ranks: &ranks,
        delivery,
        own_operand: operand.start(),
        own_result: room.as_ref().map(Flat::start),
        scratch: [scratch.start(), scratch.start().wrapping_add(piece)],
    };
    let pieces = bytes.div_ceil(piece) as u64;
    let mut trouble = First::default();
    while let Some(next) = shared_call.group.slots.take_piece(shared_call.number(), pieces) {
        let offset = next as usize * piece;
        let len = piece.min(bytes - offset);
        // SAFETY: all ranks have offered their memory, of which this piece is worked at by this rank alone.
        trouble.note(unsafe { work.piece(offset, len) });
    }
    trouble.note(shared_call.finish_together());
    trouble.end()?;
    if let (Some(room), Some(region)) = (room, result) {
        room.deliver(region);
    }
    Ok(())
}

/// What is needed to work at a piece.
struct Work<'a> {
    shared_call: &'a SharedCall<'a>,
    reducer: &'a Reducer<'a>,
    ranks: &'a [Rank],
    delivery: Delivery<'a>,
    own_operand: *mut u8,
    own_result: Option<*mut u8>,
    scratch: [*mut u8; 2],
}

impl Work<'_> {
    /// # Safety
    /// The piece must be this rank's alone, at all ranks.
    unsafe fn piece(&self, offset: usize, len: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self.delivery {
                Delivery::All => {
                    let combined = self.combined(offset, len, true)?;
                    (0..self.ranks.len()).try_for_each(|rank| self.bring(rank, combined, offset, len))
                }
                Delivery::To(root) => {
                    let combined = self.combined(offset, len, root == self.shared_call.me())?;
                    self.bring(root, combined, offset, len)
                }
                Delivery::Parts(ends) => {
                    let combined = self.combined(offset, len, false)?;
                    let mut start = 0;
                    for (rank, &end) in ends.iter().enumerate() {
                        let (from, to) = (start.max(offset), end.min(offset + len));
                        if from < to {
                            self.bring(rank, combined.wrapping_add(from - offset), from - start, to - from)?;
                        }
                        start = end;
                    }
                    Ok(())
                }
                Delivery::Prefixes { with_own } => self.prefixes(offset, len, with_own),
            }
        }
    }

    /// The operands of all ranks combined; in this rank's result if it gets the same bytes, else in scratch memory.
    ///
    /// # Safety
    /// As for [`Work::piece`].
    unsafe fn combined(&self, offset: usize, len: usize, own: bool) -> Result<*mut u8> {
        let own_result = self.own_result.filter(|result| own && *result != self.own_operand);
        let into = own_result.map_or(self.scratch[0], |result| result.wrapping_add(offset));
        let last = self.ranks.len() - 1;
        for rank in (0..=last).rev() {
            // SAFETY: `into` and the scratch memory have room for a piece and are this rank's.
            unsafe {
                if rank == last {
                    self.fetch(rank, offset, len, into)?;
                } else {
                    let operand = self.look(rank, offset, len, self.scratch[1])?;
                    self.reducer.combine(operand, into, len)?;
                }
            }
        }
        Ok(into)
    }

    /// Brings each rank what those before it have, combined.
    ///
    /// # Safety
    /// As for [`Work::piece`].
    unsafe fn prefixes(&self, offset: usize, len: usize, with_own: bool) -> Result<()> {
        let [mut before, mut now] = self.scratch;
        for rank in 0..self.ranks.len() {
            // SAFETY: two blocks of scratch memory that have room for a piece.
            unsafe {
                if rank > 0 && !with_own {
                    // Its own operand is read below, before this rank or anybody else could write there: they may be
                    // the same memory.
                    self.fetch(rank, offset, len, now)?;
                    self.bring(rank, before, offset, len)?;
                } else {
                    self.fetch(rank, offset, len, now)?;
                }
                if rank > 0 {
                    self.reducer.combine(before, now, len)?;
                }
                if with_own {
                    self.bring(rank, now, offset, len)?;
                }
            }
            std::mem::swap(&mut before, &mut now);
        }
        Ok(())
    }

    /// Copies a piece of a rank's operand.
    unsafe fn fetch(&self, rank: usize, offset: usize, len: usize, to: *mut u8) -> Result<()> {
        // SAFETY: the operands have these bytes; the caller vouches for the target.
        unsafe {
            if rank == self.shared_call.me() {
                std::ptr::copy_nonoverlapping(self.own_operand.add(offset), to, len);
                return Ok(());
            }
            pull(self.shared_call, rank, self.ranks[rank].operand.wrapping_add(offset as u64), to, len)
        }
    }

    /// Where a piece of a rank's operand can be read: where it is, or a copy.
    unsafe fn look(&self, rank: usize, offset: usize, len: usize, copy: *mut u8) -> Result<*const u8> {
        if rank == self.shared_call.me() {
            return Ok(self.own_operand.wrapping_add(offset));
        }
        // SAFETY: the caller vouches for the place of the copy.
        unsafe { self.fetch(rank, offset, len, copy)? };
        Ok(copy)
    }

    /// Brings bytes to the place `offset` of a rank's result.
    unsafe fn bring(&self, rank: usize, from: *const u8, offset: usize, len: usize) -> Result<()> {
        if rank == self.shared_call.me() {
            if let Some(to) = self.own_result.map(|result| result.wrapping_add(offset))
                && to.cast_const() != from
            {
                // SAFETY: the caller vouches for the piece; it is not there yet, and pieces do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
            }
            return Ok(());
        }
        // SAFETY: the rank has offered its result, of which this piece is written to by this rank alone.
        unsafe { push(self.shared_call, rank, from, self.ranks[rank].result.wrapping_add(offset as u64), len) }
    }
}
