//! One rank sends to all, or receives from all.
//!
//! What fits a slot is put on the stage. For larger messages each non-root has a transfer with the root, at which both copy. A root that shares its
//! processor with others helps those that are there, and leaves the rest to themselves.

use super::annex::{self, Rounds};
use super::memory::Flat;
use super::posted::Place;
use super::select;
use super::transfer::{Transfer, Way};
use super::turn::{First, Turn};
use crate::coll::buffer::{Blocks, Buffer};
use crate::coll::schedule::copy_own;
use crate::error::Result;

/// All ranks get what the root has.
pub(in crate::coll) fn bcast(turn: &Turn<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    let region = buffer.region();
    let len = region.len();
    let is_put = len <= turn.most_put();
    if !is_put
        && select::in_rounds(turn.node)
        && let Some(rounds) = Rounds::begin(turn, len, Some(root))?
    {
        return annex::bcast(&rounds, &region, root);
    }
    if turn.me() == root {
        return match turn.contribute(&region, false)? {
            None => Ok(()),
            // There was no memory to put it in: the others fetch it.
            Some(_flat) if is_put => turn.finish_together(),
            Some(flat) => help_all(turn, (0..turn.size()).map(|_| Some((flat.start(), len)))),
        };
    }
    if is_put {
        return turn.take(root, turn.agree_with(root, len)?, &region);
    }
    let flat = Flat::room(&region)?;
    turn.offer(len, flat.start(), std::ptr::null())?;
    turn.wait_for(root)?;
    let posted = turn.check(root, turn.posted(root)?, len)?;
    if let Place::There { address, .. } = posted.place {
        let transfer = Transfer { of: turn.me(), partner: root, local: flat.start(), remote: address, len };
        // SAFETY: the program's buffer, or memory of as many bytes; the root has offered its own.
        let copied = unsafe { transfer.work(turn, Way::Pull) };
        transfer.wait(turn)?;
        copied?;
        flat.deliver(&region);
    }
    Ok(())
}

/// The root copies what others want from it too, `(start, bytes)` for each rank that has a transfer, and then waits until all have finished.
fn help_all(turn: &Turn<'_>, sources: impl Iterator<Item = Option<(*mut u8, usize)>>) -> Result<()> {
    let mut trouble = First::default();
    for (rank, source) in sources.enumerate() {
        let Some((start, len)) = source.filter(|_| rank != turn.me()) else { continue };
        if turn.node.crowded && !turn.has_note(rank) {
            continue;
        }
        turn.wait_for(rank)?;
        // Where that rank has another number of bytes, it knows and says so.
        if let Ok(posted) = turn.posted(rank)
            && let Place::There { address, .. } = posted.place
            && posted.len == len
        {
            let transfer = Transfer { of: rank, partner: rank, local: start, remote: address, len };
            // SAFETY: the memory has this many bytes, and the rank has offered as many.
            trouble.note(unsafe { transfer.work(turn, Way::Push) });
        }
    }
    trouble.note(turn.finish_together());
    trouble.end()
}

/// Each rank gets its part of what the root has.
pub(in crate::coll) fn scatter(turn: &Turn<'_>, send: Option<&Blocks>, receive: Option<&Buffer>, root: usize) -> Result<()> {
    let me = turn.me();
    if let Some(send) = send.filter(|_| me == root) {
        let kept = turn.contribute_parts(send, false)?;
        let own = receive.map_or(Ok(()), |receive| copy_own(me, &send.region(me), &receive.region()));
        if kept.iter().any(|(rank, _)| send.bytes(*rank) >= select::SCATTER_TOGETHER) {
            let mut sources = vec![None; turn.size()];
            for &(rank, ref flat) in kept.iter().filter(|(rank, _)| send.bytes(*rank) >= select::SCATTER_TOGETHER) {
                sources[rank] = Some((flat.start(), send.bytes(rank)));
            }
            help_all(turn, sources.into_iter())?;
        }
        turn.settle(&kept)?;
        return own;
    }
    let Some(receive) = receive else { return Ok(()) };
    let region = receive.region();
    let len = region.len();
    turn.wait_for(root)?;
    let posted = turn.posted_part(root, me).and_then(|posted| turn.check(root, posted, len));
    let posted = match posted {
        Ok(posted) => posted,
        Err(error) => {
            // The root may wait for this rank.
            turn.decline()?;
            return Err(error);
        }
    };
    let address = match posted.place {
        Place::There { address, .. } if len >= select::SCATTER_TOGETHER => address,
        _ => return turn.take(root, posted, &region),
    };
    let flat = Flat::room(&region)?;
    turn.offer(len, flat.start(), std::ptr::null())?;
    let transfer = Transfer { of: me, partner: root, local: flat.start(), remote: address, len };
    // SAFETY: the program's buffer, or memory of as many bytes; the root has offered its own.
    let copied = unsafe { transfer.work(turn, Way::Pull) };
    transfer.wait(turn)?;
    copied?;
    flat.deliver(&region);
    Ok(())
}

