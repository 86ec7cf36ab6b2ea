//! Collective operations (MPI-5 chapter 6) on intracommunicators.
//!
//! An operation is planned and then run. Planning checks the arguments, selects an algorithm ([`select`]) and lays down what this rank does as
//! a [`Schedule`]; nothing moves yet. Running is the same for all operations: blocking by [`run`], in the background by a [`Run`], many times
//! by a [`Plan`].
//!
//! ```text
//! let call = Call::begin(&comm);                       // first of all: draws the number of this collective
//! let schedule = bcast::plan(&call, buffer, root)?;    // checks, selects, plans
//! run(&comm, schedule)?;                               // or Run::new(...).start(...), or Plan::new(...)
//! ```
//!
//! Contract
//! - All ranks plan with the same algorithm. What it is selected by is therefore equal on all ranks of a correct program: number of ranks, bytes
//!   (not counts: equal signatures may be written with different datatypes), and the operation.
//! - Reductions combine in rank order, whether an operation is commutative or not, unless an algorithm says otherwise; for a given number of
//!   ranks the order is always the same, and all ranks of an allreduce get the same bits.
//! - Messages of a collective have a context of their own and the operation's number as tag. The number is drawn before arguments are checked, so
//!   that a rank whose call fails stays in step with the others.

use std::sync::atomic::{AtomicU32, Ordering};

use limosa_p2p::memory::Region;

use crate::comm::Comm;
use crate::error::Result;

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod buffer;
mod exchange;
pub mod gather;
pub mod reduce;
pub mod reduce_scatter;
mod run;
pub mod scan;
pub mod scatter;
mod schedule;
mod select;
#[cfg(test)]
mod tests;

pub use buffer::{Blocks, Buffer};
pub use run::{Plan, Run, run};
pub use schedule::Schedule;

/// Collectives of a sort are numbered modulo this: half of the tags, which are not negative, for each of two sorts.
const NUMBERS: u32 = 1 << 30;

/// A collective operation that this rank takes part in.
pub struct Call<'a> {
    comm: &'a Comm,
    tag: i32,
}

impl<'a> Call<'a> {
    /// Begins a blocking collective operation: the next one on this communicator.
    pub fn begin(comm: &'a Comm) -> Call<'a> {
        Call::numbered(comm, &comm.coll_seq, 0)
    }

    /// Begins a non-blocking or persistent collective operation: the next one of these on this communicator.
    ///
    /// They are numbered apart from the blocking ones, with which they never match (MPI-5 section 6.12). The standard has all ranks call both in
    /// one order; programs that do not keep it between the two sorts still work.
    pub fn begin_nonblocking(comm: &'a Comm) -> Call<'a> {
        Call::numbered(comm, &comm.icoll_seq, NUMBERS)
    }

    fn numbered(comm: &'a Comm, counter: &AtomicU32, base: u32) -> Call<'a> {
        Call { comm, tag: (base + counter.fetch_add(1, Ordering::Relaxed) % NUMBERS) as i32 }
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// This process's rank.
    pub fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// True if `root` is this process's rank.
    pub fn is_at(&self, root: i32) -> bool {
        root >= 0 && root as usize == self.rank()
    }
}

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
pub fn barrier(comm: &Comm) -> Result<()> {
    run(comm, barrier::plan(&Call::begin(comm)))
}

/// Tells all members the bytes of each, which have the same length everywhere; returns them in rank order.
///
/// # Errors
/// Errors of the machine.
pub fn allgather_bytes(comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    let (length, rank) = (mine.len(), comm.rank() as usize);
    let mut all = vec![0; length * comm.size()];
    all[rank * length..][..length].copy_from_slice(mine);
    let start = all.as_mut_ptr();
    // SAFETY: the blocks lie in `all`, which lives to the end of this function; no step uses the block of another transfer.
    let block = |rank: usize| unsafe { Region::contiguous(start.add(rank * length), length) };
    let mut schedule = Schedule::new(&Call::begin(comm));
    exchange::exchange(&mut schedule, |_| block(rank), block);
    run(comm, schedule)?;
    Ok(all)
}
