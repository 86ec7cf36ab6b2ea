//! Combination of contributions in the slots.

use std::ops::Range;

use super::call::SharedCall;
use super::transfer;
use crate::buffer::Buffer;
use crate::memory::Scratch;
use crate::notes::Location;
use crate::reducer::Reducer;
use limosa_base::copy::copy_here;
use limosa_mpi::error::Result;

impl Reducer<'_> {
    /// Combines the contributions of ranks in the slots, whose notes are posted: bytes `part` of `all` bytes each. The
    /// result is written to `into`.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if a rank has another number of bytes; errors of [`Reducer::combine`].
    ///
    /// # Safety
    /// `into` must have room for the part, and no other thread may use it.
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
                    Location::There { address } => {
                        let copy = Scratch::take(part.len())?;
                        // SAFETY: scratch memory of as many bytes, kept until the next operand.
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
                    // It has no bytes, as was checked.
                    _ => continue,
                },
            };
            // SAFETY: the part lies within the bytes that the rank has contributed; the rest is the caller's promise.
            unsafe {
                if rank == last {
                    copy_here(from, into, part.len());
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
        // SAFETY: scratch memory of this many bytes, all of them initialised.
        unsafe {
            self.fold(shared_call, ranks, all, part, scratch.start())?;
            region.write(0, std::slice::from_raw_parts(scratch.start(), len));
        }
        Ok(())
    }
}
