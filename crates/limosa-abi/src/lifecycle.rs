//! Whether MPI is running, as far as argument checking needs to know, and how a job ends in an error.
//!
//! The glue of initialisation and finalisation calls [`started`] and [`ended`]; the world itself belongs to `limosa-mpi`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};

use limosa_mpi::Error;
use limosa_mpi::consts;

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
static RANK: AtomicI32 = AtomicI32::new(-1);
static ABORT: OnceLock<fn(i32) -> !> = OnceLock::new();

/// True between initialisation and finalisation.
#[inline]
pub(crate) fn is_running() -> bool {
    PHASE.load(Ordering::Relaxed) == RUNNING
}

/// True once [`ended`] has been called.
pub(crate) fn is_ended() -> bool {
    PHASE.load(Ordering::Relaxed) == ENDED
}

/// MPI is initialised, and this process has that rank in `MPI_COMM_WORLD`.
pub(crate) fn started(rank: i32) {
    RANK.store(rank, Ordering::Relaxed);
    PHASE.store(RUNNING, Ordering::Release);
}

/// MPI is finalised.
pub(crate) fn ended() {
    PHASE.store(ENDED, Ordering::Release);
}

/// This process's rank in `MPI_COMM_WORLD`, once known.
pub(crate) fn rank() -> Option<i32> {
    let rank = RANK.load(Ordering::Relaxed);
    (rank >= 0).then_some(rank)
}

/// The error of a call outside that time.
#[cold]
pub(crate) fn not_running() -> Error {
    let detail =
        if is_ended() { "MPI has been finalised: no call may follow MPI_Finalize" } else { "MPI is not initialised: call MPI_Init first" };
    Error::new(consts::MPI_ERR_OTHER, detail)
}

/// Says how a job is ended; before that, an abort ends this process only.
pub(crate) fn set_abort(abort: fn(i32) -> !) {
    let _ = ABORT.set(abort);
}

/// Ends the job with that exit code.
pub(crate) fn abort(code: i32) -> ! {
    match ABORT.get() {
        Some(abort) => abort(code),
        // SAFETY: ends the process without running anything.
        None => unsafe { libc::_exit(code) },
    }
}
