//! Notification of changes in folders: inotify, and a clock where that does not work.
//!
//! File systems of other machines do not say what other machines change. There, and where a user has no inotify
//! instance left, a clock ticks: every millisecond while files come or go out, then less and less often. A process
//! looks once for each tick, and as often as it polls only for a moment after files ([`LIVELY`]): each look is a
//! request to a file server that many processes share.

use limosa_base::descriptor::Descriptor;
use rustix::event::epoll;
use rustix::fs::inotify;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two ticks while files come.
pub const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);
/// For so long after a file the next one, or the answer, is looked for by every poll.
const LIVELY: Duration = Duration::from_millis(1);

/// Types of file systems of this machine alone, as `statfs` numbers them: tmpfs, ramfs, ext, xfs, btrfs, overlayfs,
/// f2fs, zfs.
const LOCAL: [u64; 8] =
    [0x0102_1994, 0x8584_58f6, 0xef53, 0x5846_5342, 0x9123_683e, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];

/// Notification of a process about new files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// Inotify on file systems of this machine; a clock on others.
    #[default]
    Auto,
    /// Inotify.
    Inotify,
    /// A clock ticks.
    Clock,
}

/// Whether a folder is on a file system of this machine alone.
///
/// # Errors
/// The operating system's.
pub fn is_local(folder: &Path) -> io::Result<bool> {
    Ok(LOCAL.contains(&(rustix::fs::statfs(folder)?.f_type as u64 & 0xffff_ffff)))
}

/// A folder that is watched.
pub type Watch = i32;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// Something of this name in this folder has changed.
    Changed(Watch, &'a [u8]),
    /// This folder is not watched any more: it was deleted, or the watch was ended.
    Gone(Watch),
    /// Any folder may have changed.
    Anything,
}

/// Source of notifications for a process.
pub struct Notices {
    inotify: Option<Descriptor>,
    clock: Option<Clock>,
    /// Readable if either of them is.
    epoll: Descriptor,
}

struct Clock {
    timer: Descriptor,
    period: Duration,
    /// It has ticked since it was adapted last.
    has_ticked: bool,
    /// Until then every poll looks.
    lively_until: Instant,
    /// The last poll was one that looks.
    is_due: bool,
}

impl Notices {
    /// Notices of changes below this folder.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(folder: &Path, notify: Notify) -> io::Result<Notices> {
        let inotify = match notify {
            Notify::Clock => None,
            // A user may have few instances; the clock does it, too.
            _ => inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok(),
        };
        let suffices = match notify {
            Notify::Auto => is_local(folder)?,
            Notify::Inotify => true,
            Notify::Clock => false,
        };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let add = |fd: BorrowedFd<'_>| epoll::add(&epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN);
        let inotify = inotify.map(Descriptor::new).transpose()?;
        inotify.iter().try_for_each(|inotify| Ok::<_, io::Error>(add(inotify.get()?)?))?;
        let clock = if suffices && inotify.is_some() { None } else { Some(Clock::new()?) };
        clock.iter().try_for_each(|clock| Ok::<_, io::Error>(add(clock.timer.get()?)?))?;
        Ok(Notices { inotify, clock, epoll: Descriptor::new(epoll)? })
    }

    /// Readable when there may be notices.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.epoll.get().ok()
    }

    /// True where the file system may show late what other machines have changed.
    pub fn is_late(&self) -> bool {
        self.clock.is_some()
    }

    /// Watches a folder for new entries, or for entries that go.
    ///
    /// # Errors
    /// The operating system's.
    pub fn watch(&self, folder: &Path, what: Entries) -> io::Result<Option<Watch>> {
        let Some(inotify) = &self.inotify else { return Ok(None) };
        let flags = match what {
            Entries::New => inotify::WatchFlags::CREATE,
            Entries::NewOrChanged => inotify::WatchFlags::CREATE | inotify::WatchFlags::MODIFY,
            Entries::Gone => inotify::WatchFlags::DELETE,
        };
        Ok(Some(inotify::add_watch(
            inotify.get()?,
            folder,
            flags | inotify::WatchFlags::ONLYDIR | inotify::WatchFlags::MASK_ADD,
        )?))
    }

    /// Ends a watch.
    pub fn forget(&self, watch: Watch) {
        if let Some(inotify) = self.inotify.as_ref().and_then(|inotify| inotify.get().ok()) {
            let _ = inotify::remove_watch(inotify, watch);
        }
    }

    /// Takes all notices.
    ///
    /// # Errors
    /// The program has closed a descriptor.
    pub fn take(&mut self, sink: &mut dyn FnMut(Notice)) -> io::Result<()> {
        if let Some(inotify) = &self.inotify {
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(inotify.get_quickly()?, &mut buffer);
            // One read: what does not fit leaves the descriptor readable.
            while let Ok(event) = events.next() {
                sink(match (event.events(), event.file_name()) {
                    (flags, _) if flags.contains(inotify::ReadFlags::QUEUE_OVERFLOW) => Notice::Anything,
                    (flags, _) if flags.contains(inotify::ReadFlags::IGNORED) => Notice::Gone(event.wd()),
                    (_, name) => Notice::Changed(event.wd(), name.map_or(b"", |name| name.to_bytes())),
                });
                if events.is_buffer_empty() {
                    break;
                }
            }
        }
        if let Some(clock) = &mut self.clock {
            clock.has_ticked |= rustix::io::read(clock.timer.get_quickly()?, &mut [0; 8]).is_ok();
            clock.is_due = clock.has_ticked || Instant::now() < clock.lively_until;
            if clock.is_due {
                sink(Notice::Anything);
            }
        }
        Ok(())
    }

    /// Whether a look after the last notices may find anything that they do not tell.
    pub fn is_due(&self) -> bool {
        self.clock.as_ref().is_none_or(|clock| clock.is_due)
    }

    /// A file has been written: there may be an answer soon.
    pub fn wrote(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.be_lively();
        }
    }

    /// After a look: whether anything was there. The clock ticks slower the longer nothing comes.
    pub fn looked(&mut self, found: bool) {
        if let Some(clock) = &mut self.clock {
            clock.adapt(found);
        }
    }
}

