//! Atomics, cells, locks and pauses for this crate's concurrent structures: the real ones, or loom's under `--cfg
//! loom`.
//!
//! Concurrent code in this crate imports them only from this module, so that a model checker can replace them.
//! `model.rs` has stand-ins for the operating system.

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
pub use loom_locks::{Mutex, RawLock};
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
    /// Creates a cell that holds `value`.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Calls `read` with a pointer for reading. Dereferencing it is the caller's `unsafe`.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Calls `write` with a pointer for writing. Dereferencing it is the caller's `unsafe`.
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
    /// Creates a free lock.
    pub const fn new() -> RawLock {
        RawLock(<parking_lot::RawMutex as parking_lot::lock_api::RawMutex>::INIT)
    }

    /// Acquires the lock, waiting as long as necessary.
    #[inline]
    pub fn lock(&self) {
        parking_lot::lock_api::RawMutex::lock(&self.0);
    }

    /// Acquires the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        parking_lot::lock_api::RawMutex::try_lock(&self.0)
    }

    /// Releases the lock; if `fairly`, to a waiting thread, if there is one.
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

#[cfg(loom)]
mod loom_locks {
    use loom::sync::{Condvar, MutexGuard};

    /// A lock without poisoning, like the real one.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Creates a lock around `value`.
        pub fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        /// Waits for the lock.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model ends with the first panic")
        }
    }

    /// A lock without a guard.
    #[derive(Debug, Default)]
    pub struct RawLock {
        is_held: Mutex<bool>,
        freed: Condvar,
    }

    impl RawLock {
        /// Creates a free lock.
        pub fn new() -> RawLock {
            RawLock::default()
        }

        /// Waits for the lock.
        pub fn lock(&self) {
            let mut is_held = self.is_held.lock();
            while *is_held {
                is_held = self.freed.wait(is_held).expect("a model ends with the first panic");
            }
            *is_held = true;
        }

        /// Acquires the lock if it is free.
        pub fn try_lock(&self) -> bool {
            !std::mem::replace(&mut *self.is_held.lock(), true)
        }

        /// Releases the lock. loom chooses its next holder.
        ///
        /// # Safety
        /// The caller holds it.
        pub unsafe fn unlock(&self, _fairly: bool) {
            *self.is_held.lock() = false;
            self.freed.notify_one();
        }
    }
}
