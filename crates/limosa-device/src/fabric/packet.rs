//! How a packet travels, and the card that says how a process is reached.
//!
//! ```text
//!   packet   0   8  token: a process that does not know it is none of the job's
//!            8   4  number of the sender
//!           12   4  half of the sender's own token: another process of this number may have sent before
//!           16   4  number of packets ([`Content`])
//!           20   1  kind
//!           21   1  0: a packet; 1: a greeting; 2: a farewell; 3: the answer to one
//!           22   2  zeros
//!           24  16  two words
//!           40      data
//!
//!   card     0   1  version
//!            1   1  length of the provider's name
//!            2   8  token
//!           10      the provider's name, then the address as the provider writes it
//! ```
//!
//! Numbers are little-endian.

use crate::{Address, Meta};

/// Bytes before the data.
pub const HEADER: usize = 40;
/// Bytes of the longest card.
pub const CARD_BYTES: usize = 256;
const VERSION: u8 = 2;

/// What a packet is for. Those of the device itself have no number of their own, no data and no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Kind, words and data of the packet of this number among those from its sender, from 0.
    Packet(u32),
    /// Its sender is there.
    Greeting,
    /// Its sender has sent so many packets, asks whether they have come, and needs none any more.
    Farewell(u32),
    /// So many packets have come.
    Answer(u32),
}

impl Content {
    fn parts(self) -> (u8, u32) {
        match self {
            Content::Packet(number) => (0, number),
            Content::Greeting => (1, 0),
            Content::Farewell(sent) => (2, sent),
            Content::Answer(come) => (3, come),
        }
    }

    fn of(code: u8, number: u32) -> Option<Content> {
        Some(match (code, number) {
            (0, number) => Content::Packet(number),
            (1, 0) => Content::Greeting,
            (2, sent) => Content::Farewell(sent),
            (3, come) => Content::Answer(come),
            _ => return None,
        })
    }
}

/// The sender and receiver of a packet, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The receiver's token.
    pub token: u64,
    /// The sender.
    pub from: Address,
    /// Half of the sender's token.
    pub sender: u32,
    pub content: Content,
}

/// Writes the head of a packet to the first bytes.
pub fn write_head(to: &mut [u8], label: &Label, meta: &Meta) {
    let (code, number) = label.content.parts();
    to[0..8].copy_from_slice(&label.token.to_le_bytes());
    to[8..12].copy_from_slice(&label.from.to_le_bytes());
    to[12..16].copy_from_slice(&label.sender.to_le_bytes());
    to[16..20].copy_from_slice(&number.to_le_bytes());
    to[20..24].copy_from_slice(&[meta.kind, code, 0, 0]);
    to[24..32].copy_from_slice(&meta.words[0].to_le_bytes());
    to[32..40].copy_from_slice(&meta.words[1].to_le_bytes());
}

/// The head of a packet and its data; `None` if it is too short or of no known content.
pub fn read(packet: &[u8]) -> Option<(Label, Meta, &[u8])> {
    let (head, data) = packet.split_first_chunk::<HEADER>()?;
    let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let short = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let content = Content::of(head[21], short(16))?;
    let label = Label { token: long(0), from: short(8), sender: short(12), content };
    Some((label, Meta { kind: head[20], words: [long(24), long(32)] }, data))
}

/// How a process is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// What packets to it must begin with.
    pub token: u64,
    /// The provider that it uses.
    pub provider: String,
    /// Its address, as the provider writes it.
    pub address: Vec<u8>,
}

impl Card {
    /// The card as bytes; `None` if it would be too long.
    pub fn write(&self) -> Option<Vec<u8>> {
        let name = self.provider.as_bytes();
        let mut card = vec![VERSION, u8::try_from(name.len()).ok()?];
        card.extend_from_slice(&self.token.to_le_bytes());
        card.extend_from_slice(name);
        card.extend_from_slice(&self.address);
        (card.len() <= CARD_BYTES).then_some(card)
    }

    /// What bytes say, if they are a card.
    pub fn read(bytes: &[u8]) -> Option<Card> {
        let (&[version, len], rest) = bytes.split_first_chunk()?;
        let (token, rest) = rest.split_first_chunk()?;
        let (name, address) = rest.split_at_checked(len.into())?;
        let provider = String::from_utf8(name.to_vec()).ok()?;
        (version == VERSION).then(|| Card { token: u64::from_le_bytes(*token), provider, address: address.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_a_packet_or_none_and_a_card_or_none() {
        let mut random = limosa_sim::Random::new(1);
        for _ in 0..10_000 {
            let bytes: Vec<u8> = (0..random.below(100)).map(|_| random.number() as u8 % 12).collect();
            let is_known = |bytes: &[u8]| bytes[21] < 4 && (bytes[21] != 1 || bytes[16..20] == [0; 4]);
            assert_eq!(read(&bytes).is_some(), bytes.len() >= HEADER && is_known(&bytes));
            if let Some(card) = Card::read(&bytes) {
                assert_eq!(card.write().as_deref(), Some(&bytes[..]));
            }
        }
    }

    #[test]
    fn a_packet_and_a_card_come_back_as_they_were_written() {
        let meta = Meta { kind: 200, words: [1, u64::MAX] };
        let mut bytes = vec![9; HEADER + 3];
        for content in [Content::Packet(u32::MAX), Content::Greeting, Content::Farewell(7), Content::Answer(1 << 31)] {
            let label = Label { token: u64::MAX - 5, from: 7, sender: 8, content };
            write_head(&mut bytes, &label, &meta);
            assert_eq!(read(&bytes), Some((label, meta, &[9; 3][..])));
        }
        assert_eq!(read(&bytes[..HEADER - 1]), None);
        let card = Card { token: 77, provider: "tcp;ofi_rxm".into(), address: vec![2, 0, 127] };
        let written = card.write().expect("it is short");
        assert_eq!(Card::read(&written), Some(card));
        assert!((0..13).all(|len| Card::read(&written[..len]).is_none_or(|card| card.address.len() < 3)));
        assert_eq!(Card { token: 1, provider: String::new(), address: vec![0; CARD_BYTES] }.write(), None);
    }
}
