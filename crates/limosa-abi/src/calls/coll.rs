//! Collective operations (MPI-5 chapter 6): one plan for the blocking, the nonblocking and the persistent form of each.
//!
//! A plan checks the arguments, makes buffers of them, and performs the operation in the [`Form`] it was called in.
//! Arguments that are insignificant at this process are not read: the root's buffer arguments at other ranks, and count
//! and datatype that come with `MPI_IN_PLACE`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_coll::{self as coll, Blocks, Buffer, Call};
use limosa_mpi::Result;

use crate::args::{IntArray, Late, LateCount};
use crate::calls::form::Form;
use crate::calls::kinds::{Communicator, Datatype, Operation};
use crate::cx::Cx;
use crate::handles::Handle;

/// `perform!(cx, form, comm, gather::{run, background}(&call, ...))`: performs the operation by one of two functions
/// that take the same arguments.
macro_rules! perform {
    ($cx:ident, $form:ident, $comm:ident, $module:ident::{$run:ident, $background:ident}($($arg:expr),*)) => {
        $form.perform($cx, $comm, || coll::$module::$run($($arg),*), || coll::$module::$background($($arg),*))
    };
}

#[inline(always)]
fn buffer(cx: &Cx, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Buffer> {
    Buffer::new(base.cast(), count.get()?, datatype.held(cx)?, arg)
}

#[inline(always)]
fn or_in_place(
    cx: &Cx,
    base: *mut c_void,
    count: LateCount,
    datatype: &Late<Datatype>,
    arg: &str,
) -> Result<Option<Buffer>> {
    Buffer::or_in_place(base.cast(), || Ok((count.get()?, datatype.held(cx)?)), arg)
}

#[inline]
fn even(
    cx: &Cx,
    call: &Call<'_>,
    base: *mut c_void,
    count: LateCount,
    datatype: &Late<Datatype>,
    arg: &str,
) -> Result<Blocks> {
    Blocks::even(base.cast(), count.get()?, datatype.held(cx)?, call.size(), arg)
}

/// Blocks of one datatype; `args` are the names of the arguments.
fn uneven(
    cx: &Cx,
    call: &Call<'_>,
    base: *mut c_void,
    counts: IntArray,
    displs: IntArray,
    datatype: &Late<Datatype>,
    args: [&str; 3],
) -> Result<Blocks> {
    let (counts, displs) = (counts.to_vec(call.size(), args[1])?, displs.to_vec(call.size(), args[2])?);
    Blocks::uneven(base.cast(), &counts, displs, datatype.held(cx)?, args[0])
}

/// Blocks of a datatype each; `args` are the names of the arguments.
fn each(
    cx: &Cx,
    call: &Call<'_>,
    base: *mut c_void,
    counts: IntArray,
    displs: IntArray,
    datatypes: *const Handle,
    args: [&str; 4],
) -> Result<Blocks> {
    let (counts, displs) = (counts.to_vec(call.size(), args[1])?, displs.to_vec(call.size(), args[2])?);
    let datatypes = cx.get_all(datatypes, call.size(), args[3])?;
    Blocks::each(base.cast(), &counts, displs, datatypes, args[0])
}

/// What a reduction combines at each process, and where its result goes.
#[inline(always)]
fn operands(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: &Late<Datatype>,
) -> Result<(Option<Buffer>, Buffer)> {
    let receive = buffer(cx, recvbuf, count, datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, datatype, "sendbuf")?;
    Ok((send, receive))
}

/// As [`operands`], for a result that is scattered: `counts` are the elements that each process gets.
fn parts(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    counts: &[i64],
    datatype: &Late<Datatype>,
) -> Result<(Option<Buffer>, Buffer)> {
    let datatype = datatype.held(cx)?;
    let all = coll::reduce_scatter::total(counts)?;
    let send = Buffer::or_in_place(sendbuf.cast(), || Ok((all, datatype.clone())), "sendbuf")?;
    let count = if send.is_some() { counts[call.rank()] } else { all };
    let receive = Buffer::new(recvbuf.cast(), count, datatype, "recvbuf")?;
    Ok((send, receive))
}

pub(crate) fn plan_barrier<F: Form>(cx: &Cx, form: F, comm: &Arc<Communicator>) -> Result<()> {
    form.perform(cx, comm, || coll::barrier(comm), || coll::barrier::background(&F::begin(comm)))
}

pub(crate) fn plan_bcast<F: Form>(
    cx: &Cx,
    form: F,
    base: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    root: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let message = buffer(cx, base, count, &datatype, "buffer")?;
    perform!(cx, form, comm, bcast::{run, background}(&call, &message, root))
}

pub(crate) fn plan_gather<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive =
        if call.is_at(root) { Some(even(cx, &call, recvbuf, recvcount, &recvtype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    perform!(cx, form, comm, gather::{run, background}(&call, send.as_ref(), receive.as_ref(), root))
}

pub(crate) fn plan_gatherv<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<Datatype>,
    root: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive = if call.is_at(root) {
        Some(uneven(cx, &call, recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?)
    } else {
        None
    };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    perform!(cx, form, comm, gather::{run_v, background_v}(&call, send.as_ref(), receive.as_ref(), root))
}

pub(crate) fn plan_scatter<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let send = if call.is_at(root) { Some(even(cx, &call, sendbuf, sendcount, &sendtype, "sendbuf")?) } else { None };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    perform!(cx, form, comm, scatter::{run, background}(&call, send.as_ref(), receive.as_ref(), root))
}

pub(crate) fn plan_scatterv<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    displs: IntArray,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let send = if call.is_at(root) {
        Some(uneven(cx, &call, sendbuf, sendcounts, displs, &sendtype, ["sendbuf", "sendcounts", "displs"])?)
    } else {
        None
    };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    perform!(cx, form, comm, scatter::{run_v, background_v}(&call, send.as_ref(), receive.as_ref(), root))
}

pub(crate) fn plan_allgather<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive = even(cx, &call, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    perform!(cx, form, comm, allgather::{run, background}(&call, send.as_ref(), &receive))
}

pub(crate) fn plan_allgatherv<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive = uneven(cx, &call, recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    perform!(cx, form, comm, allgather::{run, background}(&call, send.as_ref(), &receive))
}

pub(crate) fn plan_alltoall<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive = even(cx, &call, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = Blocks::or_in_place(sendbuf.cast(), || even(cx, &call, sendbuf, sendcount, &sendtype, "sendbuf"))?;
    perform!(cx, form, comm, alltoall::{run, background}(&call, send.as_ref(), &receive))
}

pub(crate) fn plan_alltoallv<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtype: Late<Datatype>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive = uneven(cx, &call, recvbuf, recvcounts, rdispls, &recvtype, ["recvbuf", "recvcounts", "rdispls"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        uneven(cx, &call, sendbuf, sendcounts, sdispls, &sendtype, ["sendbuf", "sendcounts", "sdispls"])
    })?;
    perform!(cx, form, comm, alltoall::{run, background}(&call, send.as_ref(), &receive))
}

