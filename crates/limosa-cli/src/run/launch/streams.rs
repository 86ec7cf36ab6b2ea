//! The output of the ranks, and what the launcher says between their lines.

use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::Job;
use crate::run::outcome::Cause;

impl Job<'_> {
    pub(super) fn read_stream(&mut self, index: usize, kind: usize) {
        let mut buffer = [0u8; 65536];
        let Some(fd) = &self.ranks[index].streams[kind] else { return };
        match rustix::io::read(fd, &mut buffer) {
            Ok(n) if n > 0 => self.take_output(index, kind, &buffer[..n]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => self.end_stream(index, kind),
        }
    }

    /// A rank has written this.
    pub(super) fn take_output(&mut self, index: usize, kind: usize, bytes: &[u8]) {
        let failed = self.files.as_mut().and_then(|files| files.write(index, kind, bytes).err());
        if self.files.as_ref().is_none_or(|files| files.copy) {
            let (lines, sink) = &mut self.sinks[self.route[kind]];
            let stream = lines.stream(index, kind);
            let mut out = Vec::new();
            lines.push(stream, bytes, Instant::now(), &mut out);
            sink.write(out);
        }
        if let Some(why) = failed {
            self.end(Cause::OutputFailed(why));
        }
    }

    /// A stream of a rank has ended, or is not read any more.
    pub(super) fn end_stream(&mut self, index: usize, kind: usize) {
        let (lines, sink) = &mut self.sinks[self.route[kind]];
        let mut out = Vec::new();
        let stream = lines.stream(index, kind);
        lines.end(stream, &mut out);
        sink.write(out);
        self.ranks[index].streams[kind] = None;
        self.ranks[index].open_there[kind] = false;
    }

    /// Reads what an ended rank has left in its pipes.
    pub(super) fn drain_rank(&mut self, index: usize) {
        for kind in 0..2 {
            // A pipe usually holds 64 KiB. A process that writes faster than this reads is not the rank that has ended.
            for _ in 0..32 {
                let Some(fd) = &self.ranks[index].streams[kind] else { break };
                let mut poll = [PollFd::new(fd, PollFlags::IN)];
                if !matches!(rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1)) {
                    break;
                }
                self.read_stream(index, kind);
            }
        }
    }

    /// Prints a message of the launcher on stderr, between lines of the ranks.
    pub(super) fn say(&mut self, text: &str) {
        let (lines, sink) = &mut self.sinks[self.route[1]];
        let mut out = Vec::new();
        lines.message(text, &mut out);
        sink.write(out);
    }
}
