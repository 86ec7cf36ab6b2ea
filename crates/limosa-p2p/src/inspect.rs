//! Descriptions of packets, for readers of message files. Pure; packets are untrusted input.

use crate::wire;
use limosa_device::Meta;

/// Description of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The kind, in a few words.
    pub kind: &'static str,
    /// Context, source and tag, for packets that begin a message.
    pub envelope: Option<(u64, i32, i32)>,
    /// Length in bytes of the whole message, or of the segment.
    pub bytes: u64,
}

/// Describes a packet.
pub fn describe(meta: &Meta, data: &[u8]) -> Description {
    let len = data.len() as u64;
    let (kind, bytes) = match meta.kind {
        wire::EAGER => ("message", len),
        wire::EAGER_SYNC => ("synchronous message", len.saturating_sub(8)),
        wire::BEGIN => ("message in parts", wire::word(data, 0).unwrap_or(0)),
        wire::OFFER | wire::OFFER_SHORT => {
            ("offer of a message", wire::Offer::decode(data).map_or(0, |offer| offer.len))
        }
        wire::PART | wire::STREAM => ("part of a message", len),
        wire::ACCEPT | wire::ACCEPT_STRAIGHT => ("request for a message", 0),
        wire::FETCH => ("request for messages", 0),
        wire::DONE | wire::WRITTEN => ("receipt", 0),
        wire::RECALL | wire::RECALLED => ("cancellation", 0),
        wire::END_GROUP | wire::SAY | wire::LEAVE | wire::PARTED | wire::ASK | wire::CREDIT => ("note", len),
        _ => ("window access", len),
    };
    let begins = matches!(meta.kind, wire::EAGER | wire::EAGER_SYNC | wire::BEGIN | wire::OFFER | wire::OFFER_SHORT);
    let envelope = if begins { wire::checked_envelope(meta) } else { None };
    Description { kind, envelope: envelope.map(|e| (e.context, e.source, e.tag)), bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Envelope;

    #[test]
    fn packets_that_begin_a_message_have_its_tag_and_length() {
        let envelope = Envelope { context: 4, source: 1, tag: 9 };
        let offer = wire::Offer { send: 1, len: 1 << 30, address: 0, pieces: 0, joint: 0 };
        let cases: [(u8, Vec<u8>, u64); 4] = [
            (wire::EAGER, vec![0; 5], 5),
            (wire::EAGER_SYNC, vec![0; 13], 5),
            (wire::BEGIN, 70_000u64.to_ne_bytes().to_vec(), 70_000),
            (wire::OFFER, offer.encode().to_vec(), 1 << 30),
        ];
        for (kind, data, bytes) in cases {
            let described = describe(&wire::enveloped(kind, &envelope), &data);
            assert_eq!((described.envelope, described.bytes), (Some((4, 1, 9)), bytes), "{}", described.kind);
        }
        assert_eq!(describe(&wire::about(wire::STREAM, 1, 0), &[0; 7]).envelope, None);
    }

    #[test]
    fn every_packet_is_described() {
        for kind in 0..=u8::MAX {
            for len in [0, 1, 8, 40] {
                let _ = describe(&Meta { kind, words: [u64::MAX; 2] }, &vec![0xff; len]);
            }
        }
    }
}
