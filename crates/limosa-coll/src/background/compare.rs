//! Ranks that differ in an operation in the background ([`crate::disagreement`]): who finds it has the collectives of
//! the communicator end everywhere.
//!
//! - A rank that reads another one's note compares it.
//! - A rank that reads nobody's looks when it has posted: the root of a broadcast or scatter at the notes of all others,
//!   any other rank at those of its root and its neighbours. So of ranks whose notes nobody reads, one sees another's.
//! - A rank that waits for long compares the notes that are there, and asks those who have posted none.

use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::exchange::Intake;
use super::operation::BackgroundOp;
use crate::call_log;
use crate::disagreement;
use crate::kind::Kind;
use crate::notes::Notes;
use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::{Error, error_of};
use limosa_mpi::observe::Inquiry;
use limosa_p2p::Failure;
use smallvec::SmallVec;

/// How long a rank waits for the reason why another one has given up.
const SOON: Duration = Duration::from_secs(1);

impl BackgroundOp {
    /// The error of a rank that has called something else than this one, which then concerns all ranks.
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

    /// After posting for start `number`, by a rank that reads nobody's note.
    #[inline]
    pub(super) fn compare_if_unread(&self, number: u64) {
        let is_unread = match &self.exchange.intake {
            Intake::Nothing => true,
            // The first rank of a scan reads its own note only.
            Intake::Combined { operands, .. } => operands.ranks == 1 && self.mailboxes.slots.me() == 0,
            _ => false,
        };
        if is_unread {
            self.compare_with_posted(number);
        }
    }

    fn compare_with_posted(&self, number: u64) {
        // Of two that have posted, one sees the other's note.
        fence(Ordering::SeqCst);
        let (mailboxes, me) = (&*self.mailboxes, self.mailboxes.slots.me());
        let (size, root) = (mailboxes.size(), self.exchange.logged.signature.root() as usize);
        let word = self.exchange.call.word;
        let differs = |member| member != me && mailboxes.slots.noted(member, number).is_some_and(|said| said != word);
        // Of ranks that differ, two are neighbours.
        let found = match self.exchange.call.kind {
            Kind::Bcast | Kind::Scatter => (0..size).any(differs),
            _ => [root % size, (me + 1) % size, (me + size - 1) % size].into_iter().any(differs),
        };
        if found {
            let _ = self.raise_if_another_differs(number);
        }
    }

    /// What is to be said of an error: how another rank differs from this one, or why the group has ended; otherwise
    /// the error itself.
    #[cold]
    pub(super) fn explained(&self, number: u64, error: Error) -> Error {
        if let Some(difference) = self.raise_if_another_differs(number) {
            return difference;
        }
        let Some(comm) = self.comm.as_ref().filter(|_| error.class == MPI_ERR_PROC_ABORTED) else { return error };
        // Whoever has given up was told why, and so is this rank, if not yet then soon.
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

    /// Why it cannot begin, if so: the collectives of the communicator have ended.
    #[inline]
    pub(super) fn lost_before(&self) -> Option<Failure> {
        let engine = &self.mailboxes.engine;
        let comm = self.comm.as_ref().filter(|_| engine.is_impaired())?;
        engine.lost_group(comm.coll_context()).filter(|_| self.messages_are_done())
    }

    /// It has ended.
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
        call_log::inquire(comm, self.exchange.logged, &|tell| missing.iter().for_each(|rank| tell(*rank)));
        if self.is_done() {
            self.forget_inquiries();
        }
    }
}
