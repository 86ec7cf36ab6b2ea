//! The blocks of an exchange with neighbours in the background: contribution and intake of a rank.

use std::sync::Arc;

use limosa_base::slots::{Awaited, BODY_BYTES, SlotSegment};
use limosa_mpi::topo::Neighbours;
use limosa_p2p::memory::Region;

use super::storage::Content;
use super::{Mailboxes, Pending};
use crate::buffer::Blocks;
use crate::edges::{ALIGNED, aligned, destinations, line_bytes, sources, write_blocks};
use crate::kind::Signed;
use crate::memory::read;
use crate::notes::{BLOCK_LINE, BY_MESSAGE};

/// The blocks that a rank sends to its neighbours.
#[derive(Clone)]
pub(crate) struct SentBlocks {
    pub(super) neighbours: Arc<Neighbours>,
    pub(super) me: usize,
    pub(super) blocks: Blocks,
    /// Length above which a block goes by message.
    pub(super) most: usize,
    /// All blocks have one length, and the receivers know their places: no table is needed.
    pub(super) is_packed: bool,
}

/// The blocks that a rank receives from its neighbours.
pub(crate) struct Incoming {
    pub(super) neighbours: Arc<Neighbours>,
    pub(super) me: usize,
    pub(super) into: Blocks,
    /// Whether a source sends the same block to all its destinations.
    pub(super) is_whole: bool,
    /// Where nothing is lent: most bytes that a source can leave; longer blocks come by message.
    pub(super) most: Option<usize>,
}

/// Returns the length of the longest of `blocks` blocks that does not go by message, where a rank can leave `most`
/// bytes and lends none. All shorter blocks fit together with their table.
pub(super) fn longest_block(most: usize, blocks: usize) -> usize {
    (most / blocks.max(1)).saturating_sub(BLOCK_LINE + 2 * ALIGNED)
}

impl SentBlocks {
    /// Returns the number of blocks for other ranks.
    pub(super) fn count(&self) -> usize {
        destinations(&self.neighbours, self.me).count()
    }

    /// Returns their memory.
    pub(super) fn regions(&self) -> impl Iterator<Item = Region> {
        destinations(&self.neighbours, self.me).map(move |(block, _)| self.blocks.region(block))
    }

    /// Returns the bytes of their table.
    pub(super) fn line_bytes(&self) -> usize {
        line_bytes(self.count())
    }

    /// Returns the bytes left if all blocks are left that do not go by message. A table is always in a slot, however
    /// short.
    pub(super) fn bytes(&self) -> usize {
        if self.is_packed {
            return self.blocks.bytes(0) * self.neighbours.destinations.len();
        }
        let lens = destinations(&self.neighbours, self.me).map(|(block, _)| self.blocks.bytes(block));
        let near = lens.filter(|len| *len <= self.most).map(aligned);
        near.fold(self.line_bytes(), usize::saturating_add).max(BODY_BYTES + 1)
    }

    /// Writes the table, and behind it the blocks for which `place_of` has no address.
    pub(super) fn write(&self, area: &mut [u8], mut place_of: impl FnMut(&Region) -> Option<u64>) {
        let written =
            write_blocks(area, (&self.neighbours, self.me), &self.blocks, |_, region, _| Ok(place_of(region)));
        written.expect("saying where blocks are cannot fail");
    }

    /// Leaves the blocks, with a note of operation `number`.
    pub(super) fn post(&self, mailboxes: &Mailboxes, pending: &mut Pending, id: (u64, Signed)) {
        let all = self.bytes();
        if !self.is_packed {
            mailboxes.leave(pending, id, Content::Blocks { count: self.count() }, all, |area| {
                self.write(area, |region| (region.len() > self.most).then_some(BY_MESSAGE));
            });
            return;
        }
        mailboxes.leave(pending, id, Content::Block { len: all }, all, |place| {
            let each = self.blocks.bytes(0);
            for (block, _) in destinations(&self.neighbours, self.me) {
                read(&self.blocks.region(block), &mut place[block * each..][..each]);
            }
        });
    }
}

impl Incoming {
    /// Whether this rank knows that a block comes by message.
    pub(super) fn comes_by_message(&self, block: usize) -> bool {
        let Some(most) = self.most else { return false };
        let longest = match self.neighbours.sent_as.get(block) {
            _ if self.is_whole => most,
            Some(place) => longest_block(most, place.of),
            None => 0,
        };
        self.into.bytes(block) > longest
    }

    /// Returns the note of a source that has not been posted, if there is one.
    pub(super) fn missing(&self, slots: &SlotSegment, number: u64) -> Option<Awaited> {
        sources(&self.neighbours, self.me)
            .map(|(_, source)| Awaited::Note(source, number))
            .find(|note| !slots.holds(*note))
    }
}

/// Returns a destination among `neighbours` that has not finished an operation of rank `me`, if there is one.
pub(super) fn unfinished(neighbours: &Neighbours, slots: &SlotSegment, number: u64) -> Option<Awaited> {
    destinations(neighbours, slots.me())
        .map(|(_, rank)| Awaited::Finished(rank, number))
        .find(|finished| !slots.holds(*finished))
}
