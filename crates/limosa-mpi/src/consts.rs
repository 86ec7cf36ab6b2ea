//! The standard's constants, generated from `api/mpi5.json`.

/// An MPI error class or user-defined error code.
pub type ErrorClass = i32;

/// Placeholder.
pub const MPI_ERR_COUNT: ErrorClass = 2;
