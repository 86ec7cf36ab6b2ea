//! Persistent collectives (MPI-5 section 6.13): planned ([`coll_plan`]) once, run in the background each time they are started.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::coll::{self, Call, Task, Work, barrier};
use limosa_mpi::request::Request;

use crate::args::{IntArray, Late, LateCount};
use crate::calls::{coll_plan, kinds};
use crate::cx::Cx;
use crate::handles::Handle;

/// Gives a planned operation a handle.
fn make(cx: &Cx, comm: &Arc<kinds::Communicator>, task: Task, request: &mut Handle) -> Result<()> {
    *request = cx.register(Request::persistent_collective(comm, Work::new(comm, task)))?;
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
    let task = coll_plan::allgather(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        coll::allgather::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::allgatherv(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        coll::allgather::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::allreduce(cx, &Call::begin_persistent(comm), sendbuf, recvbuf, count, datatype, op, coll::allreduce::background)?;
    make(cx, comm, task, request)
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
    let task = coll_plan::alltoall(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        coll::alltoall::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::alltoallv(
        cx,
        &Call::begin_persistent(comm),
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
    make(cx, comm, task, request)
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
    let task = coll_plan::alltoallw(
        cx,
        &Call::begin_persistent(comm),
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
    make(cx, comm, task, request)
}

pub(crate) fn mpi_barrier_init(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    _info: Option<&Arc<kinds::Info>>,
    request: &mut Handle,
) -> Result<()> {
    let task = barrier::background(&Call::begin_persistent(comm))?;
    make(cx, comm, task, request)
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
    let task = coll_plan::bcast(cx, &Call::begin_persistent(comm), buffer, count, datatype, root, coll::bcast::background)?;
    make(cx, comm, task, request)
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
    let task =
        coll_plan::exscan(cx, &Call::begin_persistent(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::background_exclusive)?;
    make(cx, comm, task, request)
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
    let task = coll_plan::gather(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::gather::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::gatherv(
        cx,
        &Call::begin_persistent(comm),
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
    make(cx, comm, task, request)
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
    let task = coll_plan::reduce(cx, &Call::begin_persistent(comm), sendbuf, recvbuf, count, datatype, op, root, coll::reduce::background)?;
    make(cx, comm, task, request)
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
    let task = coll_plan::reduce_scatter(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        recvbuf,
        recvcounts,
        datatype,
        op,
        coll::reduce_scatter::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::reduce_scatter_block(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        recvbuf,
        recvcount,
        datatype,
        op,
        coll::reduce_scatter::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::scan(cx, &Call::begin_persistent(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::background)?;
    make(cx, comm, task, request)
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
    let task = coll_plan::scatter(
        cx,
        &Call::begin_persistent(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::scatter::background,
    )?;
    make(cx, comm, task, request)
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
    let task = coll_plan::scatterv(
        cx,
        &Call::begin_persistent(comm),
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
    make(cx, comm, task, request)
}
