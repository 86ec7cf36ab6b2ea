//! An operation under way: what this rank leaves in a depot is posted, and what it gets is fetched when it is there.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | idle | not started | held back or posted, by [`Errand::start`] |
//! | held back | there is no room yet for what this rank leaves | posted, by [`Depot::attend`] |
//! | posted | what this rank leaves is there | fetching, once what it gets is there too; lent or done, if that is nothing |
//! | fetching | a thread brings what this rank gets to its buffer | lent, if it lends, or done |
//! | lent | others may still read this rank's memory | done, once all have finished the operation |
//! | done | nothing is left to do | held back or posted (persistent) |
//!
//! Held back and posted are entered under the lock of the depot's book, fetching by one of all threads that try.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use limosa_base::stage::{Awaited, BODY_BYTES, Body};
use limosa_p2p::Observer;
use limosa_p2p::memory::Region;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::deal::{Deal, Give, Operands, Parts, Take, Terms};
use super::loan::borrow;
use super::shelf::{BLOCK, FAR, LINE, NOTHING, Note, Place, TABLE, get, put};
use super::{Book, Depot};
use crate::coll::broken;
use crate::coll::buffer::{Blocks, Buffer};
use crate::coll::node::{Reducer, Scratch, look};
use crate::coll::run::Run;
use crate::coll::schedule::{copy, mismatch};
use crate::coll::work::Work;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::instance;
use crate::observe::Waiting;

const IDLE: u8 = 0;
const HELD_BACK: u8 = 1;
const POSTED: u8 = 2;
const FETCHING: u8 = 3;
const LENT: u8 = 4;
const DONE: u8 = 5;

/// Where an operation is to be done.
pub(in crate::coll) struct Desk {
    pub(in crate::coll) depot: Arc<Depot>,
    /// Its number, unless the depot counts for itself because it serves one persistent operation.
    pub(in crate::coll) number: Option<u64>,
    pub(in crate::coll) terms: Terms,
}

/// An operation of this rank on a depot.
pub struct Errand {
    pub(super) depot: Arc<Depot>,
    pub(super) number: AtomicU64,
    /// Bytes that this rank leaves.
    pub(super) bytes: usize,
    own_number: Option<u64>,
    state: AtomicU8,
    deal: Deal,
    far: Option<Arc<Run>>,
    trouble: Mutex<Option<Error>>,
}

// SAFETY: the addresses in a deal are those of buffers that the program leaves to the operation until it has ended; one thread at a time, which the
// state names, reads or writes there. Everything else is synchronised by itself.
unsafe impl Send for Errand {}
// SAFETY: as above.
unsafe impl Sync for Errand {}

impl Errand {
    pub(in crate::coll) fn new(desk: Desk, deal: Deal) -> Arc<Errand> {
        let depot = desk.depot;
        Arc::new(Errand {
            number: AtomicU64::new(0),
            bytes: deal.bytes(depot.size(), depot.stage.me()),
            own_number: desk.number,
            state: AtomicU8::new(IDLE),
            far: None,
            deal,
            depot,
            trouble: Mutex::default(),
        })
    }

    /// Makes ready what goes by message on this communicator; before the first start.
    pub(in crate::coll) fn prepare(&mut self, comm: &Arc<Comm>) {
        self.far = self.deal.far.take().map(|schedule| Run::new(comm, *schedule));
    }

    /// Starts it; it must be new or done.
    pub fn start(self: &Arc<Errand>) {
        if self.far.is_some() {
            *self.trouble.lock() = None;
        }
        self.state.store(HELD_BACK, Ordering::Relaxed);
        self.depot.enter(self, self.own_number);
        if let Some(far) = &self.far {
            far.start(instance::engine());
        }
        if self.lends() && !self.is_done() {
            // In case that this thread is not here to see others fall behind.
            instance::engine().remind_soon();
        }
    }

    /// Whether others read this process's memory.
    #[inline]
    pub(super) fn lends(&self) -> bool {
        matches!(self.deal.give, Give::Loan(_))
    }

    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// What this rank leaves is there.
    pub(super) fn is_posted(&self) -> bool {
        self.state.load(Ordering::Acquire) >= POSTED
    }

    /// Nothing is left to do.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }

