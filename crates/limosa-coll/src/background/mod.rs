//! Non-blocking and persistent collectives directly in shared memory, where all members of a communicator share a
//! machine.
//!
//! Each rank has a *mailbox*. A call puts the rank's contribution there; progress reads the mailboxes of the other
//! ranks: in a wait, in a test, or when a rank needs room. A rank needs no processor time of another rank after that
//! rank's call, so operations complete while all ranks compute.
//!
//! Data that are too long for a mailbox are lent, if ranks can access each other's memory: the mailbox has their
//! address, and readers copy from there. Operands of reductions are then combined by pieces, by any polling thread.
//! Without such access, long operations go by messages ([`super::run`]).
//!
//! ```text
//! let mailbox_use = call.mailbox_use(bytes)?;           // the mailboxes, if so many bytes fit
//! // What this rank contributes, and what it receives; for reductions Exchange::reduction:
//! let exchange = one_step::bcast(Recorder::new(...), ...)?;
//! let operation = BackgroundOp::new(mailbox_use, exchange);
//! operation.start();                                    // puts the contribution into this rank's mailbox
//! operation.wait(...);                                  // reads the others': it is the operation of a request
//! ```
//! The mailboxes of a communicator's members are a [`SlotSegment`]. No message is needed to set one up: members find
//! its memory by a name that all know ([`join_area`](limosa_p2p::HostMemory::join_area)). A communicator has one set
//! for its non-blocking operations. Each persistent operation has a set of its own, because ranks may start them in
//! different orders.
//!
//! Contract
//! - All ranks number the operations on a set of mailboxes alike, in the order of their calls. Operations that do not
//!   use the mailboxes count too.
//! - Whether an operation uses the mailboxes depends only on what all ranks know: its bytes, or, where only two ranks
//!   know a length, the length of a part (see `Exchange::by_messages`).
//! - A note may replace an older one once all ranks have finished the older operation. Until then the contribution is
//!   held back (`BackgroundOp::hold_back`), and the call returns. The rank asks for room
//!   ([`Mailboxes::ask_for_room_if_needed`]). Threads of the other ranks that are in the library, or their helpers,
//!   finish what they can ([`Mailboxes::serve`]), and the rank that makes the room wakes the waiting rank's helper.
//!   Operations that call a function of the program are left to the program's threads.
//! - Reductions combine as blocking ones do, from the highest rank to the lowest; long scans from the lowest, as there.
//!
//! | module | holds |
//! |---|---|
//! | `compare` | ranks whose calls differ |
//! | `exchange` | contribution and intake, recorded from a one-step algorithm or a reduction |
//! | `fetching` | copying the intake to this rank's buffer |
//! | `operation` | an operation under way: posting, waiting, ending |
//! | `lent` | buffers that other ranks read in place |
//! | `neighbours` | exchanges with neighbours in a topology: how blocks travel |
//! | `neighbour_blocks` | contribution and intake of such an exchange |
//! | `reduction` | long reductions, by pieces of operands that stay in place |
//! | `storage` | where bytes lie: slots and large slots |

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use limosa_base::slots::{Awaited, Common, SlotSegment};
use limosa_base::{fence, fork};
use limosa_job::config;
use limosa_p2p::{Engine, Peer};
use parking_lot::Mutex;
use smallvec::SmallVec;

use limosa_mpi::comm::Comm;
use limosa_mpi::mix::mix;

mod compare;
mod exchange;
mod fetching;
mod lent;
mod neighbour_blocks;
mod neighbours;
mod operation;
mod reduction;
mod storage;
#[cfg(test)]
mod tests;

pub(super) use exchange::{Exchange, Limits, Recorder};
pub(super) use neighbours::NeighbourExchange;
pub use operation::BackgroundOp;
pub(super) use operation::MailboxUse;
use storage::Large;

/// Most ranks of a communicator: a table with an entry for each fits a slot.
const MAX_RANKS: usize = 256;
/// Bytes of a slot of a communicator's mailboxes.
pub(super) const SLOT_BYTES: usize = 4 << 10;
/// Bytes of a large slot.
const LARGE_BYTES: usize = 64 << 10;
/// Bytes of a large slot of a persistent operation whose contributions may differ in length without all ranks knowing.
pub(super) const PERSISTENT_LARGE_BYTES: usize = 32 << 10;
/// Most bytes of a contribution in the mailboxes.
pub(super) const MOST_BYTES: usize = LARGE_BYTES;

