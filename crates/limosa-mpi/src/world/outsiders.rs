//! Processes of other jobs that this process is connected with.
//!
//! An *outsider* has a number in this process's world like all others, behind those of the job; every process gives it
//! a number of its own. So processes are named to each other by job and number in it ([`Identity`]). Outsiders are
//! reached by sockets ([`limosa_p2p::SocketDevice`]): one between each two processes, made when their groups first
//! meet.
//!
//! ```text
//!   each process    listens at a name in the abstract namespace that follows from its identity
//!   both groups     exchange which of their processes are connected ([`World::open_links`])
//!   of each pair    that is not, the lesser process connects and sends its identity and the meeting ([`World::link`])
//! ```
//!
//! A connection ends when both have disconnected the last communicator of both ([`World::part_from`]). The numbers of
//! outsiders that have gone are used again, late, because the program may still hold groups with them.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use limosa_job::{Job, control};
use limosa_p2p::{DeviceId, Engine, Peer, SocketDevice, Sockets, interrupt};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use super::{Hosts, World};
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::mix::mix;

/// So many numbers are free before one is used again.
const RESTING: usize = 256;
/// How long a process that is in the same call may take to connect.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between looks for what another thread may have accepted, and for interrupts.
const PAUSE_NS: i64 = 10_000_000;

/// A process as all others know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub job: u64,
    pub number: u64,
    /// The number of the spawn that started it.
    pub spawn: u64,
}

/// Words of an identity, and of the host that follows it.
pub(crate) const WORDS: usize = 4;

impl Identity {
    fn words(self) -> [u64; 3] {
        [self.job, self.number, self.spawn]
    }

    fn of(words: [u64; 3]) -> Identity {
        let [job, number, spawn] = words;
        Identity { job, number, spawn }
    }

    /// Where the process listens for others.
    fn address(self) -> String {
        let [job, number, spawn] = self.words();
        format!("limosa-process-{job:016x}-{number}-{spawn}")
    }
}

/// The outsiders of a world.
#[derive(Default)]
pub(crate) struct Outsiders {
    /// There has been one.
    any: AtomicBool,
    table: Mutex<Table>,
    /// Identities of outsiders, by number. The holder of this lock takes no other lock: it is asked with the engine's
    /// lock.
    identities: Mutex<Vec<Identity>>,
}

#[derive(Default)]
struct Table {
    known: FxHashMap<Identity, Peer>,
    /// By number, counted from the first one behind the job's.
    all: Vec<Outsider>,
    /// Numbers that are free, the one that has been free for longest first.
    free: VecDeque<u32>,
    device: Option<(DeviceId, Arc<Sockets>)>,
    listener: Option<Arc<OwnedFd>>,
    /// Identities that have connected, with the meeting.
    arrived: FxHashSet<(Identity, u64)>,
}

struct Outsider {
    /// Its host, as its own job counts them.
    host: u64,
    /// Communicators with it.
    holds: usize,
    /// The last communicator with it is, or was, disconnected.
    is_leaving: bool,
}

/// Keeps the connections with the outsiders of a group.
pub(crate) struct Hold<'a> {
    world: &'a World,
    group: &'a Group,
}

impl<'a> Hold<'a> {
    pub(crate) fn new(world: &'a World, group: &'a Group) -> Hold<'a> {
        world.hold(group);
        Hold { world, group }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.world.release(self.group);
    }
}

impl World {
    fn place_of(&self, peer: Peer) -> Option<usize> {
        peer.checked_sub(self.capacity).map(|place| place as usize)
    }

    /// Whether some members belong to another job.
    pub(crate) fn has_outsiders(&self, group: &Group) -> bool {
        self.outsiders.any.load(Ordering::Acquire) && group.iter().any(|peer| peer >= self.capacity)
    }

    /// Returns the job and the number in it of a process of another job.
    pub(crate) fn outside(&self, peer: Peer) -> Option<(u64, u32)> {
        let place = self.place_of(peer)?;
        let identity = self.outsiders.identities.lock().get(place).copied()?;
        Some((identity.job, u32::try_from(identity.number).ok()?))
    }

