//! A memory reserve, with which the library can still report an error when memory has run out.
//!
//! When an allocation of Rust's collections fails, the process aborts. To return an error instead, the library needs
//! memory for the error's text, for the report, and for ending operations under way. [`Reserved`] is an allocator that
//! keeps a reserve and releases it when a small allocation fails. Large allocations still fail; code that makes them
//! must handle that.
//!
//! Contract:
//! - after [`hold`] has returned true, small allocations of [`RESERVE_BYTES`] in total succeed;
//! - [`hold`] returns false if the reserve was used and cannot be renewed: memory is exhausted. Callers then refuse
//!   work that would need more memory.
//!
//! The reserve is not written to: it takes address space, but no memory.

use crate::sync::{AtomicPtr, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;

/// Bytes of the reserve: more than the C library requests from the system at once for a small allocation.
pub const RESERVE_BYTES: usize = 2 << 20;
/// Maximum size in bytes of allocations that may use the reserve.
pub const SMALL_BYTES: usize = 64 << 10;
/// Retries of a small allocation while another thread releases the reserve.
const TRIES: u32 = 100;

const RESERVE: Layout = match Layout::from_size_align(RESERVE_BYTES, 16) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// The reserve; null if there is none.
static HELD: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());

/// Ensures that there is a reserve. Returns false if there is no memory for it.
#[inline]
pub fn hold() -> bool {
    !HELD.load(Ordering::Relaxed).is_null() || renew()
}

#[cold]
fn renew() -> bool {
    // SAFETY: the layout is not empty.
    let fresh = unsafe { System.alloc(RESERVE) };
    if fresh.is_null() {
        return false;
    }
    if HELD.compare_exchange(ptr::null_mut(), fresh, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: it was allocated above with this layout, and is not shared yet.
        unsafe { System.dealloc(fresh, RESERVE) };
    }
    true
}

/// Releases the reserve. Returns false if there is none.
fn give_up() -> bool {
    let held = HELD.swap(ptr::null_mut(), Ordering::Acquire);
    if held.is_null() {
        return false;
    }
    // SAFETY: it was allocated in `renew` with this layout, and the swap made it ours alone.
    unsafe { System.dealloc(held, RESERVE) };
    true
}

/// Retries a failed allocation with the reserve released.
#[cold]
fn again(bytes: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    if bytes > SMALL_BYTES {
        return ptr::null_mut();
    }
    for _ in 0..TRIES {
        give_up();
        let memory = allocate();
        if !memory.is_null() {
            return memory;
        }
        // Another thread may be releasing the reserve at this moment.
        std::thread::yield_now();
    }
    ptr::null_mut()
}

/// The system's allocator with a reserve.
#[derive(Clone, Copy, Debug)]
pub struct Reserved;

// SAFETY: all memory comes from and goes to the system's allocator with the caller's layout.
unsafe impl GlobalAlloc for Reserved {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, here and below.
        let memory = unsafe { System.alloc(layout) };
        // SAFETY: as above.
        if memory.is_null() { again(layout.size(), || unsafe { System.alloc(layout) }) } else { memory }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let memory = unsafe { System.alloc_zeroed(layout) };
        // SAFETY: as above.
        if memory.is_null() { again(layout.size(), || unsafe { System.alloc_zeroed(layout) }) } else { memory }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { System.realloc(memory, layout, bytes) };
        // SAFETY: as above; the old block is untouched after a failure.
        if moved.is_null() { again(bytes, || unsafe { System.realloc(memory, layout, bytes) }) } else { moved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_small_allocation_that_fails_gets_the_reserve_and_a_long_one_does_not() {
        assert!(hold());
        let tried = Cell::new(0);
        let out_of_memory = || {
            tried.set(tried.get() + 1);
            // There is memory once the reserve has been released.
            if HELD.load(Ordering::Relaxed).is_null() { ptr::dangling_mut() } else { ptr::null_mut() }
        };
        assert!(again(SMALL_BYTES + 1, out_of_memory).is_null());
        assert_eq!(tried.get(), 0);
        assert!(!again(864, out_of_memory).is_null());
        assert!(hold(), "there is memory again");
        assert!(!HELD.load(Ordering::Relaxed).is_null());
        assert!(again(864, ptr::null_mut).is_null());
    }
}
