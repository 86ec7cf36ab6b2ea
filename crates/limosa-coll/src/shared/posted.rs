//! Notes in the slots: waiting for what others have posted, and taking it.

use limosa_base::slots::Awaited;
use limosa_p2p::memory::Region;

use super::call::SharedCall;
use super::transfer;
use crate::memory::{Flat, write};
use crate::notes::{Found, Location, Notes, nonsense, withdrawn};
use limosa_mpi::error::Result;

impl SharedCall<'_> {
    /// Waits for a rank's note and declines to take part unless it has as many bytes as this rank expects.
    pub(super) fn agree_with(&self, rank: usize, expected: usize) -> Result<Found> {
        self.wait_for(rank)?;
        let posted = self.posted(rank).and_then(|posted| match posted.place {
            Location::Nowhere => Err(withdrawn(rank, self.kind)),
            _ => posted.check(rank, expected),
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
    /// Those of [`Notes::find`].
    #[inline(always)]
    pub(super) fn posted(&self, rank: usize) -> Result<Found> {
        self.group.find(rank, self.number(), self.kind)
    }

    /// What a rank, whose note is there, has contributed for this one.
    ///
    /// # Errors
    /// Those of [`Notes::find_part`].
    pub(super) fn posted_part(&self, rank: usize) -> Result<Found> {
        self.group.find_part(rank, self.number(), self.kind)
    }

    /// Brings what a rank has contributed, and was checked, to a region.
    #[inline]
    pub(super) fn take(&self, rank: usize, posted: Found, region: &Region) -> Result<()> {
        match posted.place {
            Location::Nowhere | Location::InRounds | Location::ByMessage => Ok(()),
            Location::Operand { .. } => Err(nonsense(rank)),
            Location::Here(start) => {
                // SAFETY: so many bytes are there, as was checked; their writer leaves them alone until this rank has
                // finished.
                write(region, unsafe { std::slice::from_raw_parts(start, posted.len) });
                Ok(())
            }
            Location::There { address } => {
                let flat = Flat::room(region)?;
                // SAFETY: the region has this many bytes, which are the program's for this operation.
                unsafe { transfer::pull(self, rank, address, flat.start(), posted.len)? };
                flat.deliver(region);
                Ok(())
            }
        }
    }
}
