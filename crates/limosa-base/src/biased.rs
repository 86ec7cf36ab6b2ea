//! A biased lock: the thread that created it, its owner, acquires and releases it with two plain stores.
//!
//! As long as no other thread comes, the owner enters by a store to `inside` and a load of `revoked`, without a locked
//! instruction. Any other thread first revokes the bias with the heavy half of [`crate::fence`], and waits until the
//! owner is not inside. From then on all threads use an ordinary mutex, until the owner has been its only user for a
//! while.
//!
//! | `revoked` | the lock is held by |
//! |---|---|
//! | false | the owner, while `inside` is 1 |
//! | true | the holder of `slow`, once `inside` is 0 |
//!
//! Mutual exclusion: the owner stores `inside`, executes a light fence and loads `revoked`; a revoking thread stores
//! `revoked`, executes a heavy fence and loads `inside`. At least one load sees the store of the opposite side: the
//! owner sees that it must use the mutex, or the revoking thread sees that it must wait. Only the owner writes
//! `inside`, and the owner never changes. Only the owner clears `revoked`, while it holds `slow`.

use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Ordering, RawLock, UnsafeCell, spin_loop};
use crate::{fence, futex};
use std::ops::{Deref, DerefMut};

/// Consecutive acquisitions by the owner after which the bias is restored. By then the mutex has cost about as much as
/// a revocation, so alternating threads pay at most twice.
const RESTORE_AFTER: u32 = if cfg!(loom) { 1 } else { 256 };
/// Reads of `inside` before the thread sleeps.
const SPINS: u32 = if cfg!(loom) { 1 } else { 500 };
/// Panic message of a recursive acquisition.
const HELD: &str = "the lock is held by this thread already";

/// A biased lock and the value that it protects.
pub struct Biased<T> {
    owner: usize,
    inside: AtomicU32,
    /// 1 while a thread sleeps until `inside` is 0.
    awaited: AtomicU32,
    revoked: AtomicBool,
    slow: RawLock,
    /// The thread that holds `slow`, or 0.
    holder: AtomicUsize,
    /// Consecutive acquisitions by the owner; protected by `slow`.
    streak: UnsafeCell<u32>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock admits one thread at a time to the value, which therefore moves between threads.
unsafe impl<T: Send> Sync for Biased<T> {}

/// Exclusive access to the value, until dropped.
pub struct Guard<'a, T> {
    lock: &'a Biased<T>,
    fast: bool,
    /// Makes the guard neither `Send` nor `Sync`: it belongs to its thread.
    thread: std::marker::PhantomData<*const ()>,
}

/// Returns a number that identifies the calling thread among all living threads.
#[inline(always)]
pub fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        let pointer: usize;
        // SAFETY: by the ABI of x86-64 Linux the word at offset 0 of the thread's own segment is the address of that
        // segment.
        unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure)) };
        pointer
    }
    #[cfg(all(not(target_arch = "x86_64"), not(loom)))]
    {
        thread_local!(static PLACE: u8 = const { 0 });
        PLACE.with(|place| std::ptr::from_ref(place).addr())
    }
    #[cfg(loom)]
    {
        loom::thread_local!(static PLACE: Box<u8> = Box::new(0));
        PLACE.with(|place| std::ptr::from_ref(&**place).addr())
    }
}

impl<T> Biased<T> {
    /// Creates a lock biased to the calling thread.
    pub fn new(value: T) -> Biased<T> {
        Biased {
            owner: this_thread(),
            inside: AtomicU32::new(0),
            awaited: AtomicU32::new(0),
            revoked: AtomicBool::new(false),
            slow: RawLock::new(),
            holder: AtomicUsize::new(0),
            streak: UnsafeCell::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Acquires the lock, waiting as long as necessary.
    ///
    /// # Panics
    /// If this thread already holds the lock.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        let mine = self.owner == this_thread();
        assert!(!mine || self.inside.load(Ordering::Relaxed) == 0, "{HELD}");
        let fast = mine && self.enter();
        if !fast {
            self.lock_slowly();
        }
        Guard { lock: self, fast, thread: std::marker::PhantomData }
    }

    /// Acquires the lock if that needs no waiting and no revocation. Fails also if this thread already holds it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        let fast = self.owner == this_thread() && self.inside.load(Ordering::Relaxed) == 0 && self.enter();
        if !fast && !self.try_lock_slowly() {
            return None;
        }
        Some(Guard { lock: self, fast, thread: std::marker::PhantomData })
    }

