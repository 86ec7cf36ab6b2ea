//! Data accesses to files (MPI-5 section 14.4): each function determines position, participants and form of an access.

use std::ffi::c_void;
use std::sync::Arc;

use limosa_io::{AccessPosition, Buffer, Direction, Split};
use limosa_mpi::Result;

use crate::calls::p2p::plain_region;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{Datatype, File};
use crate::status::Status;

use Direction::{Read, Write};

/// Participants of an access: the calling process, or all processes of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Participants {
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
    (direction, position, participants): (Direction, AccessPosition, Participants),
    buffer: Result<Buffer>,
    status: Option<&mut Status>,
) -> Result<()> {
    report(status, fh.access(direction, position, participants == Participants::All, &buffer?)?);
    Ok(())
}

fn start(
    cx: &Cx,
    fh: &Arc<File>,
    (direction, position, participants): (Direction, AccessPosition, Participants),
    buffer: Result<Buffer>,
    request: &mut Handle,
) -> Result<()> {
    *request = cx.register(fh.start(direction, position, participants == Participants::All, buffer?)?)?;
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
    access(fh, (Read, AccessPosition::Individual, Participants::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, AccessPosition::Individual, Participants::One), buffer(buf, count, datatype), request)
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
    access(fh, (Read, AccessPosition::At(offset), Participants::One), buffer(buf, count, datatype), status)
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
    start(cx, fh, (Read, AccessPosition::At(offset), Participants::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_shared(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, AccessPosition::Shared, Participants::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread_shared(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, AccessPosition::Shared, Participants::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_read_all(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Read, AccessPosition::Individual, Participants::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iread_all(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Read, AccessPosition::Individual, Participants::All), buffer(buf, count, datatype), request)
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
    access(fh, (Read, AccessPosition::At(offset), Participants::All), buffer(buf, count, datatype), status)
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
    start(cx, fh, (Read, AccessPosition::At(offset), Participants::All), buffer(buf, count, datatype), request)
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
    access(fh, (Read, AccessPosition::Ordered, Participants::All), buffer(buf, count, datatype), status)
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
    access(fh, (Write, AccessPosition::Individual, Participants::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, AccessPosition::Individual, Participants::One), buffer(buf, count, datatype), request)
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
    access(fh, (Write, AccessPosition::At(offset), Participants::One), buffer(buf, count, datatype), status)
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
    start(cx, fh, (Write, AccessPosition::At(offset), Participants::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_shared(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, AccessPosition::Shared, Participants::One), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite_shared(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, AccessPosition::Shared, Participants::One), buffer(buf, count, datatype), request)
}

pub(crate) fn mpi_file_write_all(
    _cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    status: Option<&mut Status>,
) -> Result<()> {
    access(fh, (Write, AccessPosition::Individual, Participants::All), buffer(buf, count, datatype), status)
}

pub(crate) fn mpi_file_iwrite_all(
    cx: &Cx,
    fh: &Arc<File>,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    request: &mut Handle,
) -> Result<()> {
    start(cx, fh, (Write, AccessPosition::Individual, Participants::All), buffer(buf, count, datatype), request)
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
    access(fh, (Write, AccessPosition::At(offset), Participants::All), buffer(buf, count, datatype), status)
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
    start(cx, fh, (Write, AccessPosition::At(offset), Participants::All), buffer(buf, count, datatype), request)
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
    access(fh, (Write, AccessPosition::Ordered, Participants::All), buffer(buf, count, datatype), status)
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
