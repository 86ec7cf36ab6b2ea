//! The head's end of the connection to the agent of one host.
//!
//! The agent is started by ssh, or by the command that `LIMOSA_SSH` names, which gets a host and a command line for a
//! shell there. It must log in without asking: its standard input is the connection. Nothing here waits, but for
//! [`Link::finish`].
//!
//! A login may take minutes on a host under load, and nothing comes meanwhile. So silence says nothing of a host before
//! its agent has answered: then only the limit of a login counts (`LIMOSA_LOGIN_LIMIT`). Whether there is a host at all
//! is for ssh to say (`ConnectTimeout`).

use std::ffi::OsString;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use limosa_job::config::Config;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::wire::{self, Order, Report};
use crate::sys;

/// A host whose agent has answered counts as lost when nothing has been heard of it for so long.
pub const SILENCE: Duration = Duration::from_secs(15);
/// Each side says this often that it lives.
pub const ALIVE: Duration = Duration::from_secs(2);
/// A login that takes longer is mentioned.
const LONG_LOGIN: Duration = Duration::from_secs(10);
/// How long an agent may take to end when it is told to.
const FAREWELL: Duration = Duration::from_secs(3);
/// Most of what ssh says that is kept.
const SAID: usize = 4096;

/// The connection to an agent.
pub struct Link {
    /// The host as the user calls it.
    pub name: String,
    /// Its ranks from the start, and those that were spawned.
    pub ranks: Range<u32>,
    pub spawned: Vec<u32>,
    /// Messages of its ranks are under way to other hosts.
    pub is_carrying: bool,
    child: Child,
    to: Option<OwnedFd>,
    from: OwnedFd,
    errors: Option<OwnedFd>,
    queue: Vec<u8>,
    come: Vec<u8>,
    said: Vec<u8>,
    is_greeted: bool,
    /// That its login takes long was said.
    is_mentioned: bool,
    started: Instant,
    login_limit: Duration,
    heard: Instant,
    size: u32,
}

impl Link {
    /// Starts the agent of a host of a job with room for `size` ranks.
    pub fn start(name: &str, ranks: Range<u32>, size: u32, config: &Config) -> std::io::Result<Link> {
        let mut words = config.ssh.split_whitespace();
        let program = words.next().unwrap_or("ssh");
        let mut command = Command::new(program);
        command.args(words).arg(name).arg(own_command("agent")?);
        // In a process group of its own: an interrupt from the keyboard is for the head, which passes it on.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let head = std::process::id();
        // SAFETY: the closure makes async-signal-safe system calls only.
        unsafe { command.pre_exec(move || sys::end_with(head)) };
        let mut child = command
            .spawn()
            .map_err(|error| std::io::Error::new(error.kind(), format!("cannot run `{program}`: {error}")))?;
        let (to, from, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(from), Some(errors)) = (to, from, errors) else {
            return Err(std::io::Error::other("no pipes to ssh"));
        };
        let (to, from, errors) = (OwnedFd::from(to), OwnedFd::from(from), OwnedFd::from(errors));
        for pipe in [&to, &from, &errors] {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Link {
            name: name.to_owned(),
            ranks,
            spawned: Vec::new(),
            is_carrying: false,
            child,
            to: Some(to),
            from,
            errors: Some(errors),
            queue: Vec::new(),
            come: Vec::new(),
            said: Vec::new(),
            is_greeted: false,
            is_mentioned: false,
            started: Instant::now(),
            login_limit: config.login_limit,
            heard: Instant::now(),
            size,
        })
    }

    /// Whether a rank is on this host.
    pub fn has(&self, rank: u32) -> bool {
        self.ranks.contains(&rank) || self.spawned.contains(&rank)
    }

    /// Whether the agent has answered.
    pub fn is_there(&self) -> bool {
        self.is_greeted
    }

    /// When something was heard from the host last.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// The head has slept itself.
    pub fn forgive(&mut self) {
        self.heard = Instant::now();
        self.started = self.heard;
    }

    /// Why the host counts as lost, if it does: it has been silent for too long.
    pub fn overdue(&self, now: Instant) -> Option<String> {
        let since = if self.is_greeted { self.heard } else { self.started };
        overdue(self.is_greeted, now.saturating_duration_since(since), self.login_limit)
    }

    /// True once, when the login has taken long and goes on.
    pub fn is_to_be_mentioned(&mut self, now: Instant) -> bool {
        let is_long = !self.is_greeted && now.saturating_duration_since(self.started) >= LONG_LOGIN;
        is_long && !std::mem::replace(&mut self.is_mentioned, true)
    }

