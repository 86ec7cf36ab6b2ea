//! All to all (MPI-5 section 6.8): `MPI_Alltoall`, `MPI_Alltoallv` and `MPI_Alltoallw` differ in how the program describes the blocks, not in
//! what happens to them.

mod exchange;

use super::buffer::{Blocks, check_apart};
use super::node::{self, Kind};
use super::{Call, Deal, Schedule, Task};
use crate::error::Result;

/// Every rank sends a block to every rank. `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    if let Some(send) = send {
        check_apart(&send.of(0), &receive.of(0))?;
    }
    // Lengths that are not equal are known to pairs of ranks only: without single copies ranks could not agree.
    let all = if receive.are_even() { receive.bytes(0).saturating_mul(call.size()) } else { node::ANY_BYTES };
    match call.turn(Kind::Alltoall, all) {
        Some(turn) => node::alltoall(&turn, send, receive),
        None => super::run(call.comm, plan(call, send, receive)?),
    }
}

/// Prepares what [`run`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<Task> {
    if let Some(send) = send {
        check_apart(&send.of(0), &receive.of(0))?;
    }
    let desk = if receive.are_even() { call.desk_to_move(receive.bytes(0).saturating_mul(call.size())) } else { call.desk_for_any(false) };
    match desk {
        Some(desk) => Deal::alltoall(call, desk.terms, send, receive).map(|deal| Task::at(desk, deal)),
        None => plan(call, send, receive).map(Task::from),
    }
}

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
