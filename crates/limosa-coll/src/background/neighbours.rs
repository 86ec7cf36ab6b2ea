//! Exchanges with neighbours in the background (MPI-5 section 8.6). A rank waits for its sources only, and for its
//! destinations until they have read what it lends.
//!
//! Only pairs of ranks know how long blocks are. The sender therefore decides how they travel, and its note says how:
//!
//! | form of the note | when |
//! |---|---|
//! | bytes, or their address | the same block for all destinations; or blocks of one length, whose places the receivers know |
//! | `BLOCKS`, `LENT_BLOCKS` | all other blocks |
//! | `ROUNDS` | everything goes by messages |
//!
//! Where ranks cannot read each other's memory, long blocks go by messages, for which a receiver has to post receives
//! at the start. It knows which ones: blocks longer than an even share of what its source can leave (`longest_block`),
//! or longer than all of that if every destination gets the same block. In a distributed graph, a rank does not know
//! how many blocks its sources send; distinct blocks always go by messages there.

use std::sync::Arc;

use limosa_mpi::error::Result;
use limosa_mpi::topo::Neighbours;
use limosa_p2p::memory::Region;

use super::exchange::{Contribution, Exchange, Intake, Limits};
use super::lent::{LentBuffer, read_lent};
use super::neighbour_blocks::{Incoming, SentBlocks, longest_block};
use super::operation::BackgroundOp;
use crate::buffer::Blocks;
use crate::edges::{block_of, destinations, sources};
use crate::kind::Collective;
use crate::memory::Scratch;
use crate::notes::{Lines, Location, Notes, nonsense};
use crate::schedule::{Member, Schedule};
use crate::shared::Sent;

/// An exchange with neighbours from the view of one rank.
pub(crate) struct NeighbourExchange<'e> {
    pub(crate) neighbours: &'e Arc<Neighbours>,
    pub(crate) send: Sent<'e>,
    /// A block for each source.
    pub(crate) receive: &'e Blocks,
    /// The blocks that this rank sends to itself, each with its destination.
    pub(crate) own: Vec<(Region, Region)>,
}

impl Exchange {
    /// An exchange with neighbours.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(crate) fn with_neighbours(
        member: impl Into<Member>,
        kind: Collective,
        limits: Limits,
        exchange: NeighbourExchange<'_>,
    ) -> Result<Exchange> {
        let NeighbourExchange { neighbours, send, receive, own } = exchange;
        let member: Member = member.into();
        let me = member.rank;
        let incoming = Incoming {
            neighbours: neighbours.clone(),
            me,
            into: receive.clone(),
            is_whole: matches!(send, Sent::Whole(_)),
            most: (!limits.lends).then_some(limits.most),
        };
        let longest = match send {
            _ if limits.lends => usize::MAX,
            Sent::Whole(_) => limits.most,
            Sent::Blocks(_) => longest_block(limits.most, neighbours.destinations.len()),
        };
        let by_messages = if limits.lends { None } else { messages(member, &send, longest, &incoming) };
        let contribution = if destinations(neighbours, me).next().is_none() {
            Contribution::Signal
        } else {
            match send {
                Sent::Whole(buffer) if buffer.bytes() > longest => Contribution::Announced(buffer.bytes()),
                Sent::Whole(buffer) => limits.block(buffer.region())?,
                Sent::Blocks(blocks) => contribute_blocks(limits, neighbours, me, blocks, longest)?,
            }
        };
        let intake = match sources(neighbours, me).next() {
            Some(_) => Intake::Neighbours(Box::new(incoming)),
            None => Intake::Nothing,
        };
        Ok(Exchange {
            own: own.into(),
            by_messages,
            readers: Some(neighbours.clone()),
            ..Exchange::new(kind, member, contribution, intake)
        })
    }
}

/// Returns the schedule of messages for blocks that are too long to be left, if there are any; of the sent blocks,
/// those longer than `longest`.
fn messages(member: Member, send: &Sent<'_>, longest: usize, incoming: &Incoming) -> Option<Box<Schedule>> {
    let (neighbours, me) = (&incoming.neighbours, member.rank);
    let mut schedule = Schedule::new(member);
    for (block, source) in sources(neighbours, me).filter(|(block, _)| incoming.comes_by_message(*block)) {
        schedule.receive(source, incoming.into.region(block));
    }
    for (block, rank) in destinations(neighbours, me) {
        let region = send.region(block);
        if region.len() > longest {
            schedule.send(rank, region);
        }
    }
    (!schedule.steps.is_empty()).then(|| Box::new(schedule))
}

/// Makes a contribution of blocks, of which those up to `longest` bytes do not go by message.
fn contribute_blocks(
    limits: Limits,
    neighbours: &Arc<Neighbours>,
    me: usize,
    blocks: &Blocks,
    longest: usize,
) -> Result<Contribution> {
    let count = neighbours.destinations.len();
    // Only in a distributed graph does a rank with destinations know no places.
    let have_places = blocks.are_even() && !neighbours.sent_as.is_empty();
    let is_packed = have_places && blocks.bytes(0) <= longest && blocks.bytes(0).saturating_mul(count) <= limits.most;
    let sent = SentBlocks { neighbours: neighbours.clone(), me, blocks: blocks.clone(), most: longest, is_packed };
    if sent.bytes() <= limits.most {
        return Ok(Contribution::Blocks(Box::new(sent)));
    }
    if !limits.lends {
        // There is not even room for the lines.
        return Ok(Contribution::Announced(0));
    }
    let whole = have_places.then(|| blocks.run(0, count).region());
    Ok(Contribution::Lent(Box::new(match whole.filter(|whole| whole.as_contiguous().is_some()) {
        Some(whole) => LentBuffer::of_block(whole, false)?,
        None => LentBuffer::of_blocks(sent, limits.most)?,
    })))
}

impl BackgroundOp {
    /// Copies the blocks of neighbours to this rank's buffers.
    ///
    /// # Errors
    /// As for [`BackgroundOp::fetch`].
    pub(super) fn fetch_from_neighbours(&self, incoming: &Incoming) -> Result<()> {
        let mut outcome = Ok(());
        for (block, source) in sources(&incoming.neighbours, incoming.me) {
            if !incoming.comes_by_message(block) {
                outcome = outcome.and(self.fetch_block(incoming, block, source));
            }
        }
        outcome
    }

    fn fetch_block(&self, incoming: &Incoming, block: usize, source: usize) -> Result<()> {
        let into = incoming.into.region(block);
        let mut found = self.mailboxes.find(source, self.number(), self.exchange.call)?;
        let mut _lines = None;
        if let Location::InLentBlocks { address, blocks } = found.place {
            let (bytes, scratch) = (found.len, Scratch::take(found.len)?);
            // SAFETY: scratch memory of this many bytes.
            unsafe {
                let to = Region::contiguous(scratch.start(), bytes);
                read_lent(&*self.mailboxes, source, address, &to)?;
            }
            self.check_lent(source)?;
            found.place = Location::InBlocks(Lines::lent(scratch.start(), blocks));
            _lines = Some(scratch);
        }
        let edge = (&*incoming.neighbours, incoming.me);
        let found = block_of(edge, block, found, incoming.is_whole, into.len())?.check(source, into.len())?;
        match found.place {
            _ if found.len == 0 => Ok(()),
            Location::Here(_) | Location::There { .. } => {
                // SAFETY: so many bytes are there.
                unsafe { self.bring(source, Some(found.place), &into) }
            }
            _ => Err(nonsense(source)),
        }
    }
}