    /// What this process is to others.
    pub(crate) fn identity(&self, peer: Peer) -> Identity {
        match self.place_of(peer) {
            Some(place) => self.outsiders.identities.lock()[place],
            None => {
                let spawn = self.known.lock().get(&peer).copied().unwrap_or(0);
                Identity { job: self.id, number: u64::from(peer), spawn }
            }
        }
    }

    /// Identity and host of a process, for others.
    pub(crate) fn introduction(&self, peer: Peer) -> [u64; WORDS] {
        let [job, number, spawn] = self.identity(peer).words();
        [job, number, spawn, self.host_in_job(peer).1]
    }

    /// Returns the process with this introduction; `None` if there can be none.
    ///
    /// # Errors
    /// The operating system's, when there can be no more connections.
    pub(crate) fn introduced(&self, words: [u64; WORDS]) -> Result<Option<Peer>> {
        let [job, number, spawn, host] = words;
        let own = u32::try_from(number).ok().filter(|number| *number < self.capacity);
        if job == self.id {
            return Ok(own);
        }
        let Some(engine) = &self.engine else { return Ok(None) };
        match self.outsider(engine, Identity { job, number, spawn }, host) {
            Ok(peer) => Ok(Some(peer)),
            Err(error) => fail!(MPI_ERR_OTHER, "there can be no connections with other jobs: {error}"),
        }
    }

    fn outsider(&self, engine: &Engine, identity: Identity, host: u64) -> io::Result<Peer> {
        let mut table = self.outsiders.table.lock();
        let table = &mut *table;
        self.outsiders.any.store(true, Ordering::Release);
        if let Some(peer) = table.known.get(&identity).copied() {
            let outsider = &mut table.all[(peer - self.capacity) as usize];
            outsider.is_leaving = false;
            return Ok(peer);
        }
        let device = match &table.device {
            Some((device, _)) => *device,
            None => {
                let device = SocketDevice::new()?;
                let sockets = device.sockets().clone();
                let id = engine.add_device(Box::new(device))?;
                table.device.insert((id, sockets)).0
            }
        };
        let made = Outsider { host, holds: 0, is_leaving: false };
        let place = if table.free.len() > RESTING { table.free.pop_front() } else { None };
        let place = match place {
            Some(place) => {
                table.all[place as usize] = made;
                self.outsiders.identities.lock()[place as usize] = identity;
                place
            }
            None => {
                let place = table.all.len() as u32;
                let peer = engine.add_peer(device, place);
                assert_eq!(peer, self.capacity + place, "outsiders follow the processes of the job");
                table.all.push(made);
                self.outsiders.identities.lock().push(identity);
                place
            }
        };
        table.known.insert(identity, self.capacity + place);
        Ok(self.capacity + place)
    }

    /// One communicator more has these members.
    pub(crate) fn hold(&self, group: &Group) {
        if self.has_outsiders(group) {
            let mut table = self.outsiders.table.lock();
            group.iter().filter_map(|peer| self.place_of(peer)).for_each(|place| table.all[place].holds += 1);
        }
    }

    /// One communicator less has these members.
    pub(crate) fn release(&self, group: &Group) {
        if self.has_outsiders(group) {
            let mut table = self.outsiders.table.lock();
            group.iter().filter_map(|peer| self.place_of(peer)).for_each(|place| table.all[place].holds -= 1);
        }
    }

    /// A communicator of these members was disconnected: connections end that no other one needs.
    pub fn part_from(&self, group: &Group) {
        if !self.has_outsiders(group) {
            return;
        }
        let gone: Vec<Identity> = {
            let mut table = self.outsiders.table.lock();
            group.iter().filter_map(|peer| self.place_of(peer)).for_each(|place| table.all[place].is_leaving = true);
            let leaving = table.known.iter().filter(|(_, peer)| {
                let outsider = &table.all[(**peer - self.capacity) as usize];
                outsider.is_leaving && outsider.holds == 0
            });
            leaving.map(|(identity, _)| *identity).collect()
        };
        gone.into_iter().for_each(|identity| self.part(identity));
    }

    fn part(&self, identity: Identity) {
        let place = {
            let mut table = self.outsiders.table.lock();
            let Some(place) = table.known.get(&identity).map(|peer| peer - self.capacity) else { return };
            let outsider = &table.all[place as usize];
            if outsider.holds > 0 || !outsider.is_leaving {
                return;
            }
            table.known.remove(&identity);
            if let Some((_, sockets)) = &table.device {
                sockets.part(place);
            }
            place
        };
        // Without the lock: the engine may let go of communicators.
        self.engine().forget_peer(self.capacity + place);
        self.outsiders.table.lock().free.push_back(place);
    }

