//! Atomics and cells for this crate's concurrent structures: the standard library's, or loom's under `--cfg loom`.
//!
//! Concurrent code here imports from this module only, so that a model checker can replace what it runs on.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// `std::cell::UnsafeCell` with loom's closure-based access.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Gives `read` a pointer to read through. Dereferencing it is the caller's `unsafe`.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Gives `write` a pointer to write through. Dereferencing it is the caller's `unsafe`.
    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
