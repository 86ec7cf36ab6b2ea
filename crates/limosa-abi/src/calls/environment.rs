//! Versions, clocks and names (MPI-5 sections 9.1 and 9.6).

use std::ffi::{c_char, c_int};

use limosa_mpi::comm::hardware_resources;
use limosa_mpi::info::Info;
use limosa_mpi::{Error, Result, consts, instance};

use crate::args;
use crate::cx::Cx;
use crate::handles::Handle;

pub(crate) fn mpi_get_version(_cx: &Cx, version: &mut c_int, subversion: &mut c_int) -> Result<()> {
    (*version, *subversion) = (consts::MPI_VERSION, consts::MPI_SUBVERSION);
    Ok(())
}

pub(crate) fn mpi_get_library_version(_cx: &Cx, version: *mut c_char, resultlen: &mut c_int) -> Result<()> {
    let text = concat!("Limosa ", env!("CARGO_PKG_VERSION"), ", MPI 5.0, ABI 1.0");
    // SAFETY: the program promises room for MPI_MAX_LIBRARY_VERSION_STRING bytes.
    *resultlen = unsafe { args::copy_text(version, consts::MPI_MAX_LIBRARY_VERSION_STRING as usize, text) };
    Ok(())
}

pub(crate) fn mpi_get_processor_name(_cx: &Cx, name: *mut c_char, resultlen: &mut c_int) -> Result<()> {
    let mut host = [0u8; consts::MPI_MAX_PROCESSOR_NAME as usize];
    // SAFETY: the array has the length that is passed. The name comes from the kernel, without a name service.
    if unsafe { libc::gethostname(host.as_mut_ptr().cast(), host.len()) } != 0 {
        let cause = std::io::Error::last_os_error();
        return Err(Error::new(consts::MPI_ERR_OTHER, format!("the name of this machine cannot be read: {cause}")));
    }
    let length = host.iter().position(|b| *b == 0).unwrap_or(host.len());
    // SAFETY: the program promises room for MPI_MAX_PROCESSOR_NAME bytes.
    *resultlen = unsafe { args::copy_text(name, host.len(), &String::from_utf8_lossy(&host[..length])) };
    Ok(())
}

pub(crate) fn mpi_get_hw_resource_info(cx: &Cx, hw_info: &mut Handle) -> Result<()> {
    let info = Info::new();
    for (resource, is_restricted) in hardware_resources() {
        info.set(resource.as_bytes(), if is_restricted { b"true" } else { b"false" })?;
    }
    *hw_info = cx.register(info)?;
    Ok(())
}

pub(crate) fn mpi_wtime(_cx: &Cx) -> f64 {
    instance::wtime()
}

pub(crate) fn mpi_wtick(_cx: &Cx) -> f64 {
    instance::wtick()
}
