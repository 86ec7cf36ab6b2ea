//! Notes in the slots: reading what others have posted. Whatever it says is checked before use.

use limosa_base::slots::{Awaited, BODY_BYTES};
use limosa_p2p::memory::Region;

use super::call::SharedCall;
use super::memory::{Flat, write};
use super::post::{ADDRESS, LINE, NOTHING, RING, ROUNDS, SLOT, TABLE};
use super::transfer;
use crate::kind::name_of;
use crate::schedule::mismatch;
use limosa_mpi::error::{Error, Result};

/// What a rank has contributed: some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    /// How many.
    pub(super) len: usize,
    /// Where.
    pub(super) place: PostedLocation,
}

/// Where contributed bytes are.
#[derive(Clone, Copy, Debug)]
pub(super) enum PostedLocation {
    /// On the slots; readable until this rank finishes the call.
    Here(*const u8),
    /// In the memory of the rank that posted the note.
    There {
        /// Their address.
        address: u64,
        /// Where that rank wants its result, if it said so.
        result: u64,
    },
    /// In the round buffers, as its rounds go by.
    InRounds,
    /// Nowhere.
    Nowhere,
}

impl SharedCall<'_> {
    /// Waits for a rank's note and declines to take part unless it has as many bytes as this rank expects.
    pub(super) fn agree_with(&self, rank: usize, expected: usize) -> Result<Posted> {
        self.wait_for(rank)?;
        let posted = self.posted(rank).and_then(|posted| match posted.place {
            PostedLocation::Nowhere => Err(self.withdrawn(rank)),
            _ => self.check(rank, posted, expected),
        });
        if posted.is_err() {
            self.decline()?;
        }
        posted
    }

    /// True if a rank's note is there.
    pub(super) fn has_note(&self, rank: usize) -> bool {
        self.group.slots.holds(Awaited::Note(rank, self.number()))
    }

    /// What a rank (or the group) has contributed, whose note is there.
    ///
    /// # Errors
    /// The rank is in another operation, or has left this one out.
    #[inline(always)]
    pub(super) fn posted(&self, rank: usize) -> Result<Posted> {
        let form = self.form_of(rank)?;
        let body = self.group.slots.body_of(rank, self.number());
        if usize::from(form) <= BODY_BYTES {
            return Ok(Posted { len: form.into(), place: PostedLocation::Here(body.cast()) });
        }
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the call.
        let [len, ..] = unsafe { *body };
        if form == SLOT && len <= self.slot_bytes() as u64 {
            return Ok(Posted { len: len as usize, place: PostedLocation::Here(self.group.slots.slot_of(rank, self.number())) });
        }
        self.posted_elsewhere(rank, form)
    }

    /// What a rank has contributed that is neither in its note nor in its slot.
    #[inline(never)]
    fn posted_elsewhere(&self, rank: usize, form: u8) -> Result<Posted> {
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the call.
        let [len, address, result, ..] = unsafe { *self.group.slots.body_of(rank, self.number()) };
        match form {
            RING => Ok(Posted { len: len as usize, place: PostedLocation::Here(self.area_on_ring(rank, address, len)?.start) }),
            ADDRESS => Ok(Posted { len: len as usize, place: PostedLocation::There { address, result } }),
            ROUNDS => Ok(Posted { len: len as usize, place: PostedLocation::InRounds }),
            NOTHING => Ok(Posted { len: 0, place: PostedLocation::Nowhere }),
            _ => Err(self.nonsense(rank)),
        }
    }

    /// What a rank, whose note is there, has contributed for rank `to`.
    ///
    /// # Errors
    /// As for [`SharedCall::posted`].
    pub(super) fn posted_part(&self, rank: usize, to: usize) -> Result<Posted> {
        let form = self.form_of(rank)?;
        // SAFETY: the note was posted, and its writer leaves it alone until this rank has finished the call.
        let [first, offset, ..] = unsafe { *self.group.slots.body_of(rank, self.number()) };
        if form != TABLE {
            let whole = self.posted(rank)?;
            let room = if form == SLOT { self.slot_bytes() } else { BODY_BYTES };
            return match whole.place {
                PostedLocation::Here(_) if whole.len * self.size() > room => Err(self.nonsense(rank)),
                PostedLocation::Here(start) => Ok(Posted { place: PostedLocation::Here(start.wrapping_add(to * whole.len)), ..whole }),
                _ => Ok(whole),
            };
        }
        let area = if first == 0 { self.slot_of(rank) } else { self.area_on_ring(rank, offset, first)? };
        if area.bytes < self.size() * LINE {
            return Err(self.nonsense(rank));
        }
        let slot = area.start;
        // SAFETY: the area has room for the lines of all ranks; its writer leaves it alone until this rank has finished the call.
        let [address, len] = unsafe { slot.add(to * LINE).cast::<[u64; 2]>().read_unaligned() };
        let room = area.bytes as u64;
        if address >= room {
            return Ok(Posted { len: len as usize, place: PostedLocation::There { address, result: 0 } });
        }
        if len > room - address {
            return Err(self.nonsense(rank));
        }
        Ok(Posted { len: len as usize, place: PostedLocation::Here(slot.wrapping_add(address as usize)) })
    }

    #[inline(always)]
    fn form_of(&self, rank: usize) -> Result<u8> {
        match self.group.slots.tag_of(rank, self.number()) {
            Some(tag) if tag >> 8 == self.kind as u16 => Ok(tag as u8),
            other => Err(self.out_of_step(rank, other)),
        }
    }

    #[cold]
    fn out_of_step(&self, rank: usize, tag: Option<u16>) -> Error {
        let does = match tag.and_then(|tag| name_of(tag >> 8)) {
            Some(name) => format!("is in {name}"),
            None => "has left this operation out".to_owned(),
        };
        let own = self.kind.name();
        Error::new(
            limosa_mpi::consts::MPI_ERR_OTHER,
            format!("rank {rank} {does} where this rank is in {own}: all ranks must call the same collectives in the same order"),
        )
    }

    #[cold]
    fn withdrawn(&self, rank: usize) -> Error {
        let name = self.kind.name();
        Error::new(
            limosa_mpi::consts::MPI_ERR_COUNT,
            format!("rank {rank} has withdrawn from {name}: it or a rank before it has another number of bytes"),
        )
    }

    #[cold]
    pub(super) fn nonsense(&self, rank: usize) -> Error {
        Error::new(limosa_mpi::consts::MPI_ERR_INTERN, format!("rank {rank} has left a note that makes no sense in shared memory"))
    }

    /// Fails unless a rank has contributed as many bytes as this one expects.
    #[inline(always)]
    pub(super) fn check(&self, rank: usize, posted: Posted, expected: usize) -> Result<Posted> {
        if posted.len == expected { Ok(posted) } else { Err(mismatch(rank, posted.len, expected)) }
    }

    /// Brings what a rank has contributed, and was checked, to a region.
    #[inline]
    pub(super) fn take(&self, rank: usize, posted: Posted, region: &Region) -> Result<()> {
        match posted.place {
            PostedLocation::Nowhere | PostedLocation::InRounds => Ok(()),
            PostedLocation::Here(start) => {
                // SAFETY: `posted` has checked that so many bytes are in the slots; their writer leaves them alone until this rank has finished.
                write(region, unsafe { std::slice::from_raw_parts(start, posted.len) });
                Ok(())
            }
            PostedLocation::There { address, .. } => {
                let flat = Flat::room(region)?;
                // SAFETY: the region has this many bytes, which are the program's for this operation.
                unsafe { transfer::pull(self, rank, address, flat.start(), posted.len)? };
                flat.deliver(region);
                Ok(())
            }
        }
    }
}
