//! Where the bytes of a set of mailboxes lie.
//!
//! The tag of a note says which operation its writer is in, and in which form it leaves what it contributes:
//!
//! | form | where the bytes are | words of the note |
//! |---|---|---|
//! | 0 to 56 | in the note: so many bytes, or so many for each rank | |
//! | `BLOCK` | in a slot: bytes for all, or as many for each rank | length, slot |
//! | `TABLE` | in a slot: per rank a line, offset and length; then the bytes | length of all, slot |
//! | `LENT_BLOCK` | in the writer's memory | length, address |
//! | `LENT_PARTS` | in the writer's memory; in a slot per rank a line, address and length | 0, slot |
//! | `NOTHING` | nowhere: the ranks do not agree | |
//!
//! Slot 0 is the one that belongs to the operation's number; the others are the large slots, from 1. A line with the offset [`BY_MESSAGE`] says that the
//! bytes go by message.

use limosa_base::slots::{BODY_BYTES, Body, Bytes, NOTES, RoundBuffers, SLOTS};
use limosa_p2p::memory::Region;
use limosa_p2p::{Engine, Peer};

use super::{LARGE_BYTES, Mailboxes, Pending, lent};
use crate::kind::{Kind, name_of};
use limosa_mpi::error::{Error, Result};

pub(super) const BLOCK: u8 = 0xff;
pub(super) const TABLE: u8 = 0xfe;
pub(super) const NOTHING: u8 = 0xfd;
const LENT_BLOCK: u8 = 0xfc;
const LENT_PARTS: u8 = 0xfb;

/// Bytes of a line of a table.
pub(super) const LINE: usize = 8;
/// Bytes of a line about what is lent.
pub(crate) const LENT_LINE: usize = 16;
/// The bytes of this line go by message.
pub(super) const BY_MESSAGE: u32 = u32::MAX;

/// Large slots of a rank.
pub(super) const LARGE_SLOTS: usize = 2;

/// The large slots of all ranks.
pub(super) struct Large {
    memory: RoundBuffers,
    pub(super) slot_bytes: usize,
    /// All members can read each other's memory.
    pub(super) can_lend: bool,
}

impl Large {
    /// The large slots of this name; the first one to come says how large they are.
    pub(super) fn join(engine: &Engine, name: u64, peers: &[Peer], me: usize, slot_bytes: usize) -> Option<Large> {
        const CAN_LEND: u64 = 1;
        let size = peers.len();
        let can_lend = if lent::works(engine, peers, me) { CAN_LEND } else { 0 };
        let bytes = |slot_bytes| RoundBuffers::bytes(size - 1, LARGE_SLOTS * slot_bytes);
        let memory = engine.expect_host_memory();
        let found = memory.join_area(name, size, || Some((bytes(slot_bytes), (slot_bytes as u64) << 1 | can_lend))).ok()??;
        let slot_bytes = ((found.about >> 1) as usize).min(LARGE_BYTES);
        let memory = memory.map_area::<Bytes>(found.place, bytes(slot_bytes)).ok()?;
        Some(Large { memory: RoundBuffers::new(memory, LARGE_SLOTS * slot_bytes), slot_bytes, can_lend: found.about & CAN_LEND != 0 })
    }

    fn slot_of(&self, rank: usize, slot: usize) -> *mut u8 {
        self.memory.part_of(rank).wrapping_add(slot * self.slot_bytes)
    }
}

/// What a note says.
pub(super) struct Note {
    pub(super) kind: Kind,
    pub(super) form: u8,
    pub(super) len: usize,
    /// Bytes that are left.
    pub(super) all: usize,
}

/// Bytes in storage, found by their note.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) len: usize,
    pub(super) place: Location,
}

/// Where bytes are.
#[derive(Clone, Copy)]
pub(super) enum Location {
    Here(*const u8),
    /// At this address in the memory of the rank that has them.
    There(u64),
    /// They come by message.
    OnTheWay,
}

impl Mailboxes {
    /// How many operations in which a rank leaves so many bytes there can be at a time.
    pub(super) fn depth(&self, bytes: usize) -> u64 {
        if bytes <= BODY_BYTES {
            NOTES
        } else if bytes <= self.slots.slot_bytes() {
            SLOTS
        } else {
            LARGE_SLOTS as u64
        }
    }

