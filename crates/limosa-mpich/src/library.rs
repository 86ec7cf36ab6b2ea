//! The library behind the standard ABI: found when this one is loaded, its functions by number.
//!
//! It is opened by name and not linked: both libraries export the same names, and a library that calls its own
//! functions by their names, as MPICH and Intel MPI do, would reach the functions of this one. Such a library is opened
//! so that its own names come first (`RTLD_DEEPBIND`).

use std::ffi::{CStr, c_int};

use crate::standard::{LIBRARY, OWNER};

include!(concat!(env!("OUT_DIR"), "/names.rs"));

const STANDARD: &CStr = c"libmpi_abi.so.1";
/// A function that only Limosa's library has. It calls none of its own functions by name.
const OWN: &CStr = c"limosa_mcast";

/// Addresses of the functions in [`NAMES`]. Written once, before the program runs.
static mut FUNCTIONS: [usize; NAMES.len()] = [0; NAMES.len()];

/// Whether the library's handles are their own integers, as Limosa's are: `MPI_Comm_toint` and its like then need no
/// call. Written as [`FUNCTIONS`] are.
static mut HAS_PLAIN_HANDLES: bool = false;

#[inline(always)]
pub(crate) fn has_plain_handles() -> bool {
    // SAFETY: written by `find` only, before any function of this library can be called.
    unsafe { HAS_PLAIN_HANDLES }
}

/// Finds the library when the dynamic linker has loaded this one.
#[used]
#[unsafe(link_section = ".init_array")]
static FIND: extern "C" fn() = find;

/// Returns the address of a function of the standard ABI.
#[inline(always)]
pub(crate) fn function(number: usize) -> usize {
    // SAFETY: written by `find` only, before any function of this library can be called.
    unsafe { FUNCTIONS[number] }
}

extern "C" fn find() {
    // SAFETY: the names end with a null character. The constructors of a library are expected to run.
    let library = unsafe {
        let library = libc::dlopen(STANDARD.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        HAS_PLAIN_HANDLES = !library.is_null() && !libc::dlsym(library, OWN.as_ptr()).is_null();
        match library.is_null() || HAS_PLAIN_HANDLES {
            true => library,
            false => {
                libc::dlclose(library);
                libc::dlopen(STANDARD.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND)
            }
        }
    };
    for (number, name) in NAMES.iter().enumerate() {
        let found = match library.is_null() {
            true => absent as *const () as usize,
            // SAFETY: the name ends with a null character, and the library stays open.
            false => unsafe { libc::dlsym(library, name.as_ptr()) as usize },
        };
        // SAFETY: no other thread uses this library yet.
        unsafe { FUNCTIONS[number] = if found == 0 { missing as *const () as usize } else { found } };
    }
}

/// Stands for a function that the library does not have.
extern "C" fn missing() -> c_int {
    UNSUPPORTED_OPERATION
}

/// Stands for every function where there is no library.
extern "C" fn absent() -> c_int {
    eprintln!(
        "limosa: {LIBRARY} translates {OWNER}'s ABI and needs libmpi_abi.so.1, which is not found\n  hint: start the \
         program with `limosa run`, or name the folder of libmpi_abi.so.1 in LD_LIBRARY_PATH"
    );
    std::process::abort()
}
