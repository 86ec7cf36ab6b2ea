//! Threads that stay out of the program's way.

use std::io;
use std::thread::JoinHandle;

/// Starts a thread that receives no signals: those belong to the program's own threads.
///
/// # Errors
/// The operating system's, when there can be no more threads.
pub fn spawn_without_signals(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    // SAFETY: an all-zero signal set is a valid value to be overwritten.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are valid; a new thread inherits the mask that is in force while it is made, and ours is put back right after.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(256 * 1024).spawn(body);
    // SAFETY: restores the mask read above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    thread
}
