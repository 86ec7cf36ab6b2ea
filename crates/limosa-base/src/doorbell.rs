//! Waking a process: one word says which of its threads must be woken, and for which traffic.
//!
//! | state | who is where | who rings |
//! |---|---|---|
//! | `AWAKE` | a thread polls or has just been woken, or one that has polled is to be followed soon | no wake-up |
//! | `AWAY` | no thread is known to poll | urgent traffic wakes the helper thread |
//! | `AWAY_ALL` | as `AWAY`, but unfinished schedules need every message | all traffic wakes the helper thread |
//! | `ASLEEP` | threads sleep in blocking calls | all traffic wakes them |
//! | `LOOKOUT` | one polls, or has just polled, while others sleep | what shows elsewhere wakes these |
//!
//! The owner stores states (under its engine's lock). A ringer only swaps in `AWAKE` and then wakes the threads that
//! the previous state names; so they are woken once, even if many ring.
//!
//! What threads wait for is either traffic, which one thread sees for all, or shows elsewhere in shared memory, where
//! only the one looks that waits for it. Who changes something there uses [`Doorbell::ring_sleepers`], which wakes in
//! `LOOKOUT`, too.
//!
//! No wake-up is lost because both sides store, fence and look: the owner stores a state, fences, looks at its rings
//! once more; a ringer stores into the ring, fences, looks at the state. Entering `ASLEEP` or `AWAY_ALL` takes
//! [`fence::heavy`], so that ordinary traffic gets by with [`fence::light`]; entering `AWAY` with something at stake
//! takes a plain full fence, and so does urgent traffic.
//!
//! The word holds beside `ASLEEP` how often that was stored. A thread sleeps only while the word is what it has stored
//! itself: it may be late, and meanwhile somebody may have rung, and another thread have handled what came, perhaps for
//! this one, and stored `ASLEEP` in its turn.

use crate::cpu;
use crate::fence;
use crate::futex::{self, Wakened};
use crate::sync::{AtomicU32, Ordering, fence as full_fence};
use std::time::{Duration, Instant};

/// State of a doorbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// No thread needs to be woken.
    Awake = 0,
    /// Threads sleep in blocking calls, and another one sees to the traffic.
    Lookout = 1,
    /// Threads sleep in blocking calls.
    Asleep = 2,
    /// Wake the helper for urgent traffic.
    Away = 3,
    /// Wake the helper for all traffic.
    AwayAll = 4,
}

const AWAKE: u32 = State::Awake as u32;
const LOOKOUT: u32 = State::Lookout as u32;
const ASLEEP: u32 = State::Asleep as u32;
const AWAY: u32 = State::Away as u32;
/// The bits of the word that hold the state.
const STATE_BITS: u32 = 3;
const STATE: u32 = (1 << STATE_BITS) - 1;

/// What a thread has stored before it sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Turn(u32);

/// The doorbell of one process, in shared memory. Zeroed memory is a doorbell in state [`State::Awake`].
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Doorbell {
    word: AtomicU32,
    service: AtomicU32,
    /// How often others have woken sleepers or the helper, for the status board and for tests that count needless
    /// wake-ups.
    rings: AtomicU32,
    /// The processor from which it was rung last, counted from 1.
    rung_from: AtomicU32,
    /// How often the owner has stored `ASLEEP`.
    turns: AtomicU32,
}

impl Doorbell {
    /// Rings after something was stored where the owner will look. `urgent`: it needs service even when the owner
    /// computes.
    #[inline(always)]
    pub fn ring(&self, urgent: bool) {
        self.ring_beyond(LOOKOUT, urgent);
    }

    /// As [`Doorbell::ring`], after something was stored elsewhere for which a thread of the owner may be asleep: one
    /// that sees to the traffic does not see that.
    #[inline]
    pub fn ring_sleepers(&self, urgent: bool) {
        self.ring_beyond(AWAKE, urgent);
    }

    /// Rings, unless the state is this one or one before it. One look at the word decides.
    #[inline(always)]
    fn ring_beyond(&self, calm: u32, urgent: bool) {
        if urgent {
            full_fence(Ordering::SeqCst);
        } else {
            fence::light();
        }
        let word = self.word.load(Ordering::Relaxed);
        if word <= calm || (word == AWAY && !urgent) {
            return;
        }
        self.ring_now();
    }

    /// After something was put where the owner will look: true if a thread of the owner is going to see it, false if
    /// only the helper could be made to.
    #[inline]
    pub fn is_attended(&self) -> bool {
        full_fence(Ordering::SeqCst);
        self.is_waited_at()
    }

    /// True if a thread of the owner waits: it polls or sleeps.
    #[inline]
    pub fn is_waited_at(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE <= ASLEEP
    }