pub(crate) fn plan_alltoallw<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtypes: *const Handle,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtypes: *const Handle,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive =
        each(cx, &call, recvbuf, recvcounts, rdispls, recvtypes, ["recvbuf", "recvcounts", "rdispls", "recvtypes"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        each(cx, &call, sendbuf, sendcounts, sdispls, sendtypes, ["sendbuf", "sendcounts", "sdispls", "sendtypes"])
    })?;
    perform!(cx, form, comm, alltoall::{run, background}(&call, send.as_ref(), &receive))
}

pub(crate) fn plan_reduce<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    root: c_int,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let receive = if call.is_at(root) { Some(buffer(cx, recvbuf, count, &datatype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    perform!(cx, form, comm, reduce::{run, background}(&call, send.as_ref(), receive.as_ref(), op, root))
}

pub(crate) fn plan_allreduce<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let (send, receive) = operands(cx, sendbuf, recvbuf, count, &datatype)?;
    perform!(cx, form, comm, allreduce::{run, background}(&call, send.as_ref(), &receive, op))
}

pub(crate) fn plan_reduce_scatter<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let counts = recvcounts.to_vec(call.size(), "recvcounts")?;
    let (send, receive) = parts(cx, &call, sendbuf, recvbuf, &counts, &datatype)?;
    perform!(cx, form, comm, reduce_scatter::{run, background}(&call, send.as_ref(), &receive, &counts, op))
}

pub(crate) fn plan_reduce_scatter_block<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let counts = vec![recvcount.get()?; call.size()];
    let (send, receive) = parts(cx, &call, sendbuf, recvbuf, &counts, &datatype)?;
    perform!(cx, form, comm, reduce_scatter::{run, background}(&call, send.as_ref(), &receive, &counts, op))
}

pub(crate) fn plan_scan<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let (send, receive) = operands(cx, sendbuf, recvbuf, count, &datatype)?;
    perform!(cx, form, comm, scan::{run, background}(&call, send.as_ref(), &receive, op))
}

pub(crate) fn plan_exscan<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = F::begin(comm);
    let (send, receive) = operands(cx, sendbuf, recvbuf, count, &datatype)?;
    perform!(cx, form, comm, scan::{run_exclusive, background_exclusive}(&call, send.as_ref(), &receive, op))
}
