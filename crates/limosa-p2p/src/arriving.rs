//! Eager messages that come in parts, so that the receiver copies one part out while the sender copies the next one in.
//!
//! The parts of a message follow one another on their lane with nothing of the same peer's messages between them, so at
//! most one message per peer is arriving. It goes to the receive that matched its beginning, or is kept until one asks
//! for it.

use crate::matching::Envelope;
use crate::memory::Region;
use crate::request::RequestId;
use limosa_device::Peer;

/// Where the parts go.
pub(crate) enum Target {
    /// To the direct receive.
    Direct,
    /// To this receive.
    Request(RequestId, Region),
    /// To the message kept under this number.
    Kept(usize),
}

/// A message whose parts are coming.
pub(crate) struct Arrival {
    pub envelope: Envelope,
    pub total: usize,
    pub received: usize,
    pub target: Target,
}

/// All messages that are arriving, or were when they were kept.
pub(crate) struct Arrivals {
    current: Vec<Option<Arrival>>,
    kept: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl Arrivals {
    pub fn new(peers: u32) -> Arrivals {
        Arrivals { current: (0..peers).map(|_| None).collect(), kept: Vec::new(), free: Vec::new() }
    }

    /// One peer more.
    pub fn add_peer(&mut self) {
        self.current.push(None);
    }

    /// What is arriving from a peer.
    pub fn from(&mut self, peer: Peer) -> &mut Option<Arrival> {
        &mut self.current[peer as usize]
    }

    /// The same, to be changed in place.
    #[inline]
    pub fn current(&mut self, peer: Peer) -> Option<&mut Arrival> {
        self.current[peer as usize].as_mut()
    }

    /// Makes room to keep one more message; false if there is no memory for it.
    pub fn make_room(&mut self) -> bool {
        !self.free.is_empty() || self.kept.try_reserve(1).is_ok()
    }

    /// Keeps a message for which `room` has been allocated; returns its number.
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

    /// What has come so far of a kept message.
    pub fn kept(&mut self, slot: usize) -> &mut Vec<u8> {
        &mut self.kept[slot]
    }

    /// Takes out what has come of a kept message, and has the rest, if there is any to come, go to `target`; says
    /// whether there is.
    pub fn take(&mut self, peer: Peer, slot: usize, target: impl FnOnce() -> Target) -> (Vec<u8>, bool) {
        let data = std::mem::take(&mut self.kept[slot]);
        self.free.push(slot);
        match &mut self.current[peer as usize] {
            Some(arrival) if matches!(arrival.target, Target::Kept(s) if s == slot) => {
                arrival.target = target();
                (data, true)
            }
            _ => (data, false),
        }
    }

    /// Messages that are arriving or are kept.
    pub fn count(&self) -> usize {
        let arriving =
            self.current.iter().flatten().filter(|arrival| !matches!(arrival.target, Target::Kept(_))).count();
        arriving + self.kept.len() - self.free.len()
    }

    /// Nothing will come any more.
    pub fn clear(&mut self) {
        self.current.iter_mut().for_each(|c| *c = None);
    }
}
