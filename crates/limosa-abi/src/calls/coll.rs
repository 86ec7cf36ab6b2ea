//! Blocking collectives (MPI-5 chapter 6): arguments checked ([`coll_plan`]), then done in the calling thread.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::Result;
use limosa_mpi::coll::{self, Call};

use crate::args::{IntArray, Late, LateCount};
use crate::calls::{coll_plan, kinds};
use crate::cx::Cx;
use crate::handles::Handle;

pub(crate) fn mpi_allgather(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::allgather(cx, &Call::begin(comm), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, coll::allgather::run)
}

pub(crate) fn mpi_allgatherv(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    displs: IntArray,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::allgatherv(cx, &Call::begin(comm), sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, coll::allgather::run)
}

pub(crate) fn mpi_allreduce(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::allreduce(cx, &Call::begin(comm), sendbuf, recvbuf, count, datatype, op, coll::allreduce::run)
}

pub(crate) fn mpi_alltoall(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::alltoall(cx, &Call::begin(comm), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, coll::alltoall::run)
}

pub(crate) fn mpi_alltoallv(
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
) -> Result<()> {
    coll_plan::alltoallv(
        cx,
        &Call::begin(comm),
        sendbuf,
        sendcounts,
        sdispls,
        sendtype,
        recvbuf,
        recvcounts,
        rdispls,
        recvtype,
        coll::alltoall::run,
    )
}

pub(crate) fn mpi_alltoallw(
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
) -> Result<()> {
    coll_plan::alltoallw(
        cx,
        &Call::begin(comm),
        sendbuf,
        sendcounts,
        sdispls,
        sendtypes,
        recvbuf,
        recvcounts,
        rdispls,
        recvtypes,
        coll::alltoall::run,
    )
}

pub(crate) fn mpi_barrier(_cx: &Cx, comm: &Arc<kinds::Communicator>) -> Result<()> {
    coll::barrier(comm)
}

pub(crate) fn mpi_bcast(
    cx: &Cx,
    buffer: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::bcast(cx, &Call::begin(comm), buffer, count, datatype, root, coll::bcast::run)
}

pub(crate) fn mpi_exscan(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::exscan(cx, &Call::begin(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::run_exclusive)
}

pub(crate) fn mpi_gather(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::gather(cx, &Call::begin(comm), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, coll::gather::run)
}

pub(crate) fn mpi_gatherv(
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
) -> Result<()> {
    coll_plan::gatherv(
        cx,
        &Call::begin(comm),
        sendbuf,
        sendcount,
        sendtype,
        recvbuf,
        recvcounts,
        displs,
        recvtype,
        root,
        coll::gather::run_v,
    )
}

pub(crate) fn mpi_reduce(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::reduce(cx, &Call::begin(comm), sendbuf, recvbuf, count, datatype, op, root, coll::reduce::run)
}

pub(crate) fn mpi_reduce_scatter(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::reduce_scatter(cx, &Call::begin(comm), sendbuf, recvbuf, recvcounts, datatype, op, coll::reduce_scatter::run)
}

pub(crate) fn mpi_reduce_scatter_block(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::reduce_scatter_block(cx, &Call::begin(comm), sendbuf, recvbuf, recvcount, datatype, op, coll::reduce_scatter::run)
}

pub(crate) fn mpi_scan(
    cx: &Cx,
    sendbuf: *mut c_void,
    recvbuf: *mut c_void,
    count: LateCount,
    datatype: Late<kinds::Datatype>,
    op: &Arc<kinds::Operation>,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::scan(cx, &Call::begin(comm), sendbuf, recvbuf, count, datatype, op, coll::scan::run)
}

pub(crate) fn mpi_scatter(
    cx: &Cx,
    sendbuf: *mut c_void,
    sendcount: LateCount,
    sendtype: Late<kinds::Datatype>,
    recvbuf: *mut c_void,
    recvcount: LateCount,
    recvtype: Late<kinds::Datatype>,
    root: c_int,
    comm: &Arc<kinds::Communicator>,
) -> Result<()> {
    coll_plan::scatter(cx, &Call::begin(comm), sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, coll::scatter::run)
}

pub(crate) fn mpi_scatterv(
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
) -> Result<()> {
    coll_plan::scatterv(
        cx,
        &Call::begin(comm),
        sendbuf,
        sendcounts,
        displs,
        sendtype,
        recvbuf,
        recvcount,
        recvtype,
        root,
        coll::scatter::run_v,
    )
}
