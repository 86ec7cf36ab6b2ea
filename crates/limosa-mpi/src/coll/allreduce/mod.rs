//! Reduce to all ranks (MPI-5 section 6.9.6).

pub(super) mod recursive_doubling;
pub(super) mod sliced;

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::select::{self, select};
use super::{Call, Schedule};
use crate::error::Result;
use crate::op::Op;

/// Plans that all ranks get the operands of all ranks combined, bit by bit the same. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    if let Some(send) = send {
        check_apart(send, receive)?;
    }
    let input = send.unwrap_or(receive);
    op.check(&input.datatype)?;
    let mut schedule = Schedule::new(call);
    schedule.reduce_with(op.clone(), input.datatype.clone());
    let plan = select(select::ALLREDUCE, schedule.size(), input.bytes(), Some(op));
    plan(&mut schedule, input, receive)?;
    Ok(schedule)
}