    /// What to sleep on.
    pub fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let to = self.to.as_ref().filter(|_| !self.queue.is_empty()).map(|to| PollFd::new(to, PollFlags::OUT));
        let errors = self.errors.as_ref().map(|errors| PollFd::new(errors, PollFlags::IN));
        [to, Some(PollFd::new(&self.from, PollFlags::IN)), errors].into_iter().flatten()
    }

    /// Sends an order, as far as there is room; the rest follows.
    pub fn send(&mut self, order: &Order) {
        self.queue.extend(order.bytes());
        self.flush();
    }

    fn flush(&mut self) {
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

    /// Writes and reads what can be. Gives what the agent reports.
    ///
    /// # Errors
    /// Why the host is lost, as a sentence.
    pub fn pump(&mut self) -> (Vec<Report>, Result<(), String>) {
        self.flush();
        self.listen_to_errors();
        let mut chunk = vec![0u8; 1 << 16];
        let ended = loop {
            match rustix::io::read(&self.from, &mut chunk) {
                Ok(0) => break true,
                Ok(n) => {
                    self.heard = Instant::now();
                    self.come.extend_from_slice(&chunk[..n]);
                    if n < chunk.len() {
                        break false;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break false,
                Err(_) => break true,
            }
        };
        let (reports, mut result) = self.take();
        if ended && result.is_ok() {
            result = Err(self.why_ended());
        }
        (reports, result)
    }

    fn take(&mut self) -> (Vec<Report>, Result<(), String>) {
        let mut reports = Vec::new();
        if !self.is_greeted {
            match wire::take_greeting(&mut self.come) {
                None => return (reports, Ok(())),
                Some(Err(why)) => return (reports, Err(why)),
                Some(Ok(())) => self.is_greeted = true,
            }
        }
        loop {
            let report = match wire::take(&mut self.come) {
                Ok(None) => return (reports, Ok(())),
                Ok(Some(fields)) => Report::read(fields, self.size),
                Err(error) => Err(error),
            };
            match report {
                Ok(Report::Carrying(are_under_way)) => self.is_carrying = are_under_way,
                Ok(report) if report.rank().is_none_or(|rank| self.has(rank)) => reports.push(report),
                _ => return (reports, Err("its agent has sent what is no message of an agent".into())),
            }
        }
    }

    fn listen_to_errors(&mut self) {
        let mut chunk = [0u8; 4096];
        while let Some(errors) = &self.errors {
            match rustix::io::read(errors, &mut chunk) {
                Ok(n) if n > 0 => {
                    self.said.extend_from_slice(&chunk[..n]);
                    let surplus = self.said.len().saturating_sub(SAID);
                    self.said.drain(..surplus);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Ok(_) | Err(_) => self.errors = None,
            }
        }
    }

    /// Why the connection has ended.
    fn why_ended(&mut self) -> String {
        // It has nothing more to say than what is in the pipe.
        if let Some(errors) = &self.errors {
            let mut poll = [PollFd::new(errors, PollFlags::IN)];
            let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            let _ = rustix::event::poll(&mut poll, Some(&soon));
        }
        self.listen_to_errors();
        let said = String::from_utf8_lossy(&self.said).into_owned();
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match (last, self.is_greeted) {
            (Some(line), _) => line.to_owned(),
            (None, true) => "its agent has ended".into(),
            (None, false) => "no agent answers there".into(),
        }
    }

    /// Ends the agent, and waits for that for a while. Gives what it has reported last.
    pub fn finish(&mut self) -> Vec<Report> {
        let mut last = Vec::new();
        self.send(&Order::Done);
        let end = Instant::now() + FAREWELL;
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < end {
            let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let mut waits: Vec<PollFd<'_>> = self.descriptors().collect();
            let _ = rustix::event::poll(&mut waits, Some(&pause));
            let (reports, result) = self.pump();
            last.extend(reports);
            if result.is_err() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        self.cut();
        last
    }

    /// Ends the connection at once.
    pub fn cut(&mut self) {
        self.to = None;
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            sys::signal_group(self.child.id(), libc::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

/// What a host's silence for so long means.
fn overdue(is_greeted: bool, silence: Duration, login_limit: Duration) -> Option<String> {
    match is_greeted {
        true if silence > SILENCE => Some(format!("nothing has been heard of it for {} s", SILENCE.as_secs())),
        false if silence > login_limit => {
            Some(format!("the login has taken longer than {} s", login_limit.as_secs_f64()))
        }
        _ => None,
    }
}

/// A command line for another host: this program, under the same name, with these words.
pub fn own_command(words: &str) -> std::io::Result<OsString> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_only_after_the_agent_has_answered() {
        let lost = |is_greeted, seconds| overdue(is_greeted, Duration::from_secs(seconds), Duration::from_secs(120));
        assert_eq!((lost(true, 15), lost(false, 20), lost(false, 120)), (None, None, None));
        assert_eq!(lost(true, 16).as_deref(), Some("nothing has been heard of it for 15 s"));
        assert_eq!(lost(false, 121).as_deref(), Some("the login has taken longer than 120 s"));
    }
}
