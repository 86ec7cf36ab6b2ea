//! A connection to the courier of another host. Nothing here waits.

use super::super::format::Label;
use super::frames::{self, Frame, GREETING, Kind};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Interval at which each side sends a sign of life.
const ALIVE: Duration = Duration::from_secs(2);
/// A connection counts as broken when nothing has come over it for so long.
const SILENCE: Duration = Duration::from_secs(15);
/// No further file is read while this much waits to be sent.
const ENOUGH: usize = 4 << 20;
/// Most that is read at once.
const CHUNK: usize = 1 << 18;

/// The connection.
pub struct Stream {
    from: OwnedFd,
    to: OwnedFd,
    /// Received bytes of an incomplete frame.
    come: Vec<u8>,
    /// Bytes to be sent; `sent` of them were.
    queue: Vec<u8>,
    sent: usize,
    /// Whether the other courier has answered.
    is_greeted: bool,
    heard: Instant,
    spoke: Instant,
}

impl Stream {
    /// Makes a stream over these descriptors; `calls`: the other courier was called and must greet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(from: OwnedFd, to: OwnedFd, calls: bool) -> io::Result<Stream> {
        rustix::io::ioctl_fionbio(&from, true)?;
        rustix::io::ioctl_fionbio(&to, true)?;
        let queue = if calls { Vec::new() } else { GREETING.to_vec() };
        let now = Instant::now();
        Ok(Stream { from, to, come: Vec::new(), queue, sent: 0, is_greeted: !calls, heard: now, spoke: now })
    }

    /// Whether a file may be sent now.
    pub fn has_room(&self) -> bool {
        self.is_greeted && self.queue.len() - self.sent < ENOUGH
    }

    /// Whether both couriers have heard each other.
    pub fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// Returns the descriptors to sleep on.
    pub fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let to = (self.sent < self.queue.len()).then(|| PollFd::new(&self.to, PollFlags::OUT));
        std::iter::once(PollFd::new(&self.from, PollFlags::IN)).chain(to)
    }

    /// Returns when [`Stream::keep_alive`] has something to do; `None` before the other courier has answered.
    pub fn due(&self) -> Option<Instant> {
        self.is_greeted.then(|| (self.spoke + ALIVE).min(self.heard + SILENCE))
    }

    /// This process has been stopped for a while.
    pub fn forgive(&mut self) {
        self.heard = Instant::now();
    }

    /// Sends a sign of life, and checks for one of the other side. Before the other courier has answered, the calling
    /// side has to know how long that may take.
    ///
    /// # Errors
    /// The other side gives no sign of life.
    pub fn keep_alive(&mut self, now: Instant) -> Result<(), String> {
        if !self.is_greeted {
            return Ok(());
        }
        if now >= self.heard + SILENCE {
            return Err(format!("nothing has come from it for {} seconds", SILENCE.as_secs()));
        }
        if now >= self.spoke + ALIVE {
            self.send(&Frame { kind: Kind::Alive, label: Label { from: 0, to: 0, number: 0 }, rest: &[] });
        }
        Ok(())
    }

    /// Sends a frame, as far as there is room; [`Stream::flush`] sends the rest.
    pub fn send(&mut self, frame: &Frame<'_>) {
        frame.write(&mut self.queue);
        self.spoke = Instant::now();
        // A broken connection is seen by reading.
        self.flush();
    }

    /// Writes what can be written.
    pub fn flush(&mut self) {
        while self.sent < self.queue.len() {
            match rustix::io::write(&self.to, &self.queue[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
        self.queue.clear();
        self.sent = 0;
    }

    /// Reads what has come, and hands whole frames over.
    ///
    /// # Errors
    /// Why the connection is broken.
    pub fn read(&mut self, sink: &mut dyn FnMut(Frame<'_>) -> Result<(), String>) -> Result<(), String> {
        let filled = self.come.len();
        self.come.resize(filled + CHUNK, 0);
        let read = rustix::io::read(&self.from, &mut self.come[filled..]);
        self.come.truncate(filled + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err("the connection has ended".to_owned()),
            Ok(_) => self.heard = Instant::now(),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(error) => return Err(format!("the connection is broken: {error}")),
        }
        let mut start = 0;
        if !self.is_greeted {
            let Some(end) = frames::greeting(&self.come)? else { return Ok(()) };
            (start, self.is_greeted) = (end, true);
        }
        while let Some((frame, length)) = frames::first(&self.come[start..])? {
            sink(frame)?;
            start += length;
        }
        self.come.drain(..start);
        Ok(())
    }
}
