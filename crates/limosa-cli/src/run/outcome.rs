//! How a job ended: the message about it, and the exit code.

use std::ops::Range;

use limosa_job::Abort;
use rustix::process::Resource;

use crate::exit;
use crate::message;
use crate::sys::{self, signal_name};

/// Why the job ends before all ranks have left in order. The first cause counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A rank aborted the job.
    Aborted(Abort),
    /// A rank was killed by a signal.
    Signal {
        /// Which rank.
        rank: u32,
        /// Which signal.
        signal: i32,
        /// True if the kernel killed processes of the control group for lack of memory meanwhile.
        out_of_memory: bool,
    },
    /// A rank ended with an exit code other than 0.
    Code {
        /// Which rank.
        rank: u32,
        /// Its exit code.
        code: i32,
    },
    /// A rank ended in order as a process, but without finalizing, while others still ran.
    NotFinalized {
        /// Which rank.
        rank: u32,
    },
    /// A rank ended without having joined the job, and the others wait for it.
    NeverJoined {
        /// Which rank.
        rank: u32,
    },
    /// The process of a rank ended, but not the wrapper around it that the launcher started.
    Vanished {
        /// Which rank.
        rank: u32,
        /// Which process.
        pid: u32,
    },
    /// The user has left the debugger of a rank before the rank has finalized.
    DebuggerLeft {
        /// Which rank.
        rank: u32,
    },
    /// The hang doctor was asked to end hanging jobs.
    Hang,
    /// The user or the system asked the launcher to end.
    Interrupted {
        /// By which signal.
        signal: i32,
    },
    /// The job took longer than the user allows.
    TimedOut {
        /// The time that was allowed.
        after: std::time::Duration,
    },
    /// The program whose job this launcher has taken over has ended.
    ProgramEnded,
    /// The reader of our output has closed it.
    OutputClosed,
    /// Our output cannot be written.
    OutputFailed(String),
    /// The agent of a host cannot be started, or the connection to it is lost.
    HostLost {
        /// The host as the user calls it.
        host: String,
        /// Why.
        why: String,
        /// Its ranks, if they were started.
        ranks: Option<Range<u32>>,
    },
    /// A process could not be started.
    NotStarted {
        /// For which rank.
        rank: u32,
        /// The system's reason.
        why: String,
    },
}

/// Facts about a rank for messages.
pub struct Who {
    /// Process that the launcher started.
    pub pid: u32,
    /// The program as the user called it.
    pub program: String,
    /// Its host, in a job over several.
    pub host: Option<String>,
    /// It is a Python program, which names the line of a crash itself.
    pub is_python: bool,
}