/// Distinguishes a communicator's mailboxes from those of its persistent operations, which use their numbers.
const FOR_ALL: u64 = u64::MAX;
/// Distinguishes large slots from the mailboxes that they belong to.
const LARGE: u64 = 1;

/// Mailboxes of this process that operations have used, for the service callback ([`serve_all`]).
static MAILBOX_SETS: Mutex<Vec<Weak<Mailboxes>>> = Mutex::new(Vec::new());
/// Number of sets with operations under way, plus the number of operations that lend.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// The memory in which the members of a communicator leave their contributions.
pub struct Mailboxes {
    engine: Arc<Engine>,
    name: u64,
    slots: SlotSegment,
    /// Ranks share processors: the last rank to arrive wakes all others.
    oversubscribed: bool,
    peers: Box<[Peer]>,
    large: OnceLock<Option<Large>>,
    /// Bytes of a large slot, if this rank creates the large slots.
    large_bytes: usize,
    pending: Mutex<Pending>,
    /// The latest operation that all ranks are known to have finished.
    finished_by_all: AtomicU64,
    /// Number of threads of this process that sleep until something changes here.
    sleepers: Mutex<usize>,
    /// Number of operations that lend and are not done, and the latest of them.
    lent: AtomicUsize,
    last_lent: AtomicU64,
    /// Number of long reductions that are not done here.
    reductions: AtomicUsize,
    waits: Waits,
    /// A thread of the program is to finish what the helper must not.
    is_left: AtomicBool,
    /// Held by the thread that combines a piece of a long reduction.
    copying: Mutex<()>,
}

/// Waits of the program's threads for single operations.
#[derive(Default)]
struct Waits {
    now: AtomicUsize,
    begun: AtomicUsize,
    /// Number of waits that had begun at the last look.
    seen: AtomicUsize,
    /// Number of times that other ranks were left alone because of these waits, since the first buffer was lent.
    spared: AtomicUsize,
}

impl Waits {
    fn begin(&self) {
        self.now.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a thread waits now, and a wait has begun since the last call of this function.
    fn are_fresh(&self) -> bool {
        let begun = self.begun.load(Ordering::Relaxed);
        self.now.load(Ordering::Relaxed) > 0 && self.seen.swap(begun, Ordering::Relaxed) != begun
    }
}

/// The operations under way.
#[derive(Default)]
struct Pending {
    /// All operations up to this one are finished here.
    mark: u64,
    /// The operations after `mark`; `None` for those that are finished or do not use the mailboxes.
    open: VecDeque<Option<Arc<BackgroundOp>>>,
    /// Number of open operations that could not be posted yet.
    held_back: usize,
    /// The operations that used this rank's large slots last, and the next slot.
    large: [u64; storage::LARGE_SLOTS],
    next_large: usize,
    /// Whether this rank asks to be notified of progress.
    asks: bool,
    /// Whether this rank asks other ranks to finish what they can.
    room_wanted: bool,
}

impl Mailboxes {
    /// Returns the mailboxes for a communicator's non-blocking operations; `None` if there are none, which all members
    /// find alike.
    pub(super) fn for_all(comm: &Comm, engine: &Arc<Engine>) -> Option<Arc<Mailboxes>> {
        Mailboxes::join_on(comm, engine, FOR_ALL, SLOT_BYTES, LARGE_BYTES)
    }

    /// Returns a set of mailboxes for a persistent operation to which a rank contributes at most `bytes` at a time;
    /// somewhat more if ranks may not know each other's lengths.
    pub(super) fn for_persistent(comm: &Comm, number: u64, bytes: usize) -> Option<Arc<Mailboxes>> {
        let engine = comm.engine_if_any()?;
        let room = bytes.next_multiple_of(64);
        let (slot_bytes, large_bytes) = match room {
            ..=SLOT_BYTES => (room, PERSISTENT_LARGE_BYTES),
            _ => (0, room.next_multiple_of(4 << 10)),
        };
        Mailboxes::join_on(comm, engine, number, slot_bytes, large_bytes)
    }

