//! Collective operations (MPI-5 chapter 6): one plan for the blocking, the non-blocking and the persistent form of
//! each.
//!
//! A plan checks the arguments, creates buffers from them, and performs the operation in the [`Form`] in which it was
//! called. Arguments that are insignificant at this process are not read: the root's buffer arguments at other ranks,
//! and count and datatype that accompany `MPI_IN_PLACE`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_coll::check::Types;
use limosa_coll::{self as coll, Blocks, Buffer, Call};
use limosa_mpi::Result;

use crate::args::{IntArray, Late, LateCount};
use crate::calls::form::Form;
use crate::calls::inter::{self, Between, Elements};
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{Communicator, Datatype, Operation};

/// `perform!(cx, form, comm, types, gather::{run, background}(&call, ...))` performs the operation by one of two
/// functions that take the same arguments. The checks compare `types`.
macro_rules! perform {
    ($cx:ident, $form:ident, $comm:ident, $types:expr, $module:ident::{$run:ident, $background:ident}($($arg:expr),*)) => {
        $form.perform(
            $cx,
            $comm,
            || $types,
            || coll::$module::$run($($arg),*),
            || coll::$module::$background($($arg),*),
        )
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
    ranks: usize,
    base: *mut c_void,
    count: LateCount,
    datatype: &Late<Datatype>,
    arg: &str,
) -> Result<Blocks> {
    Blocks::even(base.cast(), count.get()?, datatype.held(cx)?, ranks, arg)
}

/// Creates a buffer of blocks of one datatype; `args` are the names of the arguments.
fn uneven(
    cx: &Cx,
    ranks: usize,
    base: *mut c_void,
    counts: IntArray,
    displs: IntArray,
    datatype: &Late<Datatype>,
    args: [&str; 3],
) -> Result<Blocks> {
    let (counts, displs) = (counts.to_vec(ranks, args[1])?, displs.to_vec(ranks, args[2])?);
    Blocks::uneven(base.cast(), &counts, displs, datatype.held(cx)?, args[0])
}

/// Creates a buffer of blocks of a datatype each; `args` are the names of the arguments.
fn each(
    cx: &Cx,
    ranks: usize,
    base: *mut c_void,
    counts: IntArray,
    displs: IntArray,
    datatypes: *const Handle,
    args: [&str; 4],
) -> Result<Blocks> {
    let (counts, displs) = (counts.to_vec(ranks, args[1])?, displs.to_vec(ranks, args[2])?);
    let datatypes = cx.get_all(datatypes, ranks, args[3])?;
    Blocks::each(base.cast(), &counts, displs, datatypes, args[0])
}

/// Returns the operands of a reduction at each process, and the buffer of the result.
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

/// Returns the same as [`operands`] for a scattered result: `counts` are the elements for each process.
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
    let call = F::begin(comm.carrier())?;
    let types = || Types::none(comm.carrier());
    form.perform(cx, comm, types, || coll::barrier::run(&call), || coll::barrier::background(&call))
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
    if let Some(between) = Between::groups(comm) {
        let message = Elements { base, count, datatype: &datatype, arg: "buffer" };
        return between.bcast(cx, form, message, root);
    }
    let call = F::begin(comm)?;
    let message = buffer(cx, base, count, &datatype, "buffer")?;
    let types = || Types::bcast(&call, &message, root);
    perform!(cx, form, comm, types(), bcast::{run, background}(&call, &message, root))
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
    if let Some(between) = Between::groups(comm) {
        let receive = || even(cx, between.remote_size(), recvbuf, recvcount, &recvtype, "recvbuf");
        return between.gather(
            cx,
            form,
            Elements { base: sendbuf, count: sendcount, datatype: &sendtype, arg: "sendbuf" },
            receive,
            root,
        );
    }
    let call = F::begin(comm)?;
    let receive =
        if call.is_at(root) { Some(even(cx, call.size(), recvbuf, recvcount, &recvtype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    let types = || Types::gather(&call, send.as_ref(), receive.as_ref(), root);
    perform!(cx, form, comm, types(), gather::{run, background}(&call, send.as_ref(), receive.as_ref(), root))
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
    if let Some(between) = Between::groups(comm) {
        let args = ["recvbuf", "recvcounts", "displs"];
        let receive = || uneven(cx, between.remote_size(), recvbuf, recvcounts, displs, &recvtype, args);
        return between.gather(
            cx,
            form,
            Elements { base: sendbuf, count: sendcount, datatype: &sendtype, arg: "sendbuf" },
            receive,
            root,
        );
    }
    let call = F::begin(comm)?;
    let receive = if call.is_at(root) {
        Some(uneven(cx, call.size(), recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?)
    } else {
        None
    };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    let types = || Types::gather(&call, send.as_ref(), receive.as_ref(), root);
    perform!(cx, form, comm, types(), gather::{run_v, background_v}(&call, send.as_ref(), receive.as_ref(), root))
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
    if let Some(between) = Between::groups(comm) {
        let send = || even(cx, between.remote_size(), sendbuf, sendcount, &sendtype, "sendbuf");
        return between.scatter(
            cx,
            form,
            send,
            Elements { base: recvbuf, count: recvcount, datatype: &recvtype, arg: "recvbuf" },
            root,
        );
    }
    let call = F::begin(comm)?;
    let send =
        if call.is_at(root) { Some(even(cx, call.size(), sendbuf, sendcount, &sendtype, "sendbuf")?) } else { None };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let types = || Types::scatter(&call, send.as_ref(), receive.as_ref(), root);
    perform!(cx, form, comm, types(), scatter::{run, background}(&call, send.as_ref(), receive.as_ref(), root))
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
    if let Some(between) = Between::groups(comm) {
        let args = ["sendbuf", "sendcounts", "displs"];
        let send = || uneven(cx, between.remote_size(), sendbuf, sendcounts, displs, &sendtype, args);
        return between.scatter(
            cx,
            form,
            send,
            Elements { base: recvbuf, count: recvcount, datatype: &recvtype, arg: "recvbuf" },
            root,
        );
    }
    let call = F::begin(comm)?;
    let send = if call.is_at(root) {
        Some(uneven(cx, call.size(), sendbuf, sendcounts, displs, &sendtype, ["sendbuf", "sendcounts", "displs"])?)
    } else {
        None
    };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let types = || Types::scatter(&call, send.as_ref(), receive.as_ref(), root);
    perform!(cx, form, comm, types(), scatter::{run_v, background_v}(&call, send.as_ref(), receive.as_ref(), root))
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
    if let Some(between) = Between::groups(comm) {
        let receive = || even(cx, between.remote_size(), recvbuf, recvcount, &recvtype, "recvbuf");
        return between.allgather(
            cx,
            form,
            Elements { base: sendbuf, count: sendcount, datatype: &sendtype, arg: "sendbuf" },
            receive,
        );
    }
    let call = F::begin(comm)?;
    let receive = even(cx, call.size(), recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    let types = || Types::allgather(&call, send.as_ref(), &receive);
    perform!(cx, form, comm, types(), allgather::{run, background}(&call, send.as_ref(), &receive))
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
    if let Some(between) = Between::groups(comm) {
        let args = ["recvbuf", "recvcounts", "displs"];
        let receive = || uneven(cx, between.remote_size(), recvbuf, recvcounts, displs, &recvtype, args);
        return between.allgather(
            cx,
            form,
            Elements { base: sendbuf, count: sendcount, datatype: &sendtype, arg: "sendbuf" },
            receive,
        );
    }
    let call = F::begin(comm)?;
    let receive = uneven(cx, call.size(), recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    let types = || Types::allgather(&call, send.as_ref(), &receive);
    perform!(cx, form, comm, types(), allgather::{run, background}(&call, send.as_ref(), &receive))
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
    if let Some(between) = Between::groups(comm) {
        let send = || even(cx, between.remote_size(), sendbuf, sendcount, &sendtype, "sendbuf");
        let receive = || even(cx, between.remote_size(), recvbuf, recvcount, &recvtype, "recvbuf");
        return between.alltoall(cx, form, send, receive);
    }
    let call = F::begin(comm)?;
    let receive = even(cx, call.size(), recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = Blocks::or_in_place(sendbuf.cast(), || even(cx, call.size(), sendbuf, sendcount, &sendtype, "sendbuf"))?;
    let types = || Types::alltoall(&call, send.as_ref(), &receive);
    perform!(cx, form, comm, types(), alltoall::{run, background}(&call, send.as_ref(), &receive))
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
    if let Some(between) = Between::groups(comm) {
        let ranks = between.remote_size();
        let (sends, receives) = (["sendbuf", "sendcounts", "sdispls"], ["recvbuf", "recvcounts", "rdispls"]);
        let send = || uneven(cx, ranks, sendbuf, sendcounts, sdispls, &sendtype, sends);
        let receive = || uneven(cx, ranks, recvbuf, recvcounts, rdispls, &recvtype, receives);
        return between.alltoall(cx, form, send, receive);
    }
    let call = F::begin(comm)?;
    let receive =
        uneven(cx, call.size(), recvbuf, recvcounts, rdispls, &recvtype, ["recvbuf", "recvcounts", "rdispls"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        uneven(cx, call.size(), sendbuf, sendcounts, sdispls, &sendtype, ["sendbuf", "sendcounts", "sdispls"])
    })?;
    let types = || Types::alltoall(&call, send.as_ref(), &receive);
    perform!(cx, form, comm, types(), alltoall::{run, background}(&call, send.as_ref(), &receive))
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
    if let Some(between) = Between::groups(comm) {
        let ranks = between.remote_size();
        let sends = ["sendbuf", "sendcounts", "sdispls", "sendtypes"];
        let receives = ["recvbuf", "recvcounts", "rdispls", "recvtypes"];
        let send = || each(cx, ranks, sendbuf, sendcounts, sdispls, sendtypes, sends);
        let receive = || each(cx, ranks, recvbuf, recvcounts, rdispls, recvtypes, receives);
        return between.alltoall(cx, form, send, receive);
    }
    let call = F::begin(comm)?;
    let receive = each(
        cx,
        call.size(),
        recvbuf,
        recvcounts,
        rdispls,
        recvtypes,
        ["recvbuf", "recvcounts", "rdispls", "recvtypes"],
    )?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        each(
            cx,
            call.size(),
            sendbuf,
            sendcounts,
            sdispls,
            sendtypes,
            ["sendbuf", "sendcounts", "sdispls", "sendtypes"],
        )
    })?;
    let types = || Types::alltoall(&call, send.as_ref(), &receive);
    perform!(cx, form, comm, types(), alltoall::{run, background}(&call, send.as_ref(), &receive))
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
    if let Some(between) = Between::groups(comm) {
        let send = Elements { base: sendbuf, count, datatype: &datatype, arg: "sendbuf" };
        let receive = Elements { base: recvbuf, count, datatype: &datatype, arg: "recvbuf" };
        return between.reduce(cx, form, send, receive, op, root);
    }
    let call = F::begin(comm)?;
    let receive = if call.is_at(root) { Some(buffer(cx, recvbuf, count, &datatype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    let types = || Types::rooted_reduction(&call, send.as_ref(), receive.as_ref(), op, root);
    perform!(cx, form, comm, types(), reduce::{run, background}(&call, send.as_ref(), receive.as_ref(), op, root))
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
    if let Some(between) = Between::groups(comm) {
        let send = Elements { base: sendbuf, count, datatype: &datatype, arg: "sendbuf" };
        let receive = Elements { base: recvbuf, count, datatype: &datatype, arg: "recvbuf" };
        return between.allreduce(cx, form, send, receive, op);
    }
    let call = F::begin(comm)?;
    let (send, receive) = operands(cx, sendbuf, recvbuf, count, &datatype)?;
    let types = || Types::reduction(&call, send.as_ref(), Some(&receive), op);
    perform!(cx, form, comm, types(), allreduce::{run, background}(&call, send.as_ref(), &receive, op))
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
    if let Some(between) = Between::groups(comm) {
        let counts = || recvcounts.to_vec(comm.size(), "recvcounts");
        return between.reduce_scatter(cx, form, sendbuf, recvbuf, counts, &datatype, op);
    }
    let call = F::begin(comm)?;
    let counts = recvcounts.to_vec(call.size(), "recvcounts")?;
    let (send, receive) = parts(cx, &call, sendbuf, recvbuf, &counts, &datatype)?;
    let types = || Types::reduction_in_parts(&call, send.as_ref(), &receive, &counts, op);
    perform!(cx, form, comm, types(), reduce_scatter::{run, background}(&call, send.as_ref(), &receive, &counts, op))
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
    if let Some(between) = Between::groups(comm) {
        let counts = || Ok(vec![recvcount.get()?; comm.size()]);
        return between.reduce_scatter(cx, form, sendbuf, recvbuf, counts, &datatype, op);
    }
    let call = F::begin(comm)?;
    let counts = vec![recvcount.get()?; call.size()];
    let (send, receive) = parts(cx, &call, sendbuf, recvbuf, &counts, &datatype)?;
    let types = || Types::reduction_in_parts(&call, send.as_ref(), &receive, &counts, op);
    perform!(cx, form, comm, types(), reduce_scatter::{run, background}(&call, send.as_ref(), &receive, &counts, op))
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
    inter::refuse(comm)?;
    let call = F::begin(comm)?;
    let (send, receive) = operands(cx, sendbuf, recvbuf, count, &datatype)?;
    let types = || Types::scan(&call, send.as_ref(), &receive, op);
    perform!(cx, form, comm, types(), scan::{run, background}(&call, send.as_ref(), &receive, op))
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
    inter::refuse(comm)?;
    let call = F::begin(comm)?;
    let (send, receive) = operands(cx, sendbuf, recvbuf, count, &datatype)?;
    let types = || Types::scan(&call, send.as_ref(), &receive, op);
    perform!(cx, form, comm, types(), scan::{run_exclusive, background_exclusive}(&call, send.as_ref(), &receive, op))
}
