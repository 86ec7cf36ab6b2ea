//! What keeps accumulation atomic for each element of a target's memory (MPI-5 section 12.7.1).
//!
//! There are three ways to change elements, and [`Guard`] keeps them apart:
//!
//! | way | for | excluded |
//! |---|---|---|
//! | [`number`](Guard::number) | one number, by an atomic instruction | those in bulk |
//! | [`bulk`](Guard::bulk) | many numbers, by ordinary loads and stores | all others |
//! | [`hold`](Guard::hold) | elements that no atomic instruction can change | those in bulk, and each other |
//!
//! Whoever changes one number says so in a line of its own, then looks whether somebody works in bulk. Whoever works in
//! bulk holds the lock, says so, and then waits until the lines of all others are empty. At least one side sees the
//! other (label A). So a single number costs no access to a line that others write, besides the number.

use std::sync::Arc;

use limosa_base::process_lock::{Locked, PATIENCE, ProcessLock};
use limosa_base::segment::Foreign;
use limosa_base::sync::{AtomicU32, Ordering, yield_now};

use crate::memory::Area;
use crate::shared_lock::LockWord;

/// What a member of a window has in memory that others change too: of its own memory, and of what it does to others'.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Member {
    /// Held by whoever changes elements of this member's memory in bulk, or such as the processor cannot change at once.
    lock: ProcessLock,
    /// Not 0: in bulk.
    bulk: AtomicU32,
    user: User,
    /// The lock of `MPI_Win_lock`.
    pub window_lock: LockWord,
}

/// Where a member says that it is changing numbers.
#[derive(Default)]
#[repr(C, align(64))]
struct User {
    /// How many of its threads are.
    busy: AtomicU32,
    /// Its place on the host, counted from 1.
    place: AtomicU32,
}

// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for Member {}

/// Where the lines of the members are.
enum Lines {
    /// In memory that they share.
    Area(Arc<Area>),
    /// Only this process changes its memory.
    Own(Box<[Member; 1]>),
}

/// Guards the memory of a member.
pub(crate) struct Guard {
    lines: Lines,
    /// The member whose memory it is, and this process.
    member: usize,
    me: usize,
}

impl Guard {
    /// For memory that only this process changes.
    pub fn own() -> Guard {
        Guard { lines: Lines::Own(Box::default()), member: 0, me: 0 }
    }

    /// For the memory of a member of an area, of which this process is the member `me`.
    pub fn shared(area: &Arc<Area>, member: usize, me: usize) -> Guard {
        area.lines()[me].user.place.store(area.host().me() + 1, Ordering::Relaxed);
        Guard { lines: Lines::Area(area.clone()), member, me }
    }

    #[inline(always)]
    fn lines(&self) -> &[Member] {
        match &self.lines {
            Lines::Area(area) => area.lines(),
            Lines::Own(line) => &line[..],
        }
    }

    /// Whether the process at a place of the host lives, counted from 0.
    fn is_alive(&self, place: u32) -> bool {
        match &self.lines {
            Lines::Area(area) => (place as usize) < area.host().places().len() && area.host().is_alive(place),
            Lines::Own(_) => true,
        }
    }

    fn lock(&self) -> Locked<'_> {
        let place = match &self.lines {
            Lines::Area(area) => area.host().me(),
            Lines::Own(_) => 0,
        };
        let line = &self.lines()[self.member];
        let locked = line.lock.lock(place, |holder| self.is_alive(holder));
        if locked.is_taken_over {
            // Its holder has died: one element may be half written, and there is nobody who could repair it.
            line.bulk.store(0, Ordering::Release);
        }
        locked
    }

    /// Runs `change`, which changes one number by an atomic instruction.
    #[inline(always)]
    pub fn number<R>(&self, change: impl FnOnce() -> R) -> R {
        let lines = self.lines();
        let busy = &lines[self.me].user.busy;
        busy.fetch_add(1, Ordering::SeqCst); // A
        if lines[self.member].bulk.load(Ordering::SeqCst) == 0 {
            let result = change();
            busy.fetch_sub(1, Ordering::Release);
            return result;
        }
        busy.fetch_sub(1, Ordering::Release);
        self.number_later(change)
    }

    #[cold]
    fn number_later<R>(&self, change: impl FnOnce() -> R) -> R {
        let _locked = self.lock();
        change()
    }

    /// Runs `change` while nobody else changes elements of this memory.
    pub fn bulk(&self, change: impl FnOnce()) {
        let _locked = self.lock();
        let lines = self.lines();
        let bulk = &lines[self.member].bulk;
        bulk.store(1, Ordering::SeqCst); // A
        for line in lines {
            let mut yields = 0u32;
            // Pairs with the release after the change.
            while line.user.busy.load(Ordering::SeqCst) != 0 {
                yields = yields.wrapping_add(1);
                if yields.is_multiple_of(PATIENCE) {
                    let place = line.user.place.load(Ordering::Relaxed);
                    if place != 0 && !self.is_alive(place - 1) {
                        break;
                    }
                }
                yield_now();
            }
        }
        change();
        bulk.store(0, Ordering::Release);
    }

    /// Runs `change`, which changes elements that no atomic instruction can change.
    pub fn hold(&self, change: impl FnOnce()) {
        let _locked = self.lock();
        change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    struct Numbers(UnsafeCell<[u64; 64]>);
    // SAFETY: the test accesses them under a guard.
    unsafe impl Sync for Numbers {}

    #[test]
    fn numbers_changed_one_by_one_and_in_bulk_are_all_there() {
        let (guard, numbers) = (Guard::own(), Numbers(UnsafeCell::new([0; 64])));
        let (guard, numbers) = (&guard, &numbers);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for i in 0..2000 {
                        let at = numbers.0.get().cast::<u64>();
                        if thread < 2 {
                            // SAFETY: in the array, and nobody is there with ordinary loads and stores.
                            guard.number(|| unsafe {
                                std::sync::atomic::AtomicU64::from_ptr(at.add(i % 64)).fetch_add(1, Ordering::Relaxed)
                            });
                        } else {
                            // SAFETY: nobody else is there.
                            guard.bulk(|| unsafe { (*numbers.0.get()).iter_mut().for_each(|number| *number += 1) });
                        }
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        let sum: u64 = unsafe { (*numbers.0.get()).iter().sum() };
        assert_eq!(sum, 2 * 2000 + 2 * 2000 * 64);
    }
}