    /// True if a thread of the owner polls, or has just polled.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.word.load(Ordering::Relaxed) <= LOOKOUT
    }

    #[cold]
    fn ring_now(&self) {
        self.rung_from.store(cpu::current().map_or(0, |cpu| cpu + 1), Ordering::Relaxed);
        match self.word.swap(AWAKE, Ordering::AcqRel) & STATE {
            AWAKE => {}
            ASLEEP | LOOKOUT => {
                self.rings.fetch_add(1, Ordering::Relaxed);
                futex::wake_all(&self.word);
            }
            _ => {
                self.rings.fetch_add(1, Ordering::Relaxed);
                self.call_helper();
            }
        }
    }

    /// The owner states that threads sleep. The fence is included; the owner must look at its rings afterwards.
    pub fn set_asleep(&self) -> Turn {
        let turn = Turn(self.turns.fetch_add(1, Ordering::Relaxed) << STATE_BITS | ASLEEP);
        // An exchange, as in `helper_wait`.
        self.word.swap(turn.0, Ordering::AcqRel);
        fence::heavy();
        turn
    }

    /// The owner sets the state. The fence that the state needs is included; the owner must look at its rings
    /// afterwards.
    pub fn set(&self, state: State) {
        match state {
            State::Asleep => _ = self.set_asleep(),
            _ => self.word.store(state as u32, Ordering::Release),
        }
        match state {
            State::Awake | State::Lookout | State::Asleep => {}
            State::Away => full_fence(Ordering::SeqCst),
            State::AwayAll => fence::heavy(),
        }
    }

    /// Sets [`State::Away`] without a fence: for a process without operations that need service.
    #[inline]
    pub fn set_away_lazily(&self) {
        self.word.store(AWAY, Ordering::Release);
    }

    /// The state now.
    #[inline]
    pub fn is(&self, state: State) -> bool {
        self.word.load(Ordering::Relaxed) & STATE == state as u32
    }

    /// A thread of the owner is going to poll while others sleep, and sees to the traffic for them: from now on that
    /// wakes nobody. `only_traffic`: they wait for nothing else. Does nothing if somebody has rung.
    #[inline]
    pub fn look_out(&self, only_traffic: bool) {
        let word = self.word.load(Ordering::Relaxed);
        if word & STATE == ASLEEP {
            let state = if only_traffic { AWAKE } else { LOOKOUT };
            let _ = self.word.compare_exchange(word, state, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The thread that saw to the traffic does so no longer: those that sleep look for themselves.
    pub fn hand_over(&self) {
        self.set(State::Asleep);
        self.wake_own();
    }

    /// Sleeps until somebody rings, at most for `timeout`; not at all if anything was stored since `turn`. Why it has
    /// ended.
    pub fn sleep(&self, turn: Turn, timeout: Option<Duration>) -> Wakened {
        futex::wait(&self.word, turn.0, timeout)
    }

    /// The owner wakes its own sleeping threads, also those that sleep since a time when the state was another one.
    pub fn wake_own(&self) {
        self.word.swap(AWAKE, Ordering::AcqRel);
        futex::wake_all(&self.word);
    }

    /// Wakes the owner's helper thread.
    pub fn call_helper(&self) {
        // An exchange like that in `helper_wait`, since loom does not know in which order a store and an exchange take
        // effect.
        self.service.swap(1, Ordering::AcqRel);
        futex::wake_all(&self.service);
    }

    /// The helper thread waits here until it is woken, or until that time; false if it was not woken.
    pub fn helper_wait(&self, until: Option<Instant>) -> bool {
        while self.service.swap(0, Ordering::Acquire) == 0 {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            futex::wait(&self.service, 0, left);
        }
        true
    }

    /// True if it was last rung from the processor that this thread runs on: the partner shares this processor.
    pub fn rung_from_here(&self) -> bool {
        cpu::current().is_some_and(|cpu| self.rung_from.load(Ordering::Relaxed) == cpu + 1)
    }

    /// How often others had to wake this process.
    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::model::Mutex;
    use loom::sync::Arc;
    use loom::thread::{self, JoinHandle};

    /// A process with a place for one piece of work, and its doorbell.
    #[derive(Default)]
    struct Process {
        doorbell: Doorbell,
        /// Pieces of work that were put there.
        work: AtomicU32,
        /// What shows elsewhere than where a thread that polls looks.
        shows: AtomicU32,
    }

    impl Process {
        /// Somebody else puts work there and rings.
        fn give(&self, urgent: bool) {
            self.work.fetch_add(1, Ordering::Release);
            self.doorbell.ring(urgent);
        }

        fn has(&self, pieces: u32) -> bool {
            self.work.load(Ordering::Acquire) >= pieces
        }

        /// A thread of the process sleeps until there are so many pieces, as the engine does.
        fn await_work(&self, pieces: u32) {
            while !self.has(pieces) {
                let turn = self.doorbell.set_asleep();
                if !self.has(pieces) {
                    self.doorbell.sleep(turn, None);
                }
            }
        }
    }

    fn spawn(process: &Arc<Process>, body: impl FnOnce(&Process) + 'static) -> JoinHandle<()> {
        let process = process.clone();
        thread::spawn(move || body(&process))
    }

    #[test]
    fn no_sleeper_misses_what_was_put_there() {
        loom::model(|| {
            let process = Arc::new(Process::default());
            let ringer = spawn(&process, |process| process.give(false));
            process.await_work(1);
            ringer.join().unwrap();
        });
    }

    #[test]
    fn two_who_ring_wake_a_sleeper_that_needs_both() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let process = Arc::new(Process::default());
            let ringers = [false, true].map(|urgent| spawn(&process, move |process| process.give(urgent)));
            process.await_work(2);
            ringers.into_iter().for_each(|ringer| ringer.join().unwrap());
            assert!(process.doorbell.rings() <= 2);
        });
    }

    /// The owner looks, states that it is away, looks once more, and computes. What came too late for it is the
    /// helper's.
    fn helper_takes_over(state: State, urgent: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let process = Arc::new(Process::default());
            let ringer = spawn(&process, move |process| process.give(urgent));
            let helper = spawn(&process, |process| {
                process.doorbell.helper_wait(None);
                assert!(process.has(1), "called for nothing");
            });
            process.doorbell.set(state);
            if process.has(1) {
                // The owner has seen it. The helper may have been called as well; if not, this ends its wait.
                process.doorbell.call_helper();
            }
            ringer.join().unwrap();
            helper.join().unwrap();
        });
    }

    #[test]
    fn urgent_traffic_is_seen_by_the_owner_or_its_helper() {
        helper_takes_over(State::Away, true);
    }

    #[test]
    fn all_traffic_is_seen_by_the_owner_or_its_helper_if_it_says_so() {
        helper_takes_over(State::AwayAll, false);
    }

    /// A thread sleeps until there is work or something shows elsewhere. The lock is the engine's.
    fn await_either(process: &Process, lock: &Mutex<()>) {
        loop {
            let held = lock.lock();
            let turn = process.doorbell.set_asleep();
            if process.has(1) || process.shows.load(Ordering::Acquire) > 0 {
                return;
            }
            drop(held);
            process.doorbell.sleep(turn, None);
        }
    }

    /// A thread begins to poll, looks once for work, and wakes those who may wait for it.
    fn poll_once(process: &Process, lock: &Mutex<()>, only_traffic: bool) {
        let _held = lock.lock();
        process.doorbell.look_out(only_traffic);
        if process.has(1) {
            process.doorbell.wake_own();
        }
    }

    /// A thread sleeps beside another one, and somebody brings about what it waits for.
    fn sleeper_beside(
        other: impl Fn(&Process, &Mutex<()>) + Copy + Send + Sync + 'static,
        bring: impl Fn(&Process) + Copy + Send + Sync + 'static,
    ) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let (process, lock) = (Arc::new(Process::default()), Arc::new(Mutex::new(())));
            let bringer = spawn(&process, bring);
            let poller = spawn(&process, {
                let lock = lock.clone();
                move |process| other(process, &lock)
            });
            await_either(&process, &lock);
            bringer.join().unwrap();
            poller.join().unwrap();
        });
    }

    #[test]
    fn a_thread_that_polls_sees_to_the_traffic_of_sleepers_and_hands_it_over() {
        for only_traffic in [false, true] {
            sleeper_beside(
                move |process, lock| {
                    poll_once(process, lock, only_traffic);
                    let _held = lock.lock();
                    if process.doorbell.is_polled() {
                        process.doorbell.hand_over();
                    }
                },
                |process| process.give(false),
            );
        }
    }

    #[test]
    fn what_shows_elsewhere_wakes_a_sleeper_beside_a_thread_that_polls() {
        sleeper_beside(
            |process, lock| poll_once(process, lock, false),
            |process| {
                process.shows.store(1, Ordering::Release);
                process.doorbell.ring_sleepers(false);
            },
        );
    }

    #[test]
    fn a_thread_that_completes_something_wakes_a_sleeper_of_its_own_process() {
        loom::model(|| {
            let process = Arc::new(Process::default());
            let other = spawn(&process, |process| {
                // Under the engine's lock in reality: after the sleeper's look or before it.
                process.work.fetch_add(1, Ordering::AcqRel);
                full_fence(Ordering::SeqCst);
                process.doorbell.wake_own();
            });
            process.await_work(1);
            other.join().unwrap();
        });
    }
}
