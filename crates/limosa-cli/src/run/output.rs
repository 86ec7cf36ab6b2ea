//! Output of the ranks: lines in, lines out.
//!
//! - [`Lines`] (pure) cuts what ranks write into lines, so that lines of different ranks never mix, and puts tags
//!   before them;
//! - [`Sink`] is our stdout or stderr with a thread that writes to it, so that a reader that pauses never stops the
//!   launcher itself. The thread is started by the first write: before, it would take a processor from ranks that
//!   initialise.
//!
//! An unfinished line is held until it is finished or its stream ends, however long it is: beyond its share of [`HELD`]
//! in a file ([`Held`]). On a terminal, or with one rank only, it is held just for a moment, because it may be a prompt
//! or a progress bar. If another rank writes in the middle of a line that was shown early, a line break comes first.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Memory for the unfinished lines of all streams together.
const HELD: usize = 64 << 20;
/// Memory for an unfinished line of a single rank, and of any rank if there are many.
const LONG: usize = 64 * 1024;
/// No prompt is longer than this: several ranks on a terminal finish such a line if they only go on writing.
const PROMPT: u64 = 4096;
/// How long an unfinished line is held on a terminal or with one rank.
pub const PROMPT_DELAY: Duration = Duration::from_millis(50);
/// No more is read from ranks while this much is waiting to be written.
const QUEUE_LIMIT: u64 = 1 << 20;

/// The streams of all ranks that go to one sink, cut into lines.
pub struct Lines {
    ranks: usize,
    streams: Vec<Stream>,
    tagged: bool,
    eager: bool,
    /// The stream whose unfinished line has been shown in part.
    open: Option<usize>,
}

/// An unfinished line.
#[derive(Default)]
struct Stream {
    /// Its beginning, if that is too long for the memory.
    held: Option<Held>,
    pending: Vec<u8>,
    since: Option<Instant>,
}

impl Stream {
    fn len(&self) -> u64 {
        self.held.as_ref().map_or(0, |held| held.len) + self.pending.len() as u64
    }

    /// Moves the bytes in memory to the file. They stay in memory if no file can be written.
    fn spill(&mut self) {
        let Some(mut held) = self.held.take().or_else(|| Held::new().ok()) else { return };
        if held.append(&self.pending).is_ok() {
            self.pending = Vec::new();
        }
        self.held = Some(held).filter(|held| held.len > 0);
    }
}

/// The beginning of a long line, in a file that has no name.
struct Held {
    file: File,
    len: u64,
}

impl Held {
    fn new() -> io::Result<Held> {
        let folder = std::env::temp_dir();
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        let unnamed = options.clone().custom_flags(libc::O_TMPFILE).open(&folder);
        let file = unnamed.or_else(|_| {
            let path = folder.join(format!("limosa-line-{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(path)?;
            Ok::<File, io::Error>(file)
        })?;
        Ok(Held { file, len: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Output in the order in which it is to be written.
#[derive(Default)]
pub struct Shown(Vec<Part>);

enum Part {
    Bytes(Vec<u8>),
    Held(Held),
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::Held(held) => held.len,
        }
    }

    fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            Part::Bytes(bytes) => write_all(file, bytes),
            Part::Held(held) => copy(held, file),
        }
    }
}

impl Shown {
    fn add(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.0.push(Part::Bytes(bytes.to_vec())),
        }
    }

    /// Returns all of it, for tests.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        for part in &self.0 {
            match part {
                Part::Bytes(bytes) => all.extend_from_slice(bytes),
                Part::Held(held) => {
                    let begin = all.len();
                    all.resize(begin + held.len as usize, 0);
                    held.file.read_exact_at(&mut all[begin..], 0)?;
                }
            }
        }
        Ok(all)
    }
}

impl Lines {
    /// For `ranks` ranks with up to two streams each; stream `s` is one of rank `s % ranks`. `tagged`: begin each line
    /// with `[rank]`. `eager`: do not hold unfinished lines for long.
    pub fn new(ranks: usize, tagged: bool, eager: bool) -> Lines {
        let streams = std::iter::repeat_with(Stream::default).take(2 * ranks).collect();
        Lines { ranks, streams, tagged, eager, open: None }
    }

    /// The stream of a rank's stdout (`kind` 0) or stderr (1). Ranks may be added: their streams follow the first ones.
    pub fn stream(&mut self, rank: usize, kind: usize) -> usize {
        if rank < self.ranks {
            return kind * self.ranks + rank;
        }
        let index = 2 * rank + kind;
        if index >= self.streams.len() {
            self.streams.resize_with(index + 1, Stream::default);
        }
        index
    }

    fn rank_of(&self, index: usize) -> usize {
        if index < 2 * self.ranks { index % self.ranks } else { index / 2 }
    }

