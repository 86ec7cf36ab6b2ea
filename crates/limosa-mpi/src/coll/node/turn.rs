//! A turn on the stage: one collective operation of one rank, and the notes that it posts and reads.
//!
//! The tag of a note says which operation its writer is in, and in which form it has what it contributes:
//!
//! | form | where the bytes are | words of the note |
//! |---|---|---|
//! | 0 to 56 | in the note: so many bytes | |
//! | `SLOT` | in the slot | length |
//! | `PART` | in the writer's part of the annex | length |
//! | `ADDRESS` | in the writer's memory | length, address, address of the result |
//! | `TABLE` | per rank: a line in the slot, or in the part of the annex, says where and how many | 0: in the slot |
//! | `ROUNDS` | in the annex, round by round | length |
//! | `NOTHING` | nowhere: the writer takes no further part | |
//!
//! A line of a table has an address and a length; an address below the length of the slot, or of the part, is a place in it.

use std::cell::Cell;

use limosa_base::stage::{Annex, Awaited, BODY_BYTES, Body, MAX_STEPS, NOTES, SLOTS, Step};
use limosa_p2p::memory::Region;

use super::memory::{Flat, read, write};
use super::{Node, transfer, wait};
use crate::coll::schedule::mismatch;
use crate::comm::Comm;
use crate::error::{Error, Result};

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // named like the standard's
pub(in crate::coll) enum Kind {
    Barrier = 1,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
}

const NAMES: [&str; 11] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather(v)",
    "MPI_Scatter(v)",
    "MPI_Allgather(v)",
    "MPI_Alltoall(v,w)",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter(_block)",
    "MPI_Scan",
    "MPI_Exscan",
];

const SLOT: u8 = 0xff;
const ADDRESS: u8 = 0xfe;
const TABLE: u8 = 0xfd;
const NOTHING: u8 = 0xfc;
const ROUNDS: u8 = 0xfb;
const PART: u8 = 0xfa;

/// Turns that a half of the annex is in use.
const HALVES: u64 = 2;

/// Bytes of a line of a table.
const LINE: usize = 16;

/// What a rank has contributed: some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    /// How many.
    pub(super) len: usize,
    /// Where.
    pub(super) place: Place,
}

/// Where contributed bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// On the stage; readable until this rank finishes the turn.
    Here(*const u8),
    /// In the memory of the rank that posted the note.
    There {
        /// Their address.
        address: u64,
        /// Where that rank wants its result, if it said so.
        result: u64,
    },
    /// In the annex, as its rounds go by.
    InRounds,
    /// Nowhere.
    Nowhere,
}

/// Memory of a rank on the stage, for one turn.
#[derive(Clone, Copy)]
struct Area {
    start: *mut u8,
    bytes: usize,
    is_slot: bool,
}

/// What must stay as it is until all ranks have finished the turn.
#[must_use]
pub(super) struct Kept(Vec<(usize, Flat)>);

impl Kept {
    /// For which rank what is kept.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(usize, Flat)> {
        self.0.iter()
    }
}

/// One collective operation of this rank.
pub(in crate::coll) struct Turn<'a> {
    pub(super) node: &'a Node,
    pub(super) comm: &'a Comm,
    number: Cell<u64>,
    kind: Kind,
    finished: Cell<bool>,
}

