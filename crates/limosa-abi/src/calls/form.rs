//! Forms of an operation (MPI-5 section 2.4), which share one plan.
//!
//! The entry points of `MPI_Gather`, `MPI_Igather` and `MPI_Gather_init` call the same glue, `coll::plan_gather`; the
//! type of one argument is the form. `api/roles.json` lists the forms of each operation.

use std::sync::Arc;

use limosa_coll::check::{Compared, Types};
use limosa_coll::{self as coll, Call, Plan};
use limosa_mpi::operation::Operation;
use limosa_mpi::request::Request;
use limosa_mpi::{Result, check};

use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::Communicator;

/// A form of a collective operation.
pub(crate) trait Form {
    /// Begins the operation as the next one of this form on the communicator.
    ///
    /// # Errors
    /// While the checks are on: another rank has called a different function.
    fn begin(comm: &Arc<Communicator>) -> Result<Call<'_>>;

    /// Performs the operation after its arguments have been checked: with `run` in the calling thread, or with the plan
    /// that `background` creates. While the checks are on, the ranks compare their calls.
    fn perform(
        self,
        cx: &Cx,
        comm: &Arc<Communicator>,
        types: impl FnOnce() -> Types,
        run: impl FnOnce() -> Result<()>,
        background: impl FnOnce() -> Result<Plan>,
    ) -> Result<()>;
}

/// Returns the operation of a plan.
fn compared(
    comm: &Arc<Communicator>,
    types: impl FnOnce() -> Types,
    background: impl FnOnce() -> Result<Plan>,
) -> Result<Arc<dyn Operation>> {
    let operation = background()?.into_operation(comm.carrier());
    if check::is_on() { Compared::begin(comm.carrier(), types(), operation) } else { Ok(operation) }
}

/// Blocking form: complete when the call returns.
pub(crate) struct Blocking;

impl Form for Blocking {
    #[inline(always)]
    fn begin(comm: &Arc<Communicator>) -> Result<Call<'_>> {
        coll::check::agree(comm)?;
        Ok(Call::begin(comm))
    }

    #[inline(always)]
    fn perform(
        self,
        _cx: &Cx,
        comm: &Arc<Communicator>,
        types: impl FnOnce() -> Types,
        run: impl FnOnce() -> Result<()>,
        _background: impl FnOnce() -> Result<Plan>,
    ) -> Result<()> {
        if !check::is_on() {
            return run();
        }
        let error = coll::check::compare(comm.carrier(), types())?;
        run().and(error.map_or(Ok(()), Err))
    }
}

/// Non-blocking form: started, and completed by the request (section 6.12).
pub(crate) struct Nonblocking<'r> {
    /// Location of the request.
    pub(crate) request: &'r mut Handle,
}

impl Form for Nonblocking<'_> {
    fn begin(comm: &Arc<Communicator>) -> Result<Call<'_>> {
        coll::check::begin(comm)?;
        Ok(Call::begin_nonblocking(comm))
    }

    fn perform(
        self,
        cx: &Cx,
        comm: &Arc<Communicator>,
        types: impl FnOnce() -> Types,
        _run: impl FnOnce() -> Result<()>,
        background: impl FnOnce() -> Result<Plan>,
    ) -> Result<()> {
        self.issue(cx, comm, compared(comm, types, background)?)
    }
}

impl Nonblocking<'_> {
    fn issue(self, cx: &Cx, comm: &Arc<Communicator>, operation: Arc<dyn Operation>) -> Result<()> {
        *self.request = cx.register(Request::under_way(Some(comm), operation.clone()))?;
        operation.start()
    }
}

/// Persistent form: planned once, and performed each time the request is started (section 6.13).
pub(crate) struct Persistent<'r> {
    /// Location of the request.
    pub(crate) request: &'r mut Handle,
}

impl Form for Persistent<'_> {
    fn begin(comm: &Arc<Communicator>) -> Result<Call<'_>> {
        coll::check::begin(comm)?;
        Ok(Call::begin_persistent(comm))
    }

    fn perform(
        self,
        cx: &Cx,
        comm: &Arc<Communicator>,
        types: impl FnOnce() -> Types,
        _run: impl FnOnce() -> Result<()>,
        background: impl FnOnce() -> Result<Plan>,
    ) -> Result<()> {
        self.prepare(cx, comm, compared(comm, types, background)?)
    }
}

impl Persistent<'_> {
    fn prepare(self, cx: &Cx, comm: &Arc<Communicator>, operation: Arc<dyn Operation>) -> Result<()> {
        *self.request = cx.register(Request::persistent(comm, operation))?;
        Ok(())
    }
}
