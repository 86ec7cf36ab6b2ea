//! Wire format of packets. Pure: encodes to and decodes from a device's [`Meta`] and data bytes.
//!
//! | packet | words | data | meaning |
//! |---|---|---|---|
//! | `EAGER` | envelope | bytes | a whole message |
//! | `EAGER_SYNC` | envelope | send id, bytes | a whole message; answer `DONE` when it is matched |
//! | `BEGIN` | envelope | length | begin of a message in segments |
//! | `PART` | | bytes | next segment of the message that began last |
//! | `OFFER` | envelope | [`Offer`] | rendezvous request (RTS) |
//! | `OFFER_SHORT` | envelope | [`Offer`] | the same of an eager message without credit: answer `FETCH` is possible |
//! | `FETCH` | | (send id, receive id), ... | stream these messages; their sends complete as eager ones do |
//! | `ACCEPT` | send id, receive id | length | rendezvous answer (CTS): stream the first so many bytes |
//! | `ACCEPT` | send id, receive id | length, address | rendezvous answer: write the first so many bytes to this address, or stream them |
//! | `ACCEPT_STRAIGHT` | send id, receive id | length, ticket | rendezvous answer: send the first so many bytes directly to the registered buffer |
//! | `STREAM` | receive id, offset | bytes | segment of a streamed message |
//! | `WRITTEN` | receive id, 0 | | all bytes were written to the address that was given |
//! | `DONE` | send id, 0 | | the message was matched (and, if offered, fetched) |
//! | `RECALL` | envelope | send id | request to return the message if it is unmatched |
//! | `RECALLED` | send id, 1 or 0 | | the message was returned, or not |
//! | `END_GROUP` | context, class | text | the members of this group disagree, as the text says: end pending operations |
//! | `LEAVE` | | | the sender of this packet takes no more packets |
//! | `PARTED` | process | text | the sender and that process can no longer exchange messages, for this reason |
//! | `ASK` | bytes | | the receiver of this packet was sent so many eager bytes, and answers when it holds few of them |
//! | `CREDIT` | bytes | | the answer: a window beyond so many bytes may be sent |
//! | `SAY` | context, word | words | statement of a member about its group ([`Listener`](crate::Listener)) |
//!
//! The envelope is the context id, and the source rank and tag in the halves of the second word; neither is negative.
//!
//! Invariants:
//! - decoding trusts no number: a packet that is too short, or has a value that no sender writes, is an error, not a
//!   panic;
//! - a request id is looked up with its generation, and a packet about a request must come from that request's peer.

use crate::completion::Failure;
use crate::matching::{Envelope, Pattern};
use limosa_device::{Meta, Peer};

pub const EAGER: u8 = 1;
pub const EAGER_SYNC: u8 = 2;
pub const OFFER: u8 = 3;
pub const ACCEPT: u8 = 4;
pub const STREAM: u8 = 5;
pub const DONE: u8 = 6;
pub const RECALL: u8 = 7;
pub const RECALLED: u8 = 8;
pub const BEGIN: u8 = 9;
pub const PART: u8 = 10;
pub const WRITTEN: u8 = 11;
pub const END_GROUP: u8 = 12;
pub const SAY: u8 = 13;
pub const LEAVE: u8 = 14;
pub const PARTED: u8 = 15;
pub const ACCEPT_STRAIGHT: u8 = 16;
pub const ASK: u8 = 17;
pub const CREDIT: u8 = 18;
pub const OFFER_SHORT: u8 = 19;
pub const FETCH: u8 = 20;

/// Maximum number of pieces that are offered for pulling one by one; more are packed and streamed.
pub const MAX_PIECES: usize = 4096;
/// Maximum bytes of the text of `END_GROUP` and `PARTED`.
pub const MAX_TEXT: usize = 512;
/// Words of a statement.
pub const SAID: usize = 4;
/// Longest message, in bytes, that travels in segments. Ranks may have different eager limits, none of them greater
/// than this.
pub const MAX_EAGER: usize = 64 << 20;

