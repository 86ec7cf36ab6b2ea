//! Non-blocking and persistent collectives straight in shared memory, where all members of a communicator share a machine.
//!
//! Each rank leaves what it contributes in a *depot* when it calls, and gets what it needs from there when it looks: in a wait, in a test, or when
//! somebody needs the room. Nobody needs another rank's processor after that rank's call, so that operations complete while all ranks compute.
//! What is too large for a depot is lent, if it is only to be moved and memory of others can be read: then the depot says where it is. What is too
//! large to be reduced there goes by messages ([`super::run`]).
//!
//! ```text
//! let desk = call.desk(bytes)?;                     // the depot, if so many bytes fit
//! let deal = Deal::reduction(...);                  // what this rank leaves there, and what it gets
//! let errand = Errand::new(desk, deal);
//! errand.start();                                   // leaves it
//! errand.wait(...);                                 // gets the rest
//! ```
//!
//! A depot is a [`Stage`] and nobody exchanges a message to set it up: members find its memory by a name that all know
//! ([`join_area`](limosa_p2p::Commons::join_area)). A communicator has one for its non-blocking operations, each persistent operation one of its own,
//! because persistent operations may be started in different orders.
//!
//! Contract
//! - All ranks number the operations on a depot alike, in the order of their calls; operations that do not use it count too.
//! - Which operations use a depot is decided by what all ranks know: bytes, or for lengths that two ranks know, the length of a part (see
//!   [`Deal::far`]).
//! - A note may take the place of an older one once all ranks have finished that operation. Until then what is to be left waits
//!   ([`Errand::is_posted`]), without anybody being held up: the rank *presses*, the others' threads that are in the library, or their helpers,
//!   finish what they can ([`Depot::attend`]), and whoever makes the room has the waiting rank's helper use it.
//! - Reductions combine as blocking ones do, from the highest rank to the lowest.
//!
//! | module | holds |
//! |---|---|
//! | `deal` | what an operation leaves and gets: one constructor per operation |
//! | `errand` | an operation under way: posting, getting, waiting |
//! | `loan` | bytes that stay in a rank's memory, where others read them |
//! | `shelf` | where bytes lie: notes, slots, large slots |

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use limosa_base::fence;
use limosa_base::stage::{Awaited, Common, Stage};
use limosa_job::config;
use limosa_p2p::Peer;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::comm::{Comm, mix};
use crate::instance;

mod deal;
mod errand;
mod loan;
mod shelf;

pub(super) use deal::{Deal, Terms};
pub(super) use errand::Desk;
pub use errand::Errand;
pub(crate) use errand::Sleepers;
pub(super) use shelf::LOAN_LINE;
use shelf::Large;

/// Most ranks of a communicator: a table of all fits a slot.
const MAX_RANKS: usize = 256;
/// Bytes of a slot of a communicator's depot.
pub(super) const SLOT_BYTES: usize = 4 << 10;
/// Bytes of a large slot.
const LARGE_BYTES: usize = 64 << 10;
/// Most bytes that a rank can leave at once.
pub(super) const MOST_BYTES: usize = LARGE_BYTES;

/// Tells a communicator's depot from those of its persistent operations, which have their numbers.
const FOR_ALL: u64 = u64::MAX;
/// Tells large slots from the depot that they belong to.
const LARGE: u64 = 1;

/// Depots of this process that operations have used, for the attendant.
static DEPOTS: Mutex<Vec<Weak<Depot>>> = Mutex::new(Vec::new());
/// How many of them have operations under way, and how many operations lend.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Where the members of a communicator leave what they contribute.
pub struct Depot {
    name: u64,
    stage: Stage,
    /// Ranks share processors: who comes last tells all others.
    crowded: bool,
    peers: Box<[Peer]>,
    large: OnceLock<Option<Large>>,
    /// Bytes of a large slot, if this rank makes them.
    large_bytes: usize,
    book: Mutex<Book>,
    /// An operation that all ranks are known to have finished.
    floor: AtomicU64,
    /// Threads of this process that sleep until something happens here.
    beds: Mutex<usize>,
    /// Operations that lend and are not done.
    lent: AtomicUsize,
}

