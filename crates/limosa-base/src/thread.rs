//! Threads that stay out of the program's way, and stretches of code that signals do not interrupt.

use std::io;
use std::thread::JoinHandle;

/// Keeps all signals from the calling thread until dropped. A signal that comes meanwhile is delivered afterwards.
struct Deferred(libc::sigset_t);

impl Deferred {
    fn new() -> Deferred {
        // SAFETY: an all-zero signal set is a valid value to be overwritten.
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
        // SAFETY: both sets are valid; the mask that was in force is put back when this is dropped.
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

/// Runs `f` while the calling thread receives no signals.
pub fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let _deferred = Deferred::new();
    f()
}

/// True on the first thread of the process, which the system prefers for signals to the process.
pub fn is_first() -> bool {
    // SAFETY: two system calls without arguments.
    unsafe { libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid()) }
}

/// Starts a thread that receives no signals: those belong to the program's own threads.
///
/// # Errors
/// The operating system's, when there can be no more threads.
pub fn spawn_without_signals(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // A new thread inherits the mask that is in force while it is made.
    without_signals(|| std::thread::Builder::new().name(name.to_owned()).stack_size(256 * 1024).spawn(body))
}
