//! Long data between a root and its partners: from one rank to all, or from all to one.
//!
//! A contribution that fits a slot is copied there. For larger messages each non-root has a transfer with the root, in
//! which both copy. A root that shares its processor with others helps the ranks that are present, and leaves the
//! others to themselves.

use limosa_p2p::memory::Region;

use super::call::{First, SharedCall};
use super::post::{Kept, KeptPart};
use super::rounds::{self, Rounds};
use super::select;
use super::transfer::{Direction, Transfer};
use crate::buffer::Blocks;
use crate::memory::Flat;
use crate::notes::Location;
use crate::schedule::copy_own;
use limosa_mpi::error::Result;

/// Copies the root's data, which exceed a slot or ring buffer, to all ranks.
pub(super) fn bcast_long(shared_call: &SharedCall<'_>, region: &Region, root: usize) -> Result<()> {
    let len = region.len();
    if select::in_rounds(shared_call.group, shared_call.kind, len)
        && let Some(rounds) = Rounds::begin(shared_call, len, Some(root))?
    {
        return rounds::bcast(&rounds, region, root);
    }
    if shared_call.me() == root {
        return match shared_call.contribute(region, false)? {
            None => Ok(()),
            Some(flat) => help_all(shared_call, (0..shared_call.size()).map(|_| Some((flat.start(), len)))),
        };
    }
    let flat = Flat::room(region)?;
    shared_call.offer(len, flat.start())?;
    shared_call.wait_for(root)?;
    let posted = shared_call.posted(root)?.check(root, len)?;
    if let Location::There { address } = posted.place {
        let transfer = Transfer { of: shared_call.me(), partner: root, local: flat.start(), remote: address, len };
        // SAFETY: the program's buffer, or memory of as many bytes; the root has offered its own.
        let copied = unsafe { transfer.work(shared_call, Direction::Pull) };
        transfer.wait(shared_call)?;
        copied?;
        flat.deliver(region);
    }
    Ok(())
}

/// Copies, at the root, to ranks that have a transfer, `(start, bytes)` for each, and then waits until all have
/// finished.
fn help_all(shared_call: &SharedCall<'_>, sources: impl Iterator<Item = Option<(*mut u8, usize)>>) -> Result<()> {
    let mut trouble = First::default();
    for (rank, source) in sources.enumerate() {
        let Some((start, len)) = source.filter(|_| rank != shared_call.me()) else { continue };
        if shared_call.group.oversubscribed && !shared_call.has_note(rank) {
            continue;
        }
        shared_call.wait_for(rank)?;
        // If that rank has another number of bytes, it raises the error itself.
        if let Ok(posted) = shared_call.posted(rank)
            && let Location::There { address } = posted.place
            && posted.len == len
        {
            let transfer = Transfer { of: rank, partner: rank, local: start, remote: address, len };
            // SAFETY: the memory has this many bytes, and the rank has offered as many.
            trouble.note(unsafe { transfer.work(shared_call, Direction::Push) });
        }
    }
    trouble.note(shared_call.finish_together());
    trouble.end()
}

/// Copies, at the root of a scatter, the long parts that are kept in its memory.
pub(super) fn help_with_parts(shared_call: &SharedCall<'_>, kept: &Kept) -> Result<()> {
    let is_long = |part: &&KeptPart| part.len >= select::SCATTER_TOGETHER;
    if !kept.iter().any(|part| is_long(&part)) {
        return Ok(());
    }
    let mut sources = vec![None; shared_call.size()];
    for part in kept.iter().filter(is_long) {
        sources[part.of] = Some((part.flat.start(), part.len));
    }
    help_all(shared_call, sources.into_iter())
}

