//! The buffers for buffered sends that are attached in a world. The module [`bsend`](crate::bsend) uses them.

use limosa_p2p::{Engine, Interrupted, Observer};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A buffer that a program attached.
#[derive(Debug)]
pub struct SendBuffer {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) used: Arc<AtomicUsize>,
}

impl SendBuffer {
    /// Returns the address and length in bytes, as attached.
    pub fn attached(&self) -> (usize, usize) {
        (self.address, self.bytes)
    }

    /// Whether no message is left in it.
    pub fn is_empty(&self) -> bool {
        self.used.load(Ordering::Acquire) == 0
    }

    /// Waits until no message is left in it.
    ///
    /// # Errors
    /// [`Interrupted`]: some are.
    pub(crate) fn flush(&self, engine: &Engine, observer: &dyn Observer) -> Result<(), Interrupted> {
        engine.block_on(&mut |_| self.is_empty(), observer)
    }
}

/// The buffers attached in a world, by context of the communicator, which is even. That of a session is under the odd
/// number beside twice its own; the process's is under key 0, which is no context.
#[derive(Default)]
pub(crate) struct Buffers(pub(crate) Mutex<FxHashMap<u64, Arc<SendBuffer>>>);

impl Buffers {
    /// Waits until the messages of all buffers have been sent.
    ///
    /// # Errors
    /// [`Interrupted`]: some have not.
    pub(super) fn flush_all(&self, engine: &Engine, observer: &dyn Observer) -> Result<(), Interrupted> {
        let all: Vec<_> = self.0.lock().values().cloned().collect();
        all.iter().try_for_each(|buffer| buffer.flush(engine, observer))
    }
}
