//! Credit: how far a process may get ahead of the receives of a remote peer.
//!
//! A waiting rank holds every message that arrives ([`ProtocolState::is_full`]), so a flood from another host would
//! fill its memory. Credit bounds it:
//! - the sender counts the eager bytes for each remote peer. After each half window it asks for credit (`ASK`);
//! - the receiver answers (`CREDIT`) as soon as it holds at most an eighth of a window of this sender's messages;
//! - a sender that is a window ahead of the last answer offers its messages (`OFFER_SHORT`): their bytes stay in its
//!   memory until they are received, or fetched before;
//! - the receiver fetches the oldest of these (`FETCH`), many by one packet, up to an eighth of a window: again when
//!   half of it has been received. So receives that catch up with a flood find their messages here, and do not wait for
//!   a round trip each.
//!
//! A receiver thus holds at most one and a quarter windows of each remote sender's messages, and an offer for each
//! further message. A pair whose receiver keeps up exchanges two packets for each half window.

use super::{Deferred, HELD_BYTES, ProtocolState, Unexpected, received, room_for};
use crate::arriving::ArrivalTarget;
use crate::completion::{Completion, RequestId};
use crate::matching::{EntryId, Envelope};
use crate::memory::Region;
use crate::request::Phase;
use crate::wire;
use limosa_device::{Devices, Meta, Peer, Urgency};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Longest window, in bytes. Programs that send by `MPI_Send` before they receive rely on a long one.
const MAX_WINDOW: usize = 16 << 20;
/// Maximum number of messages that one `FETCH` asks for. Half as many may be on their way when it is sent.
const MAX_FETCHED: usize = 256;

/// Eager traffic with one peer.
#[derive(Clone, Default)]
struct Account {
    /// Bytes sent.
    sent: u64,
    /// Bytes sent when credit was last asked for.
    asked: u64,
    /// Bytes sent that the last answer covers.
    covered: u64,
    /// Bytes of the peer's messages that are held here, without those that were fetched.
    held: u64,
    /// Bytes of those that were fetched and not received yet.
    fetched: u64,
    /// The peer's unanswered question.
    question: Option<u64>,
    /// Unexpected offers of the peer that may be fetched, oldest first. Some may have been received meanwhile.
    offers: VecDeque<EntryId>,
    /// Messages of the peer on their way that were fetched and that no receive has matched.
    fetching: usize,
}

impl Account {
    /// Returns the counter of the bytes of held messages, or of fetched ones.
    #[inline]
    fn taken(&mut self, is_fetched: bool) -> &mut u64 {
        if is_fetched { &mut self.fetched } else { &mut self.held }
    }
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
        let sent = account.question.take_if(|_| account.held <= self.window / 8)?;
        Some(wire::about(wire::CREDIT, sent, 0))
    }
}

impl Unexpected {
    /// Returns the sender whose message takes memory here, and whether the message was fetched.
    #[inline]
    fn holder_of_credit(&self) -> Option<(Peer, bool)> {
        match self {
            Unexpected::Eager { from, .. } | Unexpected::Arriving { from, .. } => Some((*from, false)),
            Unexpected::Fetched { from, .. } => Some((*from, true)),
            Unexpected::Offer { .. } | Unexpected::Local { .. } => None,
        }
    }

