//! State of MPI for argument checking, and the end of a job by an error.
//!
//! The glue of initialisation and finalisation calls [`started`] and [`ended`], that of sessions [`entered`] and
//! [`left`]; the world itself belongs to `limosa_mpi::instance`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use limosa_mpi::world::World;
use limosa_mpi::{Error, Result, consts, instance};

const BEFORE: u8 = 0;
const RUNNING: u8 = 1;
const ENDED: u8 = 2;

/// Phase of the world model.
static PHASE: AtomicU8 = AtomicU8::new(BEFORE);
/// Number of users of the library: the world model while it is running, and each session.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// Returns true from initialisation of the world model on, also in forked children.
pub(crate) fn is_begun() -> bool {
    PHASE.load(Ordering::Relaxed) != BEFORE
}

/// Returns true while the world model is running, or a session exists.
#[inline]
pub(crate) fn is_running() -> bool {
    USERS.load(Ordering::Relaxed) != 0 && !instance::in_forked_child()
}

/// Returns true between initialisation and finalisation of the world model.
pub(crate) fn is_world_model_running() -> bool {
    PHASE.load(Ordering::Relaxed) == RUNNING && !instance::in_forked_child()
}

/// Returns true once the world model has been finalised.
pub(crate) fn is_ended() -> bool {
    PHASE.load(Ordering::Relaxed) == ENDED
}

/// Records the initialisation of the world model.
pub(crate) fn started() {
    PHASE.store(RUNNING, Ordering::Release);
    entered();
}

/// Records the finalisation of the world model.
pub(crate) fn ended() {
    PHASE.store(ENDED, Ordering::Release);
    left();
}

/// Records the start of a session.
pub(crate) fn entered() {
    USERS.fetch_add(1, Ordering::Release);
}

/// Records the end of a session.
pub(crate) fn left() {
    USERS.fetch_sub(1, Ordering::Release);
}

/// Returns this process's rank in its job, if known.
pub(crate) fn rank() -> Option<u32> {
    instance::world().map(|world| world.rank())
}

/// Returns the world of the job.
///
/// # Errors
/// The process has not joined it.
pub(crate) fn world() -> Result<Arc<World>> {
    instance::world().cloned().ok_or_else(not_running)
}

/// Creates the error of a call while MPI is not running.
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
    } else if instance::world().is_some() {
        "all sessions have ended: call MPI_Init first, or begin a session"
    } else {
        "MPI is not initialised: call MPI_Init first"
    };
    Error::new(consts::MPI_ERR_OTHER, detail)
}

/// Ends the job with that exit code. The reason has been printed; the launcher gets it in one line.
pub(crate) fn abort(code: i32, reason: &str) -> ! {
    match instance::world() {
        Some(_) if !instance::in_forked_child() => instance::abort(code, reason),
        _ => std::process::exit(code),
    }
}
