//! The files that a process writes for another one.

use super::format::{Batch, Label};
use super::notices::{Entries, Notices, Watch};
use super::{Folders, Trouble, suffixed};
use crate::{Data, Meta, Sent};
use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Files of a pair that the receiver has not read yet: while it reads one, the next one lies there.
const UNREAD: usize = 2;
/// Length of a file beyond which no packet is added to it.
const FULL: usize = 1 << 20;

/// What is on its way to one receiver.
pub struct Outbox {
    label: Label,
    /// Where the receiver looks.
    folder: PathBuf,
    /// Where a file is before it is whole.
    draft: PathBuf,
    is_made: bool,
    /// Files that may not have been read.
    unread: VecDeque<u64>,
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
            held: Batch::default(),
            watch: None,
            wants_room: false,
        }
    }

    /// True if packets wait here, or somebody wants that there is room.
    pub fn waits(&self) -> bool {
        !self.held.is_empty() || self.wants_room
    }

    /// Sends a packet: at once, or with others when the receiver has read earlier ones.
    ///
    /// # Errors
    /// The file cannot be written; the packet was not sent.
    pub fn send(&mut self, meta: &Meta, data: Data<'_>, notices: &Notices) -> Result<Sent, Trouble> {
        if self.held.len() >= FULL {
            self.flush(notices)?;
            if self.held.len() >= FULL {
                return Ok(Sent::NoRoom);
            }
        }
        self.held.push(meta, data);
        match self.flush(notices) {
            // Those before it were accepted: they stay, and the next poll says what is wrong.
            Err(trouble) if self.held.packets() == 1 => {
                self.held.clear();
                Err(trouble)
            }
            _ => Ok(Sent::Done),
        }
    }

    /// Somebody waits until there is room.
    ///
    /// # Errors
    /// As for [`Outbox::flush`].
    pub fn want_room(&mut self, notices: &Notices) -> Result<(), Trouble> {
        self.wants_room = true;
        self.flush(notices)
    }

    /// Writes what is held, if the receiver has read enough. What stays is written later: a watch tells when.
    ///
    /// # Errors
    /// The file cannot be written. What was held is held on.
    pub fn flush(&mut self, notices: &Notices) -> Result<(), Trouble> {
        for attempt in 0..2 {
            self.see_read();
            if !self.held.is_empty() && self.unread.len() < UNREAD {
                self.write()?;
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
                self.watch = notices.watch(&self.folder, Entries::Gone).map_err(|cause| self.trouble(cause))?;
            }
        }
        Ok(())
    }

    /// Writes what is held, whatever the receiver has read.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn release(&mut self) -> Result<(), Trouble> {
        if self.held.is_empty() { Ok(()) } else { self.write() }
    }

    /// A folder to which this process sends and from which it receives has one watch for both.
    fn forget_watch(&mut self, notices: &Notices) {
        if let Some(watch) = self.watch.take_if(|_| self.label.from != self.label.to) {
            notices.forget(watch);
        }
    }

    /// Forgets the files that the receiver has read.
    fn see_read(&mut self) {
        while self.unread.front().is_some_and(|number| !self.lock(*number).exists()) {
            self.unread.pop_front();
        }
    }

    fn write(&mut self) -> Result<(), Trouble> {
        if !self.is_made {
            fs::create_dir_all(&self.folder).map_err(|cause| self.trouble(cause))?;
            self.is_made = true;
        }
        let number = self.label.number;
        let message = suffixed(&self.folder, number, "msg");
        let written = write_file(&self.draft, self.held.sealed(&self.label))
            .and_then(|()| fs::rename(&self.draft, &message))
            .and_then(|()| write_file(&self.lock(number), &[]));
        if let Err(cause) = written {
            let _ = fs::remove_file(&self.draft);
            let _ = fs::remove_file(&message);
            return Err(Trouble { path: message, cause });
        }
        self.unread.push_back(number);
        self.label.number += 1;
        self.held.clear();
        Ok(())
    }

    fn lock(&self, number: u64) -> PathBuf {
        suffixed(&self.folder, number, "lock")
    }

    fn trouble(&self, cause: io::Error) -> Trouble {
        Trouble { path: self.folder.clone(), cause }
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(bytes)
}
