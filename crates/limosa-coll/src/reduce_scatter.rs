//! Reduce-scatter (MPI-5 section 6.10).

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::by_messages;
use super::kind::Signature;
use super::pieces::Delivery;
use super::select::select_flat;
use super::shared::{self, Collective};
use super::{Call, Exchange, Plan, Schedule};
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::op::Op;

/// Combines the operands of all ranks and scatters the result. Arguments as for [`plan`].
///
/// # Errors
/// As for [`plan`], `MPI_ERR_TRUNCATE`, and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, counts: &[i64], op: &Arc<Op>) -> Result<()> {
    let (input, own, lengths) = check(call, send, receive, counts, op)?;
    let call = &call.signed(Signature::reduction(Collective::ReduceScatter, op));
    match call.shared_call(Collective::ReduceScatter, input.bytes()) {
        Some(shared_call) => shared::reduce_scatter(&shared_call, input, send.is_none(), &lengths, &own, op),
        None => super::run(call.comm, plan(call, send, receive, counts, op)?),
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(
    call: &Call<'_>,
    send: Option<&Buffer>,
    receive: &Buffer,
    counts: &[i64],
    op: &Arc<Op>,
) -> Result<Plan> {
    let (input, own, lengths) = check(call, send, receive, counts, op)?;
    let call = &call.signed(Signature::reduction(Collective::ReduceScatter, op)).on(input.bytes());
    match call.mailbox_use_to_combine(Collective::ReduceScatter, input.bytes(), op) {
        Some(mailbox_use) => {
            let delivery = Delivery::of_parts(&lengths, input.datatype.size() as usize);
            Exchange::reduction(call, Collective::ReduceScatter, mailbox_use.limits, op, input, Some(&own), delivery)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan(call, send, receive, counts, op).map(Plan::from),
    }
}

/// Plans the combination of all ranks' operands and the scatter of the result.
///
/// `counts` has the number of elements of each rank's part. `send` has their sum; in place (`None`) `receive` has, and
/// the result is written to its beginning.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_COUNT`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(
    call: &Call<'_>,
    send: Option<&Buffer>,
    receive: &Buffer,
    counts: &[i64],
    op: &Arc<Op>,
) -> Result<Schedule> {
    let (input, own, counts) = check(call, send, receive, counts, op)?;
    let call = &call.signed(Signature::reduction(Collective::ReduceScatter, op)).on(input.bytes());
    let plan = select_flat(call, Collective::ReduceScatter, by_messages::REDUCE_SCATTER, input.bytes(), op);
    let mut schedule = Schedule::new(call);
    schedule.reduce_with(op.clone(), input.datatype.clone());
    plan(&mut schedule, input, &counts, &own)?;
    Ok(schedule)
}

/// Checks the arguments; returns the operand, this rank's part of the result, and the counts.
fn check<'a>(
    call: &Call<'_>,
    send: Option<&'a Buffer>,
    receive: &'a Buffer,
    counts: &[i64],
    op: &Op,
) -> Result<(&'a Buffer, Buffer, Vec<usize>)> {
    total(counts)?;
    let counts: Vec<usize> = counts.iter().map(|&count| count as usize).collect();
    let own = receive.slice(0, counts[call.rank()]);
    if let Some(send) = send {
        check_apart(send, &own)?;
    }
    let input = send.unwrap_or(receive);
    op.check(&input.datatype)?;
    Ok((input, own, counts))
}

/// Checks the counts of a reduce-scatter and returns their sum.
///
/// # Errors
/// `MPI_ERR_COUNT`.
pub fn total(counts: &[i64]) -> Result<i64> {
    let mut total = 0i64;
    for (rank, &count) in counts.iter().enumerate() {
        if count < 0 {
            fail!(MPI_ERR_COUNT, "the count of rank {rank} is {count}, but it must not be negative");
        }
        let Some(sum) = total.checked_add(count) else {
            fail!(MPI_ERR_COUNT, "the sum of the counts does not fit in 64 bits")
        };
        total = sum;
    }
    Ok(total)
}
