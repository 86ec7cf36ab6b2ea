//! Descriptors of the library, which lie in the table that it shares with the program.
//!
//! Some programs close all descriptors that they do not know (services, `closefrom`), and the system gives the numbers
//! to their next files. So the library asks who a descriptor is before it waits for it, reads, writes, maps or closes
//! it: files are told apart by device and inode. Those without an inode of their own (timers; on older kernels
//! processes, too) are known by their kind.

use crate::clock;
use crate::sync::{AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// A descriptor that the program may have closed.
#[derive(Debug)]
pub struct Descriptor {
    number: RawFd,
    file: File,
    /// When it was last known to be that file, by `clock`.
    asked: AtomicU64,
}

/// How long a descriptor is taken to be the one that it was, if device and inode are the same.
const TRUSTED_NS: u64 = 1_000_000;

/// Which file a descriptor stands for.
#[derive(Debug, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    /// What the system calls it, for files that share an inode.
    kind: Option<std::path::PathBuf>,
}

impl File {
    fn is_at(&self, device: u64, inode: u64) -> bool {
        (self.device, self.inode) == (device, inode)
    }
}

/// Device and inode, and whether other files have the same.
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
    /// Keeps a descriptor that was opened just now.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(descriptor: OwnedFd) -> io::Result<Descriptor> {
        let file = file_of(descriptor.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
        Ok(Descriptor { number: descriptor.into_raw_fd(), file, asked: AtomicU64::new(0) })
    }

    /// The descriptor, for a short time.
    ///
    /// # Errors
    /// The program has closed it.
    pub fn get(&self) -> io::Result<BorrowedFd<'_>> {
        if file_of(self.number).as_ref() == Some(&self.file) {
            // SAFETY: it is open, and the file that it was opened for.
            return Ok(unsafe { BorrowedFd::borrow_raw(self.number) });
        }
        Err(io::Error::other(format!(
            "the program has closed descriptor {}, which is Limosa's: leave descriptors open that the program has not \
             opened, or close them before it uses the library",
            self.number
        )))
    }

    /// As [`Descriptor::get`], for what is done often: a file without an inode of its own is asked for its kind only once
    /// in [`TRUSTED_NS`], since that takes the reading of a link.
    ///
    /// # Errors
    /// As for [`Descriptor::get`].
    pub fn get_quickly(&self) -> io::Result<BorrowedFd<'_>> {
        let now = clock::now_ns();
        let is_trusted = now.saturating_sub(self.asked.load(Ordering::Relaxed)) < TRUSTED_NS;
        if is_trusted && stat_of(self.number).is_some_and(|(device, inode, _)| self.file.is_at(device, inode)) {
            // SAFETY: it is open, and shares the inode of the file that it was opened for, which it was a moment ago.
            return Ok(unsafe { BorrowedFd::borrow_raw(self.number) });
        }
        let descriptor = self.get()?;
        self.asked.store(now, Ordering::Relaxed);
        Ok(descriptor)
    }

    /// The number, without asking who it is.
    #[cfg(not(loom))]
    pub(crate) fn number(&self) -> RawFd {
        self.number
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.get().is_ok() {
            // SAFETY: it is ours, and not used any more.
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
        // SAFETY: both numbers are open; the first one's file is closed by this, as a program might do it.
        assert!(unsafe { libc::dup2(theirs.as_fd().as_raw_fd(), ours.number) } >= 0);
        let number = ours.number;
        let error = ours.get().expect_err("it is another file now").to_string();
        assert!(error.contains(&format!("has closed descriptor {number}")), "{error}");
        drop(ours);
        // SAFETY: the number is that of the copy made above.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}
