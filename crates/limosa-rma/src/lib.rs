//! One-sided communication (MPI-5 chapter 12): windows, accesses to them, and their synchronisation.
//!
//! There are three paths to a target's memory. The path to each target is chosen when the window is created
//! ([`window`](Window)):
//!
//! | path | when | put and get | accumulate |
//! |---|---|---|---|
//! | direct | mapped here: the library's memory, that of `MPI_Alloc_mem`, a process's own | copies | under a guard |
//! | attached | the program's memory on this host, if cross-memory attach is allowed | system copies; short ones by packets while the target polls | by packets |
//! | remote | otherwise | by packets | by packets |
//!
//! | module | holds |
//! |---|---|
//! | `window` | the object, its creation and destruction |
//! | `epochs` | legality of calls: a pure state machine |
//! | `access` | put, get, accumulate and the like: origin side |
//! | `accumulate` | atomic accumulation on elements in memory |
//! | `packets` | accesses in packets: origin side |
//! | `station` | handlers of packets: target side, and answers |
//! | `guard` | atomicity of accumulation in shared memory |
//! | `shared_lock` | locks of targets, where all members share memory |
//! | `notices` | notices of post and complete, where all members share memory |
//! | `locks` | queue of a target's lock, kept by the target elsewhere |
//! | `conflicts` | detection of accesses to the same bytes in one epoch, with `LIMOSA_CHECK=1` |
//! | `fast_path` | frequent accesses without further checks, directly in memory |
//! | `sync` | fence, lock, flush, post, start, complete, wait |
//! | `allocated` | memory of `MPI_Alloc_mem` that other processes can map |
//! | `memory`, `agree`, `hints`, `wire`, `fetch` | helpers of these |
//!
//! Contract
//! - When the call of an access returns, its data have been copied or sent: the operands of `MPI_Put` and
//!   `MPI_Accumulate` may be changed at once. Results of `MPI_Get` and its variants are there after a flush, or at the
//!   end of the epoch.
//! - A computing target delays no process: packets for which an origin waits wake the target's helper thread.
//! - Each element is accumulated atomically, whatever the paths of the origins.
//! - The death of a member ends all waits, as in collectives.

mod access;
mod accumulate;
mod agree;
pub mod allocated;
mod conflicts;
mod epochs;
mod fast_path;
mod fetch;
mod guard;
mod hints;
mod locks;
mod memory;
mod notices;
mod packets;
mod shared_lock;
mod station;
mod sync;
mod window;
mod wire;

pub use access::{At, Origin};
pub use agree::{Flavor, WindowPart};
pub use fast_path::Spot;
pub use hints::Hints;
pub use station::perform_access;
pub use sync::LockKind;
pub use window::Window;
