//! Algorithms by messages: the plans of each operation, by the names that the table of [`super::choice`] gives them.

use super::buffer::{Blocks, Buffer};
use super::exchange::Messages;
use super::one_step;
use super::schedule::Schedule;
use super::select::Named;
use limosa_mpi::error::Result;

pub(super) mod allgather {
    pub(crate) mod bruck;
    pub(crate) mod ring;
}
pub(super) mod allreduce {
    pub(crate) mod recursive_doubling;
    pub(crate) mod sliced;
}
pub(super) mod barrier {
    pub(crate) mod dissemination;
}
pub(super) mod bcast {
    pub(crate) mod binomial;
    pub(crate) mod scatter_exchange;
}
pub(super) mod gather {
    pub(crate) mod binomial;
}
pub(super) mod reduce {
    pub(crate) mod binomial;
    pub(crate) mod sliced;
}
pub(super) mod reduce_scatter {
    pub(crate) mod exchange;
    pub(crate) mod via_reduce;
}
pub(super) mod scan {
    pub(crate) mod doubling;
}
pub(super) mod scatter {
    pub(crate) mod binomial;
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
