//! Receives, probes, exchanges and send buffers (MPI-5 chapter 3). Sends are in `send.rs`, requests in `request.rs`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_base::readable::is_readable;
use limosa_mpi::bsend::{self, BufferOwner};
use limosa_mpi::check;
use limosa_mpi::consts;
use limosa_mpi::headers;
use limosa_mpi::instance;
use limosa_mpi::operation::End;
use limosa_mpi::p2p::{self, Exchange, Found, Issued, Message};
use limosa_mpi::request::Request;
use limosa_mpi::{Region, Result, fail};

use crate::args::{self, OutInt};
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{self, Communicator, Datatype};
use crate::lifecycle;
use crate::status::Status;

/// Returns the memory of a message.
#[inline(always)]
pub(crate) fn region(buf: *mut c_void, count: i64, datatype: &Arc<Datatype>) -> Result<Region> {
    match datatype.dense_bytes() {
        Some(bytes) if buf as usize > consts::MPI_IN_PLACE && is_readable(buf.cast(), count as usize * bytes) => {
            // SAFETY: the program promises that the buffer holds `count` elements of the datatype until the operation
            // is complete.
            Ok(unsafe { Region::contiguous(buf.cast(), count as usize * bytes) })
        }
        _ => region_of(buf, count, datatype),
    }
}

#[inline(never)]
fn region_of(buf: *mut c_void, count: i64, datatype: &Arc<Datatype>) -> Result<Region> {
    let region = plain_region(buf, count, datatype)?;
    Ok(if check::is_on() { headers::region(region, count, datatype) } else { region })
}

/// Returns the memory of data that are sent without a header ([`headers`]).
pub(crate) fn plain_region(buf: *mut c_void, count: i64, datatype: &Arc<Datatype>) -> Result<Region> {
    datatype.check_committed()?;
    if buf as usize == consts::MPI_IN_PLACE {
        fail!(
            MPI_ERR_BUFFER,
            "the buffer is MPI_IN_PLACE, which has no meaning here: pass the address of the elements"
        );
    }
    // Address 0 is MPI_BOTTOM, which is valid with derived types, whose displacements can be absolute addresses.
    if buf.is_null() && count > 0 && datatype.is_predefined() && datatype.size() > 0 {
        fail!(MPI_ERR_BUFFER, "the buffer is a null pointer, but {count} elements are to be transferred");
    }
    datatype.check_readable(buf.cast(), count, "the buffer")?;
    // SAFETY: the program promises that the buffer holds `count` elements of the datatype until the operation is
    // complete.
    Ok(unsafe { datatype.region(buf.cast(), count as usize) })
}

/// Fails if send and receive buffer are the same memory (MPI-5 section 3.10). For buffers with gaps, the first pieces
/// are compared.
fn check_apart(send: (&Region, c_int), receive: (&Region, c_int)) -> Result<()> {
    let span = |(region, rank): (&Region, c_int)| {
        let mut span = (0, 0);
        if rank != consts::MPI_PROC_NULL {
            let header = headers::header_of(region);
            region.pieces(header, region.len() - header, &mut |start, len| {
                span = (start as usize, start as usize + len);
                false
            });
        }
        span
    };
    let (read, write) = (span(send), span(receive));
    if read.0.max(write.0) < read.1.min(write.1) {
        fail!(
            MPI_ERR_BUFFER,
            "sendbuf ({:#x} to {:#x}) and recvbuf ({:#x} to {:#x}) overlap, but must be disjoint: to replace what is sent, \
             call MPI_Sendrecv_replace (MPI_IN_PLACE is for collective operations)",
            read.0,
            read.1,
            write.0,
            write.1
        );
    }
    Ok(())
}

/// Stores the completion of an operation in a status.
pub(crate) fn report(status: Option<&mut Status>, end: &End) {
    if let Some(status) = status {
        status.set(end.source, end.tag, end.bytes as i64);
        status.set_cancelled(end.cancelled);
    }
}

/// Reports the completion of the call's only operation, and its error, if any.
#[inline]
pub(crate) fn finish(status: Option<&mut Status>, end: End) -> Result<()> {
    report(status, &end);
    if end.error.is_none() { Ok(()) } else { failed(end) }
}

#[cold]
fn failed(end: End) -> Result<()> {
    end.error.map_or(Ok(()), Err)
}

fn register(cx: &Cx, place: &mut Handle, request: Arc<Request>) -> Result<()> {
    *place = cx.register(request)?;
    Ok(())
}

