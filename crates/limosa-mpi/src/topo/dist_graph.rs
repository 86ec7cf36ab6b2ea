//! Graphs of which every process knows its own edges (MPI-5 section 8.5.4).
//!
//! Contract
//! - Edges of [`Node::adjacent`] keep the order in which the program has listed them; those that several processes
//!   have listed are ordered by the ranks of these, and then as listed.
//! - What other processes send is checked before use.

use crate::error::Result;
use crate::fail;
use crate::group::ranks_of;

/// One end of an edge, as the process at its other end sees it: the rank here, and the weight.
pub type End = (i32, i32);

/// The edges of one process in a distributed graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Where its incoming edges come from.
    pub sources: Vec<End>,
    /// Where its outgoing edges lead to.
    pub destinations: Vec<End>,
    /// Whether the program has given weights.
    pub is_weighted: bool,
}

/// An edge: source, destination, weight.
pub type Edge = [i32; 3];

/// Bytes of a number in a message.
const WORD: usize = 4;

/// Returns the bytes of numbers.
fn encode(words: impl Iterator<Item = i32>) -> Vec<u8> {
    words.flat_map(i32::to_ne_bytes).collect()
}

/// Returns the numbers in a message of another process.
fn decode(bytes: &[u8]) -> Result<Vec<i32>> {
    if !bytes.len().is_multiple_of(WORD) {
        fail!(MPI_ERR_INTERN, "another process has sent {} bytes, which are no edges", bytes.len());
    }
    Ok(bytes.chunks_exact(WORD).map(|word| i32::from_ne_bytes(word.try_into().expect("four bytes"))).collect())
}

/// Fails if `rank` is none of `processes` ranks.
fn check_rank(rank: i32, processes: usize, what: &str, at: usize) -> Result<()> {
    if rank < 0 || rank as usize >= processes {
        fail!(MPI_ERR_RANK, "entry {at} of {what} is {rank}, but the communicator has {}", ranks_of(processes));
    }
    Ok(())
}

fn check_weight(weight: i32, what: &str, at: usize) -> Result<()> {
    if weight < 0 {
        fail!(MPI_ERR_ARG, "entry {at} of {what} is {weight}, but a weight must not be negative");
    }
    Ok(())
}

/// Edges as `MPI_Dist_graph_create` lists them: for each source its degree; then all destinations, source by source.
///
/// # Errors
/// `MPI_ERR_RANK`, `MPI_ERR_ARG` (a degree or weight is negative).
pub fn edges_of(
    sources: &[i32],
    degrees: &[i32],
    destinations: &[i32],
    weights: Option<&[i32]>,
    processes: usize,
) -> Result<Vec<Edge>> {
    let mut edges = Vec::with_capacity(destinations.len());
    for (i, (&source, &degree)) in sources.iter().zip(degrees).enumerate() {
        check_rank(source, processes, "sources", i)?;
        for _ in 0..degree {
            let at = edges.len();
            check_rank(destinations[at], processes, "destinations", at)?;
            let weight = weights.map_or(1, |weights| weights[at]);
            check_weight(weight, "weights", at)?;
            edges.push([source, destinations[at], weight]);
        }
    }
    Ok(edges)
}

/// Sum of the degrees.
///
/// # Errors
/// `MPI_ERR_ARG` if one is negative.
pub fn total(degrees: &[i32]) -> Result<usize> {
    if let Some(at) = degrees.iter().position(|degree| *degree < 0) {
        fail!(MPI_ERR_ARG, "entry {at} of degrees is {}, but a degree must not be negative", degrees[at]);
    }
    Ok(degrees.iter().map(|degree| *degree as usize).sum())
}

/// What each of `processes` processes is to hear of these edges: those that begin or end there.
pub(crate) fn for_each(edges: &[Edge], processes: usize) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new(); processes];
    for edge in edges {
        let [source, destination, _] = *edge;
        parts[source as usize].extend(encode(edge.iter().copied()));
        if destination != source {
            parts[destination as usize].extend(encode(edge.iter().copied()));
        }
    }
    parts
}

/// The same for all: every edge.
pub(crate) fn for_all(edges: &[Edge]) -> Vec<u8> {
    encode(edges.iter().flatten().copied())
}

/// Returns the edges in messages, in the order of their senders.
///
/// # Errors
/// `MPI_ERR_INTERN` if a message is damaged.
pub(crate) fn gathered(messages: &[Vec<u8>], processes: usize) -> Result<Vec<Edge>> {
    let mut edges = Vec::new();
    for message in messages {
        let words = decode(message)?;
        for edge in words.chunks(3) {
            match *edge {
                [source, destination, weight]
                    if [source, destination].iter().all(|rank| (0..processes as i32).contains(rank)) =>
                {
                    edges.push([source, destination, weight]);
                }
                _ => fail!(MPI_ERR_INTERN, "another process has sent an edge that cannot be: {edge:?}"),
            }
        }
    }
    Ok(edges)
}

impl Node {
    /// Returns the node `rank` of the graph with these edges.
    pub(crate) fn in_graph(rank: i32, edges: &[Edge], is_weighted: bool) -> Node {
        let sources = edges.iter().filter(|edge| edge[1] == rank).map(|edge| (edge[0], edge[2])).collect();
        let destinations = edges.iter().filter(|edge| edge[0] == rank).map(|edge| (edge[1], edge[2])).collect();
        Node { sources, destinations, is_weighted }
    }

