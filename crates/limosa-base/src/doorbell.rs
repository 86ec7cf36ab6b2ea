//! Doorbells: one word per process says which of its threads a peer must wake, and for which traffic.
//!
//! | state | threads of the owner | a ring |
//! |---|---|---|
//! | `AWAKE` | one polls, was just woken, or is about to poll again | wakes none |
//! | `DELEGATED` | one polls, or has just polled, on behalf of sleepers | wakes those for changes outside the traffic |
//! | `ASLEEP` | some sleep in blocking calls | wakes them for all traffic |
//! | `AWAY` | none is known to poll | wakes the helper thread for urgent traffic |
//! | `AWAY_ALL` | as `AWAY`, with schedules that need every message | wakes the helper thread for all traffic |
//!
//! The owner stores states (under its engine's lock). A ringer only swaps in `AWAKE` and then wakes the threads that
//! the previous state names, so concurrent ringers wake them once.
//!
//! A thread waits either for traffic, which one polling thread handles for all, or for a flag elsewhere in shared
//! memory, which only the waiting thread polls. A process that changes such a flag uses [`Doorbell::ring_sleepers`],
//! which also wakes in `DELEGATED`.
//!
//! No wake-up is lost because both sides store, fence and load. The owner stores a state, fences, and polls its rings
//! once more; a ringer stores into the ring, fences, and loads the state. Entering `ASLEEP` or `AWAY_ALL` takes
//! [`fence::heavy`], so that ordinary traffic needs only [`fence::light`]. Entering `AWAY` with unfinished operations
//! takes a plain full fence, and so does urgent traffic.
//!
//! Beside `ASLEEP` the word holds a generation, the number of times that `ASLEEP` was stored. A thread sleeps only
//! while the word is what it stored itself. Otherwise a late thread could sleep although a ring had come, another
//! thread had handled the traffic, perhaps completing the late thread's operation, and had stored `ASLEEP` again.

use crate::cpu;
use crate::fence;
use crate::futex::{self, Wakened};
use crate::sync::{AtomicU32, Ordering, fence as full_fence};
use std::time::{Duration, Instant};

/// State of a doorbell; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DoorbellState {
    /// No thread needs to be woken.
    Awake = 0,
    /// Threads sleep in blocking calls, and one thread polls the traffic on their behalf.
    Delegated = 1,
    /// Threads sleep in blocking calls.
    Asleep = 2,
    /// Urgent traffic wakes the helper.
    Away = 3,
    /// All traffic wakes the helper.
    AwayAll = 4,
}

const AWAKE: u32 = DoorbellState::Awake as u32;
const DELEGATED: u32 = DoorbellState::Delegated as u32;
const ASLEEP: u32 = DoorbellState::Asleep as u32;
const AWAY: u32 = DoorbellState::Away as u32;
/// Bits of the word that hold the state; the others hold the generation.
const STATE_BITS: u32 = 3;
const STATE: u32 = (1 << STATE_BITS) - 1;

/// Value of the doorbell word that the sleeping thread stored.
#[derive(Clone, Copy, Debug)]
pub struct SleepToken(u32);

/// The doorbell of one process, in shared memory. Zeroed memory is a doorbell in state [`DoorbellState::Awake`].
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Doorbell {
    word: AtomicU32,
    service: AtomicU32,
    /// Number of rings that woke a sleeper or the helper, for the status board and for tests that count needless
    /// wake-ups.
    rings: AtomicU32,
    /// The processor of the last ringer, counted from 1.
    rung_from: AtomicU32,
    /// Number of times that the owner has stored `ASLEEP`.
    generation: AtomicU32,
}

impl Doorbell {
    /// Rings after a store to a queue that the owner polls. `urgent`: the traffic needs service even while the owner
    /// computes.
    #[inline(always)]
    pub fn ring(&self, urgent: bool) {
        self.ring_beyond(DELEGATED, urgent);
    }

    /// Rings after a change outside the traffic for which a thread of the owner may sleep. The thread that polls the
    /// traffic does not see such a change.
    #[inline]
    pub fn ring_sleepers(&self, urgent: bool) {
        self.ring_beyond(AWAKE, urgent);
    }

