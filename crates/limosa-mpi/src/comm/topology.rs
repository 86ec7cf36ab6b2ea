//! Communicators with a virtual topology (MPI-5 chapter 8).

use std::sync::Arc;

use super::agreement::alltoall_bytes;
use super::{ChildPlan, Comm};
use crate::consts::{MPI_CART, MPI_DIST_GRAPH, MPI_GRAPH, MPI_UNDEFINED};
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::info::Info;
use crate::topo::dist_graph::{self, Edge};
use crate::topo::placement::{is_mixed, place};
use crate::topo::{Cart, Graph, Neighbours, Node, SubGrid, Topology};

impl Comm {
    /// Returns the kind of topology, or `MPI_UNDEFINED` for none (`MPI_Topo_test`).
    pub fn topo_test(&self) -> i32 {
        match self.topology() {
            Some(Topology::Cart(_)) => MPI_CART,
            Some(Topology::Graph(_)) => MPI_GRAPH,
            Some(Topology::DistGraph(_)) => MPI_DIST_GRAPH,
            None => MPI_UNDEFINED,
        }
    }

    /// Returns the grid of this communicator; an error if it has none.
    pub fn cart(&self) -> Result<&Cart> {
        match self.topology() {
            Some(Topology::Cart(cart)) => Ok(cart),
            _ => {
                fail!(MPI_ERR_TOPOLOGY, "{} has no Cartesian topology; make one with MPI_Cart_create", self.describe())
            }
        }
    }

    /// Returns the graph of this communicator; an error if it has none.
    pub fn graph(&self) -> Result<&Graph> {
        match self.topology() {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => fail!(MPI_ERR_TOPOLOGY, "{} has no graph topology; make one with MPI_Graph_create", self.describe()),
        }
    }

    /// Returns this process's edges in the distributed graph of this communicator; an error if it has none.
    pub fn dist_graph(&self) -> Result<&Node> {
        match self.topology() {
            Some(Topology::DistGraph(node)) => Ok(node),
            _ => fail!(
                MPI_ERR_TOPOLOGY,
                "{} has no distributed graph topology; make one with MPI_Dist_graph_create",
                self.describe()
            ),
        }
    }

    /// Returns the neighbours of this process; an error if the communicator has no topology.
    pub fn neighbours(&self) -> Result<Neighbours> {
        match self.topology() {
            Some(topology) => topology.neighbours(self.rank() as i32),
            None => fail!(
                MPI_ERR_TOPOLOGY,
                "{} has no topology, and so no neighbours; make one with MPI_Cart_create or MPI_Dist_graph_create",
                self.describe()
            ),
        }
    }

    /// Returns the hosts of the first `count` members.
    fn hosts_of_first(&self, count: usize) -> Vec<u32> {
        let mut hosts = self.world().hosts_of(self.group());
        hosts.truncate(count);
        hosts
    }

    /// Returns the first members, one for each node, in the order of the nodes that they become.
    fn placed(&self, nodes: usize, reorder: bool, links: impl FnOnce() -> Vec<Vec<(usize, i64)>>) -> Vec<usize> {
        let hosts = self.hosts_of_first(nodes);
        if reorder && is_mixed(&hosts) { place(&hosts, &links()) } else { (0..nodes).collect() }
    }

    /// Returns the members with these ranks, in this order.
    pub(super) fn members(&self, ranks: &[usize]) -> Arc<Group> {
        if ranks.iter().copied().eq(0..self.size()) {
            return self.group().clone();
        }
        let peer = |rank: &usize| self.group().world_rank(*rank).expect("one of the members");
        Group::from_world_ranks(ranks.iter().map(peer).collect()).of_session(self.group().session())
    }

    /// Makes the child with a topology over some members; `None` on the others.
    fn shaped(&self, place: u64, members: &[usize], topology: Topology) -> Option<Arc<Comm>> {
        let group = self.members(members);
        self.child(place, ChildPlan { group, discriminator: 0, topology: Some(Arc::new(topology)) })
    }

    /// Makes a communicator with a grid over its first processes; `None` on the processes left over
    /// (`MPI_Cart_create`).
    pub fn cart_create(&self, dims: &[i32], periods: &[bool], reorder: bool) -> Result<Option<Arc<Comm>>> {
        let place = self.next_child();
        self.check_intra()?;
        let cart = Cart::fitting(dims, periods, self.size())?;
        let members = self.placed(cart.size(), reorder, || cart.links());
        Ok(self.shaped(place, &members, Topology::Cart(cart)))
    }

    /// Makes a communicator of the part of the grid that this process reaches along the remaining dimensions
    /// (`MPI_Cart_sub`).
    pub fn cart_sub(&self, remain: &[bool]) -> Result<Arc<Comm>> {
        let place = self.next_child();
        let SubGrid { cart, ranks } = self.cart()?.sub(self.rank() as i32, remain)?;
        // The first rank of a part is in no other part.
        let discriminator = ranks[0] as u64;
        let group = self.group().incl(&ranks)?;
        let plan = ChildPlan { group, discriminator, topology: Some(Arc::new(Topology::Cart(cart))) };
        Ok(self.child(place, plan).expect("a process is in its own part of the grid"))
    }