    fn join_on(
        comm: &Comm,
        engine: &Arc<Engine>,
        number: u64,
        slot_bytes: usize,
        large_bytes: usize,
    ) -> Option<Arc<Mailboxes>> {
        let peers = comm.world().shared_addresses(comm.group())?;
        Mailboxes::join(engine, mix(comm.coll_context(), number), peers, comm.rank() as usize, slot_bytes, large_bytes)
    }

    /// Joins the mailboxes of this name as member `me` of `peers`. All of `peers` join.
    fn join(
        engine: &Arc<Engine>,
        name: u64,
        peers: Box<[Peer]>,
        me: usize,
        slot_bytes: usize,
        large_bytes: usize,
    ) -> Option<Arc<Mailboxes>> {
        const OVERSUBSCRIBED: u64 = 1;
        let size = peers.len();
        if size == 1 || size > MAX_RANKS {
            return None;
        }
        let wanted = || {
            let about = (slot_bytes as u64) << 1 | if engine.oversubscribed() { OVERSUBSCRIBED } else { 0 };
            (config::get().coll == config::CollPath::Auto).then(|| (SlotSegment::bytes(size, slot_bytes), about))
        };
        let found = engine.expect_host_memory().join_area(name, size, wanted).ok()??;
        let slot_bytes = (found.about >> 1) as usize;
        if slot_bytes > SLOT_BYTES
            || !slot_bytes.is_multiple_of(64)
            || found.bytes < SlotSegment::bytes(size, slot_bytes)
        {
            return None;
        }
        let memory =
            engine.expect_host_memory().map_area::<Common>(found.place, SlotSegment::bytes(size, slot_bytes)).ok()?;
        let mailboxes = Arc::new(Mailboxes {
            engine: engine.clone(),
            name,
            slots: SlotSegment::new(memory, size, me, slot_bytes),
            oversubscribed: found.about & OVERSUBSCRIBED != 0 && size > 2,
            peers,
            large: OnceLock::new(),
            large_bytes,
            pending: Mutex::default(),
            finished_by_all: AtomicU64::new(0),
            sleepers: Mutex::new(0),
            lent: AtomicUsize::new(0),
            last_lent: AtomicU64::new(0),
            reductions: AtomicUsize::new(0),
            waits: Waits::default(),
            is_left: AtomicBool::new(false),
            copying: Mutex::new(()),
        });
        MAILBOX_SETS.lock().push(Arc::downgrade(&mailboxes));
        engine.set_attendant(serve_all);
        Some(mailboxes)
    }

    fn size(&self) -> usize {
        self.slots.size()
    }

    /// Whether ranks may lend what does not fit: all can read each other's memory. Valid for a communicator's mailboxes
    /// only.
    pub(super) fn lends(&self) -> bool {
        self.large().is_some_and(|large| large.can_lend)
    }

    /// Whether a rank can leave so many bytes at once.
    pub(super) fn can_hold(&self, bytes: usize) -> bool {
        bytes <= self.slots.slot_bytes()
            || (bytes <= self.large_bytes && self.large().is_some_and(|large| bytes <= large.slot_bytes))
    }

    /// Returns the most bytes that a rank can leave at once.
    pub(super) fn most_bytes(&self) -> usize {
        self.large().map_or(self.slots.slot_bytes(), |large| large.slot_bytes)
    }

    /// Returns the large slots, which the first call creates.
    fn large(&self) -> Option<&Large> {
        self.large
            .get_or_init(|| {
                Large::join(&self.engine, mix(self.name, LARGE), &self.peers, self.slots.me(), self.large_bytes)
            })
            .as_ref()
    }

    /// Wakes the ranks whose wait condition now holds, after a change.
    #[inline]
    fn tell(&self) {
        if self.slots.has_sleepers() {
            let memory = self.engine.expect_host_memory();
            self.slots.for_each_wakeable(|member| memory.ring(self.peers[member]));
            self.slots.for_each_requester(|member| memory.ring_urgently(self.peers[member]));
        }
    }

    /// As [`Mailboxes::tell`], and wakes threads of this process too: an operation has fetched, or all pieces are
    /// combined.
    #[inline]
    fn tell_all(&self) {
        self.tell();
        // Sleepers of this process are counted among all sleepers.
        if self.slots.has_sleepers() && *self.sleepers.lock() > 0 {
            self.engine.notify();
        }
    }