/// Takes this rank's part of the root's data.
pub(super) fn take_part(shared_call: &SharedCall<'_>, root: usize, region: &Region) -> Result<()> {
    let (me, len) = (shared_call.me(), region.len());
    shared_call.wait_for(root)?;
    let posted = shared_call.posted_part(root).and_then(|posted| posted.check(root, len));
    let posted = match posted {
        Ok(posted) => posted,
        Err(error) => {
            // The root may wait for this rank.
            shared_call.decline()?;
            return Err(error);
        }
    };
    let address = match posted.place {
        Location::There { address } if len >= select::SCATTER_TOGETHER => address,
        _ => return shared_call.take(root, posted, region),
    };
    let flat = Flat::room(region)?;
    shared_call.offer(len, flat.start())?;
    let transfer = Transfer { of: me, partner: root, local: flat.start(), remote: address, len };
    // SAFETY: the program's buffer, or memory of as many bytes; the root has offered its own.
    let copied = unsafe { transfer.work(shared_call, Direction::Pull) };
    transfer.wait(shared_call)?;
    copied?;
    flat.deliver(region);
    Ok(())
}

/// Contributes bytes that only the root takes.
pub(super) fn contribute_to(shared_call: &SharedCall<'_>, region: &Region, root: usize) -> Result<()> {
    let Some(flat) = shared_call.contribute(region, false)? else { return Ok(()) };
    if shared_call.puts(region.len()) {
        // There was no memory for them: the root fetches the bytes.
        return shared_call.finish_together();
    }
    shared_call.wait_for(root)?;
    let posted = shared_call.posted_part(root)?;
    // If the root has room for another number of bytes, it raises the error itself.
    if let Location::There { address } = posted.place
        && posted.len == region.len()
    {
        let transfer =
            Transfer { of: shared_call.me(), partner: root, local: flat.start(), remote: address, len: region.len() };
        // SAFETY: the program's buffer, or a copy of it; the root has offered room for as many bytes.
        let copied = unsafe { transfer.work(shared_call, Direction::Push) };
        transfer.wait(shared_call)?;
        copied?;
    }
    Ok(())
}

/// Takes, at the root, the contributions of all ranks, and copies its own bytes to their place.
pub(super) fn take_each(shared_call: &SharedCall<'_>, own: Option<Region>, receive: &Blocks) -> Result<()> {
    let (me, size) = (shared_call.me(), shared_call.size());
    let is_large = |rank: usize| rank != me && !shared_call.puts(receive.bytes(rank));
    let mut rooms: Vec<Option<Flat>> = Vec::new();
    let offers = (0..size).any(is_large);
    if offers {
        for rank in 0..size {
            rooms.push(if is_large(rank) { Some(Flat::room(&receive.region(rank))?) } else { None });
        }
        let room =
            |(rank, room): (usize, &Option<Flat>)| room.as_ref().map(|room| (room.start() as u64, receive.bytes(rank)));
        let places = rooms.iter().enumerate().map(room);
        shared_call.offer_places(&places.collect::<Vec<_>>())?;
    }
    let mut trouble = First::default();
    if let Some(own) = own {
        trouble.note(copy_own(me, &own, &receive.region(me)));
    }
    let mut open = Vec::new();
    let mut is_waited_for = false;
    for rank in (1..size).map(|distance| shared_call.after(distance)) {
        shared_call.wait_for(rank)?;
        let Some(posted) = trouble.note(shared_call.posted(rank)) else { continue };
        is_waited_for |= matches!(posted.place, Location::There { .. }) && !shared_call.puts(posted.len);
        let Some(posted) = trouble.note(posted.check(rank, receive.bytes(rank))) else { continue };
        match (posted.place, rooms.get(rank).and_then(Option::as_ref)) {
            (Location::There { address }, Some(room)) => {
                let transfer =
                    Transfer { of: rank, partner: rank, local: room.start(), remote: address, len: posted.len };
                // SAFETY: room for this many bytes, which only that rank uses; the rank has offered its bytes.
                trouble.note(unsafe { transfer.work(shared_call, Direction::Pull) });
                open.push((rank, transfer));
            }
            _ => {
                trouble.note(shared_call.take(rank, posted, &receive.region(rank)));
            }
        }
    }
    if is_waited_for && !offers {
        // A rank has more bytes than there is room for, and waits for an address.
        shared_call.decline()?;
    }
    shared_call.group.raise_floor(shared_call.number() - 1);
    for (rank, transfer) in open {
        transfer.wait(shared_call)?;
        if let Some(room) = &rooms[rank] {
            room.deliver(&receive.region(rank));
        }
    }
    trouble.end()
}
