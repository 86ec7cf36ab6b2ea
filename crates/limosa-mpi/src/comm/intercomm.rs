//! Intercommunicators: two groups without common members, whose members exchange messages with those of the remote
//! group (MPI-5 section 7.6).
//!
//! Contract
//! - The *local* group is the group of the process. Ranks in messages are those of the *remote* group, and a process is
//!   named to its partners by its rank in the local group, so both groups use the same context.
//! - Each intercommunicator has an intracommunicator of *both* groups, which carries its collectives and the exchanges
//!   for making communicators from it. The *low* group comes first in it. Which group is low was agreed when the first
//!   ancestor was made, and never changes.
//! - Groups that meet for the first time have no common number to make contexts of: each leader proposes one.
//! - Processes are named to the remote group by job and number in it, not by their place in this process's world.

use std::ops::Range;
use std::sync::Arc;

use super::agreement::{allgather_bytes, alltoall_bytes};
use super::construct::{INTER_FROM_GROUPS, LEADERS_OF_GROUPS};
use super::{Comm, registry};
use crate::consts::MPI_ERR_OTHER;
use crate::errhandler::Errhandler;
use crate::error::{Error, Result};
use crate::fail;
use crate::group::{Group, ranks_of};
use crate::info::Info;
use crate::mix::mix;
use crate::tool::event::Event;
use crate::world::{Hold, WORDS, World, machine};

/// Keeps the contexts of communicators of both groups, of leaders, and of merged groups apart from others.
const BOTH: u64 = 0x6c69_6d6f_7361_0002;
const LEADERS: u64 = 0x6c69_6d6f_7361_0003;
const MERGED: u64 = 0x6c69_6d6f_7361_0004;

/// What makes a communicator an intercommunicator.
pub struct Inter {
    both: Arc<Comm>,
    is_low: bool,
    low_size: usize,
}

impl Inter {
    /// Returns the intracommunicator of both groups.
    #[inline]
    pub fn both(&self) -> &Arc<Comm> {
        &self.both
    }

    /// Returns the ranks in [`Inter::both`] of the local group.
    pub fn local(&self) -> Range<usize> {
        self.side(self.is_low)
    }

    /// Returns the ranks in [`Inter::both`] of the remote group.
    pub fn remote(&self) -> Range<usize> {
        self.side(!self.is_low)
    }

    fn side(&self, low: bool) -> Range<usize> {
        if low { 0..self.low_size } else { self.low_size..self.both.size() }
    }
}

/// What a leader has said to its group instead of an answer, if it has failed.
fn failure_of_leader(leader: usize, answer: &[u8]) -> Option<Error> {
    let word = |at: usize| answer.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    if answer.is_empty() {
        let detail = format!("the leader of this group, rank {leader}, could not reach the other group");
        return Some(Error::new(MPI_ERR_OTHER, detail));
    }
    if word(0)? != Word::Failed as u64 {
        return None;
    }
    let text = String::from_utf8_lossy(answer.get(16..)?);
    Some(Error::new(word(8)? as i32, format!("at the leader of this group, rank {leader}: {text}")))
}

/// The first word of a leader's message to its group and to the other leader.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Word {
    /// The group, and a proposal for the context, follow.
    Group = 1,
    /// There is no remote group.
    NoGroup = 2,
    /// The leader has failed: an error class and a sentence follow.
    Failed = 3,
}

impl Comm {
    /// Makes an intercommunicator of this context.
    fn intercommunicator(
        world: &Arc<World>,
        context: u64,
        local: Arc<Group>,
        remote: Arc<Group>,
        is_low: bool,
        errhandler: Arc<Errhandler>,
    ) -> Option<Arc<Comm>> {
        let (low, high) = if is_low { (&local, &remote) } else { (&remote, &local) };
        let low_size = low.size();
        let all = Group::from_world_ranks(low.iter().chain(high.iter()).collect());
        let this = world.rank();
        let carrier = mix(context, BOTH) & !1;
        let rank_in_both = all.rank_of(this)?;
        let both = registry::enrol(Comm::bare(world.clone(), carrier, all, rank_in_both, errhandler.clone(), None));
        let rank = local.rank_of(this)?;
        let mut comm = Comm::bare(world.clone(), context, local, rank, errhandler, None);
        comm.peers = remote;
        comm.inter = Some(Inter { both, is_low, low_size });
        let comm = registry::enrol(comm);
        comm.tell(Event::CommCreated);
        Some(comm)
    }

