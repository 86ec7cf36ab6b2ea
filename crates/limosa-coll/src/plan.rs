//! What a collective is once it is planned: in the background, for non-blocking and persistent ones (MPI-5 sections
//! 6.12 and 6.13), whichever way they go; by messages, flat or composed, in whichever form it is called.

use std::sync::Arc;

use super::Call;
use super::background::{BackgroundOp, Exchange, MailboxUse};
use super::composed::Composition;
use super::run::{ScheduleRun, run};
use super::schedule::Schedule;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_mpi::operation::Operation;

/// What is to be done: planned, but not begun.
pub struct Plan(Way);

/// It goes by messages, or by what the members share.
enum Way {
    Messages(Schedule),
    Mailboxes(Arc<BackgroundOp>),
}

impl Plan {
    pub(super) fn at(mailbox_use: MailboxUse, exchange: Exchange) -> Plan {
        Plan(Way::Mailboxes(BackgroundOp::new(mailbox_use, exchange)))
    }

    /// The operation for a request. The messages of all starts have the tag that was drawn when it was planned, and a
    /// persistent operation has mailboxes of its own, so that persistent collectives may be started in different orders
    /// on different ranks.
    pub fn into_operation(self, comm: &Arc<Comm>) -> Arc<dyn Operation> {
        match self.0 {
            Way::Messages(schedule) => ScheduleRun::new(comm, schedule),
            Way::Mailboxes(mut operation) => {
                Arc::get_mut(&mut operation).expect("nobody knows it yet").prepare(comm);
                operation
            }
        }
    }
}

impl From<Schedule> for Plan {
    fn from(schedule: Schedule) -> Plan {
        Plan(Way::Messages(schedule))
    }
}

/// An operation by messages: planned, but not begun.
pub(super) enum Work {
    Flat(Schedule),
    Composed(Composition),
}

impl Work {
    /// What `plan` plans among all ranks.
    pub(super) fn flat(call: &Call<'_>, plan: impl FnOnce(&mut Schedule) -> Result<()>) -> Result<Work> {
        let mut schedule = Schedule::new(call);
        plan(&mut schedule)?;
        Ok(Work::Flat(schedule))
    }

    /// Does it in the calling thread.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` when ranks disagree about the length of a message, and errors of the
    /// machine.
    pub(super) fn run(self, call: &Call<'_>) -> Result<()> {
        match self {
            Work::Flat(schedule) => run(call.comm, schedule),
            Work::Composed(composition) => composition.run(call),
        }
    }

    /// As a schedule.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn into_schedule(self, call: &Call<'_>) -> Result<Schedule> {
        match self {
            Work::Flat(schedule) => Ok(schedule),
            Work::Composed(composition) => composition.into_schedule(call),
        }
    }
}