    /// This rank reads nothing any more that others have left.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) >= LENT
    }

    /// Nothing is left to do but what [`Errand::finish`] does. Takes no lock.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.state.load(Ordering::Acquire) == POSTED
            && self.depot.stage.holds(self.awaited())
            && self.far.as_ref().is_none_or(|far| far.is_done())
    }

    /// It is posted and waits for what others leave, and for nothing else.
    pub(super) fn awaits_notes(&self) -> bool {
        self.state.load(Ordering::Acquire) == POSTED && self.far.as_ref().is_none_or(|far| far.is_done())
    }

    /// A look would bring it further, or it is done. May be called with the engine's lock, which nobody takes who has the book.
    pub fn is_ripe(&self) -> bool {
        match self.state.load(Ordering::Acquire) {
            HELD_BACK => self.depot.stage.least_finished() >= self.depot.room_for(self),
            POSTED => self.is_ready(),
            LENT => self.depot.stage.holds(Awaited::AllFinished(self.number())),
            _ => true,
        }
    }

    /// What went wrong, if anything; once.
    pub fn take_error(&self) -> Option<Error> {
        self.trouble.lock().take()
    }

    /// Whether who comes last tells all others.
    fn meets(&self) -> bool {
        self.depot.crowded && !matches!(self.deal.give, Give::Nothing) && self.deal.kind.is_among_all()
    }

    /// What must be there for this rank, when it has posted.
    #[inline]
    pub(super) fn awaited(&self) -> Awaited {
        let number = self.number();
        match &self.deal.take {
            _ if self.meets() => Awaited::Note(self.depot.size(), number),
            Take::Nothing => Awaited::Anything,
            Take::One { from, .. } => Awaited::Note(*from, number),
            Take::Signals | Take::Each { .. } => Awaited::AllNotes(number),
            Take::Combined { operands, .. } if operands.ranks == self.depot.size() => Awaited::AllNotes(number),
            Take::Combined { operands, .. } => Awaited::NotesBelow(operands.ranks, number),
        }
    }

    // ---- leaving ---------------------------------------------------------------------------------------------------

    /// Posts what this rank leaves, for which there is room.
    pub(super) fn post(&self, book: &mut Book) {
        let (depot, number, kind, all) = (&*self.depot, self.number(), self.deal.kind, self.bytes);
        let block = |len| Note { kind, form: BLOCK, len, all };
        match &self.deal.give {
            Give::Nothing => {}
            Give::Signal => depot.leave(book, number, block(0), |_| ()),
            Give::Block(region) => depot.leave(book, number, block(all), |place| put(region, place)),
            Give::Parts(parts) => match parts.even {
                Some(0) => depot.leave(book, number, block(0), |_| ()),
                Some(len) => depot.leave(book, number, block(len), |place| {
                    place.chunks_exact_mut(len).enumerate().for_each(|(rank, part)| put(&parts.blocks.region(rank), part));
                }),
                None => depot.leave(book, number, Note { form: TABLE, ..block(all) }, |place| self.lay_out(parts, place)),
            },
            Give::Loan(loan) => loan.post(depot, book, number, kind),
        }
        if let Some((from, to)) = &self.deal.own {
            copy(from, to);
        }
        let is_over = matches!(self.deal.take, Take::Nothing) && !self.meets() && self.far.is_none();
        self.state.store(if is_over { self.end() } else { POSTED }, Ordering::Release);
    }

    /// The state after fetching.
    fn end(&self) -> u8 {
        if self.lends() { LENT } else { DONE }
    }

    /// A table, and the parts that are left.
    fn lay_out(&self, parts: &Parts, place: &mut [u8]) {
        let (size, me) = (self.depot.size(), self.depot.stage.me());
        let (table, data) = place.split_at_mut(size * LINE);
        let mut used = 0;
        for (rank, line) in table.chunks_exact_mut(LINE).enumerate().filter(|(rank, _)| *rank != me) {
            let region = parts.blocks.region(rank);
            let len = region.len();
            let offset = if len > parts.most {
                FAR
            } else {
                put(&region, &mut data[used..used + len]);
                used += len;
                (size * LINE + used - len) as u32
            };
            line[..4].copy_from_slice(&offset.to_ne_bytes());
            // A length that needs more digits goes by message, which has them all.
            line[4..].copy_from_slice(&(len as u32).to_ne_bytes());
        }
    }

    /// After posting: counts this rank as arrived. Who is the last tells all, and does what is to be done for all.
    pub(super) fn arrive(&self) {
        if !self.meets() || self.depot.stage.arrive(self.number()) < self.depot.size() as u64 {
            return;
        }
        let outcome = match &self.deal.take {
            Take::Combined { operands, part, for_all: true, .. } => self.combine_for_all(operands, part),
            _ => {
                self.depot.post_for_all(self.number(), self.deal.kind, 0, &Body::default());
                Ok(())
            }
        };
        if let Err(error) = outcome {
            self.trouble.lock().get_or_insert(error);
            self.depot.post_for_all(self.number(), self.deal.kind, NOTHING, &Body::default());
        }
    }

    /// Combines the operands, to where this rank's was: all others wait for the result.
    fn combine_for_all(&self, operands: &Operands, part: &Range<usize>) -> Result<()> {
        let (depot, number, kind, len) = (&*self.depot, self.number(), self.deal.kind, part.len());
        let mut body = Body::default();
        if len <= BODY_BYTES {
            // SAFETY: the body has room for this many bytes.
            unsafe { self.combine(operands, part, (&raw mut body).cast())? };
            depot.post_for_all(number, kind, len as u8, &body);
            return Ok(());
        }
        let scratch = Scratch::take(len)?;
        // SAFETY: scratch memory of this many bytes; then this rank's operand, of as many bytes, which nobody else reads.
        unsafe {
            self.combine(operands, part, scratch.start())?;
            let me = depot.stage.me();
            if let Place::Here(own) = depot.find(me, number, kind, None)?.place {
                std::ptr::copy_nonoverlapping(scratch.start(), own.cast_mut(), len);
            }
            body[..3].copy_from_slice(&[len as u64, 0, me as u64]);
        }
        depot.post_for_all(number, kind, BLOCK, &body);
        Ok(())
    }

    // ---- getting ---------------------------------------------------------------------------------------------------

    /// Does what is left to do, if that is possible now; true if nothing is left.
    #[inline]
    pub fn finish(&self) -> bool {
        if self.is_done() {
            return true;
        }
        if self.state.load(Ordering::Relaxed) == HELD_BACK && self.is_ripe() {
            self.depot.attend();
        }
        if !self.finish_quietly() {
            return self.is_done() || self.settle();
        }
        let asks = self.depot.strike(self.number());
        self.depot.tell();
        if asks || self.depot.stage.is_pressed() {
            self.depot.attend();
        }
        self.is_done() || self.settle()
    }

    /// After fetching: it is done once nobody needs what is lent; true if this thread has found that.
    fn settle(&self) -> bool {
        let is_returned = self.state.load(Ordering::Acquire) == LENT && self.depot.stage.holds(Awaited::AllFinished(self.number()));
        if !is_returned || self.state.compare_exchange(LENT, DONE, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return self.is_done();
        }
        self.depot.count_returned();
        true
    }

    /// As [`Errand::finish`], without telling the depot; true if this thread has done it.
    pub(super) fn finish_quietly(&self) -> bool {
        if !self.is_ready() || self.state.compare_exchange(POSTED, FETCHING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let outcome = self.fetch();
        let trouble = outcome.err().or_else(|| self.far.as_ref().and_then(|far| far.take_error()));
        if let Some(error) = trouble {
            self.trouble.lock().get_or_insert(error);
        }
        self.state.store(self.end(), Ordering::Release);
        true
    }

    fn fetch(&self) -> Result<()> {
        match &self.deal.take {
            Take::Nothing => Ok(()),
            Take::Signals => {
                if self.meets() {
                    Ok(())
                } else {
                    (0..self.depot.size()).try_for_each(|rank| self.found(rank, None, 0).map(|_| ()))
                }
            }
            Take::One { from, part, into } => {
                let place = self.found(*from, *part, into.len())?;
                // SAFETY: so many bytes are there.
                unsafe { self.bring(*from, place, into) }
            }
            Take::Each { into, part, .. } => self.fetch_each(into, *part),
            Take::Combined { operands, part, into, for_all } => {
                if *for_all && self.meets() {
                    return self.fetch_for_all(into, part.len());
                }
                let region = into.region();
                if let Some(start) = region.as_contiguous() {
                    // SAFETY: the program's result, which has this many bytes.
                    return unsafe { self.combine(operands, part, start) };
                }
                let scratch = Scratch::take(part.len())?;
                // SAFETY: scratch memory of this many bytes.
                unsafe {
                    self.combine(operands, part, scratch.start())?;
                    get(scratch.start(), &region);
                }
                Ok(())
            }
        }
    }

    fn fetch_each(&self, into: &Blocks, part: Option<usize>) -> Result<()> {
        let (size, me) = (self.depot.size(), self.depot.stage.me());
        let mut outcome = Ok(());
        for rank in (1..size).map(|distance| (me + distance) % size) {
            let region = into.region(rank);
            // SAFETY: so many bytes are there.
            let brought = self.found(rank, part, region.len()).and_then(|place| unsafe { self.bring(rank, place, &region) });
            outcome = outcome.and(brought);
        }
        outcome
    }

    /// Brings a rank's bytes, as many as the region has, to the region.
    ///
    /// # Safety
    /// So many bytes must be there.
    #[inline]
    unsafe fn bring(&self, rank: usize, place: Option<Place>, into: &Region) -> Result<()> {
        match place {
            // SAFETY: the caller's promise.
            Some(Place::Here(start)) => unsafe { get(start, into) },
            Some(Place::There(address)) => return borrow(self.depot.peers[rank], rank, address, into),
            Some(Place::OnTheWay) | None => {}
        }
        Ok(())
    }

    fn fetch_for_all(&self, into: &Buffer, len: usize) -> Result<()> {
        let (depot, number) = (&*self.depot, self.number());
        if depot.is_void(number) {
            // Ranks disagree, or the operation failed: with whom, each finds out by itself.
            return (0..depot.size()).try_for_each(|rank| self.found(rank, None, len).map(|_| ()));
        }
        let found = depot.find_for_all(number, self.deal.kind)?;
        if found.len != len {
            return Err(mismatch(depot.size() - 1, found.len, len));
        }
        if let Place::Here(start) = found.place {
            // SAFETY: so many bytes are there.
            unsafe { get(start, &into.region()) };
        }
        Ok(())
    }

    /// Where a rank has the bytes that this one expects; `None` if there are none, or they come by message as this rank knows.
    #[inline]
    fn found(&self, rank: usize, part: Option<usize>, expected: usize) -> Result<Option<Place>> {
        let most = match &self.deal.take {
            Take::Each { most, .. } => *most,
            _ => usize::MAX,
        };
        if expected > most {
            return Ok(None);
        }
        let found = self.depot.find(rank, self.number(), self.deal.kind, part)?;
        if found.len != expected {
            return Err(mismatch(rank, found.len, expected));
        }
        Ok((expected > 0).then_some(found.place))
    }

    /// Combines the operands of the first ranks, which are there: this part of them.
    ///
    /// # Errors
    /// Ranks disagree about the length; errors of the operation.
    ///
    /// # Safety
    /// `into` must have room for the part and be used by nobody else.
    unsafe fn combine(&self, operands: &Operands, part: &Range<usize>, into: *mut u8) -> Result<()> {
        let all = operands.like.bytes();
        let reducer = Reducer::new(&operands.op, &operands.like, true);
        let last = operands.ranks - 1;
        for rank in (0..=last).rev() {
            // Operands are not lent.
            let Some(Place::Here(start)) = self.found(rank, None, all)? else { continue };
            let from = start.wrapping_add(part.start);
            // SAFETY: the part lies within the bytes that the rank has left; the rest is the caller's promise.
            unsafe {
                if rank == last {
                    std::ptr::copy_nonoverlapping(from, into, part.len());
                } else {
                    reducer.combine(from, into, part.len())?;
                }
            }
        }
        Ok(())
    }

    // ---- waiting ---------------------------------------------------------------------------------------------------

    /// Waits until it is done.
    pub fn wait(&self, waiting: &Waiting<'_>) {
        while !self.finish() {
            let awaited = match self.state.load(Ordering::Acquire) {
                HELD_BACK => Awaited::AllFinished(self.depot.room_for(self)),
                LENT => Awaited::AllFinished(self.number()),
                FETCHING => {
                    // Another thread is copying.
                    std::thread::yield_now();
                    continue;
                }
                _ => self.awaited(),
            };
            if !self.wait_until(awaited, waiting) {
                self.trouble.lock().get_or_insert_with(broken);
                self.state.store(DONE, Ordering::Release);
                return;
            }
        }
        self.depot.keep_pace(self.number(), self.depot.depth(self.bytes));
    }

    /// Waits until something is the case at the depot and messages have come; false if nothing will be any more.
    fn wait_until(&self, awaited: Awaited, waiting: &Waiting<'_>) -> bool {
        let engine = instance::engine();
        let stage = &self.depot.stage;
        let holds = || {
            let is_posted = self.is_posted();
            self.is_done() || (stage.holds(awaited) && (!is_posted || self.far.as_ref().is_none_or(|far| far.is_done())))
        };
        if look(holds) {
            return true;
        }
        let mut is_broken = false;
        let sleeper = Sleeper { depot: &self.depot, awaited, waiting };
        engine.block_on(
            &mut |view| {
                is_broken = view.is_broken();
                is_broken || holds()
            },
            &sleeper,
        );
        !is_broken || holds()
    }
}

