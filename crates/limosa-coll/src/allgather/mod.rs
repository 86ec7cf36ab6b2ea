//! Allgather (MPI-5 section 6.7).

pub(super) mod bruck;
pub(super) mod ring;

use super::buffer::{Blocks, Buffer};
use super::choice::Subject;
use super::one_step;
use super::plan::MessagePlan;
use super::select::{self, Selected, select};
use super::shared::{self, Collective};
use super::{Call, Plan, Recorder, Schedule, composed};
use limosa_mpi::error::Result;

/// Gives all ranks all contributions, of any length (`MPI_Allgather`, `MPI_Allgatherv`). `send` is `None` for
/// `MPI_IN_PLACE`.
///
/// # Errors
/// As for [`plan`], and errors of the machine.
pub fn run(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let call = &call.signed(Collective::Allgather);
    check(send, receive, call.size())?;
    let most = receive.most_bytes(call.size());
    match call.shared_call(Collective::Allgather, most) {
        Some(shared_call) => shared::allgather(&shared_call, send, receive),
        None => work(call, send, receive)?.run(call),
    }
}

/// Plans what [`run`] does as an operation in the background.
///
/// # Errors
/// As for [`plan`].
pub fn background(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Plan> {
    let call = &call.signed(Collective::Allgather);
    check(send, receive, call.size())?;
    match call.mailbox_use_to_move(Collective::Allgather, receive.most_bytes(call.size())) {
        Some(mailbox_use) => {
            one_step::allgather(Recorder::new(Collective::Allgather, call, mailbox_use.limits), send, receive)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => plan(call, send, receive).map(Plan::from),
    }
}

/// Plans that all ranks get all contributions, of any length (`MPI_Allgather`, `MPI_Allgatherv`). `send` is `None` for
/// `MPI_IN_PLACE`.
///
/// # Errors
/// `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`, `MPI_ERR_NO_MEM`.
pub fn plan(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<Schedule> {
    let call = &call.signed(Collective::Allgather);
    check(send, receive, call.size())?;
    work(call, send, receive)?.into_schedule(call)
}

fn work(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<MessagePlan> {
    let (subject, bytes) = if receive.are_even() {
        (Collective::Allgather.into(), receive.bytes(call.rank()))
    } else {
        (Subject::ALLGATHERV, (0..call.size()).map(|rank| receive.bytes(rank)).fold(0, usize::saturating_add))
    };
    match select(call, subject, select::ALLGATHER, bytes, None) {
        Selected::Composed(hosts) => composed::allgather(hosts, send, receive).map(MessagePlan::Composed),
        Selected::Flat(plan) => MessagePlan::flat(call, |s| plan(s, send, receive)),
    }
}

fn check(send: Option<&Buffer>, receive: &Blocks, ranks: usize) -> Result<()> {
    if let Some(send) = send {
        receive.check_apart_from(ranks, send)?;
    }
    Ok(())
}
