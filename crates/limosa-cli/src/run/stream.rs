//! A stream of bytes in each direction that outlives its connections.
//!
//! Bytes travel in frames. Each frame confirms the bytes that its sender has received so far, and unconfirmed bytes are
//! kept. On a new connection each side first sends an empty frame, and then its bytes from the one on that the first
//! frame of the other side names: none is lost, and none comes twice.
//!
//! | bytes of a frame | |
//! |--:|---|
//! | 8 | bytes that its sender has received |
//! | 4 | length of the data, or [`END`]: nothing follows, and the end of the connection is the end of the stream |
//! | | the data |
//!
//! A pipe takes a frame whole or not at all. So the guardian of a process that was killed can send the frame with
//! [`END`] for it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use limosa_job::control::broken;
use rustix::io::Errno;

/// Bytes before the data of a frame.
const HEADER: usize = 12;
/// Most data of a frame: with the header as much as a pipe takes at once (`PIPE_BUF`).
const LONGEST: usize = 4096 - HEADER;
/// Length in a frame that ends the stream.
const END: u32 = u32::MAX;
/// Received bytes after which a frame without data confirms them.
const CONFIRM: u64 = 64 << 10;

/// One end of a stream.
#[derive(Default)]
pub struct Stream {
    /// Bytes that are not confirmed, and the number of those before them.
    kept: VecDeque<u8>,
    confirmed: u64,
    /// Bytes sent, on this connection or confirmed.
    sent: u64,
    /// The frame that is being written, and what precedes the first one on a connection.
    frame: Vec<u8>,
    /// The first frame of the other side has come.
    is_open: bool,
    /// Bytes received, and how many of them the other side was told of.
    received: u64,
    told: u64,
    /// The beginning of a frame.
    part: Vec<u8>,
}

/// The frame that ends a stream.
pub fn end() -> [u8; HEADER] {
    header(0, END)
}

fn header(received: u64, length: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&received.to_ne_bytes());
    bytes[8..].copy_from_slice(&length.to_ne_bytes());
    bytes
}

/// Number of bytes that a frame confirms, and its data; none at the end of the stream.
type Frame = (u64, Option<Vec<u8>>);

/// Removes the next frame from the start of `bytes`.
///
/// # Errors
/// `InvalidData` for what is none.
fn take_frame(bytes: &mut Vec<u8>) -> io::Result<Option<Frame>> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
    let received = u64::from_ne_bytes(std::array::from_fn(|i| head[i]));
    let length = u32::from_ne_bytes(std::array::from_fn(|i| head[8 + i]));
    if length == END {
        return Ok(Some((received, None)));
    }
    let length = length as usize;
    if length > LONGEST {
        return Err(broken());
    }
    if rest.len() < length {
        return Ok(None);
    }
    let data = rest[..length].to_vec();
    bytes.drain(..HEADER + length);
    Ok(Some((received, Some(data))))
}

impl Stream {
    /// Begins a connection, with these bytes before the first frame.
    pub fn connect(&mut self, greeting: &[u8]) {
        self.frame = [greeting, &header(self.received, 0)].concat();
        self.told = self.received;
        self.sent = self.confirmed;
        self.is_open = false;
        self.part.clear();
    }