    /// Marks operations up to `number` that did not use the mailboxes as over.
    pub(super) fn pass_over(&self, number: u64) {
        self.pending.lock().count_to(number);
        self.publish();
    }

    /// Enters an operation, and posts its contribution if there is room.
    fn enter(&self, operation: &Arc<BackgroundOp>, number: Option<u64>) {
        let lost = operation.lost_before();
        if operation.lends() {
            let counter = if operation.is_long_reduction() { &self.reductions } else { &self.lent };
            counter.fetch_add(1, Ordering::Relaxed);
            BUSY.fetch_add(1, Ordering::Relaxed);
        }
        let mut pending = self.pending.lock();
        let number = number.unwrap_or(pending.mark + pending.open.len() as u64 + 1);
        if pending.open.is_empty() {
            BUSY.fetch_add(1, Ordering::Relaxed);
        }
        if number > 0 {
            pending.count_to(number - 1);
        }
        pending.open.push_back(Some(operation.clone()));
        if operation.lends() {
            self.last_lent.store(number, Ordering::Relaxed);
        }
        // An operation that begins after a death is not posted: ranks that do not know of the death yet may be in
        // another call.
        let posted = lost.is_none() && pending.held_back == 0 && self.try_post(&mut pending, operation, number);
        if !posted {
            operation.hold_back(number);
            pending.held_back += 1;
            let for_lent = pending.room_wanted;
            self.ask_for_room_if_needed(&mut pending, for_lent);
        }
        let first_held_back = pending.held_back == 1;
        drop(pending);
        if lost.is_some_and(|failure| operation.fail(&failure)) {
            return;
        }
        if posted {
            operation.arrive(number);
            operation.compare_if_unread(number);
        }
        self.tell();
        if !posted && first_held_back {
            self.ask_others_for_room();
            self.engine.remind();
        }
        if self.slots.is_room_wanted() {
            self.serve();
        }
    }

    /// Asks for room while something is held back, or, if `for_lent`, while something is lent; otherwise withdraws the
    /// request.
    fn ask_for_room_if_needed(&self, pending: &mut Pending, for_lent: bool) {
        let needed = pending.held_back > 0 || (for_lent && self.lent.load(Ordering::Relaxed) > 0);
        if needed != pending.room_wanted {
            pending.room_wanted = needed;
            self.slots.ask_for_room(needed);
        }
    }

    /// Asks other ranks to finish what this rank lends, after a delay; returns true if it is to be called again. Asking
    /// wakes their helpers, which delay threads that already work.
    fn ask_for_lent(&self) -> bool {
        let is_early = self.lent.load(Ordering::Relaxed) > 0 && self.spares_others();
        let mut pending = self.pending.lock();
        let for_lent = !is_early || pending.room_wanted;
        self.ask_for_room_if_needed(&mut pending, for_lent);
        is_early
    }

    /// Whether the other ranks are left alone this time, because they make progress, or probably do: a thread of this
    /// process has begun to wait, too. They may be working on other operations, so they are asked in the end.
    fn spares_others(&self) -> bool {
        const MOST: usize = 3;
        const MOST_ATTENDED: usize = 6;
        // Called in any case, because it updates a counter.
        let are_fresh = self.waits.are_fresh();
        let last_lent = self.last_lent.load(Ordering::Relaxed);
        let others = || (0..self.size()).filter(|member| *member != self.slots.me());
        let most =
            if others().all(|member| self.slots.has_finished(member, last_lent) || self.slots.is_attending(member)) {
                MOST_ATTENDED
            } else if are_fresh {
                MOST
            } else {
                return false;
            };
        self.waits.spared.fetch_add(1, Ordering::Relaxed) < most
    }

    /// Records that a thread of the program begins to wait for an operation.
    fn begin_wait(&self) {
        self.waits.begin();
        self.slots.attend(true);
    }

    /// Records that a thread of the program has waited.
    fn end_wait(&self) {
        self.waits.end();
        self.slots.attend(self.waits.now.load(Ordering::Relaxed) > 0);
    }

