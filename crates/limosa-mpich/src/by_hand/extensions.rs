//! What MPICH has and other libraries have not: functions, variables, and handles of files that are pointers.
//!
//! Extensions that are not here end with an error that says what they are.

use std::ffi::c_int;

use crate::convert::{File, Handle, Kind, Request, error_code_to_theirs};
use crate::standard::{abi, standard_value as standard, their_value as theirs};

/// The library moves bytes of the host's memory only.
pub(crate) unsafe fn mpix_query_cuda_support() -> i32 {
    0
}

pub(crate) unsafe fn mpix_query_hip_support() -> i32 {
    0
}

pub(crate) unsafe fn mpix_query_ze_support() -> i32 {
    0
}

pub(crate) unsafe fn mpix_gpu_query_support(_kind: i32, is_supported: usize) -> i32 {
    if is_supported == 0 {
        return theirs::MPI_ERR_ARG;
    }
    // SAFETY: the address is the program's.
    unsafe { *(is_supported as *mut i32) = 0 };
    0
}

/// Returns a boolean, not an error code.
pub(crate) unsafe fn mpix_request_is_complete(request: Handle<Request>) -> i32 {
    let mut flag = 0i32;
    // SAFETY: the library checks the request; the status is ignored.
    let code = unsafe { abi::MPI_Request_get_status(Request::to_standard(request), &raw mut flag as usize, 0) };
    if code == 0 { flag } else { i32::from(error_code_to_theirs(code) == 0) }
}

pub(crate) unsafe fn mpi_file_c2f(file: Handle<File>) -> i32 {
    // SAFETY: may be called at any time.
    unsafe { abi::MPI_File_toint(File::to_standard(file)) }
}

pub(crate) unsafe fn mpi_file_f2c(file: i32) -> usize {
    // SAFETY: likewise.
    unsafe { File::to_theirs(if file == 0 { File::NULL } else { abi::MPI_File_fromint(file) }) }
}

pub(crate) unsafe fn mpi_file_toint(file: Handle<File>) -> i32 {
    // SAFETY: likewise.
    unsafe { mpi_file_c2f(file) }
}

pub(crate) unsafe fn mpi_file_fromint(file: i32) -> usize {
    // SAFETY: likewise.
    unsafe { mpi_file_f2c(file) }
}

/// `MPI_DUP_FN` and its like are the address of this function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
    _keyval: c_int,
    _state: usize,
    value: usize,
    copied: *mut usize,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller passes addresses of locals.
    unsafe {
        *copied = value;
        *flag = 1;
    }
    0
}

// Programs compiled for MPICH read these addresses from variables. They are those of the standard ABI, so that no
// function has to convert them.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: usize = standard::MPI_UNWEIGHTED as usize;
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: usize = standard::MPI_WEIGHTS_EMPTY as usize;
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: usize = standard::MPI_T_PVAR_ALL_HANDLES as usize;
