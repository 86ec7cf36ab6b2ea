//! Reduce-scatter in one step: every rank receives its part of all operands and combines them ([`combine_slice`]).
//!
//! Cost for a part of n bytes: ceil(p / GROUP) a + (p - 1) n (b + g), and min(p, GROUP) n bytes of temporary memory.

use crate::Schedule;
use crate::buffer::Buffer;
use crate::slices::combine_slice;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, input: &Buffer, counts: &[usize], own: &Buffer) -> Result<()> {
    let firsts: Vec<usize> =
        counts.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count))).collect();
    combine_slice(s, |to| input.slice(firsts[to], counts[to]), own)
}