/// Registers the request of a non-blocking operation.
#[inline]
pub(crate) fn issue(cx: &Cx, place: &mut Handle, issued: Issued) -> Result<()> {
    *place = match issued {
        Issued::Sent => Handle::COMPLETED,
        Issued::Light(short) => match Handle::light(short) {
            Some(handle) => handle,
            None => cx.register(issued.into_object())?,
        },
        Issued::Object(request) => cx.register(request)?,
    };
    Ok(())
}

pub(crate) fn mpi_recv(
    _cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    status: Option<&mut Status>,
) -> Result<()> {
    finish(status, p2p::receive(comm, region(buf, count, datatype)?, source, tag)?)
}

pub(crate) fn mpi_irecv(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    issue(cx, request, p2p::ireceive(comm, region(buf, count, datatype)?, source, tag)?)
}

pub(crate) fn mpi_recv_init(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    register(cx, request, p2p::receive_init(comm, region(buf, count, datatype)?, source, tag)?)
}

pub(crate) fn mpi_sendrecv(
    _cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: i64,
    sendtype: &Arc<Datatype>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: &Arc<Datatype>,
    source: c_int,
    recvtag: c_int,
    comm: &Arc<Communicator>,
    status: Option<&mut Status>,
) -> Result<()> {
    let (send, receive) = (region(sendbuf, sendcount, sendtype)?, region(recvbuf, recvcount, recvtype)?);
    check_apart((&send, dest), (&receive, source))?;
    finish(
        status,
        p2p::send_receive(comm, Exchange { send, dest, send_tag: sendtag, receive, source, receive_tag: recvtag })?,
    )
}

pub(crate) fn mpi_isendrecv(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: i64,
    sendtype: &Arc<Datatype>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: &Arc<Datatype>,
    source: c_int,
    recvtag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let (send, receive) = (region(sendbuf, sendcount, sendtype)?, region(recvbuf, recvcount, recvtype)?);
    check_apart((&send, dest), (&receive, source))?;
    let exchange = Exchange { send, dest, send_tag: sendtag, receive, source, receive_tag: recvtag };
    register(cx, request, p2p::isend_receive(comm, exchange, None)?)
}

pub(crate) fn mpi_sendrecv_replace(
    _cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: &Arc<Communicator>,
    status: Option<&mut Status>,
) -> Result<()> {
    let receive = region(buf, count, datatype)?;
    let (send, _copy) = p2p::copy_of(&receive);
    finish(
        status,
        p2p::send_receive(comm, Exchange { send, dest, send_tag: sendtag, receive, source, receive_tag: recvtag })?,
    )
}

pub(crate) fn mpi_isendrecv_replace(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: &Arc<Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let receive = region(buf, count, datatype)?;
    let (send, copy) = p2p::copy_of(&receive);
    let exchange = Exchange { send, dest, send_tag: sendtag, receive, source, receive_tag: recvtag };
    register(cx, request, p2p::isend_receive(comm, exchange, Some(copy))?)
}

pub(crate) fn mpi_probe(
    _cx: &Cx,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    status: Option<&mut Status>,
) -> Result<()> {
    finish(status, p2p::probe(comm, source, tag)?)
}

pub(crate) fn mpi_iprobe(
    _cx: &Cx,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    flag: &mut c_int,
    status: Option<&mut Status>,
) -> Result<()> {
    let found = p2p::iprobe(comm, source, tag)?;
    *flag = found.is_some().into();
    found.map_or(Ok(()), |end| finish(status, end))
}

/// Registers an extracted message. Returns whether there was one.
fn found(cx: &Cx, found: Found, message: &mut Handle, status: Option<&mut Status>) -> Result<bool> {
    let (end, handle) = match found {
        Found::Nothing => return Ok(false),
        Found::NoProc => (End::proc_null(), Handle::predefined(consts::MPI_MESSAGE_NO_PROC)),
        Found::Message(end, taken) => (end, cx.register(taken)?),
    };
    *message = handle;
    report(status, &end);
    Ok(true)
}

pub(crate) fn mpi_mprobe(
    cx: &Cx,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    message: &mut Handle,
    status: Option<&mut Status>,
) -> Result<()> {
    found(cx, p2p::mprobe(comm, source, tag)?, message, status).map(drop)
}

pub(crate) fn mpi_improbe(
    cx: &Cx,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    flag: &mut c_int,
    message: &mut Handle,
    status: Option<&mut Status>,
) -> Result<()> {
    *flag = found(cx, p2p::improbe(comm, source, tag)?, message, status)?.into();
    Ok(())
}

