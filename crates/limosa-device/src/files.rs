//! The file device: messages are files in a folder that all processes can read and write. It needs nothing but a file
//! system.
//!
//! ```text
//!   ROOT/TO/FROM/NUMBER.msg       packets, see `format`
//!   ROOT/TO/FROM/NUMBER.lock      empty; it comes after the message and says that the message is whole
//!   ROOT/TO/board                 notes for the process TO, see `board`
//!   ROOT/drafts/FROM-TO           a message that is not yet whole
//!   ROOT/kept/FROM-TO-NUMBER.msg  messages that were received, if they are kept
//!   ROOT/left/WHO                 a folder for each process that has left, where nobody else knows who is the last
//! ```
//!
//! The receiver deletes message and lock. A sender has few unread files on their way to a receiver; further packets
//! wait in memory, and go together into the next file. So many small messages take few files, and a slow receiver slows
//! its senders down. A deleted file of the sender makes room.
//!
//! New and deleted files are noticed by inotify, or by a clock where that does not work (`notices`), and then found in
//! a listing of the folder (`listing`). The descriptor of this device covers both. Sending and polling take a few
//! operations of the file system and never wait for a peer.
//!
//! When a message file cannot be written or read, or is invalid, the two processes of that file exchange no more
//! messages ([`DeviceError::Severed`]): the process that finds it puts a note on the boards of both.
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

mod board;
pub mod courier;
pub mod format;
mod inbox;
mod listing;
pub mod map;
mod notices;
mod outbox;

pub use notices::{Notify, is_local};

use board::{Fault, Note};
use format::{Label, MAX_DATA};
use inbox::{Inbox, unless_absent};
use notices::{Entries, Notice, Notices, Watch};
use outbox::Outbox;

/// Name of the files with notes.
const BOARD: &str = "board";

/// The folders of a job.
#[derive(Clone, Debug)]
pub struct Folders(PathBuf);

impl Folders {
    /// Returns the folders below this folder.
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

    /// Whether a courier has made them, which carries messages to other hosts.
    pub fn has_map(&self) -> bool {
        map::path(self).exists()
    }

