//! The one-step algorithms: every rank contributes what it has and takes what it needs, and nobody passes anything on.
//!
//! Each is described here once, in the verbs of an [`Executor`]. Three executors run it:
//!
//! | executor | where | how | names |
//! |---|---|---|---|
//! | `shared::Immediate` | blocking, shared memory | does what a verb says at once | `flags`, `slots`, `single_copy` |
//! | `background::Recorder` | background, shared memory | records what mailboxes leave and get | `mailbox`, `lent` |
//! | `exchange::Messages` | by messages | writes the steps of a schedule | `linear`, `exchange` |
//!
//! What they are called and what they cost is in [`crate::choice`]; `single_copy` is that of a root.
//!
//! Contract
//! - All ranks run the same description. A rank contributes before it takes, and contributes and takes once.
//! - An executor may put off what a verb says until [`Executor::finish`], but a rank never waits in a description for
//!   what comes later in that of another one.
//!
//! Not described here: reductions. In shared memory an operand is contributed as a whole, and whoever combines reads
//! its part of it; by messages each rank is sent no more than its part. One description of both would have to say which
//! (`shared::reduce`, `Exchange::reduction`, [`crate::slices`]).

use limosa_p2p::memory::Region;

use super::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

/// For whom a contribution is.
#[derive(Clone, Copy)]
pub(crate) enum Audience {
    /// All other ranks.
    All,
    /// One rank.
    Rank(usize),
}

/// What a rank takes of another one's contribution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// What is the same for all who take it.
    Whole,
    /// The part for this rank.
    Part,
}

/// Whoever runs a one-step algorithm on one rank.
pub(crate) trait Executor: Sized {
    /// What comes of it.
    type Outcome;

    /// This rank.
    fn rank(&self) -> usize;

    /// Says that this rank has called, and learns that all others have.
    ///
    /// # Errors
    /// As for all verbs: ranks disagree, there is no memory, or errors of the machine.
    fn meet(&mut self) -> Result<()>;

    /// Contributes bytes, the same for all who take them.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn contribute(&mut self, region: Region, to: Audience) -> Result<()>;

    /// Contributes a part for each other rank. With `in_place` this rank takes to the same places.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn contribute_parts(&mut self, parts: &Blocks, in_place: bool) -> Result<()>;

    /// Takes what one rank contributes.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn take(&mut self, from: usize, share: Share, into: Region) -> Result<()>;

    /// Takes what each other rank contributes, and copies what this rank has for itself, unless it is in its place.
    ///
    /// # Errors
    /// See [`Executor::meet`].
    fn take_each(&mut self, share: Share, own: Option<Region>, into: &Blocks) -> Result<()>;

    /// Copies what this rank has for itself.
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

/// Nobody leaves before all have called.
#[inline(always)]
pub(crate) fn barrier<E: Executor>(mut executor: E) -> Result<E::Outcome> {
    executor.meet()?;
    executor.finish()
}

/// All ranks get what the root has.
#[inline(always)]
pub(crate) fn bcast<E: Executor>(mut executor: E, buffer: &Buffer, root: usize) -> Result<E::Outcome> {
    if executor.rank() == root {
        executor.contribute(buffer.region(), Audience::All)?;
    } else {
        executor.take(root, Share::Whole, buffer.region())?;
    }
    executor.finish()
}

/// The root gets what all ranks have. `send` is `None` for what is in its place; `receive` counts at the root.
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

/// Each rank gets its part of what the root has. `send` counts at the root; `receive` is `None` for what is in its
/// place.
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

/// All ranks get what all have. `send` is `None` for what is in its place.
#[inline]
pub(crate) fn allgather<E: Executor>(mut executor: E, send: Option<&Buffer>, receive: &Blocks) -> Result<E::Outcome> {
    let send = send.map(Buffer::region);
    executor.contribute(send.clone().unwrap_or_else(|| receive.region(executor.rank())), Audience::All)?;
    executor.take_each(Share::Whole, send, receive)?;
    executor.finish()
}

/// Each rank gets its part of what each has. `send` is `None` where the parts are in the places of those that come.
#[inline]
pub(crate) fn alltoall<E: Executor>(mut executor: E, send: Option<&Blocks>, receive: &Blocks) -> Result<E::Outcome> {
    executor.contribute_parts(send.unwrap_or(receive), send.is_none())?;
    let own = send.map(|send| send.region(executor.rank()));
    executor.take_each(Share::Part, own, receive)?;
    executor.finish()
}
