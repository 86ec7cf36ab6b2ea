//! Reductions of large operands, by pieces, among ranks that can access each other's memory.
//!
//! Every rank posts the addresses of its operand and its result. Then each polling thread takes the next free piece,
//! copies that piece of all operands, combines them, and writes the result to all ranks that receive it, while it is
//! still in the cache. A piece is read and written by one thread only, so operand and result may be the same memory.
//! Ranks that share a processor need not take turns: a running rank works, and no rank depends on the processor of
//! another rank.
//!
//! Operands are combined from the highest rank to the lowest; prefixes from the lowest, where each rank's operand is
//! combined behind those of lower ranks. All ranks therefore get the same bits, whichever thread combines, blocking or
//! in the background.
//!
//! Cost for n bytes and p ranks on c processors: (p - 1) n (copies in) + (p - 1) n (copies out, to all) +
//! (p - 1) n (combining), all over min(p, c).

use std::ops::Range;

use crate::access::Access;
use crate::memory::Scratch;
use crate::notes::{Ends, Location, PostedBytes, nonsense};
use crate::reducer::Reducer;
use limosa_base::copy::copy_here;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::mix::mix;

/// Distribution of the result.
pub(crate) enum Delivery {
    /// All of it to all ranks.
    All,
    /// All of it to one rank.
    To(usize),
    /// A part to each rank, which ends at this byte.
    Parts(Vec<usize>),
    /// The combined operands of lower ranks to each rank.
    Prefixes {
        /// Including the rank's own operand.
        with_own: bool,
    },
}

impl Delivery {
    /// Makes a delivery of parts of so many elements.
    pub(crate) fn of_parts(counts: &[usize], element: usize) -> Delivery {
        let mut end = 0;
        let ends = counts.iter().map(|count| {
            end += count * element;
            end
        });
        Delivery::Parts(ends.collect())
    }

    /// Whether a rank gets any of these bytes of the result.
    pub(crate) fn reaches(&self, rank: usize, bytes: Range<usize>) -> bool {
        match self {
            Delivery::All | Delivery::Prefixes { .. } => true,
            Delivery::To(root) => *root == rank,
            Delivery::Parts(ends) => {
                let start = if rank == 0 { 0 } else { ends[rank - 1] };
                start < bytes.end && bytes.start < ends[rank]
            }
        }
    }

    /// Returns the number of ranks, from rank 0, whose combined operands a rank gets, and the range of bytes.
    pub(crate) fn to(&self, rank: usize, ranks: usize, bytes: usize) -> (usize, Range<usize>) {
        match self {
            Delivery::All => (ranks, 0..bytes),
            Delivery::To(root) => (if *root == rank { ranks } else { 0 }, 0..bytes),
            Delivery::Parts(ends) => (ranks, if rank == 0 { 0 } else { ends[rank - 1] }..ends[rank]),
            Delivery::Prefixes { with_own } => (rank + usize::from(*with_own), 0..bytes),
        }
    }
}

/// The division of operands. It is equal on all ranks, or an error: each posts its [shape](Pieces::shape).
#[derive(Clone, Copy)]
pub(crate) struct Pieces {
    bytes: usize,
    piece: usize,
}

impl Pieces {
    /// Divides operands of `bytes` bytes, of elements of `element` bytes, at `ranks` ranks.
    pub(crate) fn new(bytes: usize, ranks: usize, element: usize) -> Pieces {
        let about = bytes.div_ceil(ranks).next_multiple_of(1 << 10).clamp(4 << 10, 128 << 10);
        Pieces { bytes, piece: (about / element).max(1) * element }
    }

    /// Returns the number of pieces.
    pub(crate) fn count(self) -> u64 {
        self.bytes.div_ceil(self.piece) as u64
    }

    /// Returns a hash of bytes, pieces and delivery.
    pub(crate) fn shape(self, delivery: &Delivery) -> u64 {
        let (form, words): (u64, &[usize]) = match delivery {
            Delivery::All => (0, &[]),
            Delivery::To(root) => (1, std::slice::from_ref(root)),
            Delivery::Parts(ends) => (2, ends),
            Delivery::Prefixes { with_own } => (3 + u64::from(*with_own), &[]),
        };
        words.iter().fold(mix(self.bytes as u64, mix(self.piece as u64, form)), |shape, word| mix(shape, *word as u64))
    }

    /// Returns the addresses of all operands and results, from the notes of the ranks.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT` or `MPI_ERR_ARG`: ranks differ in the number of bytes, or in the division.
    /// All ranks then get the error.
    pub(crate) fn ends(
        self,
        shape: u64,
        ranks: usize,
        posted: impl Fn(usize) -> Result<PostedBytes>,
    ) -> Result<Vec<Ends>> {
        let of = |rank| match posted(rank)?.check(rank, self.bytes)?.place {
            Location::Operand { ends, shape: other } if other == shape => Ok(ends),
            Location::Operand { .. } => Err(differs(rank)),
            _ => Err(nonsense(rank)),
        };
        (0..ranks).map(of).collect()
    }

    /// Returns the offset of a piece, and its bytes.
    fn extent(self, piece: u64) -> (usize, usize) {
        let offset = piece as usize * self.piece;
        (offset, self.piece.min(self.bytes - offset))
    }

