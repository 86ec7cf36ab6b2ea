//! Mapped parts of files, with copies that report an error where the mapping raises SIGBUS.
//!
//! An access to a mapped file raises SIGBUS if the file has become shorter or its storage fails. During an access to a
//! [`MappedFile`], a signal handler checks whether the address lies in such a mapping. If so, it replaces the rest of
//! the mapping by zeroed private memory and marks the mapping as lost. The access continues there, and
//! [`MappedFile::access`] returns an error. Any other SIGBUS goes to the previous handler, which is reinstalled at the
//! end of the last access.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// Maximum number of mappings at a time.
const MAX_MAPPINGS: usize = 32;
const PAGE: u64 = 4096;

/// A mapping as the signal handler sees it.
struct MappingEntry {
    start: AtomicUsize,
    /// Address of the first byte behind the mapping; 0 for an unused entry.
    end: AtomicUsize,
    /// Set when a part of the mapping was replaced.
    lost: AtomicBool,
}

static MAPPINGS: [MappingEntry; MAX_MAPPINGS] =
    [const { MappingEntry { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        MAX_MAPPINGS];
/// Number of threads that access mappings. Locked while the handler is installed or removed, and while an entry is
/// taken.
static USERS: Mutex<usize> = Mutex::new(0);
/// The previous handler and its flags.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static BEFORE_FLAGS: AtomicUsize = AtomicUsize::new(0);

/// A mapped part of a file.
pub struct MappedFile {
    base: *mut u8,
    bytes: usize,
    /// Bytes of the mapping before the part: a mapping begins at a page boundary.
    lead: usize,
    entry: &'static MappingEntry,
}

// SAFETY: an address range that belongs to this value.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Maps `len` bytes from `from` on, for reading and, if `writes`, for writing. The file may be shorter: bytes
    /// beyond its end must not be accessed before it has grown.
    ///
    /// # Errors
    /// That of `mmap`: many file systems and descriptors do not support it. `ENOMEM` if there are too many mappings.
    pub fn new(fd: BorrowedFd<'_>, from: u64, len: usize, writes: bool) -> io::Result<MappedFile> {
        let lead = (from % PAGE) as usize;
        let bytes = lead + len;
        let protection = if writes { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let offset = (from - lead as u64) as libc::off_t;
        let _alone = USERS.lock();
        let free = MAPPINGS.iter().find(|entry| entry.end.load(Ordering::Relaxed) == 0);
        let Some(entry) = free else { return Err(io::Error::from_raw_os_error(libc::ENOMEM)) };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), offset) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        entry.lost.store(false, Ordering::Relaxed);
        entry.start.store(base.addr(), Ordering::Relaxed);
        entry.end.store(base.addr() + bytes, Ordering::Release);
        Ok(MappedFile { base: base.cast(), bytes, lead, entry })
    }

    /// Calls `copy` with the address of the part's first byte. It may access the bytes of the part.
    ///
    /// # Errors
    /// `EIO`: some of the part is no longer in the file, or unreachable. Bytes read there are zero; bytes written there
    /// are lost. From then on no byte of the mapping may reach the file.
    pub fn access(&self, copy: impl FnOnce(*mut u8)) -> io::Result<()> {
        let _handled = Handled::begin()?;
        let before = unblock();
        copy(self.base.wrapping_add(self.lead));
        if let Some(before) = before {
            // SAFETY: a signal set that the system returned.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut()) };
        }
        if self.entry.lost.load(Ordering::Relaxed) { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        let _alone = USERS.lock();
        // SAFETY: the mapping belongs to this value, and nothing in it is borrowed.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
        self.entry.end.store(0, Ordering::Relaxed);
    }
}

/// Keeps the handler installed until dropped.
struct Handled;

impl Handled {
    fn begin() -> io::Result<Handled> {
        let mut users = USERS.lock();
        if *users == 0 {
            install()?;
        }
        *users += 1;
        Ok(Handled)
    }
}

impl Drop for Handled {
    fn drop(&mut self) {
        let mut users = USERS.lock();
        *users -= 1;
        if *users == 0 {
            uninstall();
        }
    }
}

/// Unblocks SIGBUS in this thread. Returns the previous signal mask if SIGBUS was blocked.
fn unblock() -> Option<libc::sigset_t> {
    // SAFETY: signal sets on the stack; an empty one is all zeros here.
    unsafe {
        let (mut bus, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut bus);
        libc::sigaddset(&mut bus, libc::SIGBUS);
        let done = libc::pthread_sigmask(libc::SIG_UNBLOCK, &bus, &mut before) == 0;
        (done && libc::sigismember(&before, libc::SIGBUS) == 1).then_some(before)
    }
}

/// Address of our handler, as the kernel reports it.
fn ours() -> usize {
    on_bus_error as *const () as usize
}

fn install() -> io::Result<()> {
    // SAFETY: structures on the stack; the handler has the signature that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, ptr::null(), &mut before);
        BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
        BEFORE_FLAGS.store(before.sa_flags as usize, Ordering::Relaxed);
        action.sa_sigaction = ours();
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        match libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Reinstalls the previous handler, unless the program has installed its own meanwhile.
fn uninstall() {
    // SAFETY: as above.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &mut now) == 0 && now.sa_sigaction == ours() {
            now.sa_sigaction = BEFORE.load(Ordering::Relaxed);
            now.sa_flags = BEFORE_FLAGS.load(Ordering::Relaxed) as libc::c_int;
            libc::sigaction(libc::SIGBUS, &now, ptr::null_mut());
        }
    }
}

