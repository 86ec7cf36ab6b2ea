//! Multicast of a message from one rank to a list of ranks, like MatlabMPI's `MPI_Mcast`.
//!
//! Only the source and the destinations take part. The source leads its host; on every other host, the first
//! destination in the list leads. Among the leaders, and then on each host, the message travels along a binomial tree.
//!
//! Cost for n bytes to d ranks on h hosts, up to m of them on one: (log2 h)(a + n b) between hosts, and
//! (log2 m)(a + n b) inside one, where `a` is the latency of a message and `b` the time of a byte there.

use std::sync::Arc;

use limosa_p2p::memory::Region;

use super::schedule::mismatch;
use limosa_mpi::comm::{Comm, Purpose};
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::p2p::{self, SendMode};

/// Sends the region of rank `source` to the regions of all ranks in `dests`, which have the same length. The source may
/// be in the list, and a rank may be listed twice. All participants pass the same arguments; other ranks do nothing.
/// The call returns when this rank's region may be used again.
///
/// # Errors
/// `MPI_ERR_COMM` (an intercommunicator), `MPI_ERR_RANK`, `MPI_ERR_TAG`; `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` when
/// ranks disagree about the length; errors of the machine.
pub fn multicast(comm: &Arc<Comm>, region: Region, source: i32, dests: &[i32], tag: i32) -> Result<()> {
    if comm.is_inter() {
        fail!(MPI_ERR_COMM, "limosa_mcast needs an intracommunicator");
    }
    for &rank in dests.iter().chain([&source]) {
        p2p::check_dest(comm, rank, tag)?;
        if rank < 0 {
            fail!(MPI_ERR_RANK, "MPI_PROC_NULL cannot take part in limosa_mcast");
        }
    }
    let hosts = comm.world().hosts_of(comm.group());
    let Some(place) = TreePartners::find(&hosts, source as u32, dests, comm.rank()) else { return Ok(()) };
    let twin = comm.twin(Purpose::Multicast);
    let (mut arrived, mut outcome) = (region.len(), Ok(()));
    if let Some(from) = place.from {
        let end = p2p::receive(twin, region.clone(), from as i32, tag)?;
        arrived = arrived.min(end.bytes as usize);
        outcome = match end.error {
            Some(error) => Err(error),
            None if arrived < region.len() => Err(mismatch(from as usize, arrived, region.len())),
            None => Ok(()),
        };
    }
    // A message that is too short is forwarded too: the other ranks then see the error, and none is left waiting.
    for to in place.to {
        outcome = outcome.and(p2p::send(twin, region.part(0, arrived), to as i32, tag, SendMode::Standard));
    }
    outcome
}

/// Partners of a rank in the tree.
#[derive(Debug, PartialEq, Eq)]
struct TreePartners {
    /// The sender to this rank; `None` at the source.
    from: Option<u32>,
    /// The receivers from this rank, in this order.
    to: Vec<u32>,
}

impl TreePartners {
    /// Finds the partners of `rank`, if it takes part. `hosts`: the host of each rank.
    fn find(hosts: &[u32], source: u32, dests: &[i32], rank: u32) -> Option<TreePartners> {
        // The participating ranks by host, the leader of each host first, and the source's host first.
        let mut groups: Vec<Vec<u32>> = Vec::new();
        for member in [source].into_iter().chain(dests.iter().map(|dest| *dest as u32)) {
            let host = hosts[member as usize];
            match groups.iter_mut().find(|group| hosts[group[0] as usize] == host) {
                Some(group) if group.contains(&member) => {}
                Some(group) => group.push(member),
                None => groups.push(vec![member]),
            }
        }
        let group = groups.iter().find(|group| group.contains(&rank))?;
        let leaders: Vec<u32> = groups.iter().map(|group| group[0]).collect();
        let (mut from, mut to) = (None, Vec::new());
        for tree in [&leaders, group] {
            let Some(index) = tree.iter().position(|member| *member == rank) else { continue };
            from = from.or(parent(index).map(|parent| tree[parent]));
            to.extend(children(index, tree.len()).map(|child| tree[child]));
        }
        Some(TreePartners { from, to })
    }
}

/// Returns the parent of place `index` in a binomial tree: the place without its highest bit. Place 0 is the root.
fn parent(index: usize) -> Option<usize> {
    index.checked_ilog2().map(|bit| index - (1 << bit))
}

/// Returns the children of place `index` in a binomial tree of `size` places, largest subtree first.
fn children(index: usize, size: usize) -> impl Iterator<Item = usize> {
    let lowest = index.checked_ilog2().map_or(0, |bit| bit + 1);
    (lowest..usize::BITS).map(move |bit| index + (1 << bit)).take_while(move |child| *child < size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    proptest! {
        #[test]
        fn each_rank_in_the_list_is_reached_once_and_each_host_by_one_message(
            hosts in prop::collection::vec(0u32..4, 1..40),
            source in 0usize..40,
            dests in prop::collection::vec(0usize..40, 0..60),
        ) {
            let size = hosts.len();
            let source = (source % size) as u32;
            let dests: Vec<i32> = dests.iter().map(|dest| (dest % size) as i32).collect();
            let places: BTreeMap<u32, TreePartners> = (0..size as u32)
                .filter_map(|rank| Some((rank, TreePartners::find(&hosts, source, &dests, rank)?)))
                .collect();
            let wanted: BTreeSet<u32> = dests.iter().map(|dest| *dest as u32).chain([source]).collect();
            prop_assert_eq!(places.keys().copied().collect::<BTreeSet<_>>(), wanted.clone());
            let messages: Vec<(u32, u32)> =
                places.iter().flat_map(|(rank, place)| place.to.iter().map(move |to| (*rank, *to))).collect();
            prop_assert_eq!(messages.len(), wanted.len() - 1);
            for (from, to) in &messages {
                prop_assert_eq!(places[to].from, Some(*from));
            }
            prop_assert_eq!(places[&source].from, None);
            let mut reached = BTreeSet::from([source]);
            while let Some((_, to)) = messages.iter().find(|(from, to)| reached.contains(from) && !reached.contains(to)) {
                reached.insert(*to);
            }
            prop_assert_eq!(&reached, &wanted);
            let between = messages.iter().filter(|(from, to)| hosts[*from as usize] != hosts[*to as usize]).count();
            let on: BTreeSet<u32> = wanted.iter().map(|rank| hosts[*rank as usize]).collect();
            prop_assert_eq!(between, on.len() - 1);
        }
    }

    #[test]
    fn a_tree_is_as_deep_as_its_size_has_bits() {
        let mut depth = vec![0];
        for index in 1..200 {
            depth.push(depth[parent(index).unwrap()] + 1);
            assert!(children(parent(index).unwrap(), 200).any(|child| child == index));
            assert!(depth[index] <= (index + 1).next_power_of_two().ilog2(), "{index}");
        }
    }
}
