//! Devices: they carry packets and bytes between peers, and wake them. They know nothing of communicators, datatypes or
//! MPI errors.
//!
//! A device offers
//! - **packets** ([`Device`]): a few words and up to [`Device::max_data`] bytes, reliable and in order per pair of
//!   peers. Every device has these;
//! - **a wait source**: sending wakes a peer that sleeps. A device of the same host rings the peer's doorbell. Any
//!   other has a descriptor ([`Device::wait_descriptor`]) that a thread of the engine watches, which then rings the
//!   process's own doorbell: one sleep covers all devices;
//! - **shared memory** ([`shm::HostMemory`]), if its peers share a host;
//! - **direct access to a peer's memory** ([`PeerMemory`]), if the system allows it.
//!
//! An engine has one device per peer, chosen at set-up ([`Devices`]), and at most one device that offers shared memory
//! and direct access.
//!
//! Contract of every device, which `tests/conformance` checks on all of them
//! - Packets of one pair arrive in the order in which they were sent, once each and whole, or not at all after
//!   [`DeviceError`].
//! - `send` and `poll` never wait. A send that finds no room has no effect.
//! - A device may hold packets back until their receiver has taken earlier ones. A poll of the sender's then sends
//!   them, for which it is woken. [`Device::release`] sends them at once. Those of a sender that dies are lost.
//! - After [`Device::want_room`] the sender is woken when there is room, and perhaps before: after a wake-up it must
//!   test again.
//! - A packet that is sent while its receiver sleeps wakes it. If no thread of the receiver is in the library, an
//!   urgent packet wakes its helper thread.
//! - Bytes from a peer are checked: invalid ones are [`DeviceError::Corrupt`], never a crash.
//! - A peer that cannot be reached any more although it lives is reported by sends, and once by a poll, after all
//!   packets that it had sent ([`DeviceError::Severed`]); the device continues to serve the others.
//! - A peer that has died is reported once, by [`DeviceError::Died`], after all packets that it had sent; the device
//!   continues to serve the others. Processes of a host have a watch for that ([`Device::death_watch`]). A peer that
//!   has left before it ended has not died; but sends to it that wait for an answer have to end. If nothing else
//!   ends them, the device reports that ([`DeviceError::Left`]).
//!
//! | device | peers | wait source | shared memory | direct access |
//! |---|---|---|---|---|
//! | [`shm`] | of this host | doorbells | yes | yes, where the system allows it |
//! | [`messages`] | of this host, treated as if they were elsewhere | doorbells | no | no |
//! | [`sockets`] | of other jobs on this host | a descriptor | no | no |
//! | [`files`] | that share a folder | descriptor | no | no |
//! | [`fabric`] | that a network reaches | descriptor | no | no |

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use limosa_base::copy::copy_slice;

pub use devices::{DeviceId, Devices};
pub use limosa_base::joint::{Joint, Stretch};
pub use limosa_base::vm::{Slice, slice};
pub use shm::DeathWatch;

mod devices;
pub mod fabric;
pub mod files;
pub mod messages;
pub mod shm;
pub mod sockets;

/// A process that an engine exchanges messages with, by its number in the engine: first those of the own job by rank,
/// then those that were added.
pub type Peer = u32;

/// A peer as its device numbers it; for a device of the processes of a host the process's number on that host.
pub type Address = u32;

/// The words of a packet, uninterpreted by devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Kind of packet.
    pub kind: u8,
    /// Two words for the protocol.
    pub words: [u64; 2],
}

/// The data of a packet to send.
pub enum Data<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many bytes, written by the closure directly to their destination.
    Fill(usize, &'a mut dyn FnMut(&mut [u8])),
}

impl Data<'_> {
    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Fill(len, _) => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bytes to `to`, which has just their length.
    #[inline]
    pub fn write(&mut self, to: &mut [u8]) {
        match self {
            Data::Bytes(bytes) => copy_slice(bytes, to),
            Data::Fill(_, fill) => fill(to),
        }
    }
}

/// Whether a packet can wait until its receiver polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It can.
    Normal,
    /// A transfer waits for it: wake the receiver's helper thread if no thread of the receiver is polling.
    Urgent,
}

/// The result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// It is on its way.
    Done,
    /// There is no room now; try again later. A sender that stops trying calls [`Device::want_room`] first.
    NoRoom,
}

