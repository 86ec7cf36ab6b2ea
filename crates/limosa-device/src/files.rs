//! The file device: messages are files in a folder that all processes can read and write. It needs nothing but a file
//! system.
//!
//! ```text
//!   ROOT/TO/FROM/NUMBER.msg       packets, see `format`
//!   ROOT/TO/FROM/NUMBER.lock      empty; it comes after the message and says that the message is whole
//!   ROOT/drafts/FROM-TO           a message that is not yet whole
//!   ROOT/kept/FROM-TO-NUMBER.msg  messages that were received, if they are kept
//! ```
//!
//! The receiver deletes message and lock. A sender has few unread files on their way to a receiver; further packets
//! wait in memory, and go together into the next file. So many small messages take few files, and a slow receiver slows
//! its senders down. A file of the sender's that was deleted makes room.
//!
//! New and deleted files are noticed by inotify, or by a clock where that does not work (`notices`). The descriptor of
//! this device covers both. Sending and polling take a few operations of the file system and never wait for a peer.
//!
//! Deaths are those of the processes of this host, which another device watches.

use crate::shm::ShmDevice;
use crate::{Address, Data, DeathWatch, Device, DeviceError, Meta, Sent, Urgency};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod format;
mod inbox;
mod notices;
mod outbox;

pub use notices::Notify;

use format::Label;
use inbox::Inbox;
use notices::{Entries, Notice, Notices, Watch};
use outbox::Outbox;

/// Most data bytes in one packet.
const MAX_DATA: usize = 256 * 1024;

/// The folders of a job.
#[derive(Clone, Debug)]
pub struct Folders(PathBuf);

impl Folders {
    /// The folders below this one.
    pub fn below(root: &Path) -> Folders {
        Folders(root.to_owned())
    }

    /// Makes those that all processes use. They are for this user alone.
    ///
    /// # Errors
    /// The operating system's.
    pub fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        let builder = builder.recursive(true).mode(0o700);
        [self.0.clone(), self.drafts(), self.0.join("kept")].iter().try_for_each(|folder| builder.create(folder))
    }

    /// Deletes all messages from and to this process.
    fn clear(&self, who: Address) -> io::Result<()> {
        let unless_absent = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        unless_absent(fs::remove_dir_all(self.of(who)))?;
        for entry in fs::read_dir(&self.0)? {
            unless_absent(fs::remove_dir_all(entry?.path().join(who.to_string())))?;
        }
        Ok(())
    }

    fn drafts(&self) -> PathBuf {
        self.0.join("drafts")
    }

    fn of(&self, to: Address) -> PathBuf {
        self.0.join(to.to_string())
    }

    fn pair(&self, from: Address, to: Address) -> PathBuf {
        self.of(to).join(from.to_string())
    }

    fn kept(&self, label: &Label) -> PathBuf {
        self.0.join("kept").join(format!("{}-{}-{}.msg", label.from, label.to, label.number))
    }
}

/// What the file system refused.
struct Trouble {
    path: PathBuf,
    cause: io::Error,
}

fn suffixed(folder: &Path, number: u64, suffix: &str) -> PathBuf {
    folder.join(format!("{number}.{suffix}"))
}

/// How a file device works.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOptions {
    /// How it learns of new files.
    pub notify: Notify,
    /// Messages that were received are kept.
    pub keep: bool,
}

/// The file device of one process.
pub struct FileDevice {
    me: Address,
    folders: Folders,
    keep: bool,
    notices: Notices,
    /// Tells when a sender begins.
    arrivals: Option<Watch>,
    /// A sender may have begun.
    look_for_senders: bool,
    /// By address.
    outboxes: Vec<Option<Outbox>>,
    inboxes: Vec<Inbox>,
    /// The inbox that has its turn.
    turn: usize,
    buffer: Vec<u8>,
    /// Knows who has died.
    host: ShmDevice,
    dead: Vec<Address>,
}

impl FileDevice {
    /// Joins processes, as number `host.rank()`, that exchange files below this folder. `host` watches for their
    /// deaths.
    ///
    /// # Errors
    /// The operating system's.
    pub fn join(folders: &Folders, host: ShmDevice, options: FileOptions) -> io::Result<FileDevice> {
        folders.make()?;
        let own = folders.of(host.rank());
        DirBuilder::new().recursive(true).mode(0o700).create(&own)?;
        let notices = Notices::new(&own, options.notify)?;
        Ok(FileDevice {
            me: host.rank(),
            folders: folders.clone(),
            keep: options.keep,
            arrivals: notices.watch(&own, Entries::New)?,
            notices,
            look_for_senders: true,
            outboxes: Vec::new(),
            inboxes: Vec::new(),
            turn: 0,
            buffer: Vec::new(),
            host,
            dead: Vec::new(),
        })
    }

    fn outbox(&mut self, to: Address) -> &mut Outbox {
        let at = to as usize;
        if self.outboxes.len() <= at {
            self.outboxes.resize_with(at + 1, || None);
        }
        let (folders, me) = (&self.folders, self.me);
        self.outboxes[at].get_or_insert_with(|| Outbox::new(folders, me, to))
    }

    fn trouble(peer: Address, Trouble { path, cause }: Trouble) -> DeviceError {
        DeviceError::Storage { peer, path, cause }
    }

