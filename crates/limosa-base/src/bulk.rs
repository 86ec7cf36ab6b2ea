//! Keeps changes of single numbers apart from changes of many at once, in memory that processes share.
//!
//! Whoever changes one number says so in words of its own process ([`Singles`]), then looks whether somebody works in
//! bulk ([`Bulk`]). Whoever works in bulk says so, and then waits until the words of all processes say that nobody
//! changes a number. At least one side sees the other (label A). So a single number costs no access to a line that
//! others write, besides the number.
//!
//! One thread of each process, the owner of its words, needs no locked instruction while nobody works in bulk:
//!
//! | state | the owner enters by | whoever begins to work in bulk executes |
//! |---|---|---|
//! | `CALM` | a store and a light fence | a heavy fence |
//! | `BUSY`, `BULK` | a locked instruction, like all other threads | a full fence |
//!
//! The first work in bulk leaves `BUSY` behind. Owners that change many numbers in a row make it `CALM` again: by then
//! the locked instructions have cost as much as a heavy fence.

use crate::fence;
use crate::sync::{AtomicU32, Ordering, fence as full_fence};

/// Nobody has worked in bulk lately.
const CALM: u32 = 0;
/// Somebody has.
const BUSY: u32 = 1;
/// Somebody does.
const BULK: u32 = 2;

/// What somebody does to a process's memory in bulk. Zeroed memory says that nobody does anything.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Bulk(AtomicU32);

/// Which threads of a process change single numbers, of whatever process. Zeroed memory: none.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Singles {
    /// 1: the owner does. Only the owner writes it.
    owner: AtomicU32,
    /// How many others do, or the owner in the other way.
    others: AtomicU32,
}

impl Singles {
    /// The owner enters to change one number, if nobody has worked in bulk lately.
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

    /// The owner leaves, which has entered by [`Singles::enter_as_owner`].
    #[inline(always)]
    pub fn leave_as_owner(&self) {
        // Pairs with the acquire in `are_out`.
        self.owner.store(0, Ordering::Release);
    }

    /// A thread enters to change one number, unless somebody works in bulk.
    #[inline]
    pub fn enter(&self, bulk: &Bulk) -> bool {
        self.others.fetch_add(1, Ordering::SeqCst); // A
        if cfg!(loom) {
            // loom does not know the order of sequentially consistent accesses, only that of fences.
            full_fence(Ordering::SeqCst);
        }
        if bulk.0.load(Ordering::SeqCst) != BULK {
            return true;
        }
        self.leave();
        false
    }

    /// A thread leaves that has entered by [`Singles::enter`].
    #[inline]
    pub fn leave(&self) {
        // Pairs with the acquire in `are_out`.
        self.others.fetch_sub(1, Ordering::Release);
    }

    /// Whether no thread of this process is inside: asked by whoever works in bulk, and then none can enter.
    pub fn are_out(&self) -> bool {
        self.owner.load(Ordering::Acquire) == 0 && self.others.load(Ordering::Acquire) == 0
    }
}

/// All of this is done by one at a time, under a lock.
impl Bulk {
    /// Somebody is going to work in bulk, as soon as all [`Singles`] are out.
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

    /// Nobody does any more.
    pub fn end(&self) {
        self.0.store(BUSY, Ordering::Release);
    }

    /// Nobody has for a while.
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

    /// Memory of two processes, each of which changes one number by itself, and all numbers in bulk.
    #[derive(Default)]
    struct Memory {
        bulk: Bulk,
        lock: Mutex<()>,
        singles: [Singles; 2],
        numbers: [UnsafeCell<u32>; 2],
    }

    impl Memory {
        /// loom sees if another thread is at the number too, or does not see what the one before it wrote.
        fn add(&self, process: usize) {
            // SAFETY: loom checks that nobody else is there.
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
