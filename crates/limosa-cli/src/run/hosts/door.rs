//! Doors: commands that a login runs to bring its connection to a process of a job that runs there already.
//!
//! A door hands its standard input and output to the process, and ends when the process closes the socket between them.
//! It finds the process by a name that only processes of that host can connect to. Both ends ask the system whether the
//! process at the far end belongs to the same user.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Pause of a door between two attempts, in nanoseconds.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

fn check_owner(other: &UnixStream) -> io::Result<()> {
    let is_own = rustix::net::sockopt::socket_peercred(other)?.uid == rustix::process::geteuid();
    if is_own { Ok(()) } else { Err(io::Error::other("it belongs to another user")) }
}

/// Sends a word of four bytes and descriptors.
///
/// # Errors
/// The operating system's.
pub fn send_descriptors(to: impl AsFd, word: u32, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(descriptors));
    sendmsg(to, &[IoSlice::new(&word.to_le_bytes())], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the connection that a door brings within this time, and the word with it: the number of the host that has
/// logged in.
///
/// # Errors
/// The operating system's, or a sentence.
pub fn take_connection(door: &UnixStream, limit: Duration) -> io::Result<(u32, OwnedFd, OwnedFd)> {
    check_owner(door)?;
    door.set_read_timeout(Some(limit))?;
    let mut word = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(door, &mut [IoSliceMut::new(&mut word)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    match (descriptors.next(), descriptors.next()) {
        (Some(from), Some(to)) if got.bytes == word.len() => Ok((u32::from_le_bytes(word), from, to)),
        _ => Err(io::Error::other("it brings no connection")),
    }
}

/// Whether the caller has ended the connection; waits a moment for that.
fn has_hung_up() -> io::Result<bool> {
    let stdin = std::io::stdin();
    // The caller says nothing before it is greeted.
    let mut poll = [PollFd::new(&stdin, PollFlags::RDHUP)];
    Ok(rustix::event::poll(&mut poll, Some(&PAUSE))? > 0)
}

/// Reads the id of a job.
///
/// # Errors
/// It is none.
pub fn job_of(id: &str) -> io::Result<u64> {
    u64::from_str_radix(id, 16).map_err(|_| io::Error::other("this is no job's id"))
}

/// Brings the connection to the process at this address, which may be opened for so long, with a word. Returns when the
/// process has closed the socket.
///
/// # Errors
/// There is no such process, or it belongs to another user.
pub fn bring(address: &SocketAddr, word: u32, patience: Duration) -> io::Result<()> {
    let begin = Instant::now();
    let mut process = loop {
        match UnixStream::connect_addr(address) {
            Ok(process) => break process,
            Err(error) if begin.elapsed() >= patience || has_hung_up()? => return Err(error),
            Err(_) => {}
        }
    };
    check_owner(&process)?;
    send_descriptors(&process, word, &[std::io::stdin().as_fd(), std::io::stdout().as_fd()])?;
    // The process alone has the connection from now on.
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    let _ = process.read(&mut [0; 1]);
    Ok(())
}
