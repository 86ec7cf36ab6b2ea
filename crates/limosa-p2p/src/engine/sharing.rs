//! Sharing processors that are scarce: waiting threads hand theirs on, and see to it that the processes of the job are
//! spread evenly.
//!
//! A process says where it runs when it hands a processor on, and that it is nowhere while it sleeps. Every so often it
//! looks where the others are ([`spread::better`]) and moves if it is one too many. After a move it stays for a while,
//! longer each time that it has to move again soon, so that it does not fight with a system that has its reasons. It
//! moves only among the processors that its user allows. One thread speaks for the process: the first that waits here.

use super::Engine;
use limosa_base::{clock, cpu, spread};
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Times that a processor is handed on between two looks: half a millisecond.
const TURNS_PER_LOOK: u32 = 256;
/// How long a process stays after a first move, in nanoseconds.
const REST_NS: u64 = 2_000_000;
/// How often that is doubled at most.
const MOST_DOUBLINGS: u32 = 9;

thread_local! {
    /// Whether this thread speaks for the process, once that is decided.
    static SPEAKS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// What a process remembers of its places.
pub(super) struct Sharing {
    /// Some thread speaks for the process.
    is_spoken_for: AtomicBool,
    /// The processor of which the others know, counted from 1.
    told: AtomicU32,
    turns: AtomicU32,
    moves: Mutex<Moves>,
}

#[derive(Default)]
struct Moves {
    /// Not to move before this time.
    rest_until: u64,
    /// Moves in a row, each soon after the one before.
    in_a_row: u32,
    /// Processors that this thread may use, as far as it knows.
    mine: Vec<u32>,
}

impl Sharing {
    pub(super) fn new() -> Sharing {
        Sharing {
            is_spoken_for: AtomicBool::new(false),
            told: AtomicU32::new(0),
            turns: AtomicU32::new(0),
            moves: Mutex::default(),
        }
    }

    /// Whether this thread speaks for the process.
    fn speaks(&self) -> bool {
        SPEAKS.get().unwrap_or_else(|| {
            let speaks = !self.is_spoken_for.swap(true, Ordering::Relaxed);
            SPEAKS.set(Some(speaks));
            speaks
        })
    }
}

impl Engine {
    /// Gives the processor of this thread, which waits, to another one that can use it.
    #[inline]
    pub fn hand_on(&self) {
        if self.sharing.speaks() {
            self.tell_place();
            if self.sharing.turns.fetch_add(1, Ordering::Relaxed) % TURNS_PER_LOOK == TURNS_PER_LOOK - 1 {
                self.spread_out();
            }
        }
        cpu::yield_now();
    }

    /// This thread is going to sleep, and does not count where it is.
    pub(super) fn leave_place(&self) {
        if self.oversubscribed && self.sharing.speaks() {
            self.sharing.told.store(0, Ordering::Relaxed);
            self.say_place(None);
        }
    }

    /// This thread has slept. Where it was woken is no guide to where there is room.
    pub(super) fn find_place(&self) {
        if self.oversubscribed && self.sharing.speaks() {
            self.tell_place();
            self.spread_out();
        }
    }

    #[inline]
    fn tell_place(&self) {
        let place = cpu::current();
        let told = place.map_or(0, |cpu| cpu.wrapping_add(1));
        // Others read it now and then, and it seldom changes.
        if self.sharing.told.load(Ordering::Relaxed) != told {
            self.sharing.told.store(told, Ordering::Relaxed);
            self.say_place(place);
        }
    }

    fn say_place(&self, place: Option<u32>) {
        if let Some(host) = &self.host {
            host.place(host.me()).set(place);
        }
    }

    /// Moves if this process is one too many where it is.
    #[cold]
    fn spread_out(&self) {
        let Some(host) = &self.host else { return };
        let Some(mut moves) = self.sharing.moves.try_lock() else { return };
        if moves.mine.is_empty() {
            moves.mine = cpu::numbers();
        }
        if moves.mine.len() < 2 {
            return;
        }
        let Some(processor) = spread::better(&host.places(), host.me() as usize, &moves.mine) else { return };
        let now = clock::now_ns();
        if now < moves.rest_until {
            return;
        }
        let is_soon = now < moves.rest_until + 8 * REST_NS;
        moves.in_a_row = if is_soon { (moves.in_a_row + 1).min(MOST_DOUBLINGS) } else { 0 };
        moves.rest_until = now + (REST_NS << moves.in_a_row);
        // The user may have changed his mind.
        moves.mine = cpu::numbers();
        if moves.mine.contains(&processor) {
            cpu::move_onto(processor);
            self.tell_place();
        }
    }
}
