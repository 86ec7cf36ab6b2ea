//! Fast paths of the most frequent calls: they do the whole call if that is possible at once, or nothing.
//!
//! The generator looks for functions of this file by their names. The exported function first tries the one here. If
//! that has done nothing, it takes the general path: the checks, the glue in [`crate::calls`] and the error handlers.
//! Nothing is therefore checked here: any unusual argument takes the general path. An error during a collective
//! operation is returned.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_base::readable::is_readable;
use limosa_coll::{Buffer, fast_path as coll};
use limosa_mpi::datatype::Datatype as Named;
use limosa_mpi::light::{self, FastWait};
use limosa_mpi::op::Op;
use limosa_mpi::p2p::{self, Received};
use limosa_mpi::{Result, check, consts, observe};
use limosa_rma::Spot;

use crate::cx::Attempt;
use crate::errors::ErrorTarget;
use crate::handles::{Handle, Object};
use crate::kinds::{Communicator, Datatype, Group, Operation, Window};
use crate::latest;
use crate::lifecycle;
use crate::status::Status;

const NULL: Handle = Handle::predefined(consts::MPI_REQUEST_NULL);
/// Number of elements from which a message is not short.
const MANY: u64 = 1 << 16;

/// Returns address and length of a buffer without gaps.
#[inline(always)]
fn dense(buf: *mut c_void, count: i64, datatype: Handle) -> Option<(*mut u8, usize)> {
    if buf as usize <= consts::MPI_IN_PLACE {
        return None;
    }
    let bytes = dense_length(count, datatype)?;
    is_readable(buf.cast(), bytes).then_some((buf.cast(), bytes))
}

/// Returns the bytes of so many elements without gaps.
#[inline(always)]
fn dense_length(count: i64, datatype: Handle) -> Option<usize> {
    if count as u64 > MANY {
        return None;
    }
    let bytes = match Datatype::table().look(datatype) {
        Some(datatype) => datatype.dense_bytes()?,
        None => dense_bytes(datatype)?,
    };
    bytes.checked_mul(count as usize)
}

#[inline(never)]
fn dense_bytes(datatype: Handle) -> Option<usize> {
    Datatype::table().get(datatype).ok()?.dense_bytes()
}

/// Runs an action on the communicator of a handle, while MPI is running.
macro_rules! on {
    ($handle:expr, $act:ident($($argument:expr),*)) => {{
        /// Runs an action on a communicator that may be freed meanwhile.
        #[inline(never)]
        fn on_other<R>(handle: Handle, act: impl FnOnce(&Communicator) -> Option<R>) -> Option<R> {
            act(&*Communicator::table().get(handle).ok()?)
        }
        let handle = $handle;
        match Communicator::table().look(handle) {
            _ if !lifecycle::is_running() => None,
            Some(comm) => $act(comm, $($argument),*),
            None => on_other(handle, move |comm| $act(comm, $($argument),*)),
        }
    }};
}

#[inline(always)]
fn report(status: &mut Status, received: Option<Received>) {
    match received {
        Some(received) => status.set(received.source, received.tag, received.bytes as i64),
        None => status.set(consts::MPI_ANY_SOURCE, consts::MPI_ANY_TAG, 0),
    }
}

#[inline(always)]
fn send(comm: &Communicator, buf: *mut c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int) -> Option<()> {
    let (start, bytes) = dense(buf, count, datatype)?;
    // SAFETY: the program promises that the buffer holds `count` elements of the datatype.
    let bytes = unsafe { std::slice::from_raw_parts(start, bytes) };
    p2p::try_send(comm, bytes, dest, tag).then_some(())
}

#[inline(always)]
pub(crate) fn mpi_send(buf: *mut c_void, count: i64, datatype: Handle, dest: c_int, tag: c_int, comm: Handle) -> bool {
    on!(comm, send(buf, count, datatype, dest, tag)).is_some()
}

