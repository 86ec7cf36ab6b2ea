//! Collectives in the background: non-blocking and persistent ones (MPI-5 sections 6.12 and 6.13), whichever way they go.

use std::sync::Arc;

use super::background::{BackgroundOp, Exchange, MailboxUse};
use super::run::ScheduleRun;
use super::schedule::Schedule;
use limosa_mpi::comm::Comm;
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

    /// The operation for a request. The messages of all starts have the tag that was drawn when it was planned, and a persistent operation
    /// has mailboxes of its own, so that persistent collectives may be started in different orders on different ranks.
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
