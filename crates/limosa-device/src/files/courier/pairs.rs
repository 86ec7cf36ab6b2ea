//! The files between a process of this host and one of another host, in one direction.

use super::super::board::{self, Note};
use super::super::format::{LONGEST, Label};
use super::super::outbox::{make_empty, write_file};
use super::super::{Folders, suffixed};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

/// Most files that the other host may report as taken at once: a sender has few on their way.
const MOST_TAKEN: u64 = 64;

/// Files that leave this host.
pub struct Departure {
    /// The next file to be sent.
    next: Label,
    /// Files with lower numbers were taken by their receiver.
    taken: u64,
    folder: PathBuf,
    /// There may be new ones.
    look: bool,
    /// One could not be read, so none after it are sent.
    has_failed: bool,
    file: Vec<u8>,
}

impl Departure {
    /// From one process to another.
    pub fn new(folders: &Folders, from: u32, to: u32) -> Departure {
        let next = Label { from, to, number: 0 };
        Departure { next, taken: 0, folder: folders.pair(from, to), look: true, has_failed: false, file: Vec::new() }
    }

    /// Returns the receiver.
    pub fn to(&self) -> u32 {
        self.next.to
    }

    /// Whether a file was sent, or is to be, that was not taken.
    pub fn is_under_way(&self) -> bool {
        !self.has_failed && (self.look || self.taken < self.next.number)
    }

    /// Files may have come.
    pub fn look(&mut self) {
        self.look = true;
    }

    /// Restarts: the other host may not have received files that were sent and not taken.
    pub fn begin_again(&mut self) {
        self.next.number = self.taken;
        self.look = true;
    }

    /// Returns the next file, if there is one.
    ///
    /// # Errors
    /// It cannot be read; none is sent any more.
    pub fn next(&mut self) -> Result<Option<(Label, &[u8])>, Note> {
        if !self.look || self.has_failed {
            return Ok(None);
        }
        self.look = suffixed(&self.folder, self.next.number, "lock").exists();
        if !self.look {
            return Ok(None);
        }
        let label = self.next;
        if let Err(cause) = self.read(label.number) {
            self.has_failed = true;
            return Err(Note::new(board::Fault::Unsent, &cause, label));
        }
        self.next.number += 1;
        Ok(Some((label, &self.file)))
    }

    fn read(&mut self, number: u64) -> io::Result<()> {
        self.file.clear();
        let file = File::open(suffixed(&self.folder, number, "msg"))?;
        // Of a file that is longer than any sender writes, only the beginning: the receiver finds that.
        file.take(LONGEST as u64).read_to_end(&mut self.file).map(drop)
    }

    /// Records that the receiver has taken this file, and those before it.
    ///
    /// # Errors
    /// That cannot be.
    pub fn taken(&mut self, number: u64) -> Result<(), String> {
        if number.saturating_sub(self.taken) > MOST_TAKEN {
            return Err(format!("it says that file {number} was taken, which was not sent"));
        }
        while self.taken <= number {
            // The sender continues when the lock is gone. A file that another program has deleted is gone, too.
            for suffix in ["msg", "lock"] {
                let _ = fs::remove_file(suffixed(&self.folder, self.taken, suffix));
            }
            self.taken += 1;
        }
        self.next.number = self.next.number.max(self.taken);
        Ok(())
    }
}

/// Why a file was not delivered.
pub enum Fault {
    /// One before it has not come.
    OutOfOrder,
    /// It cannot be written.
    Unwritten(Note),
}

/// Files that come from another host.
pub struct Arrival {
    /// The next file to come.
    next: Label,
    /// Files with lower numbers were taken by their receiver.
    taken: u64,
    folder: PathBuf,
    draft: PathBuf,
    /// The receiver may have taken some.
    look: bool,
    /// One could not be written, so none after it are.
    has_failed: bool,
}

impl Arrival {
    /// From one process to another.
    pub fn new(folders: &Folders, from: u32, to: u32) -> Arrival {
        Arrival {
            next: Label { from, to, number: 0 },
            taken: 0,
            folder: folders.pair(from, to),
            draft: folders.drafts().join(format!("{from}-{to}")),
            look: false,
            has_failed: false,
        }
    }

    /// The receiver may have taken some.
    pub fn look(&mut self) {
        self.look = true;
    }

    /// Writes a file, unless it exists. True if its receiver has taken it before.
    ///
    /// # Errors
    /// It is not the next one, or cannot be written; none is written any more.
    pub fn deliver(&mut self, number: u64, file: &[u8]) -> Result<bool, Fault> {
        if self.has_failed {
            return Ok(false);
        }
        if number < self.next.number {
            return Ok(number < self.taken);
        }
        if number > self.next.number {
            return Err(Fault::OutOfOrder);
        }
        let message = suffixed(&self.folder, number, "msg");
        let written = write_file(&self.draft, &[file])
            .and_then(|()| fs::rename(&self.draft, &message))
            .and_then(|()| make_empty(&suffixed(&self.folder, number, "lock")));
        if let Err(cause) = written {
            [&self.draft, &message].into_iter().for_each(|path| drop(fs::remove_file(path)));
            self.has_failed = true;
            return Err(Fault::Unwritten(Note::new(board::Fault::Undelivered, &cause, self.next)));
        }
        self.next.number += 1;
        // Without notices its end would be seen at the next look.
        self.look = true;
        Ok(false)
    }

    /// Returns the next file that the receiver has taken, if it has.
    pub fn next_taken(&mut self) -> Option<Label> {
        if !self.look || self.taken == self.next.number {
            return None;
        }
        self.look = !suffixed(&self.folder, self.taken, "lock").exists();
        if !self.look {
            return None;
        }
        self.taken += 1;
        Some(Label { number: self.taken - 1, ..self.next })
    }
}
