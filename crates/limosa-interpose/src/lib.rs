//! Common code of libraries that are loaded before any MPI library behind the MPI-5 standard ABI (`LD_PRELOAD`): the
//! profiler and the checker.
//!
//! Such a library exports functions with the standard's names. Each has an entry that records the call site
//! ([`entry!`], [`site`], [`fortran`], [`python`]) and continues in a generated wrapper, which calls the next library's
//! function ([`next`]).

pub mod fortran;
pub mod next;
pub mod python;
pub mod site;
