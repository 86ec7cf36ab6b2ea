//! Gather to all (MPI-5 section 6.7).

pub(super) mod bruck;
pub(super) mod ring;

use super::buffer::{Blocks, Buffer, check_apart};
use super::choice::Subject;
use super::one_step;
use super::select::{self, select};
use super::shared::{self, Kind};
use super::{Call, Plan, Recorder, Schedule};
use limosa_mpi::error::Result;

/// Gives all ranks all contributions, of any length (`MPI_Allgather`, `MPI_Allgatherv`). `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    check(send, receive, call.rank())?;
    let most = receive.most_bytes(call.size());
    match call.shared_call(Kind::Allgather, most) {
        Some(shared_call) => shared::allgather(&shared_call, send, receive),
        None => super::run(call.comm, if receive.are_even() { plan(call, send, receive)? } else { plan_v(call, send, receive)? }),
    }
}

/// Prepares what [`run`] does, to be done in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Plan> {
    check(send, receive, call.rank())?;
    match call.mailbox_use_to_move(Kind::Allgather, receive.most_bytes(call.size())) {
        Some(mailbox_use) => one_step::allgather(Recorder::new(Kind::Allgather, call, mailbox_use.limits), send, receive)
            .map(|exchange| Plan::at(mailbox_use, exchange)),
        None if receive.are_even() => plan(call, send, receive).map(Plan::from),
        None => plan_v(call, send, receive).map(Plan::from),
    }
}

/// Plans that all ranks get all contributions, of equal length (`MPI_Allgather`). `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Schedule> {
    let mut schedule = Schedule::new(call);
    let (rank, size) = (schedule.rank(), schedule.size());
    check(send, receive, rank)?;
    let plan = select(Kind::Allgather, select::ALLGATHER, size, receive.bytes(rank), None);
    plan(&mut schedule, send, receive)?;
    Ok(schedule)
}

/// Plans that all ranks get all contributions, of any length (`MPI_Allgatherv`). `send` is `None` for `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`].
pub fn plan_v(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Schedule> {
    let mut schedule = Schedule::new(call);
    let (rank, size) = (schedule.rank(), schedule.size());
    check(send, receive, rank)?;
    let bytes = (0..size).map(|rank| receive.bytes(rank)).fold(0, usize::saturating_add);
    let plan = select(Subject::ALLGATHERV, select::ALLGATHER, size, bytes, None);
    plan(&mut schedule, send, receive)?;
    Ok(schedule)
}

fn check(send: Option<&Buffer>, receive: &Blocks, rank: usize) -> Result<()> {
    if let Some(send) = send {
        check_apart(send, &receive.of(0))?;
        check_apart(send, &receive.of(rank))?;
    }
    Ok(())
}