/// Takes the message out of its handle and starts to receive it; `None` for `MPI_MESSAGE_NO_PROC`.
fn receive_message(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    message: &mut Handle,
) -> Result<Option<(Arc<Message>, Arc<Request>)>> {
    if *message == Handle::predefined(consts::MPI_MESSAGE_NO_PROC) {
        *message = Handle::predefined(consts::MPI_MESSAGE_NULL);
        return Ok(None);
    }
    let region = region(buf, count, datatype)?;
    let taken = cx.free::<kinds::Message>(message, "message")?;
    let request = taken.receive(region);
    Ok(Some((taken, request)))
}

pub(crate) fn mpi_mrecv(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    message: &mut Handle,
    status: Option<&mut Status>,
) -> Result<()> {
    let Some((taken, request)) = receive_message(cx, buf, count, datatype, message)? else {
        return finish(status, End::proc_null());
    };
    cx.blame(Handle(taken.comm().handle.load(Ordering::Relaxed)));
    let requests = [Some(request)];
    // The message has arrived, or is arriving.
    limosa_mpi::request::wait_for_certain(&requests);
    finish(status, requests[0].as_ref().and_then(|r| r.take()).unwrap_or_else(End::empty))
}

pub(crate) fn mpi_imrecv(
    cx: &Cx,
    buf: *mut c_void,
    count: i64,
    datatype: &Arc<Datatype>,
    message: &mut Handle,
    request: &mut Handle,
) -> Result<()> {
    let started = match receive_message(cx, buf, count, datatype, message)? {
        Some((_, started)) => started,
        None => Request::done(None, End::proc_null()),
    };
    register(cx, request, started)
}

// ---- buffers for buffered sends -------------------------------------------------------------------------------------

/// Returns the buffer of the process.
fn process() -> Result<BufferOwner<'static>> {
    Ok(BufferOwner::Process(instance::world().ok_or_else(lifecycle::not_running)?))
}

pub(crate) fn attach(place: BufferOwner<'_>, buffer: *mut c_void, size: i64) -> Result<()> {
    if buffer.is_null() && size > 0 {
        fail!(MPI_ERR_BUFFER, "buffer is a null pointer, but its size is {size}");
    }
    bsend::attach(place, buffer as usize, size as usize)
}

/// Detaches a buffer. `buffer_addr` is the address of a pointer, as in C's `void *buffer_addr`.
pub(crate) fn detach(place: BufferOwner<'_>, buffer_addr: *mut c_void, size: OutInt) -> Result<()> {
    args::not_null(buffer_addr, "buffer_addr")?;
    let (address, bytes) = bsend::detach(place)?;
    // SAFETY: the program passes the address of a pointer, checked for null.
    unsafe { *buffer_addr.cast::<usize>() = address };
    size.set(bytes as i64);
    Ok(())
}

pub(crate) fn flush(place: BufferOwner<'_>) -> Result<()> {
    Ok(bsend::flush(place)?)
}

/// Creates a request that is complete when no message is left in the buffer.
pub(crate) fn iflush(cx: &Cx, place: BufferOwner<'_>, request: &mut Handle) -> Result<()> {
    let flush = bsend::find(place).map(|buffer| Request::under_way(None, buffer));
    register(cx, request, flush.unwrap_or_else(|| Request::done(None, End::empty())))
}

pub(crate) fn mpi_buffer_attach(_cx: &Cx, buffer: *mut c_void, size: i64) -> Result<()> {
    attach(process()?, buffer, size)
}

pub(crate) fn mpi_buffer_detach(_cx: &Cx, buffer_addr: *mut c_void, size: OutInt) -> Result<()> {
    detach(process()?, buffer_addr, size)
}

pub(crate) fn mpi_buffer_flush(_cx: &Cx) -> Result<()> {
    flush(process()?)
}

pub(crate) fn mpi_buffer_iflush(cx: &Cx, request: &mut Handle) -> Result<()> {
    iflush(cx, process()?, request)
}

pub(crate) fn mpi_comm_attach_buffer(_cx: &Cx, comm: &Arc<Communicator>, buffer: *mut c_void, size: i64) -> Result<()> {
    attach(BufferOwner::Comm(comm), buffer, size)
}

pub(crate) fn mpi_comm_detach_buffer(
    _cx: &Cx,
    comm: &Arc<Communicator>,
    buffer_addr: *mut c_void,
    size: OutInt,
) -> Result<()> {
    detach(BufferOwner::Comm(comm), buffer_addr, size)
}

pub(crate) fn mpi_comm_flush_buffer(_cx: &Cx, comm: &Arc<Communicator>) -> Result<()> {
    flush(BufferOwner::Comm(comm))
}

pub(crate) fn mpi_comm_iflush_buffer(cx: &Cx, comm: &Arc<Communicator>, request: &mut Handle) -> Result<()> {
    iflush(cx, BufferOwner::Comm(comm), request)
}
