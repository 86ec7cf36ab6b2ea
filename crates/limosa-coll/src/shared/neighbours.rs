//! Exchanges with neighbours (MPI-5 section 8.6): every rank contributes blocks for its destinations, and takes its
//! blocks from its sources. It waits for these ranks only.
//!
//! Only pairs of ranks know how long blocks are. The sender therefore decides how they travel, and its note says how:
//!
//! | form of the note | when |
//! |---|---|
//! | bytes, or their address | the same block for all destinations; or blocks of one length, whose places the receivers know |
//! | `BLOCKS` | all other blocks |
//! | `ROUNDS` | everything goes by messages, because blocks are long, or too many to list |
//!
//! Blocks that fit no area go by messages where ranks cannot read each other's memory, or where the table selects
//! messages. A rank waits for such a message when it has read the note: its sender has posted the note before it waits
//! for any rank.

use limosa_base::slots::{Awaited, NOTES};
use limosa_mpi::consts::MPI_PROC_NULL;
use limosa_mpi::error::Result;
use limosa_mpi::topo::Neighbours;
use limosa_p2p::memory::Region;

use super::SharedGroup;
use super::call::{First, SharedCall};
use crate::buffer::{Blocks, Buffer};
use crate::edges::{aligned, block_of, destinations, line_bytes, sources, write_blocks};
use crate::kind::Collective;
use crate::memory::{Flat, read};
use crate::notes::{BY_MESSAGE, Location, PostedBytes, SlotNote};
use crate::run::run;
use crate::schedule::{Schedule, copy_own};

/// An exchange from the view of one rank.
pub(crate) struct Exchange<'e> {
    pub(crate) neighbours: &'e Neighbours,
    pub(crate) send: Sent<'e>,
    /// A block for each source.
    pub(crate) receive: &'e Blocks,
    /// The blocks that this rank sends to itself, each with the block that it fills.
    pub(crate) own: &'e [(usize, usize)],
}

/// The blocks that a rank sends.
pub(crate) enum Sent<'e> {
    /// The same block to all destinations.
    Whole(&'e Buffer),
    /// A block to each destination.
    Blocks(&'e Blocks),
}

impl Sent<'_> {
    pub(crate) fn region(&self, block: usize) -> Region {
        match self {
            Sent::Whole(buffer) => buffer.region(),
            Sent::Blocks(blocks) => blocks.region(block),
        }
    }
}

/// Contributions of a rank outside shared memory.
#[derive(Default)]
struct Contributed {
    /// Buffers that other ranks read in this rank's memory.
    kept: Vec<Flat>,
    /// Blocks that go by messages.
    by_message: Vec<usize>,
}

impl SharedGroup {
    /// Whether an exchange with neighbours is done here.
    pub(crate) fn can_exchange(&self, kind: Collective) -> bool {
        self.choice(kind).is_ever_shared()
    }

    /// Whether others can read a block of this length in this rank's memory, and that is worthwhile.
    fn can_offer(&self, kind: Collective, len: usize) -> bool {
        self.pull && self.choice(kind).is_shared(len)
    }
}

/// Sends to the destinations and receives from the sources. `plan` begins the schedule of the messages.
///
/// # Errors
/// Ranks disagree about lengths, or about their neighbours; errors of the machine.
pub(crate) fn neighbours(
    call: &SharedCall<'_>,
    exchange: &Exchange<'_>,
    plan: impl FnOnce() -> Schedule,
) -> Result<()> {
    let contributed = match exchange.send {
        Sent::Whole(buffer) => exchange.contribute_whole(call, buffer)?,
        Sent::Blocks(blocks) => exchange.contribute_blocks(call, blocks)?,
    };
    let mut trouble = First::default();
    for &(from, to) in exchange.own {
        trouble.note(copy_own(call.me(), &exchange.send.region(from), &exchange.receive.region(to)));
    }
    let late = exchange.take_all(call, &mut trouble)?;
    if !late.is_empty() || !contributed.by_message.is_empty() {
        let outcome = exchange.exchange_messages(call, plan(), &late, &contributed.by_message);
        trouble.note(outcome.inspect_err(|error| call.give_up_after(error)));
    }
    if !contributed.kept.is_empty() {
        call.finish();
        for (_, rank) in exchange.destinations(call.me()) {
            let finished = call.wait(Awaited::Finished(rank, call.number()));
            if trouble.note(finished).is_none() {
                break;
            }
        }
    }
    trouble.end()
}

