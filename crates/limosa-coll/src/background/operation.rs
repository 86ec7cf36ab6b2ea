//! An operation under way: the contribution is posted in a set of mailboxes, and the intake is fetched when it is
//! available.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | idle | not started | held back, posted, lent or done, by [`BackgroundOp::start`] |
//! | held back | no room yet for the contribution | posted, by [`Mailboxes::serve`] |
//! | posted | the contribution is posted | fetching, once the intake is available; without intake, lent or done |
//! | fetching | a thread copies the intake to this rank's buffer | lent, if others then still read that, or done |
//! | lent | others may still read this rank's memory | done, once all readers have finished the operation |
//! | done | nothing is left to do | held back or posted (persistent) |
//!
//! While a long reduction is posted, any polling thread combines pieces of it ([`super::reduction`]).
//!
//! State and number are one word ([`StateWord`]): every transition names the start it belongs to. An operation is
//! marked finished in the list of pending operations before it becomes lent or done, so the list never holds one start
//! beside the next. Held back and posted are entered under the list's lock, fetching by one of all threads that try.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use limosa_base::slots::Awaited;
use limosa_p2p::memory::Region;
use limosa_p2p::{Failure, Interrupted, View, in_service};
use parking_lot::Mutex;

use super::exchange::{Contribution, Exchange, Intake, Limits, Parts};
use super::neighbour_blocks::unfinished;
use super::reduction::Reduction;
use super::storage::Content;
use super::{Mailboxes, Pending, fetch_for_all};
use crate::memory::read;
use crate::notes::{BY_MESSAGE, Notes, SlotNote, write_table};
use crate::run::ScheduleRun;
use crate::schedule::copy;
use crate::shared::look;
use limosa_mpi::comm::Comm;
use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::{Error, Result, error_of};
use limosa_mpi::fail;
use limosa_mpi::observe::{Awaits, Sleeper, Waiting, current_call};
use limosa_mpi::operation::{End, Moment, Operation, StateWord};

const IDLE: u8 = 0;
const HELD_BACK: u8 = 1;
const POSTED: u8 = 2;
const FETCHING: u8 = 3;
const LENT: u8 = 4;
const DONE: u8 = 5;

/// The mailboxes for an operation.
pub(crate) struct MailboxUse {
    pub(crate) mailboxes: Arc<Mailboxes>,
    /// The number of the operation; `None` if the mailboxes count by themselves because they serve one persistent
    /// operation.
    pub(crate) number: Option<u64>,
    pub(crate) limits: Limits,
}

/// The result of a start that is finished here.
pub(super) struct Finished {
    /// Whether this rank asks to be notified (see [`Mailboxes::serve`]).
    asks: bool,
}

/// An operation of this rank on a set of mailboxes.
pub struct BackgroundOp {
    pub(super) mailboxes: Arc<Mailboxes>,
    /// The communicator, for hang reports; `None` in tests of a set of mailboxes alone.
    pub(super) comm: Option<Arc<Comm>>,
    /// The name of the call that made the operation, for hang reports.
    started: &'static str,
    word: StateWord,
    /// Bytes of the contribution in the mailboxes.
    pub(super) bytes: usize,
    own_number: Option<u64>,
    pub(super) exchange: Exchange,
    /// Whether other ranks were asked for the reason of the delay.
    pub(super) has_inquired: AtomicBool,
    by_messages: Option<Arc<ScheduleRun>>,
    trouble: Mutex<Option<Error>>,
}

// SAFETY: the addresses in an exchange are those of buffers that the program leaves to the operation until it has
// ended. The state admits one thread at a time to them. Everything else is synchronised by itself.
unsafe impl Send for BackgroundOp {}
// SAFETY: as above.
unsafe impl Sync for BackgroundOp {}

impl BackgroundOp {
    pub(crate) fn new(mailbox_use: MailboxUse, exchange: Exchange) -> Arc<BackgroundOp> {
        let mailboxes = mailbox_use.mailboxes;
        Arc::new(BackgroundOp {
            comm: None,
            started: "",
            word: StateWord::new(IDLE),
            bytes: exchange.bytes(mailboxes.size(), mailboxes.slots.me()),
            own_number: mailbox_use.number,
            by_messages: None,
            exchange,
            mailboxes,
            trouble: Mutex::default(),
            has_inquired: AtomicBool::new(false),
        })
    }

