//! File descriptors of the library, which share the process's table with those of the program.
//!
//! Some programs close all descriptors that they do not know (daemons, `closefrom`), and the kernel gives the numbers
//! to their next files. The library therefore checks a descriptor's identity before it waits for, reads, writes, maps
//! or closes it. Files are identified by device and inode. Files without an inode of their own (timers; on older
//! kernels also pidfds) are identified by their kind.

use crate::clock;
use crate::sync::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// A descriptor of the library, which the program may have closed.
#[derive(Debug)]
pub struct Descriptor {
    number: RawFd,
    file: File,
    /// Time of the last successful check, by `clock`.
    asked: AtomicU64,
}

/// Time in nanoseconds for which a check of a file's kind stays valid, if device and inode are unchanged.
const TRUSTED_NS: u64 = 1_000_000;

/// Identity of the file behind a descriptor.
#[derive(Debug, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    /// Target of the link in `/proc/self/fd`, for files that share an inode.
    kind: Option<std::path::PathBuf>,
}

impl File {
    fn is_at(&self, device: u64, inode: u64) -> bool {
        (self.device, self.inode) == (device, inode)
    }
}

/// Returns device and inode, and whether other files share them.
fn stat_of(number: RawFd) -> Option<(u64, u64, bool)> {
    // SAFETY: an all-zero stat is a valid value to be overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid to write to; a number that is not open is an error.
    if unsafe { libc::fstat(number, &mut stat) } != 0 {
        return None;
    }
    Some((stat.st_dev, stat.st_ino, stat.st_mode & libc::S_IFMT == 0))
}

fn file_of(number: RawFd) -> Option<File> {
    let (device, inode, is_shared) = stat_of(number)?;
    let kind = is_shared.then(|| std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default());
    Some(File { device, inode, kind })
}

impl Descriptor {
    /// Takes ownership of a descriptor that was just opened.
    ///
    /// # Errors
    /// That of `fstat`.
    pub fn new(descriptor: OwnedFd) -> io::Result<Descriptor> {
        let file = file_of(descriptor.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
        Ok(Descriptor { number: descriptor.into_raw_fd(), file, asked: AtomicU64::new(0) })
    }

    /// Returns the descriptor, for immediate use.
    ///
    /// # Errors
    /// The program has closed it.
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        if file_of(self.number).as_ref() == Some(&self.file) {
            // SAFETY: it is open and refers to the file that it was opened for.
            return Ok(unsafe { BorrowedFd::borrow_raw(self.number) });
        }
        Err(io::Error::other(format!(
            "the program has closed descriptor {}, which is Limosa's: leave descriptors open that the program has not \
             opened, or close them before it uses the library",
            self.number
        )))
    }

    /// Returns the descriptor like [`Descriptor::get`], for frequent use. The kind of a file without an inode of its
    /// own is checked only once in [`TRUSTED_NS`], since that takes a `readlink`.
    ///
    /// # Errors
    /// As for [`Descriptor::get`].
    pub fn get_quickly(&self) -> io::Result<BorrowedFd<'_>> {
        let now = clock::now_ns();
        let is_trusted = now.saturating_sub(self.asked.load(Ordering::Relaxed)) < TRUSTED_NS;
        if is_trusted && stat_of(self.number).is_some_and(|(device, inode, _)| self.file.is_at(device, inode)) {
            // SAFETY: it is open, shares the inode of the file that it was opened for, and referred to that file at the
            // last check.
            return Ok(unsafe { BorrowedFd::borrow_raw(self.number) });
        }
        let descriptor = self.get()?;
        self.asked.store(now, Ordering::Relaxed);
        Ok(descriptor)
    }

    /// Returns the number without checking its identity.
    #[cfg(not(loom))]
    pub(crate) fn number(&self) -> RawFd {
        self.number
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.get().is_ok() {
            // SAFETY: the descriptor is ours and no longer used.
            drop(unsafe { OwnedFd::from_raw_fd(self.number) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;

    #[test]
    fn a_file_of_the_program_with_the_same_number_is_left_alone() {
        let ours = Descriptor::new(fs::File::open("/proc/self/stat").expect("a file").into()).expect("a descriptor");
        assert!(ours.get().is_ok());
        let theirs = fs::File::open("/dev/null").expect("a file");
        // SAFETY: both numbers are open. Like a program that reuses the number, this closes the first one's file.
        assert!(unsafe { libc::dup2(theirs.as_fd().as_raw_fd(), ours.number) } >= 0);
        let number = ours.number;
        let error = ours.get().expect_err("it is another file now").to_string();
        assert!(error.contains(&format!("has closed descriptor {number}")), "{error}");
        drop(ours);
        // SAFETY: the number is that of the copy made above.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}
