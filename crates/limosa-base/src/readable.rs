//! Checks whether the processor can read the buffers that a program passes to a call.
//!
//! Python programs pass arrays of any library; arrays in GPU memory have addresses like all others. The kernel checks
//! both ends of a buffer, and readable pages are cached, so that a reused buffer costs two comparisons. Pages that are
//! unmapped later are not noticed.

use std::ptr;

use crate::sync::{AtomicBool, AtomicUsize, Ordering};

const PAGE_BITS: u32 = 12;
const KNOWN_BITS: u32 = 8;

static WATCHING: AtomicBool = AtomicBool::new(false);

/// Numbers of pages that were readable, at the indices that [`place_of`] gives.
static KNOWN: [AtomicUsize; 1 << KNOWN_BITS] = [const { AtomicUsize::new(0) }; 1 << KNOWN_BITS];

/// Enables the check of buffers.
pub fn watch() {
    WATCHING.store(true, Ordering::Relaxed);
}

/// Returns whether both ends of a buffer can be read; true for all buffers before [`watch`] is called.
#[inline(always)]
pub fn is_readable(start: *const u8, bytes: usize) -> bool {
    !WATCHING.load(Ordering::Relaxed) || are_ends_readable(start as usize, bytes)
}

#[inline(never)]
fn are_ends_readable(start: usize, bytes: usize) -> bool {
    bytes == 0 || (is_page_readable(start) && is_page_readable(start.wrapping_add(bytes - 1)))
}

fn is_page_readable(address: usize) -> bool {
    let page = address >> PAGE_BITS;
    let known = &KNOWN[place_of(page)];
    if page != 0 && known.load(Ordering::Relaxed) == page {
        return true;
    }
    let is_readable = probe(address);
    if is_readable {
        known.store(page, Ordering::Relaxed);
    }
    is_readable
}

/// Returns the cache index of a page. Spreads pages: the first and last page of a buffer are often a power of two
/// apart.
fn place_of(page: usize) -> usize {
    ((page as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - KNOWN_BITS)) as usize
}

/// Asks the kernel, which reads a signal set at the address before it refuses the first argument.
fn probe(address: usize) -> bool {
    const NO_SUCH_OPERATION: libc::c_int = -1;
    const SET_BYTES: usize = 8;
    let set = address & !(SET_BYTES - 1);
    // SAFETY: the call changes nothing; the kernel reports an address that it cannot read.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NO_SUCH_OPERATION, set, ptr::null_mut::<u8>(), SET_BYTES) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_readable_and_what_is_not_mapped_is_not() {
        let bytes = vec![1_u8; 100_000];
        for _ in 0..2 {
            assert!(are_ends_readable(bytes.as_ptr() as usize, bytes.len()));
            assert!(!are_ends_readable(0x10, 1));
            assert!(!are_ends_readable(bytes.as_ptr() as usize, usize::MAX / 2));
        }
        assert!(are_ends_readable(0x10, 0));
    }
}