    /// Prepares the messages of this operation on a communicator; before the first start.
    pub(crate) fn prepare(&mut self, comm: &Arc<Comm>) {
        self.comm = Some(comm.clone());
        self.started = current_call();
        self.by_messages = self.exchange.by_messages.take().map(|schedule| ScheduleRun::new(comm, *schedule));
    }

    /// Starts the operation, which must be new or done.
    pub fn start(self: &Arc<BackgroundOp>) {
        if let Some(by_messages) = &self.by_messages {
            // First of all: a thread that finds this posted also asks whether these messages are complete, and must not
            // get the answer of the previous start.
            *self.trouble.lock() = None;
            by_messages.start();
        }
        self.mailboxes.enter(self, self.own_number);
        if self.lends() && !self.is_done() {
            // In case that this thread is not here to see other ranks fall behind.
            self.mailboxes.engine.remind_soon();
        }
    }

    /// Whether other ranks access this process's memory.
    #[inline]
    pub(super) fn lends(&self) -> bool {
        matches!(self.exchange.contribution, Contribution::Lent(_) | Contribution::Operand)
    }

    /// Whether operands are combined by pieces.
    pub(super) fn is_long_reduction(&self) -> bool {
        matches!(self.exchange.contribution, Contribution::Operand)
    }

    /// Returns the long reduction, if this is one.
    #[inline]
    fn reduction(&self) -> Option<&Reduction> {
        match &self.exchange.intake {
            Intake::Pieces(reduction) => Some(reduction),
            _ => None,
        }
    }

    /// Returns the number of this start.
    pub(super) fn number(&self) -> u64 {
        self.word.load().number
    }

    /// Whether the contribution still waits for room.
    pub(super) fn is_held_back(&self) -> bool {
        self.word.load().state == HELD_BACK
    }

