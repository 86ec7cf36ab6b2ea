//! Which algorithm serves a collective: tables, one per operation.
//!
//! A table is read from top to bottom; the first row that fits the number of ranks, the bytes and the operation is taken. The last row of a table
//! fits everything. Whose bytes are meant the comment on a table says; all ranks know them alike.
//!
//! The limits are estimates, not measurements: the cost formulas in the algorithms' files with a = 1 us and b = g = 0.1 ns per byte, in favour of
//! fewer messages where they say about the same, rounded to powers of two.

use std::sync::Arc;

use super::buffer::{Blocks, Buffer};
use super::schedule::Schedule;
use super::{allgather, allreduce, bcast, gather, reduce, reduce_scatter, scatter};
use crate::error::Result;
use crate::op::Op;

/// One line of a table: an algorithm, and up to where it is the best choice.
pub(super) struct Row<F: 'static> {
    /// Fits up to this number of ranks.
    ranks: usize,
    /// Fits up to this number of bytes.
    bytes: usize,
    /// Fits operations that do not commute as well.
    any_order: bool,
    /// Plans.
    pub(super) plan: F,
}

/// No limit.
const ANY: usize = usize::MAX;

const fn row<F>(ranks: usize, bytes: usize, plan: F) -> Row<F> {
    Row { ranks, bytes, any_order: true, plan }
}

const fn commuting<F>(ranks: usize, bytes: usize, plan: F) -> Row<F> {
    Row { ranks, bytes, any_order: false, plan }
}

/// The first row that fits. `op` is that of a reduction.
pub(super) fn select<F: Copy>(table: &[Row<F>], ranks: usize, bytes: usize, op: Option<&Arc<Op>>) -> F {
    let commutes = op.is_none_or(|op| op.is_commutative());
    let fits = |row: &&Row<F>| ranks <= row.ranks && bytes <= row.bytes && (row.any_order || commutes);
    table.iter().find(fits).expect("the last row of a table fits everything").plan
}

/// (schedule, buffer, root)
pub(super) type Bcast = fn(&mut Schedule, &Buffer, usize) -> Result<()>;

/// Bytes: of the message.
pub(super) const BCAST: &[Row<Bcast>] =
    &[row(2, ANY, bcast::binomial::plan), row(ANY, 128 << 10, bcast::binomial::plan), row(ANY, ANY, bcast::scatter_exchange::plan)];

/// (schedule, own contribution, all contributions at the root, root)
pub(super) type Gather = fn(&mut Schedule, Option<&Buffer>, Option<&Blocks>, usize) -> Result<()>;

/// Bytes: of one contribution.
pub(super) const GATHER: &[Row<Gather>] =
    &[row(4, ANY, gather::linear::plan), row(ANY, 4 << 10, gather::binomial::plan), row(ANY, ANY, gather::linear::plan)];

/// (schedule, all parts at the root, own part, root)
pub(super) type Scatter = fn(&mut Schedule, Option<&Blocks>, Option<&Buffer>, usize) -> Result<()>;

/// Bytes: of one part.
pub(super) const SCATTER: &[Row<Scatter>] =
    &[row(4, ANY, scatter::linear::plan), row(ANY, 4 << 10, scatter::binomial::plan), row(ANY, ANY, scatter::linear::plan)];

/// (schedule, own contribution, all contributions)
pub(super) type Allgather = fn(&mut Schedule, Option<&Buffer>, &Blocks) -> Result<()>;

/// Bytes: of one contribution.
pub(super) const ALLGATHER: &[Row<Allgather>] = &[
    row(4, ANY, allgather::exchange::plan),
    row(ANY, 4 << 10, allgather::bruck::plan),
    row(64, ANY, allgather::exchange::plan),
    row(ANY, ANY, allgather::ring::plan),
];

/// Bytes: of all contributions.
pub(super) const ALLGATHERV: &[Row<Allgather>] = &[row(64, ANY, allgather::exchange::plan), row(ANY, ANY, allgather::ring::plan)];

/// (schedule, operands, result at the root, root)
pub(super) type Reduce = fn(&mut Schedule, &Buffer, Option<&Buffer>, usize) -> Result<()>;

/// Bytes: of one operand.
pub(super) const REDUCE: &[Row<Reduce>] = &[
    commuting(ANY, 32 << 10, reduce::binomial::plan_rotated),
    row(ANY, 32 << 10, reduce::binomial::plan),
    row(ANY, ANY, reduce::sliced::plan),
];

/// (schedule, operands, result)
pub(super) type Allreduce = fn(&mut Schedule, &Buffer, &Buffer) -> Result<()>;

/// Bytes: of one operand.
pub(super) const ALLREDUCE: &[Row<Allreduce>] =
    &[row(ANY, 16 << 10, allreduce::recursive_doubling::plan), row(ANY, ANY, allreduce::sliced::plan)];

/// (schedule, operands, elements of each rank's part of the result, own part)
pub(super) type ReduceScatter = fn(&mut Schedule, &Buffer, &[usize], &Buffer) -> Result<()>;

/// Bytes: of all operands of a rank.
pub(super) const REDUCE_SCATTER: &[Row<ReduceScatter>] = &[
    row(16, ANY, reduce_scatter::exchange::plan),
    row(ANY, 16 << 10, reduce_scatter::via_reduce::plan),
    row(ANY, ANY, reduce_scatter::exchange::plan),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::MPI_SUM;

    #[test]
    fn the_last_row_of_each_table_fits_everything() {
        fn last<F: Copy>(table: &[Row<F>]) -> bool {
            table.last().is_some_and(|row| row.ranks == ANY && row.bytes == ANY && row.any_order)
        }
        assert!(last(BCAST) && last(GATHER) && last(SCATTER) && last(ALLGATHER) && last(ALLGATHERV));
        assert!(last(REDUCE) && last(ALLREDUCE) && last(REDUCE_SCATTER));
    }

    #[test]
    fn rows_are_taken_in_order() {
        let table = [row(2, ANY, 'a'), commuting(ANY, 10, 'b'), row(ANY, 20, 'c'), row(ANY, ANY, 'd')];
        let sum = Op::builtin(MPI_SUM).expect("a predefined operation");
        assert_eq!(select(&table, 2, 1000, None), 'a');
        assert_eq!(select(&table, 3, 10, Some(&sum)), 'b');
        assert_eq!(select(&table, 3, 11, Some(&sum)), 'c');
        assert_eq!(select(&table, 3, 21, None), 'd');
    }
}
