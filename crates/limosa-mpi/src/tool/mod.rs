//! The tool information interface MPI_T (MPI-5 chapter 15), without its C types.
//!
//! - Control variables ([`control`]) are the `LIMOSA_*` variables of the user.
//! - Performance variables ([`performance`]) are numbers that the engine keeps anyway, or counts for this.
//! - Events ([`event`]) come from the program's own threads, with no lock held.
//! - Categories ([`category`]) sort all of them by what they are about.
//!
//! The interface may be used before `MPI_Init` and after `MPI_Finalize`, and has no error handlers: its functions
//! return their error class. Handles are numbers that are never used again, so that a stale one is an error.

pub mod category;
pub mod control;
pub mod event;
pub mod performance;

use crate::consts::{self, ErrorClass};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

static USERS: Mutex<usize> = Mutex::new(0);

/// One user more (`MPI_T_init_thread`).
pub fn init() {
    *USERS.lock() += 1;
}

/// One user less (`MPI_T_finalize`).
///
/// # Errors
/// `MPI_T_ERR_NOT_INITIALIZED`.
pub fn finalize() -> Result<()> {
    let mut users = USERS.lock();
    *users = users.checked_sub(1).ok_or_else(|| error(consts::MPI_T_ERR_NOT_INITIALIZED))?;
    Ok(())
}

/// Whether it has a user.
pub fn is_initialized() -> bool {
    *USERS.lock() > 0
}

/// Makes an error of which the program gets the class alone.
#[cold]
pub fn error(class: ErrorClass) -> Error {
    Error::verbatim(class, "the tool interface refuses this")
}

/// Returns a fresh number for a handle. Those of C are pointers, of which the smallest are predefined.
fn next_handle() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Checks an index that a program passes, into a list of this length.
///
/// # Errors
/// `MPI_T_ERR_INVALID_INDEX`.
pub fn index(value: i32, len: usize) -> Result<usize> {
    usize::try_from(value).ok().filter(|value| *value < len).ok_or_else(|| error(consts::MPI_T_ERR_INVALID_INDEX))
}
