//! Guards: atomicity of accumulation for each element of a target's memory (MPI-5 section 12.7.1).
//!
//! There are three modes of changing elements, and [`Guard`] separates them:
//!
//! | mode | for | excludes |
//! |---|---|---|
//! | [`number`](Guard::number) | one number, by an atomic instruction | bulk updates |
//! | [`bulk`](Guard::bulk) | many numbers, by ordinary loads and stores | all others |
//! | [`hold`](Guard::hold) | elements that no atomic instruction can change | bulk updates, and each other |
//!
//! For the thread that created the window, a single number costs no locked instruction besides its own, except near
//! bulk updates ([`limosa_base::bulk`]).

use std::sync::Arc;

use limosa_base::biased::this_thread;
use limosa_base::process_lock::{Locked, YIELDS_PER_LIVENESS_CHECK};
use limosa_base::sync::{AtomicU32, Ordering, yield_now};

use crate::memory::{Area, Member, User};

/// Consecutive single updates of the owner by locked instructions, after which it expects no more bulk updates. They
/// have cost about as much as the heavy fence of the next bulk update.
const CALM_AFTER: u32 = 256;

/// Memory of the members' lines.
enum Lines {
    /// Shared by the members.
    Area(Arc<Area>),
    /// Of this process, which alone changes its memory.
    Own(Arc<[Member; 1]>),
}

/// Guard of a member's memory.
pub(crate) struct Guard {
    lines: Lines,
    /// Line of the member whose memory it is; it lives as long as `lines`.
    member: &'static Member,
    /// Line of this process; it lives as long as `lines`.
    user: &'static User,
    /// The thread that created the guard, which owns the process's announcement.
    owner: usize,
    /// Updates by the owner with locked instructions.
    streak: AtomicU32,
}

impl Guard {
    /// Creates a guard for memory that only this process changes.
    pub fn own() -> Guard {
        Guard::new(Lines::Own(Arc::default()), 0, 0)
    }

    /// Creates a guard for the memory of a member of an area, of which this process is member `me`. One thread creates
    /// all guards of an area.
    pub fn shared(area: &Arc<Area>, member: usize, me: usize) -> Guard {
        area.lines()[me].user.host_number.store(area.host().me() + 1, Ordering::Relaxed);
        Guard::new(Lines::Area(area.clone()), member, me)
    }

    fn new(lines: Lines, member: usize, me: usize) -> Guard {
        let all: *const [Member] = match &lines {
            Lines::Area(area) => area.lines(),
            Lines::Own(line) => &line[..],
        };
        // SAFETY: the lines stay in host_number as long as the guard, which keeps them alive and does not expose the
        // references.
        let all: &'static [Member] = unsafe { &*all };
        Guard { lines, member: &all[member], user: &all[me].user, owner: this_thread(), streak: AtomicU32::new(0) }
    }

    fn all(&self) -> &[Member] {
        match &self.lines {
            Lines::Area(area) => area.lines(),
            Lines::Own(line) => &line[..],
        }
    }

    /// Returns whether the process with this number on the host, counted from 0, is alive.
    fn is_alive(&self, host_number: u32) -> bool {
        match &self.lines {
            Lines::Area(area) => {
                (host_number as usize) < area.host().places().len() && area.host().is_alive(host_number)
            }
            Lines::Own(_) => true,
        }
    }

    fn lock(&self) -> Locked<'_> {
        let host_number = match &self.lines {
            Lines::Area(area) => area.host().me(),
            Lines::Own(_) => 0,
        };
        let locked = self.member.lock.lock(host_number, |holder| self.is_alive(holder));
        if locked.is_taken_over {
            // The lock's holder has died. One element may be half written, which cannot be repaired.
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

    /// Counts an update of the owner by locked instructions.
    fn count_number(&self) {
        let streak = self.streak.load(Ordering::Relaxed) + 1;
        self.streak.store(streak % CALM_AFTER, Ordering::Relaxed);
        if streak == CALM_AFTER {
            let _locked = self.lock();
            self.member.bulk.calm_down();
        }
    }

    /// Runs `change` with exclusive access to the elements of this memory.
    pub fn bulk(&self, change: impl FnOnce()) {
        let _locked = self.lock();
        self.streak.store(0, Ordering::Relaxed);
        self.member.bulk.begin();
        for line in self.all() {
            let mut yields = 0u32;
            while !line.user.singles.are_out() {
                yields = yields.wrapping_add(1);
                if yields.is_multiple_of(YIELDS_PER_LIVENESS_CHECK) {
                    let host_number = line.user.host_number.load(Ordering::Relaxed);
                    if host_number != 0 && !self.is_alive(host_number - 1) {
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
                            // SAFETY: in the array, without concurrent ordinary loads and stores.
                            guard.number(|| unsafe {
                                std::sync::atomic::AtomicU64::from_ptr(at.add(i % 64)).fetch_add(1, Ordering::Relaxed)
                            });
                        } else {
                            // SAFETY: the access is exclusive.
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
