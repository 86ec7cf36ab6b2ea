//! The files that a process reads from another one.

use super::format::{self, Label};
use super::notices::Watch;
use super::{Folders, Trouble, suffixed};
use crate::{DeviceError, Meta, Peer};
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

/// What comes from one sender.
pub struct Inbox {
    /// The next file.
    next: Label,
    folder: PathBuf,
    /// Tells when a file comes.
    pub watch: Option<Watch>,
    /// There may be one.
    pub is_due: bool,
}

impl Inbox {
    /// From one process to another.
    pub fn new(folders: &Folders, from: u32, to: u32, watch: Option<Watch>) -> Inbox {
        Inbox { next: Label { from, to, number: 0 }, folder: folders.pair(from, to), watch, is_due: true }
    }

    /// The sender.
    pub fn from(&self) -> Peer {
        self.next.from
    }

    /// Takes the next file, if it is there, and hands its packets over; true if it was. `kept`: where to put it
    /// afterwards; it is deleted otherwise.
    ///
    /// # Errors
    /// The file cannot be read, or makes no sense.
    pub fn take(
        &mut self,
        buffer: &mut Vec<u8>,
        kept: Option<&Folders>,
        sink: &mut dyn FnMut(&Meta, &[u8]),
    ) -> Result<bool, Failed> {
        let lock = suffixed(&self.folder, self.next.number, "lock");
        if !lock.exists() {
            self.is_due = false;
            return Ok(false);
        }
        let message = suffixed(&self.folder, self.next.number, "msg");
        buffer.clear();
        let read = File::open(&message).and_then(|mut file| file.read_to_end(buffer));
        if let Err(cause) = read {
            return Err(Failed::Trouble(Trouble { path: message, cause }));
        }
        // The sender may write the next one while the packets of this one are handled.
        let put_away = match kept {
            Some(folders) => fs::rename(&message, folders.kept(&self.next)),
            None => fs::remove_file(&message),
        };
        if let Err(cause) = put_away.and_then(|()| fs::remove_file(&lock)) {
            return Err(Failed::Trouble(Trouble { path: message, cause }));
        }
        let expected = self.next;
        self.next.number += 1;
        let (label, packets) = format::open(buffer).map_err(Failed::Nonsense)?;
        if label != expected {
            return Err(Failed::Nonsense("a message file with another name than it says"));
        }
        for packet in packets {
            let (meta, data) = packet.map_err(Failed::Nonsense)?;
            sink(&meta, data);
        }
        Ok(true)
    }
}

/// Why a file could not be taken.
pub enum Failed {
    /// The system's reason.
    Trouble(Trouble),
    /// What is wrong with its bytes.
    Nonsense(&'static str),
}

impl Failed {
    /// As the device's error.
    pub fn of(self, peer: Peer) -> DeviceError {
        match self {
            Failed::Trouble(Trouble { path, cause }) => DeviceError::Storage { peer, path, cause },
            Failed::Nonsense(what) => DeviceError::Corrupt { peer, what },
        }
    }
}
