//! Atomics, cells, locks and pauses for this crate's concurrent structures: the real ones, or loom's under `--cfg
//! loom`.
//!
//! Concurrent code here imports from this module only, so that a model checker can replace what it runs on. What comes
//! from the operating system has its stand-ins in `model.rs`.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[cfg(loom)]
pub use loom::{hint::spin_loop, thread::yield_now};
#[cfg(not(loom))]
pub use std::hint::spin_loop;
#[cfg(not(loom))]
pub use std::sync::atomic::compiler_fence;
#[cfg(not(loom))]
pub use std::thread::yield_now;

#[cfg(loom)]
pub use crate::model::{Mutex, RawLock};
#[cfg(not(loom))]
pub use parking_lot::Mutex;

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

/// A lock without a guard.
#[cfg(not(loom))]
pub struct RawLock(parking_lot::RawMutex);

#[cfg(not(loom))]
impl RawLock {
    /// A lock that nobody holds.
    pub const fn new() -> RawLock {
        RawLock(<parking_lot::RawMutex as parking_lot::lock_api::RawMutex>::INIT)
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) {
        parking_lot::lock_api::RawMutex::lock(&self.0);
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> bool {
        parking_lot::lock_api::RawMutex::try_lock(&self.0)
    }

    /// Gives the lock up; `fairly`: to one who waits for it, if there is one.
    ///
    /// # Safety
    /// The caller holds it.
    #[inline]
    pub unsafe fn unlock(&self, fairly: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            if fairly {
                parking_lot::lock_api::RawMutexFair::unlock_fair(&self.0);
            } else {
                parking_lot::lock_api::RawMutex::unlock(&self.0);
            }
        }
    }
}

#[cfg(not(loom))]
impl Default for RawLock {
    fn default() -> Self {
        RawLock::new()
    }
}
