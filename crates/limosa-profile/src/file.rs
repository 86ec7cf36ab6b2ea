//! Memory-mapped files that grow by pieces. If there is no space, on the disk or by the limit of file sizes, a warning
//! is printed once, and the program continues without the piece.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Returns the name of a file, from that without its suffix.
pub(crate) fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Reserves space for a part of a file, and extends the file to its end. Writing to the mapping without it would kill
/// the process.
pub(crate) fn reserve(file: &Path, at: usize, bytes: usize) -> bool {
    // Threads may call this concurrently: none must shorten the file.
    static IS_GROWING: Mutex<()> = Mutex::new(());
    let _growing = IS_GROWING.lock();
    let given = OpenOptions::new().read(true).write(true).open(file).and_then(|file| {
        without_size_signal(|| {
            // SAFETY: a plain system call on an open descriptor.
            let code = unsafe { libc::fallocate(file.as_raw_fd(), 0, at as libc::off_t, bytes as libc::off_t) };
            let error = io::Error::last_os_error();
            match code {
                0 => Ok(()),
                // File systems without reservation allocate space later.
                _ if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    let end = (at + bytes) as u64;
                    if file.metadata()?.len() < end { file.set_len(end) } else { Ok(()) }
                }
                _ => Err(error),
            }
        })
    });
    let Err(error) = given else { return true };
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.swap(true, Relaxed) {
        eprintln!("limosa: profile: no room in {}: {error}; the profile will not be complete", file.display());
    }
    false
}

/// Runs an action on a file that may exceed the limit of file sizes (`ulimit -f`). Exceeding it is then an error; the
/// signal that would kill the process is blocked.
pub(crate) fn without_size_signal<T>(act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: plain calls on our own variables; the first call initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
    }
    let outcome = act();
    // SAFETY: as above; the mask is the previous one.
    unsafe {
        let was_blocked = libc::sigismember(before.as_ptr(), libc::SIGXFSZ) == 1;
        if !was_blocked && outcome.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EFBIG)) {
            let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(set.as_ptr(), null_mut(), &no_time);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
    }
    outcome
}

/// Returns the host's name, as a part of a file name.
pub(crate) fn host() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the name is written to our array, which has room for it and a terminating null character.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let text: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0 && *byte != b'/').collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// Creates a file and maps it with that size. Its parts may be used after their space is reserved ([`reserve`]).
pub(crate) fn mapped(file: &Path, bytes: usize) -> Option<*mut u8> {
    let failed = |what: &str| {
        let error = std::io::Error::last_os_error();
        eprintln!("limosa: profile: cannot {what} {}: {error}; this process is not recorded", file.display());
        None
    };
    let Ok(name) = CString::new(file.as_os_str().as_bytes()) else { return failed("name") };
    // SAFETY: plain system calls; the name ends with a null character, and the descriptor is closed once.
    unsafe {
        let descriptor =
            libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC, 0o600);
        if descriptor < 0 {
            return failed("make");
        }
        let place = libc::mmap(null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, descriptor, 0);
        libc::close(descriptor);
        if place == libc::MAP_FAILED { failed("map") } else { Some(place.cast()) }
    }
}
