//! Content of message files. Pure: encodes packets to bytes and decodes them.
//!
//! ```text
//!   header:   "limosa-m" | version u32 | from u32 | to u32 | packets u32 | number u64 | bytes of the file u64
//!   packet:   kind u8, 3 bytes of 0 | length of the data u32 | words[0] u64 | words[1] u64 | the data
//!   packet ...
//! ```
//!
//! All numbers are little-endian. `number` counts the files from this sender to this receiver, from 0. Nothing that is
//! read is trusted: an invalid file is an error, never a crash.

use crate::{Data, Meta};

const MAGIC: &[u8; 8] = b"limosa-m";
const VERSION: u32 = 1;
/// Length of the header.
pub const HEADER: usize = 40;
/// Length of what precedes the data of a packet.
pub const PACKET: usize = 24;

/// Most data bytes in one packet.
pub const MAX_DATA: usize = 1 << 20;
/// Length of a file beyond which no packet is added to it.
pub const FULL: usize = 1 << 20;
/// No file is longer.
pub const LONGEST: usize = FULL + PACKET + MAX_DATA;

/// Which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Its number among the files of this pair.
    pub number: u64,
}

/// Packets that go into one file.
#[derive(Debug)]
pub struct Batch {
    /// As long as the longest file so far: bytes that are to be overwritten need not be zeroed each time.
    bytes: Vec<u8>,
    used: usize,
    packets: u32,
    /// Length of the last packet's data, if they are not among the bytes.
    apart: usize,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch { bytes: vec![0; HEADER], used: HEADER, packets: 0, apart: 0 }
    }
}

impl Batch {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the length of the file.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Adds a packet.
    pub fn push(&mut self, meta: &Meta, mut data: Data<'_>) {
        let len = data.len();
        data.write(self.add(meta, len, len));
    }

    /// Adds a packet, the last one of the file, whose data the caller writes behind [`Batch::sealed`].
    pub fn push_apart(&mut self, meta: &Meta, len: usize) {
        self.add(meta, len, 0);
        self.apart = len;
    }

    /// Adds the header of `len` bytes of data, and room for `room` bytes of them.
    fn add(&mut self, meta: &Meta, len: usize, room: usize) -> &mut [u8] {
        debug_assert_eq!(self.apart, 0, "the last packet has been added");
        let begin = self.used;
        self.used += PACKET + room;
        self.packets += 1;
        self.bytes.resize(self.bytes.len().max(self.used), 0);
        let (head, rest) = self.bytes[begin..self.used].split_at_mut(PACKET);
        head[..4].copy_from_slice(&[meta.kind, 0, 0, 0]);
        head[4..8].copy_from_slice(&(len as u32).to_le_bytes());
        head[8..16].copy_from_slice(&meta.words[0].to_le_bytes());
        head[16..].copy_from_slice(&meta.words[1].to_le_bytes());
        rest
    }

