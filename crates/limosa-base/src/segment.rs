//! Mapped parts of a shared memory file.
//!
//! The file is a memfd that all processes of a job on one machine share. Space is reserved ([`reserve`]) before it is
//! touched, so that a lack of memory is an error that the caller can handle instead of a SIGBUS.

use crate::thread;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// Bytes of a page, the unit of mapping. Mappings are aligned to at least this.
pub const PAGE: usize = 4096;

/// Creates an anonymous shared memory file, which is freed with its last user.
///
/// # Errors
/// The operating system's.
pub fn create(name: &CStr, bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: `name` is a valid C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    grow(std::os::fd::AsFd::as_fd(&fd), bytes)?;
    Ok(fd)
}

/// Extends the file to at least `bytes` bytes, allocating at most its last page. Several processes may call this
/// concurrently.
///
/// # Errors
/// The operating system's.
pub fn grow(fd: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    // SAFETY: an all-zero stat is a valid value to be overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid to write to.
    if unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if stat.st_size as u64 >= bytes {
        return Ok(());
    }
    check_file_size_limit(bytes)?;
    // Another process may have extended the file further meanwhile. `ftruncate` would then shorten it; a reservation
    // only ever extends a file.
    if bytes > 0 { reserve(fd, bytes - 1, 1) } else { Ok(()) }
}

/// Refuses a length beyond the limit of file sizes. The kernel would not only refuse it, but also send SIGXFSZ.
fn check_file_size_limit(bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is valid to write to.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0 && limit.rlim_cur < bytes {
        return Err(io::Error::other(format!(
            "the limit of file sizes (`ulimit -f`) is {} bytes, but shared memory of {bytes} bytes counts as a file",
            limit.rlim_cur
        )));
    }
    Ok(())
}

/// Returns the memory in bytes that the system could provide now, if known. [`reserve`] may not detect a shortage
/// before the kernel kills processes.
pub fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Attempts at a reservation. With signals blocked, only stopping and continuing the process interrupts one.
const ATTEMPTS: usize = 100;

/// Allocates the memory for `bytes` at `offset` of the file.
///
/// On many kernels any signal interrupts an allocation, which then undoes its work. A program with a fast timer would
/// never get a large one, so signals are blocked meanwhile.
///
/// # Errors
/// `ENOSPC` or `ENOMEM` if there is not enough memory.
pub fn reserve(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<()> {
    // SAFETY: the call touches no memory of ours.
    uninterrupted(|| unsafe { libc::posix_fallocate(fd.as_raw_fd(), offset as libc::off_t, bytes as libc::off_t) })
}

/// Repeats a call that returns an error number while the result is `EINTR`.
fn uninterrupted(mut call: impl FnMut() -> libc::c_int) -> io::Result<()> {
    let code = thread::without_signals(|| (0..ATTEMPTS).map(|_| call()).find(|code| *code != libc::EINTR))
        .unwrap_or(libc::EINTR);
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

/// Frees the memory for `bytes` at `offset` of the file, which keeps its length. No effect on kernels without support.
pub fn release(fd: BorrowedFd<'_>, offset: u64, bytes: usize) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the call touches no memory of ours.
    unsafe { libc::fallocate(fd.as_raw_fd(), mode, offset as libc::off_t, bytes as libc::off_t) };
}

/// A mapped part of a shared file, unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is an address range; the types stored in it synchronise access.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `bytes` at the page-aligned `offset` of the file, readable and writable, shared.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).expect("mmap never answers with a null address that is not an error");
        Ok(Mapping { base, bytes })
    }

    /// Maps like [`Mapping::new`], at an address that is a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// The operating system's.
    pub fn aligned(fd: BorrowedFd<'_>, offset: u64, bytes: usize, alignment: usize) -> io::Result<Mapping> {
        if alignment <= PAGE {
            return Mapping::new(fd, offset, bytes);
        }
        let length = bytes.checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let room = length.checked_add(alignment).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping without memory at an address of the kernel's choice. The second mapping replaces a part
        // of it, and the surrounding parts are unmapped.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let start = libc::mmap(std::ptr::null_mut(), room, libc::PROT_NONE, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let before = start.addr().next_multiple_of(alignment) - start.addr();
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            let base =
                libc::mmap(start.byte_add(before), length, protection, flags, fd.as_raw_fd(), offset as libc::off_t);
            if base == libc::MAP_FAILED {
                let error = io::Error::last_os_error();
                libc::munmap(start, room);
                return Err(error);
            }
            if before > 0 {
                libc::munmap(start, before);
            }
            if room > before + length {
                libc::munmap(base.byte_add(length), room - before - length);
            }
            Ok(Mapping { base: NonNull::new(base.cast()).expect("it lies in a mapping"), bytes })
        }
    }

    /// Populates all pages now instead of on first use. No effect before Linux 5.14.
    pub fn populate(&self) {
        // SAFETY: a mapping of this many bytes, whose contents do not change.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, libc::MADV_POPULATE_WRITE) };
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the mapping has no bytes: never.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the `count` values of type `T` at byte `offset`.
    ///
    /// # Safety
    /// `T` must be valid for any bytes (all-zero in a fresh file, anything a peer may write) and do its own
    /// synchronisation (atomics, cells).
    ///
    /// # Panics
    /// If the range is not inside the mapping or not aligned for `T`.
    pub unsafe fn slice<T>(&self, offset: usize, count: usize) -> &[T] {
        let bytes = count.checked_mul(size_of::<T>()).expect("a slice of a mapping fits the address space");
        assert!(offset <= self.bytes && bytes <= self.bytes - offset, "slice outside the mapping");
        let start = self.base.as_ptr().wrapping_add(offset);
        assert!(start.addr().is_multiple_of(align_of::<T>()), "slice not aligned");
        // SAFETY: in range and aligned by the assertions; the caller guarantees the type.
        unsafe { std::slice::from_raw_parts(start.cast(), count) }
    }

    /// Returns the address of byte `offset`, for raw copies.
    ///
    /// # Panics
    /// If the offset lies outside the mapping.
    pub fn address(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.bytes, "address outside the mapping");
        self.base.as_ptr().wrapping_add(offset)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference into it outlives the mapping.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Types that may be stored in a shared segment: any bytes are a valid value, and the type synchronises all access.
///
/// # Safety
/// The implementor guarantees both.
pub unsafe trait Foreign {}

/// A value of type `T` in a mapped part of a shared file.
#[derive(Debug)]
pub struct Shared<T: Foreign> {
    mapping: Mapping,
    value: std::marker::PhantomData<T>,
}

impl<T: Foreign> Shared<T> {
    /// Maps `bytes` at `offset` of the file; the value is at their start.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Shared<T>> {
        Shared::aligned(fd, offset, bytes, PAGE)
    }

    /// Maps like [`Shared::new`], at an address that is a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// The operating system's.
    pub fn aligned(fd: BorrowedFd<'_>, offset: u64, bytes: usize, alignment: usize) -> io::Result<Shared<T>> {
        assert!(bytes >= size_of::<T>() && align_of::<T>() <= PAGE, "the value does not fit its mapping");
        Ok(Shared { mapping: Mapping::aligned(fd, offset, bytes, alignment)?, value: std::marker::PhantomData })
    }

    /// Returns the mapping.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }
}

