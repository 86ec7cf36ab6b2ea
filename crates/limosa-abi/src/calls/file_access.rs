//! Accesses to the data of files (MPI-5 section 14.4): each function says where it begins, whether all processes take
//! part, and in which form it is called.

use std::ffi::c_void;
use std::sync::Arc;

use limosa_io::{Buffer, Direction, Place, Split};
use limosa_mpi::Result;

use crate::calls::kinds::{Datatype, File};
use crate::calls::p2p::plain_region;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::status::Status;

use Direction::{Read, Write};

/// Whether all processes of the file take part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    One,
    All,
}

fn buffer(buf: *mut c_void, count: i64, datatype: &Arc<Datatype>) -> Result<Buffer> {
    let region = plain_region(buf, count, datatype)?;
    Ok(Buffer { base: buf.cast(), count, datatype: datatype.clone(), region })
}

fn report(status: Option<&mut Status>, bytes: u64) {
    if let Some(status) = status {
        let error = status.error;
        *status = Status::empty();
        status.error = error;
        status.set_bytes(bytes as i64);
    }
}

fn access(
    fh: &Arc<File>,
    (direction, place, who): (Direction, Place, Who),
    buffer: Result<Buffer>,
    status: Option<&mut Status>,
) -> Result<()> {
    report(status, fh.access(direction, place, who == Who::All, &buffer?)?);
    Ok(())
}

fn start(
    cx: &Cx,
    fh: &Arc<File>,
    (direction, place, who): (Direction, Place, Who),
    buffer: Result<Buffer>,
    request: &mut Handle,
) -> Result<()> {
    *request = cx.register(fh.start(direction, place, who == Who::All, buffer?)?)?;
    Ok(())
}

fn end(
    fh: &Arc<File>,
    (direction, split): (Direction, Split),
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    report(status, fh.end(direction, split, buf.cast())?);
    Ok(())
}

pub(crate) fn mpi_file_read(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, Place::Individual, Who::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, Place::Individual, Who::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_at(
    _cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, Place::At(offset), Who::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread_at(
    cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, Place::At(offset), Who::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_shared(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, Place::Shared, Who::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread_shared(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, Place::Shared, Who::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_all(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, Place::Individual, Who::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread_all(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, Place::Individual, Who::All), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_all_begin(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin(Read, Split::All, 0, buffer(buf, count, datatype)?)
}

pub(crate) fn mpi_file_read_all_end(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    end(fh, (Read, Split::All), buf, status)
}

pub(crate) fn mpi_file_read_at_all(
    _cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, Place::At(offset), Who::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread_at_all(
    cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, Place::At(offset), Who::All), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_at_all_begin(
    _cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin(Read, Split::AtAll, offset, buffer(buf, count, datatype)?)
}

pub(crate) fn mpi_file_read_at_all_end(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    end(fh, (Read, Split::AtAll), buf, status)
}

pub(crate) fn mpi_file_read_ordered(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, Place::Ordered, Who::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_read_ordered_begin(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin(Read, Split::Ordered, 0, buffer(buf, count, datatype)?)
}

pub(crate) fn mpi_file_read_ordered_end(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    end(fh, (Read, Split::Ordered), buf, status)
}

pub(crate) fn mpi_file_write(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, Place::Individual, Who::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, Place::Individual, Who::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_at(
    _cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, Place::At(offset), Who::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite_at(
    cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, Place::At(offset), Who::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_shared(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, Place::Shared, Who::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite_shared(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, Place::Shared, Who::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_all(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, Place::Individual, Who::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite_all(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, Place::Individual, Who::All), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_all_begin(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin(Write, Split::All, 0, buffer(buf, count, datatype)?)
}

pub(crate) fn mpi_file_write_all_end(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    end(fh, (Write, Split::All), buf, status)
}

pub(crate) fn mpi_file_write_at_all(
    _cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, Place::At(offset), Who::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite_at_all(
    cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, Place::At(offset), Who::All), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_at_all_begin(
    _cx: &Cx,
    fh: &Arc<File>,
    offset: i64,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin(Write, Split::AtAll, offset, buffer(buf, count, datatype)?)
}

pub(crate) fn mpi_file_write_at_all_end(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    end(fh, (Write, Split::AtAll), buf, status)
}

pub(crate) fn mpi_file_write_ordered(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, Place::Ordered, Who::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_write_ordered_begin(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
) -> Result<()> {
    fh.begin(Write, Split::Ordered, 0, buffer(buf, count, datatype)?)
}

pub(crate) fn mpi_file_write_ordered_end(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    status: Option<&mut Status>,
) -> Result<()> {
    end(fh, (Write, Split::Ordered), buf, status)
}
