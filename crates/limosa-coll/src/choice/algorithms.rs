//! The algorithms of the collective operations: what they are called, where they can serve, and what they cost.
//!
//! A cost is given for p ranks and n bytes, as a table's rows count them. Times are sums of four limits, whose factors
//! a model measures: one for the latency of a message or of a note in shared memory, and one each for a byte that is
//! transferred, combined, or copied inside a process.

use super::{Subject, Way};

/// An algorithm of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Algorithm {
    /// Its name among those of the operation.
    pub(crate) name: &'static str,
    pub(super) way: Way,
    /// Serves only where all ranks can read each other's memory.
    pub(super) direct: bool,
    /// Serves only operations that commute.
    pub(super) commuting: bool,
    /// Made of others, inside hosts and between them: serves only where members are on several hosts, several of them
    /// on one.
    pub(crate) composed: bool,
    /// What it costs.
    #[allow(dead_code, reason = "the model that tunes the table evaluates it; tests do today")]
    pub(crate) cost: fn(f64, f64) -> Cost,
}

impl Algorithm {
    /// The name of its way.
    pub(crate) fn way_name(&self) -> &'static str {
        super::WAYS[self.way as usize]
    }
}

/// How often each term of a time occurs.
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

/// Transfers that are under way at a time in an exchange.
const WINDOW: f64 = crate::exchange::WINDOW as f64;

const fn algorithm(name: &'static str, way: Way, cost: fn(f64, f64) -> Cost) -> Algorithm {
    Algorithm { name, way, direct: false, commuting: false, composed: false, cost }
}

/// An algorithm over the leaders of hosts. Its cost is that between `p` hosts; what happens inside them is the shared
/// way's.
const fn leaders(cost: fn(f64, f64) -> Cost) -> Algorithm {
    Algorithm { composed: true, ..algorithm("leaders", Way::Messages, cost) }
}

/// Whole doublings of one rank up to at most `p`. Counted in integers: the mathematics library would be one more to load.
fn doublings(p: f64) -> f64 {
    f64::from((p as u32).max(1).ilog2())
}

/// Steps of a doubling.
fn steps(p: f64) -> f64 {
    doublings(2.0 * p - 1.0)
}

fn reduce_tree(p: f64, n: f64) -> Cost {
    cost(steps(p), steps(p) * n, steps(p) * n, 0.0)
}

/// The algorithms of an operation: all names of all ways.
pub(crate) fn of(subject: Subject) -> impl Iterator<Item = &'static Algorithm> {
    ALL[subject.0].iter().copied()
}

// ---- in memory that the members share -------------------------------------------------------------------------------

/// Each rank posts a flag and looks at those of the others.
static FLAGS: Algorithm = algorithm("flags", Way::Shared, |p, _| cost(p - 1.0, 0.0, 0.0, 0.0));
/// Who has something puts it into its slot or ring buffer; who needs it gets it there.
static ONE_TO_ALL: Algorithm = algorithm("slots", Way::Shared, |p, n| cost(1.0, (p - 1.0) * n, 0.0, n));
static ALL_TO_ONE: Algorithm = algorithm("slots", Way::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, n));
static ALL_TO_ALL: Algorithm = algorithm("slots", Way::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, n));
static FOLD: Algorithm = algorithm("slots", Way::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, (p - 1.0) * n, n));
/// In rounds through buffers that all share.
static ROUNDS: Algorithm = algorithm("rounds", Way::Shared, |p, n| cost(p * (n / ROUND).ceil(), (p - 1.0) * n, 0.0, n));
static ROUNDS_COMBINED: Algorithm =
    algorithm("rounds", Way::Shared, |p, n| cost(2.0 * p * (n / ROUND).ceil(), n, (p - 1.0) * n / p, n));
/// Straight from memory to memory, both partners copying.
static SINGLE_COPY: Algorithm =
    Algorithm { direct: true, ..algorithm("single_copy", Way::Shared, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0)) };
