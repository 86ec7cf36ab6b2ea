//! Non-blocking collectives (MPI-5 section 6.12): planned ([`coll_plan`]), then run in the background.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::coll::{self, Call, Run, Schedule, barrier};
use limosa_mpi::request::Request;
use limosa_mpi::{Result, instance};

use crate::args::{IntArray, Late, LateCount};
use crate::calls::{coll_plan, kinds};
use crate::cx::Cx;
use crate::handles::Handle;

/// Starts a planned operation and gives its request a handle.
fn begin(cx: &Cx, comm: &Arc<kinds::Communicator>, schedule: Schedule, request: &mut Handle) -> Result<()> {
    let run = Run::new(comm, schedule);
    *request = cx.register(Request::collective(comm, run.clone()))?;
    run.start(instance::engine());
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
    let schedule = coll_plan::allgather(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        coll::allgather::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::allgatherv(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        coll::allgather::plan_v,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::allreduce(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::allreduce::plan)?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::alltoall(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        coll::alltoall::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::alltoallv(
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
        coll::alltoall::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::alltoallw(
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
        coll::alltoall::plan,
    )?;
    begin(cx, comm, schedule, request)
}

pub(crate) fn mpi_ibarrier(cx: &Cx, comm: &Arc<kinds::Communicator>, request: &mut Handle) -> Result<()> {
    let schedule = barrier::plan(&Call::begin_nonblocking(comm));
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::bcast(cx, &Call::begin_nonblocking(comm), buffer, count, datatype, root, coll::bcast::plan)?;
    begin(cx, comm, schedule, request)
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
    let schedule =
        coll_plan::exscan(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::plan_exclusive)?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::gather(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::gather::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::gatherv(
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
        coll::gather::plan_v,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::reduce(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, root, coll::reduce::plan)?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::reduce_scatter(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        recvbuf,
        recvcounts,
        datatype,
        op,
        coll::reduce_scatter::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::reduce_scatter_block(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        recvbuf,
        recvcount,
        datatype,
        op,
        coll::reduce_scatter::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::scan(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::plan)?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::scatter(
        cx,
        &Call::begin_nonblocking(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::scatter::plan,
    )?;
    begin(cx, comm, schedule, request)
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
    let schedule = coll_plan::scatterv(
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
        coll::scatter::plan_v,
    )?;
    begin(cx, comm, schedule, request)
}
