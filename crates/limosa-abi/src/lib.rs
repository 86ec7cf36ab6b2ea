//! `libmpi_abi`: the MPI-5 standard ABI (chapter 20) over `limosa-mpi`.
//!
//! A call travels like this: the exported function (generated, in the private module `entry`) widens its integers; the
//! function behind it decodes handles, checks scalar arguments and calls the glue in [`calls`]; what comes back as an
//! error goes through the error handler of the object that the call was made on ([`errors`]). The most frequent calls
//! try a fast path first ([`fast_path`]).
//!
//! Contract:
//! - no logic lives here: handles in, checks, one call, error handler out;
//! - the library never calls its own exported names, so that a profiler sees the calls of the program and no others;
//! - no panic leaves the library: it becomes `MPI_ERR_INTERN`;
//! - pointers that C passes in are trusted to be null or valid; null is checked.

mod args;
mod calls;
mod cx;
mod errors;
mod extension;
mod fast_path;
mod handles;
mod latest;
mod lifecycle;
mod origins;
mod python;
mod site;
mod status;

/// Keeps memory in reserve, with which a lack of memory can be reported.
#[global_allocator]
static ALLOCATOR: limosa_base::reserve::Reserved = limosa_base::reserve::Reserved;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the ABI layer takes MPI_Aint and pointers to be 64 bits wide, as on 64-bit Linux");

/// The exported functions and the ABI's handle kinds and function types; see `api/src/entry.rs` for what it looks like.
#[allow(clippy::all, non_snake_case, non_camel_case_types, missing_docs, unused_variables, unreachable_pub, dead_code)]
mod entry {
    use std::ffi::{c_char, c_int, c_void};

    use limosa_mpi::consts;

    use crate::args::{self, AnyFn, IntArray, Late, LateCount, OutInt};
    use crate::calls::{form, kinds};
    #[allow(unused_imports, reason = "only functions that are not done need it")]
    use crate::cx::unsupported;
    use crate::cx::{Cx, Target, When, enter, fast_path};
    use crate::handles::{Handle, Kind};
    use crate::status::Status;

    include!(concat!(env!("OUT_DIR"), "/entry.rs"));
}
