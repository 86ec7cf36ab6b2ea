//! Reduce of large operands: every rank combines one slice of all operands, and the root collects the slices.
//!
//! Cost for n bytes: 2 a + 2 (p - 1)/p n b + (p - 1)/p n g.

use crate::Schedule;
use crate::buffer::Buffer;
use crate::slices::{combine_slice, slice_of};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, input: &Buffer, result: Option<&Buffer>, root: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let (_, length) = slice_of(input.count, size, rank);
    let own = match result {
        Some(result) => slice(result, size, rank),
        None => s.elements(length, &input.datatype)?,
    };
    combine_slice(s, |to| slice(input, size, to), &own)?;
    match result {
        Some(result) => {
            for from in (0..size).filter(|&from| from != rank) {
                s.receive(from, slice(result, size, from).region());
            }
        }
        None => s.send(root, own.region()),
    }
    Ok(())
}

fn slice(whole: &Buffer, ranks: usize, rank: usize) -> Buffer {
    let (first, length) = slice_of(whole.count, ranks, rank);
    whole.slice(first, length)
}
