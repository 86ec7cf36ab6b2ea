//! Copies between lines in another processor's cache and private memory.
//!
//! On x86-64 the string instruction (`rep movsb`) beats loads and stores from some hundred bytes on when the target
//! lines are in another processor's cache: it takes ownership of lines without reading them first. The C library's
//! `memcpy` uses it only for longer blocks.
//!
//! On AMD's processors since Zen 3 it is 15 to 30 times slower if the target's address, modulo 4096, is less than a
//! vector of 32 bytes above the source's: each load then seems to need the store before it (glibc's bug 30994). That is
//! the rule and no exception: memory from `malloc` of 128 KB or more begins 16 bytes behind a page's begin, and ours
//! with a page. `memcpy` of glibc 2.36 is as slow. Loads and stores of vectors are not.

/// Length in bytes from which the string instruction repays its start-up cost.
#[cfg(target_arch = "x86_64")]
const STRING_FROM: usize = 2048;

/// Copies `len` bytes.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    if len <= 16 {
        // SAFETY: the caller's promise.
        unsafe { copy_few(from, to, len) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if len >= STRING_FROM && has_fast_strings() && !follows_closely(from, to) {
        // SAFETY: the caller's promise; the instruction reads `len` bytes at `from` and writes as many at `to`, upwards
        // (the direction flag is clear by the calling convention).
        unsafe {
            std::arch::asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { copy_here(from, to, len) }
}

/// Copies `len` bytes whose target lines are in this processor's cache, if in any.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub unsafe fn copy_here(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= STRING_FROM && follows_closely(from, to) {
        // SAFETY: the caller's promise.
        unsafe { copy_by_vectors(from, to, len) };
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Copies the bytes of a slice to one of the same length.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn copy_slice(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len());
    // SAFETY: both have this many bytes; a mutable slice overlaps no other one.
    unsafe { copy_here(from.as_ptr(), to.as_mut_ptr(), from.len()) }
}

/// Whether the string instruction may be slow for these addresses.
#[cfg(target_arch = "x86_64")]
#[inline]
fn follows_closely(from: *const u8, to: *const u8) -> bool {
    (1..32).contains(&(to.addr().wrapping_sub(from.addr()) & 0xfff))
}

/// Copies by loads and stores of vectors.
///
/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline(never)] // where the compiler knows that the blocks are distinct, it may use `memcpy` instead of the loop
unsafe fn copy_by_vectors(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};
    const STEP: usize = 4 * size_of::<__m128i>();
    let end = len - len % STEP;
    for at in (0..end).step_by(STEP) {
        // SAFETY: the step lies within `end` bytes of both blocks; the accesses need no alignment.
        unsafe {
            let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
            let (first, second) = (_mm_loadu_si128(from), _mm_loadu_si128(from.add(1)));
            let (third, fourth) = (_mm_loadu_si128(from.add(2)), _mm_loadu_si128(from.add(3)));
            _mm_storeu_si128(to, first);
            _mm_storeu_si128(to.add(1), second);
            _mm_storeu_si128(to.add(2), third);
            _mm_storeu_si128(to.add(3), fourth);
        }
    }
    // SAFETY: the rest of the blocks.
    unsafe { std::ptr::copy_nonoverlapping(from.add(end), to.add(end), len - end) }
}

/// Copies up to 16 bytes by two overlapping moves, which is cheaper than a call of the C library.
///
/// # Safety
/// As for [`copy`], with `len` at most 16.
#[inline]
unsafe fn copy_few(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: in each branch both moves lie within `len` bytes.
    unsafe {
        if len >= 8 {
            let (first, last) = (from.cast::<u64>().read_unaligned(), from.add(len - 8).cast::<u64>().read_unaligned());
            to.cast::<u64>().write_unaligned(first);
            to.add(len - 8).cast::<u64>().write_unaligned(last);
        } else if len >= 4 {
            let (first, last) = (from.cast::<u32>().read_unaligned(), from.add(len - 4).cast::<u32>().read_unaligned());
            to.cast::<u32>().write_unaligned(first);
            to.add(len - 4).cast::<u32>().write_unaligned(last);
        } else {
            for i in 0..len {
                *to.add(i) = *from.add(i);
            }
        }
    }
}

/// Prefetches the first lines of a block that is about to be read. Hardware prefetchers stop at page boundaries and
/// cannot foresee a block on another page. The address need not be valid.
#[inline]
pub fn fetch_ahead(at: *const u8, len: usize) {
    /// Bytes that arrive while a piece of some kilobytes is copied.
    const MOST: usize = 512;
    const LINE: usize = 64;
    for offset in (0..len.min(MOST)).step_by(LINE) {
        let line = at.wrapping_add(offset);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that accesses nothing.
        unsafe {
            std::arch::asm!("prefetcht0 [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a hint that accesses nothing.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_fast_strings() -> bool {
    std::is_x86_feature_detected!("ermsb")
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_address_can_be_fetched_ahead() {
        let bytes = [7u8; 100];
        super::fetch_ahead(bytes.as_ptr(), 10_000);
        super::fetch_ahead(std::ptr::without_provenance(1), 100);
        assert_eq!(bytes, [7; 100]);
    }

    #[test]
    fn bytes_of_all_lengths_arrive_and_nothing_else_changes() {
        let from: Vec<u8> = (0..5000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in (0..80).chain([500, 1023, 1024, 1025, 4096, 4999]) {
            let mut to = vec![0xaau8; 5002];
            // SAFETY: both vectors are longer than the copied range.
            unsafe { super::copy(from.as_ptr().add(1), to.as_mut_ptr().add(1), len) };
            assert_eq!(to[1..=len], from[1..=len]);
            assert!(to[0] == 0xaa && to[len + 1..].iter().all(|&b| b == 0xaa));
        }
    }

    #[test]
    fn blocks_at_all_distances_modulo_a_page_arrive() {
        let from: Vec<u8> = (0..20_000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        let mut to = vec![0xaau8; 20_000];
        let start = from.as_ptr().addr().wrapping_sub(to.as_ptr().addr()) & 0xfff;
        for len in [2047, 2048, 2049, 2111, 4096, 8190] {
            for ahead in (0..70).chain(4030..4100) {
                let at = start + ahead;
                for copy in [super::copy, super::copy_here] {
                    to.fill(0xaa);
                    // SAFETY: both vectors are longer than the copied range.
                    unsafe { copy(from.as_ptr(), to.as_mut_ptr().add(at), len) };
                    assert_eq!(to[at..at + len], from[..len]);
                    assert!(to[..at].iter().chain(&to[at + len..]).all(|&b| b == 0xaa));
                }
            }
        }
    }
}