#[inline(always)]
pub(crate) fn mpi_isend(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    dest: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> bool {
    if request.is_null() || on!(comm, send(buf, count, datatype, dest, tag)).is_none() {
        return false;
    }
    // SAFETY: the program promises that a request can be written there.
    unsafe { *request = Handle::COMPLETED };
    true
}

#[inline(always)]
fn receive(
    comm: &Communicator,
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
) -> Option<Received> {
    let (start, bytes) = dense(buf, count, datatype)?;
    // SAFETY: the program promises that the buffer has room for `count` elements of the datatype.
    p2p::try_receive(comm, unsafe { std::slice::from_raw_parts_mut(start, bytes) }, source, tag)
}

#[inline(always)]
pub(crate) fn mpi_recv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    status: *mut Status,
) -> bool {
    let Some(received) = on!(comm, receive(buf, count, datatype, source, tag)) else { return false };
    // SAFETY: the program promises that a status can be written there, unless it is MPI_STATUS_IGNORE.
    if let Some(status) = unsafe { status.as_mut() } {
        report(status, Some(received));
    }
    true
}

#[inline(always)]
fn start_receive(
    comm: &Communicator,
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
) -> Option<Handle> {
    let (start, bytes) = dense(buf, count, datatype)?;
    // SAFETY: the program promises that the buffer has room for `count` elements of the datatype until the receive is
    // complete.
    let short = unsafe { p2p::try_ireceive(comm, std::slice::from_raw_parts_mut(start, bytes), source, tag) }?;
    // A receive that was started on the fast path has a slot that fits into a handle.
    Handle::light(short)
}

#[inline(always)]
pub(crate) fn mpi_irecv(
    buf: *mut c_void,
    count: i64,
    datatype: Handle,
    source: c_int,
    tag: c_int,
    comm: Handle,
    request: *mut Handle,
) -> bool {
    if request.is_null() {
        return false;
    }
    let Some(handle) = on!(comm, start_receive(buf, count, datatype, source, tag)) else { return false };
    // SAFETY: the program promises that a request can be written there.
    unsafe { *request = handle };
    true
}

/// Completes requests that live in the engine or are null. `statuses` is null for none.
#[inline(always)]
fn wait(requests: *mut Handle, n: usize, statuses: *mut Status) -> bool {
    if requests.is_null() || !lifecycle::is_running() {
        return false;
    }
    // SAFETY: the program promises an array of `n` requests without other accesses during the call.
    let handles = Cell::from_mut(unsafe { std::slice::from_raw_parts_mut(requests, n) }).as_slice_of_cells();
    let awaited = |i: usize| match handles[i].get() {
        handle if handle.is_light() => handle.short().map_or(FastWait::Nothing, FastWait::Request),
        NULL => FastWait::Nothing,
        _ => FastWait::Unknown,
    };
    light::try_wait(n, awaited, |i, received| {
        handles[i].set(NULL);
        if !statuses.is_null() {
            // SAFETY: the program promises an array of `n` statuses.
            report(unsafe { &mut *statuses.add(i) }, received);
        }
    })
}

#[inline(always)]
pub(crate) fn mpi_wait(request: *mut Handle, status: *mut Status) -> bool {
    // SAFETY: the program promises that a non-null pointer points to a request.
    unsafe { request.as_ref() }.is_some_and(|request| request.is_light()) && wait(request, 1, status)
}

#[inline(always)]
pub(crate) fn mpi_waitall(count: c_int, requests: *mut Handle, statuses: *mut Status) -> bool {
    count >= 0 && wait(requests, count as usize, statuses)
}

// ---- collective operations ------------------------------------------------------------------------------------------

/// Converts the outcome of a collective operation on a communicator.
#[inline(always)]
fn attempt(comm: Handle, outcome: Option<Result<()>>) -> Attempt {
    match outcome {
        None => Attempt::Nothing,
        Some(Ok(())) => Attempt::Done,
        Some(Err(error)) => Attempt::Failed(ErrorTarget::Comm(comm), error),
    }
}

#[inline(always)]
fn barrier(comm: &Communicator, name: &'static str) -> Option<Result<()>> {
    if check::is_on() {
        // Other operations have datatypes, which are not dense then.
        return None;
    }
    observe::entering(name);
    coll::try_barrier(comm)
}

#[inline(always)]
pub(crate) fn mpi_barrier(name: &'static str, comm: Handle) -> Attempt {
    attempt(comm, on!(comm, barrier(name)))
}

/// Returns a buffer of elements of a named type.
#[inline(always)]
fn named(base: *mut c_void, count: i64, datatype: Handle) -> Option<Buffer> {
    Buffer::dense(base.cast(), count, Named::always(datatype.0)?)
}

