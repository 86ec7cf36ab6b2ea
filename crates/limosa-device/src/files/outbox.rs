//! The files that a process writes for one receiver.

use super::board::{Fault, Note};
use super::format::{Batch, FULL, Label};
use super::listing::locks;
use super::notices::{Entries, Notices, SHORTEST, Watch};
use super::{Folders, suffixed};
use crate::{Data, Meta, Sent};
use rustix::fs::{FileType, Mode};
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Files of a pair that the receiver has not read yet: while it reads one, the next one lies there.
const UNREAD: usize = 2;
/// Data from this length on are not held back: they are written straight from where they are, when there is room.
const LONG: usize = 64 * 1024;

/// Packets and files on their way to one receiver.
pub struct Outbox {
    label: Label,
    /// The receiver's folder.
    folder: PathBuf,
    /// Path of a file before it is complete.
    draft: PathBuf,
    is_made: bool,
    /// Files that may not have been read.
    unread: VecDeque<u64>,
    /// When the folder was listed last, if it was.
    listed: Option<Instant>,
    /// Packets that wait until the receiver has read earlier ones; they go together into one file.
    held: Batch,
    /// Tells when the receiver has read one.
    watch: Option<Watch>,
    wants_room: bool,
}

impl Outbox {
    /// From one process to another.
    pub fn new(folders: &Folders, from: u32, to: u32) -> Outbox {
        Outbox {
            label: Label { from, to, number: 0 },
            folder: folders.pair(from, to),
            draft: folders.drafts().join(format!("{from}-{to}")),
            is_made: false,
            unread: VecDeque::new(),
            listed: None,
            held: Batch::default(),
            watch: None,
            wants_room: false,
        }
    }

    /// Files that were written.
    pub fn files(&self) -> u64 {
        self.label.number
    }

    /// Whether packets wait here, or room is wanted.
    pub fn waits(&self) -> bool {
        !self.held.is_empty() || self.wants_room
    }

    /// Sends a packet: at once, or with others when the receiver has read earlier ones.
    ///
    /// # Errors
    /// The file cannot be written; neither this packet nor those that are held were sent.
    pub fn send(&mut self, meta: &Meta, data: Data<'_>, notices: &Notices) -> Result<Sent, Note> {
        // A burst of packets does not list the folder for each of them.
        let is_known_full = self.unread.len() == UNREAD && self.listed.is_some_and(|at| at.elapsed() < SHORTEST);
        let is_long = data.len() >= LONG;
        if self.held.len() >= FULL || (is_long && !is_known_full) {
            self.flush(notices)?;
        }
        if is_long || self.held.len() >= FULL {
            let has_room = if is_long { self.unread.len() < UNREAD } else { self.held.len() < FULL };
            if !has_room {
                return Ok(Sent::NoRoom);
            }
        }
        match data {
            Data::Bytes(bytes) if is_long => {
                self.held.push_apart(meta, bytes.len());
                self.write(bytes)?;
            }
            data => {
                self.held.push(meta, data);
                if !is_known_full {
                    self.flush(notices)?;
                }
            }
        }
        Ok(Sent::Done)
    }

    /// Records that the sender waits for room.
    ///
    /// # Errors
    /// As for [`Outbox::flush`].
    pub fn want_room(&mut self, notices: &Notices) -> Result<(), Note> {
        self.wants_room = true;
        self.flush(notices)
    }

    /// Writes held packets, if the receiver has read enough. The rest is written later: a watch tells when.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self, notices: &Notices) -> Result<(), Note> {
        for attempt in 0..2 {
            self.see_read(notices.is_late());
            if !self.held.is_empty() && self.unread.len() < UNREAD {
                self.write(&[])?;
            }
            if self.unread.len() < UNREAD {
                self.wants_room = false;
            }
            if !self.waits() {
                self.forget_watch(notices);
                return Ok(());
            }
            if attempt == 0 && self.watch.is_none() {
                // A file may have gone before the watch was there: look again.
                self.watch = notices.watch(&self.folder, Entries::Gone).map_err(|cause| self.fault(&cause))?;
            }
        }
        Ok(())
    }

    /// Writes held packets, whatever the receiver has read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn release(&mut self) -> Result<(), Note> {
        if self.held.is_empty() { Ok(()) } else { self.write(&[]) }
    }

    /// A folder to which this process sends and from which it receives has one watch for both.
    fn forget_watch(&mut self, notices: &Notices) {
        if let Some(watch) = self.watch.take_if(|_| self.label.from != self.label.to) {
            notices.forget(watch);
        }
    }

    /// Forgets the files that the receiver has read, if there is no room without that. It reads them in order.
    fn see_read(&mut self, is_late: bool) {
        if self.unread.len() == UNREAD {
            let listed = is_late.then(|| locks(&self.folder));
            self.listed = is_late.then(Instant::now);
            let lies_there = |number: &u64| match &listed {
                Some(listed) => listed.contains(number),
                None => self.lock(*number).exists(),
            };
            let read = self.unread.iter().rposition(|number| !lies_there(number));
            self.unread.drain(..read.map_or(0, |last| last + 1));
        }
    }

    /// Writes held packets, and `apart` behind them.
    fn write(&mut self, apart: &[u8]) -> Result<(), Note> {
        if !self.is_made {
            // The receiver may not have joined yet. The job's folder is not recreated if it was deleted.
            let made = self.folder.parent().map_or(Ok(()), make_folder).and_then(|()| make_folder(&self.folder));
            made.map_err(|cause| self.fault(&cause))?;
            self.is_made = true;
        }
        let number = self.label.number;
        let message = suffixed(&self.folder, number, "msg");
        let lock = self.lock(number);
        let written = write_file(&self.draft, &[self.held.sealed(&self.label), apart])
            .and_then(|()| fs::rename(&self.draft, &message))
            .and_then(|()| make_empty(&lock));
        if let Err(cause) = written {
            [&self.draft, &message].into_iter().for_each(|path| drop(fs::remove_file(path)));
            return Err(self.fault(&cause));
        }
        self.unread.push_back(number);
        self.label.number += 1;
        self.held.clear();
        Ok(())
    }

    fn lock(&self, number: u64) -> PathBuf {
        suffixed(&self.folder, number, "lock")
    }

    fn fault(&self, cause: &io::Error) -> Note {
        Note::new(Fault::Unwritten, cause, self.label)
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file anew, from parts that lie apart.
pub fn write_file(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

/// Makes an empty file, in one call of the system.
pub fn make_empty(path: &Path) -> io::Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(rustix::fs::mknodat(rustix::fs::CWD, path, FileType::RegularFile, mode, 0)?)
}
