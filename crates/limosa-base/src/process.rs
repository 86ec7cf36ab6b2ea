//! Identity of a process, and whether it is alive.
//!
//! A process id alone is not enough. The system reuses it; a killed process keeps it until its parent has reaped it;
//! and in another namespace it belongs to another process. An [`Identity`] therefore also has the start time of the
//! process and the namespace of its id.
//!
//! A check reads a file in `/proc`, which takes some 10 us: for slow paths only. In doubt the process counts as alive,
//! since abandoning a living peer does more harm than waiting for a dead one. For a notification of the end of a
//! process, poll a descriptor ([`Identity::watch`]).

use crate::descriptor::Descriptor;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Identity of a process, valid in other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Process id, in the process's own namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot; 0 if unknown.
    pub started: u64,
    /// Namespace of process ids; 0 if unknown.
    pub namespace: u64,
}

impl Identity {
    /// Returns the identity of this process.
    pub fn own() -> Identity {
        Identity::of(std::process::id())
    }

    /// Returns the identity of the process that has this id now.
    pub fn of(pid: u32) -> Identity {
        Identity { pid, started: look(pid).map_or(0, |seen| seen.started), namespace: namespace() }
    }

    /// Returns false if the process has ended, even if it is not reaped yet.
    pub fn is_alive(&self) -> bool {
        if self.pid == std::process::id() || self.started == 0 || self.namespace == 0 || self.namespace != namespace() {
            return true;
        }
        match look(self.pid) {
            Some(seen) => seen.started == self.started && !seen.has_ended,
            // There is no such process, or `/proc` is not readable any more.
            None => look(std::process::id()).is_none(),
        }
    }

    /// Returns a descriptor that becomes readable when the process ends; `None` if it has ended. It is close-on-exec.
    ///
    /// # Errors
    /// The identity is incomplete, or the kernel has no such descriptors or none left.
    pub fn watch(&self) -> io::Result<Option<Descriptor>> {
        if self.started == 0 || self.namespace == 0 || self.namespace != namespace() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // SAFETY: the call takes two integers.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid as libc::pid_t, 0) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            return if self.is_alive() { Err(error) } else { Ok(None) };
        }
        // SAFETY: the descriptor is new and ours alone.
        let descriptor = Descriptor::new(unsafe { OwnedFd::from_raw_fd(fd as i32) })?;
        // The id may have been reused before it was opened. From now on the descriptor stands for one process.
        Ok(self.is_alive().then_some(descriptor))
    }
}

/// Fields of `/proc/PID/stat`.
struct Seen {
    started: u64,
    has_ended: bool,
}

/// Indices of fields of `/proc/PID/stat` behind the name (`proc_pid_stat(5)` counts from 3 there).
const STATE: usize = 0;
const THREADS: usize = 17;
const STARTED: usize = 19;

fn look(pid: u32) -> Option<Seen> {
    // The kernel generates the text anew for each read from offset 0, so one read takes all of it: about 300 bytes.
    let mut stat = [0; 2048];
    let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    loop {
        match file.read(&mut stat) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return parse(&stat[..read.ok()?]),
        }
    }
}

fn parse(stat: &[u8]) -> Option<Seen> {
    // The name is in parentheses and may contain anything, also parentheses.
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[behind..]).ok()?.split_ascii_whitespace();
    let state = fields.nth(STATE)?;
    let threads = fields.nth(THREADS - STATE - 1)?;
    let started = fields.nth(STARTED - THREADS - 1)?;
    // A process whose first thread has ended is shown as a zombie even while other threads run.
    let has_ended = matches!(state, "Z" | "X") && threads.parse::<u64>().ok()? <= 1;
    Some(Seen { started: started.parse().ok()?, has_ended })
}

fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> (Child, Identity) {
        let child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().expect("a process");
        let identity = Identity::of(child.id());
        (child, identity)
    }

    #[test]
    fn a_process_lives_until_it_is_killed_even_if_it_is_not_reaped() {
        let (mut child, identity) = sleeper();
        assert!(Identity::own().is_alive() && identity.is_alive());
        child.kill().expect("our child");
        while identity.is_alive() {
            std::thread::yield_now();
        }
        assert!(look(identity.pid).is_some(), "it is a zombie until it is waited for");
        child.wait().expect("our child");
        assert!(!identity.is_alive());
    }

    #[test]
    fn a_watched_process_makes_its_descriptor_readable_when_it_ends() {
        use crate::readiness::{StopSignal, Wakened, wait_any};
        use std::time::Duration;
        let (mut child, identity) = sleeper();
        let stop = StopSignal::new().expect("an eventfd");
        let descriptor = identity.watch().expect("a descriptor").expect("it lives");
        assert_eq!(wait_any(&[descriptor.get().expect("ours")], &stop, Some(Duration::ZERO)), Wakened::TooLate);
        child.kill().expect("our child");
        assert_eq!(wait_any(&[descriptor.get().expect("ours")], &stop, None), Wakened::Readable);
        assert!(identity.watch().expect("an answer").is_none(), "it has ended, though it is not reaped");
        child.wait().expect("our child");
        assert!(identity.watch().expect("an answer").is_none());
        assert!(Identity { started: 0, ..identity }.watch().is_err());
    }

    #[test]
    fn a_later_process_of_the_same_number_is_another_one() {
        let (mut child, identity) = sleeper();
        assert!(!Identity { started: identity.started - 1, ..identity }.is_alive());
        child.kill().expect("our child");
        child.wait().expect("our child");
    }

    #[test]
    fn what_cannot_be_seen_is_taken_to_live() {
        let nobody = Identity { pid: u32::MAX, ..Identity::own() };
        assert!(!nobody.is_alive());
        assert!(Identity { started: 0, ..nobody }.is_alive());
        assert!(Identity { namespace: nobody.namespace + 1, ..nobody }.is_alive());
    }

    #[test]
    fn strange_names_do_not_confuse() {
        let stat = "7 (a) Z (b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 4242 1 1";
        let parse = |stat: &str| super::parse(stat.as_bytes());
        let seen = parse(stat).expect("a line of stat");
        assert_eq!((seen.started, seen.has_ended), (4242, false));
        assert!(parse(&stat.replace(") S", ") Z")).is_some_and(|seen| !seen.has_ended), "another thread of it runs");
        assert!(parse(&stat.replace(") S", ") Z").replace("0 3 0", "0 1 0")).is_some_and(|seen| seen.has_ended));
        assert!(parse("nonsense").is_none());
        let no_text: Vec<u8> = stat.bytes().map(|byte| if byte == b'a' { 0xff } else { byte }).collect();
        assert_eq!(super::parse(&no_text).map(|seen| seen.started), Some(4242));
    }
}
