//! Access to the fields of a status (MPI-5 sections 3.2.5, 3.8.4 and 13.3).

use std::ffi::c_int;

use limosa_mpi::Result;

use crate::cx::Cx;
use crate::status::Status;

pub(crate) fn mpi_status_get_source(_cx: &Cx, status: &Status, source: &mut c_int) -> Result<()> {
    *source = status.source;
    Ok(())
}

pub(crate) fn mpi_status_get_tag(_cx: &Cx, status: &Status, tag: &mut c_int) -> Result<()> {
    *tag = status.tag;
    Ok(())
}

pub(crate) fn mpi_status_get_error(_cx: &Cx, status: &Status, err: &mut c_int) -> Result<()> {
    *err = status.error;
    Ok(())
}

pub(crate) fn mpi_status_set_source(_cx: &Cx, status: &mut Status, source: c_int) -> Result<()> {
    status.source = source;
    Ok(())
}

pub(crate) fn mpi_status_set_tag(_cx: &Cx, status: &mut Status, tag: c_int) -> Result<()> {
    status.tag = tag;
    Ok(())
}

pub(crate) fn mpi_status_set_error(_cx: &Cx, status: &mut Status, err: c_int) -> Result<()> {
    status.error = err;
    Ok(())
}

pub(crate) fn mpi_status_set_cancelled(_cx: &Cx, status: &mut Status, flag: bool) -> Result<()> {
    status.set_cancelled(flag);
    Ok(())
}

pub(crate) fn mpi_test_cancelled(_cx: &Cx, status: &Status, flag: &mut c_int) -> Result<()> {
    *flag = status.cancelled() as c_int;
    Ok(())
}
