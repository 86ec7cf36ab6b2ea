//! A login on another host: an agent there, started by ssh, and its three streams.
//!
//! `LIMOSA_SSH` may name another command than ssh. It gets a host and a command line for a shell there, and must log in
//! without asking: standard input is the connection. Nothing here waits, but for what ssh says at its end, and for its
//! end when the login is dropped.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::sys;

/// At its end ssh says why within this time.
const LAST_WORDS: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A login, from the side that has begun it.
pub struct Login {
    /// ssh; none if the streams were given.
    child: Option<Child>,
    to: Option<OwnedFd>,
    from: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    queue: Vec<u8>,
}

/// What has come from another host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Come {
    /// From the agent.
    pub bytes: Vec<u8>,
    /// What ssh has said, or the agent to people.
    pub errors: Vec<u8>,
    /// Nothing more comes.
    pub has_ended: bool,
}

impl Login {
    /// Starts an agent on a host.
    ///
    /// # Errors
    /// The command cannot be run here.
    pub fn start(ssh: &str, host: &str) -> io::Result<Login> {
        let mut words = ssh.split_whitespace();
        let program = words.next().unwrap_or("ssh");
        let mut command = Command::new(program);
        command.args(words).arg(host).arg(own_command("agent")?);
        // In a process group of its own: an interrupt from the keyboard is for the head, which passes it on.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let starter = std::process::id();
        // SAFETY: the closure makes async-signal-safe system calls only.
        unsafe { command.pre_exec(move || sys::end_with(starter)) };
        let mut child = command
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run `{program}`: {error}")))?;
        let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Login::over(Some(child), to.map(OwnedFd::from), from.map(OwnedFd::from), errors.map(OwnedFd::from))
    }

    /// Speaks over these streams with an agent that was started.
    ///
    /// # Errors
    /// The operating system's.
    pub fn over(
        child: Option<Child>,
        to: Option<OwnedFd>,
        from: Option<OwnedFd>,
        errors: Option<OwnedFd>,
    ) -> io::Result<Login> {
        let login = Login { child, to, from, errors, queue: Vec::new() };
        for pipe in [&login.to, &login.from, &login.errors].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(login)
    }

    /// What to sleep on; what comes counts only if it may be read now.
    pub fn descriptors(&self, may_read: bool) -> impl Iterator<Item = PollFd<'_>> {
        let to = self.to.as_ref().filter(|_| !self.queue.is_empty()).map(|to| PollFd::new(to, PollFlags::OUT));
        let come = [&self.from, &self.errors].into_iter().flatten().filter(move |_| may_read);
        to.into_iter().chain(come.map(|stream| PollFd::new(stream, PollFlags::IN)))
    }

    /// Sends to the agent, as far as there is room; the rest follows.
    pub fn send(&mut self, bytes: &[u8]) {
        self.queue.extend_from_slice(bytes);
        self.flush();
    }

    /// Sends what has waited for room.
    pub fn flush(&mut self) {
        while let Some(to) = self.to.as_ref().filter(|_| !self.queue.is_empty()) {
            match rustix::io::write(to, &self.queue) {
                Ok(n) => drop(self.queue.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Its end is seen where the host is listened to.
                Err(_) => {
                    self.queue.clear();
                    self.to = None;
                }
            }
        }
    }

    /// Reads what has come.
    pub fn read(&mut self) -> Come {
        let mut come = Come::default();
        read_some(&mut self.from, &mut come.bytes);
        come.has_ended = self.from.is_none();
        if let Some(errors) = self.errors.as_ref().filter(|_| come.has_ended) {
            let _ = rustix::event::poll(&mut [PollFd::new(errors, PollFlags::IN)], Some(&LAST_WORDS));
        }
        read_some(&mut self.errors, &mut come.errors);
        come
    }

    /// Whether nothing more comes.
    pub fn is_silent(&self) -> bool {
        self.from.is_none()
    }
}

/// The login ends at once.
impl Drop for Login {
    fn drop(&mut self) {
        self.to = None;
        let Some(child) = &mut self.child else { return };
        if child.try_wait().is_ok_and(|ended| ended.is_none()) {
            sys::signal_group(child.id(), libc::SIGKILL);
        }
        let _ = child.wait();
    }
}

/// Reads what there is, up to about a megabyte; the stream is closed at its end.
fn read_some(stream: &mut Option<OwnedFd>, to: &mut Vec<u8>) {
    let mut chunk = vec![0u8; 1 << 16];
    while let Some(from) = stream.as_ref().filter(|_| to.len() < 1 << 20) {
        match rustix::io::read(from, &mut chunk) {
            Ok(n) if n > 0 => to.extend_from_slice(&chunk[..n]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            Ok(_) | Err(_) => *stream = None,
        }
    }
}

/// A command line for another host: this program, under the same name, with these words.
pub fn own_command(words: &str) -> io::Result<OsString> {
    let program = std::env::current_exe()?;
    let mut line = b"exec '".to_vec();
    for byte in program.as_os_str().as_bytes() {
        match byte {
            b'\'' => line.extend_from_slice(b"'\\''"),
            other => line.push(*other),
        }
    }
    line.extend_from_slice(b"' ");
    line.extend_from_slice(words.as_bytes());
    Ok(OsString::from_vec(line))
}
