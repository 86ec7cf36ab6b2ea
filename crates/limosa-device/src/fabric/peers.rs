//! What a process knows of a peer: where it is, what is under way to it, and which packet of its comes next.
//!
//! Packets to a peer have numbers. Their sends may end in any order; at most [`WINDOW`] numbers lie between the first
//! one that has not ended and the last one, so a receiver never has to keep more packets than that.

use super::endpoint::Known;
use super::packet::Content;
use crate::Meta;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

/// Short packets, long ones, and those whose data are not copied, which have buffers and limits of their own.
pub type Class = usize;
pub const CLASSES: usize = 3;

/// Packets under way to one peer, by class.
const UNDER_WAY: [u32; CLASSES] = [64, 16, 16];
/// Numbers that may be under way.
const WINDOW: u32 = 128;

/// What is known of a peer.
#[derive(Default)]
pub struct Peer {
    /// Its token and where the provider has its address.
    pub place: Option<(u64, Known)>,
    /// Its address, if that is one for TCP and is to be tested.
    pub internet: Option<SocketAddr>,
    /// A packet has come from it, or has arrived there.
    pub is_reached: bool,
    /// Its address is tested, or was.
    pub is_tested: bool,
    /// Why it was given up without having been reached.
    pub unreached: Option<String>,
    /// A send waits for room.
    pub wants_room: bool,
    pub life: Life,
    /// A packet has come from it: there is a connection.
    pub has_come: bool,
    /// It was asked to connect.
    pub is_called: bool,
    /// Packets under way, by class.
    under_way: [u32; CLASSES],
    /// For each number under way whether its send has ended; the first one has not.
    flight: VecDeque<bool>,
    /// The number after those.
    next: u32,
    /// The number of the next packet from it.
    expected: u32,
    /// Packets from it that came too early.
    kept: BTreeMap<u32, (Meta, Vec<u8>)>,
    /// The number of packets in the last farewell to it, and in its last answer.
    told: Option<u32>,
    delivered: Option<u32>,
    /// The number of packets in its farewell: it needs none any more, unless it has sent more since.
    parted: Option<u32>,
    /// Its farewell has not been answered.
    awaits_answer: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    #[default]
    Alive,
    /// It has died, or cannot be reached any more, for this reason. That is reported when nothing has come from it
    /// until then.
    Dying(Instant, &'static str),
    /// Nothing is expected from it, or sent to it.
    Dead,
    /// It has ended in good order: nothing is sent to it, but what it has sent may still come.
    Left,
}

impl Life {
    /// Why a peer is reported that is due by now.
    pub fn ends_before(self, now: Instant) -> Option<&'static str> {
        match self {
            Life::Dying(silent_until, what) if silent_until <= now => Some(what),
            _ => None,
        }
    }

    /// Whether a peer that is reported then is not reported sooner: of two reasons the sooner one counts.
    pub fn lasts_beyond(self, then: Instant) -> bool {
        match self {
            Life::Alive => true,
            Life::Dying(silent_until, _) => then < silent_until,
            Life::Dead | Life::Left => false,
        }
    }
}

/// When a packet is to be handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Now,
    Later,
    Never,
}

impl Peer {
    /// Whether there is room for another packet.
    pub fn has_room(&self, class: Class) -> bool {
        self.under_way[class] < UNDER_WAY[class] && self.flight.len() < WINDOW as usize
    }

    /// The number of the next packet.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// The next packet is under way.
    pub fn begin(&mut self, class: Class) {
        self.next = self.next.wrapping_add(1);
        self.flight.push_back(false);
        self.under_way[class] += 1;
        self.wants_room = false;
    }

    /// The send of a packet has ended. It may be one to another process that had this place.
    pub fn sent(&mut self, class: Class, number: u32) {
        self.under_way[class] = self.under_way[class].saturating_sub(1);
        let first = self.next.wrapping_sub(self.flight.len() as u32);
        if let Some(ended) = self.flight.get_mut(number.wrapping_sub(first) as usize) {
            *ended = true;
        }
        while self.flight.front() == Some(&true) {
            self.flight.pop_front();
        }
    }

    /// Whether the sends of the first `count` packets have ended.
    pub fn is_away(&self, count: u32) -> bool {
        let first = self.next.wrapping_sub(self.flight.len() as u32);
        first.wrapping_sub(count) as i32 >= 0
    }

    /// Whether packets are under way.
    fn is_sending(&self) -> bool {
        !self.flight.is_empty()
    }

