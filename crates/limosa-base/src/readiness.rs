//! Watches a descriptor on behalf of threads that sleep on something else.
//!
//! A watcher thread waits until the descriptor is readable ([`wait_readable`]), sets a [`Ready`] flag, and wakes the
//! thread that should read. It then waits until the flag is taken ([`Ready::wait_taken`]) before it polls the
//! descriptor again: a descriptor that stays readable causes only one wake-up.

use crate::descriptor::Descriptor;
use crate::futex;
use crate::sync::{AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A flag, set while the descriptor is readable and has not been read.
#[derive(Debug, Default)]
pub struct Ready(AtomicU32);

const CLEAR: u32 = 0;
const SET: u32 = 1;
const STOPPED: u32 = 2;

impl Ready {
    /// Sets the flag: the descriptor is readable.
    pub fn set(&self) {
        let _ = self.0.compare_exchange(CLEAR, SET, Ordering::Release, Ordering::Relaxed);
    }

    /// Returns whether the flag is set; the watcher is then paused.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) == SET
    }

    /// Clears the flag, so that the watcher resumes. Returns whether it was set.
    #[inline]
    pub fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) == SET && self.take_now()
    }

    #[cold]
    fn take_now(&self) -> bool {
        let was_set = self.0.compare_exchange(SET, CLEAR, Ordering::Acquire, Ordering::Relaxed).is_ok();
        futex::wake_all(&self.0);
        was_set
    }

    /// Sleeps while the flag is set. Returns false once watching is stopped.
    pub fn wait_taken(&self) -> bool {
        loop {
            match self.0.load(Ordering::Acquire) {
                SET => {
                    futex::wait(&self.0, SET, None);
                }
                state => return state == CLEAR,
            }
        }
    }

    /// Stops watching.
    pub fn stop(&self) {
        // A swap, as in `set`: loom does not model the order of a store and a concurrent exchange.
        self.0.swap(STOPPED, Ordering::AcqRel);
        futex::wake_all(&self.0);
    }

    /// Restarts watching.
    pub fn restart(&self) {
        self.0.store(CLEAR, Ordering::Release);
    }
}

/// Stops watchers.
///
/// A watcher that polls descriptors is woken through a pipe. If the program has closed the pipe ([`Wakened::Lost`]),
/// the signal still reaches watchers that sleep without descriptors.
#[derive(Debug)]
pub struct StopSignal {
    given: AtomicU32,
    near: Descriptor,
    far: Descriptor,
}

impl StopSignal {
    /// Creates a signal that is not given.
    ///
    /// # Errors
    /// That of `pipe2`.
    pub fn new() -> io::Result<StopSignal> {
        let mut ends = [0; 2];
        // SAFETY: the call writes two numbers.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptors are new and ours alone.
        let [near, far] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        Ok(StopSignal { given: AtomicU32::new(0), near: Descriptor::new(near)?, far: Descriptor::new(far)? })
    }

    /// Gives the signal, permanently. Returns false if the program has closed the pipe: a watcher that polls
    /// descriptors may not notice.
    pub fn give(&self) -> bool {
        self.given.store(1, Ordering::Release);
        futex::wake_all(&self.given);
        let (Ok(_), Ok(far)) = (self.near.get(), self.far.get()) else { return false };
        // SAFETY: one byte of a literal is read.
        unsafe { libc::write(far.as_raw_fd(), b"!".as_ptr().cast(), 1) == 1 }
    }

    /// Returns whether the signal was given.
    pub fn is_given(&self) -> bool {
        self.given.load(Ordering::Acquire) != 0
    }

    /// Sleeps for `timeout`, or until the signal is given. Returns whether it was given.
    pub fn sleep(&self, timeout: Duration) -> bool {
        if !self.is_given() {
            futex::wait(&self.given, 0, Some(timeout));
        }
        self.is_given()
    }
}

/// Sleeps until the descriptor is readable or has failed, which the next read reports. Returns false if the signal was
/// given, or can no longer be given.
pub fn wait_readable(descriptor: BorrowedFd<'_>, stop: &StopSignal) -> bool {
    wait_any(&[descriptor], stop, None) == Wakened::Readable
}

/// Returns whether the descriptor is readable or has failed.
pub fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut watched = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry, which the call fills in.
    unsafe { libc::poll(&raw mut watched, 1, 0) > 0 }
}

