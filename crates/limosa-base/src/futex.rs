//! Sleeping on a word of shared memory, and waking its sleepers.

use crate::sync::AtomicU32;
use std::time::Duration;

/// Cause of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakened {
    /// A call of [`wake_all`], a changed word, or a spurious wake-up.
    Woken,
    /// A signal handler installed without `SA_RESTART` has run in this thread.
    BySignal,
    /// The timeout has expired.
    TooLate,
}

/// Sleeps until a call of [`wake_all`] on `word`, or until `timeout` expires. Returns at once if the word is not
/// `expected`.
///
/// May return spuriously: callers recheck their condition.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Wakened {
    let limit = timeout
        .map(|t| libc::timespec { tv_sec: t.as_secs() as libc::time_t, tv_nsec: t.subsec_nanos() as libc::c_long });
    let limit_ptr = limit.as_ref().map_or(std::ptr::null(), |t| t as *const libc::timespec);
    // SAFETY: the word and the timeout outlive the call; the kernel only reads them.
    let code =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr_for_futex(), libc::FUTEX_WAIT, expected, limit_ptr) };
    if code == 0 {
        return Wakened::Woken;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EINTR) => Wakened::BySignal,
        Some(libc::ETIMEDOUT) => Wakened::TooLate,
        _ => Wakened::Woken,
    }
}

/// Wakes all threads that sleep on `word`.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the kernel uses the address as a key and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr_for_futex(), libc::FUTEX_WAKE, i32::MAX) };
}

trait FutexWord {
    fn as_ptr_for_futex(&self) -> *const u32;
}

impl FutexWord for AtomicU32 {
    fn as_ptr_for_futex(&self) -> *const u32 {
        self as *const AtomicU32 as *const u32
    }
}