    /// Notes what there may be to look at.
    fn take_notices(&mut self) -> io::Result<()> {
        let FileDevice { notices, inboxes, look_for_senders, arrivals, .. } = self;
        notices.take(&mut |notice| match notice {
            Notice::Changed(watch) if Some(watch) == *arrivals => *look_for_senders = true,
            Notice::Changed(watch) => {
                inboxes.iter_mut().filter(|inbox| inbox.watch == Some(watch)).for_each(|inbox| inbox.is_due = true);
            }
            Notice::Anything => {
                *look_for_senders = true;
                inboxes.iter_mut().for_each(|inbox| inbox.is_due = true);
            }
        })
    }

    fn find_senders(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.look_for_senders) {
            return Ok(());
        }
        for entry in fs::read_dir(self.folders.of(self.me))? {
            let name = entry?.file_name();
            let Some(from) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            if from < self.host.size() && self.inboxes.iter().all(|inbox| inbox.from() != from) {
                let watch = self.notices.watch(&self.folders.pair(from, self.me), Entries::New)?;
                self.inboxes.push(Inbox::new(&self.folders, from, self.me, watch));
            }
        }
        Ok(())
    }

    /// Writes what could not be written before.
    fn flush(&mut self) -> Result<(), DeviceError> {
        for (to, outbox) in self.outboxes.iter_mut().enumerate() {
            if let Some(outbox) = outbox.as_mut().filter(|outbox| outbox.waits()) {
                outbox.flush(&self.notices).map_err(|trouble| FileDevice::trouble(to as Address, trouble))?;
            }
        }
        Ok(())
    }

    /// Takes one file from each sender that has one.
    fn take_files(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        let kept = self.keep.then_some(&self.folders);
        let mut any = false;
        self.turn += 1;
        let count = self.inboxes.len();
        for at in 0..count {
            let inbox = &mut self.inboxes[(self.turn + at) % count];
            if inbox.is_due {
                let from = inbox.from();
                let taken = inbox.take(&mut self.buffer, kept, &mut |meta, data| sink(from, meta, data));
                any |= taken.map_err(|failed| failed.of(from))?;
            }
        }
        Ok(any)
    }

    /// Reports a death once everything that the process has sent was taken.
    fn take_deaths(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<(), DeviceError> {
        let Err(error) = self.host.poll(&mut |_, _, _| {}) else { return Ok(()) };
        if let DeviceError::Died { peer, .. } = error {
            self.look_for_senders = true;
            self.find_senders().map_err(|cause| self.own_folder(cause))?;
            let kept = self.keep.then_some(&self.folders);
            for inbox in self.inboxes.iter_mut().filter(|inbox| inbox.from() == peer) {
                let mut hand_on = |meta: &Meta, data: &[u8]| sink(peer, meta, data);
                while inbox.take(&mut self.buffer, kept, &mut hand_on).map_err(|failed| failed.of(peer))? {}
            }
            self.dead.push(peer);
            if let Some(outbox) = self.outboxes.get_mut(peer as usize) {
                *outbox = None;
            }
        }
        Err(error)
    }

    fn own_folder(&self, cause: io::Error) -> DeviceError {
        DeviceError::Storage { peer: self.me, path: self.folders.of(self.me), cause }
    }
}

impl Device for FileDevice {
    fn name(&self) -> &'static str {
        "file"
    }

    fn max_data(&self) -> usize {
        MAX_DATA
    }

    fn send(&mut self, to: Address, meta: &Meta, data: Data<'_>, _urgency: Urgency) -> Result<Sent, DeviceError> {
        if self.dead.contains(&to) {
            return Err(DeviceError::Died { peer: to, what: "its process has ended" });
        }
        self.outbox(to);
        let FileDevice { outboxes, notices, .. } = self;
        let outbox = outboxes[to as usize].as_mut().expect("it was made above");
        outbox.send(meta, data, notices).map_err(|trouble| FileDevice::trouble(to, trouble))
    }

    fn want_room(&mut self, to: Address) {
        self.outbox(to);
        let FileDevice { outboxes, notices, .. } = self;
        if let Some(outbox) = &mut outboxes[to as usize] {
            // What is wrong is said by the next poll.
            let _ = outbox.want_room(notices);
        }
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        self.take_deaths(sink)?;
        self.take_notices().and_then(|()| self.find_senders()).map_err(|cause| self.own_folder(cause))?;
        self.flush()?;
        let any = self.take_files(sink)?;
        self.notices.looked(any);
        Ok(any)
    }

    fn release(&mut self) -> Result<(), DeviceError> {
        for (to, outbox) in self.outboxes.iter_mut().enumerate() {
            let released = outbox.as_mut().map_or(Ok(()), Outbox::release);
            released.map_err(|trouble| FileDevice::trouble(to as Address, trouble))?;
        }
        Ok(())
    }

    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.notices.descriptor()
    }

    fn death_watch(&self) -> Option<Arc<DeathWatch>> {
        self.host.death_watch()
    }

    fn notice_deaths(&mut self) {
        self.host.notice_deaths();
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.host.is_alive(peer)
    }

    fn prepare(&self, next: Address) -> io::Result<()> {
        // What a process that had this number has left behind.
        self.folders.clear(next)?;
        self.host.prepare(next)
    }

    fn meet(&mut self, peer: Address, knew_another: bool) {
        self.host.meet(peer, knew_another);
        if knew_another {
            self.dead.retain(|dead| *dead != peer);
            if let Some(outbox) = self.outboxes.get_mut(peer as usize) {
                *outbox = None;
            }
            self.inboxes.retain(|inbox| inbox.from() != peer);
        }
    }
}
