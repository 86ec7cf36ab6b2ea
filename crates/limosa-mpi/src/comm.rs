//! Communicators: a group and a context in which its members exchange messages (MPI-5 chapter 7).
//!
//! Contract
//! - A [`Comm`] is shared as `Arc<Comm>`. Every operation holds its communicator, so that `MPI_Comm_free` does not
//!   affect operations under way. Group, rank, context and topology never change; name, error handler, hints and
//!   attributes have locks of their own.
//! - Ranks in messages are those of [`Comm::peers`]: the members, and in an intercommunicator the remote group
//!   (`comm/intercomm.rs`).
//!
//! Contexts. A context is a 64-bit number that keeps the messages of one communicator apart from those of all others.
//! Even numbers carry point to point traffic, the next odd number ([`Comm::coll_context`]) the traffic of collectives.
//! All members must agree on the number of a new communicator, and they do so without a message: it is a mix
//! ([`mix`](crate::mix::mix)) of
//! - the context of the parent,
//! - the number of communicators that were made from the parent by collective calls before. The standard has all
//!   members make these calls in the same order, so they count alike; a call that fails is counted as well, so that
//!   members stay in step;
//! - a word that distinguishes the communicators that one call makes on disjoint sets of members, such as the colour of
//!   a split.
//!
//! `MPI_Comm_create_group` is called by some members only, which count their calls per (group, tag) instead. Numbers
//! are never reused: a late message of a freed communicator cannot reach a new one. The probability that two of n
//! communicators get the same number is about n^2 / 2^64; for a million communicators one in twenty million.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use limosa_p2p::Engine;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use crate::attr::{Attributes, Kind};
use crate::consts::MPI_MAX_OBJECT_NAME;
use crate::errhandler::{Errhandler, Scope};
use crate::error::Result;
use crate::fail;
use crate::group::{Comparison, Group, ranks_of};
use crate::mix::mix;
use crate::tool::event::{self, Event};
use crate::topo::Topology;
use crate::world::World;

mod agreement;
mod construct;
mod hints;
mod intercomm;
mod registry;
mod topology;

pub use agreement::{Agreement, plug_in};
pub(crate) use construct::ChildPlan;
pub use construct::{SplitKind, hardware_resources};
pub use hints::{Hint, Hints};
pub use intercomm::Inter;

/// Number of the context of `MPI_COMM_WORLD` among those of its world.
const WORLD_CONTEXT: u64 = 0;
/// Number of the context in which processes wait for each other in `MPI_Finalize`.
const FINALIZE_CONTEXT: u64 = u64::MAX;
/// Number of the context in which spawned processes meet those that have spawned them.
const PARENT_CONTEXT: u64 = u64::MAX - 3;
/// Words that make the context of a communicator's twin from its own, by [`Purpose`].
const TWIN_CONTEXTS: [u64; 2] = [0x7477_696e, 0x6d63_6173];
/// Number of the context of the `MPI_COMM_SELF` of rank 0; those of the others follow.
const SELF_CONTEXT: u64 = 1;

/// What the library itself uses a communicator of the same members for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The checks compare arguments.
    Checks,
    /// `limosa_mcast`.
    Multicast,
}

/// Data of the layer above that belong to a communicator and are dropped with it.
pub trait Attachment: Any + Send + Sync {
    /// Whether it has memory that the members share.
    fn keeps_shared_memory(&self) -> bool;
}

/// A communicator.
pub struct Comm {
    world: Arc<World>,
    context: u64,
    group: Arc<Group>,
    /// The processes that it exchanges messages with, by rank.
    peers: Arc<Group>,
    rank: u32,
    /// What makes it an intercommunicator.
    inter: Option<Inter>,
    topology: Option<Arc<Topology>>,
    predefined: bool,
    freed: AtomicBool,
    children: AtomicU64,
    group_children: Mutex<FxHashMap<u64, u64>>,
    /// How many partitioned operations were made: as sender or not, with this partner, with this tag.
    partitioned: Mutex<FxHashMap<(bool, i32, i32), u64>>,
    name: Mutex<Vec<u8>>,
    errhandler: RwLock<Arc<Errhandler>>,
    /// The program has set it.
    has_own_errhandler: AtomicBool,
    attributes: Attributes,
    hints: Hints,
    attachment: OnceLock<Box<dyn Attachment>>,
    /// See [`Comm::twin`].
    twins: [OnceLock<Arc<Comm>>; 2],
    /// The handle value under which the ABI layer registered this communicator; 0 if none.
    pub handle: AtomicUsize,
}

