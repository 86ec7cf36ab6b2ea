//! Access to the memory of other processes, among the members of a group that can access each other's memory.

use std::io;

use limosa_base::vm;
use limosa_mpi::error::{Error, Result};

/// The memory of a group's members, from the view of one of them.
pub(crate) trait Access {
    /// Returns this process's rank.
    fn me(&self) -> usize;

    /// Copies from a rank's memory.
    ///
    /// # Errors
    /// The memory cannot be accessed, or that rank has withdrawn the permission.
    ///
    /// # Safety
    /// The target must be memory of this many bytes that no other thread uses.
    unsafe fn read(&self, from: usize, address: u64, to: *mut u8, len: usize) -> Result<()>;

    /// Copies to a rank's memory.
    ///
    /// # Errors
    /// As for [`Access::read`].
    ///
    /// # Safety
    /// The source must be readable memory of this many bytes, and the rank must have offered the target for writing.
    unsafe fn write(&self, to: usize, from: *const u8, address: u64, len: usize) -> Result<()>;
}

/// Returns the reason why a copy failed; `None` if the other process has died. The system reports the loss of its
/// memory first, and the end of the process a moment later.
#[cold]
pub(crate) fn unless_dead(error: io::Error, is_alive: impl FnOnce() -> bool) -> Option<io::Error> {
    if vm::has_ended(&error) || !is_alive() { None } else { Some(error) }
}

/// Makes the error of a failed copy. `None`: a process of the communicator has died, and the ranks have given up.
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