    /// Whether room that a send wants comes unnoticed: nothing is under way whose end would tell.
    pub fn must_try(&self) -> bool {
        self.wants_room && !self.is_sending() && !matches!(self.life, Life::Dead | Life::Left)
    }

    /// Whether this process, if it leaves, has to wait for the peer's answer that all packets have come.
    pub fn is_owed(&self) -> bool {
        let has_parted = self.parted.is_some_and(|sent| self.expected.wrapping_sub(sent) as i32 <= 0);
        (self.next > 0 || self.has_come) && !has_parted && self.delivered != Some(self.next)
    }

    /// The number of packets in the farewell that is to be sent to it, if one is.
    pub fn due_farewell(&self) -> Option<u32> {
        (self.is_owed() && self.told != Some(self.next)).then_some(self.next)
    }

    /// The number of packets in the answer to its farewell, when all have come.
    pub fn due_answer(&self) -> Option<u32> {
        self.parted.filter(|sent| self.awaits_answer && self.expected.wrapping_sub(*sent) as i32 >= 0)
    }

    /// A packet with this content is under way to it.
    pub fn said(&mut self, content: Content) {
        match content {
            Content::Farewell(sent) => self.told = Some(sent),
            Content::Answer(_) => self.awaits_answer = false,
            Content::Packet(_) | Content::Greeting => {}
        }
    }

    /// Its farewell has come: it has sent so many packets.
    pub fn parts(&mut self, sent: u32) {
        (self.parted, self.awaits_answer) = (Some(sent), true);
    }

    /// Its answer to a farewell has come: it has got so many packets.
    pub fn answers(&mut self, come: u32) {
        self.delivered = Some(come);
    }

    /// Whether this may be the process whose token has this half.
    pub fn is_of(&self, half: u32) -> bool {
        self.place.is_none_or(|(token, _)| token as u32 == half)
    }

    /// When the packet of this number is to be handed on; if now, the next one is expected then.
    pub fn turn(&mut self, number: u32) -> Turn {
        match number.wrapping_sub(self.expected) {
            0 => {
                self.expected = self.expected.wrapping_add(1);
                Turn::Now
            }
            ahead if ahead < WINDOW && !self.kept.contains_key(&number) => Turn::Later,
            _ => Turn::Never,
        }
    }

    /// Keeps a packet until its turn.
    pub fn keep(&mut self, number: u32, meta: Meta, data: &[u8]) {
        self.kept.insert(number, (meta, data.to_vec()));
    }

    /// The next packet, if it was kept.
    pub fn next_kept(&mut self) -> Option<(Meta, Vec<u8>)> {
        let kept = self.kept.remove(&self.expected)?;
        self.expected = self.expected.wrapping_add(1);
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_sim::Random;

    #[test]
    fn packets_in_any_order_within_the_window_are_handed_on_in_theirs() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let (mut from, mut to) = (Peer::default(), Peer::default());
            (from.next, to.expected) = (u32::MAX - 100, u32::MAX - 100);
            let (mut under_way, mut got) = (Vec::new(), Vec::new());
            while got.len() < 500 {
                if from.has_room(0) && (under_way.is_empty() || random.below(2) == 0) {
                    under_way.push(from.next_number());
                    from.begin(0);
                    continue;
                }
                let Some(at) = (!under_way.is_empty()).then(|| random.below(under_way.len())) else { break };
                let number: u32 = under_way.swap_remove(at);
                assert!(!from.is_away(number.wrapping_add(1)));
                from.sent(0, number);
                let first = under_way.iter().copied().min_by_key(|left| left.wrapping_sub(u32::MAX - 100));
                assert!(
                    from.is_away(first.unwrap_or(from.next))
                        && first.is_none_or(|first| !from.is_away(first.wrapping_add(1)))
                );
                match to.turn(number) {
                    Turn::Now => {
                        got.push(number);
                        while let Some((meta, _)) = to.next_kept() {
                            got.push(meta.words[0] as u32);
                        }
                    }
                    Turn::Later => to.keep(number, Meta { kind: 0, words: [number.into(), 0] }, &[]),
                    Turn::Never => panic!("packet {number} of seed {seed}"),
                }
                assert_eq!(to.turn(number), Turn::Never, "a packet comes once");
            }
            assert!(got.iter().zip(u32::MAX - 100..=u32::MAX).all(|(got, wanted)| *got == wanted));
        }
    }
}
