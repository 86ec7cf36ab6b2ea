//! The one error type of the engine: an MPI error class and a sentence.

use limosa_p2p::Failure;
use std::borrow::{Borrow, Cow};
use std::fmt;

pub use crate::consts::ErrorClass;
pub use limosa_p2p::Interrupted;

/// What went wrong: the MPI error class, and one sentence that says what is wrong and, where known, what to do.
///
/// The ABI layer adds the function's name and the rank before the error handler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Error class (or user-defined error code) of the MPI standard, section 9.4.
    pub class: ErrorClass,
    /// One sentence without a trailing full stop, which does not name the function.
    pub detail: Cow<'static, str>,
    /// The program gets `class` itself, not a code of that class that carries the sentence.
    pub verbatim: bool,
    /// The program itself wanted the call to end ([`limosa_p2p::interrupt`]): no error handler hears of it.
    pub interrupted: bool,
    /// The death of another process is the reason, also where `class` says only that one of several operations failed.
    pub by_death: bool,
}

/// Result of everything that can fail in this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error of `class`, described by `detail`.
    #[cold]
    pub fn new(class: ErrorClass, detail: impl Into<Cow<'static, str>>) -> Error {
        Error { class, detail: detail.into(), verbatim: false, interrupted: false, by_death: false }
    }

    /// Makes an error of which the program gets exactly that code: its own, or one that the standard names.
    #[cold]
    pub fn verbatim(code: i32, detail: impl Into<Cow<'static, str>>) -> Error {
        Error { verbatim: true, ..Error::new(code, detail) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Error {}

/// Returns a failure of the engine as an error of the standard.
#[cold]
pub fn error_of(failure: impl Borrow<Failure>) -> Error {
    let failure = failure.borrow();
    let class = match failure {
        Failure::Truncated { .. } => crate::consts::MPI_ERR_TRUNCATE,
        Failure::NoMemory(_) => crate::consts::MPI_ERR_NO_MEM,
        Failure::Device(_) => crate::consts::MPI_ERR_INTERN,
        Failure::PeerDied(_) => crate::consts::MPI_ERR_PROC_ABORTED,
        // Another process has sent the class.
        Failure::Disagreement { class: crate::consts::MPI_ERR_ROOT, .. } => crate::consts::MPI_ERR_ROOT,
        Failure::Disagreement { class: crate::consts::MPI_ERR_OP, .. } => crate::consts::MPI_ERR_OP,
        Failure::Disagreement { class: crate::consts::MPI_ERR_TRUNCATE, .. } => crate::consts::MPI_ERR_TRUNCATE,
        Failure::Interrupted | Failure::OutOfStep | Failure::Severed(_) | Failure::Disagreement { .. } => {
            crate::consts::MPI_ERR_OTHER
        }
    };
    Error {
        interrupted: *failure == Failure::Interrupted,
        by_death: matches!(failure, Failure::PeerDied(_)),
        ..Error::new(class, failure.to_string())
    }
}

impl From<Interrupted> for Error {
    #[cold]
    fn from(_: Interrupted) -> Error {
        error_of(Failure::Interrupted)
    }
}

/// Returns early with an [`Error`] of the given class: `fail!(MPI_ERR_COUNT, "count is {n}")`.
#[macro_export]
macro_rules! fail {
    ($class:ident, $($arg:tt)*) => {
        return Err($crate::error::Error::new($crate::consts::$class, format!($($arg)*)))
    };
}
