//! Persistent collectives (MPI-5 section 6.13): planned ([`coll_plan`]) once, run in the background each time they are started.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::coll::{self, Call, Plan, Schedule, barrier};
use limosa_mpi::request::Request;

use crate::args::{IntArray, Late, LateCount};
use crate::calls::{coll_plan, kinds};
use crate::cx::Cx;
use crate::handles::Handle;

/// Gives a planned operation a handle.
fn make(cx: &Cx, comm: &Arc<kinds::Communicator>, schedule: Schedule, request: &mut Handle) -> Result<()> {
    *request = cx.register(Request::persistent_collective(comm, Plan::new(comm, schedule)))?;
    Ok(())
}

pub(crate) fn mpi_allgather_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_allgatherv_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_allreduce_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let schedule = coll_plan::allreduce(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::allreduce::plan)?;
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_alltoall_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_alltoallv_init(
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
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_alltoallw_init(
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
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_barrier_init(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let schedule = barrier::plan(&Call::begin_nonblocking(comm));
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_bcast_init(
    cx: &Cx,
    buffer: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let schedule = coll_plan::bcast(cx, &Call::begin_nonblocking(comm), buffer, count, datatype, root, coll::bcast::plan)?;
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_exscan_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let schedule =
        coll_plan::exscan(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::plan_exclusive)?;
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_gather_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_gatherv_init(
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
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_reduce_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let schedule = coll_plan::reduce(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, root, coll::reduce::plan)?;
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_reduce_scatter_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_reduce_scatter_block_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_scan_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let schedule = coll_plan::scan(cx, &Call::begin_nonblocking(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::plan)?;
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_scatter_init(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}

pub(crate) fn mpi_scatterv_init(
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
    _info: Option<&Arc<kinds::Info>>,
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
    make(cx, comm, schedule, request)
}
