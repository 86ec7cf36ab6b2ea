//! Copies between lines in another processor's cache and private memory.
//!
//! On x86-64 the string instruction (`rep movsb`) beats loads and stores from some hundred bytes on when the target
//! lines are in another processor's cache: it takes ownership of lines without reading them first. The C library's
//! `memcpy` uses it only for much longer blocks.

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
    if len >= STRING_FROM && has_fast_strings() {
        // SAFETY: the caller's promise; the instruction reads `len` bytes at `from` and writes as many at `to`, upwards
        // (the direction flag is clear by the calling convention).
        unsafe {
            std::arch::asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
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
}
