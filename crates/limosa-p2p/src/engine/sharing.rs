//! Sharing scarce processors: waiting threads yield their processors, and move so that the job's processes are spread
//! evenly.
//!
//! A process publishes its processor when it yields, and none while it sleeps. From time to time it reads the
//! processors of the other processes ([`spread::better`]), and moves if its own is overloaded. After a move it stays
//! for a while, longer after each move in quick succession, so that it does not fight the scheduler. It moves only
//! among its allowed processors. One thread represents the process: the first that waits here.

use super::Engine;
use limosa_base::{clock, cpu, spread};
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Yields between two checks of the distribution: about half a millisecond.
const YIELDS_PER_CHECK: u32 = 256;
/// Time for which a process stays after a first move, in nanoseconds.
const REST_NS: u64 = 2_000_000;
/// Maximum number of times that this time is doubled.
const MAX_DOUBLINGS: u32 = 9;

thread_local! {
    /// Whether this thread represents the process, once that is decided.
    static REPRESENTS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Distribution state of a process.
pub(super) struct Sharing {
    /// Whether a thread represents the process.
    has_representative: AtomicBool,
    /// Published processor, counted from 1.
    published: AtomicU32,
    turns: AtomicU32,
    moves: Mutex<Moves>,
}

#[derive(Default)]
struct Moves {
    /// Time before which the process does not move.
    rest_until: u64,
    /// Moves in quick succession.
    consecutive: u32,
    /// Allowed processors of the representing thread, as last read.
    allowed: Vec<u32>,
}

impl Sharing {
    pub(super) fn new() -> Sharing {
        Sharing {
            has_representative: AtomicBool::new(false),
            published: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            moves: Mutex::default(),
        }
    }

    /// Returns whether this thread represents the process.
    fn represents(&self) -> bool {
        REPRESENTS.get().unwrap_or_else(|| {
            let represents = !self.has_representative.swap(true, Ordering::Relaxed);
            REPRESENTS.set(Some(represents));
            represents
        })
    }
}

impl Engine {
    /// Yields the processor of this waiting thread to another thread.
    #[inline]
    pub fn hand_on(&self) {
        if self.sharing.represents() {
            self.tell_place();
            if self.sharing.turns.fetch_add(1, Ordering::Relaxed) % YIELDS_PER_CHECK == YIELDS_PER_CHECK - 1 {
                self.spread_out();
            }
        }
        cpu::yield_now();
    }

    /// Publishes that this thread is about to sleep, so that its processor counts as free.
    pub(super) fn publish_sleep(&self) {
        if self.oversubscribed && self.sharing.represents() {
            self.sharing.published.store(0, Ordering::Relaxed);
            self.say_place(None);
        }
    }

    /// Publishes a processor again after a sleep. The processor of the wake-up says nothing about where there is room.
    pub(super) fn publish_wake_up(&self) {
        if self.oversubscribed && self.sharing.represents() {
            self.tell_place();
            self.spread_out();
        }
    }

    #[inline]
    fn tell_place(&self) {
        let place = cpu::current();
        let told = place.map_or(0, |cpu| cpu.wrapping_add(1));
        // Written only on change: other processes read it from time to time, and it seldom changes.
        if self.sharing.published.load(Ordering::Relaxed) != told {
            self.sharing.published.store(told, Ordering::Relaxed);
            self.say_place(place);
        }
    }

    fn say_place(&self, place: Option<u32>) {
        if let Some(host) = &self.host {
            host.place(host.me()).set(place);
        }
    }

    /// Moves this thread if its processor is overloaded.
    #[cold]
    fn spread_out(&self) {
        let Some(host) = &self.host else { return };
        let Some(mut moves) = self.sharing.moves.try_lock() else { return };
        if moves.allowed.is_empty() {
            moves.allowed = cpu::numbers();
        }
        if moves.allowed.len() < 2 {
            return;
        }
        let Some(processor) = spread::better(&host.places(), host.me() as usize, &moves.allowed) else { return };
        let now = clock::now_ns();
        if now < moves.rest_until {
            return;
        }
        let is_soon = now < moves.rest_until + 8 * REST_NS;
        moves.consecutive = if is_soon { (moves.consecutive + 1).min(MAX_DOUBLINGS) } else { 0 };
        moves.rest_until = now + (REST_NS << moves.consecutive);
        // The user may have changed the affinity.
        moves.allowed = cpu::numbers();
        if moves.allowed.contains(&processor) {
            cpu::move_onto(processor);
            self.tell_place();
        }
    }
}