    /// Returns the memory in bytes that the message takes here.
    pub(super) fn held_bytes(&self) -> usize {
        HELD_BYTES
            + match self {
                Unexpected::Eager { data, .. } => data.len(),
                Unexpected::Arriving { total, .. } | Unexpected::Fetched { total, .. } => *total,
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
        if let Some((from, is_fetched)) = message.holder_of_credit() {
            *self.credit.accounts[from as usize].taken(is_fetched) += message.held_bytes() as u64;
        }
    }

    /// Subtracts a message from its sender's account. The answer that this makes possible is sent with the deferred
    /// work.
    #[inline]
    pub(super) fn release_credit(&mut self, message: &Unexpected) {
        let Some((from, is_fetched)) = message.holder_of_credit() else { return };
        let account = &mut self.credit.accounts[from as usize];
        let taken = account.taken(is_fetched);
        // A message of a process that was forgotten is in no account.
        *taken = taken.saturating_sub(message.held_bytes() as u64);
        if account.question.is_some() || !account.offers.is_empty() {
            self.less_is_held(from);
        }
    }

    /// Answers the question of a peer and fetches its offers, if little enough is held.
    #[inline(never)]
    fn less_is_held(&mut self, from: Peer) {
        if let Some(meta) = self.credit.answer(from) {
            let data = SmallVec::new();
            self.deferred.push(Deferred::Packet { to: from, meta, data, urgency: Urgency::Normal });
        }
        self.fetch_ahead(from);
    }

    /// Records that an unexpected offer may be fetched.
    pub(super) fn may_fetch(&mut self, from: Peer, entry: EntryId) {
        let offers = &mut self.credit.accounts[from as usize].offers;
        if offers.len() == offers.capacity() {
            // Before the queue grows, it is swept. Room for as many again makes the cost per offer constant.
            let matcher = &mut self.matcher;
            offers.retain(|entry| matcher.unexpected_mut(*entry).is_some());
            offers.reserve(offers.len() + 1);
        }
        offers.push_back(entry);
        self.fetch_ahead(from);
    }

    /// Records that a fetched message has arrived, or that a receive waits for it.
    pub(super) fn fetch_ended(&mut self, from: Peer) {
        let account = &mut self.credit.accounts[from as usize];
        // A message of a process that was forgotten is in no account.
        account.fetching = account.fetching.saturating_sub(1);
        self.fetch_ahead(from);
    }

    /// Fetches the oldest offers of a peer, if few of its fetched messages are still to be received.
    fn fetch_ahead(&mut self, from: Peer) {
        let account = &self.credit.accounts[from as usize];
        if account.fetched > self.credit.window / 16
            || account.fetching > MAX_FETCHED / 2
            || self.unreachable(from).is_some()
        {
            return;
        }
        let mut data: SmallVec<[u8; 64]> = SmallVec::new();
        while data.len() < 16 * MAX_FETCHED
            && let Some((send, request)) = self.fetch_next(from)
        {
            data.extend_from_slice(&send.to_ne_bytes());
            data.extend_from_slice(&request.to_wire().to_ne_bytes());
        }
        if !data.is_empty() {
            let meta = wire::about(wire::FETCH, 0, 0);
            self.deferred.push(Deferred::Packet { to: from, meta, data, urgency: Urgency::Urgent });
        }
    }

    /// Prepares to fetch the oldest offer of a peer. Returns its send and the request that awaits the message; `None`
    /// if there is no offer, or no room for it.
    fn fetch_next(&mut self, from: Peer) -> Option<(u64, RequestId)> {
        loop {
            let account = &mut self.credit.accounts[from as usize];
            let entry = *account.offers.front()?;
            let Some(message) = self.matcher.unexpected_mut(entry) else {
                account.offers.pop_front();
                continue;
            };
            let Unexpected::Offer { offer, .. } = *message else { unreachable!("a fetched offer is in no queue") };
            let fetched = account.fetched.saturating_add(HELD_BYTES as u64).saturating_add(offer.len);
            if fetched > self.credit.window / 8 || !self.arrivals.make_room() {
                return None;
            }
            let (total, slot) = (offer.len as usize, self.arrivals.keep(room_for(offer.len as usize)?));
            account.offers.pop_front();
            let phase = Phase::Fetching { peer: from, slot, len: offer.len };
            let request = self.requests.insert(phase, Region::empty());
            self.interest += 1;
            *message = Unexpected::Fetched { from, request, slot, total };
            account.fetched = fetched;
            account.fetching += 1;
            self.unexpected_bytes += total;
            return Some((offer.send, request));
        }
    }

    /// Handles `FETCH`: the receiver asks for messages that were offered for want of credit.
    pub(super) fn offers_fetched(&mut self, from: Peer, data: &[u8]) -> bool {
        data.chunks(16).all(|pair| {
            let (Some(send), Some(receive)) = (wire::word(pair, 0), wire::word(pair, 1)) else { return false };
            let send = RequestId::from_wire(send);
            let len = self.requests.get(send).map_or(0, |request| request.region.len() as u64);
            self.accepted(send, from, receive, len, None)
        })
    }

    /// Gives a fetched message, or as much as has come of it, to the receive that has matched it. The request of the
    /// fetch becomes that of the receive.
    pub(super) fn receive_fetched(
        &mut self,
        id: RequestId,
        envelope: &Envelope,
        from: Peer,
        slot: usize,
        total: usize,
        region: Region,
    ) {
        let (data, _) = self.arrivals.take(from, slot, || ArrivalTarget::Kept(slot));
        region.write(0, &data[..data.len().min(region.len())]);
        self.traffic.receive(total.min(region.len()) as u64);
        let request = self.requests.get_mut(id).expect("it is kept until its message is received");
        if request.completion.failure.is_none() {
            request.completion = received(envelope, total as u64, region.len() as u64);
        }
        if let Phase::Fetching { peer, len, .. } = request.phase {
            request.phase = Phase::Streaming { peer, expected: len, received: data.len() as u64 };
            request.region = region;
            self.fetch_ended(from);
        }
    }

    /// Handles `STREAM` for a message that is being fetched into this slot. Returns false if the packet is invalid.
    pub(super) fn fetched(&mut self, id: RequestId, from: Peer, offset: u64, data: &[u8]) -> bool {
        let Some(Phase::Fetching { peer, slot, len }) = self.requests.get(id).map(|request| request.phase) else {
            return false;
        };
        let room = self.arrivals.kept(slot);
        let so_far = room.len() as u64;
        if peer != from || offset != so_far || data.len() as u64 > len - so_far {
            return false;
        }
        room.extend_from_slice(data);
        if room.len() as u64 == len {
            self.interest -= 1;
            self.complete(id, Completion::default());
            self.fetch_ended(from);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Offer;

    const LIMIT: usize = 100_000;

    #[test]
    fn offers_that_were_received_are_not_kept() {
        let mut state = ProtocolState::new(0, 2, 16384, LIMIT);
        let envelope = |tag| Envelope { context: 2, source: 1, tag };
        // The first one is too long to be fetched, and stays.
        for tag in 0..10_000 {
            let offer = Offer { send: 0, len: LIMIT as u64, address: 0, pieces: 0, joint: 0 };
            state.offer_arrived(1, &envelope(tag), offer, true);
            if tag > 0 {
                let message = state.matcher.take_where(&envelope(tag), |_| true).expect("it is held");
                state.release(&message);
            }
        }
        assert!(state.credit.accounts[1].offers.capacity() < 100);
        assert_eq!(state.matcher.unexpected_len(), 1);
    }

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
        credit.accounts[0].held = 12_501;
        assert_eq!(credit.ask(0, 8), None);
        credit.accounts[0].held = 12_500;
        assert_eq!(credit.answer(0), Some(wire::about(wire::CREDIT, 8, 0)));
        assert_eq!(credit.answer(0), None);
    }
}