    /// Acquires the lock for the owner, which is not inside; false if the bias is revoked.
    #[inline(always)]
    fn enter(&self) -> bool {
        self.inside.store(1, Ordering::Relaxed);
        // Pairs with the heavy fence in `lock_slowly`.
        fence::light();
        if !self.revoked.load(Ordering::Acquire) {
            return true;
        }
        self.leave();
        false
    }

    /// Releases the lock for the owner.
    #[inline(always)]
    fn leave(&self) {
        self.inside.store(0, Ordering::Release);
        // Pairs with the heavy fence in `await_owner`.
        fence::light();
        if self.awaited.load(Ordering::Relaxed) != 0 {
            self.wake_awaiting();
        }
    }

    #[cold]
    fn wake_awaiting(&self) {
        futex::wake_all(&self.inside);
    }

    #[cold]
    fn lock_slowly(&self) {
        let me = this_thread();
        assert!(!self.is_held_slowly_by(me), "{HELD}");
        self.slow.lock();
        if !self.revoked.load(Ordering::Relaxed) {
            // The owner gets here only after it has seen `revoked`. It may have restored its bias itself since then.
            self.revoked.store(true, Ordering::SeqCst);
            fence::heavy();
        }
        if self.owner != me {
            self.await_owner();
        }
        self.note_holder(me);
    }

    /// Acquires `slow` if that needs neither a revocation nor waiting.
    #[inline(never)]
    fn try_lock_slowly(&self) -> bool {
        if !self.revoked.load(Ordering::Relaxed) || !self.slow.try_lock() {
            return false;
        }
        let me = this_thread();
        let mine = self.owner == me;
        // The revoking thread executed the heavy fence before it released `slow`.
        if !self.revoked.load(Ordering::Relaxed) || (!mine && self.inside.load(Ordering::Acquire) != 0) {
            // SAFETY: `slow` was acquired above, and the value was not used.
            unsafe { self.slow.unlock(false) };
            return false;
        }
        self.note_holder(me);
        true
    }

    /// Records the calling thread, whose number is `me`, as holder of `slow`.
    #[inline]
    fn note_holder(&self, me: usize) {
        self.holder.store(me, Ordering::Relaxed);
        let mine = self.owner == me;
        // SAFETY: `slow` is held.
        self.streak.with_mut(|streak| unsafe { *streak = if mine { *streak + 1 } else { 0 } });
    }

    /// Returns whether the calling thread, whose number is `me`, holds `slow`.
    fn is_held_slowly_by(&self, me: usize) -> bool {
        // Only this thread stores its own number there.
        self.holder.load(Ordering::Relaxed) == me
    }

    /// Waits until the owner is not inside. `revoked` is set.
    fn await_owner(&self) {
        for _ in 0..SPINS {
            if self.inside.load(Ordering::Acquire) == 0 {
                return;
            }
            spin_loop();
        }
        self.awaited.store(1, Ordering::SeqCst);
        fence::heavy();
        while self.inside.load(Ordering::Acquire) != 0 {
            futex::wait(&self.inside, 1, None);
        }
        self.awaited.store(0, Ordering::Relaxed);
    }

    /// # Safety
    /// The calling thread holds `slow` and no longer uses the value.
    #[cold]
    unsafe fn unlock_slowly(&self, fairly: bool) {
        // SAFETY: `slow` is held.
        if self.owner == this_thread() && self.streak.with(|streak| unsafe { *streak }) >= RESTORE_AFTER {
            self.revoked.store(false, Ordering::Release);
        }
        self.holder.store(0, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.slow.unlock(fairly) };
    }
}

