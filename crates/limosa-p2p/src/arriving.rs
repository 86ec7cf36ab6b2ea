//! Eager messages in segments, pipelined: the receiver copies one segment out while the sender copies the next one in.
//!
//! The segments of a message follow each other on their lane, without other messages of the same peer in between. Hence
//! at most one message per peer is arriving. It goes to the receive that matched its first segment, or is held until a
//! receive matches it.

use crate::completion::RequestId;
use crate::matching::Envelope;
use crate::memory::Region;
use limosa_device::Peer;

/// Destination of the segments of a message.
pub(crate) enum ArrivalTarget {
    /// The direct receive.
    Direct,
    /// This posted receive.
    Request(RequestId, Region),
    /// The held message of this slot.
    Kept(usize),
}

/// A message whose segments are arriving.
pub(crate) struct Arrival {
    pub envelope: Envelope,
    pub total: usize,
    pub received: usize,
    pub target: ArrivalTarget,
}

/// All arriving messages, and those that arrived in segments and are held.
pub(crate) struct Arrivals {
    current: Vec<Option<Arrival>>,
    kept: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl Arrivals {
    pub fn new(peers: u32) -> Arrivals {
        Arrivals { current: (0..peers).map(|_| None).collect(), kept: Vec::new(), free: Vec::new() }
    }

    /// Adds a peer.
    pub fn add_peer(&mut self) {
        self.current.push(None);
    }

    /// Returns the slot for the message that is arriving from a peer.
    pub fn from(&mut self, peer: Peer) -> &mut Option<Arrival> {
        &mut self.current[peer as usize]
    }

    /// Returns the message that is arriving from a peer, if any.
    #[inline]
    pub fn current(&mut self, peer: Peer) -> Option<&mut Arrival> {
        self.current[peer as usize].as_mut()
    }

    /// Makes room to hold one more message. Returns false if there is no memory.
    pub fn make_room(&mut self) -> bool {
        !self.free.is_empty() || self.kept.try_reserve(1).is_ok()
    }

    /// Holds a message whose buffer is `room`. Returns its slot.
    pub fn keep(&mut self, room: Vec<u8>) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.kept[slot] = room;
                slot
            }
            None => {
                self.kept.push(room);
                self.kept.len() - 1
            }
        }
    }

    /// Returns the buffer of a held message, which contains its segments so far.
    pub fn kept(&mut self, slot: usize) -> &mut Vec<u8> {
        &mut self.kept[slot]
    }

    /// Takes out a held message. Directs segments that are still to come to `target`, and returns whether there are
    /// any.
    pub fn take(&mut self, peer: Peer, slot: usize, target: impl FnOnce() -> ArrivalTarget) -> (Vec<u8>, bool) {
        let data = std::mem::take(&mut self.kept[slot]);
        self.free.push(slot);
        match &mut self.current[peer as usize] {
            Some(arrival) if matches!(arrival.target, ArrivalTarget::Kept(s) if s == slot) => {
                arrival.target = target();
                (data, true)
            }
            _ => (data, false),
        }
    }

    /// Returns the number of messages that are arriving or held.
    pub fn count(&self) -> usize {
        let arriving =
            self.current.iter().flatten().filter(|arrival| !matches!(arrival.target, ArrivalTarget::Kept(_))).count();
        arriving + self.kept.len() - self.free.len()
    }

    /// Forgets all messages, when communication has ended.
    pub fn clear(&mut self) {
        self.current.iter_mut().for_each(|c| *c = None);
    }
}
