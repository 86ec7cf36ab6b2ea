//! Selection of a plan by messages: the table of [`super::choice`] names an algorithm, and a list of
//! [`super::by_messages`] has its plan.

use std::sync::Arc;

use super::Call;
use super::call_log::{COMPOSED, FLAT};
use super::choice::algorithms::Algorithm;
use super::choice::{self, Over, Subject};
use super::hosts::Hosts;
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
