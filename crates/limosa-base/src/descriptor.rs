//! Descriptors of the library, which lie in the table that it shares with the program.
//!
//! Some programs close all descriptors that they do not know (services, `closefrom`), and the system gives the numbers
//! to their next files. So the library asks who a descriptor is before it waits for it, reads, writes, maps or closes
//! it: files are told apart by device and inode. Those without an inode of their own (timers; on older kernels
//! processes, too) are known by their kind.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// A descriptor that the program may have closed.
#[derive(Debug)]
pub struct Descriptor {
    number: RawFd,
    file: File,
}

/// Which file a descriptor stands for.
#[derive(Debug, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    /// What the system calls it, for files that share an inode.
    kind: Option<std::path::PathBuf>,
}

fn file_of(number: RawFd) -> Option<File> {
    // SAFETY: an all-zero stat is a valid value to be overwritten.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is valid to write to; a number that is not open is an error.
    if unsafe { libc::fstat(number, &mut stat) } != 0 {
        return None;
    }
    let is_shared = stat.st_mode & libc::S_IFMT == 0;
    let kind = is_shared.then(|| std::fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default());
    Some(File { device: stat.st_dev, inode: stat.st_ino, kind })
}

impl Descriptor {
    /// Keeps a descriptor that was opened just now.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(descriptor: OwnedFd) -> io::Result<Descriptor> {
        let file = file_of(descriptor.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
        Ok(Descriptor { number: descriptor.into_raw_fd(), file })
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
