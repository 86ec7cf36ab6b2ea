//! Packing (MPI-5 sections 5.2 and 5.3).

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use limosa_mpi::datatype::Datatype;
use limosa_mpi::{Error, Result, consts};

use crate::args::{self, OutInt};
use crate::cx::Cx;
use crate::kinds;

/// Does the checks that all data-moving calls share. Returns the packed length in bytes.
fn check(datatype: &Datatype, buffer: *mut c_void, count: i64, arg: &str, size: i64, size_arg: &str) -> Result<usize> {
    args::at_least(count, 0, "count", consts::MPI_ERR_COUNT)?;
    args::at_least(size, 0, size_arg, consts::MPI_ERR_ARG)?;
    datatype.check_committed()?;
    datatype.check_buffer(buffer.cast(), count, arg)?;
    Ok(size as usize)
}

/// Checks that the representation is `external32`, the only one that the standard defines.
fn check_representation(datarep: &CStr) -> Result<()> {
    if datarep.to_bytes() != b"external32" {
        let detail = format!("datarep is \"{}\", but only \"external32\" exists", datarep.to_string_lossy());
        return Err(Error::new(consts::MPI_ERR_UNSUPPORTED_DATAREP, detail));
    }
    Ok(())
}

pub(crate) fn mpi_pack_size(
    _cx: &Cx,
    incount: i64,
    datatype: &Arc<kinds::Datatype>,
    _comm: &Arc<kinds::Communicator>,
    size: OutInt,
) -> Result<()> {
    size.set(datatype.pack_size(incount)?);
    Ok(())
}

pub(crate) fn mpi_pack(
    cx: &Cx,
    inbuf: *mut c_void,
    incount: i64,
    datatype: &Arc<kinds::Datatype>,
    outbuf: *mut c_void,
    outsize: i64,
    position: OutInt,
    _comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    let room = check(datatype, inbuf, incount, "inbuf", outsize, "outsize")?;
    let packed = cx.slice_mut(outbuf.cast::<u8>(), room, "outbuf")?;
    let mut at = position.get();
    // SAFETY: the program promises readable elements.
    unsafe { datatype.pack_elements(inbuf.cast(), incount, packed, &mut at)? };
    position.set(at);
    Ok(())
}

pub(crate) fn mpi_unpack(
    cx: &Cx,
    inbuf: *mut c_void,
    insize: i64,
    position: OutInt,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: &Arc<kinds::Datatype>,
    _comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    let length = check(datatype, outbuf, outcount, "outbuf", insize, "insize")?;
    let packed = cx.slice(inbuf.cast::<u8>(), length, "inbuf")?;
    let mut at = position.get();
    // SAFETY: the program promises writable elements.
    unsafe { datatype.unpack_elements(packed, &mut at, outbuf.cast(), outcount)? };
    position.set(at);
    Ok(())
}

pub(crate) fn mpi_pack_external_size(
    _cx: &Cx,
    datarep: &CStr,
    incount: i64,
    datatype: &Arc<kinds::Datatype>,
    size: OutInt,
) -> Result<()> {
    check_representation(datarep)?;
    args::at_least(incount, 0, "incount", consts::MPI_ERR_COUNT)?;
    size.set(datatype.external_size(incount)?);
    Ok(())
}

pub(crate) fn mpi_pack_external(
    cx: &Cx,
    datarep: &CStr,
    inbuf: *mut c_void,
    incount: i64,
    datatype: &Arc<kinds::Datatype>,
    outbuf: *mut c_void,
    outsize: i64,
    position: OutInt,
) -> Result<()> {
    check_representation(datarep)?;
    let room = check(datatype, inbuf, incount, "inbuf", outsize, "outsize")?;
    let packed = cx.slice_mut(outbuf.cast::<u8>(), room, "outbuf")?;
    let mut at = position.get();
    // SAFETY: the program promises readable elements.
    unsafe { datatype.pack_external(inbuf.cast(), incount, packed, &mut at)? };
    position.set(at);
    Ok(())
}

pub(crate) fn mpi_unpack_external(
    cx: &Cx,
    datarep: &CStr,
    inbuf: *mut c_void,
    insize: i64,
    position: OutInt,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: &Arc<kinds::Datatype>,
) -> Result<()> {
    check_representation(datarep)?;
    let length = check(datatype, outbuf, outcount, "outbuf", insize, "insize")?;
    let packed = cx.slice(inbuf.cast::<u8>(), length, "inbuf")?;
    let mut at = position.get();
    // SAFETY: the program promises writable elements.
    unsafe { datatype.unpack_external(packed, &mut at, outbuf.cast(), outcount)? };
    position.set(at);
    Ok(())
}