impl Exchange<'_> {
    /// Returns the blocks for other ranks, each with its receiver.
    fn destinations(&self, me: usize) -> impl Iterator<Item = (usize, usize)> {
        destinations(self.neighbours, me)
    }

    /// Announces that everything goes by messages; `len`: the length of a block, or 0 if lengths differ.
    fn announce(&self, call: &SharedCall<'_>, len: usize) -> Result<Contributed> {
        call.announce(len)?;
        let by_message = self.destinations(call.me()).map(|(block, _)| block).collect();
        Ok(Contributed { by_message, ..Contributed::default() })
    }

    fn contribute_whole(&self, call: &SharedCall<'_>, buffer: &Buffer) -> Result<Contributed> {
        let len = buffer.bytes();
        if !call.puts(len) && !call.group.can_offer(call.kind, len) {
            return self.announce(call, len);
        }
        let kept = call.contribute(&buffer.region(), false)?.into_iter().collect();
        Ok(Contributed { kept, ..Contributed::default() })
    }

    fn contribute_blocks(&self, call: &SharedCall<'_>, blocks: &Blocks) -> Result<Contributed> {
        let destinations = &self.neighbours.destinations;
        if destinations.is_empty() {
            call.sign()?;
            return Ok(Contributed::default());
        }
        if !blocks.are_even() || self.neighbours.sent_as.is_empty() {
            return self.contribute_lines(call, blocks);
        }
        let (each, whole) = (blocks.bytes(0), blocks.run(0, destinations.len()).region());
        let has_gaps = destinations.contains(&MPI_PROC_NULL);
        let fill = |place: &mut [u8]| match has_gaps {
            false => read(&whole, place),
            true => self.destinations(call.me()).for_each(|(block, _)| {
                read(&blocks.region(block), &mut place[block * each..][..each]);
            }),
        };
        if call.puts(whole.len()) && call.lay_out(whole.len(), whole.len(), fill)? {
            return Ok(Contributed::default());
        }
        if !call.group.can_offer(call.kind, each) {
            return self.announce(call, each);
        }
        if has_gaps && whole.as_contiguous().is_none() {
            return self.contribute_lines(call, blocks);
        }
        let flat = Flat::packed(&whole)?;
        call.offer(whole.len(), flat.start())?;
        Ok(Contributed { kept: vec![flat], ..Contributed::default() })
    }

    /// Contributes blocks with a table.
    fn contribute_lines(&self, call: &SharedCall<'_>, blocks: &Blocks) -> Result<Contributed> {
        let me = call.me();
        let count = self.destinations(me).count();
        let lines = line_bytes(count);
        if lines > call.slot_bytes() {
            return self.announce(call, 0);
        }
        let lens = self.destinations(me).map(|(block, _)| aligned(blocks.bytes(block)));
        let wanted = lens.fold(lines, usize::saturating_add);
        let fitting = if call.puts(wanted - lines) { call.own_area(wanted)? } else { None };
        let area = match fitting {
            Some(area) => area,
            None => call.own_slot()?,
        };
        call.make_room(NOTES)?;
        let mut contributed = Contributed::default();
        // SAFETY: the area is this rank's, and no rank reads it before the note below.
        let place = unsafe { area.first(area.bytes) };
        write_blocks(place, (self.neighbours, me), blocks, |block, region, fits| {
            if fits {
                Ok(None)
            } else if call.group.can_offer(call.kind, region.len()) {
                let flat = Flat::packed(region)?;
                let address = flat.start() as u64;
                contributed.kept.push(flat);
                Ok(Some(address))
            } else {
                contributed.by_message.push(block);
                Ok(Some(BY_MESSAGE))
            }
        })?;
        call.post(&SlotNote::of_blocks(&area, count));
        Ok(contributed)
    }

    /// Takes the contributions of the sources in shared memory. Returns the blocks that come by message, each with
    /// whether a message is known to come.
    fn take_all(&self, call: &SharedCall<'_>, trouble: &mut First) -> Result<Vec<(usize, bool)>> {
        let (mut late, is_whole) = (Vec::new(), matches!(self.send, Sent::Whole(_)));
        for (block, source) in sources(self.neighbours, call.me()) {
            let into = self.receive.region(block);
            call.wait_for(source)?;
            let found = call
                .posted(source)
                .and_then(|found| block_of((self.neighbours, call.me()), block, found, is_whole, into.len()));
            match found {
                Ok(PostedBytes { place: Location::InRounds | Location::ByMessage, len }) => late.push((block, len > 0)),
                found => {
                    trouble.note(found.and_then(|found| call.take(source, found.check(source, into.len())?, &into)));
                }
            }
        }
        Ok(late)
    }

    /// Receives and sends blocks by messages.
    fn exchange_messages(
        &self,
        call: &SharedCall<'_>,
        mut schedule: Schedule,
        receive: &[(usize, bool)],
        send: &[usize],
    ) -> Result<()> {
        for &(block, comes) in receive {
            let (source, into) = (self.neighbours.sources[block] as usize, self.receive.region(block));
            if into.is_empty() && comes {
                // Its sender waits until it is received, and learns that it is too long.
                schedule.receive_signal(source);
            } else {
                schedule.receive(source, into);
            }
        }
        for &block in send {
            schedule.send(self.neighbours.destinations[block] as usize, self.send.region(block));
        }
        run(call.comm, schedule)
    }
}