impl Cause {
    /// The launcher's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Cause::Aborted(abort) => visible(abort.code),
            Cause::Code { code, .. } => visible(*code),
            Cause::Signal { signal, .. } | Cause::Interrupted { signal } => exit::of_signal(*signal),
            Cause::NotFinalized { .. }
            | Cause::NeverJoined { .. }
            | Cause::Vanished { .. }
            | Cause::DebuggerLeft { .. } => exit::FAILED,
            Cause::ProgramEnded => 0,
            Cause::Hang => exit::HANG,
            Cause::TimedOut { .. } => exit::TIMED_OUT,
            Cause::OutputClosed => exit::of_signal(libc::SIGPIPE),
            Cause::OutputFailed(_) | Cause::HostLost { .. } | Cause::NotStarted { .. } => exit::ENVIRONMENT,
        }
    }

    /// The rank that caused the end, if one did.
    pub fn rank(&self) -> Option<u32> {
        match self {
            Cause::Aborted(abort) => Some(abort.rank),
            Cause::Signal { rank, .. }
            | Cause::Code { rank, .. }
            | Cause::NotFinalized { rank }
            | Cause::NeverJoined { rank }
            | Cause::Vanished { rank, .. }
            | Cause::DebuggerLeft { rank }
            | Cause::NotStarted { rank, .. } => Some(*rank),
            Cause::Hang
            | Cause::ProgramEnded
            | Cause::Interrupted { .. }
            | Cause::TimedOut { .. }
            | Cause::OutputClosed
            | Cause::HostLost { .. }
            | Cause::OutputFailed(_) => None,
        }
    }

    /// What to say, if anything, in a job of `ranks` ranks. `others`: how many other ranks are ended by this.
    pub fn message(&self, who: Option<&Who>, ranks: usize, others: usize) -> Option<String> {
        let rank = self.rank().unwrap_or(0);
        let subject = match who {
            Some(Who { pid, program, host: Some(host), .. }) => {
                format!("rank {rank} (process {pid} on {host}, {program})")
            }
            Some(Who { pid, program, .. }) => format!("rank {rank} (process {pid}, {program})"),
            None => format!("rank {rank}"),
        };
        let ending = match others {
            0 => String::new(),
            1 => "; ending the other rank".into(),
            n => format!("; ending the other {n} ranks"),
        };
        let (text, hint) = match self {
            Cause::Aborted(abort) => {
                let why = if abort.message.is_empty() { String::new() } else { format!(": {}", abort.message) };
                (format!("{subject} aborted the job with code {}{why}", abort.code), None)
            }
            Cause::Signal { signal: libc::SIGPIPE, .. } => return None,
            Cause::Signal { signal, out_of_memory, .. } => {
                let hint = hint_of_signal(*signal, *out_of_memory, who.is_some_and(|who| who.is_python), sys::limit);
                (format!("{subject} was killed by signal {signal} ({}){ending}", signal_name(*signal)), hint)
            }
            // The exit code of a single rank is passed on without a message.
            Cause::Code { .. } if ranks == 1 => return None,
            Cause::Code { code, .. } => (format!("{subject} exited with code {code}{ending}"), None),
            Cause::NotFinalized { .. } => (
                format!("{subject} exited without calling MPI_Finalize{ending}"),
                Some("every rank must call MPI_Finalize before it exits, or MPI_Abort to end the whole job".into()),
            ),
            Cause::NeverJoined { .. } => (
                format!("{subject} exited without calling MPI_Init, and all others wait{ending}"),
                Some("every rank of a job must call MPI_Init, and end after MPI_Finalize".into()),
            ),
            Cause::Vanished { pid, .. } => {
                (format!("process {pid}, which was rank {rank}, ended without calling MPI_Finalize{ending}"), None)
            }
            Cause::DebuggerLeft { .. } => {
                (format!("the debugger of rank {rank} has ended before MPI_Finalize{ending}"), None)
            }
            Cause::Hang => ("ending the job because of the hang (--on-hang=abort)".into(), None),
            Cause::Interrupted { .. } | Cause::OutputClosed | Cause::ProgramEnded => return None,
            Cause::TimedOut { after } => {
                (format!("the job has taken longer than {} s: ending it (--timeout)", after.as_secs_f64()), None)
            }
            Cause::OutputFailed(why) => {
                let ending = if others == 0 { "" } else { "; ending the job" };
                (format!("cannot write the output of the job: {why}{ending}"), None)
            }
            Cause::HostLost { host, why, ranks } => lost_host(host, why, ranks.as_ref(), &ending),
            Cause::NotStarted { why, .. } => {
                (format!("cannot start rank {rank}: {why}"), Some(hint_of_refusal(why, sys::limit)))
            }
        };
        Some(message::block(&text, hint.as_deref()))
    }
}

/// What to say of a host that is lost, or that cannot be reached from the start.
fn lost_host(host: &str, why: &str, ranks: Option<&Range<u32>>, ending: &str) -> (String, Option<String>) {
    if let Some(ranks) = ranks {
        let ranks: Vec<u32> = ranks.clone().collect();
        return (format!("the host {host} is lost, with {}: {why}{ending}", message::ranks(&ranks)), None);
    }
    let hint = if why.contains("Host key verification failed") {
        format!("log in once with `ssh {host}`, which asks whether the host's key is right")
    } else if why.contains("Permission denied") {
        format!(
            "ssh needs a key that {host} takes: `ssh-copy-id {host}` puts it there, `ssh-add` asks for its password"
        )
    } else {
        format!(
            "`ssh {host}` must log in without asking for anything, and Limosa be installed there in the same folder; \
             LIMOSA_SSH names another command than ssh"
        )
    };
    (format!("cannot start ranks on the host {host}: {why}"), Some(hint))
}

/// What to do when the system, or the agent of a host, has refused to start something.
pub fn hint_of_refusal(why: &str, limit: impl Fn(Resource) -> Option<u64>) -> String {
    if why.contains("Too many open files") {
        return "each rank takes six descriptors of the launcher: raise their limit (`ulimit -n`)".into();
    }
    if why.contains("Resource temporarily unavailable") {
        let most = limit(Resource::Nproc).map_or("not limited".into(), |most| format!("limited to {most}"));
        return format!(
            "the number of processes and threads has reached its limit: those of this user are {most} (`ulimit -u`), \
             and a control group may have a limit of its own (pids.max)"
        );
    }
    if why.contains(" on this host") {
        return "the program and its working directory must be at the same place on all hosts".into();
    }
    "see `limosa doctor`".into()
}

