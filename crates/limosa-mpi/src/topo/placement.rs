//! Which process becomes which node of a topology, if ranks may be reordered (MPI-5 section 8.4): such that few edges
//! lead from host to host.
//!
//! Each host takes nodes one by one: the one that has most edges to nodes which the host has already, and among those
//! the one next to the node that it took first. So it gets compact parts of a grid. Where that is no better than the
//! order that there is, nothing is reordered. A process computes this alone; all get the same.

/// The edges of each node: the node at the other end, and the weight. One entry at either end will do.
pub(crate) type Links = [Vec<(usize, i64)>];

/// For each node the process that becomes it. `hosts[i]` is the host of process `i`; there are as many processes as
/// nodes.
pub(crate) fn place(hosts: &[u32], links: &Links) -> Vec<usize> {
    debug_assert_eq!(hosts.len(), links.len());
    let in_order: Vec<usize> = (0..hosts.len()).collect();
    if !is_mixed(hosts) {
        return in_order;
    }
    let grown = grow(hosts, &both_ways(links));
    if cut(hosts, links, &grown) < cut(hosts, links, &in_order) { grown } else { in_order }
}

/// Whether there are several hosts, and several processes on one: otherwise no order is better than another.
pub(crate) fn is_mixed(hosts: &[u32]) -> bool {
    let (mut sorted, count) = (hosts.to_vec(), hosts.len());
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() > 1 && sorted.len() < count
}

/// Returns the weight of the edges between hosts.
fn cut(hosts: &[u32], links: &Links, process: &[usize]) -> i64 {
    let edges = links.iter().enumerate().flat_map(|(from, ends)| ends.iter().map(move |end| (from, *end)));
    let between = edges.filter(|(from, (to, _))| hosts[process[*from]] != hosts[process[*to]]);
    between.map(|(_, (_, weight))| weight).fold(0, i64::saturating_add)
}

/// Returns the links with each edge at both of its ends.
fn both_ways(links: &Links) -> Vec<Vec<(usize, i64)>> {
    let mut all = links.to_vec();
    for (from, ends) in links.iter().enumerate() {
        for &(to, weight) in ends {
            all[to].push((from, weight));
        }
    }
    all
}

fn grow(hosts: &[u32], links: &Links) -> Vec<usize> {
    let mut order: Vec<u32> = Vec::new();
    hosts.iter().for_each(|host| {
        if !order.contains(host) {
            order.push(*host)
        }
    });
    let mut process = vec![usize::MAX; hosts.len()];
    for host in order {
        // For nodes next to those of this host: the weight of the edges to these, and which of them came first.
        let mut near: Vec<(i64, usize)> = vec![(0, usize::MAX); hosts.len()];
        for (taken, own) in (0..hosts.len()).filter(|i| hosts[*i] == host).enumerate() {
            let free = (0..process.len()).filter(|node| process[*node] == usize::MAX);
            let node = free
                .min_by_key(|node| (-near[*node].0, near[*node].1, *node))
                .expect("there are as many nodes as processes");
            process[node] = own;
            for &(next, weight) in &links[node] {
                near[next].0 = near[next].0.saturating_add(weight);
                near[next].1 = near[next].1.min(taken);
            }
        }
    }
    process
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::Cart;
    use proptest::prelude::*;

    fn blocks(processes: usize, per_host: usize) -> Vec<u32> {
        (0..processes).map(|process| (process / per_host) as u32).collect()
    }

    #[test]
    fn hosts_get_squares_of_a_grid() {
        let links = Cart::new(&[4, 4], &[false; 2]).unwrap().links();
        let hosts = blocks(16, 4);
        let process = place(&hosts, &links);
        let host_of = |node: usize| hosts[process[node]];
        assert_eq!((host_of(0), host_of(1), host_of(4), host_of(5)), (0, 0, 0, 0));
        let in_order: Vec<usize> = (0..16).collect();
        assert_eq!((cut(&hosts, &links, &in_order), cut(&hosts, &links, &process)), (12, 8));
    }

    #[test]
    fn ranks_dealt_round_robin_are_brought_together() {
        let links = Cart::new(&[8], &[true]).unwrap().links();
        let hosts = [0, 1, 0, 1, 0, 1, 0, 1];
        let process = place(&hosts, &links);
        assert_eq!(cut(&hosts, &links, &process), 2);
    }

    #[test]
    fn a_good_order_stays() {
        let ring = Cart::new(&[8], &[true]).unwrap().links();
        for hosts in [blocks(8, 4), blocks(8, 8), blocks(8, 1)] {
            assert_eq!(place(&hosts, &ring), (0..8).collect::<Vec<_>>());
        }
        assert_eq!(place(&[], &[]), Vec::<usize>::new());
    }

    proptest! {
        #[test]
        fn every_process_becomes_one_node_and_no_order_gets_worse(
            hosts in proptest::collection::vec(0..4u32, 1..12),
            edges in proptest::collection::vec((0..12usize, 0..12usize, 0..5i64), 0..30),
        ) {
            let mut links = vec![Vec::new(); hosts.len()];
            for (from, to, weight) in edges {
                links[from % hosts.len()].push((to % hosts.len(), weight));
            }
            let process = place(&hosts, &links);
            let mut sorted = process.clone();
            sorted.sort_unstable();
            let in_order: Vec<usize> = (0..hosts.len()).collect();
            prop_assert_eq!(&sorted, &in_order);
            prop_assert!(cut(&hosts, &links, &process) <= cut(&hosts, &links, &in_order));
        }
    }
}