    /// Queues bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.kept.extend(bytes);
    }

    /// Bytes that are not confirmed.
    pub fn pending(&self) -> usize {
        self.kept.len()
    }

    /// Whether there is something to write.
    pub fn has_frames(&self) -> bool {
        let has_data = self.sent < self.confirmed + self.kept.len() as u64;
        !self.frame.is_empty() || (self.is_open && (has_data || self.received - self.told >= CONFIRM))
    }

    /// Writes frames while there is room.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(&mut self, to: impl AsFd) -> io::Result<()> {
        while self.has_frames() {
            if self.frame.is_empty() {
                self.make_frame();
            }
            match rustix::io::write(&to, &self.frame) {
                Ok(n) => drop(self.frame.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn make_frame(&mut self) {
        let at = (self.sent - self.confirmed) as usize;
        let length = LONGEST.min(self.kept.len() - at);
        self.frame.extend(header(self.received, length as u32));
        self.frame.extend(self.kept.range(at..at + length));
        self.sent += length as u64;
        self.told = self.received;
    }

    /// Ends the stream, if there is room for that.
    pub fn end(&mut self, to: impl AsFd) {
        let _ = self.write(&to);
        if self.frame.is_empty() {
            let _ = rustix::io::write(&to, &end());
        }
    }

    /// Takes in what has come, and appends the data to `data`. Returns whether the stream has ended.
    ///
    /// # Errors
    /// `InvalidData` for what is no frame.
    pub fn take(&mut self, bytes: &[u8], data: &mut Vec<u8>) -> io::Result<bool> {
        self.part.extend_from_slice(bytes);
        while let Some((confirmed, part)) = take_frame(&mut self.part)? {
            let Some(part) = part else { return Ok(true) };
            let new = confirmed.checked_sub(self.confirmed).filter(|new| *new <= self.kept.len() as u64);
            self.kept.drain(..new.ok_or_else(broken)? as usize);
            self.confirmed = confirmed;
            // What the last connection had taken need not have arrived, or it has, unconfirmed.
            self.sent = if self.is_open { self.sent } else { confirmed };
            if self.sent < confirmed {
                return Err(broken());
            }
            self.is_open = true;
            self.received += part.len() as u64;
            data.extend(part);
        }
        Ok(false)
    }
}

/// Removes all whole frames from the start of `bytes` and returns their data.
#[cfg(test)]
pub fn unframed(bytes: &mut Vec<u8>) -> Vec<u8> {
    std::iter::from_fn(|| take_frame(bytes).expect("frames")).filter_map(|(_, data)| data).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn pair() -> [UnixStream; 2] {
        let (one, two) = UnixStream::pair().expect("sockets");
        one.set_nonblocking(true).and_then(|()| two.set_nonblocking(true)).expect("a setting");
        [one, two]
    }

    /// Reads at most so many bytes.
    fn some(mut from: &UnixStream, most: usize) -> Vec<u8> {
        let mut bytes = vec![0; most];
        let length = from.read(&mut bytes).unwrap_or(0);
        bytes.truncate(length);
        bytes
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_doubled_however_often_connections_end(
            steps in proptest::collection::vec((0..5u8, 0..20_000usize), 1..120)
        ) {
            let (mut streams, mut ends) = ([Stream::default(), Stream::default()], pair());
            let (mut sent, mut come) = ([0u32; 2], [Vec::new(), Vec::new()]);
            streams.iter_mut().for_each(|stream| stream.connect(b""));
            let last = std::iter::repeat_n([(1, 0), (3, 1 << 20), (2, 0), (4, 1 << 20)], 80).flatten();
            for (what, amount) in steps.into_iter().chain(last) {
                let side = usize::from(what % 2);
                match what {
                    0 if amount < 2000 => {
                        ends = pair();
                        streams.iter_mut().for_each(|stream| stream.connect(b""));
                    }
                    0 => for side in 0..2 {
                        let words = (sent[side]..sent[side] + amount as u32 / 4).flat_map(u32::to_ne_bytes);
                        streams[side].push(&words.collect::<Vec<u8>>());
                        sent[side] += amount as u32 / 4;
                    },
                    1 | 2 => streams[side].write(&ends[side]).expect("a connection"),
                    _ => {
                        let bytes = some(&ends[side], amount);
                        prop_assert!(!streams[side].take(&bytes, &mut come[side]).expect("frames"));
                    }
                }
            }
            for side in 0..2 {
                let expected: Vec<u8> = (0..sent[1 - side]).flat_map(u32::to_ne_bytes).collect();
                prop_assert!(come[side] == expected, "{} bytes of {}", come[side].len(), expected.len());
                prop_assert!(streams[side].pending() < 2 * CONFIRM as usize);
            }
        }

        #[test]
        fn bytes_that_are_no_frames_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Stream::default().take(&bytes, &mut Vec::new());
        }
    }

    #[test]
    fn the_end_comes_behind_all_bytes() {
        let [near, far] = pair();
        let (mut sender, mut receiver) = (Stream::default(), Stream::default());
        sender.connect(b"");
        receiver.connect(b"");
        sender.push(b"all");
        receiver.write(&far).expect("a connection");
        sender.take(&some(&near, 100), &mut Vec::new()).expect("a frame");
        sender.end(&near);
        let mut come = Vec::new();
        assert!(receiver.take(&some(&far, 1000), &mut come).expect("frames"));
        assert_eq!(come, b"all");
    }
}
