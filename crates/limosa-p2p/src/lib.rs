//! Messages between processes: matching, eager and rendezvous protocols, requests, progress and waiting.
//!
//! This crate knows devices, peers, contexts and tags. It does not know communicators, datatypes or collectives: the
//! layer above describes memory as a [`memory::Region`] and gives each communicator a context id.

mod arriving;
mod choice;
mod completion;
mod engine;
mod handlers;
pub mod inspect;
pub mod interrupt;
pub mod matching;
pub mod memory;
mod request;
mod state;
mod transfer;
mod wire;

pub use completion::{Completion, Failure, Label, Received, RequestId, Short, Unknown};
pub use engine::{
    Attendant, Engine, FastWait, Holdings, Links, Listener, Matched, NotAwaited, Observer, Options, PanicHook, Started,
    Traffic, Unobserved, Unreceived, View, Wait, Words, in_service,
};
pub use handlers::{Actions, Chapter, DeathHook, Handler};
pub use interrupt::Interrupted;
pub use limosa_device::fabric::{Cards, FabricDevice, Wish};
pub use limosa_device::files::{FileDevice, FileOptions, Folders, Notify};
pub use limosa_device::messages::MessagesDevice;
pub use limosa_device::shm::{HostMemory, NamedArea, Seats, ShmDevice};
pub use limosa_device::sockets::{SocketDevice, Sockets};
pub use limosa_device::{Address, Device, DeviceId, Devices, Meta, Peer, PeerMemory, Slice, Urgency, slice};
pub use request::Continuation;
pub use state::{Concerns, Mode, Needs, ProgramJob};
