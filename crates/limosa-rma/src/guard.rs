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
//! A number that the thread changes which made the window costs no locked instruction besides its own, unless somebody
//! works in bulk meanwhile ([`limosa_base::bulk`]).

use std::sync::Arc;

use limosa_base::biased::this_thread;
use limosa_base::bulk::{Bulk, Singles};
use limosa_base::process_lock::{Locked, ProcessLock, YIELDS_PER_LIVENESS_CHECK};
use limosa_base::segment::Foreign;
use limosa_base::sync::{AtomicU32, Ordering, yield_now};

use crate::memory::Area;
use crate::shared_lock::LockWord;

/// Single numbers that the owner changes in a row by locked instructions before it expects no more work in bulk. They
/// have cost it as much as the heavy fence of the next one who works in bulk.
const CALM_AFTER: u32 = 256;

/// What a member of a window has in memory that others change too: of its own memory, and of what it does to others'.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Member {
    /// Held by whoever changes elements of this member's memory in bulk, or such as the processor cannot change at once.
    lock: ProcessLock,
    bulk: Bulk,
    user: User,
    /// The lock of `MPI_Win_lock`.
    pub window_lock: LockWord,
    /// In the first member's line: how many members have sent accesses by packets before a fence
    /// ([`Notices`](crate::notices::Notices)); the fences take turns.
    pub senders: [AtomicU32; 2],
}

/// Where a member says that it is changing numbers.
#[derive(Default)]
#[repr(C, align(64))]
struct User {
    singles: Singles,
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
    Own(Arc<[Member; 1]>),
}

/// Guards the memory of a member.
pub(crate) struct Guard {
    lines: Lines,
    /// Of the member whose memory it is; it lives as long as the lines.
    member: &'static Member,
    /// Of this process; likewise.
    user: &'static User,
    /// The thread that has made the guard owns the process's word.
    owner: usize,
    /// Numbers that the owner has changed by locked instructions.
    streak: AtomicU32,
}

impl Guard {
    /// For memory that only this process changes.
    pub fn own() -> Guard {
        Guard::new(Lines::Own(Arc::default()), 0, 0)
    }

    /// For the memory of a member of an area, of which this process is the member `me`. All guards of an area are made
    /// by one thread.
    pub fn shared(area: &Arc<Area>, member: usize, me: usize) -> Guard {
        area.lines()[me].user.place.store(area.host().me() + 1, Ordering::Relaxed);
        Guard::new(Lines::Area(area.clone()), member, me)
    }

    fn new(lines: Lines, member: usize, me: usize) -> Guard {
        let all: *const [Member] = match &lines {
            Lines::Area(area) => area.lines(),
            Lines::Own(line) => &line[..],
        };
        // SAFETY: the lines stay where they are as long as the guard, which keeps them, and it gives no reference away.
        let all: &'static [Member] = unsafe { &*all };
        Guard { lines, member: &all[member], user: &all[me].user, owner: this_thread(), streak: AtomicU32::new(0) }
    }

    fn all(&self) -> &[Member] {
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
        let locked = self.member.lock.lock(place, |holder| self.is_alive(holder));
        if locked.is_taken_over {
            // Its holder has died: one element may be half written, and there is nobody who could repair it.
            self.member.bulk.end();
        }
        locked
    }

    /// Runs `change`, which changes one number by an atomic instruction.
    #[inline(always)]
    pub fn number<R>(&self, change: impl FnOnce() -> R) -> R {
        let singles = &self.user.singles;
        if self.owner == this_thread() && singles.enter_as_owner(&self.member.bulk) {
            let result = change();
            singles.leave_as_owner();
            return result;
        }
        self.number_among_others(change)
    }

    #[inline(never)]
    fn number_among_others<R>(&self, change: impl FnOnce() -> R) -> R {
        let singles = &self.user.singles;
        if !singles.enter(&self.member.bulk) {
            let _locked = self.lock();
            return change();
        }
        let result = change();
        singles.leave();
        if self.owner == this_thread() {
            self.count_number();
        }
        result
    }

    /// The owner has changed a number by locked instructions.
    fn count_number(&self) {
        let streak = self.streak.load(Ordering::Relaxed) + 1;
        self.streak.store(streak % CALM_AFTER, Ordering::Relaxed);
        if streak == CALM_AFTER {
            let _locked = self.lock();
            self.member.bulk.calm_down();
        }
    }

    /// Runs `change` while nobody else changes elements of this memory.
    pub fn bulk(&self, change: impl FnOnce()) {
        let _locked = self.lock();
        self.streak.store(0, Ordering::Relaxed);
        self.member.bulk.begin();
        for line in self.all() {
            let mut yields = 0u32;
            while !line.user.singles.are_out() {
                yields = yields.wrapping_add(1);
                if yields.is_multiple_of(YIELDS_PER_LIVENESS_CHECK) {
                    let place = line.user.place.load(Ordering::Relaxed);
                    if place != 0 && !self.is_alive(place - 1) {
                        break;
                    }
                }
                yield_now();
            }
        }
        change();
        self.member.bulk.end();
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
