//! Barrier (MPI-5 section 6.3).

use super::by_messages;
use super::one_step;
use super::plan::MessagePlan;
use super::select::{Selected, select};
use super::shared::{self, Collective};
use super::{Call, Plan, Recorder, Schedule, composed};
use limosa_mpi::error::Result;

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
#[inline]
pub fn run(call: &Call<'_>) -> Result<()> {
    let call = &call.signed(Collective::Barrier);
    // Counts as one byte, so that a row of the table can select messages.
    match call.shared_call(Collective::Barrier, 1) {
        Some(shared_call) => shared::barrier(&shared_call),
        None => by_messages(call),
    }
}

/// Plans a barrier as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>) -> Result<Plan> {
    let call = &call.signed(Collective::Barrier);
    Ok(match call.mailbox_use(Collective::Barrier, 0) {
        Some(mailbox_use) => {
            let exchange = one_step::barrier(Recorder::new(Collective::Barrier, call, mailbox_use.limits))?;
            Plan::at(mailbox_use, exchange)
        }
        None => plan(call)?.into(),
    })
}

/// Plans a barrier.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>) -> Result<Schedule> {
    let call = &call.signed(Collective::Barrier);
    work(call)?.into_schedule(call)
}

/// A separate function, to keep the shared-memory path short.
#[cold]
fn by_messages(call: &Call<'_>) -> Result<()> {
    work(call)?.run(call)
}

fn work(call: &Call<'_>) -> Result<MessagePlan> {
    match select(call, Collective::Barrier, by_messages::BARRIER, 0, None) {
        Selected::Composed(hosts) => Ok(MessagePlan::Composed(composed::barrier(hosts))),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| {
            plan(s);
            Ok(())
        }),
    }
}
