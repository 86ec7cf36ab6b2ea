//! The few operating-system calls of this crate. To be unified with the segment module of `limosa-base`.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

/// A shared, writable mapping of the first bytes of a file. Unmapped when dropped.
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory; all access to it goes through atomics (see `layout`).
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `fd`.
    pub(crate) fn new(fd: BorrowedFd<'_>, len: usize) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no memory of ours.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, len })
    }

    /// The object of type `T` at byte `offset`, or `None` if it would not lie inside the mapping, properly aligned.
    pub(crate) fn at<T: AtomicsOnly>(&self, offset: usize) -> Option<&T> {
        let end = offset.checked_add(size_of::<T>())?;
        if end > self.len || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: in bounds and aligned (the base is page-aligned); `T` consists of atomics, for which every bit
        // pattern is valid and which others may change at any time.
        Some(unsafe { &*self.base.as_ptr().add(offset).cast::<T>() })
    }

    /// Sets the object of type `T` at byte `offset`, if there is one, to zeroes.
    pub(crate) fn clear<T: AtomicsOnly>(&self, offset: usize) {
        if self.at::<T>(offset).is_none() {
            return;
        }
        for at in (offset..offset + size_of::<T>()).step_by(8) {
            // SAFETY: in bounds and aligned by the check above; atomics of smaller sizes may be written as one word.
            unsafe { (*self.base.as_ptr().add(at).cast::<AtomicU64>()).store(0, Ordering::Relaxed) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and references into it borrow `self`.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// Types that may live in shared memory: nothing but atomics.
///
/// # Safety
/// Every field must be an atomic integer or an array or struct of such, without padding that anyone reads.
pub(crate) unsafe trait AtomicsOnly {}

/// A new anonymous memory file of `len` bytes. The memory of the first `reserved` ones is reserved, so that a lack of
/// it is an error here and not a signal later.
pub(crate) fn memory_file(name: &str, len: usize, reserved: usize) -> io::Result<OwnedFd> {
    let name = CString::new(name).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Beyond the limit the system does not only refuse, it sends SIGXFSZ.
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Fsize).current
        && limit < len as u64
    {
        return Err(io::Error::other(format!(
            "the limit of file sizes (`ulimit -f`) is {limit} bytes, but shared memory of {len} bytes counts as a file"
        )));
    }
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&fd, len as u64)?;
    rustix::fs::fallocate(fd.as_fd(), FallocateFlags::empty(), 0, reserved as u64)?;
    // A process that makes it shorter would end all ranks by SIGBUS.
    // Sandboxes that have no seals do without.
    let _ = rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK);
    Ok(fd)
}

/// CLOCK_MONOTONIC in nanoseconds: the same clock for all processes of a machine.
pub fn monotonic_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// 64 random bits, never zero.
pub(crate) fn random_id() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes) | 1)
}

/// True if a process with this id exists.
pub(crate) fn process_exists(pid: u32) -> bool {
    match i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        Some(pid) => !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_make_the_memory_of_a_job_shorter() {
        let fd = memory_file("limosa-test", 8192, 8192).expect("a memory file");
        assert_eq!(rustix::fs::ftruncate(&fd, 4096), Err(rustix::io::Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&fd, 16384), Ok(()), "ranks make it longer");
    }
}
