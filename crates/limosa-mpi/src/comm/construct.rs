//! Making communicators from communicators (MPI-5 section 7.4.2).
//!
//! Only a split needs to exchange anything; all other constructors know from their arguments what every member knows.
//! Each one takes its place among the parent's children before anything can fail.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_base::topology::{self, Use};

use super::Comm;
use super::agreement::allgather_bytes;
use crate::attr::TAG_UB;
use crate::consts::{
    MPI_COMM_TYPE_HW_GUIDED, MPI_COMM_TYPE_HW_UNGUIDED, MPI_COMM_TYPE_RESOURCE_GUIDED, MPI_COMM_TYPE_SHARED,
    MPI_MAX_STRINGTAG_LEN, MPI_UNDEFINED,
};
use crate::errhandler::{Errhandler, Scope};
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::info::Info;
use crate::mix::mix;
use crate::process_sets::{PROCESS_SETS, ProcessSet};
use crate::tool::event::Event;
use crate::topo::Topology;
use crate::world::World;

/// Keeps the contexts of `MPI_Comm_create_group` apart from those of collective calls.
const BY_GROUP: u64 = 0x6c69_6d6f_7361_0001;

/// Number of the contexts of `MPI_Comm_create_from_group` among those of a world.
const FROM_GROUP: u64 = u64::MAX;
/// The same of the communicators that `MPI_Intercomm_create_from_groups` needs itself.
pub(super) const INTER_FROM_GROUPS: u64 = u64::MAX - 1;
pub(super) const LEADERS_OF_GROUPS: u64 = u64::MAX - 2;

/// What a child gets besides its members and its place.
pub(crate) struct ChildPlan {
    /// Members in order, by world rank.
    pub group: Arc<Group>,
    /// Tells apart the children that one call makes on disjoint sets of members.
    pub discriminator: u64,
    /// Topology of the child.
    pub topology: Option<Arc<Topology>>,
}

