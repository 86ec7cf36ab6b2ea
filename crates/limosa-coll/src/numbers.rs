//! The numbers of a communicator's collectives.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many collectives were begun on a communicator, which tells their messages and what they leave in shared memory
/// apart.
#[derive(Default)]
pub(super) struct Numbers {
    blocking: AtomicU64,
    background: AtomicU64,
}

/// Collectives of a sort are numbered modulo this: half of the tags, which are not negative, for each of two sorts.
const TAGS: u64 = 1 << 30;

impl Numbers {
    /// The number of the next blocking collective, from 0.
    #[inline]
    pub(super) fn next_blocking(&self) -> u64 {
        // Members call collectives one after the other, so that nobody else counts meanwhile; an atomic addition would
        // wait for all stores before it.
        let number = self.blocking.load(Ordering::Relaxed);
        self.blocking.store(number + 1, Ordering::Relaxed);
        number
    }

    /// The number of the next non-blocking or persistent collective, from 0.
    pub(super) fn next_background(&self) -> u64 {
        self.background.fetch_add(1, Ordering::Relaxed)
    }

    /// So many blocking collectives were begun, as is known from elsewhere.
    pub(super) fn skip_to(&self, count: u64) {
        self.blocking.store(count, Ordering::Relaxed);
    }

    /// How many blocking collectives were begun.
    pub(super) fn blocking(&self) -> u64 {
        self.blocking.load(Ordering::Relaxed)
    }
}

/// The tag of a blocking collective's messages.
#[inline]
pub(super) fn blocking_tag(number: u64) -> i32 {
    (number % TAGS) as i32
}

/// The tag of the messages of a non-blocking or persistent collective.
pub(super) fn background_tag(number: u64) -> i32 {
    (TAGS + number % TAGS) as i32
}
