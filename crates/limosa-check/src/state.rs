//! What the checker knows of the process: its communicators, requests, messages and objects, from `MPI_Init` to
//! `MPI_Finalize`.
//!
//! The state has one lock. While it is held, only functions of MPI are called that do not communicate, and nothing that
//! may wait for an interpreter's lock.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use limosa_interpose::next::PREDEFINED;
use limosa_interpose::site::Site;

use crate::messages::{Key, Note, Receives, Streams};
use crate::mpi;
use crate::signature::Signatures;

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// The lock of the state.
pub(crate) fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Does something with the state; the default outside of `MPI_Init` and `MPI_Finalize`.
pub(crate) fn with<T: Default>(what: impl FnOnce(&mut State) -> T) -> T {
    lock().as_mut().map(what).unwrap_or_default()
}

/// A communicator, by a number of its own: handles are used again.
pub(crate) struct Comm {
    /// Null when it has been freed.
    pub handle: usize,
    /// The same at all its members.
    pub id: u64,
    /// The ranks in `MPI_COMM_WORLD` of the processes to which messages are sent.
    pub ranks: Vec<i32>,
    pub is_inter: bool,
    /// The id is known to be the same, and all members are in `MPI_COMM_WORLD`.
    pub is_sure: bool,
    /// For the exchange before collective calls; none if these are not checked.
    pub shadow: Option<usize>,
    pub receives: Receives,
    /// Of collective calls that were only begun.
    pub checks: Vec<Check>,
}

/// The exchange of what all ranks of a communicator say of a collective call, under way.
pub(crate) struct Check {
    pub number: u64,
    pub request: usize,
    /// Read and written by the library until the request is complete.
    pub mine: Box<[i64]>,
    pub all: Box<[i64]>,
    pub comm: usize,
    pub shadow: usize,
    pub function: usize,
    pub site: Site,
    pub is_inter: bool,
    pub me: i32,
    /// What this rank says of the block of each other one, in bytes.
    pub each: Option<Vec<u64>>,
}

/// What a call sends and receives.
#[derive(Clone, Default)]
pub(crate) struct Message {
    pub sends: Option<(Key, Note)>,
    /// The communicator's number, source, tag.
    pub receives: Option<(u64, i32, i32, Note)>,
}

/// What a call makes: the address of the request that it begins, or makes for many starts.
#[derive(Clone, Copy)]
pub(crate) enum Begins {
    Nothing,
    Request(usize),
    Persistent(usize),
}

/// A request that is not complete, or persistent.
pub(crate) struct Request {
    pub call: &'static str,
    pub site: usize,
    /// What it is about: the peer, and the communicator; number 0: none.
    pub comm: u64,
    pub message: Message,
    pub is_persistent: bool,
    pub is_active: bool,
    pub is_cancelled: bool,
    /// The receive, in its communicator's queue.
    pub posted: Option<u64>,
    /// The check of a collective call, by number.
    pub check: Option<u64>,
}

impl Request {
    /// Returns a request as a call has made it.
    pub(crate) fn new(call: &'static str, site: Site, begins: Begins, comm: u64, message: Message) -> Request {
        Request {
            call,
            site: site.0,
            comm,
            message,
            is_persistent: matches!(begins, Begins::Persistent(_)),
            is_active: matches!(begins, Begins::Request(_)),
            is_cancelled: false,
            posted: None,
            check: None,
        }
    }
}

pub(crate) struct State {
    pub comms: HashMap<u64, Comm>,
    pub number_of: HashMap<usize, u64>,
    /// The ids of all communicators that were sure.
    pub ids: HashSet<u64>,
    last_number: u64,
    /// How many communicators of the same members were made by the same call.
    twins: HashMap<u64, u64>,
    /// The thread that makes communicators; if there are several, the order is not known.
    maker: Option<u64>,
    is_order_known: bool,
    pub sent: Streams,
    pub received: Streams,
    pub signatures: Signatures,
    /// By handle; a library may give one handle to several.
    pub requests: HashMap<usize, Vec<Request>>,
    /// Messages that were found by MPI_Mprobe: the communicator, and the place in its queue.
    pub found: HashMap<usize, (u64, u64)>,
    /// By kind and handle: the call and the place of each that has made a reference.
    pub objects: HashMap<(&'static str, usize), Vec<(&'static str, usize)>>,
    pub has_sessions: bool,
}