/// Error of a device.
#[derive(Debug)]
pub enum DeviceError {
    /// No memory for the lane to a peer.
    NoMemory {
        /// The peer.
        peer: Peer,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A peer wrote invalid bytes: its memory is corrupt or it runs another version.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// Its invalid content.
        what: &'static str,
    },
    /// A peer has died, or cannot be reached any more.
    Died {
        /// The peer.
        peer: Peer,
        /// Evidence of the device.
        what: &'static str,
    },
    /// A peer has left in good order: it answers nothing any more.
    Left {
        /// The peer.
        peer: Peer,
        /// Evidence of the device.
        what: &'static str,
    },
    /// No packets are exchanged with a peer any more, although it may live.
    Severed {
        /// The peer.
        peer: Peer,
        /// Why.
        what: String,
    },
    /// The file system refuses what this process needs for any message.
    Storage {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::NoMemory { peer, cause } => {
                write!(f, "no shared memory for messages to process {peer}: {cause}")
            }
            DeviceError::Corrupt { peer, what } => write!(f, "process {peer} sent {what}"),
            DeviceError::Severed { peer, what } => {
                write!(f, "process {peer} and this one cannot exchange messages any more: {what}")
            }
            DeviceError::Storage { path, cause } => {
                write!(f, "the folder {} for messages to this process cannot be used: {cause}", path.display())
            }
            DeviceError::Died { peer, what } | DeviceError::Left { peer, what } => {
                write!(f, "process {peer} cannot be reached any more: {what}")
            }
        }
    }
}

impl std::error::Error for DeviceError {}

/// Direct access to peers' memory; usable by any thread without the engine's lock. Peers go by their addresses on the
/// device that offers this.
pub trait PeerMemory: Send + Sync {
    /// Whether the memory of a peer can be read and written; tried once per peer that has joined.
    fn can_access(&self, peer: Address) -> bool;

