//! Notes in the slots: posting them, with what they speak of.
//!
//! The tag of a note says which operation its writer is in, and in which form it has what it contributes:
//!
//! | form | where the bytes are | words of the note |
//! |---|---|---|
//! | 0 to 56 | in the note: so many bytes | |
//! | `SLOT` | in the slot | length |
//! | `RING` | on the writer's ring buffer | length, where in the ring buffer |
//! | `ADDRESS` | in the writer's memory | length, address, address of the result |
//! | `TABLE` | per rank: a line in the slot, or in an area in the ring buffer, says where and how many | length of that area, or 0; where in the ring buffer |
//! | `ROUNDS` | in the round buffers, round by round | length |
//! | `NOTHING` | nowhere: the writer takes no further part | |
//!
//! A line of a table has an address and a length; an address below the length of the slot, or of the area, is a place in it.

use limosa_base::slots::{BODY_BYTES, Body, MAX_STEPS, NOTES, Progress};
use limosa_p2p::memory::Region;

use super::call::{Area, SharedCall};
use super::memory::{Flat, read};
use super::posted::PostedLocation;
use crate::buffer::Blocks;
use crate::kind::Kind;
use limosa_mpi::error::Result;

pub(super) const SLOT: u8 = 0xff;
pub(super) const ADDRESS: u8 = 0xfe;
pub(super) const TABLE: u8 = 0xfd;
pub(super) const NOTHING: u8 = 0xfc;
pub(super) const ROUNDS: u8 = 0xfb;
pub(super) const RING: u8 = 0xfa;

/// Bytes of a line of a table.
pub(super) const LINE: usize = 16;

/// Parts begin on cache lines.
const ALIGNED: usize = 64;

/// No words.
const EMPTY: Body = [0; BODY_BYTES / 8];

/// What must stay as it is until all ranks have finished the call.
#[must_use]
pub(super) struct Kept(Vec<(usize, Flat)>);

impl Kept {
    /// For which rank what is kept.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(usize, Flat)> {
        self.0.iter()
    }
}

