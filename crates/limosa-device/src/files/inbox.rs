//! The files that come from one process.

use super::board::{Fault, Note};
use super::format::{self, LONGEST, Label};
use super::listing::{locks, number_of_lock};
use super::notices::Watch;
use super::{Folders, suffixed};
use crate::{Meta, Peer};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files from one sender.
pub struct Inbox {
    /// The next file.
    next: Label,
    /// Files with lower numbers have come.
    come: u64,
    folder: PathBuf,
    /// Tells when a file comes.
    pub watch: Option<Watch>,
    /// Files may have come of which nothing was told.
    pub look: bool,
    /// A file could not be taken, so none after it are.
    has_failed: bool,
}

impl Inbox {
    /// From one process to another.
    pub fn new(folders: &Folders, from: u32, to: u32, watch: Option<Watch>) -> Inbox {
        let next = Label { from, to, number: 0 };
        Inbox { next, come: 0, folder: folders.pair(from, to), watch, look: true, has_failed: false }
    }

    /// Returns the sender.
    pub fn from(&self) -> Peer {
        self.next.from
    }

    /// A file of this name has come into the folder.
    pub fn see(&mut self, name: &[u8]) {
        match number_of_lock(name) {
            Some(number) if number == self.come => self.come += 1,
            _ => self.look = true,
        }
    }

    fn lock(&self, number: u64) -> PathBuf {
        suffixed(&self.folder, number, "lock")
    }

    /// Counts the files that have come; true if there are later ones than those.
    fn count_come(&mut self) -> bool {
        let listed = locks(&self.folder);
        while listed.contains(&self.come) {
            self.come += 1;
        }
        listed.iter().any(|number| *number > self.come)
    }

    /// True if the next file has come.
    fn has_next(&mut self) -> Result<bool, Note> {
        if std::mem::take(&mut self.look) {
            // Until a listing is complete the sender may write two: the second listing shows both.
            let is_missing = self.count_come() && self.next.number == self.come && self.count_come();
            if is_missing && self.next.number == self.come {
                let missing = io::Error::from_raw_os_error(rustix::io::Errno::NOENT.raw_os_error());
                return Err(Note::new(Fault::Unread, &missing, self.next));
            }
        }
        Ok(self.next.number < self.come)
    }

    /// Takes the next file, if there is one, and passes its packets on; true if there was one. `kept`: the folder for
    /// taken files; otherwise they are deleted.
    ///
    /// # Errors
    /// The file cannot be read, or is invalid; no further file is taken.
    pub fn take(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: Option<&Folders>,
        sink: &mut dyn FnMut(&Meta, &[u8]),
    ) -> Result<bool, Note> {
        if self.has_failed {
            return Ok(false);
        }
        let taken = self.take_next(buffer, kept, sink);
        self.has_failed = taken.is_err();
        taken
    }

    fn take_next(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: Option<&Folders>,
        sink: &mut dyn FnMut(&Meta, &[u8]),
    ) -> Result<bool, Note> {
        if !self.has_next()? {
            return Ok(false);
        }
        let message = suffixed(&self.folder, self.next.number, "msg");
        let put_away = || match kept {
            Some(folders) => fs::rename(&message, folders.kept(&self.next)),
            None => fs::remove_file(&message),
        };
        // It is put away first: the sender may write the next one while the packets of this one are handled.
        let taken = read(&message, buffer).and_then(|bytes| {
            put_away()?;
            unless_absent(fs::remove_file(self.lock(self.next.number)))?;
            Ok(bytes)
        });
        let bytes = taken.map_err(|cause| Note::new(Fault::Unread, &cause, self.next))?;
        let nonsense = Note { fault: Fault::Nonsense, errno: 0, label: self.next };
        let (label, packets) = format::open(bytes).map_err(|_| nonsense)?;
        if label != self.next {
            return Err(nonsense);
        }
        self.next.number += 1;
        for packet in packets {
            let (meta, data) = packet.map_err(|_| nonsense)?;
            sink(&meta, data);
        }
        Ok(true)
    }
}

/// Reads a complete file; of one that is longer than any sender writes, only the beginning. The buffer stays as long as
/// the longest file.
fn read<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
    let mut file = File::open(path)?;
    let len = usize::try_from(file.metadata()?.len()).map_or(LONGEST, |len| len.min(LONGEST));
    buffer.try_reserve_exact(len.saturating_sub(buffer.len()))?;
    buffer.resize(buffer.len().max(len), 0);
    file.read_exact(&mut buffer[..len])?;
    Ok(&buffer[..len])
}

/// Ignores the error that a file is absent.
pub fn unless_absent(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