    /// True while there is only one rank: nothing but its own output can come between two parts of a line.
    fn is_alone(&self) -> bool {
        self.streams.len() == 2
    }

    /// Takes what was written to `stream` and appends to `out` what is to be shown now.
    pub fn push(&mut self, index: usize, bytes: &[u8], now: Instant, out: &mut Shown) {
        let limit = (HELD / self.streams.len()).max(LONG);
        let (is_alone, is_eager) = (self.is_alone(), self.eager);
        let stream = &mut self.streams[index];
        stream.pending.extend_from_slice(bytes);
        stream.since.get_or_insert(now);
        let searched = stream.pending.len() - bytes.len();
        let last_break = stream.pending[searched..].iter().rposition(|b| *b == b'\n');
        if let Some(at) = last_break {
            let rest = stream.pending.split_off(searched + at + 1);
            let lines = std::mem::replace(&mut stream.pending, rest);
            stream.since = (!stream.pending.is_empty()).then_some(now);
            let held = stream.held.take();
            self.show(index, held, &lines, out);
        }
        let stream = &mut self.streams[index];
        if is_alone && is_eager {
            if stream.pending.len() > LONG {
                self.show_part(index, out);
            }
            return;
        }
        if stream.len() > PROMPT {
            stream.since = Some(now);
        }
        if stream.pending.len() > limit {
            stream.spill();
        }
    }

