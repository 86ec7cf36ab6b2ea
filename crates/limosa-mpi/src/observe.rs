//! What a blocked call says of itself on the status board, for `limosa ps` and the hang doctor.
//!
//! The fast path pays for one thread-local store per call ([`entering`]); everything else happens when a call is about to sleep.

use crate::comm::Comm;
use crate::instance;
use crate::light;
use crate::request::Request;
use limosa_job::Asleep;
use limosa_job::{Blocked, Kind, Peer, Wait};
use limosa_p2p::{Observer, Short};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What is known of the calling thread.
struct Caller {
    /// The call that it entered last.
    call: Cell<&'static str>,
    /// The status board counts it.
    counted: Cell<bool>,
}

thread_local! {
    static CALLER: Caller = const { Caller { call: Cell::new(""), counted: Cell::new(false) } };
}

/// Says which call of the standard this thread is entering.
#[inline]
pub fn entering(call: &'static str) {
    // A thread's last steps (destructors) may come after its thread-local values are gone; then nobody will know the name.
    let counted = CALLER.try_with(|caller| {
        caller.call.set(call);
        caller.counted.get()
    });
    if counted == Ok(false) {
        introduce();
    }
}

/// Has the status board count this thread among those that use the library.
#[cold]
fn introduce() {
    if let Some(instance) = instance::get() {
        instance.job().seat().thread();
        let _ = CALLER.try_with(|caller| caller.counted.set(true));
    }
}

/// What a thread waits for.
pub struct Waiting<'a> {
    what: What<'a>,
    asleep: RefCell<Option<Asleep<'static>>>,
}

enum What<'a> {
    Message { kind: Kind, comm: &'a Comm, peer: Option<i32>, tag: Option<i32> },
    Collective(&'a Comm),
    Light { n: usize, name: &'a dyn Fn(usize) -> Option<Short> },
    Requests { requests: &'a [Option<Arc<Request>>], all: bool },
    Nothing,
}

impl<'a> Waiting<'a> {
    fn new(what: What<'a>) -> Waiting<'a> {
        Waiting { what, asleep: RefCell::new(None) }
    }

    /// A message from `source` (`None`: anybody) with `tag` (`None`: any).
    pub fn receive(comm: &'a Comm, source: Option<i32>, tag: Option<i32>) -> Waiting<'a> {
        Waiting::new(What::Message { kind: Kind::Receive, comm, peer: source, tag })
    }

    /// That `dest` takes a message.
    pub fn send(comm: &'a Comm, dest: i32, tag: i32) -> Waiting<'a> {
        Waiting::new(What::Message { kind: Kind::Send, comm, peer: Some(dest), tag: Some(tag) })
    }

    /// That the other members take part in a collective.
    pub fn collective(comm: &'a Comm) -> Waiting<'a> {
        Waiting::new(What::Collective(comm))
    }

    /// All or any of these requests.
    pub fn requests(requests: &'a [Option<Arc<Request>>], all: bool) -> Waiting<'a> {
        Waiting::new(What::Requests { requests, all })
    }

    /// All of `n` requests that live in the engine.
    pub fn light(n: usize, name: &'a dyn Fn(usize) -> Option<Short>) -> Waiting<'a> {
        Waiting::new(What::Light { n, name })
    }

    /// Something that has no name in the standard.
    pub fn nothing_in_particular() -> Waiting<'a> {
        Waiting::new(What::Nothing)
    }
}

/// What one operation waits for, with the communicator's name kept by the caller.
pub(crate) fn message_wait<'n>(kind: Kind, comm: &Comm, peer: Option<i32>, tag: Option<i32>, name: &'n str) -> Wait<'n> {
    let peer = match peer {
        Some(rank) => Peer::Rank { rank: rank as u32, world: comm.world_rank_of(rank).unwrap_or(u32::MAX) },
        None => Peer::Any,
    };
    Wait { kind, peer, tag, context: comm.context(), comm: name, members: comm.size() as u32 }
}

/// A collective's wait.
pub(crate) fn collective_wait<'n>(comm: &Comm, name: &'n str) -> Wait<'n> {
    Wait { kind: Kind::Collective, peer: Peer::Members, tag: None, context: comm.context(), comm: name, members: comm.size() as u32 }
}

impl Observer for Waiting<'_> {
    #[cold]
    fn blocked(&self) {
        let Some(instance) = instance::get() else { return };
        let call = CALLER.try_with(|caller| caller.call.get()).unwrap_or("");
        let seat = instance.job().seat();
        let asleep = match &self.what {
            What::Message { kind, comm, peer, tag } => {
                let name = comm.describe();
                let wait = message_wait(*kind, comm, *peer, *tag, &name);
                seat.blocked(&Blocked { call, waits: &[wait], all: true })
            }
            What::Collective(comm) => {
                let name = comm.describe();
                seat.blocked(&Blocked { call, waits: &[collective_wait(comm, &name)], all: true })
            }
            What::Requests { requests, all } => {
                let open: Vec<&Arc<Request>> = requests.iter().flatten().filter(|r| !r.is_done()).collect();
                let names: Vec<String> = open.iter().map(|r| r.comm().map_or_else(String::new, |c| c.describe())).collect();
                let waits: Vec<Wait<'_>> = open.iter().zip(&names).filter_map(|(r, name)| r.wait_record(name)).collect();
                seat.blocked(&Blocked { call, waits: &waits, all: *all })
            }
            What::Light { n, name } => {
                let mut names = Vec::new();
                let waits = light::wait_records((0..*n).filter_map(name), &mut names);
                seat.blocked(&Blocked { call, waits: &waits, all: true })
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
        if let Some(instance) = instance::get() {
            instance.job().seat().woken_for_nothing();
        }
    }
}
