//! What libraries share that stand before any MPI library behind the MPI-5 standard ABI (`LD_PRELOAD`): the profiler and
//! the checker.
//!
//! Such a library has functions of the standard's names. Each has an entry that notes where the call came from
//! ([`entry!`], [`site`], [`python`]), and goes on in a generated wrapper, which calls the next library's function
//! ([`next`]).

pub mod next;
pub mod python;
pub mod site;
