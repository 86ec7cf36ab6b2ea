//! Conversions of files and statuses for Fortran (MPI-5 section 19.3.9), and variables that MPICH exports.
//!
//! A status has the same five integers in C and in both forms of Fortran.

use crate::convert::{File, Kind};
use crate::standard::{abi, mpich_value as mpich, standard_value as standard};
use crate::status::MpichStatus;

pub(crate) unsafe fn mpi_file_c2f(file: usize) -> i32 {
    // SAFETY: may be called at any time.
    unsafe { abi::MPI_File_toint(File::to_standard(file)) }
}

pub(crate) unsafe fn mpi_file_f2c(file: i32) -> usize {
    // SAFETY: likewise.
    unsafe { File::to_mpich(if file == 0 { File::NULL } else { abi::MPI_File_fromint(file) }) }
}

pub(crate) unsafe fn mpi_file_toint(file: usize) -> i32 {
    // SAFETY: likewise.
    unsafe { mpi_file_c2f(file) }
}

pub(crate) unsafe fn mpi_file_fromint(file: i32) -> usize {
    // SAFETY: likewise.
    unsafe { mpi_file_f2c(file) }
}

/// Copies a status, unless it is none.
unsafe fn convert(from: usize, to: usize) -> i32 {
    let ignored = [mpich::MPI_STATUS_IGNORE as usize, NO_STATUS.as_ptr() as usize];
    if from == 0 || ignored.contains(&from) {
        return mpich::MPI_ERR_OTHER;
    }
    // SAFETY: the addresses are those of statuses, which may be the same one.
    unsafe { std::ptr::copy(from as *const MpichStatus, to as *mut MpichStatus, 1) };
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
static NO_STATUS: [i32; mpich::MPI_F_STATUS_SIZE as usize] = [0; mpich::MPI_F_STATUS_SIZE as usize];

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

// Programs compiled for MPICH read these addresses from variables. They are those of the standard ABI, so that no
// function has to convert them.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: usize = standard::MPI_UNWEIGHTED as usize;
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: usize = standard::MPI_WEIGHTS_EMPTY as usize;
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: usize = standard::MPI_T_PVAR_ALL_HANDLES as usize;
