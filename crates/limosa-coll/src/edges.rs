//! The blocks of an exchange with neighbours: the receiver of each block, and the block for this rank in a
//! contribution, as described by the note ([`crate::notes`]).

use limosa_mpi::consts::{MPI_ERR_TOPOLOGY, MPI_PROC_NULL};
use limosa_mpi::error::{Error, Result};
use limosa_mpi::topo::{Neighbours, SentBlock};
use limosa_p2p::memory::Region;

use super::buffer::Blocks;
use super::memory::read;
use super::notes::{BLOCK_LINE, Location, PostedBytes, nonsense, write_block_line};
use super::schedule::mismatch;

/// Alignment, in bytes, of blocks behind a table.
pub(crate) const ALIGNED: usize = 16;

/// Returns the bytes of the table of so many blocks.
pub(crate) fn line_bytes(blocks: usize) -> usize {
    (blocks * BLOCK_LINE).next_multiple_of(ALIGNED)
}

/// Returns the bytes that a block takes behind the table.
pub(crate) fn aligned(len: usize) -> usize {
    len.checked_next_multiple_of(ALIGNED).unwrap_or(usize::MAX)
}

/// Returns the blocks for other ranks than `me`, each with its receiver.
pub(crate) fn destinations(neighbours: &Neighbours, me: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = neighbours.destinations.iter().enumerate();
    all.filter(move |(_, rank)| **rank != MPI_PROC_NULL && **rank != me as i32)
        .map(|(block, rank)| (block, *rank as usize))
}

/// Returns the blocks from other ranks than `me`, each with its sender; those of one sender in the order in which it
/// sends.
pub(crate) fn sources(neighbours: &Neighbours, me: usize) -> impl Iterator<Item = (usize, usize)> {
    let all = neighbours.order.iter().map(move |block| (*block, neighbours.sources[*block]));
    all.filter(move |(_, rank)| *rank != MPI_PROC_NULL && *rank != me as i32)
        .map(|(block, rank)| (block, rank as usize))
}

/// Writes a line about each block for another rank than `me`, and behind the lines the blocks for which `elsewhere`
/// returns no place. `elsewhere` is told whether there is room for the block, and its region.
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

/// Finds the block that its source has contributed. `is_whole`: the source has the same for all its destinations.
/// `len`: the length of the block here.
///
/// # Errors
/// Ranks disagree about lengths, or about their neighbours; an invalid note.
pub(crate) fn block_of(
    (neighbours, me): (&Neighbours, usize),
    block: usize,
    found: PostedBytes,
    is_whole: bool,
    len: usize,
) -> Result<PostedBytes> {
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

/// Returns the part of a contribution at this place and of this length.
fn part(source: usize, found: PostedBytes, place: SentBlock, len: usize) -> Result<PostedBytes> {
    if place.of.checked_mul(len) != Some(found.len) {
        return Err(mismatch(source, found.len / place.of.max(1), len));
    }
    let offset = place.block * len;
    let place = match found.place {
        Location::Here(start) => Location::Here(start.wrapping_add(offset)),
        Location::There { address } => Location::There { address: address.wrapping_add(offset as u64) },
        _ => return Err(nonsense(source)),
    };
    Ok(PostedBytes { len, place })
}

#[cold]
fn not_sent(source: usize, me: usize) -> Error {
    let detail = format!(
        "this process receives from rank {source} more often than that one sends to rank {me}: the sources and \
         destinations that the processes gave for the graph do not match"
    );
    Error::new(MPI_ERR_TOPOLOGY, detail)
}
