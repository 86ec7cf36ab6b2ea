//! Copies between the memories of two processes. Both may copy, each taking the next free share.
//!
//! A transfer belongs to one of its partners. That rank must not be a partner in another transfer of its own in the
//! same turn. The transfer is complete when all shares are copied.

use limosa_base::slots::Awaited;
use limosa_p2p::slice;

use super::call::SharedCall;
use super::select;
use crate::access::{Access, failed, unless_dead};
use limosa_mpi::error::Result;

/// One side's view of a transfer.
pub(super) struct Transfer {
    /// The rank that it belongs to.
    pub(super) of: usize,
    /// Rank of the other side.
    pub(super) partner: usize,
    /// Address of the bytes in this process.
    pub(super) local: *mut u8,
    /// Address at the partner.
    pub(super) remote: u64,
    /// Number of bytes.
    pub(super) len: usize,
}

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the partner to this process.
    Pull,
    /// From this process to the partner.
    Push,
}

impl Transfer {
    /// Copies shares until none is left. The partner may still be copying some.
    ///
    /// # Errors
    /// The partner's memory cannot be accessed.
    ///
    /// # Safety
    /// The local memory must have `len` bytes, readable, or when pulling writable and otherwise unused until the
    /// transfer is complete; the partner must have offered its memory for this.
    pub(super) unsafe fn work(&self, shared_call: &SharedCall<'_>, way: Direction) -> Result<()> {
        let share = select::share_bytes(self.len);
        let all = self.len.div_ceil(share);
        let mut outcome = Ok(());
        while let Some(next) = shared_call.group.slots.take_share(self.of, shared_call.number(), all as u64) {
            let offset = next as usize * share;
            let len = share.min(self.len - offset);
            let (local, remote) = (self.local.wrapping_add(offset), self.remote.wrapping_add(offset as u64));
            // SAFETY: a part of the memory that the caller vouches for; no two partners take the same share.
            let copied = unsafe {
                match way {
                    Direction::Pull => pull(shared_call, self.partner, remote, local, len),
                    Direction::Push => push(shared_call, self.partner, local, remote, len),
                }
            };
            outcome = outcome.and(copied);
            // After a failure too: the partner must not wait for ever.
            if shared_call.group.slots.count_share(self.of, shared_call.number(), all as u64) {
                shared_call.group.tell();
            }
        }
        outcome
    }

    /// Waits until all shares are copied.
    ///
    /// # Errors
    /// Errors of waiting.
    pub(super) fn wait(&self, shared_call: &SharedCall<'_>) -> Result<()> {
        shared_call.wait(Awaited::Complete(self.of, shared_call.number()))
    }
}

/// Copies from a rank's memory.
///
/// # Safety
/// The target must be memory of this many bytes that no other thread uses.
pub(super) unsafe fn pull(
    shared_call: &SharedCall<'_>,
    from: usize,
    address: u64,
    to: *mut u8,
    len: usize,
) -> Result<()> {
    let (mut local, mut remote) = ([slice(to as u64, len)], [slice(address, len)]);
    let (memory, peer) = (shared_call.group.engine.expect_peer_memory(), shared_call.group.peers[from]);
    // SAFETY: the caller's promise.
    let done = shared_call.copy_with(from, || unsafe { memory.read(peer, &mut local, &mut remote) });
    done.map_err(|error| {
        let error = error.and_then(|error| unless_dead(error, || memory.is_alive(peer)));
        shared_call.explained(failed(from, len, error))
    })
}

/// Copies to a rank's memory.
///
/// # Safety
/// The source must be readable memory of this many bytes, and the rank must have offered the target for writing.
pub(super) unsafe fn push(
    shared_call: &SharedCall<'_>,
    to: usize,
    from: *const u8,
    address: u64,
    len: usize,
) -> Result<()> {
    let (mut local, mut remote) = ([slice(from as u64, len)], [slice(address, len)]);
    let (memory, peer) = (shared_call.group.engine.expect_peer_memory(), shared_call.group.peers[to]);
    // SAFETY: the caller's promise.
    let done = shared_call.copy_with(to, || unsafe { memory.write(peer, &mut local, &mut remote) });
    done.map_err(|error| {
        let error = error.and_then(|error| unless_dead(error, || memory.is_alive(peer)));
        shared_call.explained(failed(to, len, error))
    })
}

impl Access for SharedCall<'_> {
    fn me(&self) -> usize {
        // Not the rank in the communicator: the members of a host's group are numbered by place.
        SharedCall::me(self)
    }

    unsafe fn read(&self, from: usize, address: u64, to: *mut u8, len: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { pull(self, from, address, to, len) }
    }

    unsafe fn write(&self, to: usize, from: *const u8, address: u64, len: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { push(self, to, from, address, len) }
    }
}
