//! The lowest layer: shared memory, ring buffers, sleeping and waking, clocks, and the system calls that the layers
//! above need.
//!
//! This crate knows nothing of messages or MPI. Structures that several processes change at once are here and are
//! checked with loom; the crates above lay them out in shared memory and use them. Data read from a shared segment were
//! written by another process; readers treat them as untrusted input.

#[cfg(not(loom))]
pub mod alarm;
pub mod biased;
pub mod bulk;
pub mod clock;
pub mod copy;
#[cfg(not(loom))]
pub mod cpu;
pub mod descriptor;
pub mod doorbell;
#[cfg(not(loom))]
pub mod fence;
#[cfg(not(loom))]
pub mod file;
#[cfg(not(loom))]
pub mod fork;
#[cfg(not(loom))]
pub mod futex;
pub mod hazard;
pub mod joint;
#[cfg(not(loom))]
pub mod mapped_file;
#[cfg(loom)]
mod model;
#[cfg(not(loom))]
pub mod number;
#[cfg(not(loom))]
pub mod place;
pub mod pool;
#[cfg(not(loom))]
pub mod process;
pub mod process_lock;
#[cfg(not(loom))]
pub mod readable;
pub mod readiness;
#[cfg(not(loom))]
pub mod reserve;
pub mod ring;
#[cfg(not(loom))]
pub mod segment;
pub mod slots;
#[cfg(not(loom))]
pub mod spread;
pub mod sync;
#[cfg(not(loom))]
pub mod thread;
#[cfg(not(loom))]
pub mod topology;
#[cfg(not(loom))]
pub mod vm;

#[cfg(loom)]
use model::{cpu, fence, futex};
