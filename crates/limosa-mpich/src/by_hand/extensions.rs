//! Extensions of MPICH that have an answer. All others end with an error that says what they are.

use crate::convert::{Kind, Request, error_code_to_mpich};
use crate::standard::{abi, mpich_value as mpich};

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
        return mpich::MPI_ERR_ARG;
    }
    // SAFETY: the address is the program's.
    unsafe { *(is_supported as *mut i32) = 0 };
    0
}

/// Returns a boolean, not an error code.
pub(crate) unsafe fn mpix_request_is_complete(request: i32) -> i32 {
    let mut flag = 0i32;
    // SAFETY: the library checks the request; the status is ignored.
    let code = unsafe { abi::MPI_Request_get_status(Request::to_standard(request), &raw mut flag as usize, 0) };
    if code == 0 { flag } else { i32::from(error_code_to_mpich(code) == 0) }
}
