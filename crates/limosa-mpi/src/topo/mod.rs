//! Virtual topologies (MPI-5 chapter 8): a shape laid over the members of a communicator.
//!
//! Contract
//! - A topology is fixed when its communicator is made and shared with duplicates. What it knows are ranks of that
//!   communicator.
//! - The shapes are pure data; communicators with them are made in `comm/topology.rs`.
//! - Where a program allows it, ranks are reordered if that leaves fewer edges between hosts ([`placement`]); inside a
//!   host no order is better than another.

mod cart;
mod dims;
pub mod dist_graph;
mod graph;
pub(crate) mod placement;

pub use cart::Cart;
pub(crate) use cart::SubGrid;
pub use dims::dims_create;
pub use dist_graph::Node;
pub use graph::Graph;

use crate::error::Result;
use crate::fail;

/// The shape that a communicator has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that all processes know.
    Graph(Graph),
    /// What this process knows of a distributed graph.
    DistGraph(Node),
}

/// The partners of a process in a neighbourhood collective (section 8.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Sender of each received block; `MPI_PROC_NULL` beyond an open end of a grid.
    pub sources: Vec<i32>,
    /// Receiver of each sent block.
    pub destinations: Vec<i32>,
    /// The blocks received, in the order in which those of one source were sent.
    pub order: Vec<usize>,
    /// By block received: how many others of its source come before it.
    pub before: Vec<usize>,
    /// By block received: which block of its source it is. Empty where a process does not know that: in a distributed
    /// graph.
    pub sent_as: Vec<SentBlock>,
}

/// A block among those that a process sends: its number, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBlock {
    /// From 0.
    pub block: usize,
    /// Of all its destinations.
    pub of: usize,
}

impl Neighbours {
    fn new(sources: Vec<i32>, destinations: Vec<i32>, order: Vec<usize>) -> Neighbours {
        let mut before = vec![0; sources.len()];
        for (at, &block) in order.iter().enumerate() {
            before[block] = order[..at].iter().filter(|earlier| sources[**earlier] == sources[block]).count();
        }
        Neighbours { sources, destinations, order, before, sent_as: Vec::new() }
    }
}

impl Topology {
    /// Returns the neighbours of the process at `rank`.
    ///
    /// In a grid the block sent in one direction arrives as the one that comes from the opposite direction, also where
    /// both neighbours in a dimension are the same process. In a graph the k-th block to a process is its k-th one from
    /// here.
    ///
    /// # Errors
    /// `MPI_ERR_TOPOLOGY` for a graph that is not symmetric; all processes find that alike.
    pub fn neighbours(&self, rank: i32) -> Result<Neighbours> {
        let listed = |sources: Vec<i32>, destinations: Vec<i32>| {
            let order = (0..sources.len()).collect();
            Neighbours::new(sources, destinations, order)
        };
        match self {
            Topology::Cart(cart) => {
                let mut peers = Vec::with_capacity(2 * cart.dims().len());
                for direction in 0..cart.dims().len() {
                    let (below, above) = cart.shift(rank, direction as i32, 1)?;
                    peers.extend([below, above]);
                }
                let of = peers.len();
                let sent_as = (0..of).map(|block| SentBlock { block: block ^ 1, of }).collect();
                let order = (0..of).map(|block| block ^ 1).collect();
                Ok(Neighbours { sent_as, ..Neighbours::new(peers.clone(), peers, order) })
            }
            Topology::Graph(graph) => {
                if !graph.is_symmetric() {
                    fail!(
                        MPI_ERR_TOPOLOGY,
                        "the graph is not symmetric: some process is a neighbour of one that is not its neighbour as \
                         often, so that messages to neighbours would not be received"
                    );
                }
                let peers = graph.neighbours(rank)?.to_vec();
                let neighbours = listed(peers.clone(), peers);
                let places = neighbours.sources.iter().zip(&neighbours.before).map(|(source, before)| {
                    let sent = graph.neighbours(*source)?;
                    let mut to_this = (0..sent.len()).filter(|block| sent[*block] == rank);
                    let block = to_this.nth(*before).expect("the graph is symmetric");
                    Ok(SentBlock { block, of: sent.len() })
                });
                let sent_as = places.collect::<Result<Vec<SentBlock>>>()?;
                Ok(Neighbours { sent_as, ..neighbours })
            }
            Topology::DistGraph(node) => {
                let ranks = |ends: &[dist_graph::End]| ends.iter().map(|(rank, _)| *rank).collect();
                Ok(listed(ranks(&node.sources), ranks(&node.destinations)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::{MPI_ERR_TOPOLOGY, MPI_PROC_NULL};
    use proptest::prelude::*;

    /// Returns the sender of each block that `to` receives, and the number of the block among the sender's blocks.
    fn arriving(topologies: &[Topology], to: usize) -> Vec<Option<(i32, usize)>> {
        let all: Vec<Neighbours> =
            topologies.iter().enumerate().map(|(rank, topology)| topology.neighbours(rank as i32).unwrap()).collect();
        let mut blocks = vec![None; all[to].sources.len()];
        let mut taken = vec![0; all.len()];
        for &block in &all[to].order {
            let source = all[to].sources[block];
            if source != MPI_PROC_NULL {
                let sent = &all[source as usize].destinations;
                let mut to_this = (0..sent.len()).filter(|at| sent[*at] == to as i32);
                let sent_as = to_this.nth(taken[source as usize]).unwrap();
                blocks[block] = Some((source, sent_as));
                assert_eq!(all[to].sent_as[block], SentBlock { block: sent_as, of: sent.len() });
                assert_eq!(all[to].before[block], taken[source as usize]);
                taken[source as usize] += 1;
            }
        }
        blocks
    }

    proptest! {
        #[test]
        fn in_a_grid_a_block_comes_from_the_side_that_it_was_sent_to(
            shape in proptest::collection::vec((1i32..4, any::<bool>()), 0..4),
        ) {
            let (dims, periods): (Vec<i32>, Vec<bool>) = shape.into_iter().unzip();
            let cart = Cart::new(&dims, &periods).unwrap();
            let topologies = vec![Topology::Cart(cart.clone()); cart.size()];
            for rank in 0..cart.size() {
                for (block, from) in arriving(&topologies, rank).into_iter().enumerate() {
                    let (below, above) = cart.shift(rank as i32, block as i32 / 2, 1).unwrap();
                    let peer = if block % 2 == 0 { below } else { above };
                    prop_assert_eq!(from, (peer != MPI_PROC_NULL).then_some((peer, block ^ 1)));
                }
            }
        }
    }

    #[test]
    fn in_graphs_repeated_edges_keep_their_order() {
        let graph = Graph::new(&[3, 5], &[1, 0, 1, 0, 0]).unwrap();
        let both = vec![Topology::Graph(graph); 2];
        assert_eq!(arriving(&both, 0), [Some((1, 0)), Some((0, 1)), Some((1, 1))]);
        assert_eq!(arriving(&both, 1), [Some((0, 0)), Some((0, 2))]);
        let one_way = Graph::new(&[1, 1], &[1]).unwrap();
        assert_eq!(Topology::Graph(one_way).neighbours(1).unwrap_err().class, MPI_ERR_TOPOLOGY);
    }
}