/// Which operations are under way.
#[derive(Default)]
struct Book {
    /// All operations up to this one are finished here.
    mark: u64,
    /// The operations after it; `None` for those that are finished, or do not use the depot.
    open: VecDeque<Option<Arc<Errand>>>,
    /// How many of them could not be posted yet.
    held_back: usize,
    /// The operations that used this rank's large slots last, and the slot that is next.
    large: [u64; shelf::LARGE_SLOTS],
    next_large: usize,
    /// This rank wants to hear of something.
    asks: bool,
    /// This rank wants others to finish what they can.
    presses: bool,
}

impl Depot {
    /// The depot for a communicator's non-blocking operations; `None` where there is none, which all members find alike.
    pub(super) fn of(comm: &Comm) -> Option<&Arc<Depot>> {
        match comm.depot.get() {
            Some(depot) => depot.as_ref(),
            None => {
                instance::get()?;
                comm.depot.get_or_init(|| Depot::join(comm, FOR_ALL, SLOT_BYTES, LARGE_BYTES)).as_ref()
            }
        }
    }

    /// A depot for a persistent operation of which a rank leaves at most so many bytes at a time.
    pub(super) fn for_persistent(comm: &Comm, number: u64, bytes: usize) -> Option<Arc<Depot>> {
        instance::get()?;
        let room = bytes.next_multiple_of(64);
        if room <= SLOT_BYTES { Depot::join(comm, number, room, 0) } else { Depot::join(comm, number, 0, room.next_multiple_of(4 << 10)) }
    }

    fn join(comm: &Comm, number: u64, slot_bytes: usize, large_bytes: usize) -> Option<Arc<Depot>> {
        const CROWDED: u64 = 1;
        let (size, engine) = (comm.size(), instance::engine());
        if size == 1 || size > MAX_RANKS {
            return None;
        }
        let peers: Box<[Peer]> = (0..size).map(|rank| comm.world_rank_of(rank as i32)).collect::<Result<_, _>>().ok()?;
        let name = mix(comm.coll_context(), number);
        let wanted = || {
            let about = (slot_bytes as u64) << 1 | if engine.oversubscribed() { CROWDED } else { 0 };
            (config::get().coll == config::CollPath::Auto).then(|| (Stage::bytes(size, slot_bytes), about))
        };
        let found = engine.commons().join_area(name, size, wanted).ok()??;
        let slot_bytes = (found.about >> 1) as usize;
        if slot_bytes > SLOT_BYTES || !slot_bytes.is_multiple_of(64) || found.bytes < Stage::bytes(size, slot_bytes) {
            return None;
        }
        let memory = engine.commons().map_area::<Common>(found.place, Stage::bytes(size, slot_bytes)).ok()?;
        let depot = Arc::new(Depot {
            name,
            stage: Stage::new(memory, size, comm.rank() as usize, slot_bytes),
            crowded: found.about & CROWDED != 0 && size > 2,
            peers,
            large: OnceLock::new(),
            large_bytes,
            book: Mutex::default(),
            floor: AtomicU64::new(0),
            beds: Mutex::new(0),
            lent: AtomicUsize::new(0),
        });
        let mut depots = DEPOTS.lock();
        depots.retain(|depot| depot.strong_count() > 0);
        depots.push(Arc::downgrade(&depot));
        engine.set_attendant(attend_to_all);
        Some(depot)
    }

    fn size(&self) -> usize {
        self.stage.size()
    }

    /// Whether ranks may lend what does not fit: all can read each other's memory. To be asked of a communicator's depot.
    pub(super) fn lends(&self) -> bool {
        self.large().is_some_and(|large| large.can_lend)
    }

    /// Whether a rank can leave so many bytes at once.
    pub(super) fn can_hold(&self, bytes: usize) -> bool {
        bytes <= self.stage.slot_bytes() || (bytes <= self.large_bytes && self.large().is_some_and(|large| bytes <= large.slot_bytes))
    }

