//! Passive-target locks in memory that all members of a window share (MPI-5 section 12.5.3).
//!
//! The lock of each member is a word. Nobody holds it, or it is free for one more reader: then it is taken by one atomic
//! instruction, and given back by one. Otherwise whoever wants it enters a queue, which a short lock protects, and
//! sleeps. While the queue is not empty ([`QUEUED`]), the word is changed under the short lock only, and those in the
//! queue get their turns in the order in which they came; readers that follow each other share. Who gives a turn tells
//! so by a packet ([`wire::GRANT`](crate::wire::GRANT)), which wakes.
//!
//! A process that dies leaves its locks behind: whoever waits for one learns of the death as everywhere else.

use std::sync::Arc;

use limosa_base::process_lock::{Locked, ProcessLock};
use limosa_base::sync::{AtomicU32, AtomicU64, Ordering};

use crate::memory::Area;

/// In the word: one process holds it alone.
const EXCLUSIVE: u32 = 1 << 31;
/// Somebody is in the queue.
const QUEUED: u32 = 1 << 30;
/// The other bits: how many hold it together.
const HOLDERS: u32 = QUEUED - 1;

/// The lock of a member's memory.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct LockWord {
    word: AtomicU32,
    queue: ProcessLock,
    /// Place in the queue of who comes next.
    next: AtomicU64,
}

/// A member's place in the queue for another's lock.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Waiter {
    /// 0: it does not wait. Otherwise its place, counted from 1, and in the lowest bit whether it wants to be alone.
    place: AtomicU64,
    /// The number of its request.
    ticket: AtomicU64,
}

/// A turn given: the rank and the number of its request.
pub(crate) type Grants = Vec<(u32, u64)>;

/// The locks of all members.
pub(crate) struct SharedLocks {
    area: Arc<Area>,
    me: usize,
}

/// The word with one more holder, if it may have one.
fn taken(word: u32, exclusive: bool) -> Option<u32> {
    match exclusive {
        true => (word & !QUEUED == 0).then_some(word | EXCLUSIVE),
        false => (word & EXCLUSIVE == 0 && word & HOLDERS < HOLDERS).then_some(word + 1),
    }
}

/// The word with one holder less; unchanged if nobody holds it.
fn given_back(word: u32) -> u32 {
    if word & EXCLUSIVE != 0 { word & !EXCLUSIVE } else { word - u32::from(word & HOLDERS > 0) }
}

impl SharedLocks {
    /// The locks in the area, for its member `me`. All members of the window are members of the area.
    pub fn new(area: &Arc<Area>, me: usize) -> SharedLocks {
        SharedLocks { area: area.clone(), me }
    }

    fn word(&self, target: u32) -> &LockWord {
        &self.area.lines()[target as usize].window_lock
    }

    fn waiters(&self, target: u32) -> &[Waiter] {
        self.area.waiters(target as usize)
    }

    /// Takes the lock, if it is free and nobody waits for it.
    pub fn try_take(&self, target: u32, exclusive: bool) -> bool {
        let change = |word: u32| if word & QUEUED == 0 { taken(word, exclusive) } else { None };
        // Pairs with the release in `try_give_back`.
        self.word(target).word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, change).is_ok()
    }

    /// Takes the lock or enters the queue; returns who gets a turn now, perhaps this process.
    pub fn take_or_wait(&self, target: u32, exclusive: bool, ticket: u64) -> Grants {
        let (lock, me) = (self.word(target), self.me as u32);
        let _locked = self.queue(target);
        if self.try_take(target, exclusive) {
            return vec![(me, ticket)];
        }
        lock.word.fetch_or(QUEUED, Ordering::SeqCst);
        let waiter = &self.waiters(target)[self.me];
        waiter.ticket.store(ticket, Ordering::Relaxed);
        let place = lock.next.fetch_add(1, Ordering::Relaxed) + 1;
        waiter.place.store(place << 1 | u64::from(exclusive), Ordering::Relaxed);
        // It may have become free just before the mark was set.
        self.give_turns(target)
    }

    /// Gives the lock back, if nobody waits for it.
    pub fn try_give_back(&self, target: u32) -> bool {
        let change = |word: u32| (word & QUEUED == 0).then(|| given_back(word));
        self.word(target).word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, change).is_ok()
    }

    /// Gives the lock back; returns who gets a turn.
    pub fn give_back(&self, target: u32) -> Grants {
        if self.try_give_back(target) {
            return Grants::new();
        }
        let _locked = self.queue(target);
        self.change(target, given_back);
        self.give_turns(target)
    }

    /// No longer waits for the lock, or gives it back if it has come meanwhile; returns who gets a turn.
    pub fn withdraw(&self, target: u32) -> Grants {
        let locked = self.queue(target);
        let waited = self.waiters(target)[self.me].place.swap(0, Ordering::Relaxed) != 0;
        if waited {
            return self.give_turns(target);
        }
        drop(locked);
        self.give_back(target)
    }

    fn queue(&self, target: u32) -> Locked<'_> {
        let host = self.area.host();
        let is_alive = |holder| (holder as usize) < host.places().len() && host.is_alive(holder);
        self.word(target).queue.lock(host.me(), is_alive)
    }

    fn change(&self, target: u32, change: impl Fn(u32) -> u32) {
        let _ = self.word(target).word.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |word| Some(change(word)));
    }

    /// Gives turns to those who come first, with the queue's lock held.
    fn give_turns(&self, target: u32) -> Grants {
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
            let take = |word| taken(word, place & 1 == 1);
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
        assert_eq!(taken(0, false), Some(1));
        assert_eq!(taken(5, false), Some(6));
        assert_eq!(taken(5, true), None);
        assert_eq!(taken(0, true), Some(EXCLUSIVE));
        assert_eq!(taken(EXCLUSIVE, false), None);
        assert_eq!(taken(EXCLUSIVE, true), None);
        assert_eq!(taken(QUEUED, true), Some(QUEUED | EXCLUSIVE));
        assert_eq!(taken(HOLDERS, false), None, "as many as can be counted");
        assert_eq!(given_back(QUEUED | EXCLUSIVE), QUEUED);
        assert_eq!(given_back(QUEUED | 3), QUEUED | 2);
        assert_eq!(given_back(QUEUED), QUEUED, "nobody held it");
    }
}