/// A rendezvous request: a message that waits at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Id of the send request.
    pub send: u64,
    /// Length in bytes.
    pub len: u64,
    /// Address in the sender's memory: of the data for one piece, or of a list of (address, length) pairs for more.
    pub address: u64,
    /// Number of contiguous pieces; 0 if the message can only be streamed.
    pub pieces: u64,
    /// Joint copy through which the sender can help, counted from 1; 0 for none.
    pub joint: u64,
}

/// Creates the meta words of a packet for a message with this envelope.
#[inline]
pub fn enveloped(kind: u8, envelope: &Envelope) -> Meta {
    Meta { kind, words: [envelope.context, u64::from(envelope.source as u32) << 32 | u64::from(envelope.tag as u32)] }
}

/// Bits of the second word that are set if the rank or the tag is negative.
const SIGNS: u64 = 1 << 63 | 1 << 31;

/// Decodes the envelope of a peer's packet. Rejects negative ranks and tags, which the matcher would take for
/// wildcards.
#[inline]
pub fn checked_envelope(meta: &Meta) -> Option<Envelope> {
    if meta.words[1] & SIGNS == 0 { Some(envelope(meta)) } else { None }
}

/// Decodes the envelope of a packet of this process.
#[inline]
pub fn envelope(meta: &Meta) -> Envelope {
    Envelope { context: meta.words[0], source: (meta.words[1] >> 32) as i32, tag: meta.words[1] as u32 as i32 }
}

/// Returns the meta words of a whole message that matches this pattern, and the bits of the second word that must
/// agree; `None` for the source wildcard.
#[inline(always)]
pub fn wanted(pattern: &Pattern) -> Option<(Meta, u64)> {
    let source = u64::from(pattern.source? as u32) << 32;
    let (word, mask) = match pattern.tag {
        Some(tag) => (source | u64::from(tag as u32), u64::MAX),
        // No message has a negative tag.
        None => (source, !u64::from(i32::MAX as u32)),
    };
    Some((Meta { kind: EAGER, words: [pattern.context, word] }, mask))
}

/// Creates a packet about a request of its receiver.
#[inline]
pub fn about(kind: u8, request: u64, other: u64) -> Meta {
    Meta { kind, words: [request, other] }
}

/// Decodes the context and the failure of an `END_GROUP`.
pub fn disagreement(meta: &Meta, data: &[u8]) -> Option<(u64, Failure)> {
    let [context, class] = meta.words;
    let (class, detail) = (i32::try_from(class).ok()?, std::str::from_utf8(data).ok()?);
    (data.len() <= MAX_TEXT).then(|| (context, Failure::Disagreement { class, detail: detail.to_owned() }))
}

/// Decodes the process and the reason of a `PARTED`.
pub fn parting<'a>(meta: &Meta, data: &'a [u8]) -> Option<(Peer, &'a str)> {
    let peer = Peer::try_from(meta.words[0]).ok()?;
    if data.len() <= MAX_TEXT { Some((peer, std::str::from_utf8(data).ok()?)) } else { None }
}

/// Cuts a text to the length that a packet has room for.
pub fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Creates a `SAY`.
pub fn said(context: u64, words: [u64; SAID]) -> (Meta, [u8; 8 * (SAID - 1)]) {
    let mut data = [0; 8 * (SAID - 1)];
    for (bytes, word) in data.chunks_exact_mut(8).zip(&words[1..]) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    (Meta { kind: SAY, words: [context, words[0]] }, data)
}

/// Decodes the context and the words of a `SAY`.
pub fn saying(meta: &Meta, data: &[u8]) -> Option<(u64, [u64; SAID])> {
    let mut words = [meta.words[1]; SAID];
    for (index, place) in words[1..].iter_mut().enumerate() {
        *place = word(data, index)?;
    }
    (data.len() == 8 * (SAID - 1)).then_some((meta.words[0], words))
}

