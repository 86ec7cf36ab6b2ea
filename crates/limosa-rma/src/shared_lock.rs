//! Passive-target locks in memory that all members of a window share (MPI-5 section 12.5.3).
//!
//! The lock of each member is a word. If the lock is free, or held by readers and requested by a reader, one atomic
//! instruction acquires it, and one releases it. Otherwise a rank enters a queue, which a short lock protects, and
//! sleeps. While the queue is not empty ([`QUEUED`]), the word is changed under the short lock only, and queued ranks
//! get the lock in the order of arrival; consecutive readers share it. The rank that grants the lock sends a packet
//! ([`wire::GRANT`](crate::wire::GRANT)), which wakes the grantee.
//!
//! A process that dies leaves its locks behind: waiting ranks learn of the death as in any other wait.

use std::sync::Arc;

use limosa_base::process_lock::Locked;
use limosa_base::sync::Ordering;

use crate::memory::{Area, LockWord, Waiter};

/// Bit of the word: held exclusively.
const EXCLUSIVE: u32 = 1 << 31;
/// Bit of the word: the queue is not empty.
const QUEUED: u32 = 1 << 30;
/// Remaining bits: number of holders.
const HOLDERS: u32 = QUEUED - 1;

/// Granted locks: the rank and the number of its request.
pub(crate) type Grants = Vec<(u32, u64)>;

/// The locks of all members.
pub(crate) struct SharedLocks {
    area: Arc<Area>,
    me: usize,
}

/// Returns the word with one more holder, if the lock is available.
fn with_holder(word: u32, exclusive: bool) -> Option<u32> {
    match exclusive {
        true => (word & !QUEUED == 0).then_some(word | EXCLUSIVE),
        false => (word & EXCLUSIVE == 0 && word & HOLDERS < HOLDERS).then_some(word + 1),
    }
}

/// Returns the word with one holder less; unchanged if there is none.
fn without_holder(word: u32) -> u32 {
    if word & EXCLUSIVE != 0 { word & !EXCLUSIVE } else { word - u32::from(word & HOLDERS > 0) }
}

impl SharedLocks {
    /// Creates the view of the locks in the area, for member `me`. All members of the window are members of the area.
    pub fn new(area: &Arc<Area>, me: usize) -> SharedLocks {
        SharedLocks { area: area.clone(), me }
    }

    fn word(&self, target: u32) -> &LockWord {
        &self.area.lines()[target as usize].window_lock
    }

    fn waiters(&self, target: u32) -> &[Waiter] {
        self.area.waiters(target as usize)
    }

    /// Acquires the lock, if it is free and no rank waits for it.
    pub fn try_acquire(&self, target: u32, exclusive: bool) -> bool {
        let change = |word: u32| if word & QUEUED == 0 { with_holder(word, exclusive) } else { None };
        // Pairs with the release in `try_release`.
        self.word(target).word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, change).is_ok()
    }

    /// Acquires the lock or enters the queue. Returns the ranks that get the lock now, perhaps this one.
    pub fn acquire_or_wait(&self, target: u32, exclusive: bool, ticket: u64) -> Grants {
        let (lock, me) = (self.word(target), self.me as u32);
        let _locked = self.queue(target);
        if self.try_acquire(target, exclusive) {
            return vec![(me, ticket)];
        }
        lock.word.fetch_or(QUEUED, Ordering::SeqCst);
        let waiter = &self.waiters(target)[self.me];
        waiter.ticket.store(ticket, Ordering::Relaxed);
        let place = lock.next.fetch_add(1, Ordering::Relaxed) + 1;
        waiter.place.store(place << 1 | u64::from(exclusive), Ordering::Relaxed);
        // The lock may have been released just before the mark was set.
        self.grant_waiting(target)
    }

    /// Releases the lock, if no rank waits for it.
    pub fn try_release(&self, target: u32) -> bool {
        let change = |word: u32| (word & QUEUED == 0).then(|| without_holder(word));
        self.word(target).word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, change).is_ok()
    }

    /// Releases the lock. Returns the ranks that get it.
    pub fn release(&self, target: u32) -> Grants {
        if self.try_release(target) {
            return Grants::new();
        }
        let _locked = self.queue(target);
        self.change(target, without_holder);
        self.grant_waiting(target)
    }

    /// Cancels the request for the lock, or releases the lock if it was granted meanwhile. Returns the ranks that get
    /// it.
    pub fn withdraw(&self, target: u32) -> Grants {
        let locked = self.queue(target);
        let waited = self.waiters(target)[self.me].place.swap(0, Ordering::Relaxed) != 0;
        if waited {
            return self.grant_waiting(target);
        }
        drop(locked);
        self.release(target)
    }

    fn queue(&self, target: u32) -> Locked<'_> {
        let host = self.area.host();
        let is_alive = |holder| (holder as usize) < host.places().len() && host.is_alive(holder);
        self.word(target).queue.lock(host.me(), is_alive)
    }

    fn change(&self, target: u32, change: impl Fn(u32) -> u32) {
        let _ = self.word(target).word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |word| Some(change(word)));
    }

    /// Grants the lock to the ranks at the head of the queue, whose lock is held.
    fn grant_waiting(&self, target: u32) -> Grants {
        let lock = self.word(target);
        let mut grants = Grants::new();
        loop {
            let first = self.waiters(target).iter().enumerate().filter_map(|(rank, waiter)| {
                let place = waiter.place.load(Ordering::Relaxed);
                (place != 0).then_some((place, rank))
            });
            let Some((place, rank)) = first.min() else {
                lock.word.fetch_and(!QUEUED, Ordering::SeqCst);
                return grants;
            };
            let take = |word| with_holder(word, place & 1 == 1);
            if lock.word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, take).is_err() {
                return grants;
            }
            let waiter = &self.waiters(target)[rank];
            waiter.place.store(0, Ordering::Relaxed);
            grants.push((rank as u32, waiter.ticket.load(Ordering::Relaxed)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        assert_eq!(with_holder(0, false), Some(1));
        assert_eq!(with_holder(5, false), Some(6));
        assert_eq!(with_holder(5, true), None);
        assert_eq!(with_holder(0, true), Some(EXCLUSIVE));
        assert_eq!(with_holder(EXCLUSIVE, false), None);
        assert_eq!(with_holder(EXCLUSIVE, true), None);
        assert_eq!(with_holder(QUEUED, true), Some(QUEUED | EXCLUSIVE));
        assert_eq!(with_holder(HOLDERS, false), None, "as many as can be counted");
        assert_eq!(without_holder(QUEUED | EXCLUSIVE), QUEUED);
        assert_eq!(without_holder(QUEUED | 3), QUEUED | 2);
        assert_eq!(without_holder(QUEUED), QUEUED, "it was free");
    }
}
