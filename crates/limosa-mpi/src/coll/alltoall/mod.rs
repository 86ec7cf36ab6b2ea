//! All to all (MPI-5 section 6.8): `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw` differ in how the program describes the blocks, not in
//! what happens to them.

mod exchange;

use super::buffer::{Blocks, check_apart};
use super::{Call, Schedule};
use crate::error::Result;

/// Plans that every rank sends a block to every rank. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<Schedule> {
    let mut schedule = Schedule::new(call);
    if let Some(send) = send {
        check_apart(&send.of(0), &receive.of(0))?;
    }
    exchange::plan(&mut schedule, send, receive)?;
    Ok(schedule)
}