    /// Appends unfinished lines that have waited long enough. Returns when to ask again.
    pub fn tick(&mut self, now: Instant, out: &mut Shown) -> Option<Instant> {
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
    pub fn end(&mut self, index: usize, out: &mut Shown) {
        if self.streams[index].len() > 0 {
            self.show_part(index, out);
        }
    }

    /// Appends a message of the launcher's own.
    pub fn message(&mut self, text: &str, out: &mut Shown) {
        self.close_line(out);
        out.add(text.as_bytes());
    }

    fn show_part(&mut self, index: usize, out: &mut Shown) {
        let Stream { held, pending, .. } = std::mem::take(&mut self.streams[index]);
        self.show(index, held, &pending, out);
        self.open = Some(index);
    }

    /// Shows the beginning of a line and more bytes, which begin at the start of a line or go on with the one that is
    /// open.
    fn show(&mut self, index: usize, held: Option<Held>, bytes: &[u8], out: &mut Shown) {
        // The streams of a single rank mix as they do without a launcher.
        let is_own = |open| open == index || (self.is_alone() && !self.tagged);
        let continues = self.open.is_some_and(is_own);
        if !continues {
            self.close_line(out);
        }
        self.open = None;
        let tag = self.tagged.then(|| format!("[{}] ", self.rank_of(index)));
        if let Some(tag) = tag.as_ref().filter(|_| !continues) {
            out.add(tag.as_bytes());
        }
        out.0.extend(held.map(Part::Held));
        let Some(tag) = tag else { return out.add(bytes) };
        for (i, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            if i > 0 {
                out.add(tag.as_bytes());
            }
            out.add(line);
        }
    }

    fn close_line(&mut self, out: &mut Shown) {
        if self.open.take().is_some() {
            out.add(b"\n");
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
    /// Not yet needed: where it will write, and what it will wake.
    Idle(OwnedFd, Box<dyn Fn() + Send>),
    Running(JoinHandle<()>),
    /// The system has refused the thread: a reader that pauses stops the launcher.
    Direct(File),
    /// It has ended.
    None,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    parts: VecDeque<Part>,
    bytes: u64,
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

    /// Has this written. Never blocks.
    pub fn write(&mut self, shown: Shown) {
        if shown.0.iter().all(|part| part.len() == 0) {
            return;
        }
        if matches!(self.writer, Writer::Idle(..)) {
            self.start();
        }
        let mut queue = self.shared.lock();
        if let Writer::Direct(file) = &mut self.writer {
            let result = shown.0.iter().try_for_each(|part| part.write_to(file));
            queue.error = queue.error.or(result.err().map(|error| error.kind()));
        } else if queue.error.is_none() {
            queue.bytes += shown.0.iter().map(Part::len).sum::<u64>();
            queue.parts.extend(shown.0);
            self.shared.changed.notify_one();
        }
    }

    fn start(&mut self) {
        let Writer::Idle(fd, wake) = std::mem::replace(&mut self.writer, Writer::None) else { return };
        let (theirs, copy) = (self.shared.clone(), fd.try_clone());
        let thread = std::thread::Builder::new().name("limosa-out".into());
        match (thread.spawn(move || write_loop(fd.into(), &theirs, wake)), copy) {
            (Ok(writer), _) => self.writer = Writer::Running(writer),
            (Err(_), Ok(copy)) => self.writer = Writer::Direct(copy.into()),
            (Err(error), Err(_)) => self.shared.lock().error = Some(error.kind()),
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

    /// Waits until everything is written. Returns why writing has failed, if it has.
    pub fn finish(mut self) -> Option<io::ErrorKind> {
        self.shared.lock().closed = true;
        self.shared.changed.notify_one();
        if let Writer::Running(writer) = std::mem::replace(&mut self.writer, Writer::None) {
            let _ = writer.join();
        }
        self.error()
    }
}

fn write_loop(mut file: File, shared: &Shared, wake: impl Fn()) {
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
        let result = part.write_to(&mut file);
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

/// Writes the beginning of a long line.
fn copy(held: &Held, file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0u8; LONG];
    let mut at = 0;
    while at < held.len {
        let most = buffer.len().min((held.len - at) as usize);
        held.file.read_exact_at(&mut buffer[..most], at)?;
        write_all(file, &buffer[..most])?;
        at += most as u64;
    }
    Ok(())
}

/// As `write_all`, also for a file that another process has made non-blocking.
fn write_all(file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
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

    fn text(out: &Shown) -> String {
        String::from_utf8(out.bytes().unwrap()).unwrap()
    }

    #[test]
    fn lines_of_different_ranks_do_not_mix() {
        let (mut lines, mut out, now) = (Lines::new(2, false, false), Shown::default(), Instant::now());
        lines.push(0, b"one ", now, &mut out);
        lines.push(1, b"two\nthr", now, &mut out);
        lines.push(0, b"more\n", now, &mut out);
        assert_eq!(lines.tick(now + Duration::from_secs(9), &mut out), None);
        lines.end(1, &mut out);
        assert_eq!(text(&out), "two\none more\nthr");
    }

    #[test]
    fn tags_stand_before_each_line_once() {
        let (mut lines, mut out, now) = (Lines::new(3, true, true), Shown::default(), Instant::now());
        lines.push(2, b"a\n\nb\nc", now, &mut out);
        lines.tick(now + PROMPT_DELAY, &mut out);
        lines.push(2, b"d\n", now, &mut out);
        assert_eq!(text(&out), "[2] a\n[2] \n[2] b\n[2] cd\n");
    }

    #[test]
    fn a_prompt_is_shown_after_a_moment_and_a_foreign_line_starts_afresh() {
        let (mut lines, mut out, now) = (Lines::new(2, false, true), Shown::default(), Instant::now());
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
    fn a_long_line_of_a_single_rank_is_shown_in_parts_and_unchanged() {
        let (mut lines, mut out, now) = (Lines::new(1, false, true), Shown::default(), Instant::now());
        for _ in 0..100 {
            lines.push(0, &[b'x'; 4096], now, &mut out);
        }
        assert!(out.bytes().unwrap().len() > 300_000);
        lines.push(1, b"e\n", now, &mut out);
        lines.push(0, b"\n", now, &mut out);
        let shown = text(&out);
        assert_eq!((shown.len(), shown.matches('\n').count()), (100 * 4096 + 3, 2));
    }

    #[test]
    fn long_lines_of_several_ranks_stay_whole_in_memory_and_in_files() {
        for (tagged, eager) in [(false, false), (true, false), (false, true)] {
            let (mut lines, mut out, mut now) = (Lines::new(2, tagged, eager), Shown::default(), Instant::now());
            let (part, rounds) = (vec![b'a'; 1 << 16], 400);
            for _ in 0..rounds {
                lines.push(0, &part, now, &mut out);
                now += PROMPT_DELAY / 2;
                lines.tick(now, &mut out);
                lines.push(1, b"b\n", now, &mut out);
                assert!(lines.streams[0].pending.len() <= HELD / 4, "the rest is in a file");
            }
            lines.push(0, b"end\nc", now, &mut out);
            lines.end(0, &mut out);
            let shown = text(&out);
            let long = shown.lines().find(|line| line.ends_with("end")).unwrap();
            let tag = if tagged { "[0] " } else { "" };
            assert_eq!(long.len(), tag.len() + rounds * part.len() + 3);
            assert!(long.starts_with(&format!("{tag}aaa")) && !long[tag.len()..].contains(['b', '[']));
            assert_eq!(shown.lines().count(), rounds + 2);
            assert!(shown.ends_with(&format!("end\n{tag}c")));
        }
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
            let (mut lines, mut out, now) = (Lines::new(3, true, false), Shown::default(), Instant::now());
            let mut sent: [Vec<u8>; 3] = Default::default();
            for (rank, written) in &writes {
                sent[*rank].extend_from_slice(written);
                lines.push(*rank, written, now, &mut out);
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
                let got: Vec<u8> = out.bytes().unwrap()
                    .split_inclusive(|b| *b == b'\n')
                    .filter(|l| l.starts_with(&tag))
                    .flat_map(|l| l[tag.len()..].to_vec())
                    .collect();
                prop_assert_eq!(&got, stream);
            }
        }
    }
}
