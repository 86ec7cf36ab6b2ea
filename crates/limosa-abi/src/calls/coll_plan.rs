//! What the three forms of a collective (blocking, non-blocking, persistent) have in common: the arguments become checked buffers. What `then`
//! happens to these the form says: the operation is planned, or done.
//!
//! Arguments that are insignificant at this process are not looked at (MPI-5 chapter 6): those of the other side at other ranks than the root,
//! count and datatype beside `MPI_IN_PLACE`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::coll::{Blocks, Buffer, Call, reduce_scatter as reduce_parts};

use crate::args::{IntArray, Late, LateCount};
use crate::calls::kinds::{Datatype, Operation};
use crate::cx::Cx;
use crate::handles::Handle;

#[inline(always)]
fn buffer(cx: &Cx, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Buffer> {
    Buffer::new(base.cast(), count.get()?, datatype.held(cx)?, arg)
}

#[inline(always)]
fn or_in_place(cx: &Cx, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Option<Buffer>> {
    Buffer::or_in_place(base.cast(), || Ok((count.get()?, datatype.held(cx)?)), arg)
}

#[inline]
fn even(cx: &Cx, call: &Call<'_>, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Blocks> {
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

pub(super) fn bcast<R>(
    cx: &Cx,
    call: &Call<'_>,
    base: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    root: c_int,
    then: impl FnOnce(&Call<'_>, &Buffer, i32) -> Result<R>,
) -> Result<R> {
    then(call, &buffer(cx, base, count, &datatype, "buffer")?, root)
}

pub(super) fn gather<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, Option<&Blocks>, i32) -> Result<R>,
) -> Result<R> {
    let receive = if call.is_at(root) { Some(even(cx, call, recvbuf, recvcount, &recvtype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    then(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn gatherv<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<Datatype>,
    root: c_int,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, Option<&Blocks>, i32) -> Result<R>,
) -> Result<R> {
    let receive = if call.is_at(root) {
        Some(uneven(cx, call, recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?)
    } else {
        None
    };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    then(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn scatter<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
    then: impl FnOnce(&Call<'_>, Option<&Blocks>, Option<&Buffer>, i32) -> Result<R>,
) -> Result<R> {
    let send = if call.is_at(root) { Some(even(cx, call, sendbuf, sendcount, &sendtype, "sendbuf")?) } else { None };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    then(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn scatterv<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    displs: IntArray,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
    then: impl FnOnce(&Call<'_>, Option<&Blocks>, Option<&Buffer>, i32) -> Result<R>,
) -> Result<R> {
    let send = if call.is_at(root) {
        Some(uneven(cx, call, sendbuf, sendcounts, displs, &sendtype, ["sendbuf", "sendcounts", "displs"])?)
    } else {
        None
    };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    then(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn allgather<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Blocks) -> Result<R>,
) -> Result<R> {
    let receive = even(cx, call, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    then(call, send.as_ref(), &receive)
}

pub(super) fn allgatherv<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<Datatype>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Blocks) -> Result<R>,
) -> Result<R> {
    let receive = uneven(cx, call, recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    then(call, send.as_ref(), &receive)
}

pub(super) fn alltoall<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    then: impl FnOnce(&Call<'_>, Option<&Blocks>, &Blocks) -> Result<R>,
) -> Result<R> {
    let receive = even(cx, call, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = Blocks::or_in_place(sendbuf.cast(), || even(cx, call, sendbuf, sendcount, &sendtype, "sendbuf"))?;
    then(call, send.as_ref(), &receive)
}

pub(super) fn alltoallv<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtype: Late<Datatype>,
    then: impl FnOnce(&Call<'_>, Option<&Blocks>, &Blocks) -> Result<R>,
) -> Result<R> {
    let receive = uneven(cx, call, recvbuf, recvcounts, rdispls, &recvtype, ["recvbuf", "recvcounts", "rdispls"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        uneven(cx, call, sendbuf, sendcounts, sdispls, &sendtype, ["sendbuf", "sendcounts", "sdispls"])
    })?;
    then(call, send.as_ref(), &receive)
}

pub(super) fn alltoallw<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtypes: *const Handle,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtypes: *const Handle,
    then: impl FnOnce(&Call<'_>, Option<&Blocks>, &Blocks) -> Result<R>,
) -> Result<R> {
    let receive = each(cx, call, recvbuf, recvcounts, rdispls, recvtypes, ["recvbuf", "recvcounts", "rdispls", "recvtypes"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        each(cx, call, sendbuf, sendcounts, sdispls, sendtypes, ["sendbuf", "sendcounts", "sdispls", "sendtypes"])
    })?;
    then(call, send.as_ref(), &receive)
}

pub(super) fn reduce<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    root: c_int,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, Option<&Buffer>, &Arc<Operation>, i32) -> Result<R>,
) -> Result<R> {
    let receive = if call.is_at(root) { Some(buffer(cx, recvbuf, count, &datatype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    then(call, send.as_ref(), receive.as_ref(), op, root)
}

pub(super) fn allreduce<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Buffer, &Arc<Operation>) -> Result<R>,
) -> Result<R> {
    let receive = buffer(cx, recvbuf, count, &datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    then(call, send.as_ref(), &receive, op)
}

pub(super) fn reduce_scatter<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Buffer, &[i64], &Arc<Operation>) -> Result<R>,
) -> Result<R> {
    let counts = recvcounts.to_vec(call.size(), "recvcounts")?;
    parts(cx, call, sendbuf, recvbuf, &counts, datatype, op, then)
}

pub(super) fn reduce_scatter_block<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Buffer, &[i64], &Arc<Operation>) -> Result<R>,
) -> Result<R> {
    let counts = vec![recvcount.get()?; call.size()];
    parts(cx, call, sendbuf, recvbuf, &counts, datatype, op, then)
}

fn parts<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    counts: &[i64],
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Buffer, &[i64], &Arc<Operation>) -> Result<R>,
) -> Result<R> {
    let datatype = datatype.held(cx)?;
    let all = reduce_parts::total(counts)?;
    let send = Buffer::or_in_place(sendbuf.cast(), || Ok((all, datatype.clone())), "sendbuf")?;
    let count = if send.is_some() { counts[call.rank()] } else { all };
    let receive = Buffer::new(recvbuf.cast(), count, datatype, "recvbuf")?;
    then(call, send.as_ref(), &receive, counts, op)
}

pub(super) fn scan<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Buffer, &Arc<Operation>) -> Result<R>,
) -> Result<R> {
    let receive = buffer(cx, recvbuf, count, &datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    then(call, send.as_ref(), &receive, op)
}

pub(super) fn exscan<R>(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    then: impl FnOnce(&Call<'_>, Option<&Buffer>, &Buffer, &Arc<Operation>) -> Result<R>,
) -> Result<R> {
    let receive = buffer(cx, recvbuf, count, &datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    then(call, send.as_ref(), &receive, op)
}