/// What may be the reason of a signal. `limit`: the limits of the system for this process, which ranks inherit.
fn hint_of_signal(
    signal: i32,
    out_of_memory: bool,
    is_python: bool,
    limit: impl Fn(Resource) -> Option<u64>,
) -> Option<String> {
    let text = match signal {
        libc::SIGKILL if out_of_memory => {
            "the memory limit of this control group was reached: use less memory or fewer ranks".into()
        }
        libc::SIGKILL => "if you did not do this, the system may have run out of memory: see `dmesg`".into(),
        libc::SIGBUS => "the system had no memory left for a page that it had promised: see `limosa doctor`".into(),
        libc::SIGSEGV if !is_python => format!(
            "a wrong address, or a stack that is full (large local arrays, deep recursion): its limit is {} (`ulimit \
             -s`)",
            message::bytes(limit(Resource::Stack)?)
        ),
        libc::SIGXFSZ => match limit(Resource::Fsize) {
            Some(bytes) => format!("a file reached the limit of file sizes, {} (`ulimit -f`)", message::bytes(bytes)),
            None => "a file reached the limit of file sizes (`ulimit -f`), which the program has set".into(),
        },
        libc::SIGXCPU => match limit(Resource::Cpu) {
            Some(seconds) => format!("the process reached the limit of CPU time, {seconds} s (`ulimit -t`)"),
            None => "the process reached the limit of CPU time (`ulimit -t`), which the program has set".into(),
        },
        _ => return None,
    };
    Some(text)
}

/// What an exit code can show, never success.
fn visible(code: i32) -> u8 {
    match code as u8 {
        0 => 1,
        low => low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> Who {
        Who { pid: 42, program: "./prog".into(), host: None, is_python: false }
    }

    #[test]
    fn a_killed_rank_is_named_with_the_signal() {
        let cause = Cause::Signal { rank: 2, signal: libc::SIGSEGV, out_of_memory: false };
        assert_eq!(cause.code(), 139);
        let text = cause.message(Some(&who()), 4, 3).unwrap();
        let line = "limosa: rank 2 (process 42, ./prog) was killed by signal 11 (SIGSEGV, segmentation fault); ending \
                    the other 3 ranks\n";
        assert!(text.starts_with(line), "{text}");
    }

    #[test]
    fn limits_that_may_be_the_reason_of_a_signal_are_named_with_their_values() {
        let hint = |signal, is_python| hint_of_signal(signal, false, is_python, |_| Some(8 << 20));
        assert!(hint(libc::SIGSEGV, false).is_some_and(|hint| hint.ends_with("its limit is 8.0 MiB (`ulimit -s`)")));
        assert_eq!(hint(libc::SIGSEGV, true), None, "Python prints the line");
        assert!(hint(libc::SIGXFSZ, true).is_some_and(|hint| hint.ends_with("file sizes, 8.0 MiB (`ulimit -f`)")));
        assert!(hint(libc::SIGXCPU, true).is_some_and(|hint| hint.ends_with("CPU time, 8388608 s (`ulimit -t`)")));
        let unlimited = |signal| hint_of_signal(signal, false, false, |_| None);
        assert_eq!(unlimited(libc::SIGSEGV), None, "the stack cannot be full");
        assert!(unlimited(libc::SIGXFSZ).is_some_and(|hint| hint.contains("which the program has set")));
        assert_eq!(unlimited(libc::SIGABRT), None);
    }

    #[test]
    fn a_limit_is_named_where_it_has_stopped_a_start_and_only_there() {
        let hint = |why: &str| hint_of_refusal(why, |_| Some(100));
        assert!(hint("Resource temporarily unavailable (os error 11)").contains("limited to 100 (`ulimit -u`)"));
        assert!(hint("Too many open files (os error 24)").contains("`ulimit -n`"));
        for other in ["Permission denied (os error 13)", "there is no folder /x on this host (b)"] {
            assert!(!hint(other).contains("ulimit"), "{other}");
        }
    }

    #[test]
    fn lack_of_memory_is_suspected_and_then_named() {
        let hint = |out_of_memory| {
            Cause::Signal { rank: 0, signal: libc::SIGKILL, out_of_memory }.message(Some(&who()), 2, 1).unwrap()
        };
        assert!(hint(false).contains("may have run out of memory"));
        assert!(hint(true).contains("memory limit of this control group was reached"));
    }

    #[test]
    fn one_rank_passes_its_code_on_without_comment() {
        assert_eq!(Cause::Code { rank: 0, code: 3 }.message(Some(&who()), 1, 0), None);
        assert_eq!(Cause::Code { rank: 0, code: 3 }.code(), 3);
        let text = Cause::Code { rank: 1, code: 3 }.message(Some(&who()), 2, 1).unwrap();
        assert_eq!(text, "limosa: rank 1 (process 42, ./prog) exited with code 3; ending the other rank\n");
    }

    #[test]
    fn an_abort_shows_its_reason_and_never_succeeds() {
        let cause = Cause::Aborted(Abort { rank: 1, code: 256, message: "no fuel".into() });
        assert_eq!(cause.code(), 1);
        assert!(
            cause.message(None, 2, 1).unwrap().starts_with("limosa: rank 1 aborted the job with code 256: no fuel")
        );
    }
}
