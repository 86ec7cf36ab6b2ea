//! All ranks send to all.
//!
//! Every rank contributes what it has, on the stage or by address, and fetches what it wants, beginning behind itself, so that no rank is everybody's
//! source at once.

use super::annex::{self, Rounds};
use super::select;
use super::turn::{First, Turn};
use crate::coll::buffer::{Blocks, Buffer};
use crate::coll::schedule::copy_own;
use crate::error::Result;

/// All ranks get the contributions of all. `send` is `None` for one that is in its place already.
pub(in crate::coll) fn allgather(turn: &Turn<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let me = turn.me();
    let most = receive.most_bytes(turn.size());
    if most > turn.most_put()
        && select::in_rounds(turn.node)
        && let Some(rounds) = Rounds::begin(turn, most, None)?
    {
        return annex::allgather(&rounds, send, receive);
    }
    let own = send.map_or_else(|| receive.region(me), Buffer::region);
    let kept = turn.contribute(&own, false)?;
    let mut trouble = First::default();
    if send.is_some() {
        trouble.note(copy_own(me, &own, &receive.region(me)));
    }
    for rank in (1..turn.size()).map(|distance| turn.after(distance)) {
        turn.wait_for(rank)?;
        let posted = turn.posted(rank).and_then(|posted| turn.check(rank, posted, receive.bytes(rank)));
        trouble.note(posted.and_then(|posted| turn.take(rank, posted, &receive.region(rank))));
    }
    turn.node.raise_floor(turn.number() - 1);
    if kept.is_some() {
        // Others read this rank's memory.
        trouble.note(turn.finish_together());
    }
    trouble.end()
}

/// Every rank has a part for every rank. `send` is `None` where the parts are in the places of those that come.
pub(in crate::coll) fn alltoall(turn: &Turn<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    let me = turn.me();
    if receive.are_even() {
        let each = receive.bytes(me);
        let all = each.saturating_mul(turn.size());
        if all > turn.slot_bytes()
            && !turn.node.pull
            && let Some(rounds) = Rounds::begin(turn, each, None)?
        {
            return annex::alltoall(&rounds, send, receive);
        }
    }
    let kept = turn.contribute_parts(send.unwrap_or(receive), send.is_none())?;
    let mut trouble = First::default();
    if let Some(send) = send {
        trouble.note(copy_own(me, &send.region(me), &receive.region(me)));
    }
    for rank in (1..turn.size()).map(|distance| turn.after(distance)) {
        turn.wait_for(rank)?;
        let posted = turn.posted_part(rank, me).and_then(|posted| turn.check(rank, posted, receive.bytes(rank)));
        trouble.note(posted.and_then(|posted| turn.take(rank, posted, &receive.region(rank))));
    }
    turn.node.raise_floor(turn.number() - 1);
    trouble.note(turn.settle(&kept));
    trouble.end()
}