impl Depot {
    /// After a wait for operation `number`: if this rank is so far ahead of others that there is no room for another one like it, it lets them
    /// catch up for a while. That is cheaper than asking them to make room, which a program that only starts and waits then never does.
    #[inline]
    fn keep_pace(&self, number: u64, depth: u64) {
        if self.floor.load(Ordering::Relaxed) + depth <= number {
            self.let_catch_up(number, depth);
        }
    }

    #[cold]
    fn let_catch_up(&self, number: u64, depth: u64) {
        if self.stage.least_finished() + depth <= number {
            // Not for a single one: who runs ahead of the others would soon be back.
            look(|| self.stage.least_finished() + depth.div_ceil(2) > number);
        }
        self.floor.store(self.stage.least_finished(), Ordering::Relaxed);
    }

    /// What all must have finished before an operation can be posted.
    fn room_for(&self, errand: &Errand) -> u64 {
        errand.needs_finished(&self.book.lock())
    }

    fn lie_down(&self, awaited: Awaited) {
        let mut beds = self.beds.lock();
        *beds += 1;
        if *beds == 1 { self.stage.lie_down(awaited) } else { self.stage.sleep_lightly() }
    }

    fn get_up(&self) {
        let mut beds = self.beds.lock();
        *beds -= 1;
        if *beds == 0 {
            self.stage.get_up();
        }
    }
}