    /// Most bytes that a rank can leave at once.
    pub(super) fn most_bytes(&self) -> usize {
        self.large().map_or(self.stage.slot_bytes(), |large| large.slot_bytes)
    }

    /// The large slots, made when they are first needed.
    fn large(&self) -> Option<&Large> {
        self.large.get_or_init(|| Large::join(mix(self.name, LARGE), &self.peers, self.stage.me(), self.large_bytes)).as_ref()
    }

    /// Wakes whoever waits for what is the case now, after a change.
    #[inline]
    fn tell(&self) {
        if self.stage.anybody_asleep() {
            let commons = instance::engine().commons();
            self.stage.for_each_wakeable(|member| commons.ring(self.peers[member]));
            self.stage.for_each_requester(|member| commons.ring_urgently(self.peers[member]));
        }
    }

    /// Operations up to this one that did not use the depot are over.
    pub(super) fn pass_over(&self, number: u64) {
        self.book.lock().count_to(number);
        self.publish();
    }

    /// Enters an operation and posts what it leaves, if there is room.
    fn enter(&self, errand: &Arc<Errand>, number: Option<u64>) {
        if errand.lends() {
            self.lent.fetch_add(1, Ordering::Relaxed);
            BUSY.fetch_add(1, Ordering::Relaxed);
        }
        let mut book = self.book.lock();
        let number = number.unwrap_or(book.mark + book.open.len() as u64 + 1);
        errand.number.store(number, Ordering::Relaxed);
        if book.open.is_empty() {
            BUSY.fetch_add(1, Ordering::Relaxed);
        }
        if number > 0 {
            book.count_to(number - 1);
        }
        book.open.push_back(Some(errand.clone()));
        let posted = book.held_back == 0 && self.try_post(&mut book, errand);
        if !posted {
            book.held_back += 1;
            let for_loans = book.presses;
            self.press_if_needed(&mut book, for_loans);
        }
        let first_held_back = book.held_back == 1;
        let is_over = errand.is_over();
        drop(book);
        if is_over {
            self.strike(number);
        } else if posted {
            errand.arrive();
        }
        self.tell();
        if !posted && first_held_back {
            self.press_others();
            instance::engine().remind();
        }
        if self.stage.is_pressed() {
            self.attend();
        }
    }

    /// Presses, or not any more: what is held back needs room, and if `for_loans`, what is lent is wanted back.
    fn press_if_needed(&self, book: &mut Book, for_loans: bool) {
        let needed = book.held_back > 0 || (for_loans && self.lent.load(Ordering::Relaxed) > 0);
        if needed != book.presses {
            book.presses = needed;
            self.stage.press(needed);
        }
    }