/// Whoever runs takes the next piece, fetches it from all, combines it, and brings it to who wants it.
static PIECES: Algorithm = Algorithm {
    direct: true,
    ..algorithm("pieces", Way::Shared, |p, n| cost(p, 2.0 * (p - 1.0) * n / p, (p - 1.0) * n / p, 0.0))
};
/// Bytes of a round, about.
const ROUND: f64 = 64.0 * 1024.0;

// ---- in the background, in such memory ------------------------------------------------------------------------------

/// Each rank puts what it contributes into its mailbox.
static MAILBOX: Algorithm = algorithm("mailbox", Way::Background, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, n));
/// Each rank says where it is, and others read it there.
static LENT: Algorithm =
    Algorithm { direct: true, ..algorithm("lent", Way::Background, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0)) };
/// Whoever looks takes the next piece, fetches it from all, combines it, and brings it to who wants it.
static PIECES_BEHIND: Algorithm = Algorithm { way: Way::Background, ..PIECES };

// ---- by messages ----------------------------------------------------------------------------------------------------

static DISSEMINATION: Algorithm = algorithm("dissemination", Way::Messages, |p, _| cost(steps(p), 0.0, 0.0, 0.0));
static BCAST_BINOMIAL: Algorithm = algorithm("binomial", Way::Messages, |p, n| cost(steps(p), steps(p) * n, 0.0, 0.0));
static BCAST_SLICES: Algorithm =
    algorithm("scatter_exchange", Way::Messages, |p, n| cost(2.0, 2.0 * (p - 1.0) / p * n, 0.0, 0.0));
static LINEAR: Algorithm = algorithm("linear", Way::Messages, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0));
static TREE: Algorithm = algorithm("binomial", Way::Messages, |p, n| cost(steps(p), (p - 1.0) * n, 0.0, 0.0));
static EXCHANGE: Algorithm =
    algorithm("exchange", Way::Messages, |p, n| cost(((p - 1.0) / WINDOW).ceil(), (p - 1.0) * n, 0.0, 0.0));
static BRUCK: Algorithm = algorithm("bruck", Way::Messages, |p, n| cost(steps(p), (p - 1.0) * n, 0.0, p * n));
static RING: Algorithm = algorithm("ring", Way::Messages, |p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0));
static REDUCE_TREE: Algorithm = algorithm("binomial", Way::Messages, reduce_tree);
static REDUCE_ROTATED: Algorithm =
    Algorithm { commuting: true, ..algorithm("binomial_rotated", Way::Messages, reduce_tree) };
static SLICED: Algorithm =
    algorithm("sliced", Way::Messages, |p, n| cost(2.0, 2.0 * (p - 1.0) / p * n, (p - 1.0) / p * n, 0.0));
static DOUBLING: Algorithm = algorithm("recursive_doubling", Way::Messages, |p, n| {
    let whole = doublings(p);
    let folded = steps(p) - whole;
    cost(whole + 2.0 * folded, (whole + 2.0 * folded) * n, (whole + folded) * n, 0.0)
});
static SCATTERED: Algorithm = algorithm("exchange", Way::Messages, |p, n| {
    cost(((p - 1.0) / WINDOW).ceil(), (p - 1.0) / p * n, (p - 1.0) / p * n, 0.0)
});
static VIA_REDUCE: Algorithm =
    algorithm("via_reduce", Way::Messages, |p, n| cost(steps(p) + 1.0, (steps(p) + 1.0) * n, steps(p) * n, 0.0));
static SCAN_DOUBLING: Algorithm =
    algorithm("doubling", Way::Messages, |p, n| cost(steps(p), steps(p) * n, steps(p) * n, 0.0));

static LEADERS_BARRIER: Algorithm = leaders(|p, _| cost(steps(p), 0.0, 0.0, 0.0));
static LEADERS_BCAST: Algorithm = leaders(|p, n| cost(steps(p), steps(p) * n, 0.0, 0.0));
static LEADERS_BLOCKS: Algorithm = leaders(|p, n| cost(p - 1.0, (p - 1.0) * n, 0.0, 0.0));
static LEADERS_REDUCTION: Algorithm = leaders(reduce_tree);

/// By subject.
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