impl Comm {
    /// `MPI_COMM_WORLD`: all processes of a world.
    pub fn all_of(world: &Arc<World>) -> Arc<Comm> {
        Comm::of_members(world, WORLD_CONTEXT)
    }

    /// All processes of a world once more, for `MPI_Finalize`: what is done there cannot be taken for what the program
    /// does on `MPI_COMM_WORLD`.
    pub fn of_finalize(world: &Arc<World>) -> Arc<Comm> {
        Comm::of_members(world, FINALIZE_CONTEXT)
    }

    /// Makes a communicator of all processes of a world, for meeting the processes that have spawned them.
    pub(crate) fn of_spawned(world: &Arc<World>) -> Arc<Comm> {
        Comm::of_members(world, PARENT_CONTEXT)
    }

    fn of_members(world: &Arc<World>, number: u64) -> Arc<Comm> {
        let group = world.members();
        let rank = group.rank_of(world.rank()).expect("a process is a member of its own world");
        Comm::predefined(world, world.own_context(number), group, rank, "MPI_COMM_WORLD")
    }

    /// `MPI_COMM_SELF`: this process of a world.
    pub fn self_of(world: &Arc<World>) -> Arc<Comm> {
        let context = world.own_context(SELF_CONTEXT + u64::from(world.rank()));
        Comm::predefined(world, context, Group::contiguous(world.rank(), 1), 0, "MPI_COMM_SELF")
    }

    /// `MPI_COMM_WORLD` of a world without communication, as rank `rank` of `size` sees it: for plans and for tests.
    pub fn without_engine(size: u32, rank: u32) -> Arc<Comm> {
        Comm::all_of(&World::without_engine(size, rank))
    }

    fn predefined(world: &Arc<World>, context: u64, group: Arc<Group>, rank: u32, name: &str) -> Arc<Comm> {
        let mut comm = Comm::bare(world.clone(), context, group, rank, Errhandler::fatal(), None);
        comm.predefined = true;
        comm.set_name(name.as_bytes());
        registry::enrol(comm)
    }

    fn bare(
        world: Arc<World>,
        context: u64,
        group: Arc<Group>,
        rank: u32,
        errhandler: Arc<Errhandler>,
        topology: Option<Arc<Topology>>,
    ) -> Comm {
        debug_assert!(context & 1 == 0 && group.world_rank(rank as usize).is_some());
        world.hold(&group);
        Comm {
            world,
            context,
            peers: group.clone(),
            group,
            rank,
            inter: None,
            topology,
            predefined: false,
            freed: AtomicBool::new(false),
            children: AtomicU64::new(0),
            group_children: Mutex::default(),
            partitioned: Mutex::default(),
            name: Mutex::default(),
            errhandler: RwLock::new(errhandler),
            has_own_errhandler: AtomicBool::new(false),
            attributes: Attributes::new(Kind::Comm),
            hints: Hints::default(),
            attachment: OnceLock::new(),
            twins: Default::default(),
            handle: AtomicUsize::new(0),
        }
    }

    /// Returns the part of a freed communicator that operations under way still need: the members, the name, and the
    /// error handler.
    fn remnant(&self) -> Comm {
        let mut remnant =
            Comm::bare(self.world.clone(), self.context, self.group.clone(), self.rank, self.errhandler(), None);
        remnant.peers = self.peers.clone();
        remnant.set_name(&self.name());
        remnant.handle.store(self.handle.load(Ordering::Relaxed), Ordering::Relaxed);
        remnant.freed.store(true, Ordering::Release);
        remnant
    }

    /// Returns a communicator of the same members that nothing else uses; made at the first call. No message is needed
    /// for that.
    pub fn twin(&self, purpose: Purpose) -> &Arc<Comm> {
        self.twins[purpose as usize].get_or_init(|| {
            let context = Comm::twin_context(self.coll_context(), purpose) & !1;
            let twin =
                Comm::bare(self.world.clone(), context, self.group.clone(), self.rank, Errhandler::fatal(), None);
            twin.set_name(&self.name());
            registry::enrol(twin)
        })
    }

    /// Returns the context of the collectives of the twin of the communicator with such a context.
    pub fn twin_context(coll_context: u64, purpose: Purpose) -> u64 {
        mix(coll_context & !1, TWIN_CONTEXTS[purpose as usize]) | 1
    }