impl State {
    /// The state of a process that has just called `MPI_Init`, with all others.
    pub(crate) fn new(shadow: Option<usize>) -> State {
        let mut state = State {
            comms: HashMap::new(),
            number_of: HashMap::new(),
            ids: HashSet::new(),
            last_number: 0,
            twins: HashMap::new(),
            maker: None,
            is_order_known: true,
            sent: Streams::default(),
            received: Streams::default(),
            signatures: Signatures::default(),
            requests: HashMap::new(),
            found: HashMap::new(),
            objects: HashMap::new(),
            has_sessions: false,
        };
        state.add_comm(mpi::COMM_WORLD, "MPI_Init", 0, shadow);
        state.add_comm(mpi::COMM_SELF, "MPI_Init", 0, None);
        state
    }

    /// Notes a communicator that a call has made. `parent` is the id of its parent where that call may be overtaken.
    pub(crate) fn add_comm(&mut self, handle: usize, call: &'static str, parent: u64, shadow: Option<usize>) {
        let members = members(handle);
        self.add_members(handle, members, call, parent, shadow);
    }

    pub(crate) fn add_members(
        &mut self,
        handle: usize,
        (ranks, own, is_inter): (Vec<i32>, Vec<i32>, bool),
        call: &'static str,
        parent: u64,
        shadow: Option<usize>,
    ) {
        let me = thread();
        self.is_order_known &= self.maker.is_none_or(|maker| maker == me) || call == "MPI_Init";
        self.maker = Some(me).filter(|_| call != "MPI_Init").or(self.maker);
        let mix = |digest: u64, word: u64| (digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Both sides of an intercommunicator are to come to the same number.
        let (first, second) = if is_inter && own < ranks { (&own, &ranks) } else { (&ranks, &own) };
        let words = first.iter().chain(&[-7]).chain(if is_inter { &second[..] } else { &[] }).map(|rank| *rank as u64);
        let key = words.chain(call.bytes().map(u64::from)).fold(mix(7, parent), mix);
        let twin = self.twins.entry(key).or_default();
        *twin += 1;
        let is_sure = self.is_order_known && ranks.iter().chain(&own).all(|rank| *rank >= 0) && !ranks.is_empty();
        let comm = Comm {
            handle,
            id: mix(key, *twin),
            ranks,
            is_inter,
            is_sure,
            shadow,
            receives: Receives::default(),
            checks: Vec::new(),
        };
        self.last_number += 1;
        if is_sure {
            self.ids.insert(comm.id);
        }
        self.comms.insert(self.last_number, comm);
        self.number_of.insert(handle, self.last_number);
    }

    /// The number of a communicator, and what is known of it.
    pub(crate) fn comm(&mut self, handle: usize) -> Option<(u64, &mut Comm)> {
        let number = *self.number_of.get(&handle)?;
        Some((number, self.comms.get_mut(&number)?))
    }

    /// A communicator was freed; gives its shadow.
    pub(crate) fn remove_comm(&mut self, handle: usize) -> Option<usize> {
        let number = self.number_of.remove(&handle)?;
        let comm = self.comms.get_mut(&number)?;
        comm.handle = 0;
        let shadow = comm.shadow.take();
        if comm.checks.is_empty() && !comm.receives.has_open() && !comm.receives.is_lost {
            self.comms.remove(&number);
        }
        shadow
    }

    /// Notes the request that a successful call has made, if it makes one.
    pub(crate) fn add_request(&mut self, begins: Begins, request: Request) {
        let (Begins::Request(address) | Begins::Persistent(address)) = begins else { return };
        // SAFETY: the call has succeeded, and written the handle there.
        let handle = unsafe { mpi::handle(address) };
        if handle != mpi::REQUEST_NULL {
            self.requests.entry(handle).or_default().push(request);
        }
    }

    /// A communicator in words.
    pub(crate) fn name(&self, number: u64) -> String {
        match self.comms.get(&number).map(|comm| comm.handle) {
            Some(handle) if handle > 0 => name_of_comm(handle),
            _ => "a freed communicator".into(),
        }
    }

    /// Notes that a call sends and receives; gives the receive's place in the queue.
    pub(crate) fn begin(&mut self, message: &Message) -> Option<u64> {
        if let Some((key, note)) = message.sends {
            self.sent.add(key, note, Some(thread()));
        }
        let (number, source, tag, note) = message.receives?;
        let posted = self.comms.get_mut(&number)?.receives.post(source, tag, Some(note), thread());
        self.flush(number);
        Some(posted)
    }

    /// A receive got its message from there.
    pub(crate) fn resolve(&mut self, number: u64, posted: u64, source: i32, tag: i32) {
        if let Some(comm) = self.comms.get_mut(&number) {
            comm.receives.resolve(posted, source, tag);
        }
        self.flush(number);
    }

    /// A message that was found has been received, or that has failed.
    pub(crate) fn note_found(&mut self, number: u64, posted: u64, note: Note, is_received: bool) {
        if let Some(comm) = self.comms.get_mut(&number) {
            comm.receives.is_lost |= !is_received;
            comm.receives.note(posted, note);
        }
        self.flush(number);
    }

    /// A call has failed: what it has sent and received is not known.
    pub(crate) fn lose(&mut self, message: &Message) {
        if let Some((key, _)) = message.sends {
            self.sent.lose(key);
        }
        if let Some(comm) = message.receives.and_then(|(number, ..)| self.comms.get_mut(&number)) {
            comm.receives.is_lost = true;
        }
    }

    /// A receive was cancelled before it got anything.
    pub(crate) fn withdraw(&mut self, (number, source, tag, _): (u64, i32, i32, Note), posted: u64) {
        let Some(comm) = self.comms.get_mut(&number) else { return };
        if !comm.receives.withdraw(posted)
            && let Some(peer) = comm.ranks.get(source as usize)
        {
            self.received.lose(Key { comm: comm.id, peer: *peer, tag });
        }
        self.flush(number);
    }

    /// Moves the receives whose streams are known to these.
    fn flush(&mut self, number: u64) {
        let Some(comm) = self.comms.get_mut(&number) else { return };
        for (source, tag, note, thread) in comm.receives.known() {
            if let Some(peer) = comm.ranks.get(source as usize) {
                self.received.add(Key { comm: comm.id, peer: *peer, tag }, note, thread);
            }
        }
    }
}

/// A number for the calling thread.
pub(crate) fn thread() -> u64 {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here) as u64)
}

/// A communicator in words: its name, or its handle's kind.
pub(crate) fn name_of_comm(handle: usize) -> String {
    let name = mpi::name(handle);
    if name.is_empty() { "a communicator without a name".into() } else { name }
}

/// Ranks in `MPI_COMM_WORLD`: of the group to which messages are sent, of the own group, and whether these differ.
pub(crate) fn members(comm: usize) -> (Vec<i32>, Vec<i32>, bool) {
    let is_inter = mpi::number(mpi::comm_test_inter, comm) != 0;
    let ranks = limosa_interpose::next::world_ranks(comm, false).unwrap_or_default();
    let own = if is_inter { limosa_interpose::next::own_world_ranks(comm).unwrap_or_default() } else { ranks.clone() };
    (ranks, own, is_inter)
}

/// Whether a handle is one that a program has made.
pub(crate) fn is_made(handle: usize) -> bool {
    handle >= PREDEFINED
}
