//! Devices: they carry packets and bytes between peers, and wake them. They know nothing of communicators, datatypes or MPI errors.
//!
//! A device gives the layer above
//! - **packets** ([`Device::send`], [`Device::poll`]): a few words and up to [`Device::max_data`] bytes, reliable and in order per pair of peers;
//! - **pulling** ([`Puller`]): reading straight from a peer's memory, where the machine allows it;
//! - **wake-ups**: sending wakes a peer that sleeps; urgent packets also wake the helper thread of one that computes.

use std::fmt;
use std::io;
use std::sync::Arc;

pub use limosa_base::joint::Joint;
pub use limosa_base::vm::{Slice, slice};

pub mod shm;

/// A process of the job, by its number in the job.
pub type Peer = u32;

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
    /// So many bytes, written by the closure straight to where they travel.
    Fill(usize, &'a mut dyn FnMut(&mut [u8])),
}

impl Data<'_> {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Data::Bytes(bytes) => bytes.len(),
            Data::Fill(len, _) => *len,
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the bytes to `to`, which has just their length.
    #[inline]
    pub fn write(&mut self, to: &mut [u8]) {
        match self {
            Data::Bytes(bytes) => to.copy_from_slice(bytes),
            Data::Fill(_, fill) => fill(to),
        }
    }
}

/// Whether a packet can wait until its receiver looks by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It can.
    Normal,
    /// A transfer waits for it: wake the receiver's helper thread if no thread of the receiver is polling.
    Urgent,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// It is on its way.
    Done,
    /// There is no room now; try again later. Who cannot keep trying calls [`Device::want_room`] first.
    NoRoom,
}

/// What a device cannot do.
#[derive(Debug)]
pub enum DeviceError {
    /// No memory for the lane to a peer.
    NoMemory {
        /// The peer.
        peer: Peer,
        /// The operating system's word.
        cause: io::Error,
    },
    /// A peer wrote what cannot be: its memory is corrupt or it runs another version.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// What it wrote.
        what: &'static str,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::NoMemory { peer, cause } => write!(f, "no shared memory for messages to process {peer}: {cause}"),
            DeviceError::Corrupt { peer, what } => write!(f, "process {peer} wrote {what} into shared memory"),
        }
    }
}

impl std::error::Error for DeviceError {}

/// Reads and writes peers' memory; usable by any thread without the engine's lock.
pub trait Puller: Send + Sync {
    /// Copies all of `remote` in `from`'s memory to `local`; both have the same total length.
    ///
    /// # Errors
    /// The operating system's, when the peer is gone or its memory is not what it said.
    ///
    /// # Safety
    /// The local slices must be writable memory that nothing else uses during the call.
    unsafe fn pull(&self, from: Peer, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()>;

    /// Copies all of `local` over `remote` in `to`'s memory; both have the same total length.
    ///
    /// # Errors
    /// As for [`Puller::pull`].
    ///
    /// # Safety
    /// The local slices must be readable memory that nothing writes to during the call, and the peer must have offered the remote slices for
    /// being written to.
    unsafe fn push(&self, to: Peer, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()>;
}

/// A way to carry packets.
pub trait Device: Send {
    /// Most data bytes in one packet.
    fn max_data(&self) -> usize;

    /// Sends a packet and wakes its receiver if need be.
    ///
    /// # Errors
    /// [`DeviceError::NoMemory`] when the first packet to a peer finds no memory for a lane.
    fn send(&mut self, to: Peer, meta: &Meta, data: Data<'_>, urgency: Urgency) -> Result<Sent, DeviceError>;

    /// The sender is going to stop trying: see to it that `to` makes room and wakes this process when it has. Try once more after this call.
    fn want_room(&mut self, to: Peer);

    /// Hands waiting packets to `sink`, a bounded number of them; true if there were any. Data slices are valid during the call only.
    ///
    /// # Errors
    /// [`DeviceError::Corrupt`].
    fn poll(&mut self, sink: &mut dyn FnMut(Peer, &Meta, &[u8])) -> Result<bool, DeviceError>;

    /// Whether `peer`'s memory can be pulled from; probed once per peer by doing it. Only asked of peers from whom a packet has come.
    fn can_pull(&mut self, peer: Peer) -> bool;

    /// True if a thread of `peer` is in the library and waits there.
    fn is_waiting(&self, peer: Peer) -> bool;

    /// Copies of offered messages that `of` helps its receivers with, if this device has such.
    fn joints(&self, of: Peer) -> &[Joint];

    /// The puller.
    fn puller(&self) -> Arc<dyn Puller>;
}
