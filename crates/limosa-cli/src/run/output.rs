//! Output of the ranks: lines in, lines out.
//!
//! - [`Lines`] (pure) cuts what ranks write into lines, so that lines of different ranks never mix, and puts tags
//!   before them;
//! - [`Sink`] is our stdout or stderr with a thread that writes to it, so that a reader who pauses never stops the
//!   launcher itself. The thread is started by the first write: before, it would take a processor from ranks that
//!   initialise.
//!
//! An unfinished line is held until it is finished, its stream ends, or it is [`LONG`]; on a terminal, or with one rank
//! only, just for a moment, because it may be a prompt or a progress bar. If another rank writes in the middle of a
//! line that was shown early, a line break comes first.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// An unfinished line longer than this is shown in parts.
const LONG: usize = 64 * 1024;
/// How long an unfinished line is held on a terminal or with one rank.
pub const PROMPT_DELAY: Duration = Duration::from_millis(50);
/// No more is read from ranks while this much is waiting to be written.
const QUEUE_LIMIT: usize = 1 << 20;

/// The streams of all ranks that go to one sink, cut into lines.
pub struct Lines {
    ranks: usize,
    streams: Vec<Stream>,
    tagged: bool,
    eager: bool,
    /// The stream whose unfinished line has been shown in part.
    open: Option<usize>,
}

#[derive(Clone, Default)]
struct Stream {
    pending: Vec<u8>,
    since: Option<Instant>,
}

impl Lines {
    /// For `ranks` ranks with up to two streams each; stream `s` is one of rank `s % ranks`. `tagged`: begin each line
    /// with `[rank]`. `eager`: do not hold unfinished lines for long.
    pub fn new(ranks: usize, tagged: bool, eager: bool) -> Lines {
        Lines { ranks, streams: vec![Stream::default(); 2 * ranks], tagged, eager, open: None }
    }

    /// The stream of a rank's stdout (`kind` 0) or stderr (1). Ranks may be added: their streams follow the first ones.
    pub fn stream(&mut self, rank: usize, kind: usize) -> usize {
        if rank < self.ranks {
            return kind * self.ranks + rank;
        }
        let index = 2 * rank + kind;
        if index >= self.streams.len() {
            self.streams.resize(index + 1, Stream::default());
        }
        index
    }

    fn rank_of(&self, index: usize) -> usize {
        if index < 2 * self.ranks { index % self.ranks } else { index / 2 }
    }

    /// Takes what was written to `stream` and appends to `out` what is to be shown now.
    pub fn push(&mut self, index: usize, bytes: &[u8], now: Instant, out: &mut Vec<u8>) {
        let stream = &mut self.streams[index];
        stream.pending.extend_from_slice(bytes);
        stream.since.get_or_insert(now);
        let searched = stream.pending.len() - bytes.len();
        let last_break = stream.pending[searched..].iter().rposition(|b| *b == b'\n');
        if let Some(at) = last_break {
            let rest = stream.pending.split_off(searched + at + 1);
            let lines = std::mem::replace(&mut stream.pending, rest);
            stream.since = (!stream.pending.is_empty()).then_some(now);
            self.show(index, &lines, out);
        }
        if self.streams[index].pending.len() > LONG {
            self.show_part(index, out);
        }
    }