impl Comm {
    /// Takes the next place among the children of this communicator. All members must call this once per collective
    /// constructor.
    pub(crate) fn next_child(&self) -> u64 {
        self.children.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes the child at `place`; `None` if this process is not one of its members. It inherits the error handler.
    pub(crate) fn child(&self, place: u64, plan: ChildPlan) -> Option<Arc<Comm>> {
        self.child_in(mix(mix(self.context, place), plan.discriminator), plan.group, plan.topology)
    }

    pub(super) fn child_in(
        &self,
        context: u64,
        group: Arc<Group>,
        topology: Option<Arc<Topology>>,
    ) -> Option<Arc<Comm>> {
        let rank = group.rank_of(self.my_world_rank())?;
        let comm = super::registry::enrol(Comm::bare(
            self.world.clone(),
            context & !1,
            group,
            rank,
            self.errhandler(),
            topology,
        ));
        comm.tell(Event::CommCreated);
        Some(comm)
    }

    /// Makes a communicator with the same members, topology and, as their copy callbacks say, attributes
    /// (`MPI_Comm_dup`, `MPI_Comm_idup`).
    ///
    /// Hints are not passed on; `MPI_Comm_dup_with_info` gives its own in `info`. Takes no message, so the duplicate is
    /// complete on return.
    pub fn dup(&self, info: Option<&Info>) -> Result<Arc<Comm>> {
        let place = self.next_child();
        let copy = if self.is_inter() {
            self.inter_child(place, 0, self.group.clone(), self.peers.clone())
        } else {
            let plan = ChildPlan { group: self.group.clone(), discriminator: 0, topology: self.topology.clone() };
            self.child(place, plan)
        };
        let copy = copy.expect("a member of the parent is a member of its duplicate");
        if let Some(info) = info {
            copy.hints.update(info);
        }
        self.attributes.copy_to(self.handle.load(Ordering::Relaxed), &copy.attributes)?;
        Ok(copy)
    }

    /// Makes a communicator of `group`, whose members must be members here; returns `None` on processes outside it
    /// (`MPI_Comm_create`).
    ///
    /// Members may name different groups if these are disjoint.
    pub fn create(&self, group: &Arc<Group>) -> Result<Option<Arc<Comm>>> {
        let place = self.next_child();
        if self.is_inter() {
            return self.create_inter(place, group);
        }
        self.check_members(group)?;
        Ok(self
            .child(place, ChildPlan { group: group.clone(), discriminator: self.world.hash_of(group), topology: None }))
    }

    /// Makes a communicator of the members of `group`, which alone take part in the call (`MPI_Comm_create_group`).
    ///
    /// Members count their calls per (group, tag), which is all that they know to be common.
    pub fn create_group(&self, group: &Arc<Group>, tag: i32) -> Result<Option<Arc<Comm>>> {
        self.check_intra()?;
        self.check_members(group)?;
        if tag < 0 {
            fail!(MPI_ERR_TAG, "the tag is {tag}, but tags are 0 to {}", TAG_UB.get().unwrap_or(i32::MAX));
        }
        if group.rank_of(self.my_world_rank()).is_none() {
            return Ok(None);
        }
        let key = mix(self.world.hash_of(group), tag as u64);
        let place = {
            let mut counts = self.group_children.lock();
            let count = counts.entry(key).or_insert(0);
            *count += 1;
            *count
        };
        Ok(self.child_in(mix(mix(mix(self.context, BY_GROUP), key), place), group.clone(), None))
    }

    /// The members of `group`, which comes from a session; there is no parent (`MPI_Comm_create_from_group`). `None`
    /// for the empty group.
    ///
    /// Members count their calls per (group, tag), as for [`Comm::create_group`].
    ///
    /// # Errors
    /// `MPI_ERR_GROUP` if this process is no member, `MPI_ERR_ARG` if the tag is too long.
    pub fn from_group(
        world: &Arc<World>,
        group: &Arc<Group>,
        tag: &[u8],
        info: Option<&Info>,
        errhandler: &Arc<Errhandler>,
    ) -> Result<Option<Arc<Comm>>> {
        let made = Comm::numbered_from_group(FROM_GROUP, world, group, tag, info, errhandler)?;
        made.iter().for_each(|comm| comm.tell(Event::CommCreated));
        Ok(made)
    }

    /// As [`Comm::from_group`], with a context of one kind among those of communicators without a parent.
    pub(super) fn numbered_from_group(
        number: u64,
        world: &Arc<World>,
        group: &Arc<Group>,
        tag: &[u8],
        info: Option<&Info>,
        errhandler: &Arc<Errhandler>,
    ) -> Result<Option<Arc<Comm>>> {
        if tag.len() >= MPI_MAX_STRINGTAG_LEN as usize {
            fail!(
                MPI_ERR_ARG,
                "stringtag has {} bytes, but at most {} are allowed",
                tag.len(),
                MPI_MAX_STRINGTAG_LEN - 1
            );
        }
        errhandler.check_fits(Scope::Comm)?;
        if group.is_empty() {
            return Ok(None);
        }
        let Some(rank) = group.rank_of(world.rank()) else {
            fail!(
                MPI_ERR_GROUP,
                "this process is not a member of the group: only members may make a communicator of it"
            );
        };
        let key = tag.iter().fold(mix(world.hash_of(group), number), |key, byte| mix(key, u64::from(*byte)));
        let context = mix(mix(world.context(number), key), world.comms.count_from_group(key)) & !1;
        let comm =
            super::registry::enrol(Comm::bare(world.clone(), context, group.clone(), rank, errhandler.clone(), None));
        if let Some(info) = info {
            comm.hints.update(info);
        }
        Ok(Some(comm))
    }

    pub(super) fn check_members(&self, group: &Group) -> Result<()> {
        match group.iter().enumerate().find(|(_, world_rank)| self.group.rank_of(*world_rank).is_none()) {
            Some((rank, _)) => {
                fail!(MPI_ERR_GROUP, "the process at rank {rank} of the group is not a member of {}", self.describe())
            }
            None => Ok(()),
        }
    }

    /// One communicator per colour, ranked by key and, among equal keys, by rank here (`MPI_Comm_split`).
    ///
    /// `None` where the colour is `MPI_UNDEFINED`, and in an intercommunicator if no process of the remote group has
    /// the same colour. A process with a wrong colour takes part as if it were `MPI_UNDEFINED`, so that the others do
    /// not wait for it, and then fails.
    pub fn split(&self, color: i32, key: i32) -> Result<Option<Arc<Comm>>> {
        self.split_with(color, key, allgather_bytes)
    }

    /// [`Comm::split`] with the exchange of eight bytes per member left to the caller.
    pub(crate) fn split_with(
        &self,
        color: i32,
        key: i32,
        allgather: impl FnOnce(&Comm, &[u8]) -> Result<Vec<u8>>,
    ) -> Result<Option<Arc<Comm>>> {
        let place = self.next_child();
        let legal = color >= 0 || color == MPI_UNDEFINED;
        let mut mine = [0; 8];
        mine[..4].copy_from_slice(&(if legal { color } else { MPI_UNDEFINED }).to_ne_bytes());
        mine[4..].copy_from_slice(&key.to_ne_bytes());
        let all = allgather(self.inter.as_ref().map_or(self, |inter| inter.both()), &mine)?;
        if !legal {
            fail!(
                MPI_ERR_ARG,
                "the color is {color}, but a color must be a non-negative integer, or MPI_UNDEFINED to take no part"
            );
        }
        if color == MPI_UNDEFINED {
            return Ok(None);
        }
        let ranks = members_of_color(&all, color);
        if let Some(inter) = &self.inter {
            return Ok(self.split_inter(place, color, inter, &ranks));
        }
        let group = Group::from_world_ranks(
            ranks.into_iter().map(|rank| self.group.world_rank(rank).expect("one entry per member")).collect(),
        );
        let group = group.of_session(self.group.session());
        Ok(self.child(place, ChildPlan { group, discriminator: color as u64, topology: None }))
    }

    /// One communicator per set of processes that share the resource `kind` (`MPI_Comm_split_type`).
    ///
    /// `kind` is the argument `split_type` together with what the info object says. A wrong one fails like a wrong
    /// colour.
    pub fn split_type(&self, kind: Result<SplitKind>, key: i32) -> Result<Option<Arc<Comm>>> {
        let host = || self.world.hosts_of(&self.group)[self.rank as usize] as i32;
        let hosts = self.group.size() as i32;
        let color = match kind {
            Ok(SplitKind::SharedMemory) => host(),
            Ok(SplitKind::Hardware(resource)) => match topology::use_of(resource) {
                Use::One(instance) => (instance as i32).wrapping_mul(hosts).wrapping_add(host()) & i32::MAX,
                Use::Several | Use::None => MPI_UNDEFINED,
            },
            Ok(SplitKind::ProcessSet(ProcessSet::World)) => self.world.members().world_rank(0).unwrap_or(0) as i32,
            Ok(SplitKind::ProcessSet(ProcessSet::Own)) => self.world.rank() as i32,
            Ok(SplitKind::Nothing) | Err(_) => MPI_UNDEFINED,
        };
        let comm = self.split(color, key)?;
        kind.map(|_| comm)
    }
}

/// Stands before the names of resources, which are those of hwloc.
const HARDWARE_PROVIDER: &str = "hwloc://";

/// Returns the resources of this machine, and whether this process is restricted to one instance of each
/// (`MPI_Get_hw_resource_info`).
pub fn hardware_resources() -> impl Iterator<Item = (String, bool)> {
    topology::RESOURCES.into_iter().filter_map(|resource| match topology::use_of(resource) {
        Use::None => None,
        found => Some((format!("{HARDWARE_PROVIDER}{resource}"), found != Use::Several)),
    })
}

/// What `MPI_Comm_split_type` is to split by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKind {
    /// Processes that can share memory.
    SharedMemory,
    /// Processes that are restricted to one instance of a resource of this machine ([`topology::RESOURCES`]).
    Hardware(&'static str),
    /// Processes of a process set.
    ProcessSet(ProcessSet),
    /// Something that this library does not distinguish, or nothing at all: no communicator.
    Nothing,
}

impl SplitKind {
    /// Reads the arguments of `MPI_Comm_split_type`.
    pub fn parse(split_type: i32, info: Option<&Info>) -> Result<SplitKind> {
        match split_type {
            MPI_COMM_TYPE_SHARED => Ok(SplitKind::SharedMemory),
            MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED => {
                let value = |key: &[u8]| info.and_then(|info| info.lookup(key));
                if let Some(resource) = value(b"mpi_hw_resource_type") {
                    return Ok(SplitKind::of_resource(&resource));
                }
                let set = value(b"mpi_pset_name").filter(|_| split_type == MPI_COMM_TYPE_RESOURCE_GUIDED);
                let named = |set: Vec<u8>| PROCESS_SETS.iter().find(|(name, _)| name.as_bytes() == set);
                Ok(set.and_then(named).map_or(SplitKind::Nothing, |(_, set)| SplitKind::ProcessSet(*set)))
            }
            MPI_COMM_TYPE_HW_UNGUIDED | MPI_UNDEFINED => Ok(SplitKind::Nothing),
            other => fail!(
                MPI_ERR_ARG,
                "the split type is {other}, which is not one of the MPI_COMM_TYPE_ constants or MPI_UNDEFINED"
            ),
        }
    }

    /// That of a value of `mpi_hw_resource_type`.
    fn of_resource(value: &[u8]) -> SplitKind {
        if value == b"mpi_shared_memory" {
            return SplitKind::SharedMemory;
        }
        let name = value.strip_prefix(HARDWARE_PROVIDER.as_bytes());
        let known = topology::RESOURCES.into_iter().find(|known| Some(known.as_bytes()) == name);
        known.map_or(SplitKind::Nothing, SplitKind::Hardware)
    }
}

/// Ranks with this colour, by (key, rank). `all` has eight bytes per rank: colour and key.
fn members_of_color(all: &[u8], color: i32) -> Vec<usize> {
    let word = |bytes: &[u8]| i32::from_ne_bytes(bytes.try_into().expect("four bytes"));
    let mut chosen: Vec<(i32, usize)> = all
        .chunks_exact(8)
        .enumerate()
        .filter(|(_, entry)| word(&entry[..4]) == color)
        .map(|(rank, entry)| (word(&entry[4..]), rank))
        .collect();
    chosen.sort_unstable();
    chosen.into_iter().map(|(_, rank)| rank).collect()
}
