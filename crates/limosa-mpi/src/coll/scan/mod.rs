//! Partial reductions (MPI-5 section 6.11): rank i gets the operands of the ranks up to itself combined, or of those before itself.

mod doubling;

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::{Call, Schedule};
use crate::error::Result;
use crate::op::Op;

/// Plans `MPI_Scan`. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let mut schedule = begin(call, send, receive, op)?;
    doubling::inclusive(&mut schedule, send.unwrap_or(receive), receive)?;
    Ok(schedule)
}

/// Plans `MPI_Exscan`. `send` is `None` for `MPI_IN_PLACE`. At rank 0 the receive buffer keeps what it holds.
///
/// # Errors
/// As for [`plan`].
pub fn plan_exclusive(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let mut schedule = begin(call, send, receive, op)?;
    doubling::exclusive(&mut schedule, send.unwrap_or(receive), receive)?;
    Ok(schedule)
}

fn begin(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    if let Some(send) = send {
        check_apart(send, receive)?;
    }
    op.check(&receive.datatype)?;
    let mut schedule = Schedule::new(call);
    schedule.reduce_with(op.clone(), receive.datatype.clone());
    Ok(schedule)
}
