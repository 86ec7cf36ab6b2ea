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
