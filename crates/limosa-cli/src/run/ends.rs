//! The end of a process as a descriptor that `poll` understands.
//!
//! Linux before 5.3, gVisor and old profiles of containers refuse `pidfd_open`. There a thread waits for the process,
//! and closes the writing end of a pipe when it has ended.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use limosa_base::process::Identity;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

/// Time between looks at a process that is no child.
const LOOK: Duration = Duration::from_millis(50);
/// The waiting thread calls nothing deep.
const STACK: usize = 64 << 10;

/// Becomes readable when this child has ended. It stays a zombie.
pub fn end_of_child(pid: u32) -> io::Result<OwnedFd> {
    end_of(pid, || thread_of(pid, wait_for_child))
}

/// Becomes readable when this process has ended, which need not be a child.
pub fn end_of_process(pid: u32) -> io::Result<OwnedFd> {
    end_of(pid, || thread_of(pid, look_at_process))
}

fn number(pid: u32) -> io::Result<Pid> {
    Ok(i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?)
}

fn end_of(pid: u32, otherwise: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    match pidfd_open(number(pid)?, PidfdFlags::empty()) {
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::INVAL | Errno::OPNOTSUPP) => otherwise(),
        result => Ok(result?),
    }
}

fn thread_of(pid: u32, wait: impl FnOnce(u32) + Send + 'static) -> io::Result<OwnedFd> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let thread = std::thread::Builder::new().name("limosa-end".into()).stack_size(STACK);
    thread.spawn(move || {
        wait(pid);
        drop(write);
    })?;
    Ok(read)
}

fn wait_for_child(pid: u32) {
    let Ok(child) = number(pid) else { return };
    loop {
        match waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(Errno::INTR) => {}
            // A sandbox that refuses `pidfd_open` may refuse this, too.
            Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => return look_at_process(pid),
            _ => return,
        }
    }
}

fn look_at_process(pid: u32) {
    let process = Identity::of(pid);
    while process.is_alive() {
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn the_end_of_a_process_is_seen_with_and_without_descriptors_of_processes() {
        let with = [end_of_child, end_of_process];
        let without: [fn(u32) -> io::Result<OwnedFd>; 2] =
            [|pid| thread_of(pid, wait_for_child), |pid| thread_of(pid, look_at_process)];
        for end_of in with.into_iter().chain(without) {
            let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("a process");
            let end = end_of(child.id()).expect("a descriptor");
            let ready = |limit| poll(&mut [PollFd::new(&end, PollFlags::IN)], limit);
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            assert_eq!(ready(Some(&now)), Ok(0), "it runs");
            drop(child.stdin.take());
            assert_eq!(ready(None), Ok(1));
            assert!(child.wait().is_ok_and(|status| status.success()), "it was left to its parent");
        }
    }
}
