//! Inquiry about the ABI (MPI-5 sections 20.2 and 20.4).
//!
//! Limosa assumes the default Fortran types of its platforms' compilers: INTEGER, REAL and LOGICAL of four bytes,
//! .TRUE. = 1. These values are set initially, and by the standard, values that are set cannot be set again.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::{Result, consts, fail};

use crate::args;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::Info;

pub(crate) fn mpi_abi_get_version(_cx: &Cx, abi_major: &mut c_int, abi_minor: &mut c_int) -> Result<()> {
    (*abi_major, *abi_minor) = (consts::MPI_ABI_VERSION, consts::MPI_ABI_SUBVERSION);
    Ok(())
}

pub(crate) fn mpi_abi_get_info(cx: &Cx, info: &mut Handle) -> Result<()> {
    let details = Info::new();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        details.set(key.as_bytes(), b"8")?;
    }
    *info = cx.register(details)?;
    Ok(())
}

/// Sizes of the optional Fortran types of each family.
const OPTIONAL_TYPES: [(&str, &[u8]); 4] = [
    ("logical", &[1, 2, 4, 8, 16]),
    ("integer", &[1, 2, 4, 8, 16]),
    ("real", &[2, 4, 8, 16]),
    ("complex", &[4, 8, 16, 32]),
];

pub(crate) fn mpi_abi_get_fortran_info(cx: &Cx, info: &mut Handle) -> Result<()> {
    let details = Info::new();
    for (name, size) in [("logical", "4"), ("integer", "4"), ("real", "4"), ("double_precision", "8")] {
        details.set(format!("mpi_{name}_size").as_bytes(), size.as_bytes())?;
    }
    for (family, sizes) in OPTIONAL_TYPES {
        for size in sizes {
            details.set(format!("mpi_{family}{size}_supported").as_bytes(), b"true")?;
        }
    }
    details.set(b"mpi_double_complex_supported", b"true")?;
    *info = cx.register(details)?;
    Ok(())
}

pub(crate) fn mpi_abi_set_fortran_info(_cx: &Cx, _info: Option<&Arc<Info>>) -> Result<()> {
    fail!(MPI_ERR_ABI, "the properties of Fortran types are known to this library and cannot be set")
}

pub(crate) fn mpi_abi_get_fortran_booleans(
    _cx: &Cx,
    logical_size: c_int,
    logical_true: *mut c_void,
    logical_false: *mut c_void,
    is_set: &mut c_int,
) -> Result<()> {
    check_logical(logical_size)?;
    args::not_null(logical_true, "logical_true")?;
    args::not_null(logical_false, "logical_false")?;
    for (place, value) in [(logical_true, 1u128), (logical_false, 0)] {
        // SAFETY: the program promises a Fortran logical of that size, at most 16 bytes; the platforms are
        // little-endian.
        unsafe { std::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), place.cast(), logical_size as usize) };
    }
    *is_set = 1;
    Ok(())
}

pub(crate) fn mpi_abi_set_fortran_booleans(
    _cx: &Cx,
    logical_size: c_int,
    _logical_true: *mut c_void,
    _logical_false: *mut c_void,
) -> Result<()> {
    check_logical(logical_size)?;
    fail!(MPI_ERR_ABI, "the values of Fortran's .TRUE. and .FALSE. are known to this library and cannot be set")
}

fn check_logical(size: c_int) -> Result<()> {
    if !matches!(size, 1 | 2 | 4 | 8 | 16) {
        fail!(MPI_ERR_ARG, "logical_size is {size}, but Fortran logicals have 1, 2, 4, 8 or 16 bytes");
    }
    Ok(())
}
