//! Operating-system calls that need `unsafe`, each behind a safe function.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signals in this set are no longer delivered to this process; they can be read from the descriptor instead.
///
/// Signals that are ignored (as `nohup` and shells without job control arrange) stay ignored and are left out.
pub fn signal_fd(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: plain system calls on a signal set that is initialised first; the new descriptor has no other owner.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut set);
        for signal in signals {
            let mut old = std::mem::zeroed::<libc::sigaction>();
            if libc::sigaction(*signal, std::ptr::null(), &mut old) == 0 && old.sa_sigaction != libc::SIG_IGN {
                libc::sigaddset(&mut set, *signal);
            }
        }
        if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// The next signal read from a descriptor of [`signal_fd`], and whether the kernel has sent it, as it does for a key of
/// the terminal.
pub fn next_signal(fd: BorrowedFd<'_>) -> Option<(i32, bool)> {
    let mut buffer = [0u8; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(fd, &mut buffer) {
        Ok(n) if n == buffer.len() => {
            // The record begins with the signal's number, an error number, and the code of what has sent it.
            let field = |at: usize| i32::from_ne_bytes(std::array::from_fn(|i| buffer[at + i]));
            Some((field(0), field(8) == libc::SI_KERNEL))
        }
        _ => None,
    }
}

/// What a new rank's process does between fork and exec. Async-signal-safe.
pub fn become_rank(segment: i32, launcher: u32) -> io::Result<()> {
    end_with(launcher)?;
    // SAFETY: as above.
    match unsafe { libc::fcntl(segment, libc::F_SETFD, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The signals of a terminal that stop a process.
const STOPPING: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// What a process does between fork and exec that gets all signals. Async-signal-safe.
///
/// The launcher waits for exec, and it stops all ranks for Ctrl-Z itself: before exec, nothing stops the process.
pub fn take_all_signals() -> io::Result<()> {
    extern "C" fn do_nothing(_: i32) {}
    // SAFETY: async-signal-safe system calls on this process's own properties; the handler does nothing.
    unsafe {
        for signal in STOPPING {
            let mut old = std::mem::zeroed::<libc::sigaction>();
            // Exec restores the default action of a signal with a handler, but not of an ignored signal.
            if libc::sigaction(signal, std::ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_DFL {
                libc::signal(signal, do_nothing as *const () as libc::sighandler_t);
            }
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
    Ok(())
}

/// The same for a process that ends with the launcher. Async-signal-safe.
pub fn end_with(launcher: u32) -> io::Result<()> {
    take_all_signals()?;
    // SAFETY: async-signal-safe system calls on this process's own properties.
    unsafe {
        // Where a sandbox refuses this, the guardian ends the process.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The launcher may have died before the request above.
        if libc::getppid() as u32 != launcher {
            libc::_exit(1);
        }
    }
    Ok(())
}

/// A helper process between fork and exec: it dies with the thread that started it.
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: async-signal-safe system call on this process's own properties.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Splits the process in two: `child` runs in the new one, which then ends with the exit code it returns.
///
/// # Panics
/// If the process has more than one thread: the child would inherit locks that stay closed.
pub fn fork(child: impl FnOnce() -> i32) -> io::Result<u32> {
    let threads = std::fs::read_dir("/proc/self/task").map(|tasks| tasks.count()).unwrap_or(1);
    assert_eq!(threads, 1, "fork in a process with several threads");
    // SAFETY: single-threaded, so that the child may do anything; it never returns to the caller's code.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(101);
            // SAFETY: ends the child without running what the parent registered for its own end.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(pid as u32),
    }
}

/// Makes the calling process independent of its terminal and streams, keeping only `keep` open.
pub fn detach(name: &std::ffi::CStr, keep: BorrowedFd<'_>) {
    let keep = keep.as_raw_fd();
    // SAFETY: plain system calls on this process's own properties. Closing descriptors behind their owners' backs is
    // sound in the guardian, the only caller, because it never touches one of them again.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        for signal in [
            libc::SIGINT,
            libc::SIGTERM,
            libc::SIGHUP,
            libc::SIGQUIT,
            libc::SIGPIPE,
            libc::SIGUSR1,
            libc::SIGUSR2,
            libc::SIGTSTP,
        ] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for stream in 0..3 {
            if stream != keep && null >= 0 {
                libc::dup2(null, stream);
            }
        }
        for descriptor in open_descriptors().into_iter().filter(|descriptor| *descriptor > 2 && *descriptor != keep) {
            libc::close(descriptor);
        }
    }
}

/// The open descriptors of this process; without /proc all numbers below its limit.
fn open_descriptors() -> Vec<i32> {
    const MOST: u64 = 1 << 16;
    let listed = |entries: std::fs::ReadDir| {
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).collect()
    };
    std::fs::read_dir("/proc/self/fd").map(listed).unwrap_or_else(|_| {
        let limit = limit(rustix::process::Resource::Nofile).unwrap_or(MOST).min(MOST);
        (0..limit as i32).collect()
    })
}

/// Sends a signal to a whole process group. True if there was one.
pub fn signal_group(leader: u32, signal: i32) -> bool {
    // SAFETY: sends a signal.
    leader > 1 && unsafe { libc::kill(-(leader as i32), signal) } == 0
}

/// Sends a signal to one process. True if it exists.
pub fn signal_process(pid: u32, signal: i32) -> bool {
    // SAFETY: sends a signal.
    pid > 1 && unsafe { libc::kill(pid as i32, signal) } == 0
}

/// Stops this process as Ctrl-Z does.
pub fn stop_self() {
    // SAFETY: sends a signal to this process.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// A limit that the system sets this process; `None`: there is none.
pub fn limit(of: rustix::process::Resource) -> Option<u64> {
    rustix::process::getrlimit(of).current
}

/// Name and meaning of a signal.
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP, hang-up",
        libc::SIGINT => "SIGINT, interrupt",
        libc::SIGQUIT => "SIGQUIT, quit",
        libc::SIGILL => "SIGILL, illegal instruction",
        libc::SIGTRAP => "SIGTRAP, trap",
        libc::SIGABRT => "SIGABRT, abort",
        libc::SIGBUS => "SIGBUS, bus error",
        libc::SIGFPE => "SIGFPE, arithmetic error",
        libc::SIGKILL => "SIGKILL, kill",
        libc::SIGUSR1 => "SIGUSR1, user signal 1",
        libc::SIGSEGV => "SIGSEGV, segmentation fault",
        libc::SIGUSR2 => "SIGUSR2, user signal 2",
        libc::SIGPIPE => "SIGPIPE, broken pipe",
        libc::SIGALRM => "SIGALRM, alarm",
        libc::SIGTERM => "SIGTERM, terminate",
        libc::SIGXCPU => "SIGXCPU, CPU time limit",
        libc::SIGXFSZ => "SIGXFSZ, file size limit",
        libc::SIGSYS => "SIGSYS, bad system call",
        _ => "a signal without a common name",
    }
}

/// Reads one word of another process's memory, at an address that is valid there: the way in which large messages
/// travel.
pub fn read_word_of(pid: u32, address: usize) -> io::Result<u64> {
    let mut word = 0u64;
    let local = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 8 };
    // SAFETY: writes eight bytes into `word`; the kernel checks the remote address.
    match unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) } {
        8 => Ok(word),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Allows every process of the same user to read this one's memory, where the Yama security module asks for that.
pub fn allow_readers() {
    // SAFETY: sets a property of this process; where Yama is absent it fails without effect.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

/// The membarrier commands that the kernel offers, as bits.
pub fn membarrier_commands() -> io::Result<i64> {
    const QUERY: i32 = 0;
    // SAFETY: a query without side effects.
    match unsafe { libc::syscall(libc::SYS_membarrier, QUERY, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        bits => Ok(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn ctrl_z_before_exec_does_not_stop_a_process() {
        let _signals = signal_fd(&STOPPING).expect("a descriptor");
        let mut command = std::process::Command::new("true");
        let press_and_take = || {
            for signal in STOPPING {
                // SAFETY: sends a signal to this process.
                unsafe { libc::raise(signal) };
            }
            take_all_signals()
        };
        // The kernel stops no process of a group without a parent in the session: this one's group has one.
        command.process_group(0);
        // SAFETY: the closure makes async-signal-safe system calls only.
        unsafe { command.pre_exec(press_and_take) };
        assert!(command.status().expect("a process").success());
    }
}
