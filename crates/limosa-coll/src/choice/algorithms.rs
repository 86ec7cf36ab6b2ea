//! The algorithms of the collective operations: names, conditions, and costs.
//!
//! Costs are functions of p ranks and n bytes, counted as in the rows of a table. A time is the sum of four terms,
//! whose factors a model measures: the latency of a message or of a note in shared memory, and the time per byte
//! transferred, combined, or copied inside a process.

use super::{Subject, TableWay};

/// An algorithm of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Algorithm {
    /// Name, unique among the algorithms of the operation.
    pub(crate) name: &'static str,
    pub(super) way: TableWay,
    /// Whether it requires that all ranks can read each other's memory.
    pub(super) direct: bool,
    /// Whether it requires an operation that commutes.
    pub(super) commuting: bool,
    /// Whether it is composed of algorithms inside hosts and between them. It requires members on several hosts, with
    /// several members on one of them.
    pub(crate) composed: bool,
    /// Cost for p ranks and n bytes.
    #[allow(dead_code, reason = "the model that tunes the table evaluates it; tests do today")]
    pub(crate) cost: fn(f64, f64) -> Cost,
}

impl Algorithm {
    /// Returns the name of its way.
    pub(crate) fn way_name(&self) -> &'static str {
        super::WAYS[self.way as usize]
    }
}

/// Number of occurrences of each term of a time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code, reason = "as for `Algorithm::cost`")]
pub(crate) struct Cost {
    pub(crate) latencies: f64,
    pub(crate) transferred: f64,
    pub(crate) combined: f64,
    pub(crate) copied: f64,
}

const fn cost(latencies: f64, transferred: f64, combined: f64, copied: f64) -> Cost {
    Cost { latencies, transferred, combined, copied }
}

/// Number of concurrent transfers in an exchange.
const WINDOW: f64 = crate::exchange::WINDOW as f64;

const fn algorithm(name: &'static str, way: TableWay, cost: fn(f64, f64) -> Cost) -> Algorithm {
    Algorithm { name, way, direct: false, commuting: false, composed: false, cost }
}

/// Makes an algorithm over the leaders of hosts. Its cost is that between `p` hosts; the shared way has the cost inside
/// them.
const fn leaders(cost: fn(f64, f64) -> Cost) -> Algorithm {
    Algorithm { composed: true, ..algorithm("leaders", TableWay::Messages, cost) }
}

/// Returns floor(log2 p). Counted in integers, because the mathematics library would be one more to load.
fn doublings(p: f64) -> f64 {
    f64::from((p as u32).max(1).ilog2())
}

/// Returns the number of steps of a doubling.
fn steps(p: f64) -> f64 {
    doublings(2.0 * p - 1.0)
}

fn reduce_tree(p: f64, n: f64) -> Cost {
    cost(steps(p), steps(p) * n, steps(p) * n, 0.0)
}

/// Returns the algorithms of an operation, of all ways.
pub(crate) fn of(subject: Subject) -> impl Iterator<Item = &'static Algorithm> {
    ALL[subject.0].iter().copied()
}

// ---- in memory that the members share -------------------------------------------------------------------------------

/// Each rank posts a flag and polls those of the others.
static FLAGS: Algorithm = algorithm("flags", TableWay::Shared, |p, _| cost(p - 1.0, 0.0, 0.0, 0.0));
/// A contribution that fits a slot or ring buffer is copied in by its owner and copied out by each reader.
static ONE_TO_ALL: Algorithm = algorithm("slots", TableWay::Shared, |p, n| cost(1.0, (p - 1.0) * n, 0.0, n));
static ALL_TO_ONE: Algorithm = algorithm("slots", TableWay::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, n));
static ALL_TO_ALL: Algorithm = algorithm("slots", TableWay::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, n));
static FOLD: Algorithm = algorithm("slots", TableWay::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, (p - 1.0) * n, n));
/// In rounds through shared buffers.
static ROUNDS: Algorithm =
    algorithm("rounds", TableWay::Shared, |p, n| cost(p * (n / ROUND).ceil(), (p - 1.0) * n, 0.0, n));
static ROUNDS_COMBINED: Algorithm =
    algorithm("rounds", TableWay::Shared, |p, n| cost(2.0 * p * (n / ROUND).ceil(), n, (p - 1.0) * n / p, n));
/// Directly from memory to memory, both partners copying.
static SINGLE_COPY: Algorithm = Algorithm {
    direct: true,
    ..algorithm("single_copy", TableWay::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0))
};
/// Any running rank takes the next piece, reads it from all ranks, combines it, and writes it to the ranks that receive
/// it.
static PIECES: Algorithm = Algorithm {
    direct: true,
    ..algorithm("pieces", TableWay::Shared, |p, n| cost(p, 2.0 * (p - 1.0) * n / p, (p - 1.0) * n / p, 0.0))
};
/// Approximate number of bytes of a round.
const ROUND: f64 = 64.0 * 1024.0;

// ---- in the background, in such memory ------------------------------------------------------------------------------

/// Each rank puts its contribution into its mailbox.
static MAILBOX: Algorithm = algorithm("mailbox", TableWay::Background, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, n));
/// Each rank posts the address of its contribution, and readers copy from there.
static LENT: Algorithm = Algorithm {
    direct: true,
    ..algorithm("lent", TableWay::Background, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0))
};
/// As [`PIECES`], by any polling thread.
static PIECES_BEHIND: Algorithm = Algorithm { way: TableWay::Background, ..PIECES };

// ---- by messages ----------------------------------------------------------------------------------------------------

