//! Sends (MPI-5 sections 3.2, 3.4, 3.7 and 3.9): four modes, each blocking, non-blocking and persistent.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::p2p::{self, SendMode};

use super::p2p::{issue, region};
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{Communicator, Datatype};

pub(crate) fn mpi_send(
    _cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    p2p::send(comm, region(buf, count, datatype)?, dest, tag, SendMode::Standard)
}

pub(crate) fn mpi_isend(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    issue(cx, request, p2p::isend(comm, region(buf, count, datatype)?, dest, tag, SendMode::Standard)?)
}

pub(crate) fn mpi_send_init(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    *request = cx.register(p2p::send_init(comm, region(buf, count, datatype)?, dest, tag, SendMode::Standard)?)?;
    Ok(())
}

pub(crate) fn mpi_bsend(
    _cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    p2p::send(comm, region(buf, count, datatype)?, dest, tag, SendMode::Buffered)
}

pub(crate) fn mpi_ibsend(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    issue(cx, request, p2p::isend(comm, region(buf, count, datatype)?, dest, tag, SendMode::Buffered)?)
}

pub(crate) fn mpi_bsend_init(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    *request = cx.register(p2p::send_init(comm, region(buf, count, datatype)?, dest, tag, SendMode::Buffered)?)?;
    Ok(())
}

pub(crate) fn mpi_ssend(
    _cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    p2p::send(comm, region(buf, count, datatype)?, dest, tag, SendMode::Synchronous)
}

pub(crate) fn mpi_issend(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    issue(cx, request, p2p::isend(comm, region(buf, count, datatype)?, dest, tag, SendMode::Synchronous)?)
}

pub(crate) fn mpi_ssend_init(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    *request = cx.register(p2p::send_init(comm, region(buf, count, datatype)?, dest, tag, SendMode::Synchronous)?)?;
    Ok(())
}

pub(crate) fn mpi_rsend(
    _cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    p2p::send(comm, region(buf, count, datatype)?, dest, tag, SendMode::Ready)
}

pub(crate) fn mpi_irsend(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    issue(cx, request, p2p::isend(comm, region(buf, count, datatype)?, dest, tag, SendMode::Ready)?)
}

pub(crate) fn mpi_rsend_init(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    *request = cx.register(p2p::send_init(comm, region(buf, count, datatype)?, dest, tag, SendMode::Ready)?)?;
    Ok(())
}