    /// Returns the rank that this process would have in such a grid, or `MPI_UNDEFINED` (`MPI_Cart_map`).
    pub fn cart_map(&self, dims: &[i32], periods: &[bool]) -> Result<i32> {
        self.check_intra()?;
        let cart = Cart::fitting(dims, periods, self.size())?;
        Ok(self.place_in(&self.placed(cart.size(), true, || cart.links())))
    }

    /// Returns this process's place in a list of ranks, or `MPI_UNDEFINED`.
    fn place_in(&self, ranks: &[usize]) -> i32 {
        ranks.iter().position(|rank| *rank == self.rank() as usize).map_or(MPI_UNDEFINED, |place| place as i32)
    }

    /// Makes a communicator with a graph over its first processes; `None` on the processes left over
    /// (`MPI_Graph_create`).
    pub fn graph_create(&self, index: &[i32], edges: &[i32], reorder: bool) -> Result<Option<Arc<Comm>>> {
        let place = self.next_child();
        self.check_intra()?;
        let graph = Graph::fitting(index, edges, self.size())?;
        if graph.size() == 0 {
            return Ok(None);
        }
        let members = self.placed(graph.size(), reorder, || graph.links());
        Ok(self.shaped(place, &members, Topology::Graph(graph)))
    }

    /// Returns the rank that this process would have in such a graph, or `MPI_UNDEFINED` (`MPI_Graph_map`).
    pub fn graph_map(&self, index: &[i32], edges: &[i32]) -> Result<i32> {
        self.check_intra()?;
        let graph = Graph::fitting(index, edges, self.size())?;
        Ok(self.place_in(&self.placed(graph.size(), true, || graph.links())))
    }

    /// Makes a communicator with a graph of which each process lists some edges, not necessarily its own
    /// (`MPI_Dist_graph_create`).
    ///
    /// A process with wrong edges takes part without any, so that the others do not wait for it, and then fails.
    pub fn dist_graph_create(
        &self,
        edges: Result<Vec<Edge>>,
        is_weighted: bool,
        info: Option<&Info>,
        reorder: bool,
    ) -> Result<Arc<Comm>> {
        let place = self.next_child();
        self.check_intra()?;
        let hosts = self.hosts_of_first(self.size());
        let reorders = reorder && is_mixed(&hosts);
        let mine: &[Edge] = edges.as_deref().unwrap_or_default();
        let parts = if reorders {
            vec![dist_graph::for_all(mine); self.size()]
        } else {
            dist_graph::for_each(mine, self.size())
        };
        let all = dist_graph::gathered(&alltoall_bytes(self, &parts)?, self.size())?;
        edges?;
        let members = self.placed(self.size(), reorders, || {
            let mut links = vec![Vec::new(); self.size()];
            all.iter().for_each(|edge| links[edge[0] as usize].push((edge[1] as usize, edge[2].into())));
            links
        });
        let node = Node::in_graph(self.place_in(&members), &all, is_weighted);
        Ok(self.with_node(place, &members, node, info))
    }

    /// Makes a communicator with a graph of which each process lists its own edges (`MPI_Dist_graph_create_adjacent`).
    ///
    /// Takes no message unless ranks are reordered.
    pub fn dist_graph_create_adjacent(
        &self,
        node: Result<Node>,
        info: Option<&Info>,
        reorder: bool,
    ) -> Result<Arc<Comm>> {
        let place = self.next_child();
        self.check_intra()?;
        let hosts = self.hosts_of_first(self.size());
        if !(reorder && is_mixed(&hosts)) {
            let in_order: Vec<usize> = (0..self.size()).collect();
            return Ok(self.with_node(place, &in_order, node?, info));
        }
        let mine = node.as_ref().map_or_else(|_| Node::default().encoded(), Node::encoded);
        let messages = alltoall_bytes(self, &vec![mine; self.size()])?;
        let is_weighted = node?.is_weighted;
        let decoded = |message: &Vec<u8>| Node::decoded(message, is_weighted, self.size());
        let mut nodes = messages.iter().map(decoded).collect::<Result<Vec<Node>>>()?;
        let members = self.placed(self.size(), true, || {
            let ends = nodes.iter().map(|node| node.destinations.iter());
            ends.map(|ends| ends.map(|(to, weight)| (*to as usize, i64::from(*weight))).collect()).collect()
        });
        let node = nodes.swap_remove(self.place_in(&members) as usize);
        Ok(self.with_node(place, &members, node, info))
    }

    fn with_node(&self, place: u64, members: &[usize], node: Node, info: Option<&Info>) -> Arc<Comm> {
        let comm = self.shaped(place, members, Topology::DistGraph(node)).expect("every member is a node");
        if let Some(info) = info {
            comm.hints.update(info);
        }
        comm
    }
}