    /// Takes scratch memory for combining pieces.
    pub(crate) fn scratch(self) -> Result<Scratch> {
        Scratch::take(2 * self.piece)
    }
}

#[cold]
fn differs(rank: usize) -> Error {
    Error::new(
        limosa_mpi::consts::MPI_ERR_ARG,
        format!(
            "rank {rank} has other elements, counts or another root in this reduction: all ranks must pass the same"
        ),
    )
}

/// A reduction whose pieces are to be combined.
pub(crate) struct PieceReduction<'a, A> {
    pub(crate) access: &'a A,
    pub(crate) reducer: &'a Reducer<'a>,
    pub(crate) pieces: Pieces,
    pub(crate) ranks: &'a [Ends],
    pub(crate) delivery: &'a Delivery,
    /// This rank's operand, in one block, and the place of its result.
    pub(crate) own_operand: *mut u8,
    pub(crate) own_result: Option<*mut u8>,
}

impl<A: Access> PieceReduction<'_, A> {
    /// Combines a piece and writes it to all ranks that receive it.
    ///
    /// # Errors
    /// The memory of a rank cannot be accessed; errors of the operation.
    ///
    /// # Safety
    /// The piece must belong to this thread alone, at all ranks, which have offered their memory; the scratch memory is
    /// that of [`Pieces::scratch`].
    pub(crate) unsafe fn piece(&self, piece: u64, scratch: &Scratch) -> Result<()> {
        let (offset, len) = self.pieces.extent(piece);
        let scratch = [scratch.start(), scratch.start().wrapping_add(self.pieces.piece)];
        // SAFETY: the caller's promise.
        unsafe {
            match self.delivery {
                Delivery::All => {
                    let combined = self.combined(offset, len, true, scratch)?;
                    (0..self.ranks.len()).try_for_each(|rank| self.bring(rank, combined, offset, len))
                }
                Delivery::To(root) => {
                    let combined = self.combined(offset, len, *root == self.access.me(), scratch)?;
                    self.bring(*root, combined, offset, len)
                }
                Delivery::Parts(ends) => {
                    let combined = self.combined(offset, len, false, scratch)?;
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
                Delivery::Prefixes { with_own } => self.prefixes(offset, len, *with_own, scratch),
            }
        }
    }

    /// Combines the operands of all ranks; in this rank's result if it gets the same bytes, else in scratch memory.
    ///
    /// # Safety
    /// As for [`PieceReduction::piece`].
    unsafe fn combined(&self, offset: usize, len: usize, own: bool, scratch: [*mut u8; 2]) -> Result<*mut u8> {
        let own_result = self.own_result.filter(|result| own && *result != self.own_operand);
        let into = own_result.map_or(scratch[0], |result| result.wrapping_add(offset));
        let last = self.ranks.len() - 1;
        for rank in (0..=last).rev() {
            // SAFETY: `into` and the scratch memory have room for a piece and belong to this rank.
            unsafe {
                if rank == last {
                    self.fetch(rank, offset, len, into)?;
                } else {
                    let operand = self.look(rank, offset, len, scratch[1])?;
                    self.reducer.combine(operand, into, len)?;
                }
            }
        }
        Ok(into)
    }

    /// Writes to each rank the combined operands of lower ranks.
    ///
    /// # Safety
    /// As for [`PieceReduction::piece`].
    unsafe fn prefixes(&self, offset: usize, len: usize, with_own: bool, scratch: [*mut u8; 2]) -> Result<()> {
        let [mut before, mut now] = scratch;
        for rank in 0..self.ranks.len() {
            // SAFETY: two blocks of scratch memory that have room for a piece.
            unsafe {
                if rank > 0 && !with_own {
                    // Its own operand is read below, before any rank can overwrite it: operand and result may be the
                    // same memory.
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
            if rank == self.access.me() {
                copy_here(self.own_operand.add(offset), to, len);
                return Ok(());
            }
            self.access.read(rank, self.ranks[rank].operand.wrapping_add(offset as u64), to, len)
        }
    }

    /// Returns an address at which a piece of a rank's operand can be read: its own, or that of a copy.
    unsafe fn look(&self, rank: usize, offset: usize, len: usize, copy: *mut u8) -> Result<*const u8> {
        if rank == self.access.me() {
            return Ok(self.own_operand.wrapping_add(offset));
        }
        // SAFETY: the caller vouches for the place of the copy.
        unsafe { self.fetch(rank, offset, len, copy)? };
        Ok(copy)
    }

    /// Writes bytes at `offset` of a rank's result.
    unsafe fn bring(&self, rank: usize, from: *const u8, offset: usize, len: usize) -> Result<()> {
        if rank == self.access.me() {
            if let Some(to) = self.own_result.map(|result| result.wrapping_add(offset))
                && to.cast_const() != from
            {
                // SAFETY: the caller vouches for the piece; it is not there yet, and pieces do not overlap.
                unsafe { copy_here(from, to, len) };
            }
            return Ok(());
        }
        // SAFETY: the rank has offered its result, of which only this rank writes this piece.
        unsafe { self.access.write(rank, from, self.ranks[rank].result.wrapping_add(offset as u64), len) }
    }
}