static DISSEMINATION: Algorithm = algorithm("dissemination", TableWay::Messages, |p, _| cost(steps(p), 0.0, 0.0, 0.0));
static BCAST_BINOMIAL: Algorithm =
    algorithm("binomial", TableWay::Messages, |p, n| cost(steps(p), steps(p) * n, 0.0, 0.0));
static BCAST_SLICES: Algorithm =
    algorithm("scatter_exchange", TableWay::Messages, |p, n| cost(2.0, 2.0 * (p - 1.0) / p * n, 0.0, 0.0));
static LINEAR: Algorithm = algorithm("linear", TableWay::Messages, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0));
static TREE: Algorithm = algorithm("binomial", TableWay::Messages, |p, n| cost(steps(p), (p - 1.0) * n, 0.0, 0.0));
static EXCHANGE: Algorithm =
    algorithm("exchange", TableWay::Messages, |p, n| cost(((p - 1.0) / WINDOW).ceil(), (p - 1.0) * n, 0.0, 0.0));
static BRUCK: Algorithm = algorithm("bruck", TableWay::Messages, |p, n| cost(steps(p), (p - 1.0) * n, 0.0, p * n));
static RING: Algorithm = algorithm("ring", TableWay::Messages, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0));
static REDUCE_TREE: Algorithm = algorithm("binomial", TableWay::Messages, reduce_tree);
static REDUCE_ROTATED: Algorithm =
    Algorithm { commuting: true, ..algorithm("binomial_rotated", TableWay::Messages, reduce_tree) };
static SLICED: Algorithm =
    algorithm("sliced", TableWay::Messages, |p, n| cost(2.0, 2.0 * (p - 1.0) / p * n, (p - 1.0) / p * n, 0.0));
static DOUBLING: Algorithm = algorithm("recursive_doubling", TableWay::Messages, |p, n| {
    let whole = doublings(p);
    let folded = steps(p) - whole;
    cost(whole + 2.0 * folded, (whole + 2.0 * folded) * n, (whole + folded) * n, 0.0)
});
static SCATTERED: Algorithm = algorithm("exchange", TableWay::Messages, |p, n| {
    cost(((p - 1.0) / WINDOW).ceil(), (p - 1.0) / p * n, (p - 1.0) / p * n, 0.0)
});
static VIA_REDUCE: Algorithm =
    algorithm("via_reduce", TableWay::Messages, |p, n| cost(steps(p) + 1.0, (steps(p) + 1.0) * n, steps(p) * n, 0.0));
static SCAN_DOUBLING: Algorithm =
    algorithm("doubling", TableWay::Messages, |p, n| cost(steps(p), steps(p) * n, steps(p) * n, 0.0));

static LEADERS_BARRIER: Algorithm = leaders(|p, _| cost(steps(p), 0.0, 0.0, 0.0));
static LEADERS_BCAST: Algorithm = leaders(|p, n| cost(steps(p), steps(p) * n, 0.0, 0.0));
static LEADERS_BLOCKS: Algorithm = leaders(|p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0));
static LEADERS_REDUCTION: Algorithm = leaders(reduce_tree);

/// The algorithms by subject.
static ALL: [&[&Algorithm]; super::SUBJECTS.len()] = [
    &[&FLAGS, &MAILBOX, &DISSEMINATION, &LEADERS_BARRIER],
    &[&ONE_TO_ALL, &ROUNDS, &SINGLE_COPY, &MAILBOX, &LENT, &LINEAR, &BCAST_BINOMIAL, &BCAST_SLICES, &LEADERS_BCAST],
    &[&ALL_TO_ONE, &SINGLE_COPY, &MAILBOX, &LENT, &LINEAR, &TREE, &LEADERS_BLOCKS],
    &[&ONE_TO_ALL, &SINGLE_COPY, &MAILBOX, &LENT, &LINEAR, &TREE, &LEADERS_BLOCKS],
    &[&ALL_TO_ALL, &ROUNDS, &SINGLE_COPY, &MAILBOX, &LENT, &EXCHANGE, &BRUCK, &RING, &LEADERS_BLOCKS],
    &[&ALL_TO_ALL, &ROUNDS, &SINGLE_COPY, &MAILBOX, &LENT, &EXCHANGE, &LEADERS_BLOCKS],
    &[
        &FOLD,
        &ROUNDS_COMBINED,
        &PIECES,
        &MAILBOX,
        &PIECES_BEHIND,
        &REDUCE_TREE,
        &REDUCE_ROTATED,
        &SLICED,
        &LEADERS_REDUCTION,
    ],
    &[&FOLD, &ROUNDS_COMBINED, &PIECES, &MAILBOX, &PIECES_BEHIND, &DOUBLING, &SLICED, &LEADERS_REDUCTION],
    &[&FOLD, &ROUNDS_COMBINED, &PIECES, &MAILBOX, &LENT, &SCATTERED, &VIA_REDUCE],
    &[&FOLD, &ROUNDS_COMBINED, &PIECES, &MAILBOX, &PIECES_BEHIND, &SCAN_DOUBLING],
    &[&FOLD, &ROUNDS_COMBINED, &PIECES, &MAILBOX, &PIECES_BEHIND, &SCAN_DOUBLING],
    &[&ALL_TO_ALL, &SINGLE_COPY, &MAILBOX, &LENT, &EXCHANGE],
    &[&ALL_TO_ALL, &SINGLE_COPY, &MAILBOX, &LENT, &EXCHANGE],
    &[&EXCHANGE, &RING, &LEADERS_BLOCKS],
];
