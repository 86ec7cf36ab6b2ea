//! Lent buffers: data that are too long for a mailbox stay in the memory of their rank, and other ranks read them
//! there.
//!
//! Data that are not contiguous are copied to one block, and so are data that other ranks are going to overwrite. A
//! lender is done when all readers have finished the operation. If that takes long, it asks them to finish
//! ([`BackgroundOp::start`](super::BackgroundOp::start) sets an alarm), because they may not call the library for other
//! reasons. It does not ask while a thread of its own process has just begun to wait.

use std::ops::Range;

use limosa_base::copy::copy_here;
use limosa_base::slots::BODY_BYTES;
use limosa_p2p::memory::Region;

use super::neighbour_blocks::SentBlocks;
use super::storage::Content;
use super::{Mailboxes, Pending};
use crate::access::Access;
use crate::buffer::Blocks;
use crate::kind::Signed;
use crate::memory::Scratch;
use crate::notes::{LINE, Notes, SlotNote, write_table};
use crate::reducer::Reducer;
use crate::schedule::Temporary;
use limosa_mpi::error::Result;

/// Bytes read from lent memory at a time if the destination is not contiguous.
const CHUNK_BYTES: usize = 64 << 10;

/// The memory that a rank lends.
pub(crate) struct LentBuffer {
    what: What,
    /// Room for the copies.
    copies: Option<Temporary>,
}

enum What {
    /// A block that is the same for all readers.
    Block { region: Region, copy: bool },
    /// A part for each rank.
    Parts { blocks: Blocks, copy_all: bool },
    /// Blocks for neighbours, with their table: in the mailboxes, or in front of the copies if it does not fit.
    Blocks { sent: SentBlocks, has_lent_lines: bool },
}

// SAFETY: the addresses are those of memory that the lent buffer owns, and of buffers that the program leaves to the
// operation until it has ended.
unsafe impl Send for LentBuffer {}
// SAFETY: as above; the copies are made by one thread, before their address is published.
unsafe impl Sync for LentBuffer {}

impl LentBuffer {
    /// Lends a block to all; with `copy`, because this rank overwrites it meanwhile.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn of_block(region: Region, copy: bool) -> Result<LentBuffer> {
        let copied = if region.as_contiguous().is_some() && !copy { 0 } else { region.len() };
        LentBuffer::new(What::Block { region, copy }, copied)
    }

    /// Lends parts to all ranks but `me`. With `in_place`, other ranks overwrite them.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn of_parts(blocks: Blocks, size: usize, me: usize, in_place: bool) -> Result<LentBuffer> {
        let others = (0..size).filter(|rank| *rank != me).map(|rank| blocks.region(rank));
        let copied = others
            .filter(|region| in_place || region.as_contiguous().is_none())
            .fold(0, |all, region| region.len().saturating_add(all));
        LentBuffer::new(What::Parts { blocks, copy_all: in_place }, copied)
    }

    /// Lends blocks to neighbours, with their table, where at most `most` bytes can be left in the mailboxes.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn of_blocks(sent: SentBlocks, most: usize) -> Result<LentBuffer> {
        let scattered = sent.regions().filter(|region| region.as_contiguous().is_none());
        let has_lent_lines = sent.line_bytes().max(BODY_BYTES + 1) > most;
        let lines = if has_lent_lines { sent.line_bytes() } else { 0 };
        let copied = scattered.fold(lines, |all, region| region.len().saturating_add(all));
        LentBuffer::new(What::Blocks { sent, has_lent_lines }, copied)
    }

    fn new(what: What, copied: usize) -> Result<LentBuffer> {
        let copies = if copied > 0 { Some(Temporary::new(copied)?) } else { None };
        Ok(LentBuffer { what, copies })
    }

    /// Makes the copy of a block if one is needed, and returns the address as [`LentBuffer::start`] does.
    pub(super) fn prepare(&self) -> *mut u8 {
        if let What::Block { region, copy } = &self.what {
            self.place(region, *copy, &mut 0);
        }
        self.start()
    }

    /// Returns the address at which others read a block: its own, or that of the copy.
    pub(super) fn start(&self) -> *mut u8 {
        let own = match &self.what {
            What::Block { region, copy: false } => region.as_contiguous(),
            _ => None,
        };
        own.or(self.copies.as_ref().map(Temporary::start)).unwrap_or(std::ptr::null_mut())
    }

    /// Whether others read copies, of all that is lent or of a part.
    pub(super) fn has_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// Returns the bytes left in the mailboxes to say where the lent bytes are.
    pub(super) fn note_bytes(&self, size: usize) -> usize {
        match &self.what {
            What::Block { .. } | What::Blocks { has_lent_lines: true, .. } => 0,
            // In a slot, however short.
            What::Parts { .. } => (size * LINE).max(BODY_BYTES + 1),
            What::Blocks { sent, .. } => sent.line_bytes().max(BODY_BYTES + 1),
        }
    }

    /// Makes the copies and posts their addresses. The caller has exclusive access, and the copies of an earlier start
    /// are not in use.
    pub(super) fn post(&self, mailboxes: &Mailboxes, pending: &mut Pending, number: u64, call: Signed) {
        match &self.what {
            What::Block { region, copy } => {
                let address = self.place(region, *copy, &mut 0);
                mailboxes.post(number, call, &SlotNote::of_address(region.len(), address));
            }
            What::Parts { blocks, copy_all } => {
                let (size, me) = (mailboxes.size(), mailboxes.slots.me());
                mailboxes.leave(pending, (number, call), Content::Table, size * LINE, |table| {
                    let mut used = 0;
                    let place = |_, region: &Region, _| Ok(Some(self.place(region, *copy_all, &mut used)));
                    write_table(table, blocks, [size, me], 1, place).expect("saying where parts are cannot fail");
                });
            }
            What::Blocks { sent, has_lent_lines } => {
                self.post_blocks(mailboxes, pending, (number, call), (sent, *has_lent_lines));
            }
        }
    }

    /// Posts blocks for neighbours, as [`LentBuffer::post`] does.
    fn post_blocks(
        &self,
        mailboxes: &Mailboxes,
        pending: &mut Pending,
        id: (u64, Signed),
        (sent, has_lent_lines): (&SentBlocks, bool),
    ) {
        let lines = sent.line_bytes();
        let mut used = if has_lent_lines { lines } else { 0 };
        let mut write = |area: &mut [u8]| sent.write(area, |region| Some(self.place(region, false, &mut used)));
        if has_lent_lines {
            let start = self.start();
            // SAFETY: the copies begin with room for the lines, which are read only after the note below.
            write(unsafe { std::slice::from_raw_parts_mut(start, lines) });
            mailboxes.post(id.0, id.1, &SlotNote::of_lent_blocks(start as u64, sent.count()));
        } else {
            mailboxes.leave(pending, id, Content::Blocks { count: sent.count() }, lines.max(BODY_BYTES + 1), write);
        }
    }

    /// Returns the address at which others read a region: its own, or that of a copy. `used` counts the bytes of
    /// copies.
    fn place(&self, region: &Region, copy: bool, used: &mut usize) -> u64 {
        match (region.as_contiguous(), &self.copies) {
            (Some(start), _) if !copy => start as u64,
            (_, Some(copies)) => {
                let start = copies.start().wrapping_add(*used);
                // SAFETY: there is room for all that is copied, in this order.
                region.read(0, unsafe { std::slice::from_raw_parts_mut(start, region.len()) });
                *used += region.len();
                start as u64
            }
            // Without copies, all regions are empty.
            _ => 0,
        }
    }
}

