//! The numbers of a communicator's collectives, and the tags of their messages.
//!
//! | bits of a tag | hold |
//! |---|---|
//! | 30 | 0: blocking, 1: in the background |
//! | 16 to 29 | the code of the signature ([`Signature::code`]); 0 for exchanges of the library itself |
//! | 0 to 15 | the number of a blocking operation |
//! | 15, 0 to 14 | in the background: whether it is persistent, and its number |
//! Messages from one rank to another are received in order, so short numbers suffice for blocking operations. In the
//! background, 32768 operations can be under way at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use super::kind::{Signature, Sort};

/// Counts of the collectives begun on a communicator. They distinguish messages, and contributions in shared memory.
#[derive(Default)]
pub(super) struct Numbers {
    blocking: AtomicU64,
    background: AtomicU64,
}

/// Numbers of collectives that a rank has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) blocking: u64,
    pub(super) background: u64,
}

impl Counts {
    /// Returns the number of collectives that are counted with this sort.
    pub(super) fn of(self, sort: Sort) -> u64 {
        if sort == Sort::Blocking { self.blocking } else { self.background }
    }

    /// Returns the number of collectives that are not counted with this sort.
    pub(super) fn of_others(self, sort: Sort) -> u64 {
        if sort == Sort::Blocking { self.background } else { self.blocking }
    }
}

impl Numbers {
    /// Draws the number of the next blocking collective, from 0.
    #[inline]
    pub(super) fn next_blocking(&self) -> u64 {
        // Members call collectives one after another, so no other thread counts meanwhile. An atomic addition would
        // wait for all earlier stores.
        let number = self.blocking.load(Ordering::Relaxed);
        self.blocking.store(number + 1, Ordering::Release);
        number
    }

    /// Draws the number of the next exchange of records ([`super::check`]), counted as a blocking collective. Several
    /// threads may begin operations in the background.
    pub(super) fn next_record(&self) -> u64 {
        self.blocking.fetch_add(1, Ordering::AcqRel)
    }

    /// Draws the number of the next non-blocking or persistent collective, from 0.
    pub(super) fn next_background(&self) -> u64 {
        self.background.fetch_add(1, Ordering::AcqRel)
    }

    /// Sets the number of blocking collectives, known from elsewhere.
    pub(super) fn skip_to(&self, count: u64) {
        self.blocking.store(count, Ordering::Relaxed);
    }

    /// Returns the number of blocking collectives begun.
    pub(super) fn blocking(&self) -> u64 {
        self.blocking.load(Ordering::Relaxed)
    }

    /// Returns both numbers at one moment.
    pub(super) fn begun(&self) -> Counts {
        let mut background = self.background.load(Ordering::Acquire);
        loop {
            let blocking = self.blocking.load(Ordering::Acquire);
            match self.background.load(Ordering::Acquire) {
                same if same == background => return Counts { blocking, background },
                now => background = now,
            }
        }
    }
}

const BACKGROUND: u64 = 1 << 30;
const CODE_SHIFT: u32 = 16;
const PERSISTENT: u64 = 1 << 15;

/// Returns the modulus of the numbers of a sort in tags.
fn modulus(sort: Sort) -> u64 {
    if sort == Sort::Blocking { 1 << CODE_SHIFT } else { PERSISTENT }
}

/// Returns the tag of the messages of a collective.
#[inline]
pub(super) fn tag(number: u64, signature: Signature) -> i32 {
    let sort = signature.sort();
    let bits = match sort {
        Sort::Blocking => 0,
        Sort::NonBlocking => BACKGROUND,
        Sort::Persistent => BACKGROUND | PERSISTENT,
    };
    (bits | u64::from(signature.code()) << CODE_SHIFT | (number % modulus(sort))) as i32
}

/// The fields of a tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tagged {
    pub(super) sort: Sort,
    /// The last bits of the number.
    pub(super) number: u64,
    pub(super) code: u32,
}

/// Reads a tag.
pub(super) fn read_tag(tag: i32) -> Tagged {
    let bits = tag as u64;
    let sort = match (bits & BACKGROUND != 0, bits & PERSISTENT != 0) {
        (false, _) => Sort::Blocking,
        (true, false) => Sort::NonBlocking,
        (true, true) => Sort::Persistent,
    };
    Tagged { sort, number: bits % modulus(sort), code: (bits & (BACKGROUND - 1)) as u32 >> CODE_SHIFT }
}

/// Returns the number nearest to `latest` that ends as a tag says.
pub(super) fn whole(sort: Sort, number: u64, latest: u64) -> u64 {
    let modulus = modulus(sort);
    let ahead = number.wrapping_sub(latest) % modulus;
    if ahead >= modulus / 2 && latest + ahead >= modulus { latest + ahead - modulus } else { latest + ahead }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Collective;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tags_are_read_as_they_were_written(number: u64, root in 0usize..5000, sort in 0usize..3) {
            let number = number >> 8;
            let sort = Sort::ALL[sort];
            let signature = Signature::rooted(Collective::Bcast, root).called(sort);
            let tag = tag(number, signature);
            prop_assert!(tag >= 0);
            let read = read_tag(tag);
            prop_assert_eq!((read.sort, read.code), (sort, signature.code()));
            for latest in [number, number + 100, number.saturating_sub(100)] {
                prop_assert_eq!(whole(sort, read.number, latest), number);
            }
        }
    }
}
