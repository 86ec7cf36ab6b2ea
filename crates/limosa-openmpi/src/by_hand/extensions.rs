//! What Open MPI has and other libraries have not.
//!
//! Extensions that are not here end with an error that says what they are.

use std::ffi::c_int;

use crate::convert::result;
use crate::standard::{abi, standard_value as standard, their_value as theirs};

/// The library moves bytes of the host's memory only.
pub(crate) unsafe fn mpix_query_cuda_support() -> i32 {
    0
}

pub(crate) unsafe fn mpix_query_rocm_support() -> i32 {
    0
}

/// Converts the handle of a performance variable, or of all.
fn variable(handle: usize) -> usize {
    if handle as isize == theirs::MPI_T_PVAR_ALL_HANDLES as isize {
        return standard::MPI_T_PVAR_ALL_HANDLES as usize;
    }
    handle
}

pub(crate) unsafe fn mpi_t_pvar_start(session: usize, handle: usize) -> i32 {
    // SAFETY: the library checks the handles.
    unsafe { result(abi::MPI_T_pvar_start(session, variable(handle))) }
}

pub(crate) unsafe fn mpi_t_pvar_stop(session: usize, handle: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { result(abi::MPI_T_pvar_stop(session, variable(handle))) }
}

pub(crate) unsafe fn mpi_t_pvar_reset(session: usize, handle: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { result(abi::MPI_T_pvar_reset(session, variable(handle))) }
}

/// Defines the functions behind `MPI_COMM_DUP_FN`, `MPI_COMM_NULL_COPY_FN`, `MPI_COMM_NULL_DELETE_FN` and their like.
macro_rules! attribute_functions {
    ($($dup:ident $null_copy:ident $null_delete:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(missing_docs)]
            pub unsafe extern "C" fn $dup(
                _object: usize,
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

            #[unsafe(no_mangle)]
            #[allow(missing_docs)]
            pub unsafe extern "C" fn $null_copy(
                _object: usize,
                _keyval: c_int,
                _state: usize,
                _value: usize,
                _copied: *mut usize,
                flag: *mut c_int,
            ) -> c_int {
                // SAFETY: likewise.
                unsafe { *flag = 0 };
                0
            }

            #[unsafe(no_mangle)]
            #[allow(missing_docs)]
            pub extern "C" fn $null_delete(_object: usize, _keyval: c_int, _value: usize, _state: usize) -> c_int {
                0
            }
        )*
    };
}

attribute_functions! {
    OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_DELETE_FN
    OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN
    OMPI_C_MPI_WIN_DUP_FN OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_DELETE_FN
    OMPI_C_MPI_DUP_FN OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_NULL_DELETE_FN
}