/// Reads as many bytes as the region has from the memory that a rank lends.
///
/// # Errors
/// The memory cannot be accessed; `MPI_ERR_NO_MEM`.
pub(super) fn read_lent(access: &impl Access, rank: usize, address: u64, into: &Region) -> Result<()> {
    if let Some(start) = into.as_contiguous() {
        // SAFETY: the program's buffer, which has this many bytes.
        return unsafe { access.read(rank, address, start, into.len()) };
    }
    let scratch = Scratch::take(CHUNK_BYTES.min(into.len()))?;
    for offset in (0..into.len()).step_by(CHUNK_BYTES) {
        let len = CHUNK_BYTES.min(into.len() - offset);
        // SAFETY: scratch memory of this many bytes, which have a value then.
        unsafe {
            access.read(rank, address.wrapping_add(offset as u64), scratch.start(), len)?;
            into.write(offset, std::slice::from_raw_parts(scratch.start(), len));
        }
    }
    Ok(())
}

/// Combines parts of operands that ranks have lent at these addresses, by pieces that stay in the cache. `check`
/// confirms that a rank's operand was still lent after it was read.
///
/// # Errors
/// The memory cannot be accessed; errors of `check` and of the operation; `MPI_ERR_NO_MEM`.
///
/// # Safety
/// The part must lie within the operands. `into` must have room for it, and no other thread may use it.
pub(super) unsafe fn combine_lent(
    access: &impl Access,
    reducer: &Reducer<'_>,
    addresses: &[u64],
    part: &Range<usize>,
    into: *mut u8,
    check: impl Fn(usize) -> Result<()>,
) -> Result<()> {
    let piece = (CHUNK_BYTES / reducer.element()).max(1) * reducer.element();
    let scratch = Scratch::take(piece)?;
    for offset in (0..part.len()).step_by(piece) {
        let len = piece.min(part.len() - offset);
        for (rank, address) in addresses.iter().enumerate().rev() {
            let address = address.wrapping_add((part.start + offset) as u64);
            let mut from = address as *const u8;
            if rank != access.me() {
                // SAFETY: scratch memory of at least this many bytes.
                unsafe { access.read(rank, address, scratch.start(), len)? };
                check(rank)?;
                from = scratch.start();
            }
            // SAFETY: the piece lies within the bytes that the rank has lent; the rest is the caller's promise.
            unsafe {
                if rank + 1 == addresses.len() {
                    copy_here(from, into.add(offset), len);
                } else {
                    reducer.combine(from, into.add(offset), len)?;
                }
            }
        }
    }
    Ok(())
}
