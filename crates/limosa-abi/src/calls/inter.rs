//! Collective operations on intercommunicators (MPI-5 section 6.2.3), for the plans of [`super::coll`].
//!
//! Buffers that are insignificant at this process are not read. `MPI_IN_PLACE` is not allowed.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_coll::check::Types;
use limosa_coll::inter::{self, RootRole};
use limosa_coll::{self as coll, Blocks, Buffer, Call, Plan, Schedule};
use limosa_mpi::comm::Inter;
use limosa_mpi::{Error, Result, consts};

use crate::args::{Late, LateCount};
use crate::calls::form::Form;
use crate::cx::Cx;
use crate::kinds::{Communicator, Datatype, Operation};

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
    /// Returns the operation's context, if the communicator is an intercommunicator.
    #[inline(always)]
    pub(crate) fn groups(comm: &'a Arc<Communicator>) -> Option<Between<'a>> {
        comm.inter().map(|inter| Between { comm, inter })
    }

    /// Performs the operation. `plan` returns the schedule and, for the checks, the datatypes, which are `None` if they
    /// are not needed.
    fn perform<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        types: impl FnOnce(&Inter) -> Result<Types>,
        plan: impl Fn(&Call<'_>, &Inter) -> Result<Schedule>,
    ) -> Result<()> {
        let carrier = self.inter.both();
        let call = F::begin(carrier)?;
        let planned = || plan(&call, self.inter);
        // Invalid arguments are an error of the plan, after the part that all members do.
        let types = || types(self.inter).unwrap_or_else(|_| Types::unknown_between(self.inter));
        form.perform(cx, self.comm, types, || coll::run(carrier, planned()?), || planned().map(Plan::from))
    }

    /// Returns the number of processes in the remote group.
    pub(crate) fn remote_size(&self) -> usize {
        self.comm.peers().size()
    }

    pub(crate) fn bcast<F: Form>(&self, cx: &Cx, form: F, message: Elements<'_>, root: c_int) -> Result<()> {
        let arguments = || -> Result<(RootRole, Option<Buffer>)> {
            let part = RootRole::of(self.comm, root)?;
            Ok((part, if part == RootRole::Idle { None } else { Some(message.buffer(cx)?) }))
        };
        let types = |inter: &Inter| {
            let (part, buffer) = arguments()?;
            Ok(Types::rooted_between(inter, part, true, |_| buffer.as_ref().map(Types::whole), buffer.as_ref()))
        };
        self.perform(cx, form, types, |call, inter| {
            let (part, buffer) = arguments()?;
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
        let arguments = || -> Result<(RootRole, Option<Blocks>, Option<Buffer>)> {
            let part = RootRole::of(self.comm, root)?;
            let receive = if part == RootRole::Root { Some(receive()?) } else { None };
            Ok((part, receive, if matches!(part, RootRole::Of(_)) { Some(send.buffer(cx)?) } else { None }))
        };
        let types = |inter: &Inter| {
            let (part, receive, send) = arguments()?;
            let of_root = |rank| receive.as_ref().map(|receive| Types::part(receive, rank));
            Ok(Types::rooted_between(inter, part, false, of_root, send.as_ref()))
        };
        self.perform(cx, form, types, |call, inter| {
            let (part, receive, send) = arguments()?;
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
        let arguments = || -> Result<(RootRole, Option<Blocks>, Option<Buffer>)> {
            let part = RootRole::of(self.comm, root)?;
            let send = if part == RootRole::Root { Some(send()?) } else { None };
            Ok((part, send, if matches!(part, RootRole::Of(_)) { Some(receive.buffer(cx)?) } else { None }))
        };
        let types = |inter: &Inter| {
            let (part, send, receive) = arguments()?;
            let of_root = |rank| send.as_ref().map(|send| Types::part(send, rank));
            Ok(Types::rooted_between(inter, part, true, of_root, receive.as_ref()))
        };
        self.perform(cx, form, types, |call, inter| {
            let (part, send, receive) = arguments()?;
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
        let types = |inter: &Inter| Ok(Types::allgather_between(inter, &send.buffer(cx)?, &receive()?));
        self.perform(cx, form, types, |call, inter| inter::allgather(call, inter, &send.buffer(cx)?, &receive()?))
    }

    pub(crate) fn alltoall<F: Form>(
        &self,
        cx: &Cx,
        form: F,
        send: impl Fn() -> Result<Blocks>,
        receive: impl Fn() -> Result<Blocks>,
    ) -> Result<()> {
        let types = |inter: &Inter| Ok(Types::alltoall_between(inter, &send()?, &receive()?));
        self.perform(cx, form, types, |call, inter| inter::alltoall(call, inter, &send()?, &receive()?))
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
        let arguments = || -> Result<(RootRole, Option<Buffer>, Option<Buffer>)> {
            let part = RootRole::of(self.comm, root)?;
            let receive = if part == RootRole::Root { Some(receive.buffer(cx)?) } else { None };
            Ok((part, receive, if matches!(part, RootRole::Of(_)) { Some(send.buffer(cx)?) } else { None }))
        };
        let types = |inter: &Inter| {
            let (part, receive, send) = arguments()?;
            Ok(Types::rooted_between(inter, part, false, |_| receive.as_ref().map(Types::whole), send.as_ref()))
        };
        self.perform(cx, form, types, |call, inter| {
            let (part, receive, send) = arguments()?;
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
        let types = |inter: &Inter| Ok(Types::reduction_between(inter, &send.buffer(cx)?));
        self.perform(cx, form, types, |call, inter| {
            inter::allreduce(call, inter, &send.buffer(cx)?, &receive.buffer(cx)?, op)
        })
    }

    /// Scatters the result: `counts` are the elements for each process of the local group.
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
        let operand = |counts: &[i64]| {
            let all = coll::reduce_scatter::total(counts)?;
            Buffer::new(sendbuf.cast(), all, datatype.held(cx)?, "sendbuf")
        };
        let types = |inter: &Inter| Ok(Types::reduction_between(inter, &operand(&counts()?)?));
        self.perform(cx, form, types, |call, inter| {
            let counts = counts()?;
            let own = counts[self.comm.rank() as usize];
            let send = operand(&counts)?;
            let receive = Buffer::new(recvbuf.cast(), own, datatype.held(cx)?, "recvbuf")?;
            inter::reduce_scatter(call, inter, &send, &receive, &counts, op)
        })
    }
}

/// Fails on intercommunicators, for operations that are not defined there.
#[inline(always)]
pub(crate) fn refuse(comm: &Arc<Communicator>) -> Result<()> {
    if comm.is_inter() {
        return Err(Error::new(consts::MPI_ERR_COMM, "scans are not defined on intercommunicators"));
    }
    Ok(())
}
