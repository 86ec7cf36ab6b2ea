//! A login on another host: an agent there, started by ssh, and its three streams.
//!
//! When the connection ends before the agent, this side logs in again, and `limosa agent --again` there hands the new
//! connection to the agent ([`super::door`]). The [`Stream`] over it goes on where it was.
//!
//! `LIMOSA_SSH` may name another command than ssh. It gets a host and a command line for a shell there, and must log in
//! without asking: standard input is the connection. Nothing here waits, but for what ssh says at its end, and for its
//! end when the login is dropped.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::wire::{self, Come, Start};
use crate::run::guardian::Guardian;
use crate::run::stream::Stream;
use crate::sys;

/// At its end ssh says why within this time.
const LAST_WORDS: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// An agent that is told to end ends within this time, or ssh is killed.
const FAREWELL: Duration = Duration::from_secs(1);
/// Least time between the beginnings of two logins to the same agent, and most time that the greeting may take before
/// the login begins anew.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(20)];

/// How to log in.
pub struct Target {
    /// The command, and the host as the user calls it.
    ssh: String,
    name: String,
    /// The job, and the number of the host.
    id: u64,
    host: u32,
    /// Ends the login if this process is killed.
    guardian: Arc<Guardian>,
}

impl Target {
    /// A host of the job that `start` describes.
    pub fn new(start: &Start, host: usize, ssh: &str, guardian: &Arc<Guardian>) -> Target {
        let (ssh, name) = (ssh.to_owned(), start.hosts[host].name.clone());
        Target { ssh, name, id: start.id, host: host as u32, guardian: guardian.clone() }
    }
}

/// A login, from the side that has begun it.
pub struct Login {
    /// None if the streams were given.
    target: Option<Target>,
    /// ssh, its streams, and when it was started.
    child: Option<Child>,
    to: Option<OwnedFd>,
    from: Option<OwnedFd>,
    errors: Option<OwnedFd>,
    since: Instant,
    stream: Stream,
    /// Bytes before the agent's greeting; whether it was greeted on this connection, and on the first one.
    before: Vec<u8>,
    is_greeted: bool,
    was_greeted: bool,
    has_ended: bool,
}

impl Login {
    /// Starts an agent on a host.
    ///
    /// # Errors
    /// The command cannot be run here.
    pub fn start(target: Target) -> io::Result<Login> {
        let mut login = Login::new(Some(target));
        login.connect("agent")?;
        Ok(login)
    }

    /// Speaks over these streams with an agent that was started.
    ///
    /// # Errors
    /// The operating system's.
    #[cfg(test)]
    pub fn over(to: OwnedFd, from: OwnedFd) -> io::Result<Login> {
        let mut login = Login::new(None);
        login.use_streams(Some(to), Some(from), None)?;
        Ok(login)
    }

    fn new(target: Option<Target>) -> Login {
        Login {
            target,
            child: None,
            to: None,
            from: None,
            errors: None,
            since: Instant::now(),
            stream: Stream::default(),
            before: Vec::new(),
            is_greeted: false,
            was_greeted: false,
            has_ended: false,
        }
    }

    /// Runs this program on the host with these words.
    fn connect(&mut self, words: &str) -> io::Result<()> {
        self.since = Instant::now();
        let Some(target) = &self.target else { return Ok(()) };
        let mut ssh = target.ssh.split_whitespace();
        let program = ssh.next().unwrap_or("ssh");
        let mut command = Command::new(program);
        command.args(ssh).arg(&target.name).arg(own_command(words)?);
        // In a process group of its own: an interrupt from the keyboard is for the head, which passes it on. ssh
        // outlives this process if that is killed: it brings the farewell of the guardian.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: the closure makes async-signal-safe system calls only.
        unsafe { command.pre_exec(sys::take_all_signals) };
        let mut child = command
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run `{program}`: {error}")))?;
        if let Some(to) = &child.stdin {
            target.guardian.login(child.id(), to.as_fd());
        }
        let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.child = Some(child);
        self.use_streams(to.map(OwnedFd::from), from.map(OwnedFd::from), errors.map(OwnedFd::from))
    }

    fn use_streams(&mut self, to: Option<OwnedFd>, from: Option<OwnedFd>, errors: Option<OwnedFd>) -> io::Result<()> {
        for pipe in [&to, &from, &errors].into_iter().flatten() {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        (self.to, self.from, self.errors) = (to, from, errors);
        self.stream.connect(b"");
        Ok(())
    }

    /// What to sleep on; what comes counts only if it may be read now.
    pub fn descriptors(&self, may_read: bool) -> impl Iterator<Item = PollFd<'_>> {
        let to = self.to.as_ref().filter(|_| self.is_greeted && self.stream.has_frames());
        let come = [&self.from, &self.errors].into_iter().flatten().filter(move |_| may_read);
        let to = to.map(|to| PollFd::new(to, PollFlags::OUT));
        to.into_iter().chain(come.map(|stream| PollFd::new(stream, PollFlags::IN)))
    }

