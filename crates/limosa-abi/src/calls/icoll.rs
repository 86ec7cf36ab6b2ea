//! Non-blocking collectives (MPI-5 section 6.12): planned ([`coll_plan`]), then run in the background.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::coll::{self, Call, Task, Work, barrier};
use limosa_mpi::request::Request;

use crate::args::{IntArray, Late, LateCount};
use crate::calls::{coll_plan, kinds};
use crate::cx::Cx;
use crate::handles::Handle;

/// Starts a planned operation and gives its request a handle.
fn begin(cx: &Cx, comm: &Arc<kinds::Communicator>, task: Task, request: &mut Handle) -> Result<()> {
    let work = Work::new(comm, task);
    *request = cx.register(Request::collective(comm, work.clone()))?;
    work.start();
    Ok(())
}

pub(crate) fn mpi_iallgather(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::allgather(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        coll::allgather::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_iallgatherv(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::allgatherv(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        coll::allgather::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_iallreduce(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task =
        coll_plan::allreduce(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::allreduce::background)?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ialltoall(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::alltoall(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        coll::alltoall::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ialltoallv(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::alltoallv(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcounts,
        sdispls,
        sendtype,
        recvbuf,
        recvcounts,
        rdispls,
        recvtype,
        coll::alltoall::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ialltoallw(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: IntArray,
    sendtypes: *const Handle,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: IntArray,
    recvtypes: *const Handle,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::alltoallw(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcounts,
        sdispls,
        sendtypes,
        recvbuf,
        recvcounts,
        rdispls,
        recvtypes,
        coll::alltoall::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ibarrier(cx: &Cx, comm: &Arc<kinds::Communicator>, request: &mut Handle) -> Result<()> {
    let task = barrier::background(&Call::begin_nonblocking(comm))?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ibcast(
    cx: &Cx,
    buffer: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::bcast(cx, &Call::begin_nonblocking(comm), buffer, count, datatype, root, coll::bcast::background)?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_iexscan(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task =
        coll_plan::exscan(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::background_exclusive)?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_igather(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::gather(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::gather::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_igatherv(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::gatherv(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        root,
        coll::gather::background_v,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ireduce(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task =
        coll_plan::reduce(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, root, coll::reduce::background)?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ireduce_scatter(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::reduce_scatter(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        recvbuf,
        recvcounts,
        datatype,
        op,
        coll::reduce_scatter::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_ireduce_scatter_block(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::reduce_scatter_block(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        recvbuf,
        recvcount,
        datatype,
        op,
        coll::reduce_scatter::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_iscan(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::scan(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::background)?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_iscatter(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::scatter(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::scatter::background,
    )?;
    begin(cx, comm, task, request)
}

pub(crate) fn mpi_iscatterv(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    displs: IntArray,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    request: &mut Handle,
) -> Result<()> {
    let task = coll_plan::scatterv(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcounts,
        displs,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::scatter::background_v,
    )?;
    begin(cx, comm, task, request)
}