    /// Records that other ranks no longer access this rank's memory for an operation.
    fn count_returned(&self, operation: &BackgroundOp) {
        BUSY.fetch_sub(1, Ordering::Relaxed);
        if operation.is_long_reduction() {
            self.reductions.fetch_sub(1, Ordering::Relaxed);
        } else if self.lent.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.waits.spared.store(0, Ordering::Relaxed);
            self.ask_for_room_if_needed(&mut self.pending.lock(), true);
        }
    }

    /// Asks other ranks to finish the operations that occupy the needed room. They are asked again after a while,
    /// because they may have been about to leave the library.
    #[cold]
    fn ask_others_for_room(&self) {
        fence::heavy();
        let least = self.slots.least_finished();
        for (member, peer) in self.peers.iter().enumerate().filter(|(member, _)| *member != self.slots.me()) {
            if !self.slots.has_finished(member, least + 1) {
                self.engine.expect_host_memory().ring_urgently(*peer);
            }
        }
    }

    /// Posts the contribution to start `number` of an operation, if there is room.
    fn try_post(&self, pending: &mut Pending, operation: &BackgroundOp, number: u64) -> bool {
        let needed = self.needs_finished(pending, number, operation.bytes);
        if self.finished_by_all.load(Ordering::Relaxed) < needed {
            let finished_by_all = self.slots.least_finished();
            self.finished_by_all.store(finished_by_all, Ordering::Relaxed);
            if finished_by_all < needed {
                return false;
            }
        }
        operation.post(pending, number);
        true
    }

    /// Records that operation `number` is finished here; returns true if this rank asks to be notified.
    fn count_finished(&self, number: u64) -> bool {
        let mut pending = self.pending.lock();
        self.mark_finished(&mut pending, number);
        pending.asks
    }

