//! Stand-ins for locks and for the operating system under `--cfg loom`.
//!
//! - loom has no counterpart of `membarrier`. Light and heavy [`fence`]s are both full fences here, which is what they
//!   are wherever the kernel cannot do better: the models check that the handshakes are right with full fences,
//!   `tests/fences/` that the asymmetric ones go together.
//! - A [`futex`] looks at its word under a lock that whoever wakes takes too, as in the kernel. It never wakes without
//!   reason, so that loom sees a lost wake-up as a deadlock.
//! - Where one thread stores a word while another exchanges it, loom does not know which came last, and lets a third
//!   read either. Words that are waited for are therefore exchanged on both sides.
//! - All threads run on one processor, and nobody knows which.

use loom::sync::{Condvar, MutexGuard};

/// A lock that is never poisoned, like the real one.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a model ends with the first panic")
    }
}

/// A lock without a guard.
#[derive(Debug, Default)]
pub struct RawLock {
    is_held: Mutex<bool>,
    freed: Condvar,
}

impl RawLock {
    /// A lock that nobody holds.
    pub fn new() -> RawLock {
        RawLock::default()
    }

    /// Waits for the lock.
    pub fn lock(&self) {
        let mut is_held = self.is_held.lock();
        while *is_held {
            is_held = self.freed.wait(is_held).expect("a model ends with the first panic");
        }
        *is_held = true;
    }

    /// Takes the lock if nobody holds it.
    pub fn try_lock(&self) -> bool {
        !std::mem::replace(&mut *self.is_held.lock(), true)
    }

    /// Gives the lock up. Whom to is loom's choice.
    ///
    /// # Safety
    /// The caller holds it.
    pub unsafe fn unlock(&self, _fairly: bool) {
        *self.is_held.lock() = false;
        self.freed.notify_one();
    }
}

pub mod fence {
    //! Both sides' fences in full.

    use crate::sync;

    /// The frequent side's fence.
    pub fn light() {
        sync::fence(sync::Ordering::SeqCst);
    }

    /// The rare side's fence.
    pub fn heavy() {
        sync::fence(sync::Ordering::SeqCst);
    }
}

pub mod futex {
    //! Sleeping on a word.

    use super::Mutex;
    use crate::sync::{AtomicU32, Ordering};
    use loom::sync::Condvar;
    use std::collections::HashMap;
    use std::time::Duration;

    /// How often each word was woken, and where all sleep.
    #[derive(Default)]
    struct Sleepers {
        woken: Mutex<HashMap<usize, u32>>,
        changed: Condvar,
    }

    loom::lazy_static! {
        static ref SLEEPERS: Sleepers = Sleepers::default();
    }

    fn key(word: &AtomicU32) -> usize {
        std::ptr::from_ref(word).addr()
    }

    /// As outside models; there are no signals and no time here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Wakened {
        /// Somebody has woken it, or the word held something else.
        Woken,
    }

    /// Sleeps until somebody wakes `word`, unless it no longer holds `expected`. There is no time in a model.
    pub fn wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) -> Wakened {
        let mut woken = SLEEPERS.woken.lock();
        if word.load(Ordering::Relaxed) != expected {
            return Wakened::Woken;
        }
        let before = woken.get(&key(word)).copied();
        while woken.get(&key(word)).copied() == before {
            woken = SLEEPERS.changed.wait(woken).expect("a model ends with the first panic");
        }
        Wakened::Woken
    }

    /// Wakes all who sleep on `word`.
    pub fn wake_all(word: &AtomicU32) {
        *SLEEPERS.woken.lock().entry(key(word)).or_default() += 1;
        SLEEPERS.changed.notify_all();
    }
}

pub mod cpu {
    //! Processors.

    /// The processor that this thread runs on: nobody knows.
    pub fn current() -> Option<u32> {
        None
    }
}
