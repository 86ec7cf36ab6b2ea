//! A clock for what no descriptor tells: while it runs, it ticks, at first after a millisecond and then less and less
//! often.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

const AT_ONCE: Duration = Duration::from_nanos(1);
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// The clock, which stands still at first.
pub struct Clock {
    timer: OwnedFd,
    /// Time to the next tick; `None` while it stands still.
    period: Option<Duration>,
}

impl Clock {
    pub fn new() -> io::Result<Clock> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Clock { timer, period: None })
    }

    /// Readable after a tick.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// After a look in vain: there will be a tick. A tick that has come is over.
    pub fn tick(&mut self) {
        // A tick that has not come yet stays.
        if self.period.is_none() || rustix::io::read(&self.timer, &mut [0; 8]).is_ok() {
            let period = self.period.map_or(SHORTEST, |period| (period * 5 / 4).clamp(SHORTEST, LONGEST));
            self.set(period);
            self.period = Some(period);
        }
    }

    /// As [`Clock::tick`], but a clock that stands still ticks at once: there is something to be taken.
    pub fn tick_soon(&mut self) {
        if self.period.is_none() {
            self.set(AT_ONCE);
            self.period = Some(AT_ONCE);
        } else {
            self.tick();
        }
    }

    /// No more ticks.
    pub fn stop(&mut self) {
        if self.period.take().is_some() {
            self.set(Duration::ZERO);
        }
    }

    fn set(&self, period: Duration) {
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: 0, tv_nsec: period.as_nanos() as _ },
        };
        // It fails if the program has closed the descriptor: then waits are as long as something else happens.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
    }
}
