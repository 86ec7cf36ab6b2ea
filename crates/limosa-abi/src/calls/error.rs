//! Error classes, codes and strings (MPI-5 sections 9.4 and 9.5).

use std::ffi::{CStr, c_char, c_int};

use limosa_mpi::{Error, Result, consts, error_code};

use crate::args;
use crate::cx::Cx;

pub(crate) fn mpi_error_class(_cx: &Cx, errorcode: c_int, errorclass: &mut c_int) -> Result<()> {
    *errorclass = error_code::class_of(errorcode)?;
    Ok(())
}

pub(crate) fn mpi_error_string(_cx: &Cx, errorcode: c_int, string: *mut c_char, resultlen: &mut c_int) -> Result<()> {
    let text = error_code::string(errorcode)?;
    // SAFETY: the program promises room for MPI_MAX_ERROR_STRING bytes.
    *resultlen = unsafe { args::copy_text(string, consts::MPI_MAX_ERROR_STRING as usize, &text) };
    Ok(())
}

pub(crate) fn mpi_add_error_class(_cx: &Cx, errorclass: &mut c_int) -> Result<()> {
    *errorclass = error_code::add_class()?;
    Ok(())
}

pub(crate) fn mpi_add_error_code(_cx: &Cx, errorclass: c_int, errorcode: &mut c_int) -> Result<()> {
    *errorcode = error_code::add_code(errorclass)?;
    Ok(())
}

pub(crate) fn mpi_add_error_string(_cx: &Cx, errorcode: c_int, string: &CStr) -> Result<()> {
    let text = string.to_string_lossy();
    if text.len() >= consts::MPI_MAX_ERROR_STRING as usize {
        let detail =
            format!("string has {} bytes, but at most {} are allowed", text.len(), consts::MPI_MAX_ERROR_STRING - 1);
        return Err(Error::new(consts::MPI_ERR_ARG, detail));
    }
    error_code::set_text(errorcode, &text)
}

pub(crate) fn mpi_remove_error_class(_cx: &Cx, errorclass: c_int) -> Result<()> {
    error_code::remove_class(errorclass)
}

pub(crate) fn mpi_remove_error_code(_cx: &Cx, errorcode: c_int) -> Result<()> {
    error_code::remove_code(errorcode)
}

pub(crate) fn mpi_remove_error_string(_cx: &Cx, errorcode: c_int) -> Result<()> {
    error_code::remove_text(errorcode)
}
