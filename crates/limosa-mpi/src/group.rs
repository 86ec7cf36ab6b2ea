//! Groups: ordered sets of processes (MPI-5 section 7.3).
//!
//! Contract
//! - A [`Group`] is immutable and shared as `Arc<Group>`. Its members are *world ranks*: positions in the job, the same
//!   number in every process. A rank inside a group is a position in its list of members.
//! - Every operation that takes ranks from the user checks them: a rank outside the group is `MPI_ERR_RANK`, and no
//!   rank may appear twice where the result would then contain a process twice or the standard asks for distinct ranks.
//! - Finding a process's rank takes constant time: by arithmetic where the members are evenly spaced (the world, its
//!   halves, rows and columns of a grid), by a table made on first use otherwise.
//! - [`Group::content_hash`] depends on the members and their order only, so all processes compute the same value.

use std::sync::{Arc, LazyLock, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{MPI_PROC_NULL, MPI_UNDEFINED};
use crate::error::Result;
use crate::fail;

/// How two groups (or communicators) compare. Only communicators can be congruent; equal groups are identical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same object, or groups with the same members in the same order (`MPI_IDENT`).
    Ident,
    /// Communicators with different contexts over identical groups (`MPI_CONGRUENT`).
    Congruent,
    /// The same members in a different order (`MPI_SIMILAR`).
    Similar,
    /// Anything else (`MPI_UNEQUAL`).
    Unequal,
}

/// A triplet `(first, last, stride)` of `MPI_Group_range_incl` and `MPI_Group_range_excl`.
pub type RankRange = [i32; 3];

/// Members of a group, in order.
enum Members {
    /// `len` members: `first`, `first + stride`, ... The stride is not zero, and one when there are fewer than two
    /// members.
    Even { first: u32, stride: i64, len: u32 },
    /// Any other order. The table from world rank to rank is made when it is first asked for.
    List { ranks: Box<[u32]>, index: OnceLock<FxHashMap<u32, u32>> },
}

/// Lists up to this length are searched without a table.
const SHORT_LIST: usize = 16;

/// An ordered set of processes.
pub struct Group {
    members: Members,
    /// The session that it comes from; 0 for the world model's.
    session: u64,
}

impl Group {
    /// Makes the group of the given world ranks, in this order, which must be distinct.
    pub fn from_world_ranks(ranks: Vec<u32>) -> Arc<Group> {
        let members = match evenly_spaced(&ranks) {
            Some((first, stride)) => Members::Even { first, stride, len: ranks.len() as u32 },
            None => Members::List { ranks: ranks.into_boxed_slice(), index: OnceLock::new() },
        };
        Arc::new(Group { members, session: 0 })
    }

    /// The same members, as a group that comes from this session.
    pub(crate) fn of_session(self: &Arc<Group>, session: u64) -> Arc<Group> {
        if session == self.session {
            return self.clone();
        }
        let members = match &self.members {
            Members::Even { first, stride, len } => Members::Even { first: *first, stride: *stride, len: *len },
            Members::List { ranks, .. } => Members::List { ranks: ranks.clone(), index: OnceLock::new() },
        };
        Arc::new(Group { members, session })
    }

    /// Returns the number of the session that it comes from; 0 for groups of the world model.
    #[inline]
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// Makes the group of the world ranks `first .. first + len`.
    pub fn contiguous(first: u32, len: u32) -> Arc<Group> {
        Arc::new(Group { members: Members::Even { first, stride: 1, len }, session: 0 })
    }

    /// Returns the group without members, `MPI_GROUP_EMPTY`: one object, so that it can be recognised.
    pub fn empty() -> Arc<Group> {
        static EMPTY: LazyLock<Arc<Group>> = LazyLock::new(|| Group::contiguous(0, 0));
        EMPTY.clone()
    }

    /// Returns the number of members.
    #[inline]
    pub fn size(&self) -> usize {
        match &self.members {
            Members::Even { len, .. } => *len as usize,
            Members::List { ranks, .. } => ranks.len(),
        }
    }