    /// Rings, unless the state is at most `quiet`. One load of the word decides.
    #[inline(always)]
    fn ring_beyond(&self, quiet: u32, urgent: bool) {
        if urgent {
            full_fence(Ordering::SeqCst);
        } else {
            fence::light();
        }
        let word = self.word.load(Ordering::Relaxed);
        if word <= quiet || (word == AWAY && !urgent) {
            return;
        }
        self.ring_now();
    }

    /// Returns whether a thread of the owner will see what was just stored in its queues; false if only the helper
    /// could.
    #[inline]
    pub fn is_attended(&self) -> bool {
        full_fence(Ordering::SeqCst);
        self.is_waited_at()
    }

    /// Returns whether a thread of the owner waits: it polls or sleeps.
    #[inline]
    pub fn is_waited_at(&self) -> bool {
        self.word.load(Ordering::Relaxed) & STATE <= ASLEEP
    }

    /// Returns whether a thread of the owner polls, or has just polled.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.word.load(Ordering::Relaxed) <= DELEGATED
    }

    #[cold]
    fn ring_now(&self) {
        self.rung_from.store(cpu::current().map_or(0, |cpu| cpu + 1), Ordering::Relaxed);
        match self.word.swap(AWAKE, Ordering::AcqRel) & STATE {
            AWAKE => {}
            ASLEEP | DELEGATED => {
                self.rings.fetch_add(1, Ordering::Relaxed);
                futex::wake_all(&self.word);
            }
            _ => {
                self.rings.fetch_add(1, Ordering::Relaxed);
                self.call_helper();
            }
        }
    }

    /// Stores `ASLEEP`, with the fence that it needs. The owner must poll its rings afterwards.
    pub fn set_asleep(&self) -> SleepToken {
        let token = SleepToken(self.generation.fetch_add(1, Ordering::Relaxed) << STATE_BITS | ASLEEP);
        // An exchange, as in `helper_wait`.
        self.word.swap(token.0, Ordering::AcqRel);
        fence::heavy();
        token
    }

    /// Stores a state, with the fence that it needs. The owner must poll its rings afterwards.
    pub fn set(&self, state: DoorbellState) {
        match state {
            DoorbellState::Asleep => _ = self.set_asleep(),
            _ => self.word.store(state as u32, Ordering::Release),
        }
        match state {
            DoorbellState::Awake | DoorbellState::Delegated | DoorbellState::Asleep => {}
            DoorbellState::Away => full_fence(Ordering::SeqCst),
            DoorbellState::AwayAll => fence::heavy(),
        }
    }

    /// Stores [`DoorbellState::Away`] without a fence, for a process without operations that need service.
    #[inline]
    pub fn set_away_lazily(&self) {
        self.word.store(AWAY, Ordering::Release);
    }

    /// Returns whether the doorbell is in this state.
    #[inline]
    pub fn is(&self, state: DoorbellState) -> bool {
        self.word.load(Ordering::Relaxed) & STATE == state as u32
    }

    /// Announces that the calling thread of the owner polls the traffic on behalf of sleeping threads, which traffic no
    /// longer wakes. `only_traffic`: no sleeping thread waits for anything else. Without effect after a ring.
    #[inline]
    pub fn delegate_polling(&self, only_traffic: bool) {
        let word = self.word.load(Ordering::Relaxed);
        if word & STATE == ASLEEP {
            let state = if only_traffic { AWAKE } else { DELEGATED };
            let _ = self.word.compare_exchange(word, state, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Ends the delegation: wakes the sleeping threads, which poll for themselves.
    pub fn end_delegation(&self) {
        self.set(DoorbellState::Asleep);
        self.wake_own();
    }

    /// Sleeps until a ring, for at most `timeout`, and returns the cause of the wake-up. Returns at once if the word
    /// has changed since `token` was stored.
    pub fn sleep(&self, token: SleepToken, timeout: Option<Duration>) -> Wakened {
        futex::wait(&self.word, token.0, timeout)
    }

    /// Wakes all sleeping threads of the owner, whatever the state is now.
    pub fn wake_own(&self) {
        self.word.swap(AWAKE, Ordering::AcqRel);
        futex::wake_all(&self.word);
    }

    /// Wakes the owner's helper thread.
    pub fn call_helper(&self) {
        // A swap, as in `helper_wait`: loom does not model the order of a store and a concurrent swap.
        self.service.swap(1, Ordering::AcqRel);
        futex::wake_all(&self.service);
    }

    /// Parks the helper thread until it is called, or until the deadline; false if it was not called.
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

    /// Returns whether the last ring came from the processor of the calling thread: the partner shares this processor.
    pub fn rung_from_here(&self) -> bool {
        cpu::current().is_some_and(|cpu| self.rung_from.load(Ordering::Relaxed) == cpu + 1)
    }

    /// Returns the number of rings that woke a thread of this process.
    pub fn rings(&self) -> u32 {
        self.rings.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::Mutex;
    use loom::sync::Arc;
    use loom::thread::{self, JoinHandle};

    /// A process with a queue, and its doorbell.
    #[derive(Default)]
    struct Process {
        doorbell: Doorbell,
        /// Pieces of work in the queue.
        work: AtomicU32,
        /// Changes outside the queue, which a polling thread does not see.
        shows: AtomicU32,
    }

    impl Process {
        /// Puts a piece of work into the queue and rings, as a peer.
        fn give(&self, urgent: bool) {
            self.work.fetch_add(1, Ordering::Release);
            self.doorbell.ring(urgent);
        }

        fn has(&self, pieces: u32) -> bool {
            self.work.load(Ordering::Acquire) >= pieces
        }

        /// Sleeps until there are so many pieces, as a thread of the engine does.
        fn await_work(&self, pieces: u32) {
            while !self.has(pieces) {
                let token = self.doorbell.set_asleep();
                if !self.has(pieces) {
                    self.doorbell.sleep(token, None);
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
    fn two_ringers_wake_a_sleeper_that_needs_both() {
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

    /// Runs an owner that polls, stores an away state, polls once more, and computes. Later work is handled by the
    /// helper.
    fn helper_takes_over(state: DoorbellState, urgent: bool) {
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
                // The owner has seen the work. The helper may have been called as well; if not, this ends its wait.
                process.doorbell.call_helper();
            }
            ringer.join().unwrap();
            helper.join().unwrap();
        });
    }

    #[test]
    fn urgent_traffic_is_seen_by_the_owner_or_its_helper() {
        helper_takes_over(DoorbellState::Away, true);
    }

    #[test]
    fn all_traffic_is_seen_by_the_owner_or_its_helper_if_it_says_so() {
        helper_takes_over(DoorbellState::AwayAll, false);
    }

    /// Sleeps until there is work or a change outside the queue. The lock stands for the engine's.
    fn await_either(process: &Process, lock: &Mutex<()>) {
        loop {
            let held = lock.lock();
            let token = process.doorbell.set_asleep();
            if process.has(1) || process.shows.load(Ordering::Acquire) > 0 {
                return;
            }
            drop(held);
            process.doorbell.sleep(token, None);
        }
    }

    /// Begins to poll, polls once, and wakes the threads that may wait for the work found.
    fn poll_once(process: &Process, lock: &Mutex<()>, only_traffic: bool) {
        let _held = lock.lock();
        process.doorbell.delegate_polling(only_traffic);
        if process.has(1) {
            process.doorbell.wake_own();
        }
    }

    /// Runs a thread that sleeps while a second thread polls, and a peer that brings about what it waits for.
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
                        process.doorbell.end_delegation();
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
                // In the engine this happens under the lock: after the sleeper's poll or before it.
                process.work.fetch_add(1, Ordering::AcqRel);
                full_fence(Ordering::SeqCst);
                process.doorbell.wake_own();
            });
            process.await_work(1);
            other.join().unwrap();
        });
    }
}
