//! One-step algorithms: every rank contributes its data and takes what it needs; no rank forwards data.
//!
//! Each is described here once, in the verbs of an [`Executor`]. Three executors run it:
//!
//! | executor | for | effect of a verb | names |
//! |---|---|---|---|
//! | `shared::Immediate` | blocking, shared memory | immediate | `flags`, `slots`, `single_copy` |
//! | `background::Recorder` | background, shared memory | records contribution and intake of the mailboxes | `mailbox`, `lent` |
//! | `exchange::Messages` | by messages | appends steps to a schedule | `linear`, `exchange` |
//!
//! [`crate::choice`] has their names and costs; `single_copy` is that of a root.
//!
//! Contract
//! - All ranks run the same description. A rank contributes before it takes, and contributes and takes once.
//! - An executor may defer a verb to [`Executor::finish`], but a rank never waits in a description for a later verb of
//!   another rank.
//!
//! Reductions are not described here. In shared memory a rank contributes its whole operand, and the combining rank
//! reads its part of it; by messages each rank receives only its part. The code for either is in `shared::reduce`,
//! `Exchange::reduction` and [`crate::slices`].

use limosa_p2p::memory::Region;

use super::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

/// The readers of a contribution.
#[derive(Clone, Copy)]
pub(crate) enum Audience {
    /// All other ranks.
    All,
    /// One rank.
    Rank(usize),
}

/// The share of a contribution that a rank takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// A contribution that is the same for all readers.
    Whole,
    /// The part for this rank.
    Part,
}

/// Executes a one-step algorithm on one rank.
pub(crate) trait Executor: Sized {
    /// Result of the algorithm.
    type Outcome;

    /// Returns this rank.
    fn rank(&self) -> usize;

    /// Signals that this rank has called, and waits for the signals of all other ranks.
    ///
    /// # Errors
    /// As for all verbs: ranks disagree, there is no memory, or errors of the machine.
    fn meet(&mut self) -> Result<()>;

    /// Contributes bytes that are the same for all readers.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn contribute(&mut self, region: Region, to: Audience) -> Result<()>;

    /// Contributes a part for each other rank. With `in_place` this rank takes into the same memory.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn contribute_parts(&mut self, parts: &Blocks, in_place: bool) -> Result<()>;

    /// Takes the contribution of one rank.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn take(&mut self, from: usize, share: Share, into: Region) -> Result<()>;

    /// Takes the contribution of each other rank, and copies this rank's own data unless they are in place.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn take_each(&mut self, share: Share, own: Option<Region>, into: &Blocks) -> Result<()>;

    /// Copies this rank's own data.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn copy_own(&mut self, from: Region, to: Region) -> Result<()>;

    /// Ends the description.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn finish(self) -> Result<Self::Outcome>;
}

/// Describes a barrier: no rank leaves before all have called.
#[inline(always)]
pub(crate) fn barrier<E: Executor>(mut executor: E) -> Result<E::Outcome> {
    executor.meet()?;
    executor.finish()
}

/// Describes a broadcast from the root to all ranks.
#[inline(always)]
pub(crate) fn bcast<E: Executor>(mut executor: E, buffer: &Buffer, root: usize) -> Result<E::Outcome> {
    if executor.rank() == root {
        executor.contribute(buffer.region(), Audience::All)?;
    } else {
        executor.take(root, Share::Whole, buffer.region())?;
    }
    executor.finish()
}

/// Describes a gather to the root. `send` is `None` if in place; `receive` is significant at the root.
#[inline]
pub(crate) fn gather<E: Executor>(
    mut executor: E,
    send: Option<&Buffer>,
    receive: Option<&Blocks>,
    root: usize,
) -> Result<E::Outcome> {
    let send = send.map(Buffer::region);
    match (receive.filter(|_| executor.rank() == root), send) {
        (Some(receive), own) => executor.take_each(Share::Whole, own, receive)?,
        (None, Some(send)) => executor.contribute(send, Audience::Rank(root))?,
        (None, None) => {}
    }
    executor.finish()
}

/// Describes a scatter from the root. `send` is significant at the root; `receive` is `None` if in place.
#[inline]
pub(crate) fn scatter<E: Executor>(
    mut executor: E,
    send: Option<&Blocks>,
    receive: Option<&Buffer>,
    root: usize,
) -> Result<E::Outcome> {
    let (rank, into) = (executor.rank(), receive.map(Buffer::region));
    match (send.filter(|_| rank == root), into) {
        (Some(send), into) => {
            executor.contribute_parts(send, false)?;
            if let Some(into) = into {
                executor.copy_own(send.region(rank), into)?;
            }
        }
        (None, Some(into)) => executor.take(root, Share::Part, into)?,
        (None, None) => {}
    }
    executor.finish()
}

/// Describes an allgather. `send` is `None` if in place.
#[inline]
pub(crate) fn allgather<E: Executor>(mut executor: E, send: Option<&Buffer>, receive: &Blocks) -> Result<E::Outcome> {
    let send = send.map(Buffer::region);
    executor.contribute(send.clone().unwrap_or_else(|| receive.region(executor.rank())), Audience::All)?;
    executor.take_each(Share::Whole, send, receive)?;
    executor.finish()
}

/// Describes an alltoall. `send` is `None` if the sent parts are in the places of the received ones.
#[inline]
pub(crate) fn alltoall<E: Executor>(mut executor: E, send: Option<&Blocks>, receive: &Blocks) -> Result<E::Outcome> {
    executor.contribute_parts(send.unwrap_or(receive), send.is_none())?;
    let own = send.map(|send| send.region(executor.rank()));
    executor.take_each(Share::Part, own, receive)?;
    executor.finish()
}