    /// Appends unfinished lines that have waited long enough. Returns when to ask again.
    pub fn tick(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Instant> {
        if !self.eager {
            return None;
        }
        let mut next: Option<Instant> = None;
        for index in 0..self.streams.len() {
            let Some(since) = self.streams[index].since else { continue };
            let due = since + PROMPT_DELAY;
            if due <= now {
                self.show_part(index, out);
            } else {
                next = Some(next.map_or(due, |n| n.min(due)));
            }
        }
        next
    }

    /// This stream has ended: appends what is left of it.
    pub fn end(&mut self, index: usize, out: &mut Vec<u8>) {
        if !self.streams[index].pending.is_empty() {
            self.show_part(index, out);
        }
    }

    /// Appends a message of the launcher's own.
    pub fn message(&mut self, text: &str, out: &mut Vec<u8>) {
        self.close_line(out);
        out.extend_from_slice(text.as_bytes());
    }

    fn show_part(&mut self, index: usize, out: &mut Vec<u8>) {
        let stream = &mut self.streams[index];
        stream.since = None;
        let part = std::mem::take(&mut stream.pending);
        self.show(index, &part, out);
        self.open = Some(index);
    }

    /// Shows bytes that begin at the start of a line, or go on with the line that is open.
    fn show(&mut self, index: usize, bytes: &[u8], out: &mut Vec<u8>) {
        let continues = self.open == Some(index);
        if !continues {
            self.close_line(out);
        }
        self.open = None;
        if !self.tagged {
            out.extend_from_slice(bytes);
            return;
        }
        for (i, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            if i > 0 || !continues {
                out.extend_from_slice(format!("[{}] ", self.rank_of(index)).as_bytes());
            }
            out.extend_from_slice(line);
        }
    }

    fn close_line(&mut self, out: &mut Vec<u8>) {
        if self.open.take().is_some() {
            out.push(b'\n');
        }
    }
}

/// Our stdout or stderr.
pub struct Sink {
    shared: Arc<Shared>,
    writer: Writer,
}

/// The thread that writes.
enum Writer {
    /// Not yet needed: where it will write, and whom it will wake.
    Idle(OwnedFd, Box<dyn Fn() + Send>),
    Running(JoinHandle<()>),
    /// It could not be started, or has ended.
    None,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
    error: Option<io::ErrorKind>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink {
    /// Will write to `fd`, and call `wake` when there is room again, and when writing has failed.
    pub fn new(fd: OwnedFd, wake: impl Fn() + Send + 'static) -> Sink {
        Sink {
            shared: Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() }),
            writer: Writer::Idle(fd, Box::new(wake)),
        }
    }

    /// Has `bytes` written. Never blocks.
    pub fn write(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        if matches!(self.writer, Writer::Idle(..)) {
            self.start();
        }
        let mut queue = self.shared.lock();
        if queue.error.is_none() {
            queue.bytes += bytes.len();
            queue.parts.push_back(bytes);
            self.shared.changed.notify_one();
        }
    }

    fn start(&mut self) {
        let Writer::Idle(fd, wake) = std::mem::replace(&mut self.writer, Writer::None) else { return };
        let theirs = self.shared.clone();
        let thread = std::thread::Builder::new().name("limosa-out".into());
        match thread.spawn(move || write_loop(fd.into(), &theirs, wake)) {
            Ok(writer) => self.writer = Writer::Running(writer),
            Err(error) => self.shared.lock().error = Some(error.kind()),
        }
    }

    /// True if so much is waiting that no more should be read.
    pub fn is_full(&self) -> bool {
        self.shared.lock().bytes > QUEUE_LIMIT
    }

    /// Why writing has failed, if it has.
    pub fn error(&self) -> Option<io::ErrorKind> {
        self.shared.lock().error
    }

    /// Waits until everything is written.
    pub fn finish(mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        if let Writer::Running(writer) = std::mem::replace(&mut self.writer, Writer::None) {
            let _ = writer.join();
        }
    }
}