/// Purpose of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// Entries that come.
    New,
    /// Entries that come, and files whose contents change.
    NewOrChanged,
    /// Entries that go.
    Gone,
}

impl Clock {
    fn new() -> io::Result<Clock> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let timer = Descriptor::new(timer)?;
        let mut clock =
            Clock { timer, period: LONGEST, has_ticked: false, lively_until: Instant::now(), is_due: false };
        clock.set(SHORTEST)?;
        Ok(clock)
    }

    fn set(&mut self, period: Duration) -> io::Result<()> {
        let time = Timespec { tv_sec: 0, tv_nsec: period.as_nanos() as _ };
        let both = Itimerspec { it_interval: time, it_value: time };
        timerfd_settime(self.timer.get_quickly()?, TimerfdTimerFlags::empty(), &both)?;
        self.period = period;
        Ok(())
    }

    /// The next poll looks, and the clock ticks fast.
    fn be_lively(&mut self) {
        self.lively_until = Instant::now() + LIVELY;
        if self.period != SHORTEST {
            // On failure the clock keeps its interval.
            let _ = self.set(SHORTEST);
        }
    }

    fn adapt(&mut self, found: bool) {
        // Only ticks in vain make it slower.
        let has_ticked = std::mem::take(&mut self.has_ticked);
        if found {
            self.be_lively();
        } else if has_ticked && self.period < LONGEST {
            let _ = self.set((self.period * 5 / 4).min(LONGEST));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_look_once_for_each_tick_unless_files_come() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut notices = Notices::new(folder.path(), Notify::Clock).expect("notices");
        let looks = |notices: &mut Notices, found: bool| {
            let mut count = 0;
            notices.take(&mut |_| count += 1).expect("a clock");
            notices.looked(found);
            count
        };
        // Measures real time, on a busy machine, too.
        let (begin, mut polls, mut seen) = (Instant::now(), 0u128, 0u128);
        while begin.elapsed() < Duration::from_millis(40) || polls < 10_000 {
            polls += 1;
            seen += looks(&mut notices, false);
        }
        assert!(seen > 0 && seen <= begin.elapsed().as_millis() + 1, "{seen} looks of {polls} polls");
        while looks(&mut notices, true) == 0 {}
        assert!(notices.clock.as_ref().is_some_and(|clock| clock.period == SHORTEST));
    }
}
