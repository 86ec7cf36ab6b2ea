//! Plans of the algorithms by messages, by name. The table of [`super::choice`] selects among them.

use std::sync::Arc;

use super::buffer::{Blocks, Buffer};
use super::call_log::{COMPOSED, FLAT};
use super::choice::algorithms::Algorithm;
use super::choice::{self, Over, Subject};
use super::exchange::Messages;
use super::hosts::Hosts;
use super::one_step;
use super::schedule::Schedule;
use super::{Call, allgather, allreduce, barrier, bcast, gather, reduce, reduce_scatter, scatter};
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// An algorithm's name and its plan.
pub(super) type Named<F> = (&'static str, F);

/// Selected plan of an operation by messages.
pub(super) enum Selected<'a, F> {
    /// A plan among all ranks.
    Flat(F),
    /// Plans inside hosts, and between their leaders.
    Composed(&'a Hosts),
}

/// Selects by the table. `op` is that of a reduction.
pub(super) fn select<'a, F: Copy>(
    call: &Call<'a>,
    subject: impl Into<Subject>,
    plans: &[Named<F>],
    bytes: usize,
    op: Option<&Arc<Op>>,
) -> Selected<'a, F> {
    let hosts = call.state.hosts(call.comm);
    let commutes = op.is_none_or(|op| op.is_commutative());
    let over = match (hosts.are_mixed(), commutes || hosts.are_consecutive()) {
        (true, true) => Over::Hosts,
        (true, false) => Over::Flat("the operation does not commute, and the ranks of a host do not follow each other"),
        (false, _) => Over::Flat("the members are not on several hosts with several on one"),
    };
    let algorithm = choice::by_messages(subject, call.size(), bytes, commutes, over);
    if algorithm.composed {
        call.algorithm.set(COMPOSED);
        Selected::Composed(hosts)
    } else {
        Selected::Flat(flat(call, plans, algorithm))
    }
}

/// Selects the plan of an operation that is never composed.
pub(super) fn select_flat<F: Copy>(
    call: &Call<'_>,
    subject: impl Into<Subject>,
    plans: &[Named<F>],
    bytes: usize,
    op: &Arc<Op>,
) -> F {
    let algorithm = choice::by_messages(subject, call.size(), bytes, op.is_commutative(), Over::Part);
    flat(call, plans, algorithm)
}

fn flat<F: Copy>(call: &Call<'_>, plans: &[Named<F>], algorithm: &Algorithm) -> F {
    let (index, plan) = named(plans, algorithm);
    call.algorithm.set(FLAT + index as u8);
    plan
}

/// Selects the plan for `ranks` ranks of a part of a composed operation.
pub(super) fn select_part<F: Copy>(
    subject: impl Into<Subject>,
    plans: &[Named<F>],
    ranks: usize,
    bytes: usize,
    op: Option<&Arc<Op>>,
) -> F {
    let commutes = op.is_none_or(|op| op.is_commutative());
    named(plans, choice::by_messages(subject, ranks, bytes, commutes, Over::Part)).1
}

/// Returns the plan of an algorithm, and its place among the plans.
fn named<F: Copy>(plans: &[Named<F>], algorithm: &Algorithm) -> (usize, F) {
    let index = plans.iter().position(|(name, _)| *name == algorithm.name);
    let index = index.expect("every algorithm by messages has a plan");
    (index, plans[index].1)
}

/// (schedule)
pub(super) type Barrier = fn(&mut Schedule);

pub(super) const BARRIER: &[Named<Barrier>] = &[("dissemination", barrier::dissemination::plan)];

/// (schedule, buffer, root)
pub(super) type Bcast = fn(&mut Schedule, &Buffer, usize) -> Result<()>;

/// Bytes: of the message.
pub(super) const BCAST: &[Named<Bcast>] = &[
    ("linear", |s, buffer, root| one_step::bcast(Messages::new(s), buffer, root)),
    ("binomial", bcast::binomial::plan),
    ("scatter_exchange", bcast::scatter_exchange::plan),
];

/// (schedule, own contribution, all contributions at the root, root)
pub(super) type Gather = fn(&mut Schedule, Option<&Buffer>, Option<&Blocks>, usize) -> Result<()>;

/// Bytes: of one contribution.
pub(super) const GATHER: &[Named<Gather>] = &[("linear", GATHER_ANY), ("binomial", gather::binomial::plan)];

/// For contributions whose lengths only the root knows.
pub(super) const GATHER_ANY: Gather = |s, send, receive, root| one_step::gather(Messages::new(s), send, receive, root);

/// (schedule, all parts at the root, own part, root)
pub(super) type Scatter = fn(&mut Schedule, Option<&Blocks>, Option<&Buffer>, usize) -> Result<()>;

/// Bytes: of one part.
pub(super) const SCATTER: &[Named<Scatter>] = &[("linear", SCATTER_ANY), ("binomial", scatter::binomial::plan)];

/// For parts whose lengths only the root knows.
pub(super) const SCATTER_ANY: Scatter =
    |s, send, receive, root| one_step::scatter(Messages::new(s), send, receive, root);

/// (schedule, own contribution, all contributions)
pub(super) type Allgather = fn(&mut Schedule, Option<&Buffer>, &Blocks) -> Result<()>;

/// Bytes: of one contribution, or, if they differ, of all.
pub(super) const ALLGATHER: &[Named<Allgather>] = &[
    ("exchange", |s, send, receive| one_step::allgather(Messages::new(s), send, receive)),
    ("bruck", allgather::bruck::plan),
    ("ring", allgather::ring::plan),
];

/// (schedule, blocks to send, blocks to receive)
pub(super) type Alltoall = fn(&mut Schedule, Option<&Blocks>, &Blocks) -> Result<()>;

/// Bytes: of one block, or, if they differ, of the longest.
pub(super) const ALLTOALL: &[Named<Alltoall>] =
    &[("exchange", |s, send, receive| one_step::alltoall(Messages::new(s), send, receive))];

/// (schedule, operands, result at the root, root)
pub(super) type Reduce = fn(&mut Schedule, &Buffer, Option<&Buffer>, usize) -> Result<()>;

/// Bytes: of one operand.
pub(super) const REDUCE: &[Named<Reduce>] = &[
    ("binomial", reduce::binomial::plan),
    ("binomial_rotated", reduce::binomial::plan_rotated),
    ("sliced", reduce::sliced::plan),
];

/// (schedule, operands, result)
pub(super) type Allreduce = fn(&mut Schedule, &Buffer, &Buffer) -> Result<()>;

/// Bytes: of one operand.
pub(super) const ALLREDUCE: &[Named<Allreduce>] =
    &[("recursive_doubling", allreduce::recursive_doubling::plan), ("sliced", allreduce::sliced::plan)];

/// (schedule, operands, elements of each rank's part of the result, own part)
pub(super) type ReduceScatter = fn(&mut Schedule, &Buffer, &[usize], &Buffer) -> Result<()>;

/// Bytes: of all operands of a rank.
pub(super) const REDUCE_SCATTER: &[Named<ReduceScatter>] =
    &[("exchange", reduce_scatter::exchange::plan), ("via_reduce", reduce_scatter::via_reduce::plan)];
