//! The guardian: a small process that ends the job if the launcher is killed with `kill -9`.
//!
//! It is forked before anything else and holds the reading end of a pipe, over which the launcher sends the job's id
//! and the process group of each rank. When the pipe ends without [`Note::Done`], it kills them all, and every other
//! process that carries the job's id in its environment (children of ranks that made themselves a session of their
//! own).
//!
//! Ranks also ask the kernel to be killed with the launcher; the guardian is for what they have started, and for
//! wrappers around them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use limosa_job::ENV_ID;
use limosa_job::config::Config;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::{procfs, sys};

/// Name of the guardian's process; processes of this name are never swept.
const NAME: &std::ffi::CStr = c"limosa-guard";

/// The launcher's end of the pipe.
pub struct Guardian {
    pipe: OwnedFd,
    pid: u32,
}

/// A message of the launcher to the guardian, in 16 bytes: kind, value.
enum Note {
    Job(u64),
    Group(u64),
    Gone(u64),
    Done,
}

impl Guardian {
    /// Forks the guardian.
    pub fn start(config: &Config) -> io::Result<Guardian> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let pid = sys::fork(|| {
            sys::detach(NAME, read.as_fd());
            watch(&read, config);
            0
        })?;
        Ok(Guardian { pipe: write, pid })
    }

    /// Sends the job's id.
    pub fn job(&self, id: u64) {
        self.tell(Note::Job(id));
    }

    /// Sends a rank's process group.
    pub fn group(&self, leader: u32) {
        self.tell(Note::Group(leader.into()));
    }

    /// A rank's process group is no more.
    pub fn gone(&self, leader: u32) {
        self.tell(Note::Gone(leader.into()));
    }

    /// The job has ended: the guardian ends too, and kills nothing.
    pub fn dismiss(self) {
        self.tell(Note::Done);
        drop(self.pipe);
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid as i32) {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }

    fn tell(&self, note: Note) {
        let (kind, value) = match note {
            Note::Job(id) => (1u64, id),
            Note::Group(leader) => (2, leader),
            Note::Done => (3, 0),
            Note::Gone(leader) => (4, leader),
        };
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&kind.to_ne_bytes());
        bytes[8..].copy_from_slice(&value.to_ne_bytes());
        // A guardian that was killed is missed only if the launcher is killed too.
        let _ = rustix::io::write(&self.pipe, &bytes);
    }
}

/// The guardian's main loop. `config`: that of the ranks.
fn watch(pipe: &OwnedFd, config: &Config) {
    let (mut id, mut groups) = (None, Vec::new());
    loop {
        let mut note = [0u8; 16];
        match read_all(pipe, &mut note) {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => break,
        }
        let [kind, value] = [&note[..8], &note[8..]].map(|half| u64::from_ne_bytes(std::array::from_fn(|i| half[i])));
        match kind {
            1 => id = Some(value),
            2 => groups.push(value as u32),
            4 => groups.retain(|group| u64::from(*group) != value),
            _ => return,
        }
    }
    for group in &groups {
        sys::signal_group(*group, libc::SIGKILL);
    }
    if let Some(id) = id {
        sweep(id);
        config.delete_messages(id);
    }
}

/// Fills the buffer; false at the end of the pipe.
fn read_all(pipe: &OwnedFd, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::read(pipe, &mut buffer[filled..]) {
            Ok(0) => return Ok(false),
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Kills every process that carries the job's id in its environment, until none is left.
pub fn sweep(id: u64) {
    let entry = format!("{ENV_ID}={id:016x}");
    let me = std::process::id();
    for _ in 0..5 {
        let mut found = false;
        for pid in procfs::processes().into_iter().filter(|pid| *pid != me) {
            let is_guardian = || procfs::name(pid).is_some_and(|name| Ok(name.as_str()) == NAME.to_str());
            // Ended processes that have not been waited for yet have an empty environment.
            if procfs::has_variable(pid, &entry) && !is_guardian() {
                found |= sys::signal_process(pid, libc::SIGKILL);
            }
        }
        if !found {
            return;
        }
        // A killed process may need a moment to end.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
