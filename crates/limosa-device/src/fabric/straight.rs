//! Long messages that travel straight from the sender's memory to the receiver's, as tagged messages of libfabric.
//!
//! The receiver makes its memory ready under a ticket of random bits and tells the sender. Both cut the message into
//! parts of [`PART`] bytes; part `n` has the tag `ticket + n`. A few parts of a message are under way at a time. A
//! process that does not know the ticket cannot write to the memory.
//!
//! A transfer that is given up stays until the provider has let go of all its parts.

use super::endpoint::{Endpoint, Known, Slot};
use crate::{Address, Slice};
use std::collections::VecDeque;

/// Bytes of each part but the last one. The kernel copies what one system call sends before the receiver gets any of
/// it: with parts from 256 KB on, both sides often work by turns, and a message takes twice as long or not, without a
/// pattern. Shorter parts cost more system calls.
const PART: usize = 112 * 1024;
/// Parts of one message that are under way at a time; a receiver is ready for more than a sender sends.
const SENDS: usize = 4;
const RECEIVES: usize = 6;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    In,
    Out(Known),
}

/// A message.
pub struct Transfer {
    peer: Address,
    way: Way,
    memory: Slice,
    ticket: u64,
    /// Those of a tag.
    bits: u64,
    note: u64,
    /// Bytes of the parts that have begun.
    begun: usize,
    /// Parts under way.
    under_way: usize,
    is_given_up: bool,
}

impl Transfer {
    pub fn new(peer: Address, way: Way, memory: Slice, ticket: u64, bits: u64, note: u64) -> Transfer {
        Transfer { peer, way, memory, ticket, bits, note, begun: 0, under_way: 0, is_given_up: false }
    }
}

/// A part that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    transfer: usize,
    pub peer: Address,
    pub len: usize,
}

/// All such messages of a process.
#[derive(Default)]
pub struct Straight {
    transfers: Vec<Option<Transfer>>,
    /// By buffer that stands for a part: the part.
    parts: Vec<Option<Part>>,
    free: Vec<Slot>,
    /// Receives that are posted.
    receives: usize,
    /// The provider had no room for a part.
    is_short: bool,
    /// Notes of those that have ended.
    ended: VecDeque<u64>,
}

// SAFETY: memory of the program belongs to no thread.
unsafe impl Send for Straight {}

impl Straight {
    /// Begins a transfer.
    ///
    /// # Errors
    /// The library's; for a receive also that there is no room for it now.
    ///
    /// # Safety
    /// The memory stays as it is until the transfer has ended, or has been withdrawn.
    pub unsafe fn begin(&mut self, endpoint: &mut Endpoint, transfer: Transfer) -> Result<(), i32> {
        let is_receive = transfer.way == Way::In;
        if is_receive && self.receives + RECEIVES > endpoint.spare_receives() {
            return Err(libc::EAGAIN);
        }
        let at = self.transfers.iter().position(Option::is_none).unwrap_or(self.transfers.len());
        if at == self.transfers.len() {
            self.transfers.push(None);
        }
        self.transfers[at] = Some(transfer);
        let begun = self.advance(endpoint, at);
        let has_begun = self.transfers[at].as_ref().is_some_and(|transfer| transfer.under_way > 0);
        if has_begun || (begun.is_ok() && !is_receive) {
            return Ok(());
        }
        self.transfers[at] = None;
        Err(begun.err().unwrap_or(libc::EAGAIN))
    }