impl<T> Guard<'_, T> {
    #[inline(always)]
    fn release(&self, fairly: bool) {
        if self.fast {
            self.lock.leave();
        } else {
            // SAFETY: a guard that is not fast holds `slow`.
            unsafe { self.lock.unlock_slowly(fairly) };
        }
    }

    fn take_again(&mut self) {
        let again = self.lock.lock();
        self.fast = again.fast;
        std::mem::forget(again);
    }

    /// Runs `f` with the lock released.
    pub fn unlocked<R>(guard: &mut Self, f: impl FnOnce() -> R) -> R {
        /// Reacquires the lock, even when `f` panics.
        struct Again<'g, 'a, T>(&'g mut Guard<'a, T>);
        impl<T> Drop for Again<'_, '_, T> {
            fn drop(&mut self) {
                self.0.take_again();
            }
        }
        guard.release(false);
        let _again = Again(guard);
        f()
    }

    /// Yields the lock to threads that wait for it.
    #[inline]
    pub fn bump(guard: &mut Self) {
        if guard.lock.revoked.load(Ordering::Relaxed) {
            guard.release(true);
            guard.take_again();
        }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.release(false);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: a guard exists only while its thread holds the lock.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.with_mut(|value| value) }
    }
}

/// Not poisoned by panics, like all locks of this library.
impl<T: Default> Default for Biased<T> {
    fn default() -> Self {
        Biased::new(T::default())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Two counters that differ only while a thread is inside.
    #[derive(Default)]
    struct Twins(u64, u64);

    fn visit(lock: &Biased<Twins>) {
        count(&mut lock.lock());
    }

    fn try_visit(lock: &Biased<Twins>) -> bool {
        lock.try_lock().map(|mut twins| count(&mut twins)).is_some()
    }

    fn count(twins: &mut Twins) {
        twins.0 += 1;
        let seen = std::hint::black_box(twins.0);
        assert_eq!(seen, twins.1 + 1, "two threads are inside");
        twins.1 = seen;
    }

    #[test]
    fn one_thread_at_a_time_however_they_mix() {
        fence::register();
        for others in [0u64, 1, 3] {
            let lock = Biased::new(Twins::default());
            std::thread::scope(|scope| {
                for _ in 0..others {
                    scope.spawn(|| {
                        for i in 0..20_000 {
                            if i % 3 > 0 || !try_visit(&lock) {
                                visit(&lock);
                            }
                            if i % 100 == 0 {
                                // Long enough for the owner to get its bias back.
                                std::thread::sleep(std::time::Duration::from_micros(50));
                            }
                        }
                    });
                }
                for i in 0..100_000 {
                    if i % 3 > 0 || !try_visit(&lock) {
                        visit(&lock);
                    }
                    if i % 1000 == 0 {
                        let mut twins = lock.lock();
                        Guard::bump(&mut twins);
                        Guard::unlocked(&mut twins, std::thread::yield_now);
                    }
                }
            });
            assert_eq!(lock.lock().0, 100_000 + others * 20_000);
        }
    }

    #[test]
    fn the_owner_gets_its_bias_back() {
        let lock = Biased::new(0);
        assert!(lock.lock().fast);
        std::thread::scope(|scope| scope.spawn(|| *lock.lock() += 1).join().unwrap());
        assert!(!lock.lock().fast);
        for _ in 0..=RESTORE_AFTER {
            *lock.lock() += 1;
        }
        assert!(lock.lock().fast);
    }

    #[test]
    fn it_is_had_at_once_by_the_owner_and_by_all_once_the_bias_is_revoked() {
        let lock = Biased::new(0);
        {
            let mut first = lock.try_lock().expect("it is free");
            *first += 1;
            assert!(lock.try_lock().is_none(), "this thread holds it");
        }
        let on_another_thread = |expected: bool| {
            std::thread::scope(|scope| {
                let got = scope.spawn(|| lock.try_lock().map(|mut guard| *guard += 1).is_some()).join().unwrap();
                assert_eq!(got, expected);
            });
        };
        on_another_thread(false);
        std::thread::scope(|scope| scope.spawn(|| *lock.lock() += 1).join().unwrap());
        on_another_thread(true);
        {
            let mut first = lock.try_lock().expect("it is free");
            *first += 1;
            assert!(!first.fast && lock.try_lock().is_none());
            on_another_thread(false);
        }
        for _ in 0..RESTORE_AFTER {
            *lock.try_lock().expect("it is free") += 1;
        }
        assert!(lock.try_lock().expect("it is free").fast, "the bias is back");
        on_another_thread(false);
        assert_eq!(*lock.lock(), 4 + RESTORE_AFTER);
    }

    #[test]
    fn a_waiting_thread_is_woken_when_the_owner_leaves() {
        let lock = Biased::new(0);
        let guard = lock.lock();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| *lock.lock());
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(guard);
            assert_eq!(other.join().unwrap(), 0);
        });
    }

    /// Returns whether acquiring the lock panics on this thread.
    fn is_refused(lock: &Biased<u32>) -> bool {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(lock.lock()))).is_err()
    }

    #[test]
    fn taking_it_twice_is_noticed_in_either_mode_and_does_no_harm() {
        let lock = Biased::new(0);
        let first = lock.lock();
        assert!(first.fast && is_refused(&lock));
        drop(first);
        std::thread::scope(|scope| {
            let visitor = scope.spawn(|| {
                let mut first = lock.lock();
                *first += 1;
                is_refused(&lock)
            });
            assert!(visitor.join().unwrap());
        });
        let first = lock.lock();
        assert!(!first.fast && is_refused(&lock));
        drop(first);
        assert_eq!(*lock.lock(), 1);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Enters once. loom reports a concurrent access to the value, or a missed write of the previous holder.
    fn visit(lock: &Biased<u32>) {
        let me = this_thread();
        assert!(!lock.is_held_slowly_by(me));
        let mut guard = lock.lock();
        *guard += 1;
        assert_eq!(guard.fast, !lock.is_held_slowly_by(me), "taking it again would be noticed");
        drop(guard);
        assert!(!lock.is_held_slowly_by(me));
    }

    fn check(owner: u32, visitors: u32, visits: u32, preemptions: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let lock = Arc::new(Biased::new(0));
            let others: Vec<_> = (0..visitors)
                .map(|_| {
                    let lock = lock.clone();
                    thread::spawn(move || (0..visits).for_each(|_| visit(&lock)))
                })
                .collect();
            (0..owner).for_each(|_| visit(&lock));
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(*lock.lock(), owner + visitors * visits);
        });
    }

    #[test]
    fn owner_and_visitor_exclude_each_other() {
        check(2, 1, 1, 4);
    }

    #[test]
    fn a_bias_that_is_given_back_can_be_revoked_again() {
        check(4, 1, 2, 2);
    }

    /// Tries to enter `times` times without waiting; returns how many attempts succeeded.
    fn try_visits(lock: &Biased<u32>, times: u32) -> u32 {
        (0..times).map(|_| u32::from(lock.try_lock().map(|mut guard| *guard += 1).is_some())).sum()
    }

    fn check_trying(owner_tries: bool) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let lock = Arc::new(Biased::new(0));
            let other = {
                let lock = lock.clone();
                thread::spawn(move || {
                    visit(&lock);
                    if owner_tries { 1 } else { 1 + try_visits(&lock, 2) }
                })
            };
            let entered = if owner_tries {
                try_visits(&lock, 2)
            } else {
                visit(&lock);
                visit(&lock);
                2
            };
            let all = entered + other.join().unwrap();
            assert_eq!(*lock.lock(), all);
        });
    }

    #[test]
    fn an_owner_that_does_not_wait_excludes_a_visitor() {
        check_trying(true);
    }

    #[test]
    fn a_visitor_that_does_not_wait_excludes_the_owner() {
        check_trying(false);
    }

    #[test]
    fn visitors_exclude_each_other_and_the_owner() {
        check(1, 2, 1, 3);
    }

    #[test]
    fn a_thread_that_releases_the_lock_for_a_while_gets_it_back() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let lock = Arc::new(Biased::new(0));
            let other = {
                let lock = lock.clone();
                thread::spawn(move || visit(&lock))
            };
            let mut guard = lock.lock();
            *guard += 1;
            Guard::unlocked(&mut guard, || visit(&lock));
            Guard::bump(&mut guard);
            *guard += 1;
            drop(guard);
            other.join().unwrap();
            assert_eq!(*lock.lock(), 4);
        });
    }
}