/// Cause of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakened {
    /// A descriptor is readable or has failed.
    Readable,
    /// The signal was given.
    Stopped,
    /// The program has closed the descriptors.
    Lost,
    /// The timeout has expired.
    TooLate,
}

/// Sleeps until one of the descriptors is readable, the signal is given, or the timeout expires. The caller checks a
/// readable descriptor again before it reads: the program may have closed it.
pub fn wait_any(descriptors: &[BorrowedFd<'_>], stop: &StopSignal, timeout: Option<Duration>) -> Wakened {
    let watched = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut all: Vec<libc::pollfd> = descriptors.iter().map(|descriptor| watched(descriptor.as_raw_fd())).collect();
    let Ok(near) = stop.near.get() else { return Wakened::Lost };
    all.push(watched(near.as_raw_fd()));
    // Rounded up, so that a short timeout still sleeps.
    let timeout = timeout.map_or(-1, |timeout| i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    loop {
        // SAFETY: a vector of valid entries, which the call fills in.
        match unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, timeout) } {
            0 => return Wakened::TooLate,
            _ if stop.is_given() => return Wakened::Stopped,
            // The program has closed both ends at once.
            found if found > 0 && all.last().is_some_and(|stop| stop.revents != 0) => return Wakened::Lost,
            found if found > 0 => return Wakened::Readable,
            // Interrupted by a signal.
            _ => {}
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_readable_descriptor_and_the_signal_end_a_wait() {
        let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
        let stop = StopSignal::new().expect("an eventfd");
        far.write_all(&[1]).expect("write");
        assert!(wait_readable(near.as_fd(), &stop));
        near.read_exact(&mut [0]).expect("read");
        assert!(stop.give());
        assert!(!wait_readable(near.as_fd(), &stop));
        assert!(stop.sleep(Duration::from_secs(1000)));
    }

    #[test]
    fn the_signal_reaches_watchers_that_have_lost_their_descriptors() {
        let stop = StopSignal::new().expect("a pipe");
        let (mut theirs, ours) = UnixStream::pair().expect("a pair of sockets");
        for end in [stop.near.number(), stop.far.number()] {
            // SAFETY: the numbers are open. Like a program that reuses the numbers, this closes their files.
            assert!(unsafe { libc::dup2(ours.as_raw_fd(), end) } >= 0);
        }
        assert_eq!(wait_any(&[], &stop, None), Wakened::Lost);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| stop.sleep(Duration::from_secs(1000)));
            assert!(!stop.give());
            assert!(watcher.join().expect("no panic"));
        });
        theirs.set_nonblocking(true).expect("a socket");
        assert!(theirs.read(&mut [0; 8]).is_err(), "nothing was written to what the program has opened");
    }

    #[test]
    fn a_watcher_resumes_when_the_flag_is_taken_and_ends_when_it_is_stopped() {
        let ready = Ready::default();
        assert!(!ready.take());
        assert!(ready.wait_taken());
        ready.set();
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| ready.wait_taken());
            assert!(ready.take());
            assert!(watcher.join().expect("no panic"));
        });
        ready.set();
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| ready.wait_taken());
            ready.stop();
            assert!(!watcher.join().expect("no panic"));
        });
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn what_became_readable_is_read_and_the_watcher_is_not_left_behind() {
        loom::model(|| {
            let shared = Arc::new((Ready::default(), AtomicU32::new(0)));
            let watcher = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (ready, bytes) = &*shared;
                    for _ in 0..2 {
                        bytes.fetch_add(1, Ordering::Relaxed);
                        ready.set();
                        assert!(ready.wait_taken());
                    }
                })
            };
            let (ready, bytes) = &*shared;
            for looks in 1..=2 {
                while !ready.take() {
                    thread::yield_now();
                }
                assert!(bytes.load(Ordering::Relaxed) >= looks);
            }
            watcher.join().unwrap();
        });
    }

    #[test]
    fn stopping_ends_the_watchers_wait() {
        loom::model(|| {
            let ready = Arc::new(Ready::default());
            let watcher = {
                let ready = ready.clone();
                thread::spawn(move || {
                    ready.set();
                    ready.wait_taken()
                })
            };
            ready.stop();
            assert!(!watcher.join().unwrap());
        });
    }
}
