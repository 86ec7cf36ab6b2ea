//! The operating system's file: errors in the standard's terms, complete reads and writes, and range locks.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use limosa_base::file::{self, MAX_SLICES, RangeLock};
use limosa_base::vm;
use limosa_mpi::consts::*;
use limosa_mpi::error::{Error, ErrorClass, Result};
use limosa_p2p::memory::Region;
use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

/// A file that this process has opened.
pub(crate) struct SystemFile {
    fd: OwnedFd,
    path: PathBuf,
    can_lock_shared: bool,
    /// Whether it is accessed at its current position: a pipe, a terminal, or an open descriptor such as `/dev/stdout`.
    is_stream: bool,
    /// Held while a range is locked: threads of a process share the description and its locks.
    serial: Mutex<()>,
}

/// A lock on a range, until dropped.
pub(crate) struct Locked<'a> {
    file: &'a SystemFile,
    start: u64,
    len: u64,
    _serial: MutexGuard<'a, ()>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // A failure has no remedy; closing the file unlocks it too.
        let _ = file::lock_range(self.file.fd(), RangeLock::Unlocked, self.start, self.len);
    }
}

/// Returns the class of an error of the operating system.
fn class_of(error: &io::Error) -> ErrorClass {
    let Some(errno) = Errno::from_io_error(error) else { return MPI_ERR_IO };
    match errno {
        Errno::NOENT => MPI_ERR_NO_SUCH_FILE,
        Errno::EXIST => MPI_ERR_FILE_EXISTS,
        Errno::ACCESS | Errno::PERM => MPI_ERR_ACCESS,
        Errno::ROFS => MPI_ERR_READ_ONLY,
        // The limit is that of file lengths, or that of the file system.
        Errno::NOSPC | Errno::FBIG => MPI_ERR_NO_SPACE,
        Errno::DQUOT => MPI_ERR_QUOTA,
        Errno::NAMETOOLONG | Errno::NOTDIR | Errno::ISDIR | Errno::LOOP => MPI_ERR_BAD_FILE,
        Errno::TXTBSY | Errno::BUSY => MPI_ERR_FILE_IN_USE,
        Errno::NOMEM => MPI_ERR_NO_MEM,
        _ => MPI_ERR_IO,
    }
}

/// Creates the error for a failed action on a file.
pub(crate) fn error_of(what: &str, path: &Path, error: impl Into<io::Error>) -> Error {
    let error = error.into();
    let words = error.to_string();
    let words = words.split(" (os error").next().unwrap_or_default();
    Error::new(class_of(&error), format!("{what} \"{}\" failed: {words}", path.display()))
}

impl SystemFile {
    pub fn new(fd: OwnedFd, path: PathBuf, can_read: bool, is_stream: bool) -> SystemFile {
        SystemFile { fd, path, can_lock_shared: can_read, is_stream, serial: Mutex::new(()) }
    }

    pub fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns the system's offset for an offset of the access.
    fn place(&self, offset: u64) -> u64 {
        if self.is_stream { file::CURRENT } else { offset }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn error(&self, what: &str, error: impl Into<io::Error>) -> Error {
        error_of(what, &self.path, error)
    }

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn size(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|e| self.error("looking at the size of", e))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Reserves space in the file system for a range, which then belongs to the file. Returns false if that is not
    /// supported.
    ///
    /// # Errors
    /// The system's.
    pub fn reserve(&self, start: u64, len: u64) -> Result<bool> {
        let hole = if self.size()? >= start + len { rustix::fs::seek(&self.fd, SeekFrom::Hole(start)) } else { Ok(0) };
        if hole.is_ok_and(|hole| hole >= start + len) {
            return Ok(true);
        }
        loop {
            return match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), start, len) {
                Ok(()) => Ok(true),
                Err(Errno::INTR) => continue,
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
                Err(error) => Err(self.error("writing", error)),
            };
        }
    }

    /// Locks a range for writing, or for reading only.
    ///
    /// # Errors
    /// The system's.
    pub fn lock(&self, lock: RangeLock, start: u64, len: u64) -> Result<Locked<'_>> {
        let serial = self.serial.lock();
        file::lock_range(self.fd(), lock, start, len).map_err(|e| self.error("locking a part of", e))?;
        Ok(Locked { file: self, start, len, _serial: serial })
    }

    /// Excludes data sieving in a range while this process writes there, if the descriptor allows such a lock.
    ///
    /// # Errors
    /// The system's.
    pub fn lock_for_plain_write(&self, start: u64, len: u64) -> Result<Option<Locked<'_>>> {
        if self.can_lock_shared { self.lock(RangeLock::Shared, start, len).map(Some) } else { Ok(None) }
    }

    /// Reads to the end of the slice or of the file. Returns the number of bytes read.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&self, to: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < to.len() {
            let rest = &mut to[done..];
            // SAFETY: a slice that is borrowed for the call.
            let n =
                unsafe { file::read_at(self.fd(), rest.as_mut_ptr(), rest.len(), self.place(offset + done as u64)) };
            match n.map_err(|e| self.error("reading", e))? {
                0 => break,
                n => done += n,
            }
        }
        Ok(done)
    }

    /// Writes the whole slice.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, from: &[u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < from.len() {
            let rest = &from[done..];
            // SAFETY: a slice that is borrowed for the call.
            let n = unsafe { file::write_at(self.fd(), rest.as_ptr(), rest.len(), self.place(offset + done as u64)) };
            done += self.written(n)?;
        }
        Ok(done)
    }

    fn written(&self, n: io::Result<usize>) -> Result<usize> {
        match n.map_err(|e| self.error("writing", e))? {
            // A file system must not return 0; the loop would never end.
            0 => Err(self.error("writing", Errno::NOSPC)),
            n => Ok(n),
        }
    }

    /// Moves the bytes `[from, from + len)` of a region's stream to or from one piece of the file. Returns the number
    /// of bytes moved.
    ///
    /// # Errors
    /// The system's.
    pub fn move_region(&self, is_write: bool, region: &Region, from: usize, len: usize, offset: u64) -> Result<usize> {
        let mut done = 0;
        let mut slices = Vec::new();
        while done < len {
            slices.clear();
            region.pieces(from + done, len - done, &mut |at, len| {
                slices.push(vm::slice(at as u64, len));
                slices.len() < MAX_SLICES
            });
            let offset = self.place(offset + done as u64);
            // SAFETY: the creator of the region guarantees memory that can be read, or written, during the operation.
            let n = unsafe {
                match is_write {
                    true => file::write_slices_at(self.fd(), &slices, offset),
                    false => file::read_slices_at(self.fd(), &slices, offset),
                }
            };
            done += match is_write {
                true => self.written(n)?,
                false => match n.map_err(|e| self.error("reading", e))? {
                    0 => break,
                    n => n,
                },
            };
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_a_class_and_name_the_file() {
        for (errno, class, words) in [
            (Errno::DQUOT, MPI_ERR_QUOTA, "quota"),
            (Errno::NOSPC, MPI_ERR_NO_SPACE, "space"),
            (Errno::FBIG, MPI_ERR_NO_SPACE, "too large"),
            (Errno::ROFS, MPI_ERR_READ_ONLY, "ead-only"),
            (Errno::IO, MPI_ERR_IO, "nput/output"),
        ] {
            let error = error_of("writing", Path::new("folder/data"), errno);
            assert_eq!(error.class, class);
            assert!(error.detail.starts_with("writing \"folder/data\" failed: "), "{}", error.detail);
            assert!(error.detail.contains(words), "{}", error.detail);
        }
    }
}