    /// The operation that all must have finished before this rank can leave so many bytes in operation `number`.
    pub(super) fn needs_finished(&self, pending: &Pending, number: u64, bytes: usize) -> u64 {
        if bytes <= self.slots.slot_bytes().max(BODY_BYTES) {
            number.saturating_sub(self.depth(bytes))
        } else {
            number.saturating_sub(NOTES).max(pending.large[pending.next_large])
        }
    }

    /// Leaves `all` bytes, which `fill` brings, and says in a note of operation `number` that there are `len`, which is what the form means by that.
    pub(super) fn leave(&self, pending: &mut Pending, number: u64, note: Note, fill: impl FnOnce(&mut [u8])) {
        let Note { kind, mut form, len, all } = note;
        let mut body: Body = Default::default();
        if all <= BODY_BYTES && form == BLOCK {
            form = len as u8;
            // SAFETY: the bytes of an array of integers; any may be written to it.
            fill(unsafe { std::slice::from_raw_parts_mut((&raw mut body).cast::<u8>(), all) });
        } else {
            let me = self.slots.me();
            let (start, slot) = if all <= self.slots.slot_bytes() {
                (self.slots.slot_of(me, number), 0)
            } else {
                let slot = pending.next_large(number);
                (self.large().expect("what does not fit a slot was found to fit a large one").slot_of(me, slot), slot + 1)
            };
            // SAFETY: this rank's slot, of at least so many bytes, which all have finished with that used it before.
            fill(unsafe { std::slice::from_raw_parts_mut(start, all) });
            body[..2].copy_from_slice(&[len as u64, slot as u64]);
        }
        self.slots.post(number, tag(kind, form), &body);
    }

    /// Says where so many bytes are in this process's memory.
    pub(super) fn lend(&self, number: u64, kind: Kind, len: usize, address: u64) {
        self.slots.post(number, tag(kind, LENT_BLOCK), &[len as u64, address, 0, 0, 0, 0, 0]);
    }

    /// Says where bytes for each rank are in this process's memory: `fill` writes a line for each.
    pub(super) fn lend_parts(&self, pending: &mut Pending, number: u64, kind: Kind, fill: impl FnOnce(&mut [u8])) {
        self.leave(pending, number, Note { kind, form: LENT_PARTS, len: 0, all: self.size() * LENT_LINE }, fill);
    }

    /// Posts a note for all on behalf of this rank, which came last: about bytes that it has in its own slot, or `bytes` that fit the note.
    pub(super) fn post_for_all(&self, number: u64, kind: Kind, form: u8, body: &Body) {
        self.slots.post_for_all(number, tag(kind, form), body);
    }

    /// What a rank has left for this one: the whole of it, or `part` of it. The note is there.
    ///
    /// # Errors
    /// The rank is in another operation, has left this one out, or has written nonsense.
    #[inline]
    pub(super) fn find(&self, rank: usize, number: u64, kind: Kind, part: Option<usize>) -> Result<Found> {
        let form = match self.slots.tag_of(rank, number) {
            Some(tag) if tag >> 8 == kind as u16 => tag as u8,
            other => return Err(self.out_of_step(rank, kind, other)),
        };
        let body = self.slots.body_of(rank, number);
        if usize::from(form) <= BODY_BYTES {
            let (len, offset) = (usize::from(form), part.unwrap_or(0) * usize::from(form));
            if offset + len > BODY_BYTES {
                return Err(nonsense(rank));
            }
            return Ok(Found { len, place: Location::Here(body.cast::<u8>().wrapping_add(offset)) });
        }
        self.find_in_slot(rank, number, form, part)
    }

