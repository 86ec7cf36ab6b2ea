//! Names of requests, and how operations end.

use limosa_device::DeviceError;
use std::fmt;

/// Name of a request; a stale name is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl RequestId {
    /// Encodes the name as one word, for packets.
    pub fn to_wire(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Returns the short form of the name.
    pub fn short(self) -> Short {
        Short { index: self.index, generation: self.generation % Short::GENERATIONS }
    }

    /// Decodes the name from a packet's word.
    pub fn from_wire(word: u64) -> RequestId {
        RequestId { index: word as u32, generation: (word >> 32) as u32 }
    }
}

/// Short name of a request. A stale one is detected until [`Short::DISTANCE`] further requests have been started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// Slot of the request.
    pub index: u32,
    /// Generation of the slot, modulo [`Short::GENERATIONS`].
    pub generation: u32,
}

impl Short {
    /// Number of distinguishable generations.
    pub const GENERATIONS: u32 = 1 << 11;
    /// Number of requests that can be started before a name may recur: freed slots rest before they are used again.
    pub const DISTANCE: u32 = 1 << 16;
    /// Number of slots up to which the fast path starts receives ([`crate::Engine::try_start_receive`]).
    pub const FAST: usize = 1 << 16;
}

/// Error: the request does not exist, or no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

/// Data that the layer above stores with a request that it does not keep itself. Requests with a label can be found by
/// their short names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Context id of the communicator.
    pub context: u64,
    /// Word of the layer above.
    pub note: usize,
    /// Rank of the partner, `None` for any.
    pub peer: Option<i32>,
    /// Tag, `None` for any.
    pub tag: Option<i32>,
    /// Whether the operation is a send.
    pub is_send: bool,
}

/// Failure of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message was longer than the receive buffer; the first `room` bytes were received.
    Truncated {
        /// Bytes of the message.
        sent: u64,
        /// Bytes of the receive buffer.
        room: u64,
    },
    /// There is no memory for the named purpose.
    NoMemory(String),
    /// A device has failed, for the given reason.
    Device(String),
    /// The partner has died or is unreachable; names the partner and the evidence.
    PeerDied(String),
    /// Something outside the program keeps living processes from exchanging messages; names the processes and the
    /// cause.
    Severed(String),
    /// The program interrupted the call ([`crate::interrupt`]), and its operation was withdrawn.
    Interrupted,
    /// A collective call on this context was interrupted: this process is out of step with the other members.
    OutOfStep,
    /// The members of the group have called different collectives on this context.
    Disagreement {
        /// Kind of the difference, a number of the layer above.
        class: i32,
        /// Text that names the members and their calls.
        detail: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Truncated { sent, room } => {
                write!(f, "a message of {sent} bytes arrived for a receive buffer of {room} bytes")
            }
            Failure::NoMemory(what) | Failure::Device(what) | Failure::PeerDied(what) | Failure::Severed(what) => {
                f.write_str(what)
            }
            Failure::Disagreement { detail, .. } => f.write_str(detail),
            Failure::Interrupted => f.write_str("the program was interrupted while it waited here"),
            Failure::OutOfStep => f.write_str(
                "an earlier collective call on this communicator was interrupted here, so its ranks are out of step: \
                 go on with a communicator on which none was interrupted, or end the job",
            ),
        }
    }
}

impl std::error::Error for Failure {}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        match error {
            DeviceError::NoMemory { .. } => Failure::NoMemory(error.to_string()),
            DeviceError::Corrupt { .. } => Failure::Device(error.to_string()),
            DeviceError::Severed { .. } | DeviceError::Storage { .. } => Failure::Severed(error.to_string()),
            DeviceError::Died { .. } | DeviceError::Left { .. } => Failure::PeerDied(error.to_string()),
        }
    }
}

/// Completion of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Rank of the sender in the communicator (receives).
    pub source: i32,
    /// Tag (receives).
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
    /// Whether the operation was cancelled.
    pub cancelled: bool,
    /// The failure, if any. Boxed, since completions are moved often and failures are rare.
    pub failure: Option<Box<Failure>>,
}

impl Completion {
    /// Creates the completion of a failed operation.
    #[cold]
    pub(crate) fn failed(failure: Failure) -> Completion {
        Completion { failure: Some(Box::new(failure)), ..Completion::default() }
    }
}

/// Envelope and length of a successfully received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Rank of the sender in the communicator.
    pub source: i32,
    /// Tag of the message.
    pub tag: i32,
    /// Length in bytes.
    pub bytes: u64,
}