    /// Parts from all outsiders, because this process ends in good order.
    pub(super) fn part_from_all(&self) {
        if let Some((_, sockets)) = &self.outsiders.table.lock().device {
            sockets.part_from_all();
        }
    }

    /// For each member whether this process has a connection with it, or needs none. From now on others can connect.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn open_links(&self, group: &Group) -> Result<Vec<u8>> {
        if !self.has_outsiders(group) {
            return Ok(vec![1; group.size()]);
        }
        let mut table = self.outsiders.table.lock();
        if table.listener.is_none() {
            match listen(&self.own_identity()) {
                Ok(listener) => table.listener = Some(Arc::new(listener)),
                Err(error) => fail!(MPI_ERR_OTHER, "the operating system refused a socket for other jobs: {error}"),
            }
        }
        let sockets = table.device.as_ref().map(|(_, sockets)| sockets);
        let is_open = |place| sockets.is_some_and(|sockets| sockets.is_open(place));
        Ok(group.iter().map(|peer| self.place_of(peer).is_none_or(|place| is_open(place as u32)).into()).collect())
    }

    fn own_identity(&self) -> Identity {
        Identity { job: self.id, number: u64::from(self.rank), spawn: self.spawn }
    }

    /// Connects this process with these outsiders, which call the same at this meeting. None of them has a connection
    /// with it, or knows of one.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` if one of them cannot be reached; that the program was interrupted.
    pub(crate) fn link(&self, meeting: u64, peers: &[Peer]) -> Result<()> {
        let own = self.own_identity();
        let mut awaited = Vec::new();
        for peer in peers.iter().copied() {
            let theirs = self.identity(peer);
            if theirs < own {
                awaited.push((theirs, meeting));
                continue;
            }
            let linked = call(own, theirs, meeting).and_then(|socket| self.put(theirs, socket));
            if let Err(error) = linked {
                fail!(MPI_ERR_OTHER, "a process of the other job cannot be reached: {error}");
            }
        }
        if awaited.is_empty() {
            return Ok(());
        }
        let listener = self.outsiders.table.lock().listener.clone();
        let Some(listener) = listener else { fail!(MPI_ERR_INTERN, "this process does not listen for other jobs") };
        let end = Instant::now() + PATIENCE;
        loop {
            while let Some((who, meeting, socket)) = accept(listener.as_fd()) {
                // It may have gone already, which is found later.
                if self.put(who, socket).is_ok() {
                    self.outsiders.table.lock().arrived.insert((who, meeting));
                }
            }
            let mut table = self.outsiders.table.lock();
            awaited.retain(|one| !table.arrived.remove(one));
            drop(table);
            if awaited.is_empty() {
                return Ok(());
            }
            if Instant::now() > end {
                fail!(MPI_ERR_OTHER, "a process of the other job does not connect");
            }
            if interrupt::wanted() {
                return Err(limosa_p2p::Interrupted.into());
            }
            let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
            let _ = rustix::event::poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&pause));
        }
    }

    /// Stores a connection with an outsider. A previous connection has ended at the other end.
    fn put(&self, who: Identity, socket: OwnedFd) -> io::Result<()> {
        let engine = self.engine();
        let peer = self.outsider(engine, who, 0)?;
        let place = peer - self.capacity;
        let Some((_, sockets)) = self.outsiders.table.lock().device.clone() else { return Ok(()) };
        if !sockets.is_open(place) {
            engine.forget_peer(peer);
        }
        sockets.put(place, socket)
    }

    /// Returns the job of a process, and its host there.
    fn host_in_job(&self, peer: Peer) -> (u64, u64) {
        match self.place_of(peer) {
            Some(place) => {
                let table = self.outsiders.table.lock();
                (self.outsiders.identities.lock()[place].job, table.all[place].host)
            }
            None => (self.id, u64::from(self.hosts.find(peer, self.started).0)),
        }
    }

    /// Returns the host of each member, numbered in the order in which they come: all members of the group number them
    /// alike. Processes of different jobs share no memory, and count as if they were on different hosts.
    pub fn hosts_of(&self, group: &Group) -> Vec<u32> {
        if self.hosts == Hosts::One && !self.has_outsiders(group) {
            return vec![0; group.size()];
        }
        let mut numbers = FxHashMap::default();
        let number = |peer| {
            let next = numbers.len() as u32;
            *numbers.entry(self.host_in_job(peer)).or_insert(next)
        };
        group.iter().map(number).collect()
    }

    /// Returns a number that depends on the members and their order only: all processes compute the same.
    pub(crate) fn hash_of(&self, group: &Group) -> u64 {
        if !self.has_outsiders(group) {
            return group.content_hash();
        }
        group.iter().fold(group.size() as u64, |hash, peer| self.identity(peer).words().into_iter().fold(hash, mix))
    }

    /// What both jobs must have in common to exchange messages: the version of the library, the machine, whether calls
    /// are checked, and which algorithms of collectives are chosen.
    pub(crate) fn terms(&self) -> Terms {
        let choices = Job::current().map_or(0, Job::common_number);
        Terms([text_hash(env!("CARGO_PKG_VERSION").as_bytes()), machine(), crate::check::is_on().into(), choices])
    }
}

