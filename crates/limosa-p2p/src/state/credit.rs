//! Credit: how far a process may get ahead of the receives of a remote peer.
//!
//! A waiting rank holds every message that arrives ([`ProtocolState::is_full`]), so a flood from another host would
//! fill its memory. Credit bounds it:
//! - the sender counts the eager bytes for each remote peer. After each half window it asks for credit (`ASK`);
//! - the receiver answers (`CREDIT`) as soon as it holds at most a quarter of a window of this sender's messages;
//! - a sender that is a window ahead of the last answer offers its messages: their bytes stay in its memory until they
//!   are received.
//!
//! A receiver thus holds at most one and a quarter windows of each remote sender's messages, and an offer for each
//! further message. A pair whose receiver keeps up exchanges two packets for each half window.

use super::{Deferred, HELD_BYTES, ProtocolState, Unexpected};
use crate::wire;
use limosa_device::{Devices, Meta, Peer, Urgency};
use smallvec::SmallVec;

/// Longest window, in bytes. Programs that send by `MPI_Send` before they receive rely on a long one.
const MAX_WINDOW: usize = 16 << 20;

/// Eager traffic with one peer.
#[derive(Clone, Default)]
struct Account {
    /// Bytes sent.
    sent: u64,
    /// Bytes sent when credit was last asked for.
    asked: u64,
    /// Bytes sent that the last answer covers.
    covered: u64,
    /// Bytes of the peer's messages that are held here.
    held: u64,
    /// The peer's unanswered question.
    question: Option<u64>,
}

/// The accounts of all peers.
pub(super) struct Credit {
    window: u64,
    accounts: Vec<Account>,
}

impl Credit {
    /// Creates the accounts of a process with so many peers and this limit of unexpected messages.
    pub fn new(peers: u32, limit: usize) -> Credit {
        Credit { window: limit.min(MAX_WINDOW) as u64, accounts: vec![Account::default(); peers as usize] }
    }

    pub fn add_peer(&mut self) {
        self.accounts.push(Account::default());
    }

    /// Resets the account of a peer whose number belongs to another process now.
    pub fn forget(&mut self, peer: Peer) {
        self.accounts[peer as usize] = Account::default();
    }

    /// Returns whether a message that takes so many bytes may be sent eagerly.
    fn has(&self, to: Peer, bytes: u64) -> bool {
        let account = &self.accounts[to as usize];
        account.sent - account.covered + bytes <= self.window
    }

    /// Counts such a message. Returns the question if it is time to ask for credit.
    fn spend(&mut self, to: Peer, bytes: u64) -> Option<Meta> {
        let account = &mut self.accounts[to as usize];
        account.sent += bytes;
        if account.sent - account.asked < self.window / 2 {
            return None;
        }
        account.asked = account.sent;
        Some(wire::about(wire::ASK, account.sent, 0))
    }

    /// Handles `CREDIT`. Returns false if it answers no question.
    pub fn grant(&mut self, by: Peer, sent: u64) -> bool {
        let account = &mut self.accounts[by as usize];
        let was_asked = sent <= account.asked;
        if was_asked {
            account.covered = account.covered.max(sent);
        }
        was_asked
    }

    /// Handles `ASK`. Returns the answer, if little enough is held; otherwise it is due when less is held.
    pub fn ask(&mut self, by: Peer, sent: u64) -> Option<Meta> {
        self.accounts[by as usize].question = Some(sent);
        self.answer(by)
    }

    /// Takes the answer to a peer's question, if there is one and little enough is held.
    #[inline]
    fn answer(&mut self, by: Peer) -> Option<Meta> {
        let account = &mut self.accounts[by as usize];
        let sent = account.question.take_if(|_| account.held <= self.window / 4)?;
        Some(wire::about(wire::CREDIT, sent, 0))
    }
}

impl Unexpected {
    /// Returns the sender whose message takes memory here.
    #[inline]
    fn holder_of_credit(&self) -> Option<Peer> {
        match self {
            Unexpected::Eager { from, .. } | Unexpected::Arriving { from, .. } => Some(*from),
            Unexpected::Offer { .. } | Unexpected::Local { .. } => None,
        }
    }

    /// Returns the memory in bytes that the message takes here.
    pub(super) fn held_bytes(&self) -> usize {
        HELD_BYTES
            + match self {
                Unexpected::Eager { data, .. } => data.len(),
                Unexpected::Arriving { total, .. } => *total,
                Unexpected::Offer { .. } | Unexpected::Local { .. } => 0,
            }
    }
}

impl ProtocolState {
    /// Counts an eager message of `len` bytes to a remote peer. Returns false, without effect, if there is no credit
    /// for it.
    pub(super) fn spend_credit(&mut self, devices: &mut Devices, to: Peer, len: usize) -> bool {
        let bytes = (HELD_BYTES + len) as u64;
        let has_credit = self.credit.has(to, bytes);
        if has_credit && let Some(question) = self.credit.spend(to, bytes) {
            self.tell(devices, to, question, &[]);
        }
        has_credit
    }

    /// Adds a message to its sender's account.
    #[inline]
    pub(super) fn hold_credit(&mut self, message: &Unexpected) {
        if let Some(from) = message.holder_of_credit() {
            self.credit.accounts[from as usize].held += message.held_bytes() as u64;
        }
    }

    /// Subtracts a message from its sender's account. The answer that this makes possible is sent with the deferred
    /// work.
    #[inline]
    pub(super) fn release_credit(&mut self, message: &Unexpected) {
        let Some(from) = message.holder_of_credit() else { return };
        let account = &mut self.credit.accounts[from as usize];
        // A message of a process that was forgotten is in no account.
        account.held = account.held.saturating_sub(message.held_bytes() as u64);
        if account.question.is_some()
            && let Some(meta) = self.credit.answer(from)
        {
            let data = SmallVec::new();
            self.deferred.push(Deferred::Packet { to: from, meta, data, urgency: Urgency::Normal });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 100_000;

    #[test]
    fn a_sender_stops_a_window_ahead_and_goes_on_with_the_answer() {
        let mut credit = Credit::new(2, LIMIT);
        let (mut questions, mut sent) = (Vec::new(), 0);
        while credit.has(1, 1000) {
            questions.extend(credit.spend(1, 1000));
            sent += 1;
        }
        assert_eq!((sent, questions.len()), (100, 2));
        assert!(!credit.grant(1, 100_001), "an answer to no question");
        assert!(credit.grant(1, questions[0].words[0]) && credit.has(1, 50_000) && !credit.has(1, 50_001));
        assert!(credit.has(0, 100_000), "another peer has its own account");
    }

    #[test]
    fn a_question_is_answered_once_when_little_is_held() {
        let mut credit = Credit::new(1, LIMIT);
        assert_eq!(credit.ask(0, 7), Some(wire::about(wire::CREDIT, 7, 0)));
        credit.accounts[0].held = 25_001;
        assert_eq!(credit.ask(0, 8), None);
        credit.accounts[0].held = 25_000;
        assert_eq!(credit.answer(0), Some(wire::about(wire::CREDIT, 8, 0)));
        assert_eq!(credit.answer(0), None);
    }
}