#[inline(always)]
fn bcast(comm: &Communicator, name: &'static str, buffer: &Buffer, root: c_int) -> Option<Result<()>> {
    observe::entering(name);
    coll::try_bcast(comm, buffer, root)
}

#[inline(always)]
pub(crate) fn mpi_bcast(
    name: &'static str,
    buffer: *mut c_void,
    count: i64,
    datatype: Handle,
    root: c_int,
    comm: Handle,
) -> Attempt {
    let Some(buffer) = named(buffer, count, datatype) else { return Attempt::Nothing };
    attempt(comm, on!(comm, bcast(name, &buffer, root)))
}

#[inline(always)]
fn allreduce(
    comm: &Communicator,
    name: &'static str,
    send: &Buffer,
    receive: &Buffer,
    op: &'static Arc<Op>,
) -> Option<Result<()>> {
    observe::entering(name);
    coll::try_allreduce(comm, send, receive, op)
}

#[inline(always)]
pub(crate) fn mpi_allreduce(
    name: &'static str,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: i64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Attempt {
    let Some(op) = Op::always(op.0) else { return Attempt::Nothing };
    let Some(send) = named(sendbuf, count, datatype) else { return Attempt::Nothing };
    let Some(receive) = named(recvbuf, count, datatype) else { return Attempt::Nothing };
    attempt(comm, on!(comm, allreduce(name, &send, &receive, op)))
}

// ---- one-sided communication ----------------------------------------------------------------------------------------

/// Returns the window of a handle, while MPI is running.
#[inline(always)]
fn running<'call>(win: Handle) -> Option<&'call Window> {
    if lifecycle::is_running() { latest::window(win) } else { None }
}

/// Synchronises a window, while MPI is running. It may wait for other members.
#[inline(always)]
fn synchronise(name: &'static str, win: Handle, act: impl FnOnce(&Window) -> Option<Result<()>>) -> Attempt {
    let Some(window) = running(win) else { return Attempt::Nothing };
    observe::entering(name);
    match act(window) {
        None => Attempt::Nothing,
        Some(Ok(())) => Attempt::Done,
        Some(Err(error)) => Attempt::Failed(ErrorTarget::Win(win), error),
    }
}

