//! Notes by which two processes tell each other that no more messages go between them. Every process has a file of
//! notes, `board`, in its folder, written in full when it joins: to overwrite a part of it needs no room on the disk,
//! so that also a process whose disk is full can tell its partner.
//!
//! ```text
//!   board:  note of process 0 | note of process 1 | ...
//!   note:   fault u32 | error number of the system u32 | from u32 | to u32 | number of the message file u64
//! ```
//!
//! Numbers are little-endian; a fault of 0 is no note.

use super::format::Label;
use super::map;
use super::{Folders, suffixed};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Length of a note.
const NOTE: usize = 24;

/// Error of a message file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The sender could not write it.
    Unwritten,
    /// The receiver could not read it.
    Unread,
    /// It is invalid.
    Nonsense,
    /// One of the two processes cannot use its own folder.
    NoFolder,
    /// The courier of the sender's host could not read it.
    Unsent,
    /// The courier of the receiver's host could not write it.
    Undelivered,
    /// The hosts of the two cannot reach each other.
    Unreachable,
}

/// Why two processes exchange no more messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The error.
    pub fault: Fault,
    /// The system's number of the error, or 0.
    pub errno: i32,
    /// The file.
    pub label: Label,
}

impl Note {
    /// Makes a note with the message of the system.
    pub fn new(fault: Fault, cause: &io::Error, label: Label) -> Note {
        Note { fault, errno: cause.raw_os_error().unwrap_or(0), label }
    }

    /// In words.
    pub fn text(&self, folders: &Folders) -> String {
        let Label { from, to, number } = self.label;
        let message = suffixed(&folders.pair(from, to), number, "msg").display().to_string();
        let why =
            if self.errno == 0 { String::new() } else { format!(": {}", io::Error::from_raw_os_error(self.errno)) };
        // Where each host has a folder of its own, its name identifies the file.
        let host = |of: u32| map::host_of(folders, of);
        let on = |of: u32| host(of).map(|host| format!(" on {host}")).unwrap_or_default();
        match self.fault {
            Fault::Unwritten => format!("the message file {message}{} could not be written{why}", on(from)),
            Fault::Unread => format!("the message file {message}{} could not be read{why}", on(to)),
            Fault::Nonsense => format!("the message file {message}{} is not one that Limosa writes", on(to)),
            Fault::NoFolder => format!("the folder {}{} cannot be used{why}", folders.of(to).display(), on(to)),
            Fault::Unsent => format!("the message file {message}{} could not be read{why}", on(from)),
            Fault::Undelivered => format!("the message file {message}{} could not be written{why}", on(to)),
            Fault::Unreachable => {
                let name = |of: u32| host(of).unwrap_or_else(|| format!("the host of process {of}"));
                let why = map::why_lost(folders, to).map(|why| format!(": {why}")).unwrap_or_default();
                format!("{} cannot be reached from {}{why}", name(to), name(from))
            }
        }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; NOTE] {
        let mut bytes = [0; NOTE];
        let words = [self.fault as u32 + 1, self.errno as u32, self.label.from, self.label.to];
        for (at, word) in words.into_iter().enumerate() {
            bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes[16..].copy_from_slice(&self.label.number.to_le_bytes());
        bytes
    }

    /// `None` for no note.
    pub fn decode(bytes: &[u8; NOTE]) -> Option<Note> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let fault = match word(0) {
            0 => return None,
            1 => Fault::Unwritten,
            2 => Fault::Unread,
            4 => Fault::NoFolder,
            5 => Fault::Unsent,
            6 => Fault::Undelivered,
            7 => Fault::Unreachable,
            _ => Fault::Nonsense,
        };
        let number = u64::from_le_bytes(bytes[16..NOTE].try_into().expect("eight bytes"));
        Some(Note { fault, errno: word(4) as i32, label: Label { from: word(8), to: word(12), number } })
    }
}

/// Writes an empty board for `room` processes, unless there is one.
///
/// # Errors
/// The operating system's.
pub fn make(path: &Path, processes: u32) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(board) => board.write_all_at(&vec![0; processes as usize * NOTE], 0),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Puts a note about `peer` on a board, or takes it away.
///
/// # Errors
/// The operating system's.
pub fn post(path: &Path, peer: u32, note: Option<&Note>) -> io::Result<()> {
    let bytes = note.map_or([0; NOTE], Note::encode);
    OpenOptions::new().write(true).open(path)?.write_all_at(&bytes, u64::from(peer) * NOTE as u64)
}

/// Returns all notes on a board, with the process that each is about.
///
/// # Errors
/// The operating system's.
pub fn read(path: &Path) -> io::Result<Vec<(u32, Note)>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut File::open(path)?, &mut bytes)?;
    let notes = bytes.as_chunks::<NOTE>().0.iter().enumerate();
    Ok(notes.filter_map(|(peer, bytes)| Some((peer as u32, Note::decode(bytes)?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_posted_and_can_be_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("board");
        make(&path, 5).expect("a board");
        let length = std::fs::metadata(&path).expect("the board").len();
        let label = Label { from: 3, to: 0, number: u64::MAX - 1 };
        for fault in [
            Fault::Unwritten,
            Fault::Unread,
            Fault::Nonsense,
            Fault::NoFolder,
            Fault::Unsent,
            Fault::Undelivered,
            Fault::Unreachable,
        ] {
            let note = Note { fault, errno: 28, label };
            post(&path, 3, Some(&note)).expect("posting");
            assert_eq!(read(&path).expect("the board"), [(3, note)]);
        }
        assert_eq!(std::fs::metadata(&path).expect("the board").len(), length, "a note takes no room");
        post(&path, 3, None).expect("taking it away");
        assert_eq!(read(&path).expect("the board"), []);
    }

    #[test]
    fn a_note_names_the_file_and_what_the_system_says() {
        let note = Note { fault: Fault::Unwritten, errno: 28, label: Label { from: 3, to: 0, number: 7 } };
        let text = note.text(&Folders::below(Path::new("/scratch/job")));
        assert_eq!(
            text,
            "the message file /scratch/job/0/3/7.msg could not be written: No space left on device (os error 28)"
        );
    }
}
