//! Planned collectives: in the background, for non-blocking and persistent ones (MPI-5 sections 6.12 and 6.13); by
//! messages, flat or composed, for all forms.

use std::sync::Arc;

use super::Call;
use super::background::{BackgroundOp, Exchange, MailboxUse};
use super::composed::Composition;
use super::run::{ScheduleRun, run};
use super::schedule::Schedule;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_mpi::operation::Operation;

/// A planned collective in the background.
pub struct Plan(PlanPath);

/// Messages, or mailboxes.
enum PlanPath {
    Messages(Schedule),
    Mailboxes(Arc<BackgroundOp>),
}

impl Plan {
    pub(super) fn at(mailbox_use: MailboxUse, exchange: Exchange) -> Plan {
        Plan(PlanPath::Mailboxes(BackgroundOp::new(mailbox_use, exchange)))
    }

    /// Returns the operation for a request. The messages of all starts have the tag that was drawn at planning, and a
    /// persistent operation has mailboxes of its own. Ranks may therefore start persistent collectives in different
    /// orders.
    pub fn into_operation(self, comm: &Arc<Comm>) -> Arc<dyn Operation> {
        match self.0 {
            PlanPath::Messages(schedule) => ScheduleRun::new(comm, schedule),
            PlanPath::Mailboxes(mut operation) => {
                Arc::get_mut(&mut operation).expect("this is the only reference").prepare(comm);
                operation
            }
        }
    }
}

impl From<Schedule> for Plan {
    fn from(schedule: Schedule) -> Plan {
        Plan(PlanPath::Messages(schedule))
    }
}

/// A planned operation by messages.
pub(super) enum MessagePlan {
    Flat(Schedule),
    Composed(Composition),
}

impl MessagePlan {
    /// Plans an operation among all ranks.
    pub(super) fn flat(call: &Call<'_>, plan: impl FnOnce(&mut Schedule) -> Result<()>) -> Result<MessagePlan> {
        let mut schedule = Schedule::new(call);
        plan(&mut schedule)?;
        Ok(MessagePlan::Flat(schedule))
    }

    /// Runs it in the calling thread.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` when ranks disagree about the length of a message, and errors of the
    /// machine.
    pub(super) fn run(self, call: &Call<'_>) -> Result<()> {
        match self {
            MessagePlan::Flat(schedule) => run(call.comm, schedule),
            MessagePlan::Composed(composition) => composition.run(call),
        }
    }

    /// Returns it as a schedule.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn into_schedule(self, call: &Call<'_>) -> Result<Schedule> {
        match self {
            MessagePlan::Flat(schedule) => Ok(schedule),
            MessagePlan::Composed(composition) => composition.into_schedule(call),
        }
    }
}