    /// Returns the whole file, but for data that were added apart.
    pub fn sealed(&mut self, label: &Label) -> &[u8] {
        let len = (self.used + self.apart) as u64;
        let header = &mut self.bytes[..HEADER];
        header[..8].copy_from_slice(MAGIC);
        for (at, word) in [(8, VERSION), (12, label.from), (16, label.to), (20, self.packets)] {
            header[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        header[24..32].copy_from_slice(&label.number.to_le_bytes());
        header[32..40].copy_from_slice(&len.to_le_bytes());
        &self.bytes[..self.used]
    }

    /// Takes all packets out.
    pub fn clear(&mut self) {
        self.used = HEADER;
        self.packets = 0;
        self.apart = 0;
    }
}

/// Returns the label of a file and its packets.
///
/// # Errors
/// The error of its header, in words.
pub fn open(bytes: &[u8]) -> Result<(Label, Packets<'_>), &'static str> {
    if bytes.len() < HEADER || &bytes[..8] != MAGIC {
        return Err("a message file without a header");
    }
    if word(bytes, 8) != VERSION {
        return Err("a message file of another version of Limosa");
    }
    if long(bytes, 32) != bytes.len() as u64 {
        return Err("a message file of another length than it says");
    }
    let label = Label { from: word(bytes, 12), to: word(bytes, 16), number: long(bytes, 24) };
    Ok((label, Packets { rest: &bytes[HEADER..], left: word(bytes, 20) }))
}

/// The packets of a file, in order.
#[derive(Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
    left: u32,
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<(Meta, &'a [u8]), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            let is_all = std::mem::take(&mut self.rest).is_empty();
            return (!is_all).then_some(Err("a message file with more bytes than packets"));
        }
        self.left -= 1;
        let Some((head, rest)) = self.rest.split_at_checked(PACKET) else { return Some(Err(self.cut())) };
        let Some((data, rest)) = rest.split_at_checked(word(head, 4) as usize) else { return Some(Err(self.cut())) };
        self.rest = rest;
        Some(Ok((Meta { kind: head[0], words: [long(head, 8), long(head, 16)] }, data)))
    }
}

impl Packets<'_> {
    fn cut(&mut self) -> &'static str {
        (self.rest, self.left) = (&[], 0);
        "a message file with a packet that is cut off"
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { from: 3, to: 1, number: 7 };

    fn file() -> Vec<u8> {
        let mut batch = Batch::default();
        batch.push(&Meta { kind: 1, words: [5, u64::MAX] }, Data::Bytes(b"first"));
        batch.push(&Meta { kind: 2, words: [0, 9] }, Data::Fill(3, &mut |to| to.copy_from_slice(b"abc")));
        batch.push(&Meta::default(), Data::Bytes(b""));
        batch.sealed(&LABEL).to_vec()
    }

    #[test]
    fn packets_come_out_as_they_went_in() {
        let bytes = file();
        let (label, packets) = open(&bytes).expect("a file");
        assert_eq!(label, LABEL);
        let packets: Vec<_> = packets.map(|packet| packet.expect("a packet")).collect();
        assert_eq!(packets[0], (Meta { kind: 1, words: [5, u64::MAX] }, &b"first"[..]));
        assert_eq!(packets[1], (Meta { kind: 2, words: [0, 9] }, &b"abc"[..]));
        assert_eq!(packets[2], (Meta::default(), &b""[..]));
        assert_eq!(packets.len(), 3);
    }

    #[test]
    fn data_may_be_written_behind_the_rest_of_a_file() {
        let mut batch = Batch::default();
        batch.push(&Meta::default(), Data::Bytes(b"first"));
        batch.push_apart(&Meta { kind: 4, words: [1, 2] }, 6);
        let bytes = [batch.sealed(&LABEL), b"second"].concat();
        let packets: Vec<_> = open(&bytes).expect("a file").1.map(|packet| packet.expect("a packet")).collect();
        assert_eq!(packets[1], (Meta { kind: 4, words: [1, 2] }, &b"second"[..]));
        assert_eq!(packets.len(), 2);
        batch.clear();
        assert_eq!(open(batch.sealed(&LABEL)).expect("a file").1.count(), 0);
    }

    #[test]
    fn a_batch_that_was_cleared_begins_again() {
        let mut batch = Batch::default();
        batch.push(&Meta::default(), Data::Bytes(&[1; 100]));
        batch.clear();
        assert!(batch.is_empty() && batch.len() == HEADER);
        assert_eq!(open(batch.sealed(&LABEL)).expect("a file").1.count(), 0);
    }

    #[test]
    fn files_that_make_no_sense_are_errors() {
        let whole = file();
        for len in 0..whole.len() {
            assert!(open(&whole[..len]).is_err(), "{len} bytes of {}", whole.len());
        }
        let mut errors = 0;
        for at in 0..whole.len() {
            for value in [0, 1, 7, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                match open(&bytes) {
                    Err(_) => errors += 1,
                    Ok((_, packets)) => errors += packets.filter(Result::is_err).count().min(1),
                }
            }
        }
        assert!(errors > 100, "{errors}");
    }
}
