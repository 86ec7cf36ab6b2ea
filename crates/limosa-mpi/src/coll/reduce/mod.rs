//! Reduce to one rank (MPI-5 section 6.9).

pub(super) mod binomial;
pub(super) mod sliced;

use std::sync::Arc;

use super::buffer::{Buffer, check_apart};
use super::select::{self, select};
use super::{Call, Schedule};
use crate::error::Result;
use crate::fail;
use crate::op::Op;

/// Plans that the root gets the operands of all ranks combined.
///
/// `send` is `None` for `MPI_IN_PLACE`, at the root; `receive` is significant at the root only.
///
/// # Errors
/// `MPI_ERR_ROOT`, `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Buffer>, op: &Arc<Op>, root: i32) -> Result<Schedule> {
    let root = call.comm.check_root(root)? as usize;
    let receive = receive.filter(|_| call.comm.rank() as usize == root);
    if let (Some(send), Some(receive)) = (send, receive) {
        check_apart(send, receive)?;
    }
    let Some(input) = send.or(receive) else {
        fail!(MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE at rank {}, but only the root, rank {root}, may pass it", call.comm.rank());
    };
    op.check(&input.datatype)?;
    let mut schedule = Schedule::new(call);
    schedule.reduce_with(op.clone(), input.datatype.clone());
    let plan = select(select::REDUCE, schedule.size(), input.bytes(), Some(op));
    plan(&mut schedule, input, receive, root)?;
    Ok(schedule)
}