    fn find_in_slot(&self, rank: usize, number: u64, form: u8, part: Option<usize>) -> Result<Found> {
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the operation.
        let [len, slot, ..] = unsafe { *self.slots.body_of(rank, number) };
        if form == LENT_BLOCK && part.is_none() {
            return Ok(Found { len: len as usize, place: Location::There(slot) });
        }
        let (start, room) = match slot {
            0 => (self.slots.slot_of(rank, number), self.slots.slot_bytes() as u64),
            slot if slot <= LARGE_SLOTS as u64 => match self.large() {
                Some(large) => (large.slot_of(rank, slot as usize - 1), large.slot_bytes as u64),
                None => return Err(nonsense(rank)),
            },
            _ => return Err(nonsense(rank)),
        };
        let here = |offset: u64, len: u64| {
            let fits = offset <= room && len <= room - offset;
            if fits {
                Ok(Found { len: len as usize, place: Location::Here(start.wrapping_add(offset as usize)) })
            } else {
                Err(nonsense(rank))
            }
        };
        match (form, part) {
            (BLOCK, None) => here(0, len),
            (BLOCK, Some(part)) => here((part as u64).saturating_mul(len), len),
            (TABLE, Some(part)) => {
                here((part * LINE) as u64, LINE as u64)?;
                // SAFETY: in the slot by the check; any bytes are integers.
                let [offset, len] = unsafe { start.add(part * LINE).cast::<[u32; 2]>().read_unaligned() };
                if offset == BY_MESSAGE {
                    Ok(Found { len: len as usize, place: Location::OnTheWay })
                } else {
                    here(offset.into(), len.into())
                }
            }
            (LENT_PARTS, Some(part)) => {
                here((part * LENT_LINE) as u64, LENT_LINE as u64)?;
                // SAFETY: as above.
                let [address, len] = unsafe { start.add(part * LENT_LINE).cast::<[u64; 2]>().read_unaligned() };
                Ok(Found { len: len as usize, place: Location::There(address) })
            }
            _ => Err(nonsense(rank)),
        }
    }

    /// True if the note for all says that ranks disagree.
    pub(super) fn is_void(&self, number: u64) -> bool {
        self.slots.tag_of(self.size(), number).is_some_and(|tag| tag as u8 == NOTHING)
    }

    /// What the note for all speaks of, which is there.
    pub(super) fn find_for_all(&self, number: u64, kind: Kind) -> Result<Found> {
        if self.slots.tag_of(self.size(), number) != Some(tag(kind, BLOCK)) {
            return self.find(self.size(), number, kind, None);
        }
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the operation.
        let [_, _, rank, ..] = unsafe { *self.slots.body_of(self.size(), number) };
        if rank >= self.size() as u64 {
            return Err(nonsense(self.size()));
        }
        // In the place of what that rank had left.
        self.find(rank as usize, number, kind, None)
    }

    #[cold]
    fn out_of_step(&self, rank: usize, kind: Kind, tag: Option<u16>) -> Error {
        let does = match tag.and_then(|tag| name_of(tag >> 8)) {
            Some(name) => format!("is in the non-blocking or persistent form of {name}"),
            None => "has left this operation out".to_owned(),
        };
        let own = kind.name();
        let detail =
            format!("rank {rank} {does} where this rank is in that of {own}: all ranks must call the same collectives in the same order");
        Error::new(limosa_mpi::consts::MPI_ERR_OTHER, detail)
    }
}

impl Pending {
    /// The large slot to be used next, which is free; it then belongs to operation `number`.
    fn next_large(&mut self, number: u64) -> usize {
        let slot = self.next_large;
        self.large[slot] = number;
        self.next_large = (slot + 1) % LARGE_SLOTS;
        slot
    }
}

/// The tag of a note.
pub(super) fn tag(kind: Kind, form: u8) -> u16 {
    (kind as u16) << 8 | u16::from(form)
}

#[cold]
fn nonsense(rank: usize) -> Error {
    Error::new(limosa_mpi::consts::MPI_ERR_INTERN, format!("rank {rank} has left a note that makes no sense in shared memory"))
}

/// Bytes of a region, to a place in storage.
#[inline]
pub(super) fn put(region: &Region, place: &mut [u8]) {
    match region.as_contiguous() {
        // SAFETY: the region has this many bytes, readable by the promise of its builder, and is not in storage.
        Some(from) if place.len() == region.len() => unsafe { std::ptr::copy_nonoverlapping(from, place.as_mut_ptr(), place.len()) },
        _ => region.read(0, place),
    }
}

/// As many bytes from storage as a region has, to the region.
///
/// # Safety
/// So many bytes must be there.
#[inline]
pub(super) unsafe fn get(start: *const u8, region: &Region) {
    match region.as_contiguous() {
        // SAFETY: the caller's promise, and that of the region's builder.
        Some(to) => unsafe { std::ptr::copy_nonoverlapping(start, to, region.len()) },
        // SAFETY: as above.
        None => region.write(0, unsafe { std::slice::from_raw_parts(start, region.len()) }),
    }
}
