//! The placement of a communicator's members on hosts.

use std::collections::BTreeMap;

use limosa_mpi::comm::Comm;

/// The members of a communicator by host. Equal on all members, but for `rank`.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// This rank.
    rank: u32,
    /// The ranks on each host, in ascending order; hosts in the order of their lowest ranks.
    groups: Vec<Box<[u32]>>,
    /// Whether there are several hosts, and several members on one of them.
    mixed: bool,
    /// Whether the ranks of each host are consecutive.
    consecutive: bool,
}

impl Hosts {
    /// Returns the placement of a communicator's members.
    pub(crate) fn of(comm: &Comm) -> Hosts {
        Hosts::new(comm.rank(), comm.world().hosts_of(comm.group()).into_iter())
    }

    /// Makes the placement from the host of each rank, as seen by rank `rank`.
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

    /// Returns this rank.
    pub(crate) fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Whether `root` is this rank.
    pub(crate) fn is_at(&self, root: usize) -> bool {
        root == self.rank as usize
    }

    /// Returns all ranks.
    pub(crate) fn all(&self) -> Vec<u32> {
        (0..self.groups.iter().map(|group| group.len() as u32).sum()).collect()
    }

    /// Returns the largest number of members on a host.
    pub(crate) fn most(&self) -> usize {
        self.groups.iter().map(|group| group.len()).max().unwrap_or(0)
    }

    /// Whether there are several hosts, and several members on one of them.
    pub(crate) fn are_mixed(&self) -> bool {
        self.mixed
    }

    /// Whether the ranks of each host are consecutive.
    pub(crate) fn are_consecutive(&self) -> bool {
        self.consecutive
    }

    /// Whether the ranks of this host are consecutive.
    pub(crate) fn is_consecutive_here(&self) -> bool {
        follow_each_other(self.here())
    }

    /// Returns the number of members on each host, if it is the same for all and their ranks are consecutive.
    pub(crate) fn each(&self) -> Option<usize> {
        let each = self.groups[0].len();
        (self.are_consecutive() && self.groups.iter().all(|group| group.len() == each)).then_some(each)
    }

    /// Returns the ranks on each host.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.groups.iter().map(|group| &**group)
    }

    /// Returns the ranks on this host.
    pub(crate) fn here(&self) -> &[u32] {
        &self.groups[self.place_of(self.rank).0]
    }

    /// Returns the host of a rank, and its place among the ranks there.
    fn place_of(&self, rank: u32) -> (usize, usize) {
        let found =
            self.groups.iter().enumerate().find_map(|(host, group)| Some((host, group.binary_search(&rank).ok()?)));
        found.expect("every rank is on a host")
    }

    /// Returns the leader of each host: its lowest rank, but the root on the root's host.
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

/// The leaders of hosts in one operation.
pub(crate) struct Leaders<'a> {
    /// Ranks of the leaders, in the order of hosts.
    pub(crate) ranks: Box<[u32]>,
    /// Index of the root in `ranks`.
    pub(crate) root: usize,
    /// Ranks on this host.
    pub(crate) here: &'a [u32],
    /// Index of this host's leader in `here`.
    pub(crate) leader: usize,
    /// Whether this rank is a leader.
    pub(crate) leads: bool,
}

impl Leaders<'_> {
    /// Whether this rank is alone on its host.
    pub(crate) fn is_alone(&self) -> bool {
        self.here.len() == 1
    }
}