/// The root gets what all ranks have.
pub(in crate::coll) fn gather(turn: &Turn<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: usize) -> Result<()> {
    if let Some(receive) = receive.filter(|_| turn.me() == root) {
        return gather_here(turn, send, receive);
    }
    let Some(send) = send else { return Ok(()) };
    let region = send.region();
    let Some(flat) = turn.contribute(&region, false)? else { return Ok(()) };
    if region.len() <= turn.most_put() {
        // There was no memory to put it in: the root fetches it.
        return turn.finish_together();
    }
    turn.wait_for(root)?;
    let posted = turn.posted_part(root, turn.me())?;
    // Where the root has room for another number of bytes, it knows and says so.
    if let Place::There { address, .. } = posted.place
        && posted.len == region.len()
    {
        let transfer = Transfer { of: turn.me(), partner: root, local: flat.start(), remote: address, len: region.len() };
        // SAFETY: the program's buffer, or a copy of it; the root has offered room for as many bytes.
        let copied = unsafe { transfer.work(turn, Way::Push) };
        transfer.wait(turn)?;
        copied?;
    }
    Ok(())
}

/// What the root of a gather does.
fn gather_here(turn: &Turn<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let (me, size) = (turn.me(), turn.size());
    let is_large = |rank: usize| rank != me && receive.bytes(rank) > turn.most_put();
    let mut rooms: Vec<Option<Flat>> = Vec::new();
    let offers = (0..size).any(is_large);
    if offers {
        for rank in 0..size {
            rooms.push(if is_large(rank) { Some(Flat::room(&receive.region(rank))?) } else { None });
        }
        let places = rooms.iter().enumerate().map(|(rank, room)| match room {
            Some(room) => (room.start() as u64, receive.bytes(rank)),
            None => (turn.slot_bytes() as u64, 0),
        });
        turn.offer_places(&places.collect::<Vec<_>>())?;
    }
    let mut trouble = First::default();
    if let Some(send) = send {
        trouble.note(copy_own(me, &send.region(), &receive.region(me)));
    }
    let mut open = Vec::new();
    let mut is_waited_for = false;
    for rank in (1..size).map(|distance| turn.after(distance)) {
        turn.wait_for(rank)?;
        let Some(posted) = trouble.note(turn.posted(rank)) else { continue };
        is_waited_for |= matches!(posted.place, Place::There { .. }) && posted.len > turn.most_put();
        let Some(posted) = trouble.note(turn.check(rank, posted, receive.bytes(rank))) else { continue };
        match (posted.place, rooms.get(rank).and_then(Option::as_ref)) {
            (Place::There { address, .. }, Some(room)) => {
                let transfer = Transfer { of: rank, partner: rank, local: room.start(), remote: address, len: posted.len };
                // SAFETY: room for this many bytes, which nobody else uses but the rank; the rank has offered its bytes.
                trouble.note(unsafe { transfer.work(turn, Way::Pull) });
                open.push((rank, transfer));
            }
            _ => {
                trouble.note(turn.take(rank, posted, &receive.region(rank)));
            }
        }
    }
    if is_waited_for && !offers {
        // A rank has more bytes than there is room for, and waits to be told where.
        turn.decline()?;
    }
    turn.node.raise_floor(turn.number() - 1);
    for (rank, transfer) in open {
        transfer.wait(turn)?;
        if let Some(room) = &rooms[rank] {
            room.deliver(&receive.region(rank));
        }
    }
    trouble.end()
}