    /// Whether nothing is left to do.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.word.load().state == DONE
    }

    /// Whether this rank reads no contribution of other ranks any more.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.word.load().state >= LENT
    }

    pub(super) fn messages_are_done(&self) -> bool {
        self.by_messages.as_ref().is_none_or(|by_messages| by_messages.is_done())
    }

    #[inline]
    fn is_ready_at(&self, now: Moment) -> bool {
        now.state == POSTED
            && self.missing(now.number).is_none()
            && self.messages_are_done()
            && self
                .reduction()
                .is_none_or(|reduction| reduction.is_combined(&self.mailboxes, now.number, self.exchange.call))
    }

    /// Whether pieces of a long reduction are left to be combined.
    #[inline]
    fn has_work_at(&self, now: Moment) -> bool {
        let has_work = |reduction: &Reduction| reduction.has_work(&self.mailboxes, now.number, self.exchange.call);
        now.state == POSTED && self.reduction().is_some_and(has_work)
    }

    /// Whether it calls a function of the program, which this thread must not run.
    #[inline]
    fn is_for_program(&self) -> bool {
        self.exchange.by_program && matches!(self.exchange.intake, Intake::Combined { .. }) && in_service()
    }

    /// Whether it is ready, but not for this thread.
    pub(super) fn is_left_to_program(&self) -> bool {
        self.is_for_program() && self.is_ready_at(self.word.load())
    }

    /// Combines the remaining pieces of a long reduction, if this thread should.
    #[inline]
    pub(super) fn combine_pieces(&self) {
        let Some(reduction) = self.reduction() else { return };
        let now = self.word.load();
        // The engine's own threads would only slow down a waiting thread.
        let is_in_the_way = in_service() && self.mailboxes.waits.now.load(Ordering::Relaxed) > 0;
        if !is_in_the_way && self.has_work_at(now) {
            reduction.combine(&self.mailboxes, now.number, self.exchange.call, &self.trouble);
        }
    }

    /// Returns the number of the start for which only [`BackgroundOp::finish_start`] is left, if this thread may do
    /// that. Takes no lock.
    #[inline]
    pub(super) fn ready_start(&self) -> Option<u64> {
        let now = self.word.load();
        (self.is_ready_at(now) && !self.is_for_program()).then_some(now.number)
    }

    /// Returns the wait condition if the operation is posted and waits for contributions only. Pieces that are left to
    /// be combined are left to a thread that waits.
    pub(super) fn awaited_notes(&self) -> Option<Awaited> {
        let now = self.word.load();
        let waits = now.state == POSTED && self.messages_are_done() && !self.has_work_at(now);
        waits.then(|| self.awaited(now.number))
    }

    /// Whether progress is possible, or the operation is done. May be called with the engine's lock, which a thread
    /// that holds the list of pending operations never takes.
    fn is_ripe(&self) -> bool {
        let now = self.word.load();
        match now.state {
            HELD_BACK => self.mailboxes.slots.least_finished() >= self.mailboxes.room_for(self, now.number),
            POSTED => self.is_ready_at(now) || self.has_work_at(now),
            FETCHING => false,
            LENT => self.unreturned(now.number).is_none(),
            _ => true,
        }
    }

    /// Whether arriving ranks are counted. The answer is equal on all ranks. The last rank to arrive may have to act
    /// for all; as that may be the helper, it does not combine for all with a function of the program.
    fn counts_arrivals(&self) -> bool {
        self.mailboxes.oversubscribed
            && !self.exchange.by_program
            && !matches!(self.exchange.contribution, Contribution::Nothing)
            && self.exchange.call.kind.is_among_all()
    }

    /// Whether the last rank to arrive wakes all others. In a long reduction, the rank that combines the last piece
    /// does.
    pub(super) fn last_publishes(&self) -> bool {
        self.counts_arrivals() && self.reduction().is_none()
    }

    /// Returns the missing condition for this rank's intake, after it has posted start `number`.
    #[inline]
    fn missing(&self, number: u64) -> Option<Awaited> {
        let slots = &self.mailboxes.slots;
        match &self.exchange.intake {
            Intake::Neighbours(incoming) => incoming.missing(slots, number),
            _ => Some(self.awaited(number)).filter(|awaited| !slots.holds(*awaited)),
        }
    }

    /// Returns the wait condition for the readers of what this rank lends.
    fn unreturned(&self, number: u64) -> Option<Awaited> {
        let slots = &self.mailboxes.slots;
        match &self.exchange.readers {
            Some(neighbours) => unfinished(neighbours, slots, number),
            None => Some(Awaited::AllFinished(number)).filter(|finished| !slots.holds(*finished)),
        }
    }

    /// Returns the wait condition for this rank's intake, after it has posted start `number`; while more is missing, a
    /// part of it.
    #[inline]
    fn awaited(&self, number: u64) -> Awaited {
        match &self.exchange.intake {
            _ if self.last_publishes() => Awaited::Note(self.mailboxes.size(), number),
            Intake::Nothing => Awaited::Anything,
            Intake::One { from, .. } => Awaited::Note(*from, number),
            Intake::Signals | Intake::Each { .. } => Awaited::AllNotes(number),
            Intake::Combined { operands, .. } if operands.ranks == self.mailboxes.size() => Awaited::AllNotes(number),
            Intake::Combined { operands, .. } => Awaited::NotesBelow(operands.ranks, number),
            Intake::Pieces(reduction) => reduction.awaited(&self.mailboxes, number),
            Intake::Neighbours(incoming) => {
                incoming.missing(&self.mailboxes.slots, number).unwrap_or(Awaited::Anything)
            }
        }
    }

    // ---- leaving ---------------------------------------------------------------------------------------------------

    /// Begins start `number` with a contribution for which there is no room yet.
    pub(super) fn hold_back(&self, number: u64) {
        self.word.set(number, HELD_BACK);
    }

    /// Posts the contribution to start `number`, for which there is room. The operation may then be done already.
    /// Otherwise [`BackgroundOp::arrive`] must follow.
    pub(super) fn post(&self, pending: &mut Pending, number: u64) {
        let (mailboxes, kind, all) = (&*self.mailboxes, self.exchange.call, self.bytes);
        let id = (number, kind);
        match &self.exchange.contribution {
            Contribution::Nothing => {}
            Contribution::Signal => mailboxes.post(number, kind, &SlotNote::signal()),
            Contribution::Block(region) => {
                mailboxes.leave(pending, id, Content::Block { len: all }, all, |place| read(region, place));
            }
            Contribution::Parts(parts) => match parts.even {
                Some(0) => mailboxes.post(number, kind, &SlotNote::signal()),
                Some(len) => mailboxes.leave(pending, id, Content::Block { len }, all, |place| {
                    place
                        .chunks_exact_mut(len)
                        .enumerate()
                        .for_each(|(rank, part)| read(&parts.blocks.region(rank), part));
                }),
                None => mailboxes.leave(pending, id, Content::Table, all, |place| self.lay_out(parts, place)),
            },
            Contribution::Blocks(sent) => sent.post(mailboxes, pending, id),
            Contribution::Announced(len) => mailboxes.post(number, kind, &SlotNote::of_rounds(*len)),
            Contribution::Lent(lent) => lent.post(mailboxes, pending, number, kind),
            Contribution::Operand => {
                if let Some(reduction) = self.reduction() {
                    reduction.post(mailboxes, number, kind);
                }
            }
        }
        self.exchange.own.iter().for_each(|(from, to)| copy(from, to));
        if matches!(self.exchange.intake, Intake::Nothing) && !self.last_publishes() && self.by_messages.is_none() {
            mailboxes.mark_finished(pending, number);
            self.word.set(number, self.end());
        } else {
            self.word.set(number, POSTED);
        }
    }

    /// Returns the state after fetching.
    fn end(&self) -> u8 {
        if matches!(self.exchange.contribution, Contribution::Lent(_)) { LENT } else { DONE }
    }

    /// Writes a table, and the parts that are left in the mailboxes.
    fn lay_out(&self, parts: &Parts, place: &mut [u8]) {
        let by_message = |_, region: &Region, _| Ok((region.len() > parts.most).then_some(BY_MESSAGE));
        let written =
            write_table(place, &parts.blocks, [self.mailboxes.size(), self.mailboxes.slots.me()], 1, by_message);
        written.expect("saying what goes by message cannot fail");
    }

    /// Counts this rank as arrived, after it has posted start `number`. The last rank wakes all, and takes the steps
    /// that one rank takes for all.
    pub(super) fn arrive(&self, number: u64) {
        // An operation without a meeting may be done by now, and started again. No rank completes an operation with a
        // meeting before this has returned.
        if !self.counts_arrivals() || self.mailboxes.slots.arrive(number) < self.mailboxes.size() as u64 {
            return;
        }
        let outcome = match &self.exchange.intake {
            // Ranks that do not know that it is a long reduction wait for a note.
            Intake::Pieces(reduction) => match reduction.ends(&self.mailboxes, number, self.exchange.call) {
                Ok(_) => return,
                Err(_) => Ok(SlotNote::of_nothing()),
            },
            Intake::Combined { operands, part, for_all: true, .. } => self.combine_for_all(operands, part),
            _ => Ok(SlotNote::signal()),
        };
        let note = outcome.unwrap_or_else(|error| {
            self.trouble.lock().get_or_insert(error);
            SlotNote::of_nothing()
        });
        self.mailboxes.post_for_all(number, self.exchange.call, &note);
    }

    // ---- ending ----------------------------------------------------------------------------------------------------

    /// Takes the remaining steps that are possible now; returns true if none remains. Only threads that own the request
    /// may call this, so that no other thread starts it again meanwhile.
    #[inline]
    pub fn advance(&self) -> bool {
        let now = self.word.load();
        if now.state == DONE {
            return true;
        }
        if now.state == HELD_BACK && self.is_ripe() {
            self.mailboxes.serve();
        }
        self.combine_pieces();
        let finished = self.ready_start().and_then(|number| self.finish_start(number));
        if let Some(Finished { asks }) = finished {
            self.mailboxes.tell_all();
            if asks || self.mailboxes.slots.is_room_wanted() {
                self.mailboxes.serve();
            }
        }
        self.is_done() || self.settle() || self.fail_if_lost()
    }

    /// Ends the operation with an error if a member has died; returns true if it has ended.
    #[inline]
    fn fail_if_lost(&self) -> bool {
        self.mailboxes.engine.is_impaired() && self.fail_now_if_lost()
    }

    #[cold]
    fn fail_now_if_lost(&self) -> bool {
        let Some(comm) = &self.comm else { return false };
        let failure = self.mailboxes.engine.lost_group(comm.coll_context());
        failure.is_some_and(|failure| !self.is_ripe() && self.messages_are_done() && self.fail(&failure))
    }

    /// Completes the operation after fetching, once no rank needs what it lends; returns true if it is done.
    fn settle(&self) -> bool {
        let now = self.word.load();
        let is_returned = now.state == LENT && self.unreturned(now.number).is_none();
        if !is_returned || !self.word.advance(now.number, LENT, DONE) {
            return self.is_done();
        }
        self.mailboxes.count_returned(self);
        true
    }

    /// Fetches the intake of start `number`, which was found ready, and marks it finished. Returns `None` if another
    /// thread does, or has done, that; the operation may then have been started again.
    #[must_use]
    pub(super) fn finish_start(&self, number: u64) -> Option<Finished> {
        if !self.word.advance(number, POSTED, FETCHING) {
            return None;
        }
        let outcome = self.fetch();
        // Combining for all, or a piece, may have failed before.
        let before = self.trouble.lock().take();
        let of_messages = || self.by_messages.as_ref().and_then(|by_messages| by_messages.take_error());
        if let Some(error) = before.or(outcome.err()).or_else(of_messages) {
            let error = self.explained(number, error);
            self.trouble.lock().get_or_insert(error);
        }
        self.end_inquiries();
        let asks = self.mailboxes.count_finished(number);
        if self.reduction().is_some() {
            self.mailboxes.count_returned(self);
        }
        self.word.set(number, self.end());
        Some(Finished { asks })
    }

    // ---- waiting ---------------------------------------------------------------------------------------------------

    /// Waits until the operation is done.
    ///
    /// # Errors
    /// [`Interrupted`]: it is still under way.
    fn wait_here(&self, waiting: &Waiting<'_>) -> std::result::Result<(), Interrupted> {
        while !self.advance() {
            let now = self.word.load();
            let awaited = match now.state {
                HELD_BACK => Awaited::AllFinished(self.mailboxes.room_for(self, now.number)),
                LENT => self.unreturned(now.number).unwrap_or(Awaited::Anything),
                _ => self.awaited(now.number),
            };
            if let Some(failure) = self.wait_until(awaited, waiting)?
                && self.fail(&failure)
            {
                return Ok(());
            }
        }
        self.mailboxes.keep_pace(self.number(), self.mailboxes.depth(self.bytes));
        Ok(())
    }

    /// Ends the operation with an error, because the device has failed or a member has died; returns false if another
    /// thread is fetching.
    #[cold]
    pub(super) fn fail(&self, failure: &Failure) -> bool {
        let now = self.word.load();
        if matches!(now.state, IDLE | FETCHING | DONE) || !self.word.advance(now.number, now.state, FETCHING) {
            return false;
        }
        let mut trouble = self.trouble.lock();
        if trouble.as_ref().is_none_or(|error| error.class == MPI_ERR_PROC_ABORTED) {
            *trouble = Some(error_of(failure));
        }
        drop(trouble);
        // The program gets back its lent buffer: bytes that other ranks read from now on are invalid.
        match self.reduction() {
            Some(reduction) if now.state == POSTED => {
                reduction.give_up(&self.mailboxes, now.number, self.exchange.call);
            }
            _ => self.mailboxes.slots.withdraw(now.number),
        }
        if now.state != LENT {
            let _ = self.mailboxes.count_finished(now.number);
        }
        if self.lends() {
            self.mailboxes.count_returned(self);
        }
        self.end_inquiries();
        self.word.set(now.number, DONE);
        self.mailboxes.tell();
        true
    }

    /// Returns the reason if the operation will not end by itself: the device has failed, or a member has died. Its
    /// messages end by themselves.
    fn lost(&self, view: &View<'_>) -> Option<Failure> {
        let context = self.comm.as_ref()?.coll_context();
        view.lost_group(context).filter(|_| self.messages_are_done())
    }

    /// Waits until the condition holds at the mailboxes and messages have come; returns the reason if they never will.
    fn wait_until(&self, awaited: Awaited, waiting: &Waiting<'_>) -> std::result::Result<Option<Failure>, Interrupted> {
        let engine = &self.mailboxes.engine;
        let slots = &self.mailboxes.slots;
        let holds = || match self.word.load().state {
            DONE => true,
            HELD_BACK => slots.holds(awaited),
            // Another thread is copying.
            FETCHING => false,
            _ => slots.holds(awaited) && self.messages_are_done(),
        };
        fetch_for_all();
        if look(engine, holds) {
            return Ok(None);
        }
        fetch_for_all();
        let mut lost = None;
        let (begin_sleep, end_sleep) = (|| self.mailboxes.begin_sleep(awaited), || self.mailboxes.end_sleep());
        let sleeper = Sleeper { waiting, begin_sleep: &begin_sleep, end_sleep: &end_sleep };
        engine.block_on(
            &mut |view| {
                lost = self.lost(view);
                lost.is_some() || holds()
            },
            &sleeper,
        )?;
        Ok(lost.filter(|_| !holds()))
    }
}

