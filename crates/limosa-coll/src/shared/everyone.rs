//! All ranks send to all.
//!
//! Every rank contributes what it has, in the slots or by address, and fetches what it wants, beginning behind itself, so that no rank is everybody's
//! source at once.

use super::call::{First, SharedCall};
use super::rounds::{self, Rounds};
use super::select;
use crate::buffer::{Blocks, Buffer};
use crate::schedule::copy_own;
use limosa_mpi::error::Result;

/// All ranks get the contributions of all. `send` is `None` for one that is in its place already.
pub(crate) fn allgather(shared_call: &SharedCall<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let me = shared_call.me();
    let most = receive.most_bytes(shared_call.size());
    if most > shared_call.most_put()
        && select::in_rounds(shared_call.group, shared_call.kind, most)
        && let Some(rounds) = Rounds::begin(shared_call, most, None)?
    {
        return rounds::allgather(&rounds, send, receive);
    }
    let own = send.map_or_else(|| receive.region(me), Buffer::region);
    let kept = shared_call.contribute(&own, false)?;
    let mut trouble = First::default();
    if send.is_some() {
        trouble.note(copy_own(me, &own, &receive.region(me)));
    }
    for rank in (1..shared_call.size()).map(|distance| shared_call.after(distance)) {
        shared_call.wait_for(rank)?;
        let posted = shared_call.posted(rank).and_then(|posted| posted.check(rank, receive.bytes(rank)));
        trouble.note(posted.and_then(|posted| shared_call.take(rank, posted, &receive.region(rank))));
    }
    shared_call.group.raise_floor(shared_call.number() - 1);
    if kept.is_some() {
        // Others read this rank's memory.
        trouble.note(shared_call.finish_together());
    }
    trouble.end()
}

/// Every rank has a part for every rank. `send` is `None` where the parts are in the places of those that come.
pub(crate) fn alltoall(shared_call: &SharedCall<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    let me = shared_call.me();
    if receive.are_even() {
        let each = receive.bytes(me);
        let all = each.saturating_mul(shared_call.size());
        if all > shared_call.slot_bytes()
            && select::in_rounds(shared_call.group, shared_call.kind, all)
            && let Some(rounds) = Rounds::begin(shared_call, each, None)?
        {
            return rounds::alltoall(&rounds, send, receive);
        }
    }
    let kept = shared_call.contribute_parts(send.unwrap_or(receive), send.is_none())?;
    let mut trouble = First::default();
    if let Some(send) = send {
        trouble.note(copy_own(me, &send.region(me), &receive.region(me)));
    }
    for rank in (1..shared_call.size()).map(|distance| shared_call.after(distance)) {
        shared_call.wait_for(rank)?;
        let posted = shared_call.posted_part(rank).and_then(|posted| posted.check(rank, receive.bytes(rank)));
        trouble.note(posted.and_then(|posted| shared_call.take(rank, posted, &receive.region(rank))));
    }
    shared_call.group.raise_floor(shared_call.number() - 1);
    trouble.note(shared_call.settle(&kept));
    trouble.end()
}