    /// Makes the child of this intercommunicator at `place` with these groups; `None` if one of them is empty, or this
    /// process in none.
    pub(super) fn inter_child(
        &self,
        place: u64,
        discriminator: u64,
        local: Arc<Group>,
        remote: Arc<Group>,
    ) -> Option<Arc<Comm>> {
        let inter = self.inter.as_ref().expect("children with two groups are those of intercommunicators");
        if local.is_empty() || remote.is_empty() {
            return None;
        }
        let context = mix(mix(self.context, place), discriminator) & !1;
        Comm::intercommunicator(self.world(), context, local, remote, inter.is_low, self.errhandler())
    }

    /// `MPI_Comm_create` on an intercommunicator: the members of each side name the same part of their own group.
    ///
    /// A process with a wrong group takes part as if it had named none, and then fails.
    pub(super) fn create_inter(&self, place: u64, group: &Arc<Group>) -> Result<Option<Arc<Comm>>> {
        let inter = self.inter.as_ref().expect("called on intercommunicators only");
        let checked = self.check_members(group);
        let mine = group.rank_of(self.my_world_rank()).filter(|_| checked.is_ok());
        let word = mine.unwrap_or(u32::MAX);
        let all = allgather_bytes(inter.both(), &word.to_ne_bytes())?;
        checked?;
        let places: Vec<u32> =
            all.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().expect("four bytes"))).collect();
        let side = |ranks: Range<usize>| -> Result<Arc<Group>> {
            let mut members: Vec<(u32, usize)> =
                ranks.map(|rank| (places[rank], rank)).filter(|(place, _)| *place != u32::MAX).collect();
            members.sort_unstable();
            if members.iter().enumerate().any(|(at, (place, _))| *place as usize != at) {
                fail!(MPI_ERR_GROUP, "the members of one side of {} have named different groups", self.describe());
            }
            Ok(inter.both.members(&members.iter().map(|(_, rank)| *rank).collect::<Vec<usize>>()))
        };
        let (local, remote) = (side(inter.local())?, side(inter.remote())?);
        if mine.is_none() {
            return Ok(None);
        }
        Ok(self.inter_child(place, 0, local, remote))
    }

    /// `MPI_Comm_split` on an intercommunicator: `ranks` are the members of this process's colour on both sides.
    pub(super) fn split_inter(&self, place: u64, color: i32, inter: &Inter, ranks: &[usize]) -> Option<Arc<Comm>> {
        let side = |side: Range<usize>| {
            inter.both.members(&ranks.iter().copied().filter(|rank| side.contains(rank)).collect::<Vec<usize>>())
        };
        self.inter_child(place, color as u64, side(inter.local()), side(inter.remote()))
    }

    /// Makes an intracommunicator of both groups (`MPI_Intercomm_merge`). The group that says `high` comes last; if
    /// both say the same, the low one comes first.
    pub fn merge(&self, high: bool) -> Result<Arc<Comm>> {
        let place = self.next_child();
        let Some(inter) = &self.inter else {
            fail!(MPI_ERR_COMM, "{} is an intracommunicator, but this needs an intercommunicator", self.describe())
        };
        let said = allgather_bytes(inter.both(), &[high.into()])?;
        let side = |ranks: Range<usize>| -> Result<u8> {
            let said = &said[ranks];
            if said.iter().any(|word| *word != said[0]) {
                fail!(MPI_ERR_ARG, "the members of one group of {} give different values of high", self.describe());
            }
            Ok(said[0])
        };
        let (low, high) = (side(inter.side(true))?, side(inter.side(false))?);
        let both = inter.both.group();
        let group = if low > high {
            let ranks: Vec<usize> = inter.side(false).chain(inter.side(true)).collect();
            inter.both.members(&ranks)
        } else {
            both.clone()
        };
        let merged = self.child_in(mix(mix(self.context, place), MERGED), group, None);
        Ok(merged.expect("a member of one group is a member of both"))
    }

    /// Makes an intercommunicator of this communicator's members and those of another communicator
    /// (`MPI_Intercomm_create`). At the local leader, `peer` gives the communicator through which it reaches the remote
    /// leader, and the rank of the remote leader there.
    ///
    /// A leader that fails tells its group, so that its members do not wait for it.
    pub fn intercomm_create(
        &self,
        local_leader: i32,
        peer: impl FnOnce() -> Result<(Arc<Comm>, i32)>,
        tag: i32,
    ) -> Result<Arc<Comm>> {
        let place = self.next_child();
        self.check_intra()?;
        let leader = self.partner(local_leader, "local leader")?;
        let proposal = mix(mix(self.context, place), LEADERS);
        let leaders = (leader == self.my_world_rank()).then(|| {
            let (peer, remote_leader) = peer()?;
            let that = peer.partner(remote_leader, "remote leader")?;
            if that != leader && self.group.rank_of(that).is_some() {
                fail!(
                    MPI_ERR_COMM,
                    "the remote leader, rank {remote_leader} of {}, is a member of the local group too: the two groups \
                     must have no member in common",
                    peer.describe()
                );
            }
            peer.with_leader(remote_leader, tag).map(Some)
        });
        let made = self.meet(local_leader as usize, proposal, leaders, &self.errhandler())?;
        Ok(made.expect("there is a remote group, since its leader has answered"))
    }

    /// Makes the communicator of this process and the leader of another group. That leader makes the same call.
    fn with_leader(&self, remote_leader: i32, tag: i32) -> Result<Arc<Comm>> {
        if tag < 0 {
            fail!(MPI_ERR_TAG, "the tag is {tag}, but it must not be negative");
        }
        let (this, that) = (self.my_world_rank(), self.partner(remote_leader, "remote leader")?);
        if this == that {
            fail!(MPI_ERR_RANK, "the remote leader, rank {remote_leader}, is this process itself");
        }
        let (own, other) = (u64::from(self.rank), remote_leader as u64);
        let is_first = self.inter.as_ref().map_or(own < other, |inter| inter.is_low);
        let (first, second) = if is_first { (own, other) } else { (other, own) };
        let key = mix(mix(mix(LEADERS, first), second), tag as u64);
        let count = {
            let mut counts = self.group_children.lock();
            let count = counts.entry(key).or_insert(0);
            *count += 1;
            *count
        };
        let context = mix(mix(mix(self.context, LEADERS), key), count) & !1;
        let group = Group::from_world_ranks(if is_first { vec![this, that] } else { vec![that, this] });
        let rank = u32::from(!is_first);
        Ok(registry::enrol(Comm::bare(self.world.clone(), context, group, rank, self.errhandler(), None)))
    }

    /// Makes an intercommunicator of two groups of a session (`MPI_Intercomm_create_from_groups`); `None` if one of
    /// them is empty. At the local leader, `remote` gives the remote group and the rank of its leader.
    pub fn intercomm_from_groups(
        world: &Arc<World>,
        local: &Arc<Group>,
        local_leader: i32,
        remote: impl FnOnce() -> Result<(Arc<Group>, i32)>,
        tag: &[u8],
        info: Option<&Info>,
        errhandler: &Arc<Errhandler>,
    ) -> Result<Option<Arc<Comm>>> {
        let own = Comm::numbered_from_group(INTER_FROM_GROUPS, world, local, tag, None, errhandler)?;
        let Some(own) = own else { return Ok(None) };
        let leader = own.partner(local_leader, "local leader")?;
        let proposal = mix(own.context, LEADERS);
        let leaders = (leader == world.rank()).then(|| {
            let (remote, remote_leader) = remote()?;
            if remote.is_empty() {
                return Ok(None);
            }
            let Some(that) = usize::try_from(remote_leader).ok().and_then(|rank| remote.world_rank(rank)) else {
                let ranks = ranks_of(remote.size());
                fail!(MPI_ERR_RANK, "the remote leader is {remote_leader}, but the remote group has {ranks}")
            };
            if let Some(common) = remote.iter().find(|peer| local.rank_of(*peer).is_some()) {
                let [here, there] = [local, &remote].map(|group| group.rank_of(common).unwrap_or(0));
                fail!(
                    MPI_ERR_GROUP,
                    "the process at rank {here} of the local group is also the one at rank {there} of the remote group: \
                     the two groups must have no member in common"
                );
            }
            let pair = Group::from_world_ranks(vec![leader.min(that), leader.max(that)]);
            Comm::numbered_from_group(LEADERS_OF_GROUPS, world, &pair, tag, None, errhandler)
        });
        let made = own.meet(local_leader as usize, proposal, leaders, errhandler)?;
        if let (Some(made), Some(info)) = (&made, info) {
            made.hints.update(info);
        }
        Ok(made)
    }

    /// Makes the communicator of this process and `that`, of this context.
    pub(crate) fn of_two(world: &Arc<World>, that: u32, is_first: bool, context: u64) -> Arc<Comm> {
        let this = world.rank();
        let group = Group::from_world_ranks(if is_first { vec![this, that] } else { vec![that, this] });
        let comm = Comm::bare(world.clone(), context & !1, group, u32::from(!is_first), Errhandler::fatal(), None);
        registry::enrol(comm)
    }

    /// Waits until all members have called.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        allgather_bytes(self, &[0]).map(drop)
    }

    /// Runs `work` at the leader, rank `leader`; returns its bytes, or its error, at all members.
    pub(crate) fn led(&self, leader: usize, work: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        const FINE: u8 = 0;
        const FAILED: u8 = 1;
        let mut parts = vec![Vec::new(); self.size()];
        let mut own = None;
        if self.rank as usize == leader {
            let word = match work() {
                Ok(mut bytes) => {
                    bytes.insert(0, FINE);
                    bytes
                }
                Err(error) => {
                    let word = [&[FAILED][..], &error.class.to_ne_bytes(), error.detail.as_bytes()].concat();
                    own = Some(error);
                    word
                }
            };
            parts.fill(word);
        }
        let word = alltoall_bytes(self, &parts)?.swap_remove(leader);
        if let Some(error) = own {
            return Err(error);
        }
        match word.split_first() {
            Some((&FINE, bytes)) => Ok(bytes.to_vec()),
            Some((_, rest)) if let Some((class, text)) = rest.split_first_chunk() => {
                Err(Error::new(i32::from_ne_bytes(*class), String::from_utf8_lossy(text).into_owned()))
            }
            _ => fail!(MPI_ERR_INTERN, "the root has said nothing of what it has done"),
        }
    }

    /// Makes the intercommunicator of this communicator's members and those of the remote leader's. `leaders` is the
    /// communicator of both leaders at the local one, `Some(Ok(None))` if there is no remote group.
    pub(crate) fn meet(
        &self,
        leader: usize,
        proposal: u64,
        leaders: Option<Result<Option<Arc<Comm>>>>,
        errhandler: &Arc<Errhandler>,
    ) -> Result<Option<Arc<Comm>>> {
        let mut parts = vec![Vec::new(); self.size()];
        let mut outcome = Ok(());
        let mut both = None;
        if let Some(leaders) = leaders {
            let answer = leaders.and_then(|leaders| match leaders {
                Some(leaders) => both.insert(leaders).exchange(self.introduction(proposal)),
                None => Ok((Word::NoGroup as u64).to_ne_bytes().to_vec()),
            });
            match answer {
                Ok(answer) => parts.fill(answer),
                Err(error) => {
                    let words = [Word::Failed as u64, error.class as u64].map(u64::to_ne_bytes).concat();
                    parts.fill([&words[..], error.detail.as_bytes()].concat());
                    outcome = Err(error);
                }
            }
        }
        let answer = alltoall_bytes(self, &parts)?.swap_remove(leader);
        outcome?;
        if let Some(error) = failure_of_leader(leader, &answer) {
            return Err(error);
        }
        let Some((theirs, remote)) = self.introduced(&answer)? else { return Ok(None) };
        if let Some(common) = remote.iter().find(|peer| self.group.rank_of(*peer).is_some()) {
            let rank = self.group.rank_of(common).unwrap_or(0);
            fail!(
                MPI_ERR_COMM,
                "the process at rank {rank} of the local group is in the remote group too: the two groups must have no \
                 member in common"
            );
        }
        let _hold = Hold::new(self.world(), &remote);
        let context = mix(proposal.min(theirs), proposal.max(theirs)) & !1;
        if self.world().has_spawned(&self.group) || self.world().has_spawned(&remote) {
            self.acquaint(&remote, leader, both.as_ref(), context)?;
        }
        let local = self.group.clone();
        Ok(Comm::intercommunicator(self.world(), context, local, remote.clone(), proposal < theirs, errhandler.clone()))
    }

    /// Exchanges the identities of all members of this group and the remote group, and connects them if they belong to
    /// different jobs. No member sends anything to the remote group before all are connected.
    fn acquaint(&self, remote: &Group, leader: usize, leaders: Option<&Arc<Comm>>, meeting: u64) -> Result<()> {
        let world = self.world();
        let known = world.acquaint(remote);
        let links = world.open_links(remote);
        let mine = links.as_ref().map_or_else(|_| vec![0; remote.size()], Vec::clone);
        // Of each member, whether it is connected with each of the remote group, and where it is; and the other way
        // round.
        let all = allgather_bytes(self, &[&mine[..], &machine().to_ne_bytes()].concat())?;
        let told = leaders.map_or(Ok(Vec::new()), |leaders| leaders.exchange(all.clone()));
        let word = told.as_ref().map_or_else(|_| Vec::new(), Vec::clone);
        let theirs = alltoall_bytes(self, &vec![word; self.size()])?.swap_remove(leader);
        known?;
        links?;
        told?;
        let here = Said { bytes: &all, others: remote.size() };
        let there = Said { bytes: &theirs, others: self.size() };
        if there.members() != remote.size() {
            fail!(MPI_ERR_OTHER, "the leader of this group, rank {leader}, has lost the other group");
        }
        let is_linked = |rank: usize, other: usize| here.is_linked(rank, other) && there.is_linked(other, rank);
        // All members of both groups find the same.
        for (rank, other) in (0..self.size()).flat_map(|rank| (0..remote.size()).map(move |other| (rank, other))) {
            if !is_linked(rank, other) && here.machine(rank) != there.machine(other) {
                fail!(
                    MPI_ERR_OTHER,
                    "these jobs have no device in common: rank {rank} of this group and rank {other} of the other one \
                     are on different hosts, and processes of jobs that were started separately reach each other \
                     inside a host only"
                );
            }
        }
        let me = self.rank as usize;
        let others = remote.iter().enumerate().filter(|(other, _)| !is_linked(me, *other)).map(|(_, peer)| peer);
        world.link(meeting, &others.collect::<Vec<u32>>())
    }

    /// Gives the other one of two members these bytes, and gets its own.
    fn exchange(&self, mine: Vec<u8>) -> Result<Vec<u8>> {
        let other = 1 - self.rank as usize;
        let mut parts = vec![Vec::new(); 2];
        parts[other] = mine;
        Ok(alltoall_bytes(self, &parts)?.swap_remove(other))
    }

    /// What the other group is to know of this one: a number for the context, and each member.
    fn introduction(&self, proposal: u64) -> Vec<u8> {
        let members = self.group.iter().flat_map(|peer| self.world().introduction(peer));
        [Word::Group as u64, proposal].into_iter().chain(members).flat_map(u64::to_ne_bytes).collect()
    }

    /// Reads what the other leader said of its group; `None` if there is no such group.
    fn introduced(&self, bytes: &[u8]) -> Result<Option<(u64, Arc<Group>)>> {
        let words: Vec<u64> =
            bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect();
        if words.first() == Some(&(Word::NoGroup as u64)) {
            return Ok(None);
        }
        let members = words.get(2..).unwrap_or_default().chunks_exact(WORDS);
        let is_sound = bytes.len().is_multiple_of(8)
            && words.len() > 2
            && members.remainder().is_empty()
            && words[0] == Word::Group as u64;
        let members = members.map(|member| self.world().introduced(member.try_into().expect("as many words")));
        let ranks: Option<Vec<u32>> = members.collect::<Result<_>>()?;
        let Some(ranks) = ranks.filter(|_| is_sound) else {
            fail!(MPI_ERR_COMM, "the other group has processes that this one does not know");
        };
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != ranks.len() {
            fail!(MPI_ERR_COMM, "the other group has a process twice");
        }
        let group = Group::from_world_ranks(ranks).of_session(self.group.session());
        Ok(Some((words[1], group)))
    }
}

/// Connections of the members of a group with another group: for each member a byte per member of the other group, not
/// 0 if there is a connection or none is needed, and the number of its machine.
struct Said<'a> {
    bytes: &'a [u8],
    others: usize,
}

impl Said<'_> {
    /// Returns the number of members that have reported; 0 if the report is invalid.
    fn members(&self) -> usize {
        let each = self.others + size_of::<u64>();
        if self.bytes.len().is_multiple_of(each) { self.bytes.len() / each } else { 0 }
    }

    fn of_member(&self, rank: usize) -> (&[u8], &[u8]) {
        let each = self.others + size_of::<u64>();
        self.bytes[rank * each..(rank + 1) * each].split_at(self.others)
    }

    fn is_linked(&self, rank: usize, other: usize) -> bool {
        self.of_member(rank).0[other] != 0
    }

    fn machine(&self, rank: usize) -> &[u8] {
        self.of_member(rank).1
    }
}