impl Mailboxes {
    /// Lets other ranks catch up for a while after a wait for operation `number`, if this rank is so far ahead that
    /// there is no room for another operation like it. That is cheaper than asking for room, which programs that only
    /// start and wait then never do.
    #[inline]
    fn keep_pace(&self, number: u64, depth: u64) {
        if self.finished_by_all.load(Ordering::Relaxed) + depth <= number {
            self.let_catch_up(number, depth);
        }
    }

    #[cold]
    fn let_catch_up(&self, number: u64, depth: u64) {
        if self.slots.least_finished() + depth <= number {
            // Waits for several operations: after a single one, a rank that runs ahead would soon be back.
            look(&self.engine, || self.slots.least_finished() + depth.div_ceil(2) > number);
        }
        self.finished_by_all.store(self.slots.least_finished(), Ordering::Relaxed);
    }

    /// Returns the operation that all must have finished before this one can be posted.
    fn room_for(&self, operation: &BackgroundOp, number: u64) -> u64 {
        self.needs_finished(&self.pending.lock(), number, operation.bytes)
    }

    fn begin_sleep(&self, awaited: Awaited) {
        let mut sleepers = self.sleepers.lock();
        *sleepers += 1;
        if *sleepers == 1 { self.slots.begin_sleep(awaited) } else { self.slots.await_anything() }
    }

