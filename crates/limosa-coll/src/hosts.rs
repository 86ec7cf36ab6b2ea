//! Which members of a communicator are on which host.

use std::collections::BTreeMap;

use limosa_mpi::comm::Comm;

/// The members of a communicator by hosts. All members have the same of it, but for `rank`.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// This rank.
    rank: u32,
    /// The ranks on each host, in ascending order; hosts in the order of their lowest ranks.
    groups: Vec<Box<[u32]>>,
    /// There are several hosts, and several members on one.
    mixed: bool,
    /// The ranks of each host follow each other.
    consecutive: bool,
}

impl Hosts {
    /// Those of a communicator's members.
    pub(crate) fn of(comm: &Comm) -> Hosts {
        Hosts::new(comm.rank(), comm.world().hosts_of(comm.group()).into_iter())
    }

    /// For rank `rank` of ranks on these hosts.
    pub(crate) fn new(rank: u32, hosts: impl Iterator<Item = u32>) -> Hosts {
        let mut by_host: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (rank, host) in hosts.enumerate() {
            by_host.entry(host).or_default().push(rank as u32);
        }
        let mut groups: Vec<Box<[u32]>> = by_host.into_values().map(Vec::into).collect();
        groups.sort_by_key(|group| group[0]);
        let mixed = groups.len() > 1 && groups.iter().any(|group| group.len() > 1);
        let consecutive = groups.iter().all(|group| follow_each_other(group));
        Hosts { rank, groups, mixed, consecutive }
    }

    /// This rank.
    pub(crate) fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Whether `root` is this rank.
    pub(crate) fn is_at(&self, root: usize) -> bool {
        root == self.rank as usize
    }

    /// All ranks.
    pub(crate) fn all(&self) -> Vec<u32> {
        (0..self.groups.iter().map(|group| group.len() as u32).sum()).collect()
    }

    /// Members on the host that has most.
    pub(crate) fn most(&self) -> usize {
        self.groups.iter().map(|group| group.len()).max().unwrap_or(0)
    }

    /// Whether there are several hosts, and several members on one.
    pub(crate) fn are_mixed(&self) -> bool {
        self.mixed
    }

    /// Whether the ranks of each host follow each other.
    pub(crate) fn are_consecutive(&self) -> bool {
        self.consecutive
    }

    /// The same of this host.
    pub(crate) fn is_consecutive_here(&self) -> bool {
        follow_each_other(self.here())
    }

    /// The number of members on each host, if it is the same for all and their ranks follow each other.
    pub(crate) fn each(&self) -> Option<usize> {
        let each = self.groups[0].len();
        (self.are_consecutive() && self.groups.iter().all(|group| group.len() == each)).then_some(each)
    }

    /// The ranks on each host.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.groups.iter().map(|group| &**group)
    }

    /// The ranks on this host.
    pub(crate) fn here(&self) -> &[u32] {
        &self.groups[self.place_of(self.rank).0]
    }

    /// The host of a rank, and its place among those there.
    fn place_of(&self, rank: u32) -> (usize, usize) {
        let found =
            self.groups.iter().enumerate().find_map(|(host, group)| Some((host, group.binary_search(&rank).ok()?)));
        found.expect("every rank is on a host")
    }

    /// One leader for each host: the lowest rank there, but on the root's host the root.
    pub(crate) fn leaders(&self, root: Option<usize>) -> Leaders<'_> {
        let mut ranks: Vec<u32> = self.groups.iter().map(|group| group[0]).collect();
        let root_host = root.map(|root| self.place_of(root as u32).0);
        if let (Some(host), Some(root)) = (root_host, root) {
            ranks[host] = root as u32;
        }
        let (host, place) = self.place_of(self.rank);
        let leader = self.groups[host].binary_search(&ranks[host]).expect("a leader is on its host");
        Leaders {
            here: &self.groups[host],
            leader,
            leads: leader == place,
            ranks: ranks.into(),
            root: root_host.unwrap_or(0),
        }
    }
}

fn follow_each_other(ranks: &[u32]) -> bool {
    ranks.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

/// Who speaks for each host in one operation.
pub(crate) struct Leaders<'a> {
    /// The leaders' ranks, in the order of hosts.
    pub(crate) ranks: Box<[u32]>,
    /// The root's place among them.
    pub(crate) root: usize,
    /// The ranks on this host.
    pub(crate) here: &'a [u32],
    /// The place of this host's leader among them.
    pub(crate) leader: usize,
    /// This rank is a leader.
    pub(crate) leads: bool,
}

impl Leaders<'_> {
    /// This rank is alone on its host.
    pub(crate) fn is_alone(&self) -> bool {
        self.here.len() == 1
    }
}
