//! Operands in slices: every rank combines one slice of all operands, in rank order. The core of reduce-scatter, and of
//! those reductions of long operands that begin with a reduce-scatter.
//!
//! Operands are combined from the last rank to the first, `x(0) op (x(1) op (... op x(p-1)))`: the last operand arrives
//! in the place of the result, and the others are combined into it. To bound temporary memory, operands come in groups
//! of at most `GROUP` ranks.

use super::buffer::Buffer;
use super::schedule::Schedule;
use limosa_mpi::error::Result;

/// Number of ranks whose operands are under way at once.
const GROUP: usize = 32;

/// Sends `slice(j)` of this rank's operand to each rank `j`, and combines all ranks' slices for this rank into `own`.
///
/// `own` may lie in the operand: then it is overwritten only when all slices have been sent. It may be used from the
/// next step on.
pub(crate) fn combine_slice(s: &mut Schedule, slice: impl Fn(usize) -> Buffer, own: &Buffer) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let last = size - 1;
    let in_place = (0..size).any(|to| slice(to).base == own.base);
    if size == 1 {
        return if in_place { Ok(()) } else { s.copy(slice(0).region(), own.region()) };
    }
    let into = if in_place { s.elements(own.count, &own.datatype)? } else { own.clone() };
    if rank == last {
        s.copy(slice(rank).region(), into.region())?;
    }
    let arriving: Vec<Buffer> =
        (0..GROUP.min(last)).map(|_| s.elements(own.count, &own.datatype)).collect::<Result<_>>()?;
    let mut end = size;
    while end > 0 {
        let group = end.saturating_sub(GROUP)..end;
        let operand = |from: usize| match from {
            from if from == last => into.clone(),
            from if from == rank => slice(rank),
            from => arriving[from - group.start].clone(),
        };
        for from in group.clone().filter(|&from| from != rank) {
            s.receive(from, operand(from).region());
        }
        if group.contains(&rank) {
            for step in 1..size {
                let to = (rank + step) % size;
                s.send(to, slice(to).region());
            }
        }
        s.wait();
        for from in group.clone().rev().filter(|&from| from != last) {
            s.reduce(&operand(from), &into);
        }
        end = group.start;
    }
    if in_place {
        s.copy(into.region(), own.region())?;
    }
    Ok(())
}

/// Returns the first element and the length of the part of rank `rank` when `count` elements are divided evenly.
pub(crate) fn slice_of(count: usize, ranks: usize, rank: usize) -> (usize, usize) {
    let (each, more) = (count / ranks, count % ranks);
    (rank * each + rank.min(more), each + usize::from(rank < more))
}