/// Tells the depot what a sleeping thread awaits.
struct Sleeper<'a> {
    depot: &'a Depot,
    awaited: Awaited,
    waiting: &'a Waiting<'a>,
}

impl Observer for Sleeper<'_> {
    fn arrange(&self) {
        self.depot.lie_down(self.awaited);
    }

    fn retract(&self) {
        self.depot.get_up();
    }

    fn blocked(&self) {
        self.waiting.blocked();
    }

    fn resumed(&self) {
        self.waiting.resumed();
    }

    fn woken_for_nothing(&self) {
        self.waiting.woken_for_nothing();
    }
}

/// Tells several depots that a thread sleeps until anything happens there.
pub(crate) struct Sleepers<'a> {
    depots: SmallVec<[Arc<Depot>; 4]>,
    waiting: &'a Waiting<'a>,
}

impl<'a> Sleepers<'a> {
    pub(crate) fn new<'w>(works: impl Iterator<Item = &'w Work>, waiting: &'a Waiting<'a>) -> Sleepers<'a> {
        let mut depots: SmallVec<[Arc<Depot>; 4]> = SmallVec::new();
        for work in works {
            let Work::Errand(errand) = work else { continue };
            if !depots.iter().any(|depot| Arc::ptr_eq(depot, &errand.depot)) {
                depots.push(errand.depot.clone());
            }
        }
        Sleepers { depots, waiting }
    }
}

impl Observer for Sleepers<'_> {
    fn arrange(&self) {
        self.depots.iter().for_each(|depot| depot.lie_down(Awaited::Anything));
    }

    fn retract(&self) {
        self.depots.iter().for_each(|depot| depot.get_up());
    }

    fn blocked(&self) {
        self.waiting.blocked();
    }

    fn resumed(&self) {
        self.waiting.resumed();
    }

    fn woken_for_nothing(&self) {
        self.waiting.woken_for_nothing();
    }
}
