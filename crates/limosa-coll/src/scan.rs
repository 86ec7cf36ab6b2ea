//! Scans (MPI-5 section 6.11): rank i gets the combined operands of the ranks up to itself, or of lower ranks only.

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::by_messages;
use super::choice::counts::count_messages;
use super::kind::Signature;
use super::pieces::Delivery;
use super::shared::{self, Collective};
use super::{Call, Exchange, Plan, Schedule};
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// Runs `MPI_Scan`. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<()> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Scan, op));
    match call.shared_call(Collective::Scan, input.bytes()) {
        Some(shared_call) => shared::scan(&shared_call, input, receive, op),
        None => super::run(call.comm, plan(call, send, receive, op)?),
    }
}

/// Runs `MPI_Exscan`. `send` is `None` for `MPI_IN_PLACE`. At rank 0 the receive buffer is unchanged.
///
/// # Errors
/// As for [`run`].
pub fn run_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<()> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Exscan, op));
    match call.shared_call(Collective::Exscan, input.bytes()) {
        Some(shared_call) => shared::exscan(&shared_call, input, receive, op),
        None => super::run(call.comm, plan_exclusive(call, send, receive, op)?),
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Plan> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Scan, op)).on(input.bytes());
    match call.mailbox_use_to_combine(Collective::Scan, input.bytes(), op) {
        Some(mailbox_use) => {
            let delivery = Delivery::Prefixes { with_own: true };
            Exchange::reduction(call, Collective::Scan, mailbox_use.limits, op, input, Some(receive), delivery)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan(call, send, receive, op).map(Plan::from),
    }
}

/// Plans what [`run_exclusive`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Plan> {
    let input = check(send, receive, op)?;
    let call = &call.signed(Signature::reduction(Collective::Exscan, op)).on(input.bytes());
    match call.mailbox_use_to_combine(Collective::Exscan, input.bytes(), op) {
        Some(mailbox_use) => {
            let delivery = Delivery::Prefixes { with_own: false };
            Exchange::reduction(call, Collective::Exscan, mailbox_use.limits, op, input, Some(receive), delivery)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan_exclusive(call, send, receive, op).map(Plan::from),
    }
}

/// Plans `MPI_Scan`. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let mut schedule = begin(call, Collective::Scan, send, receive, op)?;
    by_messages::scan::doubling::inclusive(&mut schedule, send.unwrap_or(receive), receive)?;
    Ok(schedule)
}

/// Plans `MPI_Exscan`. `send` is `None` for `MPI_IN_PLACE`. At rank 0 the receive buffer is unchanged.
///
/// # Errors
/// As for [`plan`].
pub fn plan_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let mut schedule = begin(call, Collective::Exscan, send, receive, op)?;
    by_messages::scan::doubling::exclusive(&mut schedule, send.unwrap_or(receive), receive)?;
    Ok(schedule)
}

fn begin(call: &Call<'_>, kind: Collective, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let bytes = check(send, receive, op)?.bytes();
    count_messages(kind, "doubling");
    let mut schedule = Schedule::new(&call.signed(Signature::reduction(kind, op)).on(bytes));
    schedule.reduce_with(op.clone(), receive.datatype.clone());
    Ok(schedule)
}

/// Checks the arguments and returns the operand.
fn check<'a>(send: Option<&'a Buffer>, receive: &'a Buffer, op: &Op) -> Result<&'a Buffer> {
    if let Some(send) = send {
        check_apart(send, receive)?;
    }
    op.check(&receive.datatype)?;
    Ok(send.unwrap_or(receive))
}