    /// Whether the group has no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Returns the world rank of the member at `rank`, if there is one.
    #[inline]
    pub fn world_rank(&self, rank: usize) -> Option<u32> {
        match &self.members {
            Members::Even { first, stride, len } => {
                (rank < *len as usize).then(|| (i64::from(*first) + rank as i64 * stride) as u32)
            }
            Members::List { ranks, .. } => ranks.get(rank).copied(),
        }
    }

    /// Rank in this group of the process with this world rank, if it is a member.
    #[inline]
    pub fn rank_of(&self, world_rank: u32) -> Option<u32> {
        match &self.members {
            Members::Even { first, stride, len } => {
                let distance = i64::from(world_rank) - i64::from(*first);
                let rank = distance / stride;
                (distance % stride == 0 && rank >= 0 && rank < i64::from(*len)).then_some(rank as u32)
            }
            Members::List { ranks, .. } if ranks.len() <= SHORT_LIST => {
                ranks.iter().position(|&r| r == world_rank).map(|at| at as u32)
            }
            Members::List { ranks, index } => {
                let index =
                    index.get_or_init(|| ranks.iter().enumerate().map(|(at, &world)| (world, at as u32)).collect());
                index.get(&world_rank).copied()
            }
        }
    }

    /// World ranks of all members, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        (0..self.size()).map(|rank| self.world_rank(rank).expect("rank below the size"))
    }

    /// Returns a hash of the members and their order: equal on all processes for equal groups.
    pub fn content_hash(&self) -> u64 {
        self.iter().fold(self.size() as u64, |hash, world_rank| crate::mix::mix(hash, u64::from(world_rank)))
    }

    /// Compares members and order (`MPI_Group_compare`).
    pub fn compare(&self, other: &Group) -> Comparison {
        if self.size() != other.size() {
            Comparison::Unequal
        } else if self.iter().eq(other.iter()) {
            Comparison::Ident
        } else if self.iter().all(|world_rank| other.rank_of(world_rank).is_some()) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// Whether every member of this group is a member of `other`.
    pub fn is_subset_of(&self, other: &Group) -> bool {
        self.iter().all(|world_rank| other.rank_of(world_rank).is_some())
    }

    /// Returns the rank in `other` of the process with rank `rank` here; `MPI_UNDEFINED` if it is not a member there.
    /// `MPI_PROC_NULL` stays itself.
    pub fn translate(&self, rank: i32, other: &Group) -> Result<i32> {
        if rank == MPI_PROC_NULL {
            return Ok(MPI_PROC_NULL);
        }
        let world_rank = self.checked(rank, "rank")?;
        Ok(other.rank_of(world_rank).map_or(MPI_UNDEFINED, |rank| rank as i32))
    }

    /// Members of this group, then those of `other` that are not in this one (`MPI_Group_union`).
    pub fn union(&self, other: &Group) -> Arc<Group> {
        self.derived(self.iter().chain(other.iter().filter(|&w| self.rank_of(w).is_none())).collect())
    }

    /// Members of this group that are also in `other`, in this group's order (`MPI_Group_intersection`).
    pub fn intersection(&self, other: &Group) -> Arc<Group> {
        self.derived(self.iter().filter(|&w| other.rank_of(w).is_some()).collect())
    }

    /// Members of this group that are not in `other` (`MPI_Group_difference`).
    pub fn difference(&self, other: &Group) -> Arc<Group> {
        self.derived(self.iter().filter(|&w| other.rank_of(w).is_none()).collect())
    }

    /// Returns the first `count` members, or all if there are fewer.
    pub fn first(&self, count: usize) -> Arc<Group> {
        self.derived(self.iter().take(count).collect())
    }

    /// Returns the members with the given ranks, in the order given (`MPI_Group_incl`).
    pub fn incl(&self, ranks: &[i32]) -> Result<Arc<Group>> {
        self.check_distinct(ranks.iter().copied())?;
        Ok(self.derived(ranks.iter().map(|&rank| self.world_rank(rank as usize).expect("checked")).collect()))
    }

    /// Returns the members without those of the given ranks, in this group's order (`MPI_Group_excl`).
    pub fn excl(&self, ranks: &[i32]) -> Result<Arc<Group>> {
        let excluded = self.check_distinct(ranks.iter().copied())?;
        let kept = self.iter().enumerate().filter(|(rank, _)| !excluded.contains(&(*rank as i32)));
        Ok(self.derived(kept.map(|(_, world_rank)| world_rank).collect()))
    }

    /// Returns the members whose ranks the triplets list (`MPI_Group_range_incl`).
    pub fn range_incl(&self, ranges: &[RankRange]) -> Result<Arc<Group>> {
        self.incl(&self.expand(ranges)?)
    }

    /// Returns the members whose ranks the triplets do not list (`MPI_Group_range_excl`).
    pub fn range_excl(&self, ranges: &[RankRange]) -> Result<Arc<Group>> {
        self.excl(&self.expand(ranges)?)
    }

    fn derived(&self, ranks: Vec<u32>) -> Arc<Group> {
        if ranks.is_empty() { Group::empty() } else { Group::from_world_ranks(ranks).of_session(self.session) }
    }

    /// Returns the world rank of a rank that comes from the user.
    fn checked(&self, rank: i32, what: &str) -> Result<u32> {
        match usize::try_from(rank).ok().and_then(|rank| self.world_rank(rank)) {
            Some(world_rank) => Ok(world_rank),
            None => fail!(MPI_ERR_RANK, "{what} is {rank}, but the group has {}", ranks_of(self.size())),
        }
    }

    fn check_distinct(&self, ranks: impl Iterator<Item = i32>) -> Result<FxHashSet<i32>> {
        let mut seen = FxHashSet::default();
        for (at, rank) in ranks.enumerate() {
            if usize::try_from(rank).map_or(true, |rank| rank >= self.size()) {
                fail!(
                    MPI_ERR_RANK,
                    "entry {at} of the list of ranks is {rank}, but the group has {}",
                    ranks_of(self.size())
                );
            }
            if !seen.insert(rank) {
                fail!(MPI_ERR_RANK, "entry {at} repeats rank {rank}; every rank may be listed once only");
            }
        }
        Ok(seen)
    }

    /// Returns the ranks that the triplets stand for. Range ends are checked before anything is expanded, so that a
    /// wild triplet costs nothing.
    fn expand(&self, ranges: &[RankRange]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for (at, &[first, last, stride]) in ranges.iter().enumerate() {
            if stride == 0 {
                fail!(MPI_ERR_ARG, "range {at} is ({first}, {last}, 0), but the stride must not be zero");
            }
            if (stride > 0 && first > last) || (stride < 0 && first < last) {
                fail!(
                    MPI_ERR_ARG,
                    "range {at} is ({first}, {last}, {stride}), but its stride leads away from its last rank"
                );
            }
            let (first, last, stride) = (i64::from(first), i64::from(last), i64::from(stride));
            let end = first + (last - first) / stride * stride;
            for rank in [first, end] {
                if rank < 0 || rank >= self.size() as i64 {
                    fail!(
                        MPI_ERR_RANK,
                        "range {at} is ({first}, {last}, {stride}) and reaches rank {rank}, but the group has {}",
                        ranks_of(self.size())
                    );
                }
            }
            if ranks.len() as i64 + (end - first) / stride + 1 > self.size() as i64 {
                fail!(MPI_ERR_RANK, "range {at} lists some rank twice; every rank may be listed once only");
            }
            ranks.extend((0..=(end - first) / stride).map(|step| (first + step * stride) as i32));
        }
        Ok(ranks)
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// First member and stride of a list that is evenly spaced.
fn evenly_spaced(ranks: &[u32]) -> Option<(u32, i64)> {
    match ranks {
        [] => Some((0, 1)),
        [only] => Some((*only, 1)),
        [first, second, ..] => {
            let stride = i64::from(*second) - i64::from(*first);
            let even = ranks.windows(2).all(|pair| i64::from(pair[1]) - i64::from(pair[0]) == stride);
            (even && stride != 0).then_some((*first, stride))
        }
    }
}

/// "ranks 0 to 3" or "no ranks", for messages.
pub(crate) fn ranks_of(size: usize) -> String {
    match size {
        0 => "no ranks".to_string(),
        1 => "rank 0 only".to_string(),
        n => format!("ranks 0 to {}", n - 1),
    }
}

#[cfg(test)]
mod tests;
