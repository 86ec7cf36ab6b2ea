//! Standard input of the ranks.
//!
//! One rank reads our standard input directly, unless that is a terminal: a rank is not in the terminal's foreground
//! process group, so the launcher reads for it. Copies for all ranks go through the launcher too. Everyone else reads
//! /dev/null.

use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::options::Stdin;

/// How standard input reaches the ranks.
pub struct Input {
    who: Stdin,
    forward: bool,
    ended: bool,
    buffer: Vec<u8>,
    readers: Vec<Reader>,
}

struct Reader {
    rank: u32,
    pipe: OwnedFd,
    /// Bytes of the buffer that this rank has got.
    got: usize,
}

impl Input {
    /// For the ranks that `who` names.
    pub fn new(who: Stdin) -> Input {
        let forward = who == Stdin::All || (matches!(who, Stdin::Rank(_)) && io::stdin().is_terminal());
        Input { who, forward, ended: !forward, buffer: Vec::new(), readers: Vec::new() }
    }

    /// What `rank` gets as its standard input.
    pub fn stdin_of(&mut self, rank: u32) -> io::Result<Stdio> {
        if !(self.who == Stdin::All || self.who == Stdin::Rank(rank)) {
            return Ok(Stdio::null());
        }
        if !self.forward {
            return Ok(Stdio::inherit());
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        self.readers.push(Reader { rank, pipe: write, got: 0 });
        Ok(read.into())
    }

    /// True if more should be read: all ranks have received what was read before, and the terminal may be read.
    pub fn wants_read(&self) -> bool {
        !self.ended && !self.readers.is_empty() && self.buffer.is_empty() && is_foreground()
    }

    /// Reads once. At the end, the readers see the end too.
    pub fn read(&mut self) {
        let mut chunk = vec![0u8; 65536];
        match rustix::io::read(io::stdin(), &mut chunk) {
            Ok(n) if n > 0 => {
                chunk.truncate(n);
                self.buffer = chunk;
                self.write();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => {
                self.ended = true;
                self.readers.clear();
            }
        }
    }

    /// The pipes that have not received everything yet.
    pub fn waiting(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.readers.iter().filter(|r| r.got < self.buffer.len()).map(|r| PollFd::new(&r.pipe, PollFlags::OUT))
    }

    /// Writes as much as the pipes take. Ranks that have closed their standard input are removed.
    pub fn write(&mut self) {
        let buffer = &self.buffer;
        self.readers.retain_mut(|reader| {
            while reader.got < buffer.len() {
                match rustix::io::write(&reader.pipe, &buffer[reader.got..]) {
                    Ok(n) => reader.got += n,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return true,
                    Err(_) => return false,
                }
            }
            true
        });
        if self.readers.iter().all(|reader| reader.got == self.buffer.len()) {
            self.buffer.clear();
            self.readers.iter_mut().for_each(|reader| reader.got = 0);
        }
    }

    /// `rank` has ended.
    pub fn forget(&mut self, rank: u32) {
        self.readers.retain(|reader| reader.rank != rank);
        self.write();
    }
}

/// True unless stdin is a terminal that belongs to another process group at the moment.
fn is_foreground() -> bool {
    match rustix::termios::tcgetpgrp(io::stdin()) {
        Ok(group) => group == rustix::process::getpgrp(),
        Err(_) => true,
    }
}