impl<'a> Turn<'a> {
    /// Begins turn `number` of the communicator.
    #[inline]
    pub(in crate::coll) fn begin(node: &'a Node, comm: &'a Comm, number: u64, kind: Kind) -> Turn<'a> {
        let turn = Turn { node, comm, number: Cell::new(number), kind, finished: Cell::new(false) };
        if node.passed() + 1 != number {
            // Collectives in between went by messages, or failed before they began.
            node.pass(number - 1);
        }
        turn
    }

    /// The number of the turn.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        self.number.get()
    }

    /// Ends this turn and begins another one, which all ranks do that are in it: for beginning anew in another way.
    pub(super) fn renew(&self) {
        self.finish();
        self.number.set(self.comm.coll_seq.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
        self.finished.set(false);
    }

    /// This rank.
    #[inline]
    pub(super) fn me(&self) -> usize {
        self.comm.rank() as usize
    }

    /// Number of ranks.
    #[inline]
    pub(super) fn size(&self) -> usize {
        self.node.size()
    }

    /// The rank `distance` behind this one.
    pub(super) fn after(&self, distance: usize) -> usize {
        let rank = self.me() + distance;
        if rank < self.size() { rank } else { rank - self.size() }
    }

    /// Bytes of a slot.
    pub(super) fn slot_bytes(&self) -> usize {
        self.node.stage.slot_bytes()
    }

    /// Most bytes that a rank can put on the stage at once.
    #[inline]
    pub(super) fn stage_bytes(&self) -> usize {
        match self.annex() {
            Some(annex) if self.size() > 2 => annex.part_bytes() / 2,
            _ => self.slot_bytes(),
        }
    }

    #[inline]
    fn annex(&self) -> Option<&Annex> {
        self.node.annex.get()?.as_ref()
    }

    /// Where the part of a rank, or of the group, is in this turn: half of what it has in all, in turns.
    pub(super) fn part_of(&self, annex: &Annex, rank: usize) -> *mut u8 {
        annex.part_of(rank).wrapping_add((self.number() % HALVES) as usize * (annex.part_bytes() / HALVES as usize))
    }

    /// The slot of a rank, or its part of the annex.
    fn area_of(&self, rank: usize, is_slot: bool) -> Option<Area> {
        if is_slot {
            return Some(Area { start: self.node.stage.slot_of(rank, self.number()), bytes: self.slot_bytes(), is_slot });
        }
        let annex = self.annex()?;
        Some(Area { start: self.part_of(annex, rank), bytes: annex.part_bytes() / HALVES as usize, is_slot })
    }

    /// This rank's area for so many bytes, or the largest one, with room made in it.
    fn own_area(&self, len: usize) -> Result<Area> {
        let is_slot = len <= self.slot_bytes() || self.size() <= 2;
        match self.area_of(self.me(), is_slot) {
            Some(area) => {
                self.make_room(if is_slot { SLOTS } else { HALVES })?;
                Ok(area)
            }
            None => self.own_area(0),
        }
    }

    /// This rank reads no notes or slots of the turn any more.
    #[inline]
    pub(super) fn finish(&self) {
        if !self.finished.replace(true) {
            self.node.pass(self.number());
        }
    }

    // ---- waiting ---------------------------------------------------------------------------------------------------

    #[inline]
    pub(super) fn wait(&self, awaited: Awaited) -> Result<()> {
        wait::wait(self.node, self.comm, awaited)
    }

    /// Waits for a rank's note, or for that of the group, whose number is the number of ranks.
    #[inline]
    pub(super) fn wait_for(&self, rank: usize) -> Result<()> {
        self.wait(Awaited::Note(rank, self.number()))
    }

    /// Waits for the notes of all ranks.
    #[inline]
    pub(super) fn wait_for_all(&self) -> Result<()> {
        self.wait(Awaited::AllNotes(self.number()))?;
        // Who is in this turn has finished the one before.
        self.node.raise_floor(self.number() - 1);
        Ok(())
    }

    /// Finishes the turn and waits until all ranks have.
    pub(super) fn finish_together(&self) -> Result<()> {
        self.finish();
        self.wait(Awaited::AllFinished(self.number()))?;
        self.node.raise_floor(self.number());
        Ok(())
    }

    /// Waits until the note, or with `SLOTS` the slot, of the turn `depth` turns ago is needed by nobody any more.
    #[inline]
    fn make_room(&self, depth: u64) -> Result<()> {
        if self.number() <= self.node.known_floor() + depth { Ok(()) } else { self.make_room_slowly(depth) }
    }

    #[cold]
    fn make_room_slowly(&self, depth: u64) -> Result<()> {
        let needed = self.number() - depth;
        if self.node.stage.least_finished() < needed {
            self.wait(Awaited::AllFinished(needed))?;
        }
        self.node.raise_floor(self.node.stage.least_finished());
        Ok(())
    }

    // ---- posting ---------------------------------------------------------------------------------------------------

    #[inline]
    fn post(&self, form: u8, body: &Body) {
        self.node.stage.post(self.number(), tag(self.kind, form), body);
        self.node.tell();
    }

    /// Posts a note without bytes.
    #[inline]
    pub(super) fn sign(&self) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(0, &[0; BODY_BYTES / 8]);
        Ok(())
    }

    /// Says that this rank takes no further part, to those who wait for its note or for what it does in the annex.
    pub(super) fn decline(&self) -> Result<()> {
        self.make_room(NOTES)?;
        self.advance(Step::new(self.number(), MAX_STEPS));
        self.post(NOTHING, &[0; BODY_BYTES / 8]);
        Ok(())
    }

    /// Waits for a rank's note and declines to take part unless it has as many bytes as this rank expects.
    pub(super) fn agree_with(&self, rank: usize, expected: usize) -> Result<Posted> {
        self.wait_for(rank)?;
        let posted = self.posted(rank).and_then(|posted| self.check(rank, posted, expected));
        if posted.is_err() {
            self.decline()?;
        }
        posted
    }

    /// Waits until this turn's half of the annex is in use no more.
    pub(super) fn make_room_in_annex(&self) -> Result<()> {
        self.make_room(HALVES)
    }

    /// Says that bytes come through the annex.
    pub(super) fn announce(&self, len: usize) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(ROUNDS, &[len as u64, 0, 0, 0, 0, 0, 0]);
        Ok(())
    }

    /// This rank has come to a step.
    pub(super) fn advance(&self, step: Step) {
        self.node.stage.advance(step);
        self.node.tell();
    }

    /// All together have come to a step.
    pub(super) fn advance_all(&self, step: Step) {
        self.node.stage.advance_all(step);
        self.node.tell();
    }

    /// Contributes bytes: those of the region, or what is left where they are until all ranks have finished the turn.
    #[inline]
    pub(super) fn contribute(&self, region: &Region) -> Result<Option<Flat>> {
        if region.len() <= self.slot_bytes() {
            self.lay_out(region.len(), region.len(), |_, place| read(region, place))?;
            return Ok(None);
        }
        let flat = Flat::packed(region)?;
        self.offer(region.len(), flat.start(), std::ptr::null())?;
        Ok(Some(flat))
    }

    /// Says where bytes are in this process's memory, and where their result is wanted.
    pub(super) fn offer(&self, len: usize, start: *const u8, result: *const u8) -> Result<()> {
        self.make_room(NOTES)?;
        self.post(ADDRESS, &[len as u64, start as u64, result as u64, 0, 0, 0, 0]);
        Ok(())
    }

    /// Puts `all` bytes on the stage, where they fit, and says that there are `len`. `fill` gets them in parts of `len` bytes, numbered from 0.
    #[inline]
    fn lay_out(&self, len: usize, all: usize, fill: impl Fn(usize, &mut [u8])) -> Result<()> {
        let parts = |place: &mut [u8]| {
            if len > 0 {
                place.chunks_exact_mut(len).enumerate().for_each(|(i, part)| fill(i, part));
            }
        };
        if all <= BODY_BYTES {
            self.make_room(NOTES)?;
            let mut body = [0u64; BODY_BYTES / 8];
            // SAFETY: the bytes of an array of integers; any may be written to it.
            parts(unsafe { std::slice::from_raw_parts_mut((&raw mut body).cast::<u8>(), all) });
            self.post(len as u8, &body);
        } else {
            let area = self.own_area(all)?;
            assert!(all <= area.bytes, "{all} bytes do not fit the stage");
            // SAFETY: the area is this rank's, and nobody reads it before the note below.
            parts(unsafe { std::slice::from_raw_parts_mut(area.start, all) });
            self.post(if area.is_slot { SLOT } else { PART }, &[len as u64, 0, 0, 0, 0, 0, 0]);
        }
        Ok(())
    }

    /// Contributes a part for each rank, with at most so many bytes on the stage; at least the table of the parts fits a slot.
    ///
    /// With `copy` the others are copied, so that their memory may be written to at once.
    pub(super) fn contribute_parts(&self, part: &dyn Fn(usize) -> Region, copy: bool, most: usize) -> Result<Kept> {
        let (size, me) = (self.size(), self.me());
        let len = part(if me == 0 { 1 } else { 0 }).len();
        if len * size <= most && (0..size).all(|rank| part(rank).len() == len) {
            self.lay_out(len, len * size, |rank, place| read(&part(rank), place))?;
            return Ok(Kept(Vec::new()));
        }
        let area = self.own_area(most.min((0..size).map(|rank| part(rank).len()).fold(size * LINE, usize::saturating_add)))?;
        // SAFETY: the area is this rank's, and nobody reads it before the note below.
        let slot = unsafe { std::slice::from_raw_parts_mut(area.start, area.bytes) };
        let mut used = size * LINE;
        let mut kept = Vec::new();
        for rank in (0..size).filter(|rank| *rank != me) {
            let region = part(rank);
            let len = region.len();
            let address = if len <= slot.len() - used {
                region.read(0, &mut slot[used..used + len]);
                used += len;
                (used - len) as u64
            } else {
                let flat = if copy { Flat::copied(&region)? } else { Flat::packed(&region)? };
                let address = flat.start() as u64;
                kept.push((rank, flat));
                address
            };
            slot[rank * LINE..][..8].copy_from_slice(&address.to_ne_bytes());
            slot[rank * LINE + 8..][..8].copy_from_slice(&(len as u64).to_ne_bytes());
        }
        self.post(TABLE, &[u64::from(!area.is_slot), 0, 0, 0, 0, 0, 0]);
        Ok(Kept(kept))
    }

    /// Says for each rank where it may write how many bytes: `places[rank]`.
    pub(super) fn offer_places(&self, places: &[(u64, usize)]) -> Result<()> {
        let area = self.own_area(0)?;
        assert!(places.len() * LINE <= area.bytes, "a table of {} ranks does not fit a slot", places.len());
        // SAFETY: the area is this rank's, and nobody reads it before the note below.
        let slot = unsafe { std::slice::from_raw_parts_mut(area.start, places.len() * LINE) };
        for (line, (address, len)) in slot.chunks_exact_mut(LINE).zip(places) {
            line[..8].copy_from_slice(&address.to_ne_bytes());
            line[8..].copy_from_slice(&(*len as u64).to_ne_bytes());
        }
        self.post(TABLE, &[0; BODY_BYTES / 8]);
        Ok(())
    }

    // ---- the group's note ------------------------------------------------------------------------------------------

    /// Counts this rank as arrived; true for the last one, who posts the note of the group.
    pub(super) fn arrive(&self) -> Result<bool> {
        self.make_room(NOTES)?;
        Ok(self.node.stage.arrive(self.number()) == self.size() as u64)
    }

    /// Where bytes for all come, if they do not fit the note. The caller has arrived last, after having used its own slot.
    pub(super) fn slot_for_all(&self, len: usize) -> Option<*mut u8> {
        assert!(len <= self.slot_bytes(), "{len} bytes do not fit a slot");
        (len > BODY_BYTES).then(|| self.node.stage.slot_of(self.size(), self.number()))
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
        self.post_for_all(NOTHING, &[0; BODY_BYTES / 8]);
    }

    /// Tells all where shared memory is.
    pub(super) fn post_place_for_all(&self, place: u64) {
        self.post_for_all(ADDRESS, &[0, place, 0, 0, 0, 0, 0]);
    }

    /// Where shared memory is, once the note of the group is there.
    pub(super) fn place_for_all(&self) -> Result<u64> {
        match self.posted(self.size())?.place {
            Place::There { address, .. } => Ok(address),
            _ => Err(self.nonsense(0)),
        }
    }

    fn post_for_all(&self, form: u8, body: &Body) {
        self.node.stage.post_for_all(self.number(), tag(self.kind, form), body);
        self.node.tell();
    }

    // ----------------------------------------------------------------------------------------------------------------

    /// Finishes the turn, when whatever was kept for other ranks is not needed any more.
    pub(super) fn settle(&self, kept: &Kept) -> Result<()> {
        if kept.0.is_empty() {
            self.finish();
            return Ok(());
        }
        self.finish_together()
    }

    // ---- reading ---------------------------------------------------------------------------------------------------

    /// True if a rank's note is there.
    pub(super) fn has_note(&self, rank: usize) -> bool {
        self.node.stage.holds(Awaited::Note(rank, self.number()))
    }

    /// What a rank (or the group) has contributed, whose note is there.
    ///
    /// # Errors
    /// The rank is in another operation, or has left this one out.
    #[inline]
    pub(super) fn posted(&self, rank: usize) -> Result<Posted> {
        let form = self.form_of(rank)?;
        let body = self.node.stage.body_of(rank, self.number());
        if usize::from(form) <= BODY_BYTES {
            return Ok(Posted { len: form.into(), place: Place::Here(body.cast()) });
        }
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the turn.
        let [len, address, result, ..] = unsafe { *body };
        match form {
            SLOT if len <= self.slot_bytes() as u64 => {
                Ok(Posted { len: len as usize, place: Place::Here(self.node.stage.slot_of(rank, self.number())) })
            }
            PART => match self.area_of(rank, false) {
                Some(area) if len <= area.bytes as u64 => Ok(Posted { len: len as usize, place: Place::Here(area.start) }),
                _ => Err(self.nonsense(rank)),
            },
            ADDRESS => Ok(Posted { len: len as usize, place: Place::There { address, result } }),
            ROUNDS => Ok(Posted { len: len as usize, place: Place::InRounds }),
            NOTHING => Ok(Posted { len: 0, place: Place::Nowhere }),
            _ => Err(self.nonsense(rank)),
        }
    }

    /// What a rank, whose note is there, has contributed for rank `to`.
    ///
    /// # Errors
    /// As for [`Turn::posted`].
    pub(super) fn posted_part(&self, rank: usize, to: usize) -> Result<Posted> {
        if self.form_of(rank)? != TABLE {
            let whole = self.posted(rank)?;
            let room = match self.form_of(rank)? {
                SLOT => self.slot_bytes(),
                PART => self.stage_bytes(),
                _ => BODY_BYTES,
            };
            return match whole.place {
                Place::Here(_) if whole.len * self.size() > room => Err(self.nonsense(rank)),
                Place::Here(start) => Ok(Posted { place: Place::Here(start.wrapping_add(to * whole.len)), ..whole }),
                _ => Ok(whole),
            };
        }
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the turn.
        let [is_part, ..] = unsafe { *self.node.stage.body_of(rank, self.number()) };
        let Some(area) = self.area_of(rank, is_part == 0) else { return Err(self.nonsense(rank)) };
        let slot = area.start;
        // SAFETY: a slot has room for the lines of all ranks; its writer leaves it alone until this rank has finished the turn.
        let [address, len] = unsafe { slot.add(to * LINE).cast::<[u64; 2]>().read_unaligned() };
        let room = area.bytes as u64;
        if address >= room {
            return Ok(Posted { len: len as usize, place: Place::There { address, result: 0 } });
        }
        if len > room - address {
            return Err(self.nonsense(rank));
        }
        Ok(Posted { len: len as usize, place: Place::Here(slot.wrapping_add(address as usize)) })
    }

    #[inline]
    fn form_of(&self, rank: usize) -> Result<u8> {
        match self.node.stage.tag_of(rank, self.number()) {
            Some(tag) if tag >> 8 == self.kind as u16 => Ok(tag as u8),
            other => Err(self.out_of_step(rank, other)),
        }
    }

    #[cold]
    fn out_of_step(&self, rank: usize, tag: Option<u16>) -> Error {
        let does = match tag.and_then(|tag| NAMES.get(usize::from(tag >> 8).wrapping_sub(1))) {
            Some(name) => format!("is in {name}"),
            None => "has left this operation out".to_owned(),
        };
        let own = NAMES[self.kind as usize - 1];
        Error::new(
            crate::consts::MPI_ERR_OTHER,
            format!("rank {rank} {does} where this rank is in {own}: all ranks must call the same collectives in the same order"),
        )
    }

    #[cold]
    pub(super) fn nonsense(&self, rank: usize) -> Error {
        Error::new(crate::consts::MPI_ERR_INTERN, format!("rank {rank} has left a note that makes no sense in shared memory"))
    }

    /// Fails unless a rank has contributed as many bytes as this one expects.
    #[inline]
    pub(super) fn check(&self, rank: usize, posted: Posted, expected: usize) -> Result<Posted> {
        if posted.len == expected { Ok(posted) } else { Err(mismatch(rank, posted.len, expected)) }
    }

    /// Brings what a rank has contributed, and was checked, to a region.
    #[inline]
    pub(super) fn take(&self, rank: usize, posted: Posted, region: &Region) -> Result<()> {
        match posted.place {
            Place::Nowhere | Place::InRounds => Ok(()),
            Place::Here(start) => {
                // SAFETY: `posted` has checked that so many bytes are on the stage; their writer leaves them alone until this rank has finished.
                write(region, unsafe { std::slice::from_raw_parts(start, posted.len) });
                Ok(())
            }
            Place::There { address, .. } => {
                let flat = Flat::room(region)?;
                // SAFETY: the region has this many bytes, which are the program's for this operation.
                unsafe { transfer::pull(self, rank, address, flat.start(), posted.len)? };
                flat.deliver(region);
                Ok(())
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Node {
    #[inline]
    fn known_floor(&self) -> u64 {
        self.floor.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[inline]
    fn passed(&self) -> u64 {
        self.passed.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[inline]
    fn pass(&self, number: u64) {
        self.passed.store(number, std::sync::atomic::Ordering::Relaxed);
        self.stage.finish(number);
        self.tell();
    }
}

/// The tag of a note.
fn tag(kind: Kind, form: u8) -> u16 {
    (kind as u16) << 8 | u16::from(form)
}

/// Keeps the first of several errors.
#[derive(Default)]
pub(super) struct First(Option<Error>);

impl First {
    /// The value, unless it is an error.
    pub(super) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.0.get_or_insert(error);
                None
            }
        }
    }

    /// The first error, if there was one.
    pub(super) fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
