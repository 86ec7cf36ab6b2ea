//! What is written on the board and read from it, as plain values.

/// What a thread that is about to sleep, or that polls in vain, waits for.
#[derive(Clone, Debug)]
pub struct Blocked<'a> {
    /// Name of the call that sleeps, such as `MPI_Recv` (at most 48 bytes are kept).
    pub call: &'a str,
    /// What it waits for. The first [`WAITS`](crate::WAITS) are recorded, the others are counted.
    pub waits: &'a [Wait<'a>],
    /// Number of other operations that it waits for.
    pub more: usize,
    /// True if all waits must end before the call can return, false if one is enough.
    pub all: bool,
    /// Messages that have arrived and have not been received. The first three are recorded, the others are counted.
    pub lying: &'a [Lying<'a>],
}

/// A message that has arrived and has not been received.
#[derive(Clone, Copy, Debug)]
pub struct Lying<'a> {
    /// The sender's rank in the communicator.
    pub source: u32,
    /// The sender's rank in the job.
    pub source_world: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length.
    pub bytes: u64,
    /// Identity of the communicator.
    pub context: u64,
    /// Name of the communicator (at most 48 bytes are kept).
    pub comm: &'a str,
}

/// One thing waited for.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// What has to happen.
    pub kind: Kind,
    /// The peer that has to do it.
    pub peer: Peer,
    /// Tag of the message; `None` if any tag will do or tags have no meaning here.
    pub tag: Option<i32>,
    /// Identity of the communicator: two with equal names differ in this.
    pub context: u64,
    /// Name of the communicator (at most 48 bytes are kept).
    pub comm: &'a str,
    /// Number of ranks in the communicator.
    pub members: u32,
    /// If all its ranks are of this job, at regular distances: the first one in the job, and the distance.
    pub series: Option<(u32, u32)>,
    /// The call that started the operation; empty if it is the call that waits (at most 32 bytes are kept).
    pub started: &'a str,
}

/// What has to happen for a wait to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Kind {
    /// A message must come from the peer.
    Receive = 1,
    /// The peer must take a message.
    Send = 2,
    /// The peer must take part in the same collective call.
    Collective = 3,
    /// Anything else.
    Other = 4,
    /// Another group must connect, or accept. In place of the communicator's name stands the port's.
    Connection = 5,
}

/// The peer that a wait depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// Anyone in the communicator.
    Any,
    /// All other members of the communicator.
    Members,
    /// One rank.
    Rank {
        /// Its rank in the communicator.
        rank: u32,
        /// Its rank in the job.
        world: u32,
    },
    /// A process of another job, or any or all members of a communicator with some.
    Outside {
        /// The job's id; 0 if they are of several.
        job: u64,
        /// If it is one: its rank in the communicator, and in its job.
        member: Option<(u32, u32)>,
    },
}

/// The state of a rank. Whether it sleeps is not part of it: see [`RankView::is_blocked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum State {
    /// No process has claimed this rank: not started, still starting, or a program that does not use the library.
    Empty = 0,
    /// Claimed, and setting itself up.
    Starting = 1,
    /// Between initialisation and finalization.
    Running = 2,
    /// Finalized.
    Finalized = 3,
    /// Ended as a process (written by the launcher).
    Exited = 4,
    /// Aborted the job.
    Aborted = 5,
}

/// Everything the board says of one rank, copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankView {
    /// Rank in the job.
    pub rank: u32,
    /// Process that claimed the rank, 0 if none.
    pub pid: u32,
    /// Process that the launcher started for the rank: the rank itself or a wrapper around it.
    pub started: u32,
    /// Its state.
    pub state: State,
    /// CLOCK_MONOTONIC nanoseconds of the last change of `state`.
    pub state_since_ns: u64,
    /// Number of its application in a job of several programs.
    pub appnum: u32,
    /// Live threads that have called the library.
    pub threads: u32,
    /// Threads now asleep in the library.
    pub asleep: u32,
    /// Kernel numbers of live threads that have called the library (the first sixteen).
    pub callers: Vec<u32>,
    /// It has finalized, whether its process still runs or not.
    pub finalized: bool,
    /// Changes with each sleep, wake-up and step of progress.
    pub epoch: u64,
    /// How often a thread has gone to sleep.
    pub sleeps: u64,
    /// How often a thread has woken up.
    pub wakeups: u64,
    /// How often a thread woke up although nothing had changed for it.
    pub idle_wakeups: u64,
    /// What the threads wait for that sleep or poll in vain (the first four of them).
    pub records: Vec<Record>,
}

/// What one thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kernel number of the thread.
    pub thread: u32,
    /// Name of the call.
    pub call: String,
    /// CLOCK_MONOTONIC nanoseconds since when.
    pub since_ns: u64,
    /// The first four things waited for.
    pub waits: Vec<WaitView>,
    /// Number of things waited for that are not listed.
    pub more: u32,
    /// True if all waits must end, false if one is enough.
    pub all: bool,
    /// 0 if the thread sleeps, otherwise how often it has polled in vain.
    pub polls: u32,
    /// The first three messages that have arrived and have not been received.
    pub lying: Vec<LyingView>,
    /// Number of such messages that are not listed.
    pub more_lying: u32,
}

/// A message that has not been received, copied out. As [`Lying`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LyingView {
    /// The sender's rank in the communicator.
    pub source: u32,
    /// The sender's rank in the job.
    pub source_world: u32,
    /// Its tag.
    pub tag: i32,
    /// Its length.
    pub bytes: u64,
    /// Identity of the communicator.
    pub context: u64,
    /// Name of the communicator.
    pub comm: String,
}

/// One thing waited for, copied out. As [`Wait`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitView {
    /// What has to happen.
    pub kind: Kind,
    /// The peer that has to do it.
    pub peer: Peer,
    /// Tag of the message, if one matters.
    pub tag: Option<i32>,
    /// Identity of the communicator.
    pub context: u64,
    /// Name of the communicator.
    pub comm: String,
    /// Number of ranks in the communicator.
    pub members: u32,
    /// If all its ranks are known to be of this job, at regular distances: the first one in the job, and the distance.
    pub series: Option<(u32, u32)>,
    /// The call that started the operation; empty if it is the call that waits.
    pub started: String,
}

/// The abort record of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Rank that aborted first.
    pub rank: u32,
    /// Exit code it asked for.
    pub code: i32,
    /// Why, in one sentence; may be empty.
    pub message: String,
}

impl RankView {
    /// True if every thread that uses the library sleeps inside it.
    pub fn is_blocked(&self) -> bool {
        self.state == State::Running && self.asleep > 0 && self.asleep >= self.threads
    }
}

impl State {
    /// The state with this number; an undefined number counts as [`State::Empty`].
    pub(crate) fn from_u32(value: u32) -> State {
        match value {
            1 => State::Starting,
            2 => State::Running,
            3 => State::Finalized,
            4 => State::Exited,
            5 => State::Aborted,
            _ => State::Empty,
        }
    }
}

impl Kind {
    /// The kind with this number.
    pub(crate) fn from_u32(value: u32) -> Kind {
        match value {
            1 => Kind::Receive,
            2 => Kind::Send,
            3 => Kind::Collective,
            5 => Kind::Connection,
            _ => Kind::Other,
        }
    }
}