fn text_hash(text: &[u8]) -> u64 {
    text.iter().fold(0, |hash, byte| mix(hash, u64::from(*byte)))
}

/// Returns a number of the machine and its network namespace: processes reach each other by sockets where it is the
/// same.
pub(crate) fn machine() -> u64 {
    let of_machine = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/self/ns/net").map(|link| link.into_os_string().into_encoded_bytes());
    mix(text_hash(&of_machine), text_hash(&network.unwrap_or_default()))
}

/// See [`World::terms`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms(pub [u64; 4]);

impl Terms {
    /// In what they differ, in words.
    pub(crate) fn difference(self, other: Terms) -> Option<&'static str> {
        const WHAT: [&str; 4] = [
            "its job uses another version of Limosa",
            "it is on another machine, or in another network namespace",
            "LIMOSA_CHECK is not the same for both jobs",
            "LIMOSA_COLL_TABLE or the LIMOSA_COLL_... variables are not the same for both jobs",
        ];
        (0..WHAT.len()).find(|at| self.0[*at] != other.0[*at]).map(|at| WHAT[at])
    }
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn address(who: Identity) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(who.address().as_bytes())?)
}

fn listen(own: &Identity) -> io::Result<OwnedFd> {
    let listener = socket()?;
    rustix::net::bind(&listener, &address(*own)?)?;
    rustix::net::listen(&listener, i32::MAX)?;
    rustix::io::ioctl_fionbio(&listener, true)?;
    Ok(listener)
}

/// Connects to an outsider for a meeting.
fn call(own: Identity, whom: Identity, meeting: u64) -> io::Result<OwnedFd> {
    let socket = socket()?;
    rustix::net::connect(&socket, &address(whom)?)?;
    control::check_user(socket.as_fd())?;
    let [job, number, spawn] = own.words();
    let hello: Vec<u8> = [job, number, spawn, meeting].into_iter().flat_map(u64::to_ne_bytes).collect();
    rustix::net::send(&socket, &hello, SendFlags::NOSIGNAL)?;
    Ok(socket)
}

/// Accepts a connection; returns its identity and meeting, if there is one. Foreign users are turned away.
fn accept(listener: BorrowedFd<'_>) -> Option<(Identity, u64, OwnedFd)> {
    loop {
        let socket = rustix::net::accept_with(listener, SocketFlags::CLOEXEC).ok()?;
        // What it is follows at once.
        let patience = Some(Duration::from_secs(1));
        let is_ours = control::check_user(socket.as_fd()).is_ok()
            && rustix::net::sockopt::set_socket_timeout(&socket, rustix::net::sockopt::Timeout::Recv, patience).is_ok();
        let mut hello = [0; 8 * WORDS];
        let received =
            if is_ours { rustix::net::recv(&socket, &mut hello[..], RecvFlags::empty()) } else { Ok((0, 0)) };
        if received.is_ok_and(|(_, length)| length == 8 * WORDS) {
            let mut words = hello.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
            let mut next = || words.next().unwrap_or(0);
            let who = Identity::of([next(), next(), next()]);
            return Some((who, next(), socket));
        }
    }
}
