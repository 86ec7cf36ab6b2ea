//! A lock in shared memory that records its holder's process, and that can be taken over when that process dies.

use crate::sync::{AtomicU32, Ordering, yield_now};

/// Yields of a waiting thread between checks, by system calls, whether the holder is alive.
pub const YIELDS_PER_LIVENESS_CHECK: u32 = if cfg!(loom) { 1 } else { 1000 };

/// A lock between processes. Zeroed memory is a free lock; otherwise it holds the number of the holder, counted from 1.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct ProcessLock(AtomicU32);

/// Ownership of the lock, until dropped.
#[derive(Debug)]
pub struct Locked<'a> {
    lock: &'a ProcessLock,
    /// The previous holder died with the lock: the protected data may be half updated.
    pub is_taken_over: bool,
}

impl ProcessLock {
    /// Acquires the lock for process `me`, waiting as long as necessary. Any thread of the process may call this.
    pub fn lock(&self, me: u32, is_alive: impl Fn(u32) -> bool) -> Locked<'_> {
        let mut yields = 0u32;
        loop {
            // Pairs with the release in `drop`.
            match self.0.compare_exchange(0, me + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Locked { lock: self, is_taken_over: false },
                Err(holder) => {
                    yield_now();
                    yields = yields.wrapping_add(1);
                    // Only waiting threads replace a dead holder's number, and only one of them succeeds. It sees all
                    // stores of the dead process, since the kernel has reported the death.
                    if holder != 0
                        && yields.is_multiple_of(YIELDS_PER_LIVENESS_CHECK)
                        && !is_alive(holder - 1)
                        && self.0.compare_exchange(holder, me + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
                    {
                        return Locked { lock: self, is_taken_over: true };
                    }
                }
            }
        }
    }

    /// Returns whether the lock is free.
    pub fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.lock.0.swap(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    #[test]
    fn threads_and_processes_exclude_each_other() {
        let (lock, twins) = (ProcessLock::default(), [AtomicU64::new(0), AtomicU64::new(0)]);
        std::thread::scope(|scope| {
            for process in [0, 0, 1] {
                let (lock, twins) = (&lock, &twins);
                scope.spawn(move || {
                    for _ in 0..5000 {
                        let locked = lock.lock(process, |_| true);
                        assert!(!locked.is_taken_over);
                        let seen = twins[0].load(Ordering::Relaxed) + 1;
                        twins[0].store(seen, Ordering::Relaxed);
                        assert_eq!(twins[1].swap(seen, Ordering::Relaxed), seen - 1, "two are inside");
                    }
                });
            }
        });
        assert_eq!(twins[0].load(Ordering::Relaxed), 15_000);
        assert!(lock.is_free());
    }

    #[test]
    fn a_dead_holders_lock_is_taken_over_once() {
        let lock = ProcessLock::default();
        // Its destructor never runs.
        std::mem::forget(lock.lock(7, |_| true));
        assert!(lock.lock(1, |holder| holder != 7).is_taken_over);
        assert!(!lock.lock(2, |_| true).is_taken_over);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn one_waiting_process_takes_a_dead_holders_lock_over() {
        const DEAD: u32 = 7;
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((ProcessLock::default(), UnsafeCell::new(0)));
            // Its destructor never runs.
            std::mem::forget(shared.0.lock(DEAD, |_| true));
            let enter = |shared: &(ProcessLock, UnsafeCell<u32>), me| {
                let locked = shared.0.lock(me, |holder| holder != DEAD);
                // SAFETY: loom checks that the access is exclusive.
                shared.1.with_mut(|takeovers| unsafe { *takeovers += u32::from(locked.is_taken_over) });
            };
            let other = {
                let shared = shared.clone();
                thread::spawn(move || enter(&shared, 1))
            };
            enter(&shared, 0);
            other.join().unwrap();
            // SAFETY: as above.
            shared.1.with(|takeovers| assert_eq!(unsafe { *takeovers }, 1));
        });
    }
}
