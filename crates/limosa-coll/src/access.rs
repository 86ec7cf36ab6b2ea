//! Access to the memory of other processes: of the members of a group, which can access each other's.

use std::io;

use limosa_base::vm;
use limosa_mpi::error::{Error, Result};

/// The memory of a group's members, as one of them sees it.
pub(crate) trait Access {
    /// This process's rank.
    fn me(&self) -> usize;

    /// Copies from a rank's memory.
    ///
    /// # Errors
    /// The memory cannot be accessed, or that rank has taken back that it may be.
    ///
    /// # Safety
    /// The target must be memory of this many bytes that nothing else uses.
    unsafe fn read(&self, from: usize, address: u64, to: *mut u8, len: usize) -> Result<()>;

    /// Copies to a rank's memory.
    ///
    /// # Errors
    /// As for [`Access::read`].
    ///
    /// # Safety
    /// The source must be readable memory of this many bytes, and the rank must have offered the target for being
    /// written to.
    unsafe fn write(&self, to: usize, from: *const u8, address: u64, len: usize) -> Result<()>;
}

/// Why a copy could not be made; `None` if the other process has died. The system says so of its memory first, of the
/// process a moment later.
#[cold]
pub(crate) fn unless_dead(error: io::Error, is_alive: impl FnOnce() -> bool) -> Option<io::Error> {
    if vm::has_ended(&error) || !is_alive() { None } else { Some(error) }
}

/// A copy that could not be made. `None`: a process of the communicator has died, so that the other rank, or this one,
/// has given up.
#[cold]
pub(crate) fn failed(rank: usize, len: usize, error: Option<io::Error>) -> Error {
    let (class, why) = match error {
        None => (
            limosa_mpi::consts::MPI_ERR_PROC_ABORTED,
            "a process of the communicator has died, or its ranks disagree".to_owned(),
        ),
        Some(error) => {
            (limosa_mpi::consts::MPI_ERR_OTHER, format!("{error}; LIMOSA_CMA=0 copies through shared memory instead"))
        }
    };
    Error::new(class, format!("{len} bytes of rank {rank}'s buffer cannot be accessed from here: {why}"))
}
