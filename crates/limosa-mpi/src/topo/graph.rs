//! Graphs that every process knows as a whole (MPI-5 sections 8.5.3 and 8.5.5).
//!
//! Contract
//! - The neighbours of a node keep the order, and the repetitions, in which the program has listed them.

use std::sync::OnceLock;

use crate::error::Result;
use crate::fail;
use crate::group::ranks_of;

/// A graph whose nodes are ranks.
#[derive(Clone, Debug)]
pub struct Graph {
    /// For each node the end of its neighbours in `edges`.
    index: Box<[i32]>,
    edges: Box<[i32]>,
    symmetric: OnceLock<bool>,
}

impl Graph {
    /// Returns the number of edges that an index tells of, which has one entry per node.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` if it is not an ascending list of numbers.
    pub fn count_edges(index: &[i32]) -> Result<usize> {
        let mut last = 0;
        for (node, &end) in index.iter().enumerate() {
            if end < last {
                fail!(
                    MPI_ERR_ARG,
                    "entry {node} of the index is {end}, but the neighbours up to that node are at least {last}: the \
                     index counts those of all nodes so far"
                );
            }
            last = end;
        }
        Ok(last as usize)
    }

    /// Makes a graph of so many nodes as the index has entries, and of as many edges as it says.
    ///
    /// # Errors
    /// As for [`Graph::count_edges`]; `MPI_ERR_RANK` if an edge leads to no node.
    pub fn new(index: &[i32], edges: &[i32]) -> Result<Graph> {
        debug_assert_eq!(Graph::count_edges(index).ok(), Some(edges.len()));
        for (at, &edge) in edges.iter().enumerate() {
            if edge < 0 || edge as usize >= index.len() {
                fail!(MPI_ERR_RANK, "edge {at} leads to {edge}, but the graph has {}", ranks_of(index.len()));
            }
        }
        Ok(Graph { index: index.into(), edges: edges.into(), symmetric: OnceLock::new() })
    }

    /// Makes a graph that must fit into `processes` processes.
    pub(crate) fn fitting(index: &[i32], edges: &[i32], processes: usize) -> Result<Graph> {
        if index.len() > processes {
            fail!(MPI_ERR_ARG, "the graph has {} nodes, but the communicator has {processes} processes", index.len());
        }
        Graph::new(index, edges)
    }

    /// Returns the number of nodes.
    pub fn size(&self) -> usize {
        self.index.len()
    }

    /// For each node the number of neighbours of all nodes up to it.
    pub fn index(&self) -> &[i32] {
        &self.index
    }

    /// Returns the neighbours of all nodes, node by node.
    pub fn edges(&self) -> &[i32] {
        &self.edges
    }

    /// Returns the neighbours of a node.
    ///
    /// # Errors
    /// `MPI_ERR_RANK` if there is no such node.
    pub fn neighbours(&self, rank: i32) -> Result<&[i32]> {
        if rank < 0 || rank as usize >= self.size() {
            fail!(MPI_ERR_RANK, "the rank is {rank}, but the graph has {}", ranks_of(self.size()));
        }
        let node = rank as usize;
        let begin = if node == 0 { 0 } else { self.index[node - 1] as usize };
        Ok(&self.edges[begin..self.index[node] as usize])
    }

    /// Returns the edges of each node, for [`super::placement`].
    pub(crate) fn links(&self) -> Vec<Vec<(usize, i64)>> {
        let of = |node| self.neighbours(node).into_iter().flatten().map(|&to| (to as usize, 1)).collect();
        (0..self.size() as i32).map(of).collect()
    }

    /// Whether each node is as often a neighbour of its neighbours as they are of it: only then do messages to all
    /// neighbours meet receives.
    pub fn is_symmetric(&self) -> bool {
        *self.symmetric.get_or_init(|| {
            let mut there: Vec<(i32, i32)> = Vec::with_capacity(self.edges.len());
            for node in 0..self.size() as i32 {
                there.extend(self.neighbours(node).into_iter().flatten().map(|&neighbour| (node, neighbour)));
            }
            let mut back: Vec<(i32, i32)> = there.iter().map(|&(from, to)| (to, from)).collect();
            there.sort_unstable();
            back.sort_unstable();
            there == back
        })
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Graph) -> bool {
        (&self.index, &self.edges) == (&other.index, &other.edges)
    }
}

impl Eq for Graph {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::{MPI_ERR_ARG, MPI_ERR_RANK};

    #[test]
    fn neighbours_keep_their_order_and_repetitions() {
        // The example of section 8.5.3, and a node with a loop and a neighbour twice.
        let graph = Graph::new(&[2, 3, 4, 6], &[1, 3, 0, 3, 0, 2]).unwrap();
        assert_eq!(graph.neighbours(0).unwrap(), [1, 3]);
        assert_eq!(graph.neighbours(3).unwrap(), [0, 2]);
        assert!(graph.is_symmetric());
        let graph = Graph::new(&[3, 5], &[1, 0, 1, 0, 0]).unwrap();
        assert_eq!((graph.neighbours(0).unwrap(), graph.neighbours(1).unwrap()), (&[1, 0, 1][..], &[0, 0][..]));
        assert!(graph.is_symmetric());
        assert!(!Graph::new(&[1, 1], &[1]).unwrap().is_symmetric());
        assert!(!Graph::new(&[2, 3], &[1, 1, 0]).unwrap().is_symmetric());
        assert!(Graph::new(&[], &[]).unwrap().is_symmetric());
    }

    #[test]
    fn wrong_graphs_are_refused() {
        for index in [&[-1][..], &[2, 1], &[1, 0, 5]] {
            assert_eq!(Graph::count_edges(index).unwrap_err().class, MPI_ERR_ARG);
        }
        assert_eq!(Graph::count_edges(&[0, 2, 2]).unwrap(), 2);
        for edge in [-1, 2, i32::MAX] {
            assert_eq!(Graph::new(&[1, 1], &[edge]).unwrap_err().class, MPI_ERR_RANK);
        }
        assert_eq!(Graph::fitting(&[0, 0, 0], &[], 2).unwrap_err().class, MPI_ERR_ARG);
        let graph = Graph::fitting(&[0, 0], &[], 2).unwrap();
        for rank in [-1, 2] {
            assert_eq!(graph.neighbours(rank).unwrap_err().class, MPI_ERR_RANK);
        }
    }
}
