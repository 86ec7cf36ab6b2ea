//! Frames between two couriers. Pure: encodes frames to bytes and decodes them.
//!
//! ```text
//!   first:   "limosa-courier VERSION\n" from the one that was called; what a login script prints before is skipped
//!   frame:   bytes that follow u32 | kind u32 | from u32 | to u32 | number u64 | the rest
//! ```
//!
//! Numbers are little-endian. `from`, `to` and `number` name a message file. Received bytes are not trusted: an invalid
//! frame ends the connection.

use super::super::format::{LONGEST, Label};

/// The first line of a courier that was called.
pub const GREETING: &[u8] = b"limosa-courier 1\n";
/// Beginning of the greeting in every version.
const NAME: &[u8] = b"limosa-courier ";
/// The longest first line, with what may come before it.
const LONGEST_GREETING: usize = 64 * 1024;
/// Length of a frame without its rest, and without the length itself.
const HEAD: usize = 20;
/// No frame is longer.
const LONGEST_FRAME: usize = HEAD + LONGEST;

/// Meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Here is a message file.
    Message,
    /// The receiver has taken this message file.
    Taken,
    /// A note for the board of `to`, about `from`.
    Note,
    /// The sender lives.
    Alive,
}

const KINDS: [Kind; 4] = [Kind::Message, Kind::Taken, Kind::Note, Kind::Alive];

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its meaning.
    pub kind: Kind,
    /// About which file.
    pub label: Label,
    /// The file, or the note.
    pub rest: &'a [u8],
}

impl Frame<'_> {
    /// Adds the frame to bytes.
    pub fn write(&self, to: &mut Vec<u8>) {
        let words = [(HEAD + self.rest.len()) as u32, self.kind as u32 + 1, self.label.from, self.label.to];
        words.iter().for_each(|word| to.extend_from_slice(&word.to_le_bytes()));
        to.extend_from_slice(&self.label.number.to_le_bytes());
        to.extend_from_slice(self.rest);
    }
}

/// Returns the frame at the start of these bytes, and its length. `Ok(None)`: there must come more.
///
/// # Errors
/// These bytes are no frame.
pub fn first(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, &'static str> {
    const NONE: &str = "it has sent what is no message of a courier";
    let Some((length, behind)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if !(HEAD..=LONGEST_FRAME).contains(&length) {
        return Err(NONE);
    }
    let Some(bytes) = behind.get(..length) else { return Ok(None) };
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let number = u64::from_le_bytes(bytes[12..HEAD].try_into().expect("eight bytes"));
    let kind = (word(0) as usize).checked_sub(1).and_then(|kind| KINDS.get(kind)).ok_or(NONE)?;
    let label = Label { from: word(4), to: word(8), number };
    Ok(Some((Frame { kind: *kind, label, rest: &bytes[HEAD..] }, 4 + length)))
}

/// Returns the end of the greeting in these bytes. `Ok(None)`: it is incomplete.
///
/// # Errors
/// There is none, or that of another version.
pub fn greeting(bytes: &[u8]) -> Result<Option<usize>, &'static str> {
    let mut starts = std::iter::once(0).chain((1..bytes.len()).filter(|at| bytes[at - 1] == b'\n'));
    let found = starts.clone().find(|at| bytes[*at..].starts_with(GREETING));
    let is_other = |at: usize| bytes[at..].starts_with(NAME) && bytes[at..].contains(&b'\n');
    if found.is_none() && starts.any(is_other) {
        return Err("it has another version of Limosa: install the same version on all hosts");
    }
    if found.is_none() && bytes.len() > LONGEST_GREETING {
        return Err("what answers there is not Limosa");
    }
    Ok(found.map(|at| at + GREETING.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label = Label { from: 7, to: 3, number: u64::MAX - 1 };

    #[test]
    fn frames_come_as_they_went_whatever_parts_they_come_in() {
        let frames = [
            Frame { kind: Kind::Message, label: LABEL, rest: b"a file" },
            Frame { kind: Kind::Taken, label: LABEL, rest: b"" },
            Frame { kind: Kind::Note, label: LABEL, rest: &[1; 24] },
            Frame { kind: Kind::Alive, label: Label { from: 0, to: 0, number: 0 }, rest: b"" },
        ];
        for frame in frames {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            for end in 0..bytes.len() {
                assert_eq!(first(&bytes[..end]), Ok(None));
            }
            let length = bytes.len();
            bytes.push(9);
            assert_eq!(first(&bytes), Ok(Some((frame, length))));
        }
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let mut bytes = Vec::new();
        Frame { kind: Kind::Taken, label: LABEL, rest: b"" }.write(&mut bytes);
        for (at, value) in [(0, 19), (3, 1), (4, 0), (4, 5), (7, 1)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert!(first(&wrong).is_err(), "{value} at {at}");
        }
    }

    #[test]
    fn a_greeting_is_found_behind_what_a_login_script_prints() {
        assert_eq!(greeting(b"Welcome!\nlimosa-courier 1\nrest"), Ok(Some(26)));
        assert_eq!(greeting(b"limosa-courier 1\n"), Ok(Some(17)));
        assert_eq!(greeting(b"Welcome!\nlimosa-cour"), Ok(None));
        assert!(greeting(&[b'\n'; LONGEST_GREETING + 1]).is_err());
        assert_eq!(greeting(b"limosa-courier 2"), Ok(None));
        assert!(greeting(b"limosa-courier 2\n").expect_err("another version").contains("another version"));
    }
}
