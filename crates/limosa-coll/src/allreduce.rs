//! Allreduce (MPI-5 section 6.9.6).

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::by_messages;
use super::kind::Signature;
use super::pieces::Delivery;
use super::plan::MessagePlan;
use super::select::{Selected, select};
use super::shared::{self, Collective};
use super::{Call, Exchange, Plan, Schedule, composed};
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// Combines the operands of all ranks, with bitwise equal results at all. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<()> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Allreduce, op));
    match call.shared_call(Collective::Allreduce, input.bytes()) {
        Some(shared_call) => shared::allreduce(&shared_call, input, receive, op),
        None => {
            let call = &call.on(input.bytes());
            work(call, input, receive, op)?.run(call)
        }
    }
}

/// Checks the arguments and returns the operand.
fn check<'a>(send: Option<&'a Buffer>, receive: &'a Buffer, op: &Op) -> Result<&'a Buffer> {
    if let Some(send) = send {
        check_apart(send, receive)?;
    }
    let input = send.unwrap_or(receive);
    op.check(&input.datatype)?;
    Ok(input)
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Plan> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Allreduce, op)).on(input.bytes());
    match call.mailbox_use_to_combine(Collective::Allreduce, input.bytes(), op) {
        Some(mailbox_use) => Exchange::reduction(
            call,
            Collective::Allreduce,
            mailbox_use.limits,
            op,
            input,
            Some(receive),
            Delivery::All,
        )
        .map(|exchange| Plan::at(mailbox_use, exchange)),
        None => plan(call, send, receive, op).map(Plan::from),
    }
}

/// Plans the combination of all ranks' operands, with bitwise equal results at all. `send` is `None` for
/// `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Allreduce, op)).on(input.bytes());
    work(call, input, receive, op)?.into_schedule(call)
}

fn work(call: &Call<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<MessagePlan> {
    match select(call, Collective::Allreduce, by_messages::ALLREDUCE, input.bytes(), Some(op)) {
        Selected::Composed(hosts) => Ok(MessagePlan::Composed(composed::allreduce(hosts, input, result, op))),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| {
            s.reduce_with(op.clone(), input.datatype.clone());
            plan(s, input, result)
        }),
    }
}
