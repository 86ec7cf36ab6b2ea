//! Excludes single-element updates from bulk updates in memory that processes share.
//!
//! A single update is announced in words of the updating process ([`Singles`]); the thread then checks for a bulk
//! update ([`Bulk`]). A bulk update is announced first, and then waits until the words of all processes show no single
//! update. At least one side sees the announcement of its peer (label A). A single update thus touches no cache line
//! that other processes write, except that of its element.
//!
//! One thread of each process, the owner of its words, needs no locked instruction while there are no bulk updates:
//!
//! | state | the owner enters by | a bulk update begins with |
//! |---|---|---|
//! | `CALM` | a store and a light fence | a heavy fence |
//! | `BUSY`, `BULK` | a locked instruction, like all other threads | a full fence |
//!
//! The first bulk update leaves the state `BUSY`. Owners with many consecutive single updates reset it to `CALM`: by
//! then the locked instructions have cost as much as a heavy fence.

use crate::fence;
use crate::sync::{AtomicU32, Ordering, fence as full_fence};

/// No recent bulk update.
const CALM: u32 = 0;
/// A recent bulk update.
const BUSY: u32 = 1;
/// A bulk update in progress.
const BULK: u32 = 2;

/// Announcement of bulk updates of one process's memory. Zeroed memory: none.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Bulk(AtomicU32);

/// Announcement of single updates by the threads of one process, in the memory of any process. Zeroed memory: none.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Singles {
    /// 1 during an update by the owner. Only the owner writes it.
    owner: AtomicU32,
    /// Updates in progress by locked instructions: those of other threads, and of the owner unless the state is `CALM`.
    others: AtomicU32,
}

impl Singles {
    /// Enters as the owner to update one element; false unless the state is `CALM`.
    #[inline(always)]
    pub fn enter_as_owner(&self, bulk: &Bulk) -> bool {
        self.owner.store(1, Ordering::Relaxed);
        fence::light(); // A
        // Pairs with the release in `end` and `calm_down`.
        if bulk.0.load(Ordering::Acquire) == CALM {
            return true;
        }
        self.leave_as_owner();
        false
    }

    /// Leaves, after [`Singles::enter_as_owner`].
    #[inline(always)]
    pub fn leave_as_owner(&self) {
        // Pairs with the acquire in `are_out`.
        self.owner.store(0, Ordering::Release);
    }

    /// Enters to update one element; false during a bulk update.
    #[inline]
    pub fn enter(&self, bulk: &Bulk) -> bool {
        self.others.fetch_add(1, Ordering::SeqCst); // A
        if cfg!(loom) {
            // loom models the order of fences, but not that of sequentially consistent accesses.
            full_fence(Ordering::SeqCst);
        }
        if bulk.0.load(Ordering::SeqCst) != BULK {
            return true;
        }
        self.leave();
        false
    }

    /// Leaves, after [`Singles::enter`].
    #[inline]
    pub fn leave(&self) {
        // Pairs with the acquire in `are_out`.
        self.others.fetch_sub(1, Ordering::Release);
    }

    /// Returns whether no thread of this process is inside. Called during a bulk update, when none can enter.
    pub fn are_out(&self) -> bool {
        self.owner.load(Ordering::Acquire) == 0 && self.others.load(Ordering::Acquire) == 0
    }
}

/// One caller at a time, under a lock.
impl Bulk {
    /// Announces a bulk update, which begins as soon as all [`Singles`] are out.
    pub fn begin(&self) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(BULK, Ordering::Relaxed);
        // A
        if before == CALM {
            fence::heavy();
        } else {
            full_fence(Ordering::SeqCst);
        }
    }

    /// Ends a bulk update.
    pub fn end(&self) {
        self.0.store(BUSY, Ordering::Release);
    }

    /// Resets the state to `CALM`.
    pub fn calm_down(&self) {
        self.0.store(CALM, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::{Mutex, UnsafeCell, yield_now};
    use loom::sync::Arc;
    use loom::thread;

    /// Memory of two processes. Each updates its own element singly, and all elements in bulk.
    #[derive(Default)]
    struct Memory {
        bulk: Bulk,
        lock: Mutex<()>,
        singles: [Singles; 2],
        numbers: [UnsafeCell<u32>; 2],
    }

    impl Memory {
        /// Adds 1 to an element. loom reports a concurrent access, or a missed write of the previous thread.
        fn add(&self, process: usize) {
            // SAFETY: loom checks that the access is exclusive.
            self.numbers[process].with_mut(|number| unsafe { *number += 1 });
        }

        fn change_one(&self, process: usize, is_owner: bool) {
            let singles = &self.singles[process];
            if is_owner && singles.enter_as_owner(&self.bulk) {
                self.add(process);
                return singles.leave_as_owner();
            }
            if singles.enter(&self.bulk) {
                self.add(process);
                return singles.leave();
            }
            let _locked = self.lock.lock();
            self.add(process);
        }

        fn change_all(&self) {
            let _locked = self.lock.lock();
            self.bulk.begin();
            for singles in &self.singles {
                while !singles.are_out() {
                    yield_now();
                }
            }
            (0..2).for_each(|process| self.add(process));
            self.bulk.end();
        }

        fn calm_down(&self) {
            let _locked = self.lock.lock();
            self.bulk.calm_down();
        }
    }

    fn check(first: impl Fn(&Memory) + Send + Sync + 'static, second: impl Fn(&Memory) + Send + Sync + 'static) {
        let (first, second) = (std::sync::Arc::new(first), std::sync::Arc::new(second));
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let memory = Arc::new(Memory::default());
            let other = {
                let (memory, second) = (memory.clone(), second.clone());
                thread::spawn(move || second(&memory))
            };
            first(&memory);
            other.join().unwrap();
            memory.change_all();
        });
    }

    #[test]
    fn an_owner_and_one_in_bulk_exclude_each_other() {
        check(|memory| (0..2).for_each(|_| memory.change_one(0, true)), |memory| memory.change_all());
    }

    #[test]
    fn another_thread_and_one_in_bulk_exclude_each_other() {
        check(|memory| (0..2).for_each(|_| memory.change_one(0, false)), |memory| memory.change_all());
    }

    #[test]
    fn an_owner_excludes_one_in_bulk_again_after_it_has_calmed_down() {
        let owner = |memory: &Memory| {
            memory.change_one(0, true);
            memory.calm_down();
            memory.change_one(0, true);
        };
        check(owner, |memory| (0..2).for_each(|_| memory.change_all()));
    }
}
