//! One-sided communication (MPI-5 chapter 12): windows, accesses to them, and their synchronisation.
//!
//! A target's memory is reached in one of three ways, chosen for each target when the window is made
//! ([`window`](Window)):
//!
//! | way | when | put and get | accumulate |
//! |---|---|---|---|
//! | direct | it is mapped here: the library's memory, that of `MPI_Alloc_mem`, a process's own | copies | under a guard beside it |
//! | attached | the program's, on this host, if cross-memory attach is allowed | the system copies; short ones by packets while the target polls | by packets |
//! | remote | otherwise | by packets | by packets |
//!
//! | module | holds |
//! |---|---|
//! | `window` | the object, its creation and end |
//! | `epochs` | which calls are legal now: a pure state machine |
//! | `access` | put, get, accumulate and the like, on the origin's side |
//! | `accumulate` | what accumulation does to elements in memory, atomically |
//! | `packets` | accesses in packets, on the origin's side |
//! | `station` | handlers of packets: the target's side, and answers |
//! | `guard` | what keeps accumulation atomic in memory that others share |
//! | `shared_lock` | the locks of targets, where all members share memory |
//! | `notices` | who has posted and completed, where all members share memory |
//! | `locks` | the queue of a target's lock, kept by the target where not |
//! | `conflicts` | accesses that touch the same bytes in one epoch, found with `LIMOSA_CHECK=1` |
//! | `fast_path` | frequent accesses that need no check: straight in memory |
//! | `sync` | fence, lock, flush, post, start, complete, wait |
//! | `allocated` | memory of `MPI_Alloc_mem` that others can map |
//! | `memory`, `agree`, `hints`, `wire`, `fetch` | what these need |
//!
//! Contract
//! - Data of an access are on their way, or copied, when its call returns: what `MPI_Put` and `MPI_Accumulate` read may
//!   be changed at once. What `MPI_Get` and its like write is there after a flush, or at the end of the epoch.
//! - A target that computes delays nobody: packets that somebody waits for wake its helper thread.
//! - Each element is accumulated atomically, whatever way its origins reach it.
//! - The death of a member ends whatever waits, as it does in collectives.

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
pub use fast_path::Spot;
pub use hints::Hints;
pub use station::perform_access;
pub use sync::LockKind;
pub use window::{Flavor, Part, Window};
