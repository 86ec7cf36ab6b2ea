//! The launcher of this process's job: reached by its control socket, and started if there is none.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use limosa_job::{ENV_FD, ENV_ID, ENV_PID, Job, control};
use parking_lot::Mutex;

use crate::error::Result;
use crate::fail;

/// How long a launcher that this process has started may take to answer.
const START: Duration = Duration::from_secs(20);

/// Connects to the launcher.
pub(super) fn connect(job: &Job) -> Result<UnixStream> {
    if let Some(launcher) = job.site() {
        fail!(
            MPI_ERR_OTHER,
            "processes cannot be spawned, nor names be published or ports on other hosts be reached, in a job that was \
             started by {launcher}: start it with `limosa run`"
        );
    }
    static STARTING: Mutex<()> = Mutex::new(());
    let _alone = STARTING.lock();
    match control::connect(job.id()) {
        Ok(stream) => Ok(stream),
        Err(error) if job.launched() => {
            fail!(MPI_ERR_OTHER, "the launcher of the job cannot be reached: {error}")
        }
        Err(_) => start(job),
    }
}

/// Starts a launcher that takes this job of one over, and connects to it. It ends with this process.
fn start(job: &Job) -> Result<UnixStream> {
    let program = program();
    let segment = job.segment().as_raw_fd();
    let mut command = Command::new(&program);
    command.args(["run", "--adopt"]).process_group(0).stdin(Stdio::null());
    command.env(ENV_FD, segment.to_string()).env(ENV_ID, format!("{:016x}", job.id()));
    command.env(ENV_PID, std::process::id().to_string());
    let inherit = move || {
        // SAFETY: the job's segment stays open as long as this process lives.
        let segment = unsafe { BorrowedFd::borrow_raw(segment) };
        rustix::io::fcntl_setfd(segment, rustix::io::FdFlags::empty())?;
        Ok(())
    };
    // SAFETY: the closure makes one async-signal-safe system call.
    unsafe { command.pre_exec(inherit) };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => fail!(
            MPI_ERR_SPAWN,
            "the launcher {}, which starts processes, cannot be started: {error}; `limosa` must be beside the library \
             or in PATH",
            program.display()
        ),
    };
    let end = Instant::now() + START;
    loop {
        if let Ok(stream) = control::connect(job.id()) {
            return Ok(stream);
        }
        let has_ended = child.try_wait().ok().flatten();
        if let Some(status) = has_ended {
            fail!(MPI_ERR_SPAWN, "the launcher {} ended at once, with {status}", program.display());
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            fail!(MPI_ERR_SPAWN, "the launcher {} does not answer", program.display());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the `limosa` that was installed with this library: in the folder `bin` beside that of the library, else in
/// `PATH`.
fn program() -> PathBuf {
    let beside = library().and_then(|library| {
        let folders = library.ancestors().skip(2).take(3);
        folders.map(|folder| folder.join("bin/limosa")).find(|file| file.is_file())
    });
    beside.unwrap_or_else(|| "limosa".into())
}

/// Returns the file that this code was loaded from.
fn library() -> Option<PathBuf> {
    // SAFETY: an all-zero value is valid, to be overwritten.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: asks about an address of this code; `info` is valid to write to.
    let found = unsafe { libc::dladdr(library as *const libc::c_void, &mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the dynamic linker's string, which ends in a zero byte and lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Path::new(OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}
