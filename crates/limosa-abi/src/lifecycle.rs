//! Whether MPI is running, as far as argument checking needs to know, and how a job ends in an error.
//!
//! The glue of initialisation and finalisation calls [`started`] and [`ended`]; the world itself belongs to `limosa_mpi::instance`.

use std::sync::atomic::{AtomicU8, Ordering};

use limosa_mpi::{Error, consts, instance};

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);

/// True from initialisation on, also in forked children.
pub(crate) fn is_begun() -> bool {
    PHASE.load(Ordering::Relaxed) != BEFORE
}

/// True between initialisation and finalisation.
#[inline]
pub(crate) fn is_running() -> bool {
    PHASE.load(Ordering::Relaxed) == RUNNING && !instance::in_forked_child()
}

/// True once MPI has been finalised.
pub(crate) fn is_ended() -> bool {
    PHASE.load(Ordering::Relaxed) == ENDED
}

/// MPI is initialised.
pub(crate) fn started() {
    PHASE.store(RUNNING, Ordering::Release);
}

/// MPI is finalised.
pub(crate) fn ended() {
    PHASE.store(ENDED, Ordering::Release);
}

/// This process's rank in `MPI_COMM_WORLD`, once known.
pub(crate) fn rank() -> Option<u32> {
    instance::get().map(|instance| instance.world().rank())
}

/// The error of a call outside that time.
#[cold]
pub(crate) fn not_running() -> Error {
    if instance::in_forked_child() {
        return Error::new(
            consts::MPI_ERR_OTHER,
            "this process was forked from a process that uses MPI: it may compute and exit, but not call MPI",
        );
    }
    let detail = if is_ended() {
        "MPI has been finalised: no such call may follow MPI_Finalize"
    } else {
        "MPI is not initialised: call MPI_Init first"
    };
    Error::new(consts::MPI_ERR_OTHER, detail)
}

/// Ends the job with that exit code. The reason has been printed; the launcher gets it in one line.
pub(crate) fn abort(code: i32, reason: &str) -> ! {
    match instance::get() {
        Some(_) if !instance::in_forked_child() => instance::abort(code, reason),
        _ => std::process::exit(code),
    }
}