    /// An operation that lent is done.
    fn count_returned(&self) {
        BUSY.fetch_sub(1, Ordering::Relaxed);
        if self.lent.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.press_if_needed(&mut self.book.lock(), true);
        }
    }

    /// Has others finish what takes up the room that is needed here. They are told again in a while, in case that they were about to leave the
    /// library.
    #[cold]
    fn press_others(&self) {
        fence::heavy();
        let least = self.stage.least_finished();
        for (member, peer) in self.peers.iter().enumerate().filter(|(member, _)| *member != self.stage.me()) {
            if !self.stage.has_finished(member, least + 1) {
                instance::engine().commons().ring_urgently(*peer);
            }
        }
    }

    /// Posts what an operation leaves, if there is room.
    fn try_post(&self, book: &mut Book, errand: &Errand) -> bool {
        let needed = errand.needs_finished(book);
        if self.floor.load(Ordering::Relaxed) < needed {
            let floor = self.stage.least_finished();
            self.floor.store(floor, Ordering::Relaxed);
            if floor < needed {
                return false;
            }
        }
        errand.post(book);
        true
    }

    /// An operation is finished here; true if this rank wants to hear of something.
    fn strike(&self, number: u64) -> bool {
        let mut book = self.book.lock();
        let Some(at) = number.checked_sub(book.mark + 1) else { return book.asks };
        if book.open.get_mut(at as usize).and_then(Option::take).is_none() {
            return book.asks;
        }
        let before = book.mark;
        book.advance();
        if book.mark != before {
            self.stage.finish(book.mark);
        }
        if book.open.is_empty() {
            BUSY.fetch_sub(1, Ordering::Relaxed);
        }
        book.asks
    }

    /// Says how far this rank has come.
    fn publish(&self) {
        let mut book = self.book.lock();
        let was_busy = !book.open.is_empty();
        book.advance();
        self.stage.finish(book.mark);
        if was_busy && book.open.is_empty() {
            BUSY.fetch_sub(1, Ordering::Relaxed);
        }
        drop(book);
        self.tell();
    }

    /// Finishes what can be finished and posts what can be posted, because somebody here or elsewhere waits for the room; and says what this rank
    /// wants to hear of so that it can go on with that. True if this rank wants the same of others.
    #[cold]
    fn attend(&self) -> bool {
        loop {
            let ready: SmallVec<[Arc<Errand>; 8]> =
                self.book.lock().open.iter().flatten().filter(|errand| errand.is_ready()).cloned().collect();
            for errand in ready {
                // Once it is done it may be started again, under another number.
                let number = errand.number();
                if errand.finish_quietly() {
                    self.strike(number);
                    // A thread may sleep until this is done.
                    instance::engine().notify();
                }
            }
            let mut posted: SmallVec<[(Arc<Errand>, u64, bool); 8]> = SmallVec::new();
            let mut book = self.book.lock();
            while book.held_back > 0 {
                let next = book.open.iter().flatten().find(|errand| !errand.is_posted()).cloned();
                match next {
                    Some(errand) if self.try_post(&mut book, &errand) => {
                        let (number, is_over) = (errand.number(), errand.is_over());
                        posted.push((errand, number, is_over));
                    }
                    Some(_) => break,
                    None => {}
                }
                book.held_back -= 1;
            }
            let for_loans = book.presses;
            self.press_if_needed(&mut book, for_loans);
            let presses = book.presses;
            let next = book.open.iter().flatten().find(|errand| !errand.is_over());
            let wanted = match next {
                Some(errand) if !errand.is_posted() => Some(Awaited::AllFinished(errand.needs_finished(&book))),
                Some(errand) if self.stage.is_pressed() && errand.awaits_notes() => Some(errand.awaited()),
                _ => None,
            };
            if wanted.is_some() || book.asks {
                self.stage.request(wanted);
                book.asks = wanted.is_some();
            }
            drop(book);
            for (errand, number, is_over) in posted {
                if is_over {
                    self.strike(number);
                } else {
                    errand.arrive();
                }
                instance::engine().notify();
            }
            self.tell();
            let Some(wanted) = wanted else { return presses };
            fence::heavy();
            if !self.stage.holds(wanted) {
                return presses;
            }
        }
    }
}

impl Book {
    /// Operations up to `number` that were not entered do not use the depot.
    fn count_to(&mut self, number: u64) {
        let counted = self.mark + self.open.len() as u64;
        if number <= counted {
            return;
        }
        if self.open.is_empty() {
            self.mark = number;
        } else {
            self.open.extend((counted..number).map(|_| None));
        }
    }

    /// Takes note of what is finished.
    fn advance(&mut self) {
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.mark += 1;
        }
    }
}

/// What a thread of this process does that was rung by another one.
fn attend_to_all() -> bool {
    if BUSY.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let depots: SmallVec<[Arc<Depot>; 8]> = DEPOTS.lock().iter().filter_map(Weak::upgrade).collect();
    let mut again = false;
    for depot in depots {
        depot.press_if_needed(&mut depot.book.lock(), true);
        let is_wanted = depot.stage.is_pressed() || depot.book.lock().asks;
        if is_wanted && depot.attend() {
            depot.press_others();
            again = true;
        }
    }
    again
}

impl Drop for Depot {
    fn drop(&mut self) {
        if instance::in_forked_child() {
            // What is shared belongs to the parent.
            return;
        }
        if self.large.get().is_some() {
            instance::engine().commons().leave_area(mix(self.name, LARGE));
        }
        instance::engine().commons().leave_area(self.name);
    }
}