    /// Returns the world that the members belong to.
    #[inline]
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Returns the engine that carries its messages.
    ///
    /// # Panics
    /// If its world has no communication.
    #[inline]
    pub fn engine(&self) -> &Arc<Engine> {
        self.world.engine()
    }

    /// As [`Comm::engine`]; `None` if its world has no communication.
    #[inline]
    pub fn engine_if_any(&self) -> Option<&Arc<Engine>> {
        self.world.engine_if_any()
    }

    /// Returns the context of point to point traffic, an even number.
    #[inline]
    pub fn context(&self) -> u64 {
        self.context
    }

    /// Returns the context of the traffic of collectives, an odd number.
    #[inline]
    pub fn coll_context(&self) -> u64 {
        self.context | 1
    }

    /// Counts one partitioned operation more; returns how many there were before with this partner and tag.
    pub(crate) fn count_partitioned(&self, is_send: bool, peer: i32, tag: i32) -> u64 {
        let mut counts = self.partitioned.lock();
        let count = counts.entry((is_send, peer, tag)).or_default();
        *count += 1;
        *count - 1
    }

    /// Returns the members.
    #[inline]
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Returns the processes that it exchanges messages with: the members, or those of the remote group.
    #[inline]
    pub fn peers(&self) -> &Arc<Group> {
        &self.peers
    }

    /// Returns the number of members; of an intercommunicator, in the local group.
    #[inline]
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// Returns the rank of this process.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the world rank of this process.
    #[inline]
    pub fn my_world_rank(&self) -> u32 {
        self.group.world_rank(self.rank as usize).expect("this process is a member")
    }

    /// Returns the world rank of the peer at `rank`. `MPI_PROC_NULL` and `MPI_ANY_SOURCE` are not members: callers test
    /// for them first.
    #[inline]
    pub fn world_rank_of(&self, rank: i32) -> Result<u32> {
        self.partner(rank, "rank")
    }

    /// The same for an argument of a call; `role` says in the error which one it is.
    #[inline]
    pub fn partner(&self, rank: i32, role: &str) -> Result<u32> {
        // A negative rank becomes an index that no group has.
        match self.peers.world_rank(rank as usize) {
            Some(world_rank) => Ok(world_rank),
            None => self.no_such_rank(rank, role),
        }
    }

    /// Checks that `root` is a member, and returns it.
    #[inline]
    pub fn check_root(&self, root: i32) -> Result<u32> {
        if (root as usize) < self.size() {
            return Ok(root as u32);
        }
        fail!(MPI_ERR_ROOT, "the root is {root}, but {} has {}", self.describe(), ranks_of(self.size()))
    }

    #[cold]
    fn no_such_rank(&self, rank: i32, role: &str) -> Result<u32> {
        let has = if self.is_inter() { "has in its remote group" } else { "has" };
        fail!(MPI_ERR_RANK, "the {role} is {rank}, but {} {has} {}", self.describe(), ranks_of(self.peers.size()))
    }

    /// Returns the rank of the member with this world rank, if it is one.
    #[inline]
    pub fn rank_of_world(&self, world_rank: u32) -> Option<u32> {
        self.group.rank_of(world_rank)
    }

    /// Returns the virtual topology, if the communicator has one.
    pub fn topology(&self) -> Option<&Topology> {
        self.topology.as_deref()
    }

