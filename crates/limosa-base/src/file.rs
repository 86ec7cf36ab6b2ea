//! Files: reads and writes at offsets, directly to and from raw memory, and locks on byte ranges.
//!
//! A lock belongs to the open file description, not to the process. Two descriptions exclude each other even within one
//! process, and closing another descriptor of the same file does not release the lock. Threads that share a description
//! do not exclude each other.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::vm::{Slice, slice};

/// Offset that means the current position of the description, for files without offsets, such as pipes.
pub const CURRENT: u64 = u64::MAX;

/// Maximum number of slices per call.
pub const MAX_SLICES: usize = crate::vm::MAX_SLICES;

/// Mode of a lock on a byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeLock {
    /// Other descriptions may hold shared locks.
    Shared,
    /// No other description may hold a lock.
    Exclusive,
    /// No lock.
    Unlocked,
}

/// Waits until the reader of a pipe has taken all that was written: a second at most. Returns at once for other files.
/// A launcher that is told to end a job may read nothing more. Nothing wakes the writer of a pipe that becomes empty,
/// so this looks again and again.
pub fn wait_until_read(pipe: impl AsFd) {
    let fd = pipe.as_fd().as_raw_fd();
    for _ in 0..1000 {
        let mut left: libc::c_int = 0;
        // SAFETY: the structure is written if the call succeeds, and 0 is a value of each of its fields; the number is
        // ours.
        let is_unread = unsafe {
            let mut status: libc::stat = std::mem::zeroed();
            libc::fstat(fd, &mut status) == 0
                && status.st_mode & libc::S_IFMT == libc::S_IFIFO
                && libc::ioctl(fd, libc::FIONREAD, &mut left) == 0
                && left > 0
        };
        if !is_unread {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn again(mut call: impl FnMut() -> libc::ssize_t) -> io::Result<usize> {
    loop {
        let n = call();
        if n >= 0 {
            return Ok(n as usize);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Reads up to `len` bytes at `offset`, or at [`CURRENT`]. Returns the number of bytes read, 0 at the end of the file.
///
/// # Errors
/// The operating system's.
///
/// # Safety
/// The memory must be writable, and nothing else may use it during the call.
pub unsafe fn read_at(fd: BorrowedFd<'_>, to: *mut u8, len: usize, offset: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the memory.
    unsafe { read_slices_at(fd, &[slice(to as u64, len)], offset) }
}

/// Writes up to `len` bytes at `offset`, or at [`CURRENT`]. Returns the number of bytes written.
///
/// # Errors
/// The operating system's.
///
/// # Safety
/// The memory must be readable.
pub unsafe fn write_at(fd: BorrowedFd<'_>, from: *const u8, len: usize, offset: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the memory.
    unsafe { write_slices_at(fd, &[slice(from as u64, len)], offset) }
}

/// Reads like [`read_at`] into several slices, at most [`MAX_SLICES`].
///
/// # Errors
/// The operating system's.
///
/// # Safety
/// As for [`read_at`].
pub unsafe fn read_slices_at(fd: BorrowedFd<'_>, to: &[Slice], offset: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the memory.
    again(|| unsafe { libc::preadv2(fd.as_raw_fd(), to.as_ptr(), to.len() as libc::c_int, offset as i64, 0) })
}

/// Writes like [`write_at`] from several slices, at most [`MAX_SLICES`].
///
/// # Errors
/// The operating system's.
///
/// # Safety
/// As for [`write_at`].
pub unsafe fn write_slices_at(fd: BorrowedFd<'_>, from: &[Slice], offset: u64) -> io::Result<usize> {
    // SAFETY: the caller vouches for the memory.
    again(|| unsafe { libc::pwritev2(fd.as_raw_fd(), from.as_ptr(), from.len() as libc::c_int, offset as i64, 0) })
}

/// Locks `len` bytes from `start` on, waiting for conflicting locks. Replaces the lock that this description has there.
///
/// # Errors
/// The operating system's: no permission (a shared lock needs a description that can read, an exclusive one that can
/// write), or a file system without locks.
pub fn lock_range(fd: BorrowedFd<'_>, lock: RangeLock, start: u64, len: u64) -> io::Result<()> {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut request: libc::flock64 = unsafe { std::mem::zeroed() };
    request.l_type = match lock {
        RangeLock::Shared => libc::F_RDLCK,
        RangeLock::Exclusive => libc::F_WRLCK,
        RangeLock::Unlocked => libc::F_UNLCK,
    } as libc::c_short;
    request.l_whence = libc::SEEK_SET as libc::c_short;
    request.l_start = start as i64;
    request.l_len = len as i64;
    // SAFETY: the structure is valid for the call.
    again(|| unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLKW, &raw const request) } as libc::ssize_t)?;
    Ok(())
}