/// Handles SIGBUS, with system calls and atomics only.
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes a valid structure.
    let at = unsafe { (*info).si_addr() }.addr();
    for entry in &MAPPINGS {
        let (end, start) = (entry.end.load(Ordering::Acquire), entry.start.load(Ordering::Relaxed));
        if (start..end).contains(&at) {
            let from = at / PAGE as usize * PAGE as usize;
            let (protection, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
            // SAFETY: a part of a mapping that the thread is using, which therefore exists.
            let fresh = unsafe { libc::mmap(ptr::without_provenance_mut(from), end - from, protection, flags, -1, 0) };
            if fresh != libc::MAP_FAILED {
                return entry.lost.store(true, Ordering::Relaxed);
            }
        }
    }
    let (before, flags) = (BEFORE.load(Ordering::Relaxed), BEFORE_FLAGS.load(Ordering::Relaxed) as libc::c_int);
    // SAFETY: the previous handler, called with the signature that it asked for. Without one, the access ends the
    // process.
    unsafe {
        match before {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::signal(signal, libc::SIG_DFL);
                // A signal that was sent, rather than raised by an access, is not raised again when this handler
                // returns.
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
            _ if flags & libc::SA_SIGINFO != 0 => {
                type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<usize, Handler>(before)(signal, info, context);
            }
            _ => std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(before)(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::{AsFd, FromRawFd};

    /// Serialises tests of the handler, of which a process has one.
    static ALONE: Mutex<()> = Mutex::new(());

    fn file(pages: u64) -> File {
        // SAFETY: a new descriptor that nothing else owns.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"mapped".as_ptr(), libc::MFD_CLOEXEC)) };
        file.set_len(pages * PAGE).unwrap();
        file
    }

    fn handler() -> usize {
        // SAFETY: a structure on the stack.
        unsafe {
            let mut now: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, ptr::null(), &mut now);
            now.sa_sigaction
        }
    }

    #[test]
    fn what_is_copied_is_in_the_file() {
        let _alone = ALONE.lock();
        let file = file(3);
        let mapped = MappedFile::new(file.as_fd(), 100, 5000, true).unwrap();
        // SAFETY: in the part.
        mapped.access(|at| unsafe { at.write_bytes(7, 5000) }).unwrap();
        let mut bytes = [0; 5001];
        // SAFETY: a slice.
        let n = unsafe { crate::file::read_at(file.as_fd(), bytes.as_mut_ptr(), 5001, 100) }.unwrap();
        assert_eq!(n, 5001);
        assert!(bytes[..5000].iter().all(|byte| *byte == 7) && bytes[5000] == 0);
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error_and_not_the_end() {
        let _alone = ALONE.lock();
        let before = handler();
        let (file, other) = (file(3), file(1));
        let mapped = MappedFile::new(file.as_fd(), 10, 2 * PAGE as usize, true).unwrap();
        let whole = MappedFile::new(other.as_fd(), 0, 100, false).unwrap();
        file.set_len(PAGE).unwrap();
        // SAFETY: in the parts.
        let (lost, found) = unsafe {
            (mapped.access(|at| at.write_bytes(1, 2 * PAGE as usize)), whole.access(|at| assert_eq!(at.read(), 0)))
        };
        assert_eq!(lost.unwrap_err().raw_os_error(), Some(libc::EIO));
        found.unwrap();
        assert_eq!(handler(), before, "with the last access the handler goes");
        drop((mapped, whole));
    }

    #[test]
    fn a_blocked_signal_and_other_handlers_do_not_matter() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn count(_: libc::c_int) {
            CALLS.fetch_add(1, Ordering::Relaxed);
        }
        let _alone = ALONE.lock();
        // SAFETY: a handler with the right signature; a signal set on the stack.
        let bus = unsafe {
            libc::signal(libc::SIGBUS, count as *const () as usize);
            let mut bus = std::mem::zeroed();
            libc::sigemptyset(&mut bus);
            libc::sigaddset(&mut bus, libc::SIGBUS);
            bus
        };
        let file = file(1);
        let mapped = MappedFile::new(file.as_fd(), 0, 10, false).unwrap();
        // SAFETY: a signal that has a handler; one thread.
        unsafe {
            mapped.access(|_| assert_eq!(libc::raise(libc::SIGBUS), 0)).unwrap();
            assert_eq!(CALLS.load(Ordering::Relaxed), 1, "a signal that was sent is the program's");
            libc::pthread_sigmask(libc::SIG_BLOCK, &bus, ptr::null_mut());
            file.set_len(0).unwrap();
            assert!(mapped.access(|at| assert_eq!(at.read(), 0)).is_err());
            let mut now = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &bus, &mut now);
            assert_eq!(libc::sigismember(&now, libc::SIGBUS), 1, "it is blocked again afterwards");
        }
        assert_eq!(handler(), count as *const () as usize);
        // SAFETY: the default disposition.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }

    #[test]
    fn there_is_an_end_to_the_number_of_mappings() {
        let _alone = ALONE.lock();
        let file = file(1);
        let map = || MappedFile::new(file.as_fd(), 0, 10, false);
        let all: Vec<MappedFile> = (0..MAX_MAPPINGS).map(|_| map().unwrap()).collect();
        assert_eq!(map().err().unwrap().raw_os_error(), Some(libc::ENOMEM));
        drop(all);
        map().unwrap();
    }
}