impl<T: Foreign> std::ops::Deref for Shared<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `new` checked size and alignment; `Foreign` says that any bytes are valid.
        unsafe { self.mapping.base.cast::<T>().as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicU32, Ordering};
    use std::os::fd::AsFd;
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::Arc;

    static SIGNALS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_signal: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn the_system_says_how_much_memory_there_is() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn a_process_that_extends_a_file_never_shortens_it() {
        const ROUNDS: u32 = 5000;
        let file = create(c"limosa-test", 0).expect("a memory file");
        let length = || {
            // SAFETY: an all-zero stat is a valid value to be overwritten.
            let mut stat: libc::stat = unsafe { std::mem::zeroed() };
            // SAFETY: `stat` is valid to write to.
            assert_eq!(unsafe { libc::fstat(file.as_raw_fd(), &mut stat) }, 0);
            stat.st_size as u64
        };
        let (arrived, cut_off) = (AtomicU32::new(0), AtomicU32::new(0));
        let make_longer = |by: u64| {
            for round in 1..=ROUNDS {
                let bytes = (4 * u64::from(round) + by) * PAGE as u64;
                // Both threads extend the file at the same time.
                arrived.fetch_add(1, Ordering::AcqRel);
                while arrived.load(Ordering::Acquire) < 2 * round {
                    std::hint::spin_loop();
                }
                if grow(file.as_fd(), bytes).is_err() || length() < bytes {
                    cut_off.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| make_longer(1));
            scope.spawn(|| make_longer(2));
        });
        assert_eq!(cut_off.load(Ordering::Relaxed), 0);
        assert_eq!(length(), (4 * u64::from(ROUNDS) + 2) * PAGE as u64);
    }

    #[test]
    fn an_interrupted_reservation_is_repeated() {
        let mut answers = [0, libc::EINTR, libc::EINTR].to_vec();
        assert!(uninterrupted(|| answers.pop().expect("three calls")).is_ok());
        assert!(answers.is_empty());
        assert_eq!(uninterrupted(|| libc::ENOSPC).expect_err("no room").raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(uninterrupted(|| libc::EINTR).expect_err("no end").kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn signals_do_not_make_a_reservation_fail_and_are_not_lost() {
        const BYTES: usize = 8 << 20;
        // SAFETY: a handler that only counts, for a signal that nothing else in these tests uses.
        unsafe { libc::signal(libc::SIGUSR1, count as extern "C" fn(libc::c_int) as libc::sighandler_t) };
        let file = create(c"limosa-test", BYTES as u64).expect("a memfd");
        let done = Arc::new(AtomicU32::new(0));
        let reserving = std::thread::spawn({
            let done = done.clone();
            move || {
                let outcome: Vec<_> = (0..30)
                    .map(|_| {
                        release(file.as_fd(), 0, BYTES);
                        reserve(file.as_fd(), 0, BYTES).map_err(|error| error.to_string())
                    })
                    .collect();
                done.store(1, Ordering::Release);
                // The thread lives until it is no longer sent signals.
                while done.load(Ordering::Acquire) != 2 {
                    std::thread::yield_now();
                }
                outcome
            }
        });
        while done.load(Ordering::Acquire) == 0 {
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(reserving.as_pthread_t(), libc::SIGUSR1) };
            std::thread::yield_now();
        }
        done.store(2, Ordering::Release);
        let outcome = reserving.join().expect("the thread ends");
        assert!(outcome.iter().all(Result::is_ok), "{outcome:?}");
        assert!(SIGNALS.load(Ordering::Relaxed) > 0);
    }
}
