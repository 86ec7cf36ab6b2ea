//! Lent buffers: bytes that are too many for a mailbox stay in the memory of the rank that has them, and others read
//! them there.
//!
//! What does not lie in one block is copied into one, and so is what others are going to overwrite. A rank that lends
//! is done when all who read there have finished the operation. If that takes long it asks them to
//! ([`BackgroundOp::start`](super::BackgroundOp::start) sets an alarm), because they may have nothing else to do in the
//! library. While a thread of its own has just begun to wait, it spares them.

use std::ops::Range;

use limosa_base::clock;
use limosa_base::slots::BODY_BYTES;
use limosa_p2p::memory::Region;
use limosa_p2p::{Engine, Peer};

use super::neighbour_blocks::SentBlocks;
use super::storage::Content;
use super::{Mailboxes, Pending};
use crate::access::Access;
use crate::buffer::Blocks;
use crate::kind::Signed;
use crate::memory::Scratch;
use crate::notes::{LINE, Note, Notes, write_table};
use crate::reducer::Reducer;
use crate::schedule::Temporary;
use limosa_mpi::error::Result;

/// Bytes of what is borrowed at once if it does not go to one block.
const CHUNK_BYTES: usize = 64 << 10;

/// How long to wait for another member to join the job, to see whether its memory can be read.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Whether the memory of the other members can be read, as far as can be known. The members are processes of one job,
/// so that what holds for one of them holds for all; at least one must have joined.
pub(super) fn works(engine: &Engine, peers: &[Peer], me: usize) -> bool {
    let joined =
        || peers.iter().enumerate().filter(|(rank, peer)| *rank != me && engine.expect_host_memory().pid(**peer) != 0);
    let end = clock::now_ns() + PATIENCE_NS;
    while joined().next().is_none() && clock::now_ns() < end {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    joined().next().is_some() && joined().all(|(_, peer)| engine.expect_peer_memory().can_access(*peer))
}

/// What a rank lends.
pub(crate) struct LentBuffer {
    what: What,
    /// Room for what is copied.
    copies: Option<Temporary>,
}

enum What {
    /// The same for all who want it.
    Block { region: Region, copy: bool },
    /// A part for each rank.
    Parts { blocks: Blocks, copy_all: bool },
    /// Blocks for neighbours, with lines about them: in the mailboxes, or in front of the copies if they do not fit.
    Blocks { sent: SentBlocks, has_lent_lines: bool },
}

// SAFETY: the addresses are those of memory that the lent buffer owns, and of buffers that the program leaves to the
// operation until it has ended.
unsafe impl Send for LentBuffer {}
// SAFETY: as above; the copies are made by one thread, before anybody is told where they are.
unsafe impl Sync for LentBuffer {}

impl LentBuffer {
    /// The same for all; with `copy` the rank itself writes to its place meanwhile.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn of_block(region: Region, copy: bool) -> Result<LentBuffer> {
        let copied = if region.as_contiguous().is_some() && !copy { 0 } else { region.len() };
        LentBuffer::new(What::Block { region, copy }, copied)
    }

    /// Parts for others than rank `me`, whose places others write to if `in_place`.
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

    /// Blocks for neighbours, with lines about them, where at most so many bytes can be left in the mailboxes.
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

    /// For a block: makes the copy, if there is to be one. Gives what [`LentBuffer::start`] does.
    pub(super) fn prepare(&self) -> *mut u8 {
        if let What::Block { region, copy } = &self.what {
            self.place(region, *copy, &mut 0);
        }
        self.start()
    }

    /// Where a block is that others read: in its place, or copied.
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

    /// Bytes that are left in the mailboxes to say where the lent bytes are.
    pub(super) fn note_bytes(&self, size: usize) -> usize {
        match &self.what {
            What::Block { .. } | What::Blocks { has_lent_lines: true, .. } => 0,
            // In a slot, however short.
            What::Parts { .. } => (size * LINE).max(BODY_BYTES + 1),
            What::Blocks { sent, .. } => sent.line_bytes().max(BODY_BYTES + 1),
        }
    }

    /// Makes the copies and says where everything is. Whoever calls has this to itself, and the copies of an earlier
    /// time are not in use.
    pub(super) fn post(&self, mailboxes: &Mailboxes, pending: &mut Pending, number: u64, call: Signed) {
        match &self.what {
            What::Block { region, copy } => {
                let address = self.place(region, *copy, &mut 0);
                mailboxes.post(number, call, &Note::of_address(region.len(), address));
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

    /// As [`LentBuffer::post`], of blocks for neighbours.
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
            // SAFETY: the copies begin with room for the lines, and nobody reads them before the note below.
            write(unsafe { std::slice::from_raw_parts_mut(start, lines) });
            mailboxes.post(id.0, id.1, &Note::of_lent_blocks(start as u64, sent.count()));
        } else {
            mailboxes.leave(pending, id, Content::Blocks { count: sent.count() }, lines.max(BODY_BYTES + 1), write);
        }
    }

    /// Where others can read a region: where it is, or in a copy, of which so many bytes are used.
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
            // Without copies all are empty.
            _ => 0,
        }
    }
}

/// Reads as many bytes as the region has from a rank's memory, where that lends them.
///
/// # Errors
/// That the memory cannot be accessed, and `MPI_ERR_NO_MEM`.
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

/// Combines parts of operands that ranks have lent at these addresses, by pieces that stay in the cache. `check` says
/// whether a rank's operand was still lent after it was read.
///
/// # Errors
/// That the memory cannot be accessed, those of `check` and of the operation, and `MPI_ERR_NO_MEM`.
///
/// # Safety
/// The part must lie within the operands; `into` must have room for it and be used by nobody else.
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
                    std::ptr::copy_nonoverlapping(from, into.add(offset), len);
                } else {
                    reducer.combine(from, into.add(offset), len)?;
                }
            }
        }
    }
    Ok(())
}