/// Returns the location of dense data in a window.
#[inline(always)]
fn spot(rank: c_int, disp: i64, count: i64, datatype: Handle) -> Option<Spot> {
    Some(Spot { rank, disp, bytes: dense_length(count, datatype)? })
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn mpi_put(
    origin: *mut c_void,
    origin_count: i64,
    origin_type: Handle,
    rank: c_int,
    disp: i64,
    count: i64,
    datatype: Handle,
    win: Handle,
) -> bool {
    let Some((start, len)) = dense(origin, origin_count, origin_type) else { return false };
    let Some(spot) = spot(rank, disp, count, datatype) else { return false };
    let Some(window) = running(win) else { return false };
    // SAFETY: the program promises that the buffer holds so many elements.
    unsafe { window.try_put(start, len, spot) }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn mpi_get(
    origin: *mut c_void,
    origin_count: i64,
    origin_type: Handle,
    rank: c_int,
    disp: i64,
    count: i64,
    datatype: Handle,
    win: Handle,
) -> bool {
    let Some((start, len)) = dense(origin, origin_count, origin_type) else { return false };
    let Some(spot) = spot(rank, disp, count, datatype) else { return false };
    let Some(window) = running(win) else { return false };
    // SAFETY: the program promises that the buffer has room for so many elements.
    unsafe { window.try_get(start, len, spot) }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn mpi_accumulate(
    origin: *mut c_void,
    origin_count: i64,
    origin_type: Handle,
    rank: c_int,
    disp: i64,
    count: i64,
    datatype: Handle,
    op: Handle,
    win: Handle,
) -> bool {
    let Some(element) = Named::always(datatype.0).filter(|_| origin_type == datatype) else { return false };
    let Some(op) = Operation::table().look(op) else { return false };
    let Some((start, len)) = dense(origin, origin_count, origin_type) else { return false };
    let Some(spot) = spot(rank, disp, count, datatype) else { return false };
    let Some(window) = running(win) else { return false };
    // SAFETY: the program promises that the buffer holds so many elements.
    let input = unsafe { std::slice::from_raw_parts(start, len) };
    window.try_accumulate(input, &element, spot, op)
}

#[inline(always)]
pub(crate) fn mpi_fetch_and_op(
    origin: *mut c_void,
    result: *mut c_void,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    op: Handle,
    win: Handle,
) -> bool {
    let Some(element) = Named::always(datatype.0) else { return false };
    let Some((result, bytes)) = dense(result, 1, datatype) else { return false };
    // An ignored operand may be null: such a call takes the general path.
    let Some((origin, _)) = dense(origin, 1, datatype) else { return false };
    let Some(op) = Operation::table().look(op) else { return false };
    let spot = Spot { rank, disp, bytes };
    let Some(window) = running(win) else { return false };
    // SAFETY: the program promises that there is an element in each buffer.
    unsafe { window.try_fetch_and_op(origin, result, &element, spot, op) }
}

#[inline(always)]
pub(crate) fn mpi_compare_and_swap(
    new: *mut c_void,
    expected: *mut c_void,
    result: *mut c_void,
    datatype: Handle,
    rank: c_int,
    disp: i64,
    win: Handle,
) -> bool {
    let Some(element) = Named::always(datatype.0) else { return false };
    let Some((result, bytes)) = dense(result, 1, datatype) else { return false };
    let (Some((new, _)), Some((expected, _))) = (dense(new, 1, datatype), dense(expected, 1, datatype)) else {
        return false;
    };
    let spot = Spot { rank, disp, bytes };
    let Some(window) = running(win) else { return false };
    // SAFETY: the program promises that there is an element in each buffer.
    unsafe { window.try_compare_and_swap(new, expected, result, &element, spot) }
}

#[inline(always)]
pub(crate) fn mpi_win_flush(rank: c_int, win: Handle) -> bool {
    running(win).is_some_and(|window| window.try_flush(rank))
}

#[inline(always)]
pub(crate) fn mpi_win_flush_local(rank: c_int, win: Handle) -> bool {
    running(win).is_some_and(|window| window.try_flush_local(rank))
}

#[inline(always)]
pub(crate) fn mpi_win_lock(kind: c_int, rank: c_int, assert: c_int, win: Handle) -> bool {
    let exclusive = kind == consts::MPI_LOCK_EXCLUSIVE;
    let can = assert == 0 && (exclusive || kind == consts::MPI_LOCK_SHARED);
    can && running(win).is_some_and(|window| window.try_lock(exclusive, rank))
}

#[inline(always)]
pub(crate) fn mpi_win_unlock(rank: c_int, win: Handle) -> bool {
    running(win).is_some_and(|window| window.try_unlock(rank))
}

#[inline(always)]
pub(crate) fn mpi_win_lock_all(assert: c_int, win: Handle) -> bool {
    assert == 0 && running(win).is_some_and(Window::try_lock_all)
}

#[inline(always)]
pub(crate) fn mpi_win_unlock_all(win: Handle) -> bool {
    running(win).is_some_and(Window::try_unlock_all)
}

#[inline(always)]
pub(crate) fn mpi_win_flush_all(win: Handle) -> bool {
    running(win).is_some_and(Window::try_flush_all)
}

#[inline(always)]
pub(crate) fn mpi_win_fence(name: &'static str, assert: c_int, win: Handle) -> Attempt {
    synchronise(name, win, |window| window.try_fence(assert))
}

#[inline(always)]
pub(crate) fn mpi_win_post(name: &'static str, group: Handle, assert: c_int, win: Handle) -> Attempt {
    let Ok(group) = Group::table().get(group) else { return Attempt::Nothing };
    synchronise(name, win, |window| Some(window.post(&group, assert)))
}

#[inline(always)]
pub(crate) fn mpi_win_start(name: &'static str, group: Handle, assert: c_int, win: Handle) -> Attempt {
    let Ok(group) = Group::table().get(group) else { return Attempt::Nothing };
    synchronise(name, win, |window| Some(window.start(&group, assert)))
}

#[inline(always)]
pub(crate) fn mpi_win_complete(name: &'static str, win: Handle) -> Attempt {
    synchronise(name, win, |window| Some(window.complete()))
}

#[inline(always)]
pub(crate) fn mpi_win_wait(name: &'static str, win: Handle) -> Attempt {
    synchronise(name, win, |window| Some(window.wait_for_origins()))
}