    /// Sends to the agent, as far as there is room; the rest follows.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.push(bytes);
        self.flush();
    }

    /// Sends queued bytes as far as there is room, and logs in again if the connection has ended.
    pub fn flush(&mut self) {
        self.log_in_again();
        if let Some(to) = self.to.as_ref().filter(|_| self.is_greeted)
            && self.stream.write(to).is_err()
        {
            // The end is seen where the host is listened to.
            self.to = None;
        }
    }

    /// Logs in again after the connection has ended, at most once a second. The agent takes the new connection.
    fn log_in_again(&mut self) {
        let is_lost = self.was_greeted && !self.is_greeted && !self.has_ended;
        let age = self.since.elapsed();
        if !is_lost || age < AGAIN[usize::from(self.from.is_some())] {
            return;
        }
        self.hang_up(false);
        let words = self.target.as_ref().map(|target| format!("agent --again {:016x} {}", target.id, target.host));
        // A login that cannot be started now is tried again, until the host counts as lost.
        if words.is_none_or(|words| self.connect(&words).is_err()) {
            self.hang_up(false);
        }
    }

    /// Reads what has come.
    pub fn read(&mut self) -> Come {
        let (mut come, mut bytes) = (Come::default(), Vec::new());
        read_some(&mut self.from, &mut bytes);
        self.take_in(bytes, &mut come.bytes);
        if let Some(errors) = self.errors.as_ref().filter(|_| self.from.is_none() || self.has_ended) {
            let _ = rustix::event::poll(&mut [PollFd::new(errors, PollFlags::IN)], Some(&LAST_WORDS));
        }
        read_some(&mut self.errors, &mut come.errors);
        if self.from.is_none() {
            // An agent that has greeted may wait for another connection.
            self.has_ended |= !self.was_greeted || self.target.is_none();
            self.is_greeted = false;
        }
        self.flush();
        come.has_ended = self.has_ended;
        come
    }

    fn take_in(&mut self, mut bytes: Vec<u8>, come: &mut Vec<u8>) {
        if !self.is_greeted && !bytes.is_empty() {
            self.before.append(&mut bytes);
            bytes.clone_from(&self.before);
            match wire::take_greeting(&mut bytes) {
                None => return,
                Some(Ok(())) => {
                    self.before.clear();
                    self.is_greeted = true;
                    if !std::mem::replace(&mut self.was_greeted, true) {
                        come.extend(wire::greeting().into_bytes());
                    }
                }
                // No agent waits for another connection.
                Some(Err(_)) if self.was_greeted => {
                    self.has_ended = true;
                    return;
                }
                // The head reads these bytes and reports the error.
                Some(Err(_)) => return come.append(&mut self.before),
            }
        }
        match self.stream.take(&bytes, come) {
            Ok(has_ended) => self.has_ended |= has_ended,
            // The head reads these bytes and reports the error.
            Err(_) => {
                come.append(&mut bytes);
                self.has_ended = true;
            }
        }
    }

    /// Whether nothing more comes.
    pub fn is_silent(&self) -> bool {
        self.has_ended
    }

    /// Tells the agent to end; nothing is sent to it any more.
    pub fn dismiss(&mut self) {
        if let Some(to) = self.to.take().filter(|_| self.is_greeted) {
            self.stream.end(to);
        }
        self.has_ended = true;
    }

    /// Ends the connection. `waits`: the agent was told to end, and a moment is left for that.
    fn hang_up(&mut self, waits: bool) {
        (self.to, self.from, self.errors) = (None, None, None);
        self.is_greeted = false;
        self.before.clear();
        let Some(mut child) = self.child.take() else { return };
        let runs = |child: &mut Child| child.try_wait().is_ok_and(|ended| ended.is_none());
        let begin = Instant::now();
        while waits && runs(&mut child) && begin.elapsed() < FAREWELL {
            std::thread::sleep(Duration::from_millis(5));
        }
        if runs(&mut child) {
            sys::signal_group(child.id(), libc::SIGKILL);
        }
        let _ = child.wait();
        if let Some(target) = &self.target {
            target.guardian.login_gone(child.id());
        }
    }
}

/// The agent ends, if it can be told.
impl Drop for Login {
    fn drop(&mut self) {
        let is_told = self.is_greeted;
        self.dismiss();
        self.hang_up(is_told);
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
