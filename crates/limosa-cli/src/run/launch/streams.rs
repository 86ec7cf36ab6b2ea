//! The output of the ranks, and what the launcher says between their lines.

use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::Job;
use crate::run::outcome::Cause;
use crate::run::output::Shown;

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
        if kind == 1 && self.missing_library.is_none() {
            self.missing_library = missing_mpi_library(bytes);
        }
        let failed = self.files.as_mut().and_then(|files| files.write(index, kind, bytes).err());
        if self.files.as_ref().is_none_or(|files| files.copy) {
            let (lines, sink) = &mut self.sinks[self.route[kind]];
            let stream = lines.stream(index, kind);
            let mut out = Shown::default();
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
        let mut out = Shown::default();
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
        let mut out = Shown::default();
        lines.message(text, &mut out);
        sink.write(out);
    }
}

/// The MPI library that the dynamic linker has not found, if it says so here. None of Limosa's is called like that.
fn missing_mpi_library(said: &[u8]) -> Option<String> {
    const REFUSAL: &[u8] = b": cannot open shared object file";
    let end = said.windows(REFUSAL.len()).position(|words| words == REFUSAL)?;
    let start = said[..end].iter().rposition(|byte| byte.is_ascii_whitespace()).map_or(0, |at| at + 1);
    let name = std::str::from_utf8(&said[start..end]).ok()?;
    ["libmpi.so", "libmpich.so", "libmpi_mt.so", "libmpi_cxx.so", "libmpicxx.so", "libmpi_usempi", "libmpifort.so"]
        .iter()
        .any(|known| name.starts_with(known))
        .then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::missing_mpi_library;

    #[test]
    fn a_library_that_is_not_found_is_taken_from_the_linkers_words() {
        let said = |name: &str| {
            format!("x\n./a: error while loading shared libraries: {name}: cannot open shared object file: No")
        };
        assert_eq!(missing_mpi_library(said("libmpi.so.12").as_bytes()).as_deref(), Some("libmpi.so.12"));
        let python = b"ImportError: libmpich.so.12: cannot open shared object file: No such file or directory";
        assert_eq!(missing_mpi_library(python).as_deref(), Some("libmpich.so.12"));
        assert_eq!(missing_mpi_library(said("libz.so.1").as_bytes()), None);
        assert_eq!(missing_mpi_library(b": cannot open shared object file"), None);
    }
}