    /// Begins as many parts as may be under way.
    fn advance(&mut self, endpoint: &mut Endpoint, at: usize) -> Result<(), i32> {
        let Some(transfer) = &mut self.transfers[at] else { return Ok(()) };
        let most = if transfer.way == Way::In { RECEIVES } else { SENDS };
        while transfer.under_way < most && transfer.begun < transfer.memory.iov_len && !transfer.is_given_up {
            let len = PART.min(transfer.memory.iov_len - transfer.begun);
            let number = (transfer.begun / PART) as u64;
            let tag = transfer.ticket.wrapping_add(number) & transfer.bits;
            let memory = Slice { iov_base: transfer.memory.iov_base.wrapping_byte_add(transfer.begun), iov_len: len };
            let slot = match self.free.pop() {
                Some(slot) => slot,
                None => endpoint.make(0).map_err(|_| libc::ENOMEM)?,
            };
            // SAFETY: the promise of the caller that began the transfer. It lasts until the provider has let go of all
            // parts.
            let begun = unsafe {
                match transfer.way {
                    Way::In => endpoint.receive_straight(slot, memory, tag),
                    Way::Out(to) => endpoint.send_straight(slot, memory, tag, to),
                }
            };
            if !matches!(begun, Ok(true)) {
                self.free.push(slot);
                self.is_short |= begun.is_ok();
                return begun.map(|_| ());
            }
            self.receives += usize::from(transfer.way == Way::In);
            transfer.begun += len;
            transfer.under_way += 1;
            self.parts.resize(self.parts.len().max(slot.0 + 1), None);
            self.parts[slot.0] = Some(Part { transfer: at, peer: transfer.peer, len });
        }
        Ok(())
    }

    /// An operation has ended for which this buffer stands: the part, if it is one.
    pub fn part_ended(&mut self, slot: Slot) -> Option<Part> {
        let part = self.parts.get_mut(slot.0)?.take()?;
        self.free.push(slot);
        let transfer = self.transfers[part.transfer].as_mut().expect("it stays until its parts have ended");
        transfer.under_way -= 1;
        self.receives -= usize::from(transfer.way == Way::In);
        Some(part)
    }

    /// After a part that has gone well.
    pub fn go_on(&mut self, endpoint: &mut Endpoint, part: Part) {
        if self.advance(endpoint, part.transfer).is_err() {
            return self.give_up(part);
        }
        self.settle(part.transfer);
    }

    /// After a part that has failed: the rest does not matter any more.
    pub fn give_up(&mut self, part: Part) {
        if let Some(transfer) = &mut self.transfers[part.transfer] {
            transfer.is_given_up = true;
        }
        self.settle(part.transfer);
    }

    /// Forgets a transfer of which nothing is under way and nothing left.
    fn settle(&mut self, at: usize) {
        let Some(transfer) = &self.transfers[at] else { return };
        let is_whole = transfer.begun == transfer.memory.iov_len && !transfer.is_given_up;
        if transfer.under_way > 0 || !(is_whole || transfer.is_given_up) {
            return;
        }
        if is_whole {
            self.ended.push_back(transfer.note);
        }
        self.transfers[at] = None;
    }

    /// Tries again what the provider had no room for.
    pub fn try_again(&mut self, endpoint: &mut Endpoint) {
        if !std::mem::take(&mut self.is_short) {
            return;
        }
        for at in 0..self.transfers.len() {
            if self.advance(endpoint, at).is_err()
                && let Some(transfer) = &mut self.transfers[at]
            {
                transfer.is_given_up = true;
            }
        }
    }

    /// Gives up all transfers with a peer; true if the provider has let go of all memory that it was to write to.
    pub fn withdraw(&mut self, endpoint: &mut Endpoint, peer: Address) -> bool {
        for at in 0..self.transfers.len() {
            if let Some(transfer) = self.transfers[at].as_mut().filter(|transfer| transfer.peer == peer) {
                transfer.is_given_up = true;
                self.settle(at);
            }
        }
        let is_left = |part: &Part| {
            part.peer == peer && self.transfers[part.transfer].as_ref().is_some_and(|left| left.way == Way::In)
        };
        let left: Vec<Slot> =
            (0..self.parts.len()).filter(|at| self.parts[*at].as_ref().is_some_and(is_left)).map(Slot).collect();
        left.iter().for_each(|slot| endpoint.cancel(*slot));
        left.is_empty()
    }

    /// Whether parts of any message are under way.
    pub fn is_under_way(&self) -> bool {
        self.transfers.iter().flatten().any(|transfer| transfer.under_way > 0)
    }

    /// Whether anything is on its way to a peer.
    pub fn is_sending(&self, to: Address) -> bool {
        self.transfers.iter().flatten().any(|transfer| transfer.peer == to && transfer.way != Way::In)
    }

    /// Whether something must be tried again of which no end of an operation tells.
    pub fn must_try(&self) -> bool {
        self.is_short
    }

    /// Whether transfers have ended.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// The note of the next one that has.
    pub fn next_ended(&mut self) -> Option<u64> {
        self.ended.pop_front()
    }
}