    /// Makes a node as `MPI_Dist_graph_create_adjacent` describes it.
    ///
    /// # Errors
    /// `MPI_ERR_RANK`, `MPI_ERR_ARG` (a weight is negative).
    pub fn adjacent(
        sources: (&[i32], Option<&[i32]>),
        destinations: (&[i32], Option<&[i32]>),
        is_weighted: bool,
        processes: usize,
    ) -> Result<Node> {
        let ends = |(ranks, weights): (&[i32], Option<&[i32]>), what: &str, of_weights: &str| -> Result<Vec<End>> {
            let mut ends = Vec::with_capacity(ranks.len());
            for (at, &rank) in ranks.iter().enumerate() {
                check_rank(rank, processes, what, at)?;
                let weight = weights.map_or(1, |weights| weights[at]);
                check_weight(weight, of_weights, at)?;
                ends.push((rank, weight));
            }
            Ok(ends)
        };
        Ok(Node {
            sources: ends(sources, "sources", "sourceweights")?,
            destinations: ends(destinations, "destinations", "destweights")?,
            is_weighted,
        })
    }

    /// Returns the node as a message.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let ends = self.sources.iter().chain(&self.destinations).flat_map(|(rank, weight)| [*rank, *weight]);
        encode([self.sources.len() as i32].into_iter().chain(ends))
    }

    /// Returns the node in a message.
    ///
    /// # Errors
    /// `MPI_ERR_INTERN` if it is damaged.
    pub(crate) fn decoded(message: &[u8], is_weighted: bool, processes: usize) -> Result<Node> {
        let words = decode(message)?;
        let ends: Vec<End> = words.get(1..).unwrap_or_default().chunks_exact(2).map(|end| (end[0], end[1])).collect();
        let first = words.first().map_or(usize::MAX, |count| *count as usize);
        let is_sound = first <= ends.len() && ends.iter().all(|(rank, _)| (0..processes as i32).contains(rank));
        if !is_sound {
            fail!(MPI_ERR_INTERN, "another process has sent {} bytes, which are no edges", message.len());
        }
        let (sources, destinations) = ends.split_at(first);
        Ok(Node { sources: sources.to_vec(), destinations: destinations.to_vec(), is_weighted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::{MPI_ERR_ARG, MPI_ERR_INTERN, MPI_ERR_RANK};
    use proptest::prelude::*;

    #[test]
    fn edges_that_several_processes_list_come_to_both_ends() {
        let lists = [
            edges_of(&[0, 2], &[2, 1], &[1, 0, 2], Some(&[5, 6, 7]), 3).unwrap(),
            edges_of(&[1], &[1], &[0], None, 3).unwrap(),
            vec![],
        ];
        let sent: Vec<Vec<Vec<u8>>> = lists.iter().map(|edges| for_each(edges, 3)).collect();
        for rank in 0..3 {
            let received: Vec<Vec<u8>> = sent.iter().map(|parts| parts[rank].clone()).collect();
            let node = Node::in_graph(rank as i32, &gathered(&received, 3).unwrap(), true);
            let whole: Vec<Vec<u8>> = lists.iter().map(|edges| for_all(edges)).collect();
            assert_eq!(node, Node::in_graph(rank as i32, &gathered(&whole, 3).unwrap(), true));
            let expected = [
                (vec![(0, 6), (1, 1)], vec![(1, 5), (0, 6)]),
                (vec![(0, 5)], vec![(0, 1)]),
                (vec![(2, 7)], vec![(2, 7)]),
            ];
            assert_eq!((node.sources, node.destinations), expected[rank]);
        }
    }

    #[test]
    fn wrong_edges_are_refused() {
        assert_eq!(total(&[1, -1]).unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(edges_of(&[3], &[0], &[], None, 3).unwrap_err().class, MPI_ERR_RANK);
        assert_eq!(edges_of(&[0], &[1], &[-1], None, 3).unwrap_err().class, MPI_ERR_RANK);
        assert_eq!(edges_of(&[0], &[1], &[1], Some(&[-1]), 3).unwrap_err().class, MPI_ERR_ARG);
        assert_eq!(Node::adjacent((&[7], None), (&[], None), false, 7).unwrap_err().class, MPI_ERR_RANK);
        assert_eq!(Node::adjacent((&[], None), (&[0], Some(&[-3])), true, 7).unwrap_err().class, MPI_ERR_ARG);
    }

    proptest! {
        #[test]
        fn damaged_messages_are_refused_or_describe_ranks_that_exist(bytes: Vec<u8>) {
            if let Ok(node) = Node::decoded(&bytes, false, 3) {
                prop_assert!(node.sources.iter().chain(&node.destinations).all(|(rank, _)| (0..3).contains(rank)));
            }
            match gathered(&[bytes], 3) {
                Ok(edges) => prop_assert!(edges.iter().all(|edge| edge[0] < 3 && edge[1] < 3)),
                Err(error) => prop_assert_eq!(error.class, MPI_ERR_INTERN),
            }
        }

        #[test]
        fn a_node_travels_whole(
            sources in proptest::collection::vec((0..9i32, 0..5i32), 0..6),
            destinations in proptest::collection::vec((0..9i32, 0..5i32), 0..6),
        ) {
            let node = Node { sources, destinations, is_weighted: true };
            prop_assert_eq!(Node::decoded(&node.encoded(), true, 9).unwrap(), node);
        }
    }
}
