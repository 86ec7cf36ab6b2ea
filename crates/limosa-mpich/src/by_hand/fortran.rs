//! Conversions of statuses for Fortran (MPI-5 section 19.3.9).
//!
//! A status has the same integers in C and in both forms of Fortran.

use crate::layout::TheirStatus;
use crate::standard::their_value as theirs;

/// Copies a status, unless it is none.
unsafe fn convert(from: usize, to: usize) -> i32 {
    let ignored = [theirs::MPI_STATUS_IGNORE as usize, NO_STATUS.as_ptr() as usize];
    if from == 0 || ignored.contains(&from) {
        return theirs::MPI_ERR_OTHER;
    }
    // SAFETY: the addresses are those of statuses, which may be the same one.
    unsafe { std::ptr::copy(from as *const TheirStatus, to as *mut TheirStatus, 1) };
    0
}

pub(crate) unsafe fn mpi_status_c2f(c_status: usize, f_status: usize) -> i32 {
    // SAFETY: the addresses are the program's.
    unsafe { convert(c_status, f_status) }
}

pub(crate) unsafe fn mpi_status_f2c(f_status: usize, c_status: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { convert(f_status, c_status) }
}

pub(crate) unsafe fn mpi_status_c2f08(c_status: usize, f08_status: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { convert(c_status, f08_status) }
}

pub(crate) unsafe fn mpi_status_f082c(f08_status: usize, c_status: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { convert(f08_status, c_status) }
}

pub(crate) unsafe fn mpi_status_f2f08(f_status: usize, f08_status: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { convert(f_status, f08_status) }
}

pub(crate) unsafe fn mpi_status_f082f(f08_status: usize, f_status: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { convert(f08_status, f_status) }
}

/// Memory whose address stands for no status.
static NO_STATUS: [i32; theirs::MPI_F_STATUS_SIZE as usize] = [0; theirs::MPI_F_STATUS_SIZE as usize];

/// An address in an exported variable.
#[repr(transparent)]
pub struct Address(*const i32);

// SAFETY: the variables are only read.
unsafe impl Sync for Address {}

#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Address = Address(NO_STATUS.as_ptr());
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Address = Address(NO_STATUS.as_ptr());
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: Address = Address(NO_STATUS.as_ptr());
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: Address = Address(NO_STATUS.as_ptr());
