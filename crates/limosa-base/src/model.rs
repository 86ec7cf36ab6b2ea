//! Stand-ins for the operating system under `--cfg loom`.
//!
//! - loom has no counterpart of `membarrier`. Light and heavy [`fence`]s are both full fences here, as on kernels
//!   without it. The models check the handshakes with full fences; `tests/fences/` checks that the asymmetric ones work
//!   together.
//! - A [`futex`] checks its word under a lock that a waking thread takes too, as in the kernel. It has no spurious
//!   wake-ups, so that loom reports a lost wake-up as a deadlock.
//! - Where one thread stores a word while another swaps it, loom does not know which came last, and lets a third thread
//!   read either value. Words that are waited for are therefore swapped on both sides.
//! - All threads run on one processor of unknown number.

pub mod fence {
    //! Both sides' fences in full.

    use crate::sync;

    /// Executes the fence of the frequent side.
    pub fn light() {
        sync::fence(sync::Ordering::SeqCst);
    }

    /// Executes the fence of the rare side.
    pub fn heavy() {
        sync::fence(sync::Ordering::SeqCst);
    }
}

pub mod futex {
    //! Sleeping on a word.

    use crate::sync::{AtomicU32, Mutex, Ordering};
    use loom::sync::Condvar;
    use std::collections::HashMap;
    use std::time::Duration;

    /// Wake-up count of each word, and the condition variable on which all threads sleep.
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

    /// Cause of a wake-up. Models have no signals and no time.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Wakened {
        /// A call of [`wake_all`], or a changed word.
        Woken,
    }

    /// Sleeps until a call of [`wake_all`] on `word`. Returns at once if the word is not `expected`. Models have no
    /// time.
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

    /// Wakes all threads that sleep on `word`.
    pub fn wake_all(word: &AtomicU32) {
        *SLEEPERS.woken.lock().entry(key(word)).or_default() += 1;
        SLEEPERS.changed.notify_all();
    }
}

pub mod cpu {
    //! Processors.

    /// Returns the processor of this thread: unknown.
    pub fn current() -> Option<u32> {
        None
    }
}