/// Returns the word at byte `8 * index` of the data, if there is one.
#[inline]
pub fn word(data: &[u8], index: usize) -> Option<u64> {
    data.get(8 * index..8 * index + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
}

impl Offer {
    /// Bytes of an encoded offer.
    pub const BYTES: usize = 40;

    /// Encodes.
    pub fn encode(&self) -> [u8; Offer::BYTES] {
        let mut bytes = [0; Offer::BYTES];
        for (i, word) in [self.send, self.len, self.address, self.pieces, self.joint].into_iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Decodes. Rejects offers of more than [`MAX_PIECES`] pieces, or with empty ones.
    pub fn decode(data: &[u8]) -> Option<Offer> {
        let offer = Offer {
            send: word(data, 0)?,
            len: word(data, 1)?,
            address: word(data, 2)?,
            pieces: word(data, 3)?,
            joint: word(data, 4)?,
        };
        (offer.pieces <= offer.len.min(MAX_PIECES as u64)).then_some(offer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_and_offers_survive_the_journey() {
        let e = Envelope { context: u64::MAX - 3, source: 77, tag: i32::MAX };
        assert_eq!(envelope(&enveloped(EAGER, &e)), e);
        let offer = Offer { send: 1, len: u64::MAX, address: 3, pieces: 4, joint: 5 };
        assert_eq!(Offer::decode(&offer.encode()), Some(offer));
        assert_eq!(Offer::decode(&offer.encode()[..39]), None);
    }

    #[test]
    fn what_a_member_says_survives_the_journey() {
        let (meta, data) = said(7, [1, 2, u64::MAX, 4]);
        assert_eq!(saying(&meta, &data), Some((7, [1, 2, u64::MAX, 4])));
        assert_eq!(saying(&meta, &data[1..]), None);
        assert_eq!(saying(&meta, &[0; 32]), None);
    }

    #[test]
    fn the_words_of_a_pattern_say_what_it_matches() {
        let envelopes = || {
            (0..3).flat_map(|context| {
                (0..3).flat_map(move |source| [0, 1, 77, i32::MAX].map(|tag| Envelope { context, source, tag }))
            })
        };
        for e in envelopes() {
            for tag in [None, Some(e.tag)] {
                let pattern = Pattern { context: e.context, source: Some(e.source), tag };
                let (Meta { words: wanted, .. }, mask) = wanted(&pattern).expect("a source is named");
                for other in envelopes() {
                    let words = enveloped(EAGER, &other).words;
                    assert_eq!(words[0] == wanted[0] && words[1] & mask == wanted[1], pattern.matches(&other));
                    assert!(
                        words[1] | 1 << 31 != wanted[1] && (words[1] | 1 << 31) & mask != wanted[1],
                        "a negative tag"
                    );
                }
            }
            assert_eq!(super::wanted(&Pattern { context: e.context, source: None, tag: None }), None);
        }
    }

    #[test]
    fn what_no_sender_says_is_not_decoded() {
        let offer = Offer { send: 1, len: 1 << 40, address: 3, pieces: MAX_PIECES as u64, joint: 0 };
        assert_eq!(Offer::decode(&offer.encode()), Some(offer));
        for nonsense in [
            Offer { pieces: MAX_PIECES as u64 + 1, ..offer },
            Offer { pieces: u64::MAX, ..offer },
            Offer { len: 5, pieces: 6, ..offer },
        ] {
            assert_eq!(Offer::decode(&nonsense.encode()), None);
        }
        let e = Envelope { context: 0, source: 5, tag: 6 };
        assert_eq!(checked_envelope(&enveloped(EAGER, &e)), Some(e));
        assert_eq!(checked_envelope(&enveloped(EAGER, &Envelope { source: -1, ..e })), None);
        assert_eq!(checked_envelope(&enveloped(EAGER, &Envelope { tag: -1, ..e })), None);
    }
}