    /// True for `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub fn is_predefined(&self) -> bool {
        self.predefined
    }

    /// True after [`Comm::free`].
    pub fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Acquire)
    }

    /// Returns the data of the collectives' layer for this communicator, made at the first call.
    ///
    /// # Panics
    /// If a value of another type is attached.
    #[inline]
    pub fn attachment<T: Attachment>(&self, make: impl FnOnce() -> T) -> &T {
        let attachment: &dyn Any = &**self.attachment.get_or_init(|| Box::new(make()));
        attachment.downcast_ref().expect("one layer attaches one type")
    }

    /// Whether it has memory that its members share.
    pub fn keeps_shared_memory(&self) -> bool {
        let of_both = self.inter.as_ref().is_some_and(|inter| inter.both().keeps_shared_memory());
        of_both || self.attachment.get().is_some_and(|attachment| attachment.keeps_shared_memory())
    }

    /// Whether this is an intercommunicator.
    #[inline]
    pub fn is_inter(&self) -> bool {
        self.inter.is_some()
    }

    /// What makes this an intercommunicator.
    #[inline]
    pub fn inter(&self) -> Option<&Inter> {
        self.inter.as_ref()
    }

    /// Returns the communicator that carries the collectives of this one: itself, or the one of both groups.
    #[inline]
    pub fn carrier(self: &Arc<Comm>) -> &Arc<Comm> {
        self.inter.as_ref().map_or(self, Inter::both)
    }

    /// Fails on an intercommunicator.
    ///
    /// # Errors
    /// `MPI_ERR_COMM`.
    pub fn check_intra(&self) -> Result<()> {
        if self.is_inter() {
            fail!(MPI_ERR_COMM, "{} is an intercommunicator, but this needs an intracommunicator", self.describe())
        }
        Ok(())
    }

    /// Returns the remote group of an intercommunicator; an error for others.
    pub fn remote_group(&self) -> Result<Arc<Group>> {
        if !self.is_inter() {
            fail!(MPI_ERR_COMM, "{} is an intracommunicator and has no remote group", self.describe())
        }
        Ok(self.peers.clone())
    }

    /// Returns the name in bytes; empty if none was set.
    pub fn name(&self) -> Vec<u8> {
        self.name.lock().clone()
    }

    /// Names the communicator; a longer name than the ABI allows is cut off.
    pub fn set_name(&self, name: &[u8]) {
        let length = name.len().min(MPI_MAX_OBJECT_NAME as usize - 1);
        *self.name.lock() = name[..length].to_vec();
        if let Some(inter) = &self.inter {
            inter.both().set_name(name);
        }
    }

    /// Returns the communicator in the words of an error message or a report.
    pub fn describe(&self) -> String {
        let name = self.name.lock();
        match self.size() {
            _ if !name.is_empty() => String::from_utf8_lossy(&name).into_owned(),
            size if self.is_inter() => {
                format!("an unnamed intercommunicator of {size} and {} processes", self.peers.size())
            }
            1 => "an unnamed communicator of 1 process".to_string(),
            size => format!("an unnamed communicator of {size} processes"),
        }
    }

    /// Returns the error handler in force.
    pub fn errhandler(&self) -> Arc<Errhandler> {
        self.errhandler.read().clone()
    }

    /// Sets another error handler.
    pub fn set_errhandler(&self, errhandler: Arc<Errhandler>) -> Result<()> {
        errhandler.check_fits(Scope::Comm)?;
        *self.errhandler.write() = errhandler;
        self.has_own_errhandler.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the program has set an error handler.
    pub fn has_own_errhandler(&self) -> bool {
        self.has_own_errhandler.load(Ordering::Relaxed)
    }

    /// Returns the attributes cached on this communicator.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the hints in use.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// How this communicator compares with another (`MPI_Comm_compare`).
    pub fn compare(&self, other: &Comm) -> Comparison {
        if std::ptr::eq(self, other) {
            return Comparison::Ident;
        }
        if self.is_inter() != other.is_inter() {
            return Comparison::Unequal;
        }
        let local = self.group.compare(&other.group);
        let remote = if self.is_inter() { self.peers.compare(&other.peers) } else { local };
        match (local, remote) {
            (Comparison::Ident, Comparison::Ident) => Comparison::Congruent,
            (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
            _ => Comparison::Similar,
        }
    }

    /// Frees the communicator for its user (`MPI_Comm_free`): attributes are deleted, and no new operation may begin.
    ///
    /// If a delete callback fails, the communicator is not freed. Operations under way hold the communicator themselves
    /// and end as usual.
    pub fn free(self: &Arc<Comm>) -> Result<()> {
        if self.predefined {
            fail!(MPI_ERR_COMM, "{} is predefined and cannot be freed", self.describe());
        }
        self.attributes.delete_all(self.handle.load(Ordering::Relaxed))?;
        self.freed.store(true, Ordering::Release);
        registry::retire(self);
        self.tell(Event::CommFreed);
        Ok(())
    }

    /// Whether some of the processes that it exchanges messages with belong to another job.
    pub fn has_outsiders(&self) -> bool {
        self.world.has_outsiders(&self.group) || self.is_inter() && self.world.has_outsiders(&self.peers)
    }

    /// Tells tools what has become of it.
    fn tell(&self, event: Event) {
        event::happened(event, (self.context, self.size() as i32));
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        self.world.comms.forget(self.context);
        self.world.release(&self.group);
    }
}

impl std::fmt::Debug for Comm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Comm({}, context {:#x}, rank {} of {})", self.describe(), self.context, self.rank, self.size())
    }
}

#[cfg(test)]
mod tests;
