//! Detects, for the price of a load, whether this process is a forked child of the process that initialised the
//! library.
//!
//! A page marked `MADV_WIPEONFORK` holds a one; in a child it reads zero.

use crate::sync::{AtomicPtr, AtomicU32, Ordering};

static MARK: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// Marks this process as the owner. Its future children are not.
pub fn claim() {
    if MARK.load(Ordering::Acquire).is_null() {
        // SAFETY: an anonymous private mapping of one page at an address of the kernel's choice.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return; // Without a page for the mark, children are not recognised; nothing else depends on it.
        }
        // SAFETY: the page was just mapped; the advice changes only what a forked child sees.
        unsafe { libc::madvise(page, 4096, libc::MADV_WIPEONFORK) };
        MARK.store(page.cast(), Ordering::Release);
    }
    let mark = MARK.load(Ordering::Acquire);
    // SAFETY: `mark` points to the start of our page, which is never unmapped.
    unsafe { (*mark).store(1, Ordering::Relaxed) };
}

/// Returns whether this process was forked from the owner (and has not called [`claim`] itself).
#[inline]
pub fn in_child() -> bool {
    let mark = MARK.load(Ordering::Acquire);
    // SAFETY: a non-null mark points to our page, which is never unmapped.
    !mark.is_null() && unsafe { (*mark).load(Ordering::Relaxed) } == 0
}
