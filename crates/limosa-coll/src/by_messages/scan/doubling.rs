//! Scan by doubling (Hillis and Steele, 1986). Before step k a rank has combined the operands of the last 2^k ranks up
//! to itself. It sends them to the rank 2^k further on, and combines those received from the rank 2^k before in front
//! of its own.
//!
//! The exclusive form first shifts all operands by one rank.
//!
//! Cost for n bytes: ceil(log2 p) (a + n b + n g); the exclusive form a + n b more.

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

/// Plans that rank i gets x(0) op ... op x(i).
pub(crate) fn inclusive(s: &mut Schedule, input: &Buffer, result: &Buffer) -> Result<()> {
    if input.base != result.base {
        s.copy(input.region(), result.region())?;
    }
    doubling(s, result, 0)
}

/// Plans that rank i gets x(0) op ... op x(i - 1).
pub(crate) fn exclusive(s: &mut Schedule, input: &Buffer, result: &Buffer) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let (is_first, is_last) = (rank == 0, rank + 1 == size);
    let mut outgoing = input.clone();
    if input.base == result.base && !is_first && !is_last {
        outgoing = s.elements(input.count, &input.datatype)?;
        s.copy(input.region(), outgoing.region())?;
    }
    if !is_first {
        s.receive(rank - 1, result.region());
    }
    if !is_last {
        s.send(rank + 1, outgoing.region());
    }
    s.wait();
    if is_first { Ok(()) } else { doubling(s, result, 1) }
}

/// Plans an inclusive scan of `partial` in place, among the ranks from `first` on.
fn doubling(s: &mut Schedule, partial: &Buffer, first: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let before = if rank > first { Some(s.elements(partial.count, &partial.datatype)?) } else { None };
    let mut distance = 1;
    while distance < size - first {
        let from = before.as_ref().filter(|_| rank >= first + distance);
        if let Some(before) = from {
            s.receive(rank - distance, before.region());
        }
        if rank + distance < size {
            s.send(rank + distance, partial.region());
        }
        s.wait();
        if let Some(before) = from {
            s.reduce(before, partial);
        }
        distance *= 2;
    }
    Ok(())
}
