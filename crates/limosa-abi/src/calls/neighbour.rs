//! Neighbourhood collectives (MPI-5 section 8.6): one plan for all forms of each, as in [`super::coll`].

use std::ffi::c_void;
use std::sync::Arc;

use limosa_coll::check::Types;
use limosa_coll::{Blocks, Buffer, Call, neighbour};
use limosa_mpi::Result;

use crate::args::{IntArray, Late, LateCount};
use crate::calls::form::Form;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{Communicator, Datatype};

/// One side of a neighbour exchange: the buffer, its number of blocks, and the names of its arguments (the buffer, the
/// counts, the displacements and the datatypes).
struct Side {
    base: *mut c_void,
    blocks: usize,
    args: [&'static str; 4],
}

impl Side {
    fn even(&self, cx: &Cx, count: LateCount, datatype: &Late<Datatype>) -> Result<Blocks> {
        Blocks::even(self.base.cast(), count.get()?, datatype.held(cx)?, self.blocks, self.args[0])
    }

    fn uneven(&self, cx: &Cx, counts: IntArray, displs: IntArray, datatype: &Late<Datatype>) -> Result<Blocks> {
        let [buffer, of_counts, of_displs, _] = self.args;
        let (counts, displs) = (counts.to_vec(self.blocks, of_counts)?, displs.to_vec(self.blocks, of_displs)?);
        Blocks::uneven(self.base.cast(), &counts, displs, datatype.held(cx)?, buffer)
    }

    fn each(&self, cx: &Cx, counts: IntArray, displs: *const i64, datatypes: *const Handle) -> Result<Blocks> {
        let [buffer, of_counts, of_displs, of_datatypes] = self.args;
        let counts = counts.to_vec(self.blocks, of_counts)?;
        let displs = cx.slice(displs, self.blocks, of_displs)?.to_vec();
        let datatypes = cx.get_all(datatypes, self.blocks, of_datatypes)?;
        Blocks::each(self.base.cast(), &counts, displs, datatypes, buffer)
    }
}

/// Begins the operation; fails at all members without a topology.
fn begin<F: Form>(comm: &Arc<Communicator>) -> Result<Call<'_>> {
    if comm.topology().is_none() {
        comm.neighbours()?;
    }
    F::begin(comm)
}

/// Returns the side of the destinations.
fn sent(call: &Call<'_>, base: *mut c_void) -> Result<Side> {
    let blocks = call.neighbours()?.destinations.len();
    Ok(Side { base, blocks, args: ["sendbuf", "sendcounts", "sdispls", "sendtypes"] })
}

/// Returns the side of the sources.
fn received(call: &Call<'_>, base: *mut c_void) -> Result<Side> {
    let blocks = call.neighbours()?.sources.len();
    Ok(Side { base, blocks, args: ["recvbuf", "recvcounts", "rdispls", "recvtypes"] })
}

fn allgather<F: Form>(
    cx: &Cx,
    form: F,
    comm: &Arc<Communicator>,
    call: &Call<'_>,
    send: &Buffer,
    receive: &Blocks,
) -> Result<()> {
    let types = || Types::neighbour_allgather(call, send, receive);
    let run = || neighbour::run_allgather(call, send, receive);
    form.perform(cx, comm, types, run, || neighbour::background_allgather(call, send, receive))
}

fn alltoall<F: Form>(
    cx: &Cx,
    form: F,
    comm: &Arc<Communicator>,
    call: &Call<'_>,
    send: &Blocks,
    receive: &Blocks,
) -> Result<()> {
    let types = || Types::neighbour_alltoall(call, send, receive);
    let run = || neighbour::run_alltoall(call, send, receive);
    form.perform(cx, comm, types, run, || neighbour::background_alltoall(call, send, receive))
}

pub(crate) fn plan_neighbor_allgather<F: Form>(
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
    let call = begin::<F>(comm)?;
    let receive = received(&call, recvbuf)?.even(cx, recvcount, &recvtype)?;
    let send = Buffer::new(sendbuf.cast(), sendcount.get()?, sendtype.held(cx)?, "sendbuf")?;
    allgather(cx, form, comm, &call, &send, &receive)
}

pub(crate) fn plan_neighbor_allgatherv<F: Form>(
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
    let call = begin::<F>(comm)?;
    let receive = received(&call, recvbuf)?.uneven(cx, recvcounts, displs, &recvtype)?;
    let send = Buffer::new(sendbuf.cast(), sendcount.get()?, sendtype.held(cx)?, "sendbuf")?;
    allgather(cx, form, comm, &call, &send, &receive)
}

pub(crate) fn plan_neighbor_alltoall<F: Form>(
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
    let call = begin::<F>(comm)?;
    let receive = received(&call, recvbuf)?.even(cx, recvcount, &recvtype)?;
    let send = sent(&call, sendbuf)?.even(cx, sendcount, &sendtype)?;
    alltoall(cx, form, comm, &call, &send, &receive)
}

pub(crate) fn plan_neighbor_alltoallv<F: Form>(
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
    let call = begin::<F>(comm)?;
    let receive = received(&call, recvbuf)?.uneven(cx, recvcounts, rdispls, &recvtype)?;
    let send = sent(&call, sendbuf)?.uneven(cx, sendcounts, sdispls, &sendtype)?;
    alltoall(cx, form, comm, &call, &send, &receive)
}

pub(crate) fn plan_neighbor_alltoallw<F: Form>(
    cx: &Cx,
    form: F,
    sendbuf: *mut c_void,
    sendcounts: IntArray,
    sdispls: *const i64,
    sendtypes: *const Handle,
    recvbuf: *mut c_void,
    recvcounts: IntArray,
    rdispls: *const i64,
    recvtypes: *const Handle,
    comm: &Arc<Communicator>,
) -> Result<()> {
    let call = begin::<F>(comm)?;
    let receive = received(&call, recvbuf)?.each(cx, recvcounts, rdispls, recvtypes)?;
    let send = sent(&call, sendbuf)?.each(cx, sendcounts, sdispls, sendtypes)?;
    alltoall(cx, form, comm, &call, &send, &receive)
}