fn write_loop(mut file: std::fs::File, shared: &Shared, wake: impl Fn()) {
    loop {
        let part = {
            let mut queue = shared.lock();
            loop {
                if let Some(part) = queue.parts.pop_front() {
                    break part;
                }
                if queue.closed {
                    return;
                }
                queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let result = write_all(&mut file, &part);
        let mut queue = shared.lock();
        let was_full = queue.bytes > QUEUE_LIMIT;
        queue.bytes -= part.len();
        if let Err(error) = result {
            *queue = Queue { error: Some(error.kind()), closed: queue.closed, ..Queue::default() };
            drop(queue);
            wake();
            return;
        }
        if was_full && queue.bytes <= QUEUE_LIMIT {
            drop(queue);
            wake();
        }
    }
}

/// As `write_all`, also for a file that another process has made non-blocking.
fn write_all(file: &mut std::fs::File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut wait = [rustix::event::PollFd::new(&*file, rustix::event::PollFlags::OUT)];
                let _ = rustix::event::poll(&mut wait, None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True if stdout and stderr are the same file, so that lines of both must not mix.
pub fn streams_are_one() -> bool {
    match (rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())) {
        (Ok(out), Ok(err)) => (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino),
        _ => false,
    }
}

/// True if the stream is a terminal.
pub fn is_terminal(stderr: bool) -> bool {
    if stderr { io::stderr().is_terminal() } else { io::stdout().is_terminal() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(out: &[u8]) -> &str {
        std::str::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_of_different_ranks_do_not_mix() {
        let (mut lines, mut out, now) = (Lines::new(2, false, false), Vec::new(), Instant::now());
        lines.push(0, b"one ", now, &mut out);
        lines.push(1, b"two\nthr", now, &mut out);
        lines.push(0, b"more\n", now, &mut out);
        assert_eq!(lines.tick(now + Duration::from_secs(9), &mut out), None);
        lines.end(1, &mut out);
        assert_eq!(text(&out), "two\none more\nthr");
    }

    #[test]
    fn tags_stand_before_each_line_once() {
        let (mut lines, mut out, now) = (Lines::new(3, true, true), Vec::new(), Instant::now());
        lines.push(2, b"a\n\nb\nc", now, &mut out);
        lines.tick(now + PROMPT_DELAY, &mut out);
        lines.push(2, b"d\n", now, &mut out);
        assert_eq!(text(&out), "[2] a\n[2] \n[2] b\n[2] cd\n");
    }

    #[test]
    fn a_prompt_is_shown_after_a_moment_and_a_foreign_line_starts_afresh() {
        let (mut lines, mut out, now) = (Lines::new(2, false, true), Vec::new(), Instant::now());
        lines.push(0, b"name? ", now, &mut out);
        assert_eq!(lines.tick(now, &mut out), Some(now + PROMPT_DELAY));
        assert_eq!(text(&out), "");
        assert_eq!(lines.tick(now + PROMPT_DELAY, &mut out), None);
        assert_eq!(text(&out), "name? ");
        lines.push(1, b"other\n", now, &mut out);
        lines.push(0, b"bob\n", now, &mut out);
        assert_eq!(text(&out), "name? \nother\nbob\n");
    }

    #[test]
    fn a_very_long_line_does_not_fill_the_memory() {
        let (mut lines, mut out) = (Lines::new(1, false, false), Vec::new());
        for _ in 0..100 {
            lines.push(0, &[b'x'; 4096], Instant::now(), &mut out);
        }
        assert!(out.len() > 300_000);
    }

    proptest! {
        #[test]
        fn every_byte_comes_out_in_order_and_lines_stay_whole(
            writes in proptest::collection::vec(
                (
                    0usize..3,
                    proptest::collection::vec(
                        prop_oneof![4 => 97u8..100, 1 => Just(b'\n'), 1 => Just(255u8)],
                        0..12,
                    ),
                ),
                0..40,
            ),
        ) {
            let (mut lines, mut out, now) = (Lines::new(3, true, false), Vec::new(), Instant::now());
            let mut sent: [Vec<u8>; 3] = Default::default();
            for (rank, bytes) in &writes {
                sent[*rank].extend_from_slice(bytes);
                lines.push(*rank, bytes, now, &mut out);
            }
            for stream in &mut sent {
                stream.push(b'\n');
            }
            for rank in 0..3 {
                lines.push(rank, b"\n", now, &mut out);
                lines.end(rank, &mut out);
            }
            for (rank, stream) in sent.iter().enumerate() {
                let tag = format!("[{rank}] ").into_bytes();
                let got: Vec<u8> = out
                    .split_inclusive(|b| *b == b'\n')
                    .filter(|l| l.starts_with(&tag))
                    .flat_map(|l| l[tag.len()..].to_vec())
                    .collect();
                prop_assert_eq!(&got, stream);
            }
        }
    }
}
