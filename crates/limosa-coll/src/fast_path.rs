//! Fast paths of frequent blocking operations: in the memory that the members share, with arguments that need no
//! check.
//!
//! Contract: each function does the whole operation, or nothing (`None`); the caller then goes the general path, which
//! checks everything and reports what is wrong. They choose and do what the general path would, so that it does not
//! matter which ranks go which way.

use std::sync::Arc;

use super::buffer::Buffer;
use super::kind::{Kind, Signature};
use super::shared::{self, SharedCall, SharedGroup};
use super::state::CommState;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// Does the next operation, if the members share memory already, and it goes there.
#[inline(always)]
fn perform(
    comm: &Comm,
    (kind, signature): (Kind, Signature),
    bytes: usize,
    run: impl FnOnce(&SharedCall<'_>) -> Result<()>,
) -> Option<Result<()>> {
    let state = CommState::of(comm);
    let group: &SharedGroup = state.group_if_any().filter(|group| group.can_move(kind, bytes))?;
    let shared_call =
        SharedCall::begin(group, comm, &state.numbers, state.numbers.next_blocking() + 1, kind, signature)?;
    group.count(kind, bytes);
    Some(run(&shared_call))
}

/// Waits until all members have called.
#[inline(always)]
pub fn try_barrier(comm: &Comm) -> Option<Result<()>> {
    perform(comm, (Kind::Barrier, Kind::Barrier.into()), 0, shared::barrier)
}

/// Gives all ranks what the root's buffer holds.
#[inline(always)]
pub fn try_bcast(comm: &Comm, buffer: &Buffer, root: i32) -> Option<Result<()>> {
    let root = usize::try_from(root).ok().filter(|root| *root < comm.size())?;
    perform(comm, (Kind::Bcast, Signature::rooted(Kind::Bcast, root)), buffer.bytes(), |call| {
        shared::bcast(call, buffer, root)
    })
}

/// Gives all ranks the operands of all ranks combined, bit by bit the same.
#[inline(always)]
pub fn try_allreduce(comm: &Comm, send: &Buffer, receive: &Buffer, op: &Arc<Op>) -> Option<Result<()>> {
    if send.is_near(receive) || op.kernel(&send.datatype).is_none() {
        return None;
    }
    perform(comm, (Kind::Allreduce, Signature::reduction(Kind::Allreduce, op)), send.bytes(), |call| {
        shared::allreduce(call, send, receive, op)
    })
}
