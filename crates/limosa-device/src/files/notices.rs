//! When to look into folders: what the system says of changes (inotify), and a clock where it says nothing.
//!
//! File systems of other machines do not say what other machines change. There, and where a user has no inotify
//! instance left, a clock ticks: every millisecond while files come, then less and less often.

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
use std::time::Duration;

/// Time between two ticks while files come.
pub const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

/// Types of file systems of this machine alone, as `statfs` numbers them: tmpfs, ramfs, ext, xfs, btrfs, overlayfs,
/// f2fs, zfs.
const LOCAL: [u64; 8] =
    [0x0102_1994, 0x8584_58f6, 0xef53, 0x5846_5342, 0x9123_683e, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];

/// How a process learns of new files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notify {
    /// The system says so on file systems of this machine; on others a clock ticks.
    #[default]
    Auto,
    /// The system says so.
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

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// Something of this name in this folder has changed.
    Changed(Watch, &'a [u8]),
    /// This folder is not watched any more: it was deleted, or the watch was ended.
    Gone(Watch),
    /// Any folder may have changed.
    Anything,
}

/// What tells a process that there is something to look at.
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
            sink(Notice::Anything);
        }
        Ok(())
    }

    /// After a look: whether anything was there. The clock ticks slower the longer nothing comes.
    pub fn looked(&mut self, found: bool) {
        if let Some(clock) = &mut self.clock {
            clock.adapt(found);
        }
    }
}

/// What a watch is for.
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
        let mut clock = Clock { timer: Descriptor::new(timer)?, period: LONGEST, has_ticked: false };
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

    fn adapt(&mut self, found: bool) {
        // Who waits looks far more often than the clock ticks; only ticks in vain make it slower.
        let next = match (found, std::mem::take(&mut self.has_ticked)) {
            (true, _) => SHORTEST,
            (false, true) => (self.period * 5 / 4).min(LONGEST),
            (false, false) => return,
        };
        if next != self.period {
            // Without it the clock goes on as before.
            let _ = self.set(next);
        }
    }
}
