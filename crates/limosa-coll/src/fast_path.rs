//! Fast paths of frequent blocking operations, in memory that the members share, for arguments that need no check.
//!
//! Contract: each function does the whole operation, or nothing (`None`). The caller then takes the general path, which
//! checks everything and reports errors. Fast paths select the same algorithm as the general path, so ranks may take
//! different paths.

use std::sync::Arc;

use super::buffer::Buffer;
use super::kind::{Collective, Signature};
use super::shared::{self, SharedCall, SharedGroup};
use super::state::CommState;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// Runs the next operation, if the members already share memory and the operation goes there.
#[inline(always)]
fn perform(
    comm: &Comm,
    (kind, signature): (Collective, Signature),
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
    perform(comm, (Collective::Barrier, Collective::Barrier.into()), 0, shared::barrier)
}

/// Copies the root's buffer to all ranks.
#[inline(always)]
pub fn try_bcast(comm: &Comm, buffer: &Buffer, root: i32) -> Option<Result<()>> {
    let root = usize::try_from(root).ok().filter(|root| *root < comm.size())?;
    perform(comm, (Collective::Bcast, Signature::rooted(Collective::Bcast, root)), buffer.bytes(), |call| {
        shared::bcast(call, buffer, root)
    })
}

/// Combines the operands of all ranks, with bitwise equal results at all.
#[inline(always)]
pub fn try_allreduce(comm: &Comm, send: &Buffer, receive: &Buffer, op: &Arc<Op>) -> Option<Result<()>> {
    if send.is_near(receive) || op.kernel(&send.datatype).is_none() {
        return None;
    }
    perform(comm, (Collective::Allreduce, Signature::reduction(Collective::Allreduce, op)), send.bytes(), |call| {
        shared::allreduce(call, send, receive, op)
    })
}
