//! Threads and sections of code that signals do not interrupt.

use std::io;
use std::thread::JoinHandle;

/// Blocks all signals of the calling thread until dropped. Signals that arrive meanwhile are delivered afterwards.
struct Deferred(libc::sigset_t);

impl Deferred {
    fn new() -> Deferred {
        // SAFETY: an all-zero signal set is a valid value to be overwritten.
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
        // SAFETY: both sets are valid; the previous mask is restored on drop.
        unsafe {
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        }
        Deferred(before)
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` read.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Runs `f` with all signals of the calling thread blocked.
pub fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let _deferred = Deferred::new();
    f()
}

/// Returns whether this is the first thread of the process, to which the kernel prefers to deliver process signals.
pub fn is_first() -> bool {
    // SAFETY: two system calls without arguments.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

/// Starts a thread with all signals blocked, so that they are delivered to the program's own threads.
///
/// # Errors
/// The operating system's, when no further thread can be created.
pub fn spawn_without_signals(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A new thread inherits the signal mask of its creator.
    without_signals(|| std::thread::Builder::new().name(name.to_owned()).stack_size(256 * 1024).spawn(body))
}
