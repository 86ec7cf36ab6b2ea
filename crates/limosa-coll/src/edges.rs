//! The blocks of an exchange with neighbours: for whom each is, and which of those that a rank contributes is for this
//! one, as its note says ([`crate::notes`]).

use limosa_mpi::consts::{MPI_ERR_TOPOLOGY, MPI_PROC_NULL};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::topo::{Neighbours, Place};
use limosa_p2p::memory::Region;

use super::buffer::Blocks;
use super::memory::read;
use super::notes::{BLOCK_LINE, Found, Location, nonsense, write_block_line};
use super::schedule::mismatch;

/// Blocks behind lines begin at multiples of this.
pub(crate) const ALIGNED: usize = 16;

/// Bytes of lines about so many blocks.
pub(crate) fn line_bytes(blocks: usize) -> usize {
    (blocks * BLOCK_LINE).next_multiple_of(ALIGNED)
}

/// Bytes that a block takes behind lines.
pub(crate) fn aligned(len: usize) -> usize {
    len.checked_next_multiple_of(ALIGNED).unwrap_or(usize::MAX)
}

/// The blocks that go to other ranks than `me`, each with this rank.
pub(crate) fn destinations(neighbours: &Neighbours, me: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = neighbours.destinations.iter().enumerate();
    all.filter(move |(_, rank)| **rank != MPI_PROC_NULL && **rank != me as i32)
        .map(|(block, rank)| (block, *rank as usize))
}

/// The blocks that come from other ranks than `me`, each with this rank, in the order in which those of one are sent.
pub(crate) fn sources(neighbours: &Neighbours, me: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = neighbours.order.iter().map(move |block| (*block, neighbours.sources[*block]));
    all.filter(move |(_, rank)| *rank != MPI_PROC_NULL && *rank != me as i32)
        .map(|(block, rank)| (block, rank as usize))
}

/// Writes a line about each block that goes to another rank than `me`, and behind the lines those blocks for which
/// `elsewhere` names no place. `elsewhere` learns whether there is room for the block, and which it is.
///
/// # Errors
/// Those of `elsewhere`.
pub(crate) fn write_blocks(
    area: &mut [u8],
    (neighbours, me): (&Neighbours, usize),
    blocks: &Blocks,
    mut elsewhere: impl FnMut(usize, &Region, bool) -> Result<Option<u64>>,
) -> Result<()> {
    let mut used = line_bytes(destinations(neighbours, me).count());
    for (line, (block, rank)) in destinations(neighbours, me).enumerate() {
        let region = blocks.region(block);
        let len = region.len();
        let fits = len <= area.len().saturating_sub(used);
        let place = match elsewhere(block, &region, fits)? {
            Some(place) => place,
            None if len == 0 => 0,
            None => {
                read(&region, &mut area[used..][..len]);
                let next = used + aligned(len);
                std::mem::replace(&mut used, next) as u64
            }
        };
        write_block_line(area, line, place, len, rank);
    }
    Ok(())
}

/// What the source of a block has contributed for it. `is_whole`: it has the same for all its destinations. `len`: the
/// length of the block here.
///
/// # Errors
/// Ranks disagree about lengths, or about who sends to whom; nonsense.
pub(crate) fn block_of(
    (neighbours, me): (&Neighbours, usize),
    block: usize,
    found: Found,
    is_whole: bool,
    len: usize,
) -> Result<Found> {
    let source = neighbours.sources[block] as usize;
    match found.place {
        Location::InRounds | Location::Nowhere => Ok(found),
        _ if is_whole => Ok(found),
        Location::InBlocks(lines) => {
            let found = lines.find(source, me, neighbours.before[block])?;
            found.ok_or_else(|| not_sent(source, me))
        }
        _ => match neighbours.sent_as.get(block) {
            Some(place) => part(source, found, *place, len),
            None if found.len == 0 => Err(not_sent(source, me)),
            None => Err(nonsense(source)),
        },
    }
}

/// The part of what was contributed that is at this place, and has this length.
fn part(source: usize, found: Found, place: Place, len: usize) -> Result<Found> {
    if place.of.checked_mul(len) != Some(found.len) {
        return Err(mismatch(source, found.len / place.of.max(1), len));
    }
    let offset = place.block * len;
    let place = match found.place {
        Location::Here(start) => Location::Here(start.wrapping_add(offset)),
        Location::There { address } => Location::There { address: address.wrapping_add(offset as u64) },
        _ => return Err(nonsense(source)),
    };
    Ok(Found { len, place })
}

#[cold]
fn not_sent(source: usize, me: usize) -> Error {
    let detail = format!(
        "this process receives from rank {source} more often than that one sends to rank {me}: the sources and \
         destinations that the processes gave for the graph do not match"
    );
    Error::new(MPI_ERR_TOPOLOGY, detail)
}
