//! Reading and writing the memory of another process of the same user (cross-memory attach).

use std::io;

/// Maximum number of slices per call on either side.
pub const MAX_SLICES: usize = 1024;

/// A memory range, of this process or of the remote one.
pub type Slice = libc::iovec;

/// Creates a slice of `len` bytes at `address`.
pub fn slice(address: u64, len: usize) -> Slice {
    libc::iovec { iov_base: address as usize as *mut libc::c_void, iov_len: len }
}

/// Copies from `remote` slices of process `pid` to `local` slices of this process, up to the smaller total. Returns the
/// number of bytes copied, which may be smaller than requested.
///
/// # Errors
/// The operating system's: no permission (`EPERM`), no such process, or memory that is not mapped there (`EFAULT`).
///
/// # Safety
/// The local slices must be writable memory that nothing else uses during the call.
pub unsafe fn read(pid: u32, local: &[Slice], remote: &[Slice]) -> io::Result<usize> {
    // SAFETY: the caller guarantees the local slices; the kernel checks the remote ones.
    let n = unsafe {
        libc::process_vm_readv(
            pid as libc::pid_t,
            local.as_ptr(),
            local.len() as libc::c_ulong,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as usize) }
}

/// Copies from `local` slices of this process to `remote` slices of process `pid`, up to the smaller total. Returns the
/// number of bytes copied, which may be smaller than requested.
///
/// # Errors
/// As for [`read`].
///
/// # Safety
/// The local slices must be readable memory that nothing writes to during the call, and the remote ones must be memory
/// that its owner expects to be overwritten.
pub unsafe fn write(pid: u32, local: &[Slice], remote: &[Slice]) -> io::Result<usize> {
    // SAFETY: the caller guarantees the slices; the kernel checks that the remote ones are mapped.
    let n = unsafe {
        libc::process_vm_writev(
            pid as libc::pid_t,
            local.as_ptr(),
            local.len() as libc::c_ulong,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    if n < 0 { Err(io::Error::last_os_error()) } else { Ok(n as usize) }
}

/// Returns whether an error of [`read`] or [`write`] means that the remote process has no memory any more: it has
/// ended, or is about to. It may still seem alive for a moment.
pub fn has_ended(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// Reads the eight bytes at `address` of process `pid`: the probe for cross-memory attach.
///
/// # Errors
/// As for [`read`].
pub fn read_word(pid: u32, address: u64) -> io::Result<u64> {
    let mut value = 0u64;
    let local = slice(&mut value as *mut u64 as u64, 8);
    // SAFETY: the local slice is `value`.
    let n = unsafe { read(pid, &[local], &[slice(address, 8)])? };
    if n == 8 { Ok(value) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
}