    /// Records that process `who`, of `of` processes, no longer uses the folders. The last process deletes them, with
    /// all their content.
    pub fn leave(&self, who: Address, of: u32) {
        let left = self.0.join("left");
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(left.join(who.to_string()));
        // Files that cannot be listed or deleted stay.
        if fs::read_dir(&left).is_ok_and(|entries| entries.count() >= of as usize) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Deletes all messages from and to this process, and notes about it.
    fn clear(&self, who: Address) -> io::Result<()> {
        unless_absent(fs::remove_dir_all(self.of(who)))?;
        for entry in fs::read_dir(&self.0)? {
            let folder = entry?.path();
            unless_absent(fs::remove_dir_all(folder.join(who.to_string())))?;
            unless_absent(board::post(&folder.join(BOARD), who, None))?;
        }
        Ok(())
    }

    fn board(&self, of: Address) -> PathBuf {
        self.of(of).join(BOARD)
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

fn suffixed(folder: &Path, number: u64, suffix: &str) -> PathBuf {
    folder.join(format!("{number}.{suffix}"))
}

/// Options of a file device.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileOptions {
    /// Notification of new files.
    pub notify: Notify,
    /// Whether received messages are kept.
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
    /// There may be notes.
    look_at_board: bool,
    /// Peers with which no messages are exchanged any more.
    severed: Vec<Severed>,
    /// By address.
    outboxes: Vec<Option<Outbox>>,
    inboxes: Vec<Inbox>,
    /// The inbox to be polled first.
    turn: usize,
    buffer: Vec<u8>,
    /// The device that finds deaths of processes.
    host: ShmDevice,
    dead: Vec<Address>,
}

/// A peer with which no messages are exchanged any more.
struct Severed {
    peer: Address,
    note: Note,
    is_reported: bool,
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
        board::make(&own.join(BOARD), host.size())?;
        let notices = Notices::new(&own, options.notify)?;
        Ok(FileDevice {
            me: host.rank(),
            folders: folders.clone(),
            keep: options.keep,
            arrivals: notices.watch(&own, Entries::NewOrChanged)?,
            notices,
            look_for_senders: true,
            look_at_board: true,
            severed: Vec::new(),
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

    /// Exchanges no more messages with a peer, and tells it so. The note on the own board wakes this process, so that
    /// it reports the end when it has taken what the peer has sent before.
    fn sever(&mut self, peer: Address, note: Note) -> DeviceError {
        // If the folder is gone, the peer finds that itself.
        for (of, about) in [(peer, self.me), (self.me, peer)] {
            let _ = board::post(&self.folders.board(of), about, Some(&note));
        }
        self.note_severed(peer, note);
        self.severed_by(peer, &note)
    }

    fn severed_by(&self, peer: Address, note: &Note) -> DeviceError {
        DeviceError::Severed { peer, what: note.text(&self.folders) }
    }

    fn note_severed(&mut self, peer: Address, note: Note) {
        if self.severed.iter().all(|severed| severed.peer != peer) {
            self.severed.push(Severed { peer, note, is_reported: false });
        }
        if let Some(outbox) = self.outboxes.get_mut(peer as usize) {
            *outbox = None;
        }
    }

    fn note_of(&self, peer: Address) -> Option<&Note> {
        self.severed.iter().find(|severed| severed.peer == peer).map(|severed| &severed.note)
    }

    /// Notes what there may be to look at.
    fn take_notices(&mut self) -> io::Result<()> {
        let FileDevice { notices, inboxes, look_for_senders, look_at_board, arrivals, .. } = self;
        let mut is_gone = false;
        notices.take(&mut |notice| match notice {
            Notice::Changed(watch, name) if Some(watch) == *arrivals => {
                *if name == BOARD.as_bytes() { &mut *look_at_board } else { &mut *look_for_senders } = true;
            }
            Notice::Changed(watch, name) => {
                inboxes.iter_mut().filter(|inbox| inbox.watch == Some(watch)).for_each(|inbox| inbox.see(name));
            }
            Notice::Gone(watch) => is_gone |= Some(watch) == *arrivals,
            Notice::Anything => {
                (*look_for_senders, *look_at_board) = (true, true);
                inboxes.iter_mut().for_each(|inbox| inbox.look = true);
            }
        })?;
        // The folder was deleted: reading it returns that error.
        self.look_for_senders |= is_gone;
        Ok(())
    }

    /// Reads from the board with which peers no messages are exchanged any more.
    fn read_board(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.look_at_board) {
            for (peer, note) in board::read(&self.folders.board(self.me))? {
                self.note_severed(peer, note);
            }
        }
        Ok(())
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
    fn flush(&mut self) {
        for to in 0..self.outboxes.len() {
            let Some(outbox) = self.outboxes[to].as_mut().filter(|outbox| outbox.waits()) else { continue };
            let before = outbox.files();
            match outbox.flush(&self.notices) {
                Ok(()) if outbox.files() > before => self.notices.wrote(),
                Ok(()) => {}
                Err(note) => _ = self.sever(to as Address, note),
            }
        }
    }

    /// Takes one file from each sender that has one.
    fn take_files(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> bool {
        let kept = self.keep.then_some(&self.folders);
        let mut any = false;
        let mut failed = Vec::new();
        self.turn += 1;
        let count = self.inboxes.len();
        for at in 0..count {
            let inbox = &mut self.inboxes[(self.turn + at) % count];
            let from = inbox.from();
            match inbox.take(&mut self.buffer, kept, &mut |meta, data| sink(from, meta, data)) {
                Ok(taken) => any |= taken,
                Err(note) => failed.push((from, note)),
            }
        }
        for (from, note) in failed {
            self.sever(from, note);
        }
        any
    }

    /// Takes all that a peer has sent, which sends no more.
    fn take_last(&mut self, peer: Address, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<(), DeviceError> {
        self.look_for_senders = true;
        self.find_senders().map_err(|cause| self.own_folder(cause))?;
        let kept = self.keep.then_some(&self.folders);
        for inbox in self.inboxes.iter_mut().filter(|inbox| inbox.from() == peer) {
            inbox.look = true;
            // Packets that cannot be read now are lost with the peer.
            while inbox.take(&mut self.buffer, kept, &mut |meta, data| sink(peer, meta, data)).unwrap_or(false) {}
        }
        Ok(())
    }

    /// Reports the end of the exchange with a peer, once everything that it has sent was taken.
    fn report_severed(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<(), DeviceError> {
        let Some(severed) = self.severed.iter_mut().find(|severed| !severed.is_reported) else { return Ok(()) };
        severed.is_reported = true;
        let (peer, note) = (severed.peer, severed.note);
        if self.dead.contains(&peer) {
            return Ok(());
        }
        self.take_last(peer, sink)?;
        Err(self.severed_by(peer, &note))
    }

    /// Reports a death once everything that the process has sent was taken.
    fn take_deaths(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<(), DeviceError> {
        let Err(error) = self.host.poll(&mut |_, _, _| {}) else { return Ok(()) };
        if let DeviceError::Died { peer, .. } = error {
            self.take_last(peer, sink)?;
            self.dead.push(peer);
            if let Some(outbox) = self.outboxes.get_mut(peer as usize) {
                *outbox = None;
            }
        }
        Err(error)
    }

    /// Tells all known peers that this process cannot receive any more.
    fn own_folder(&mut self, cause: io::Error) -> DeviceError {
        let label = Label { from: self.me, to: self.me, number: 0 };
        let note = Note::new(Fault::NoFolder, &cause, label);
        let receivers = self.outboxes.iter().enumerate().filter(|(_, outbox)| outbox.is_some());
        let peers = receivers.map(|(to, _)| to as Address).chain(self.inboxes.iter().map(Inbox::from));
        for peer in peers {
            let _ = board::post(&self.folders.board(peer), self.me, Some(&note));
        }
        DeviceError::Storage { path: self.folders.of(self.me), cause }
    }
}

impl Device for FileDevice {
    fn name(&self) -> &'static str {
        "file"
    }

    fn max_data(&self) -> usize {
        MAX_DATA
    }

    fn is_far(&self) -> bool {
        true
    }

    fn send(&mut self, to: Address, meta: &Meta, data: Data<'_>, _urgency: Urgency) -> Result<Sent, DeviceError> {
        if self.dead.contains(&to) {
            return Err(DeviceError::Died { peer: to, what: "its process has ended" });
        }
        if let Some(note) = self.note_of(to) {
            return Err(self.severed_by(to, note));
        }
        self.outbox(to);
        let FileDevice { outboxes, notices, .. } = self;
        let outbox = outboxes[to as usize].as_mut().expect("it was made above");
        match outbox.send(meta, data, notices) {
            Ok(sent) => {
                if matches!(sent, Sent::Done) {
                    notices.wrote();
                }
                Ok(sent)
            }
            Err(note) => Err(self.sever(to, note)),
        }
    }

    fn want_room(&mut self, to: Address) {
        if self.note_of(to).is_some() {
            return;
        }
        self.outbox(to);
        let FileDevice { outboxes, notices, .. } = self;
        let wanted = outboxes[to as usize].as_mut().map_or(Ok(()), |outbox| outbox.want_room(notices));
        if let Err(note) = wanted {
            self.sever(to, note);
        }
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        self.take_deaths(sink)?;
        let looked = self.take_notices().and_then(|()| self.find_senders()).and_then(|()| self.read_board());
        looked.map_err(|cause| self.own_folder(cause))?;
        if self.notices.is_due() {
            self.flush();
        }
        let any = self.take_files(sink);
        self.notices.looked(any);
        self.report_severed(sink)?;
        Ok(any)
    }

    fn release(&mut self) -> Result<(), DeviceError> {
        let mut released = Ok(());
        for to in 0..self.outboxes.len() {
            if let Some(Err(note)) = self.outboxes[to].as_mut().map(Outbox::release) {
                released = Err(self.sever(to as Address, note));
            }
        }
        released
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
        // Deletes files of an earlier process of this number. In a job over several hosts there was none, and where a
        // courier carries messages it has made the folders of the process.
        if !self.folders.has_map() {
            self.folders.clear(next)?;
        }
        self.host.prepare(next)
    }

    fn meet(&mut self, peer: Address, knew_another: bool) {
        self.host.meet(peer, knew_another);
        if knew_another {
            self.dead.retain(|dead| *dead != peer);
            self.severed.retain(|severed| severed.peer != peer);
            if let Some(outbox) = self.outboxes.get_mut(peer as usize) {
                *outbox = None;
            }
            self.inboxes.retain(|inbox| inbox.from() != peer);
        }
    }
}
