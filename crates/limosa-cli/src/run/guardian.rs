//! The guardian: a small process that ends the job if the launcher is killed with `kill -9`.
//!
//! It is forked before anything else and holds the reading end of a pipe, over which the launcher sends the job's id
//! and the process group of each rank. When the pipe ends without [`Note::Done`], it kills them all, and every other
//! process that carries the job's id in its environment (children of ranks that made themselves a session of their
//! own).
//!
//! Logins on other hosts outlive the launcher: the guardian holds the streams to the agents, and tells these to end.
//!
//! Ranks also ask the kernel to be killed with the launcher; the guardian is for what they have started, and for
//! wrappers around them.

use std::io;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use limosa_job::ENV_ID;
use limosa_job::config::Config;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::stream;
use crate::{procfs, sys};

/// A login ends within this time after its agent was told to, or is killed.
const FAREWELL: Duration = Duration::from_secs(3);

/// Name of the guardian's process; processes of this name are never swept.
const NAME: &std::ffi::CStr = c"limosa-guard";

/// The launcher's end of the connection.
pub struct Guardian {
    socket: OwnedFd,
    pid: u32,
}

/// A message of the launcher to the guardian, in 16 bytes: kind, value.
enum Note {
    Job(u64),
    Group(u64),
    Gone(u64),
    Done,
    /// With the stream to the agent.
    Login(u64),
    LoginGone(u64),
}

impl Guardian {
    /// Forks the guardian.
    pub fn start(config: &Config) -> io::Result<Guardian> {
        let (own, socket) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let pid = sys::fork(|| {
            sys::detach(NAME, own.as_fd());
            watch(&own, config);
            0
        })?;
        Ok(Guardian { socket, pid })
    }

    /// Sends the job's id.
    pub fn job(&self, id: u64) {
        self.tell(&Note::Job(id));
    }

    /// Sends a rank's process group.
    pub fn group(&self, leader: u32) {
        self.tell(&Note::Group(leader.into()));
    }

    /// A rank's process group is no more.
    pub fn gone(&self, leader: u32) {
        self.tell(&Note::Gone(leader.into()));
    }

    /// Sends the process of a login and the stream to its agent.
    pub fn login(&self, process: u32, to: BorrowedFd<'_>) {
        self.send(&Note::Login(process.into()), &[to]);
    }

    /// The process of a login has ended.
    pub fn login_gone(&self, process: u32) {
        self.tell(&Note::LoginGone(process.into()));
    }

    /// The job has ended: the guardian ends too, and kills nothing.
    pub fn dismiss(&self) {
        self.tell(&Note::Done);
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid as i32) {
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
        }
    }

    fn tell(&self, note: &Note) {
        self.send(note, &[]);
    }

    fn send(&self, note: &Note, descriptors: &[BorrowedFd<'_>]) {
        let (kind, value) = match *note {
            Note::Job(id) => (1u64, id),
            Note::Group(leader) => (2, leader),
            Note::Done => (3, 0),
            Note::Gone(leader) => (4, leader),
            Note::Login(process) => (5, process),
            Note::LoginGone(process) => (6, process),
        };
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&kind.to_ne_bytes());
        bytes[8..].copy_from_slice(&value.to_ne_bytes());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        // A guardian that was killed is missed only if the launcher is killed too.
        let _ = sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL);
    }
}

/// The guardian's main loop. `config`: that of the ranks.
fn watch(socket: &OwnedFd, config: &Config) {
    let (mut id, mut groups, mut logins) = (None, Vec::new(), Vec::new());
    while let Some((kind, value, descriptor)) = receive(socket) {
        match (kind, descriptor) {
            (1, _) => id = Some(value),
            (2, _) => groups.push(value as u32),
            (4, _) => groups.retain(|group| u64::from(*group) != value),
            (5, Some(to)) => logins.push((value as u32, to)),
            (6, _) => logins.retain(|(login, _)| u64::from(*login) != value),
            _ => return,
        }
    }
    let logins: Vec<u32> = logins.into_iter().map(|(login, to)| end_agent(login, &to)).collect();
    for group in &groups {
        sys::signal_group(*group, libc::SIGKILL);
    }
    if let Some(id) = id {
        sweep(id);
        config.delete_messages(id);
    }
    let begin = Instant::now();
    while logins.iter().any(|login| sys::signal_process(*login, 0)) && begin.elapsed() < FAREWELL {
        std::thread::sleep(Duration::from_millis(5));
    }
    for login in logins {
        sys::signal_group(login, libc::SIGKILL);
    }
}

/// Tells the agent behind a login to end.
fn end_agent(login: u32, to: &OwnedFd) -> u32 {
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let _ = rustix::event::poll(&mut [PollFd::new(to, PollFlags::OUT)], Some(&moment));
    let _ = rustix::io::write(to, &stream::end());
    login
}

/// The next message, with its descriptor; none when the launcher has ended.
fn receive(socket: &OwnedFd) -> Option<(u64, u64, Option<OwnedFd>)> {
    let mut note = [0u8; 16];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        match recvmsg(socket, &mut [IoSliceMut::new(&mut note)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(got) if got.bytes == note.len() => {}
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) | Err(_) => return None,
        }
        let descriptor = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let [kind, value] = [&note[..8], &note[8..]].map(|half| u64::from_ne_bytes(std::array::from_fn(|i| half[i])));
        return Some((kind, value, descriptor));
    }
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