impl SharedCall<'_> {
    #[inline]
    fn post(&self, form: u8, body: &Body) {
        self.group.slots.post(self.number(), tag(self.kind, form), body);
        self.group.tell();
    }

    /// Posts a note without bytes.
    #[inline]
    pub(super) fn sign(&self) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(0, &EMPTY);
        Ok(())
    }

    /// Says that this rank takes no further part, to those who wait for its note or for what it does in the round buffers.
    pub(super) fn decline(&self) -> Result<()> {
        self.make_room(NOTES)?;
        self.advance(Progress::new(self.number(), MAX_STEPS));
        self.post(NOTHING, &EMPTY);
        Ok(())
    }

    /// Says that bytes come through the round buffers.
    pub(super) fn announce(&self, len: usize) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(ROUNDS, &[len as u64, 0, 0, 0, 0, 0, 0]);
        Ok(())
    }

    /// Contributes bytes: puts those of the region in the slots if there are few enough, or leaves what is returned where it is until all ranks have
    /// finished the call. With `copy` the region may be written to before that.
    #[inline]
    pub(super) fn contribute(&self, region: &Region, copy: bool) -> Result<Option<Flat>> {
        let len = region.len();
        if len <= self.most_put() && self.lay_out(len, len, |place| read(region, place))? {
            return Ok(None);
        }
        let flat = if copy { Flat::copied(region)? } else { Flat::packed(region)? };
        self.offer(len, flat.start(), std::ptr::null())?;
        Ok(Some(flat))
    }

    /// Contributes so many bytes, which `fill` writes, as [`SharedCall::contribute`] does; returns where they are, readable until this rank finishes the
    /// call. If `fill` fails, this rank declines.
    pub(super) fn contribute_filled(&self, len: usize, fill: impl FnOnce(*mut u8) -> Result<()>) -> Result<(*const u8, Option<Flat>)> {
        let fill = |start| match fill(start) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.decline()?;
                Err(error)
            }
        };
        if len <= BODY_BYTES {
            self.make_room(NOTES)?;
            let mut body = [0u64; BODY_BYTES / 8];
            fill((&raw mut body).cast())?;
            self.post(len as u8, &body);
            return Ok((self.group.slots.body_of(self.me(), self.number()).cast(), None));
        }
        if let Some(area) = self.own_area(len)? {
            fill(area.start)?;
            self.make_room(NOTES)?;
            self.post_area(len, &area);
            return Ok((area.start, None));
        }
        let flat = Flat::temporary(len)?;
        fill(flat.start())?;
        self.offer(len, flat.start(), std::ptr::null())?;
        Ok((flat.start(), Some(flat)))
    }

    /// Says that there are `len` bytes in this rank's area.
    fn post_area(&self, len: usize, area: &Area) {
        match area.on_ring {
            None => self.post(SLOT, &[len as u64, 0, 0, 0, 0, 0, 0]),
            Some(offset) => self.post(RING, &[len as u64, offset as u64, 0, 0, 0, 0, 0]),
        }
    }

    /// Says where bytes are in this process's memory, and where their result is wanted.
    pub(super) fn offer(&self, len: usize, start: *const u8, result: *const u8) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(ADDRESS, &[len as u64, start as u64, result as u64, 0, 0, 0, 0]);
        Ok(())
    }

    /// Puts `all` bytes in the slots, which `fill` writes, and says that there are `len`. False, and nothing done, if there is no room for so many.
    #[inline]
    fn lay_out(&self, len: usize, all: usize, fill: impl Fn(&mut [u8])) -> Result<bool> {
        if all <= BODY_BYTES {
            self.make_room(NOTES)?;
            let mut body = [0u64; BODY_BYTES / 8];
            // SAFETY: the bytes of an array of integers; any may be written to it.
            fill(unsafe { std::slice::from_raw_parts_mut((&raw mut body).cast::<u8>(), all) });
            self.post(len as u8, &body);
            return Ok(true);
        }
        let Some(area) = self.own_area(all)? else { return Ok(false) };
        self.make_room(NOTES)?;
        // SAFETY: the area is this rank's, has this many bytes, and nobody reads it before the note below.
        fill(unsafe { std::slice::from_raw_parts_mut(area.start, all) });
        self.post_area(len, &area);
        Ok(true)
    }

    /// Contributes a part for each rank; at least the table of the parts fits a slot.
    ///
    /// With `copy` the others are copied, so that their memory may be written to at once.
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
                self.lay_out(len, all, |place| (0..size).for_each(|rank| read(&parts.region(rank), &mut place[rank * len..][..len])))?;
                return Ok(Kept(Vec::new()));
            }
        }
        // Where many bytes are laid out, this rank's own are not.
        let table = (size * LINE).next_multiple_of(ALIGNED);
        let aligned = |rank: usize| parts.bytes(rank).checked_next_multiple_of(ALIGNED).unwrap_or(usize::MAX);
        let wanted = (0..size).filter(|rank| *rank != me).map(aligned).fold(table, usize::saturating_add);
        let fitting = if wanted <= self.most_put().saturating_add(table) { self.own_area(wanted)? } else { None };
        let area = match fitting {
            Some(area) => area,
            None => self.own_slot()?,
        };
        self.make_room(NOTES)?;
        // SAFETY: the area is this rank's, and nobody reads it before the note below.
        let slot = unsafe { std::slice::from_raw_parts_mut(area.start, area.bytes) };
        let mut used = table;
        let mut kept = Vec::new();
        for rank in (0..size).filter(|rank| *rank != me) {
            let region = parts.region(rank);
            let len = region.len();
            let address = if len <= slot.len().saturating_sub(used) {
                let place = used;
                region.read(0, &mut slot[place..place + len]);
                used += len.next_multiple_of(ALIGNED);
                place as u64
            } else {
                let flat = if copy { Flat::copied(&region)? } else { Flat::packed(&region)? };
                let address = flat.start() as u64;
                kept.push((rank, flat));
                address
            };
            slot[rank * LINE..][..8].copy_from_slice(&address.to_ne_bytes());
            slot[rank * LINE + 8..][..8].copy_from_slice(&(len as u64).to_ne_bytes());
        }
        let (bytes, offset) = area.on_ring.map_or((0, 0), |offset| (area.bytes as u64, offset as u64));
        self.post(TABLE, &[bytes, offset, 0, 0, 0, 0, 0]);
        Ok(Kept(kept))
    }

    /// Says for each rank where it may write how many bytes: `places[rank]`.
    pub(super) fn offer_places(&self, places: &[(u64, usize)]) -> Result<()> {
        let area = self.own_slot()?;
        assert!(places.len() * LINE <= area.bytes, "a table of {} ranks does not fit a slot", places.len());
        // SAFETY: the area is this rank's, and nobody reads it before the note below.
        let slot = unsafe { std::slice::from_raw_parts_mut(area.start, places.len() * LINE) };
        for (line, (address, len)) in slot.chunks_exact_mut(LINE).zip(places) {
            line[..8].copy_from_slice(&address.to_ne_bytes());
            line[8..].copy_from_slice(&(*len as u64).to_ne_bytes());
        }
        self.post(TABLE, &EMPTY);
        Ok(())
    }

    /// Finishes the call, when whatever was kept for other ranks is not needed any more.
    pub(super) fn settle(&self, kept: &Kept) -> Result<()> {
        if kept.0.is_empty() {
            self.finish();
            return Ok(());
        }
        self.finish_together()
    }

    /// As [`SharedCall::settle`], for what this rank has contributed for all, and after an operation with this outcome.
    #[inline]
    pub(super) fn settle_own(&self, kept: Option<Flat>, outcome: Result<()>) -> Result<()> {
        if kept.is_none() {
            return outcome;
        }
        let together = self.finish_together();
        outcome.and(together)
    }

    // ---- the group's note ------------------------------------------------------------------------------------------

    /// Counts this rank as arrived; true for the last one, who posts the note of the group.
    pub(super) fn arrive(&self) -> Result<bool> {
        self.make_room(NOTES)?;
        Ok(self.group.slots.arrive(self.number()) == self.size() as u64)
    }

    /// Where bytes for all come, if they do not fit the note. The caller has arrived last, after having used its own slot.
    pub(super) fn slot_for_all(&self, len: usize) -> Option<*mut u8> {
        assert!(len <= self.slot_bytes(), "{len} bytes do not fit a slot");
        (len > BODY_BYTES).then(|| self.group.slots.slot_of(self.size(), self.number()))
    }

    /// Says that the slot for all has so many bytes.
    pub(super) fn post_slot_for_all(&self, len: usize) {
        self.post_for_all(SLOT, &[len as u64, 0, 0, 0, 0, 0, 0]);
    }

    /// Posts bytes for all that fit a note.
    pub(super) fn post_bytes_for_all(&self, bytes: &[u8]) {
        let mut body = [0u64; BODY_BYTES / 8];
        // SAFETY: the bytes of an array of integers; any may be written to it.
        let place = unsafe { std::slice::from_raw_parts_mut((&raw mut body).cast::<u8>(), BODY_BYTES) };
        place[..bytes.len()].copy_from_slice(bytes);
        self.post_for_all(bytes.len() as u8, &body);
    }

    /// Says that there is nothing for all, because ranks disagree.
    pub(super) fn speak_for_all_of_failure(&self) {
        self.post_for_all(NOTHING, &EMPTY);
    }

    /// Tells all where shared memory is.
    pub(super) fn post_place_for_all(&self, place: u64) {
        self.post_for_all(ADDRESS, &[0, place, 0, 0, 0, 0, 0]);
    }

    /// Where shared memory is, once the note of the group is there.
    pub(super) fn place_for_all(&self) -> Result<u64> {
        match self.posted(self.size())?.place {
            PostedLocation::There { address, .. } => Ok(address),
            _ => Err(self.nonsense(0)),
        }
    }

    fn post_for_all(&self, form: u8, body: &Body) {
        self.group.slots.post_for_all(self.number(), tag(self.kind, form), body);
        self.group.tell();
    }
}

/// The tag of a note.
fn tag(kind: Kind, form: u8) -> u16 {
    (kind as u16) << 8 | u16::from(form)
}
