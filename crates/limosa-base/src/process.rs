//! The identity of a process, and whether it still runs.
//!
//! A process id alone is not enough: the system uses it again later, a killed process keeps it until its parent has read its exit code, and in
//! another namespace it belongs to another process. So an [`Identity`] also has the time at which the process started and the
//! namespace in which its number is valid.
//!
//! An answer costs reading a file in `/proc`, some 10 us: for slow paths only. When in doubt the answer is that the process lives, since giving
//! up a living peer does more harm than waiting for a dead one.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// A process, as others identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Process id, in the process's own namespace.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did; 0 if the system does not say.
    pub started: u64,
    /// Its namespace of process ids; 0 if the system does not say.
    pub namespace: u64,
}

impl Identity {
    /// This process.
    pub fn own() -> Identity {
        Identity::of(std::process::id())
    }

    /// The process that has this number now.
    pub fn of(pid: u32) -> Identity {
        Identity { pid, started: look(pid).map_or(0, |seen| seen.started), namespace: namespace() }
    }

    /// False if the process has ended, also if its parent has not read its exit code yet.
    pub fn is_alive(&self) -> bool {
        if self.pid == std::process::id() || self.started == 0 || self.namespace == 0 || self.namespace != namespace() {
            return true;
        }
        match look(self.pid) {
            Some(seen) => seen.started == self.started && !seen.has_ended,
            // The system has no such process, or has stopped telling.
            None => look(std::process::id()).is_none(),
        }
    }
}

/// What the system says about a process.
struct Seen {
    started: u64,
    has_ended: bool,
}

/// Fields of `/proc/PID/stat` behind the name, counted from 0 (`proc_pid_stat(5)` counts from 3 there).
const STATE: usize = 0;
const THREADS: usize = 17;
const STARTED: usize = 19;

fn look(pid: u32) -> Option<Seen> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Seen> {
    // The name is in parentheses and may contain anything, also parentheses.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    // A process whose first thread has ended is a zombie too while others go on.
    let has_ended = matches!(*fields.get(STATE)?, "Z" | "X") && fields.get(THREADS)?.parse::<u64>().ok()? <= 1;
    Some(Seen { started: fields.get(STARTED)?.parse().ok()?, has_ended })
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
    fn a_process_lives_until_it_is_killed_also_if_nobody_has_asked_how_it_ended() {
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
        let seen = parse(stat).expect("a line of stat");
        assert_eq!((seen.started, seen.has_ended), (4242, false));
        assert!(parse(&stat.replace(") S", ") Z")).is_some_and(|seen| !seen.has_ended), "another thread of it runs");
        assert!(parse(&stat.replace(") S", ") Z").replace("0 3 0", "0 1 0")).is_some_and(|seen| seen.has_ended));
        assert!(parse("nonsense").is_none());
    }
}
