//! Waiting for notes in the slots, and taking contributions.

use limosa_base::clock;
use limosa_base::slots::Awaited;
use limosa_p2p::memory::Region;

use super::call::SharedCall;
use super::transfer;
use crate::memory::{Flat, write};
use crate::notes::{Location, Notes, PostedBytes, nonsense, withdrawn};
use limosa_mpi::error::{Error, Result, error_of};

/// Longest wait for the reason why another rank has given up.
const MOST_EXPLAINING_NS: u64 = 1_000_000_000;

impl SharedCall<'_> {
    /// Waits for a rank's note and declines to take part unless it has as many bytes as this rank expects.
    pub(super) fn agree_with(&self, rank: usize, expected: usize) -> Result<PostedBytes> {
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

    /// Whether a rank's note is posted.
    pub(super) fn has_note(&self, rank: usize) -> bool {
        self.group.slots.holds(Awaited::Note(rank, self.number()))
    }

    /// Finds the contribution of a rank or the group, whose note is posted.
    ///
    /// # Errors
    /// Errors of [`Notes::find`].
    #[inline(always)]
    pub(super) fn posted(&self, rank: usize) -> Result<PostedBytes> {
        self.group.find(rank, self.number(), self.signed()).map_err(|error| self.explained(error))
    }

    /// Finds the contribution of a rank, whose note is posted, for this rank.
    ///
    /// # Errors
    /// Errors of [`Notes::find_part`].
    pub(super) fn posted_part(&self, rank: usize) -> Result<PostedBytes> {
        self.group.find_part(rank, self.number(), self.signed()).map_err(|error| self.explained(error))
    }

    /// Waits until all ranks are in this operation.
    ///
    /// # Errors
    /// As for [`SharedCall::posted`].
    #[inline(always)]
    pub(super) fn meet_all(&self) -> Result<()> {
        let all_are_here = || self.group.slots().all_noted(self.number(), self.signed().word);
        if all_are_here() {
            // A rank in this call has finished the previous one.
            self.group.raise_floor(self.number() - 1);
            return Ok(());
        }
        self.wait_for_all()?;
        if all_are_here() { Ok(()) } else { self.check_all() }
    }

    /// Checks that all ranks, whose notes are posted, are in this operation.
    ///
    /// # Errors
    /// As for [`SharedCall::posted`].
    #[cold]
    pub(super) fn check_all(&self) -> Result<()> {
        (0..self.size()).try_for_each(|rank| match self.group.form_of(rank, self.number(), self.signed()) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.explained(error)),
        })
    }

    /// Replaces the error of a note or a copy by its reason if collectives have ended; this rank then takes no further
    /// part.
    #[cold]
    pub(super) fn explained(&self, error: Error) -> Error {
        let engine = &self.group.engine;
        // A rank that has withdrawn its note knows the reason, and this rank is about to receive it.
        let is_given_up = error.class == limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
        let end = clock::now_ns() + if is_given_up { MOST_EXPLAINING_NS } else { 0 };
        loop {
            engine.poll();
            if let Some(failure) = engine.lost_group(self.comm.coll_context()) {
                self.give_up();
                return error_of(failure);
            }
            if clock::now_ns() >= end {
                return error;
            }
            std::thread::yield_now();
        }
    }

    /// Copies a checked contribution of a rank to a region.
    #[inline]
    pub(super) fn take(&self, rank: usize, posted: PostedBytes, region: &Region) -> Result<()> {
        match posted.place {
            Location::Nowhere | Location::InRounds | Location::ByMessage => Ok(()),
            Location::Operand { .. } | Location::InBlocks(_) | Location::InLentBlocks { .. } => Err(nonsense(rank)),
            Location::Here(start) => {
                // SAFETY: so many bytes are posted, as was checked; their writer leaves them unchanged until this rank
                // has finished.
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
