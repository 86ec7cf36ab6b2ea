//! Posting of notes and their areas in the slots ([`crate::notes`] has the forms).

use limosa_base::slots::{BODY_BYTES, MAX_STEPS, NOTES, Progress};
use limosa_p2p::memory::Region;

use super::call::SharedCall;
use crate::buffer::Blocks;
use crate::memory::{Flat, read};
use crate::notes::{Area, Ends, LINE, Location, Notes, SlotNote, nonsense, write_line, write_table};
use limosa_mpi::error::Result;

/// Alignment of parts in bytes: a cache line.
const ALIGNED: usize = 64;

/// Memory that must stay unchanged until all ranks have finished the call.
#[must_use]
pub(super) struct Kept(Vec<KeptPart>);

/// A part that stays in this rank's memory.
pub(super) struct KeptPart {
    /// The rank that reads it.
    pub(super) of: usize,
    pub(super) flat: Flat,
    pub(super) len: usize,
}

impl Kept {
    pub(super) fn iter(&self) -> impl Iterator<Item = &KeptPart> {
        self.0.iter()
    }
}

impl SharedCall<'_> {
    #[inline(always)]
    pub(super) fn post(&self, note: &SlotNote) {
        self.group.post(self.number(), self.signed(), note);
        self.group.tell();
    }

    /// Posts a note without bytes.
    #[inline]
    pub(super) fn sign(&self) -> Result<()> {
        self.make_room(NOTES)?;
        self.group.post_bytes(self.number(), self.signed(), [0, 0], |_| ());
        self.group.tell();
        Ok(())
    }

    /// Announces that this rank takes no further part, to ranks that wait for its note or for its steps in the round
    /// buffers.
    pub(super) fn decline(&self) -> Result<()> {
        if self.has_given_up() {
            // They are told the reason, which a note would hide.
            return Ok(());
        }
        self.make_room(NOTES)?;
        self.advance(Progress::new(self.number(), MAX_STEPS));
        self.post(&SlotNote::of_nothing());
        Ok(())
    }

    /// Announces that bytes come through the round buffers.
    pub(super) fn announce(&self, len: usize) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(&SlotNote::of_rounds(len));
        Ok(())
    }

    /// Contributes the bytes of a region: in the slots if they fit, otherwise in the returned memory, which must stay
    /// unchanged until all ranks have finished the call. With `copy` the region may be overwritten before that.
    #[inline]
    pub(super) fn contribute(&self, region: &Region, copy: bool) -> Result<Option<Flat>> {
        let len = region.len();
        if self.puts(len) && self.lay_out(len, len, |place| read(region, place))? {
            return Ok(None);
        }
        let flat = if copy { Flat::copied(region)? } else { Flat::packed(region)? };
        self.offer(len, flat.start())?;
        Ok(Some(flat))
    }

    /// Contributes `len` bytes, which `fill` writes, as [`SharedCall::contribute`] does; returns their address,
    /// readable until this rank finishes the call. If `fill` fails, this rank declines.
    pub(super) fn contribute_filled(
        &self,
        len: usize,
        fill: impl FnOnce(*mut u8) -> Result<()>,
    ) -> Result<(*const u8, Option<Flat>)> {
        let fill = |start| match fill(start) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.decline()?;
                Err(error)
            }
        };
        if len <= BODY_BYTES {
            self.make_room(NOTES)?;
            let mut note = SlotNote::of_bytes(len);
            fill(note.bytes())?;
            self.post(&note);
            return Ok((self.group.slots.body_of(self.me(), self.number()).cast(), None));
        }
        if let Some(area) = self.own_area(len)? {
            fill(area.start)?;
            self.make_room(NOTES)?;
            self.post(&SlotNote::of_area(len, &area));
            return Ok((area.start, None));
        }
        let flat = Flat::temporary(len)?;
        fill(flat.start())?;
        self.offer(len, flat.start())?;
        Ok((flat.start(), Some(flat)))
    }

    /// Posts the address of bytes in this process's memory.
    pub(super) fn offer(&self, len: usize, start: *const u8) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(&SlotNote::of_address(len, start as u64));
        Ok(())
    }

    /// Posts the addresses of an operand in this process's memory and of its result.
    pub(super) fn offer_operand(&self, len: usize, ends: Ends, shape: u64) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(&SlotNote::of_operand(len, ends, shape));
        Ok(())
    }

    /// Writes `all` bytes by `fill` in the slots, and posts a note of `len` bytes. Returns false, with nothing done, if
    /// there is no room.
    #[inline]
    pub(super) fn lay_out(&self, len: usize, all: usize, fill: impl Fn(&mut [u8])) -> Result<bool> {
        if all <= BODY_BYTES {
            self.make_room(NOTES)?;
            self.group.post_bytes(self.number(), self.signed(), [len, all], fill);
            self.group.tell();
            return Ok(true);
        }
        let Some(area) = self.own_area(all)? else { return Ok(false) };
        self.make_room(NOTES)?;
        // SAFETY: the area is this rank's, and no rank reads it before the note below.
        fill(unsafe { area.first(all) });
        self.post(&SlotNote::of_area(len, &area));
        Ok(true)
    }

    /// Contributes a part for each rank; at least the table of the parts fits a slot.
    ///
    /// With `copy` parts outside the slots are copied, so that their memory may be overwritten at once.
    pub(super) fn contribute_parts(&self, parts: &Blocks, copy: bool) -> Result<Kept> {
        let (size, me) = (self.size(), self.me());
        let len = parts.bytes(0);
        let all = len.saturating_mul(size);
        if all <= self.slot_bytes() {
            if parts.are_even() {
                let whole = parts.run(0, size).region();
                self.lay_out(len, all, |place| read(&whole, place))?;
                return Ok(Kept(Vec::new()));
            }
            if (1..size).all(|rank| parts.bytes(rank) == len) {
                self.lay_out(len, all, |place| {
                    (0..size).for_each(|rank| read(&parts.region(rank), &mut place[rank * len..][..len]))
                })?;
                return Ok(Kept(Vec::new()));
            }
        }
        // Where many bytes are laid out, this rank's own part is omitted.
        let table = (size * LINE).next_multiple_of(ALIGNED);
        let aligned = |rank: usize| parts.bytes(rank).checked_next_multiple_of(ALIGNED).unwrap_or(usize::MAX);
        let wanted = (0..size).filter(|rank| *rank != me).map(aligned).fold(table, usize::saturating_add);
        let fitting = if self.puts(wanted - table) { self.own_area(wanted)? } else { None };
        let area = match fitting {
            Some(area) => area,
            None => self.own_slot()?,
        };
        self.make_room(NOTES)?;
        let mut kept = Vec::new();
        // SAFETY: the area is this rank's, and no rank reads it before the note below.
        write_table(unsafe { area.first(area.bytes) }, parts, [size, me], ALIGNED, |rank, region, fits| {
            if fits {
                return Ok(None);
            }
            let flat = if copy { Flat::copied(region)? } else { Flat::packed(region)? };
            let address = flat.start() as u64;
            kept.push(KeptPart { of: rank, flat, len: region.len() });
            Ok(Some(address))
        })?;
        self.post(&SlotNote::of_table(&area));
        Ok(Kept(kept))
    }

    /// Offers each rank memory to write to, with its length, if it gets any: `places[rank]`.
    pub(super) fn offer_places(&self, places: &[Option<(u64, usize)>]) -> Result<()> {
        let area = Area { bytes: places.len() * LINE, ..self.own_slot()? };
        // SAFETY: the area is this rank's, and no rank reads it before the note below.
        let table = unsafe { area.first(area.bytes) };
        for (rank, place) in places.iter().enumerate() {
            let (address, len) = place.unwrap_or((0, 0));
            write_line(table, rank, address, len);
        }
        self.post(&SlotNote::of_table(&area));
        Ok(())
    }

    /// Finishes the call, when the memory kept for other ranks is no longer needed.
    pub(super) fn settle(&self, kept: &Kept) -> Result<()> {
        if kept.0.is_empty() {
            self.finish();
            return Ok(());
        }
        self.finish_together()
    }

    /// As [`SharedCall::settle`], for this rank's contribution to all, and after an operation with this outcome.
    #[inline]
    pub(super) fn settle_own(&self, kept: Option<Flat>, outcome: Result<()>) -> Result<()> {
        if kept.is_none() {
            return outcome;
        }
        let together = self.finish_together();
        outcome.and(together)
    }

    // ---- the group's note ------------------------------------------------------------------------------------------

    /// Counts this rank as arrived; true for the last rank, which posts the note of the group.
    pub(super) fn arrive(&self) -> Result<bool> {
        self.make_room(NOTES)?;
        Ok(self.group.slots.arrive(self.number()) == self.size() as u64)
    }

    /// Posts the note of the group.
    pub(super) fn post_for_all(&self, note: &SlotNote) {
        self.group.post_for_all(self.number(), self.signed(), note);
        self.group.tell();
    }

    /// Posts a note of the group without bytes, because ranks disagree.
    pub(super) fn speak_for_all_of_failure(&self) {
        self.post_for_all(&SlotNote::of_nothing());
    }

    /// Posts the place of shared memory in the note of the group.
    pub(super) fn post_place_for_all(&self, place: u64) {
        self.post_for_all(&SlotNote::of_address(0, place));
    }

    /// Returns the place of shared memory, once the note of the group is posted.
    pub(super) fn place_for_all(&self) -> Result<u64> {
        match self.posted(self.size())?.place {
            Location::There { address } => Ok(address),
            _ => Err(nonsense(0)),
        }
    }
}
