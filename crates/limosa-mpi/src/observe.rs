//! What a blocked call writes on the status board, for `limosa ps` and the hang doctor.
//!
//! The fast path costs one thread-local store per call ([`entering`]); everything else is done when a call is about to
//! sleep.

use crate::comm::Comm;
use limosa_job::Asleep;
use limosa_job::{Blocked, Job, Kind, Peer, Wait};
use limosa_p2p::Observer;
use std::cell::{Cell, RefCell};

/// What is known about the calling thread.
struct Caller {
    /// The call that it entered last.
    call: Cell<&'static str>,
    /// The status board counts it.
    counted: Cell<bool>,
}

thread_local! {
    static CALLER: Caller = const { Caller { call: Cell::new(""), counted: Cell::new(false) } };
}

/// Records which call of the standard this thread enters.
#[inline]
pub fn entering(call: &'static str) {
    // A thread's last steps (destructors) may come after its thread-local values are gone; the name is lost then.
    let counted = CALLER.try_with(|caller| {
        caller.call.set(call);
        caller.counted.get()
    });
    if counted == Ok(false) {
        introduce();
    }
}

/// Counts this thread on the status board among those that use the library.
#[cold]
fn introduce() {
    if let Some(job) = Job::current() {
        job.seat().thread();
        let _ = CALLER.try_with(|caller| caller.counted.set(true));
    }
}

/// What one operation waits for, in the standard's terms.
#[derive(Clone, Copy)]
pub enum Awaits<'a> {
    /// That `dest` takes a message.
    Send {
        /// On this communicator.
        comm: &'a Comm,
        /// The receiver.
        dest: Option<i32>,
        /// The message's tag.
        tag: Option<i32>,
    },
    /// A message.
    Receive {
        /// On this communicator.
        comm: &'a Comm,
        /// From this rank; `None`: from any.
        source: Option<i32>,
        /// With this tag; `None`: with any.
        tag: Option<i32>,
    },
    /// That the other members take part in a collective.
    Collective(&'a Comm),
}

impl Awaits<'_> {
    fn comm(&self) -> &Comm {
        match self {
            Awaits::Send { comm, .. } | Awaits::Receive { comm, .. } | Awaits::Collective(comm) => comm,
        }
    }

    /// As a record for the status board.
    fn record<'n>(&self, comm_name: &'n str) -> Wait<'n> {
        let comm = self.comm();
        let member = |rank: Option<i32>| match rank {
            Some(rank) => Peer::Rank { rank: rank as u32, world: comm.world_rank_of(rank).unwrap_or(u32::MAX) },
            None => Peer::Any,
        };
        let (kind, peer, tag) = match *self {
            Awaits::Send { dest, tag, .. } => (Kind::Send, member(dest), tag),
            Awaits::Receive { source, tag, .. } => (Kind::Receive, member(source), tag),
            Awaits::Collective(_) => (Kind::Collective, Peer::Members, None),
        };
        Wait { kind, peer, tag, context: comm.context(), comm: comm_name, members: comm.size() as u32 }
    }
}

/// Calls its argument with the wait of each of several operations.
pub type ListAwaits<'a> = dyn Fn(&mut dyn FnMut(Awaits<'_>)) + 'a;

/// What a thread waits for.
pub struct Waiting<'a> {
    what: What<'a>,
    asleep: RefCell<Option<Asleep<'static>>>,
}

enum What<'a> {
    One(Awaits<'a>),
    Several { list: &'a ListAwaits<'a>, all: bool },
    Nothing,
}

impl<'a> Waiting<'a> {
    #[inline]
    fn new(what: What<'a>) -> Waiting<'a> {
        Waiting { what, asleep: RefCell::new(None) }
    }

    /// A message from `source` (`None`: anybody) with `tag` (`None`: any).
    #[inline]
    pub fn receive(comm: &'a Comm, source: Option<i32>, tag: Option<i32>) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Receive { comm, source, tag }))
    }

    /// That `dest` takes a message.
    #[inline]
    pub fn send(comm: &'a Comm, dest: i32, tag: i32) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Send { comm, dest: Some(dest), tag: Some(tag) }))
    }

    /// That the other members take part in a collective.
    #[inline]
    pub fn collective(comm: &'a Comm) -> Waiting<'a> {
        Waiting::new(What::One(Awaits::Collective(comm)))
    }

    /// All or any of several operations. `list` is called when the thread is about to sleep.
    #[inline]
    pub fn several(list: &'a ListAwaits<'a>, all: bool) -> Waiting<'a> {
        Waiting::new(What::Several { list, all })
    }

    /// Something that has no name in the standard.
    pub fn nothing_in_particular() -> Waiting<'a> {
        Waiting::new(What::Nothing)
    }
}

/// A wait that is reported before the thread sleeps, and taken back when it has woken.
pub struct Sleeper<'a> {
    /// What the status board says.
    pub waiting: &'a Waiting<'a>,
    /// Reports that a thread is about to sleep; called with the engine's lock.
    pub begin_sleep: &'a dyn Fn(),
    /// Takes that back.
    pub end_sleep: &'a dyn Fn(),
}

impl Observer for Sleeper<'_> {
    fn arrange(&self) {
        (self.begin_sleep)();
    }

    fn retract(&self) {
        (self.end_sleep)();
    }

    fn blocked(&self) {
        self.waiting.blocked();
    }

    fn resumed(&self) {
        self.waiting.resumed();
    }

    fn woken_for_nothing(&self) {
        self.waiting.woken_for_nothing();
    }
}

impl Observer for Waiting<'_> {
    #[cold]
    fn blocked(&self) {
        let Some(job) = Job::current() else { return };
        let call = CALLER.try_with(|caller| caller.call.get()).unwrap_or("");
        let seat = job.seat();
        let asleep = match &self.what {
            What::One(awaits) => {
                let name = awaits.comm().describe();
                seat.blocked(&Blocked { call, waits: &[awaits.record(&name)], all: true })
            }
            What::Several { list, all } => {
                let mut names: Vec<String> = Vec::new();
                let mut waits: Vec<Wait<'_>> = Vec::new();
                list(&mut |awaits| {
                    names.push(awaits.comm().describe());
                    waits.push(awaits.record(""));
                });
                let waits: Vec<Wait<'_>> =
                    waits.into_iter().zip(&names).map(|(wait, comm)| Wait { comm, ..wait }).collect();
                seat.blocked(&Blocked { call, waits: &waits, all: *all })
            }
            What::Nothing => seat.blocked(&Blocked { call, waits: &[], all: true }),
        };
        *self.asleep.borrow_mut() = Some(asleep);
    }

    #[cold]
    fn resumed(&self) {
        *self.asleep.borrow_mut() = None;
    }

    #[cold]
    fn woken_for_nothing(&self) {
        if let Some(job) = Job::current() {
            job.seat().woken_for_nothing();
        }
    }
}
