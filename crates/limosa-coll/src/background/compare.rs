//! Detection of ranks that call different collectives in the background ([`crate::disagreement`]). The rank that finds
//! the difference ends the collectives of the communicator on all ranks.
//!
//! - A rank that reads a note compares it with its own call.
//! - A rank that reads no notes compares when it has posted: the root of a broadcast or scatter with all other ranks,
//!   any other rank with its root and its neighbours. Of two ranks whose notes are not read, at least one therefore
//!   sees the note of the other rank.
//! - A rank that waits for long compares the notes that have been posted, and inquires at the ranks that have posted
//!   none.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::exchange::Intake;
use super::operation::BackgroundOp;
use crate::call_log;
use crate::disagreement;
use crate::kind::Collective;
use crate::notes::Notes;
use limosa_mpi::check;
use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::{Error, error_of};
use limosa_mpi::observe::Inquiry;
use limosa_p2p::Failure;
use smallvec::SmallVec;

/// Longest wait for the reason why another rank has given up.
const SOON: Duration = Duration::from_secs(1);

impl BackgroundOp {
    /// Returns the error of a rank whose call differs from this one, and announces it to all ranks.
    #[cold]
    pub(super) fn raise_if_another_differs(&self, number: u64) -> Option<Error> {
        let comm = self.comm.as_ref()?;
        let (mailboxes, word) = (&*self.mailboxes, self.exchange.call.word);
        let differs = |member| {
            let said = mailboxes.slots.noted(member, number)?;
            Some((member, disagreement::between((number, said), (number, word))?))
        };
        let me = mailboxes.slots.me();
        let (rank, difference) = (0..mailboxes.size()).filter(|member| *member != me).find_map(differs)?;
        let error = mailboxes.differ(rank, difference);
        Some(disagreement::raise(&mailboxes.engine, comm.coll_context(), comm.group(), error))
    }

    /// Compares after posting start `number`, if this rank reads no notes.
    #[inline]
    pub(super) fn compare_if_unread(&self, number: u64) {
        let is_unread = match &self.exchange.intake {
            Intake::Nothing => true,
            // The first rank of a scan reads its own note only.
            Intake::Combined { operands, .. } => operands.ranks == 1 && self.mailboxes.slots.me() == 0,
            _ => false,
        };
        // The records of the checks say more than notes.
        if is_unread && !check::is_on() {
            self.compare_with_posted(number);
        }
    }

    fn compare_with_posted(&self, number: u64) {
        // Of two ranks that have posted, at least one sees the note of the other rank.
        fence(Ordering::SeqCst);
        let (mailboxes, me) = (&*self.mailboxes, self.mailboxes.slots.me());
        let (size, root) = (mailboxes.size(), self.exchange.logged.signature.root() as usize);
        let word = self.exchange.call.word;
        let differs = |member| member != me && mailboxes.slots.noted(member, number).is_some_and(|said| said != word);
        // Among ranks that differ there are two neighbours that differ.
        let found = match self.exchange.call.kind {
            Collective::Bcast | Collective::Scatter => (0..size).any(differs),
            _ => [root % size, (me + 1) % size, (me + size - 1) % size].into_iter().any(differs),
        };
        if found {
            let _ = self.raise_if_another_differs(number);
        }
    }

    /// Replaces an error by its reason, if known: how another rank differs from this one, or why the group has ended.
    #[cold]
    pub(super) fn explained(&self, number: u64, error: Error) -> Error {
        if let Some(difference) = self.raise_if_another_differs(number) {
            return difference;
        }
        let Some(comm) = self.comm.as_ref().filter(|_| error.class == MPI_ERR_PROC_ABORTED) else { return error };
        // A rank gives up only after the reason was announced, so the reason arrives here too.
        let end = Instant::now() + SOON;
        loop {
            self.mailboxes.engine.poll();
            if let Some(failure) = self.mailboxes.engine.lost_group(comm.coll_context()) {
                return error_of(failure);
            }
            if Instant::now() > end {
                return error;
            }
            std::thread::yield_now();
        }
    }

    /// Returns the reason why this operation cannot begin, if the collectives of the communicator have ended.
    #[inline]
    pub(super) fn lost_before(&self) -> Option<Failure> {
        let engine = &self.mailboxes.engine;
        let comm = self.comm.as_ref().filter(|_| engine.is_impaired())?;
        engine.lost_group(comm.coll_context()).filter(|_| self.messages_are_done())
    }

    /// Takes back the inquiries of this operation, which has ended.
    #[inline]
    pub(super) fn end_inquiries(&self) {
        if self.has_inquired.load(Ordering::Relaxed) {
            self.forget_inquiries();
        }
    }

    #[cold]
    fn forget_inquiries(&self) {
        if let Some(comm) = self.comm.as_ref().filter(|_| self.has_inquired.swap(false, Ordering::Relaxed)) {
            call_log::end_inquiries(comm, self.exchange.logged);
        }
    }
}

impl Inquiry for BackgroundOp {
    fn inquire(&self) {
        let number = self.number();
        if self.is_done() || self.raise_if_another_differs(number).is_some() {
            return;
        }
        let Some(comm) = &self.comm else { return };
        let slots = &self.mailboxes.slots;
        let missing: SmallVec<[usize; 16]> =
            (0..slots.size()).filter(|member| slots.noted(*member, number).is_none()).collect();
        self.has_inquired.store(true, Ordering::Relaxed);
        call_log::inquire(comm, self.exchange.logged, &|tell| missing.iter().for_each(|rank| tell(*rank)), &|| None);
        if self.is_done() {
            self.forget_inquiries();
        }
    }
}
