//! Allreduce of large operands: every rank combines one slice of all operands, then all ranks exchange the slices of
//! the result.
//!
//! Every element is combined by one rank only, in rank order, so all ranks get the same bits.
//!
//! Cost for n bytes: 2 a + 2 (p - 1)/p n b + (p - 1)/p n g (for p up to WINDOW).

use crate::Schedule;
use crate::buffer::Buffer;
use crate::exchange::exchange;
use crate::slices::{combine_slice, slice_of};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, input: &Buffer, result: &Buffer) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let slice = |whole: &Buffer, rank: usize| {
        let (first, length) = slice_of(whole.count, size, rank);
        whole.slice(first, length)
    };
    let own = slice(result, rank);
    combine_slice(s, |to| slice(input, to), &own)?;
    exchange(s, |_| own.region(), |from| slice(result, from).region());
    Ok(())
}
