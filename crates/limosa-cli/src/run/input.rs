//! Standard input of the ranks.
//!
//! One rank reads our standard input directly, unless that is a terminal: a rank is not in the terminal's foreground
//! process group, so the launcher reads for it. A debugger is in that group, and reads the terminal itself. Copies for
//! all ranks go through the launcher too, and what ranks of other hosts read: their agents get a part when they have
//! handed out the one before. Everyone else reads /dev/null.

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
    /// Whether there are readers on other hosts, and how many of these hosts have not handed out the last part.
    reads_elsewhere: bool,
    under_way: usize,
}

/// What was read.
pub enum Chunk {
    /// Nothing, or it is for ranks of this host only.
    None,
    /// This, which ranks of other hosts get too.
    Bytes(Vec<u8>),
    /// There is no more.
    End,
}

struct Reader {
    rank: u32,
    pipe: OwnedFd,
    /// Bytes of the buffer that this rank has got.
    got: usize,
}

impl Input {
    /// For the ranks that `who` names. `is_elsewhere`: whether a rank, or any rank, is on another host. `is_debugged`:
    /// the rank reads by itself in any case.
    pub fn new(who: Stdin, is_debugged: bool, is_elsewhere: impl Fn(Option<u32>) -> bool) -> Input {
        let reads_elsewhere = match who {
            Stdin::Rank(rank) => is_elsewhere(Some(rank)),
            Stdin::All => is_elsewhere(None),
            Stdin::None => false,
        };
        let is_read = matches!(who, Stdin::Rank(_));
        let forward = who == Stdin::All || reads_elsewhere || (is_read && !is_debugged && io::stdin().is_terminal());
        let (buffer, readers) = (Vec::new(), Vec::new());
        Input { who, forward, ended: !forward, buffer, readers, reads_elsewhere, under_way: 0 }
    }

    /// Whether a rank reads standard input.
    pub fn is_for(&self, rank: u32) -> bool {
        self.who == Stdin::All || self.who == Stdin::Rank(rank)
    }

    /// The last part was sent to a host; it has something to hand out.
    pub fn sent(&mut self, has_data: bool) {
        self.under_way += usize::from(has_data);
    }

    /// A host has handed it out.
    pub fn taken(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// A host is lost; `waited`: it had readers.
    pub fn lose(&mut self, waited: bool) {
        if waited {
            self.taken();
        }
    }

    /// What `rank` gets as its standard input.
    pub fn stdin_of(&mut self, rank: u32) -> io::Result<Stdio> {
        if !self.is_for(rank) {
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
        let is_wanted = !self.readers.is_empty() || self.reads_elsewhere;
        !self.ended && is_wanted && self.buffer.is_empty() && self.under_way == 0 && is_foreground()
    }

    /// Reads once. At the end, the readers see the end too.
    pub fn read(&mut self) -> Chunk {
        let mut chunk = vec![0u8; 65536];
        match rustix::io::read(io::stdin(), &mut chunk) {
            Ok(n) if n > 0 => {
                chunk.truncate(n);
                let copy = if self.reads_elsewhere { Chunk::Bytes(chunk.clone()) } else { Chunk::None };
                if !self.readers.is_empty() {
                    self.buffer = chunk;
                    self.write();
                }
                copy
            }
            Err(Errno::INTR | Errno::AGAIN) => Chunk::None,
            Ok(_) | Err(_) => {
                self.ended = true;
                self.readers.clear();
                if self.reads_elsewhere { Chunk::End } else { Chunk::None }
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
