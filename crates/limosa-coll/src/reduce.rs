//! Reduce (MPI-5 section 6.9).

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
use limosa_mpi::fail;
use limosa_mpi::op::Op;

/// Combines the operands of all ranks at the root. Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`], `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Buffer>, op: &Arc<Op>, root: i32) -> Result<()> {
    let (input, result, rank) = check(call, send, receive, op, root)?;
    let call = &call.signed(Signature::rooted_reduction(op, rank));
    match call.shared_call(Collective::Reduce, input.bytes()) {
        Some(shared_call) => shared::reduce(&shared_call, input, result, op, rank),
        None => {
            let call = &call.on(input.bytes());
            work(call, input, result, op, rank)?.run(call)
        }
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(
    call: &Call<'_>,
    send: Option<&Buffer>,
    receive: Option<&Buffer>,
    op: &Arc<Op>,
    root: i32,
) -> Result<Plan> {
    let (input, result, root_rank) = check(call, send, receive, op, root)?;
    let call = &call.signed(Signature::rooted_reduction(op, root_rank)).on(input.bytes());
    match call.mailbox_use_to_combine(Collective::Reduce, input.bytes(), op) {
        Some(mailbox_use) => Exchange::reduction(
            call,
            Collective::Reduce,
            mailbox_use.limits,
            op,
            input,
            result,
            Delivery::To(root_rank),
        )
        .map(|exchange| Plan::at(mailbox_use, exchange)),
        None => plan(call, send, receive, op, root).map(Plan::from),
    }
}

/// Plans the combination of all ranks' operands at the root.
///
/// `send` is `None` for `MPI_IN_PLACE`, at the root; `receive` is significant at the root only.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(
    call: &Call<'_>,
    send: Option<&Buffer>,
    receive: Option<&Buffer>,
    op: &Arc<Op>,
    root: i32,
) -> Result<Schedule> {
    let (input, receive, root) = check(call, send, receive, op, root)?;
    let call = &call.signed(Signature::rooted_reduction(op, root)).on(input.bytes());
    work(call, input, receive, op, root)?.into_schedule(call)
}

fn work(call: &Call<'_>, input: &Buffer, result: Option<&Buffer>, op: &Arc<Op>, root: usize) -> Result<MessagePlan> {
    match select(call, Collective::Reduce, by_messages::REDUCE, input.bytes(), Some(op)) {
        Selected::Composed(hosts) => composed::reduce(hosts, input, result, op, root).map(MessagePlan::Composed),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| {
            s.reduce_with(op.clone(), input.datatype.clone());
            plan(s, input, result, root)
        }),
    }
}

/// Checks the arguments; returns the operand, the place of the result, and the root.
fn check<'a>(
    call: &Call<'_>,
    send: Option<&'a Buffer>,
    receive: Option<&'a Buffer>,
    op: &Op,
    root: i32,
) -> Result<(&'a Buffer, Option<&'a Buffer>, usize)> {
    let root = call.comm.check_root(root)? as usize;
    let receive = receive.filter(|_| call.comm.rank() as usize == root);
    if let (Some(send), Some(receive)) = (send, receive) {
        check_apart(send, receive)?;
    }
    let Some(input) = send.or(receive) else {
        fail!(
            MPI_ERR_BUFFER,
            "sendbuf is MPI_IN_PLACE at rank {}, but only the root, rank {root}, may pass it",
            call.comm.rank()
        );
    };
    op.check(&input.datatype)?;
    Ok((input, receive, root))
}