    /// Copies all of `remote` in `from`'s memory to `local`; both have the same total length.
    ///
    /// # Errors
    /// The operating system's, when the peer has ended or its memory is not mapped as it said.
    ///
    /// # Safety
    /// The local slices must be writable memory that nothing else uses during the call.
    unsafe fn read(&self, from: Address, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()>;

    /// Copies all of `local` over `remote` in `to`'s memory; both have the same total length.
    ///
    /// # Errors
    /// As for [`PeerMemory::read`].
    ///
    /// # Safety
    /// The local slices must be readable memory that nothing writes to during the call, and the peer must have offered
    /// the remote slices for being written to.
    unsafe fn write(&self, to: Address, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()>;

    /// Copies of offered messages that `of` makes together with its receivers.
    fn joints(&self, of: Address) -> &[Joint];

    /// Whether a thread of `peer` is in the library and waits there.
    fn is_waiting(&self, peer: Address) -> bool;

    /// Whether one does and does not sleep: a packet is taken soon.
    fn is_polling(&self, peer: Address) -> bool;

    /// False if a peer has joined and then ended. Takes system calls: call this only after a long wait.
    fn is_alive(&self, peer: Address) -> bool;
}

/// A way to carry packets. The engine calls it under its lock, from any of its threads.
pub trait Device: Send {
    /// Returns its name, for people.
    fn name(&self) -> &'static str;

    /// Most data bytes in one packet.
    fn max_data(&self) -> usize;

    /// A packet costs much beside its bytes, and so does a round trip: long messages had better travel in the longest
    /// packets, and those that fit in one without being offered first.
    fn is_far(&self) -> bool {
        false
    }

    /// Sends a packet and wakes its receiver if need be.
    ///
    /// # Errors
    /// [`DeviceError::NoMemory`] when the first packet to a peer finds no memory for a lane; [`DeviceError::Died`].
    fn send(&mut self, to: Address, meta: &Meta, data: Data<'_>, urgency: Urgency) -> Result<Sent, DeviceError>;

    /// As [`Device::send`]. The device may read the bytes in place until [`Device::is_away`] returns true.
    ///
    /// # Errors
    /// As for [`Device::send`].
    ///
    /// # Safety
    /// The bytes stay readable until then, or until the device is dropped. Modifying them before changes the data sent.
    unsafe fn send_lent(
        &mut self,
        to: Address,
        meta: &Meta,
        bytes: &[u8],
        urgency: Urgency,
    ) -> Result<Sent, DeviceError> {
        self.send(to, meta, Data::Bytes(bytes), urgency)
    }

    /// Lets `from` send straight to memory; what it needs for that, to be told to it. `None` if that is not possible
    /// now. When the memory is full, [`Device::next_ended`] gives `note` after a poll.
    ///
    /// # Safety
    /// The memory stays writable, and otherwise untouched, until then, or until a poll has reported the death of
    /// `from`, or until the device is dropped.
    unsafe fn expect_straight(&mut self, _from: Address, _room: Slice, _note: u64) -> Option<u64> {
        None
    }

    /// Sends bytes directly to the memory that `to` has made ready, which has room for exactly that many. When the
    /// bytes are no longer needed, [`Device::next_ended`] returns `note` after a poll.
    ///
    /// # Errors
    /// As for [`Device::send`].
    ///
    /// # Safety
    /// The bytes stay readable until then, or until the device is dropped. Modifying them before changes the data sent.
    unsafe fn send_straight(
        &mut self,
        to: Address,
        _ticket: u64,
        _bytes: Slice,
        _note: u64,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Corrupt { peer: to, what: "a ticket although it was not told that it may" })
    }

    /// Returns the note of the next one of these that has ended.
    fn next_ended(&mut self) -> Option<u64> {
        None
    }

    /// Returns whether bytes of such messages are under way.
    fn is_transferring(&self) -> bool {
        false
    }

    /// Returns the number of packets to `to` so far, for [`Device::is_away`]. Wraps around.
    fn packets_to(&self, _to: Address) -> u32 {
        0
    }

    /// Whether the first `count` packets to `to` do not need bytes that were lent for them any more.
    fn is_away(&self, _to: Address, _count: u32) -> bool {
        true
    }

    /// The sender is about to stop trying: `to` must make room and then wake this process. Try once more after this
    /// call.
    fn want_room(&mut self, to: Address);

    /// Whether room appears only by polling the device, which its descriptor asks for. Retrying between two polls is
    /// then useless, even after [`Device::want_room`].
    fn finds_room_by_polls(&self) -> bool {
        false
    }

    /// Hands waiting packets to `sink`, a bounded number of them; true if there were any. Data slices are valid during
    /// the call only.
    ///
    /// # Errors
    /// [`DeviceError::Corrupt`]; [`DeviceError::Died`], once for each peer that has died.
    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError>;

    /// The process may leave soon: lets go of all packets that it holds back, although their receivers have not taken
    /// earlier ones.
    ///
    /// # Errors
    /// As for [`Device::send`].
    fn release(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Whether all packets will reach their receivers although this process does not poll any more. It needs no packets
    /// itself then. To be asked again after polls until it is true.
    fn is_drained(&mut self) -> bool {
        true
    }

    /// After a packet of normal urgency: wakes the helper thread of `to` if no thread of it is looking. Where every
    /// packet is noticed by its receiver there is nothing to do.
    fn alert(&self, _to: Address) {}

    /// After a packet of normal urgency: true if a thread of `to` is going to see it without [`Device::alert`].
    fn is_attended(&self, _to: Address) -> bool {
        true
    }

    /// Returns a descriptor that is readable when [`Device::poll`] has something to do, unless the device rings the
    /// process's doorbell itself.
    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Records that no thread polls until the descriptor is readable: called after the last poll before a thread waits
    /// for it.
    fn rest(&mut self) {}

    /// Returns the watch for deaths of peers, if neither [`Device::send`] nor [`Device::poll`] finds them. A thread
    /// waits for it and then calls [`Device::notice_deaths`].
    fn death_watch(&self) -> Option<Arc<DeathWatch>> {
        None
    }

    /// Records that the death watch has found a death: sends and polls report it from now on.
    fn notice_deaths(&mut self) {}

    /// False if a peer is known to have ended. May take system calls: for slow paths.
    fn is_alive(&self, _peer: Address) -> bool {
        true
    }

    /// Makes ready what a process needs that is to join as number `next`, if this device has room for it.
    ///
    /// # Errors
    /// The operating system's.
    fn prepare(&self, _next: Address) -> io::Result<()> {
        Ok(())
    }

    /// Gets to know the process that has joined as number `peer`, and forgets one that had this number before.
    fn meet(&mut self, _peer: Address, _knew_another: bool) {}
}
