//! Combining operands that lie in one block each.

use std::ops::Range;
use std::sync::Arc;

use super::call::SharedCall;
use super::transfer;
use crate::buffer::Buffer;
use crate::memory::Scratch;
use crate::notes::Location;
use crate::schedule::loose_elements;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// What to combine with, and elements of which type: packed ones, in blocks.
pub(crate) struct Reducer<'a> {
    op: &'a Arc<Op>,
    datatype: &'a Arc<Datatype>,
    /// Where in a packed block a buffer of such elements begins, if elements lie in memory as they are packed.
    place: Option<isize>,
    /// This rank's operand, if it is one block and no result is written there.
    own: Option<*const u8>,
}

impl<'a> Reducer<'a> {
    /// For operands like this rank's, which is left as it is, or is where the result comes to.
    pub(crate) fn new(op: &'a Arc<Op>, operand: &'a Buffer, in_place: bool) -> Reducer<'a> {
        let datatype = &operand.datatype;
        // Two elements in one block: any number is.
        let place = datatype.contiguous_at(2);
        let own = place.filter(|_| !in_place).map(|place| operand.base.wrapping_offset(place).cast_const());
        Reducer { op, datatype, place, own }
    }

    /// Bytes of an element.
    pub(crate) fn element(&self) -> usize {
        self.datatype.size() as usize
    }

    /// `into = from op into` for so many bytes of elements.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`, and those of the operation.
    ///
    /// # Safety
    /// Both must be blocks of this many bytes, whole elements; `into` is used by nobody else.
    pub(crate) unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let count = bytes / self.element();
        if let Some(place) = self.place {
            // SAFETY: the elements lie in the blocks as in buffers that begin `place` before them; the rest is the
            // caller's promise.
            return unsafe {
                self.op.reduce_local(from.wrapping_offset(-place), into.wrapping_offset(-place), count, self.datatype)
            };
        }
        let (_lower, left) = loose_elements(count, self.datatype)?;
        let (_upper, right) = loose_elements(count, self.datatype)?;
        // SAFETY: blocks of this many bytes, by the caller's promise; the elements have memory of their own.
        unsafe {
            left.region().write(0, std::slice::from_raw_parts(from, bytes));
            right.region().write(0, std::slice::from_raw_parts(into, bytes));
            self.op.reduce_local(left.base, right.base, count, self.datatype)?;
            right.region().read(0, std::slice::from_raw_parts_mut(into, bytes));
        }
        Ok(())
    }

    /// Combines what ranks have contributed in the slots, whose notes are there: bytes `part` of `all` bytes each. The
    /// result comes to `into`.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if a rank has another number of bytes, and those of [`Reducer::combine`].
    ///
    /// # Safety
    /// `into` must have room for the part and be used by nobody else.
    pub(super) unsafe fn fold(
        &self,
        shared_call: &SharedCall<'_>,
        ranks: Range<usize>,
        all: usize,
        part: Range<usize>,
        into: *mut u8,
    ) -> Result<()> {
        let last = ranks.end - 1;
        let mut fetched = None;
        for rank in ranks.rev() {
            let own = self.own.filter(|_| rank == shared_call.me());
            let from = match own {
                Some(own) => own.wrapping_add(part.start),
                None => match shared_call.posted(rank)?.check(rank, all)?.place {
                    Location::Here(start) => start.wrapping_add(part.start),
                    Location::There { address, .. } => {
                        let copy = Scratch::take(part.len())?;
                        // SAFETY: scratch memory of as many bytes, kept until the next one comes.
                        unsafe {
                            transfer::pull(
                                shared_call,
                                rank,
                                address.wrapping_add(part.start as u64),
                                copy.start(),
                                part.len(),
                            )?
                        };
                        fetched.insert(copy).start()
                    }
                    // It has none, as has been checked.
                    _ => continue,
                },
            };
            // SAFETY: the part lies within the bytes that the rank has contributed; the rest is the caller's promise.
            unsafe {
                if rank == last {
                    std::ptr::copy_nonoverlapping(from, into, part.len());
                } else {
                    self.combine(from, into, part.len())?;
                }
            }
        }
        Ok(())
    }

    /// As [`Reducer::fold`], to a buffer for the part.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(super) fn fold_to(
        &self,
        shared_call: &SharedCall<'_>,
        ranks: Range<usize>,
        all: usize,
        part: Range<usize>,
        result: &Buffer,
    ) -> Result<()> {
        let region = result.region();
        debug_assert_eq!(region.len(), part.len());
        if let Some(start) = region.as_contiguous() {
            // SAFETY: the program's result buffer, which has this many bytes.
            return unsafe { self.fold(shared_call, ranks, all, part, start) };
        }
        let scratch = Scratch::take(part.len())?;
        let len = part.len();
        // SAFETY: scratch memory of this many bytes, all of which have a value.
        unsafe {
            self.fold(shared_call, ranks, all, part, scratch.start())?;
            region.write(0, std::slice::from_raw_parts(scratch.start(), len));
        }
        Ok(())
    }
}
