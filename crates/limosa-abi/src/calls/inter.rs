//! Collective operations on intercommunicators (MPI-5 section 6.2.3), for the plans of [`super::coll`].
//!
//! Buffers that are insignificant at this process are not read. `MPI_IN_PLACE` has no meaning.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_coll::inter::{self, Part};
use limosa_coll::{self as coll, Blocks, Buffer, Call, Plan, Schedule};
use limosa_mpi::comm::Inter;
use limosa_mpi::{Error, Result, consts};

use crate::args::{Late, LateCount};
use crate::calls::form::Form;
use crate::calls::kinds::{Communicator, Datatype, Operation};
use crate::cx::Cx;

/// A collective on an intercommunicator.
pub(crate) struct Between<'a> {
    pub(crate) comm: &'a Arc<Communicator>,
    inter: &'a Inter,
}

/// Elements that the program passes: an address, a count, a datatype, and the name of the buffer.
pub(crate) struct Elements<'a> {
    pub(crate) base: *mut c_void,
    pub(crate) count: LateCount,
    pub(crate) datatype: &'a Late<Datatype>,
    pub(crate) arg: &'static str,
}

impl Elements<'_> {
    fn buffer(&self, cx: &Cx) -> Result<Buffer> {
        Buffer::new(self.base.cast(), self.count.get()?, self.datatype.held(cx)?, self.arg)
    }
}

impl<'a> Between<'a> {
    /// The communicator, if it is an intercommunicator.
    #[inline(always)]
    pub(crate) fn groups(comm: &'a Arc<Communicator>) -> Option<Between<'a>> {
        comm.inter().map(|inter| Between { comm, inter })
    }

    fn perform<F: Form>(&self, cx: &Cx, form: F, plan: impl Fn(&Call<'_>, &Inter) -> Result<Schedule>) -> Result<()> {
        let carrier = self.inter.both();
        let call = F::begin(carrier);
        let planned = || plan(&call, self.inter);
        form.perform(cx, self.comm, || coll::run(carrier, planned()?), || planned().map(Plan::from))
    }

    /// Number of processes in the remote group.
    pub(crate) fn remote_size(&self) -> usize {
        self.comm.peers().size()
    }

    pub(crate) fn bcast<F: Form>(&self, cx: &Cx, form: F, message: Elements<'_>, root: c_int) -> Result<()> {
        self.perform(cx, form, |call, inter| {
            let part = Part::of(self.comm, root)?;
            let buffer = if part == Part::Idle { None } else { Some(message.buffer(cx)?) };
            inter::bcast(call, inter, buffer.as_ref(), part)
        })
    }

    pub(crate) fn gather<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: Elements<'_>,
        receive: impl Fn() -> Result<Blocks>,
        root: c_int,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| {
            let part = Part::of(self.comm, root)?;
            let receive = if part == Part::Root { Some(receive()?) } else { None };
            let send = if matches!(part, Part::Of(_)) { Some(send.buffer(cx)?) } else { None };
            inter::gather(call, inter, send.as_ref(), receive.as_ref(), part)
        })
    }

    pub(crate) fn scatter<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: impl Fn() -> Result<Blocks>,
        receive: Elements<'_>,
        root: c_int,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| {
            let part = Part::of(self.comm, root)?;
            let send = if part == Part::Root { Some(send()?) } else { None };
            let receive = if matches!(part, Part::Of(_)) { Some(receive.buffer(cx)?) } else { None };
            inter::scatter(call, inter, send.as_ref(), receive.as_ref(), part)
        })
    }

    pub(crate) fn allgather<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: Elements<'_>,
        receive: impl Fn() -> Result<Blocks>,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| inter::allgather(call, inter, &send.buffer(cx)?, &receive()?))
    }

    pub(crate) fn alltoall<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: impl Fn() -> Result<Blocks>,
        receive: impl Fn() -> Result<Blocks>,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| inter::alltoall(call, inter, &send()?, &receive()?))
    }

    pub(crate) fn reduce<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: Elements<'_>,
        receive: Elements<'_>,
        op: &Arc<Operation>,
        root: c_int,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| {
            let part = Part::of(self.comm, root)?;
            let receive = if part == Part::Root { Some(receive.buffer(cx)?) } else { None };
            let send = if matches!(part, Part::Of(_)) { Some(send.buffer(cx)?) } else { None };
            inter::reduce(call, inter, send.as_ref(), receive.as_ref(), op, part)
        })
    }

    pub(crate) fn allreduce<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: Elements<'_>,
        receive: Elements<'_>,
        op: &Arc<Operation>,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| inter::allreduce(call, inter, &send.buffer(cx)?, &receive.buffer(cx)?, op))
    }

    /// `counts` has the elements that each process of the local group gets.
    pub(crate) fn reduce_scatter<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        sendbuf: *mut c_void,
        recvbuf: *mut c_void,
        counts: impl Fn() -> Result<Vec<i64>>,
        datatype: &Late<Datatype>,
        op: &Arc<Operation>,
    ) -> Result<()> {
        self.perform(cx, form, |call, inter| {
            let counts = counts()?;
            let all = coll::reduce_scatter::total(&counts)?;
            let own = counts[self.comm.rank() as usize];
            let send = Buffer::new(sendbuf.cast(), all, datatype.held(cx)?, "sendbuf")?;
            let receive = Buffer::new(recvbuf.cast(), own, datatype.held(cx)?, "recvbuf")?;
            inter::reduce_scatter(call, inter, &send, &receive, &counts, op)
        })
    }
}

/// Fails on intercommunicators, for which an operation is not defined.
#[inline(always)]
pub(crate) fn refuse(comm: &Arc<Communicator>) -> Result<()> {
    if comm.is_inter() {
        return Err(Error::new(consts::MPI_ERR_COMM, "scans are not defined on intercommunicators"));
    }
    Ok(())
}
