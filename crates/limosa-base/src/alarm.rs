//! A one-shot timer for one waiting thread. Any thread sets it with one system call, without waking the waiting thread
//! early.

use crate::descriptor::Descriptor;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A one-shot timer (`timerfd`).
#[derive(Debug)]
pub struct Alarm(Descriptor);

impl Alarm {
    /// Creates a timer that is not set.
    ///
    /// # Errors
    /// That of `timerfd_create`.
    pub fn new() -> io::Result<Alarm> {
        // SAFETY: the call takes two integers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours alone.
        Ok(Alarm(Descriptor::new(unsafe { OwnedFd::from_raw_fd(fd) })?))
    }

    /// Sets the timer to expire once, `after` from now, and replaces any earlier setting. Returns false if the program
    /// has closed the descriptor.
    pub fn set(&self, after: Duration) -> bool {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // A value of zero would switch the timer off.
        let nanoseconds = i64::from(after.subsec_nanos()).max(1);
        let value = libc::itimerspec {
            it_interval: zero,
            it_value: libc::timespec { tv_sec: after.as_secs() as i64, tv_nsec: nanoseconds },
        };
        // A reused number is refused by the kernel. Checking the descriptor first would double the cost.
        // SAFETY: `value` is valid; with a null pointer for the old value nothing is written.
        unsafe { libc::timerfd_settime(self.0.number(), 0, &value, std::ptr::null_mut()) == 0 }
    }

    /// Returns the time until expiry; zero if the timer is not set.
    pub fn remaining(&self) -> Duration {
        // SAFETY: an all-zero value is a valid one.
        let mut value: libc::itimerspec = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is a timer and `value` is valid to write to.
        unsafe { libc::timerfd_gettime(self.0.number(), &raw mut value) };
        Duration::new(value.it_value.tv_sec as u64, value.it_value.tv_nsec as u32)
    }

    /// Sleeps until the timer expires. Returns false if the program has closed the descriptor.
    pub fn wait(&self) -> bool {
        let mut times = 0u64;
        let Ok(descriptor) = self.0.get() else { return false };
        // SAFETY: eight bytes are written to `times`.
        unsafe { libc::read(descriptor.as_raw_fd(), (&raw mut times).cast(), 8) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn it_goes_off_once_and_not_before_its_time() {
        let alarm = Alarm::new().expect("a timer");
        let start = Instant::now();
        alarm.set(Duration::ZERO);
        assert!(alarm.wait());
        assert_eq!(alarm.remaining(), Duration::ZERO);
        alarm.set(Duration::from_secs(1000));
        assert!(alarm.remaining() > Duration::ZERO && alarm.remaining() <= Duration::from_secs(1000));
        alarm.set(Duration::from_millis(1));
        alarm.set(Duration::from_millis(20));
        assert!(alarm.wait());
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn it_never_reads_what_the_program_has_opened_under_its_number() {
        let alarm = Alarm::new().expect("a timer");
        let program = std::fs::File::open("/dev/zero").expect("a file");
        // SAFETY: both numbers are open. Like a program that reuses the number, this closes the timer.
        assert!(unsafe { libc::dup2(program.as_raw_fd(), alarm.0.number()) } >= 0);
        assert!(!alarm.set(Duration::ZERO) && !alarm.wait());
    }
}
