//! Dynamic processes (MPI-5 sections 11.7 to 11.10): processes that are started later ([`spawn`]), and groups of
//! processes that meet by a port ([`port`]) or a socket ([`join`]).
//!
//! Contract
//! - A spawned process is one more process of the same job: it has a number of its own there, and shares the job's
//!   memory. Its `MPI_COMM_WORLD` is the group of the processes that were started together with it.
//! - Only the root acts. Its group receives the outcome, also an error, and fails with the same class.
//! - Numbers of processes that have ended are used again. Before members of two groups exchange messages, all of them
//!   have forgotten former holders of each other's numbers (`Comm::meet`).
//! - A root that waits for a process outside its communicator sleeps, is shown on the status board, and can be
//!   interrupted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use limosa_job::{Job, control};
use limosa_p2p::{Interrupted, Observer, interrupt};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::observe::Waiting;

mod launcher;
pub mod names;
pub mod port;
pub mod spawn;

/// Returns the job that this process belongs to.
fn job() -> Result<&'static Job> {
    match Job::current() {
        Some(job) => Ok(job),
        None => fail!(MPI_ERR_INTERN, "this process belongs to no job"),
    }
}

/// Asks the launcher; starts one if this process has none.
fn ask(request: &control::Request) -> Result<(std::os::unix::net::UnixStream, control::Reply)> {
    let stream = launcher::connect(job()?)?;
    let sent = control::send(&stream, &request.fields());
    match sent.and_then(|()| control::receive(&stream)).and_then(control::Reply::read) {
        Ok(reply) => Ok((stream, reply)),
        Err(error) => fail!(MPI_ERR_OTHER, "the launcher of the job does not answer: {error}"),
    }
}

/// What a root waits for, for the status board.
#[derive(Clone, Copy)]
struct Meeting<'a> {
    /// The communicator whose root it is.
    comm: &'a Comm,
    /// The port; empty if the groups meet by a socket of the program.
    port: &'a str,
    /// The other job, if only processes of that one can come.
    job: Option<u64>,
}

/// Sleeps until the descriptor can be read, or the program is interrupted. Without a meeting the wait is a short one,
/// which is not shown.
fn wait_readable(fd: BorrowedFd<'_>, meeting: Option<Meeting<'_>>) -> Result<()> {
    let pause = Timespec { tv_sec: 0, tv_nsec: interrupt::ASK_AFTER.as_nanos() as i64 };
    let waiting = meeting.map(|Meeting { comm, port, job }| Waiting::connection(comm, port, job));
    let mut is_shown = false;
    loop {
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        let timeout = interrupt::may_come().then_some(&pause);
        match rustix::event::poll(&mut fds, if is_shown { timeout } else { Some(&pause) }) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => fail!(MPI_ERR_OTHER, "the operating system refused to wait: {error}"),
        }
        if interrupt::wanted() {
            return Err(Interrupted.into());
        }
        if let Some(waiting) = waiting.as_ref().filter(|_| !is_shown) {
            waiting.blocked();
        }
        is_shown = true;
    }
}

/// Receives an answer from the other end, however long that takes.
fn receive(stream: &std::os::unix::net::UnixStream, meeting: Option<Meeting<'_>>) -> Result<io::Result<Vec<Vec<u8>>>> {
    wait_readable(stream.as_fd(), meeting)?;
    Ok(control::receive(stream))
}