    fn end_sleep(&self) {
        let mut sleepers = self.sleepers.lock();
        *sleepers -= 1;
        if *sleepers == 0 {
            self.slots.end_sleep();
        }
    }
}

impl Operation for BackgroundOp {
    fn start(self: Arc<Self>) -> Result<()> {
        BackgroundOp::start(&self);
        Ok(())
    }

    fn progress(&self) -> bool {
        self.advance()
    }

    fn is_ready(&self, view: &View<'_>) -> bool {
        self.is_ripe() || self.lost(view).is_some()
    }

    fn finish(&self) -> Option<End> {
        self.advance().then(|| End { error: self.trouble.lock().take(), ..End::empty() })
    }

    fn look(&self) -> Option<End> {
        if !self.advance() {
            self.mailboxes.engine.poll();
        }
        self.advance().then(|| End { error: self.trouble.lock().clone(), ..End::empty() })
    }

    fn cancel(&self) -> Result<()> {
        fail!(MPI_ERR_REQUEST, "collective operations cannot be cancelled")
    }

    fn release(&self) -> Result<()> {
        if self.advance() {
            return Ok(());
        }
        fail!(MPI_ERR_REQUEST, "an active collective operation cannot be freed: complete it first")
    }

    fn wait(&self, waiting: &Waiting<'_>) -> std::result::Result<bool, Interrupted> {
        let has_to_wait = !self.advance();
        if has_to_wait {
            self.mailboxes.begin_wait();
        }
        let waited = self.wait_here(waiting);
        if has_to_wait {
            self.mailboxes.end_wait();
        }
        waited.map(|()| true)
    }

    fn begin_sleep(&self) {
        self.mailboxes.begin_sleep(Awaited::Anything);
    }

    fn end_sleep(&self) {
        self.mailboxes.end_sleep();
    }

    fn keeps_memory(&self) -> bool {
        // The mailboxes of a persistent operation are its own.
        self.own_number.is_none()
            || self.exchange.keeps_copies()
            || self.by_messages.as_ref().is_some_and(|by_messages| by_messages.keeps_memory())
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        self.comm.as_deref().map(|comm| Awaits::Collective { comm, started: self.started, inquiry: Some(self) })
    }
}