    /// Records and publishes that operation `number` is finished here.
    fn mark_finished(&self, pending: &mut Pending, number: u64) {
        let before = pending.mark;
        if !pending.remove(number) {
            return;
        }
        if pending.mark != before {
            self.slots.finish(pending.mark);
        }
        if pending.open.is_empty() {
            BUSY.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Publishes how far this rank has come.
    fn publish(&self) {
        let mut pending = self.pending.lock();
        let was_busy = !pending.open.is_empty();
        pending.advance();
        self.slots.finish(pending.mark);
        if was_busy && pending.open.is_empty() {
            BUSY.fetch_sub(1, Ordering::Relaxed);
        }
        drop(pending);
        self.tell();
    }

    /// Finishes and posts what can be finished and posted, on behalf of a waiting thread of this or another process;
    /// then requests the notifications that are needed to continue. Returns true if this rank asks the same of other
    /// ranks.
    #[cold]
    fn serve(&self) -> bool {
        loop {
            self.combine_pieces();
            self.finish_ready(self.ready());
            let mut posted: SmallVec<[(Arc<BackgroundOp>, u64); 8]> = SmallVec::new();
            let mut pending = self.pending.lock();
            while pending.held_back > 0 {
                let next = pending.open.iter().flatten().find(|operation| operation.is_held_back()).cloned();
                if let Some(operation) = next {
                    let number = operation.number();
                    if !self.try_post(&mut pending, &operation, number) {
                        break;
                    }
                    posted.push((operation, number));
                }
                pending.held_back -= 1;
            }
            let for_lent = pending.room_wanted;
            self.ask_for_room_if_needed(&mut pending, for_lent);
            let room_wanted = pending.room_wanted;
            let next = pending.open.iter().flatten().find(|operation| !operation.is_over());
            let wanted = match next {
                Some(operation) if operation.is_held_back() => {
                    Some(Awaited::AllFinished(self.needs_finished(&pending, operation.number(), operation.bytes)))
                }
                Some(operation) if self.slots.is_room_wanted() && !operation.is_left_to_program() => {
                    operation.awaited_notes()
                }
                _ => None,
            };
            if wanted.is_some() || pending.asks {
                self.slots.request(wanted);
                pending.asks = wanted.is_some();
            }
            drop(pending);
            let has_posted = !posted.is_empty();
            for (operation, number) in posted {
                operation.arrive(number);
                operation.compare_if_unread(number);
                self.engine.notify();
            }
            if has_posted {
                self.combine_pieces();
            }
            self.tell();
            let Some(wanted) = wanted else { return room_wanted };
            fence::heavy();
            if !self.slots.holds(wanted) {
                return room_wanted;
            }
        }
    }
}

impl Mailboxes {
    /// Combines the remaining pieces of long reductions.
    fn combine_pieces(&self) {
        if self.reductions.load(Ordering::Relaxed) > 0 {
            let open: SmallVec<[Arc<BackgroundOp>; 8]> = self.pending.lock().open.iter().flatten().cloned().collect();
            open.iter().for_each(|operation| operation.combine_pieces());
        }
    }

    /// Returns the starts of operations that only need fetching.
    fn ready(&self) -> SmallVec<[(Arc<BackgroundOp>, u64); 8]> {
        self.pending
            .lock()
            .open
            .iter()
            .flatten()
            .filter_map(|operation| Some((operation.clone(), operation.ready_start()?)))
            .collect()
    }

    /// Finishes the starts that are ready, of all open operations.
    fn fetch_ready(&self) {
        let ready = self.ready();
        if !ready.is_empty() {
            self.finish_ready(ready);
            self.tell_all();
        }
    }

    /// Finishes starts that were found ready a moment ago. Other threads may have finished them, and restarted some,
    /// since.
    fn finish_ready(&self, ready: SmallVec<[(Arc<BackgroundOp>, u64); 8]>) {
        for (operation, number) in ready {
            if operation.finish_start(number).is_some() {
                // A thread may be asleep until this is done.
                self.engine.notify();
            }
        }
    }
}

impl Pending {
    /// Removes operation `number`; returns false if it is not listed (any more).
    fn remove(&mut self, number: u64) -> bool {
        let Some(at) = number.checked_sub(self.mark + 1) else { return false };
        let is_removed = self.open.get_mut(at as usize).and_then(Option::take).is_some();
        self.advance();
        is_removed
    }

    /// Records that operations up to `number` that were not entered do not use the mailboxes.
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

    /// Advances `mark` over finished operations.
    fn advance(&mut self) {
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.mark += 1;
        }
    }
}

/// Finishes the ready starts of all operations, before a thread of the program waits for one of them.
/// Without this, ranks that wait for different operations could each wait for the other rank to read a lent buffer.
fn fetch_for_all() {
    // Only an operation that lends makes others wait for this rank. Each counts, and so does a set with open
    // operations.
    if BUSY.load(Ordering::Relaxed) < 2 {
        return;
    }
    let mailbox_sets: SmallVec<[Arc<Mailboxes>; 8]> = MAILBOX_SETS.lock().iter().filter_map(Weak::upgrade).collect();
    mailbox_sets.iter().for_each(|mailboxes| mailboxes.fetch_ready());
}

/// The service callback: makes progress for a process that has rung this one.
fn serve_all() -> bool {
    if BUSY.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let mailbox_sets: SmallVec<[Arc<Mailboxes>; 8]> = MAILBOX_SETS.lock().iter().filter_map(Weak::upgrade).collect();
    let mut again = false;
    for mailboxes in mailbox_sets {
        mailboxes.combine_pieces();
        again |= mailboxes.ask_for_lent();
        let is_wanted = mailboxes.slots.is_room_wanted() || mailboxes.pending.lock().asks;
        if is_wanted && mailboxes.serve() {
            mailboxes.ask_others_for_room();
            again = true;
        }
        if is_wanted {
            mailboxes.leave_to_program();
        }
    }
    again
}

impl Mailboxes {
    /// Wakes a thread of the program to finish what this thread must not.
    fn leave_to_program(self: &Arc<Mailboxes>) {
        let is_left = self.pending.lock().open.iter().flatten().any(|operation| operation.is_left_to_program());
        if is_left && !self.is_left.swap(true, Ordering::AcqRel) {
            let mailboxes = self.clone();
            self.engine.leave_to_program(Box::new(move |_| {
                mailboxes.is_left.store(false, Ordering::Release);
                mailboxes.serve();
            }));
        }
    }
}

impl Drop for Mailboxes {
    fn drop(&mut self) {
        MAILBOX_SETS.lock().retain(|mailboxes| !std::ptr::eq(mailboxes.as_ptr(), self));
        if fork::in_child() {
            // The shared memory belongs to the parent.
            return;
        }
        if self.large.get().is_some() {
            self.engine.expect_host_memory().leave_area(mix(self.name, LARGE));
        }
        self.engine.expect_host_memory().leave_area(self.name);
    }
}
