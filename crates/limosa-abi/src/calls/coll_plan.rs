//! What the three forms of a collective (blocking, non-blocking, persistent) have in common: the arguments become checked buffers, and those a
//! schedule.
//!
//! Arguments that are insignificant at this process are not looked at (MPI-5 chapter 6): those of the other side at other ranks than the root,
//! count and datatype beside `MPI_IN_PLACE`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::coll::{
    Blocks, Buffer, Call, Schedule, allgather as to_all, allreduce as reduce_all, alltoall as all_to_all, bcast as broadcast,
    gather as to_root, reduce as reduce_root, reduce_scatter as reduce_parts, scan as prefix, scatter as from_root,
};

use crate::args::{IntArray, Late, LateCount};
use crate::calls::kinds::{Datatype, Operation};
use crate::cx::Cx;
use crate::handles::Handle;

fn buffer(cx: &Cx, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Buffer> {
    Buffer::new(base.cast(), count.get()?, datatype.get(cx)?, arg)
}

fn or_in_place(cx: &Cx, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Option<Buffer>> {
    Buffer::or_in_place(base.cast(), || Ok((count.get()?, datatype.get(cx)?)), arg)
}

fn even(cx: &Cx, call: &Call<'_>, base: *mut c_void, count: LateCount, datatype: &Late<Datatype>, arg: &str) -> Result<Blocks> {
    Blocks::even(base.cast(), count.get()?, datatype.get(cx)?, call.size(), arg)
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
    Blocks::uneven(base.cast(), &counts, displs, datatype.get(cx)?, args[0])
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

pub(super) fn bcast(
    cx: &Cx,
    call: &Call<'_>,
    base: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    root: c_int,
) -> Result<Schedule> {
    broadcast::plan(call, &buffer(cx, base, count, &datatype, "buffer")?, root)
}

pub(super) fn gather(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
) -> Result<Schedule> {
    let receive = if call.is_at(root) { Some(even(cx, call, recvbuf, recvcount, &recvtype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    to_root::plan(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn gatherv(
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
) -> Result<Schedule> {
    let receive = if call.is_at(root) {
        Some(uneven(cx, call, recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?)
    } else {
        None
    };
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    to_root::plan_v(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn scatter(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
    root: c_int,
) -> Result<Schedule> {
    let send = if call.is_at(root) { Some(even(cx, call, sendbuf, sendcount, &sendtype, "sendbuf")?) } else { None };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    from_root::plan(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn scatterv(
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
) -> Result<Schedule> {
    let send = if call.is_at(root) {
        Some(uneven(cx, call, sendbuf, sendcounts, displs, &sendtype, ["sendbuf", "sendcounts", "displs"])?)
    } else {
        None
    };
    let receive = or_in_place(cx, recvbuf, recvcount, &recvtype, "recvbuf")?;
    from_root::plan_v(call, send.as_ref(), receive.as_ref(), root)
}

pub(super) fn allgather(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
) -> Result<Schedule> {
    let receive = even(cx, call, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    to_all::plan(call, send.as_ref(), &receive)
}

pub(super) fn allgatherv(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<Datatype>,
) -> Result<Schedule> {
    let receive = uneven(cx, call, recvbuf, recvcounts, displs, &recvtype, ["recvbuf", "recvcounts", "displs"])?;
    let send = or_in_place(cx, sendbuf, sendcount, &sendtype, "sendbuf")?;
    to_all::plan_v(call, send.as_ref(), &receive)
}

pub(super) fn alltoall(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<Datatype>,
) -> Result<Schedule> {
    let receive = even(cx, call, recvbuf, recvcount, &recvtype, "recvbuf")?;
    let send = Blocks::or_in_place(sendbuf.cast(), || even(cx, call, sendbuf, sendcount, &sendtype, "sendbuf"))?;
    all_to_all::plan(call, send.as_ref(), &receive)
}

pub(super) fn alltoallv(
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
) -> Result<Schedule> {
    let receive = uneven(cx, call, recvbuf, recvcounts, rdispls, &recvtype, ["recvbuf", "recvcounts", "rdispls"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        uneven(cx, call, sendbuf, sendcounts, sdispls, &sendtype, ["sendbuf", "sendcounts", "sdispls"])
    })?;
    all_to_all::plan(call, send.as_ref(), &receive)
}

pub(super) fn alltoallw(
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
) -> Result<Schedule> {
    let receive = each(cx, call, recvbuf, recvcounts, rdispls, recvtypes, ["recvbuf", "recvcounts", "rdispls", "recvtypes"])?;
    let send = Blocks::or_in_place(sendbuf.cast(), || {
        each(cx, call, sendbuf, sendcounts, sdispls, sendtypes, ["sendbuf", "sendcounts", "sdispls", "sendtypes"])
    })?;
    all_to_all::plan(call, send.as_ref(), &receive)
}

pub(super) fn reduce(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
    root: c_int,
) -> Result<Schedule> {
    let receive = if call.is_at(root) { Some(buffer(cx, recvbuf, count, &datatype, "recvbuf")?) } else { None };
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    reduce_root::plan(call, send.as_ref(), receive.as_ref(), op, root)
}

pub(super) fn allreduce(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
) -> Result<Schedule> {
    let receive = buffer(cx, recvbuf, count, &datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    reduce_all::plan(call, send.as_ref(), &receive, op)
}

pub(super) fn reduce_scatter(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
) -> Result<Schedule> {
    let counts = recvcounts.to_vec(call.size(), "recvcounts")?;
    parts(cx, call, sendbuf, recvbuf, &counts, datatype, op)
}

pub(super) fn reduce_scatter_block(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
) -> Result<Schedule> {
    let counts = vec![recvcount.get()?; call.size()];
    parts(cx, call, sendbuf, recvbuf, &counts, datatype, op)
}

fn parts(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    counts: &[i64],
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
) -> Result<Schedule> {
    let datatype = datatype.get(cx)?;
    let all = reduce_parts::total(counts)?;
    let send = Buffer::or_in_place(sendbuf.cast(), || Ok((all, datatype.clone())), "sendbuf")?;
    let count = if send.is_some() { counts[call.rank()] } else { all };
    let receive = Buffer::new(recvbuf.cast(), count, datatype, "recvbuf")?;
    reduce_parts::plan(call, send.as_ref(), &receive, counts, op)
}

pub(super) fn scan(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
) -> Result<Schedule> {
    let receive = buffer(cx, recvbuf, count, &datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    prefix::plan(call, send.as_ref(), &receive, op)
}

pub(super) fn exscan(
    cx: &Cx,
    call: &Call<'_>,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<Datatype>,
    op: &Arc<Operation>,
) -> Result<Schedule> {
    let receive = buffer(cx, recvbuf, count, &datatype, "recvbuf")?;
    let send = or_in_place(cx, sendbuf, count, &datatype, "sendbuf")?;
    prefix::plan_exclusive(call, send.as_ref(), &receive, op)
}
