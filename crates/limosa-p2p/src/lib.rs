//! Messages between processes: matching, eager and offered transfers, requests, progress and waiting.
//!
//! Knows devices, peers, contexts and tags. Does not know communicators, datatypes or collectives: the layer above describes memory as a
//! [`memory::Region`] and gives each communicator a context id.

mod arriving;
mod choice;
mod engine;
pub mod matching;
pub mod memory;
mod request;
mod state;
mod transfer;
mod wire;

pub use engine::{Attendant, Engine, Matched, Observer, Options, Started, Unobserved, View, Wait};
pub use limosa_device::shm::{Commons, Found};
pub use limosa_device::{Peer, Puller, Slice, slice};
pub use request::{Completion, Continuation, Failure, Label, RequestId, Short, Unknown};
pub use state::Mode;
