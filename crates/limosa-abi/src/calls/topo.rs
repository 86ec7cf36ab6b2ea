//! Virtual topologies (MPI-5 chapter 8).

use std::ffi::c_int;
use std::sync::Arc;

use limosa_mpi::topo::dist_graph::{self, Edge, End};
use limosa_mpi::topo::{Graph, Node, dims_create};
use limosa_mpi::{Error, Result, consts};

use crate::args::at_least;
use crate::calls::comm::register_comm;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds;

/// Returns `n` logicals of a C array.
fn logicals(cx: &Cx, start: *const c_int, n: usize, arg: &str) -> Result<Vec<bool>> {
    Ok(cx.slice(start, n, arg)?.iter().map(|&value| value != 0).collect())
}

/// Returns sizes and periodicity of a grid.
fn grid(cx: &Cx, ndims: c_int, dims: *const c_int, periods: *const c_int) -> Result<(&[c_int], Vec<bool>)> {
    at_least(ndims.into(), 0, "ndims", consts::MPI_ERR_DIMS)?;
    Ok((cx.slice(dims, ndims as usize, "dims")?, logicals(cx, periods, ndims as usize, "periods")?))
}

/// Checks that an output array of `maxdims` elements has room for a grid.
fn room_for(ndims: usize, maxdims: c_int) -> Result<()> {
    if (maxdims as usize) < ndims {
        return Err(Error::new(
            consts::MPI_ERR_ARG,
            format!("maxdims is {maxdims}, but the grid has {ndims} dimensions"),
        ));
    }
    Ok(())
}

pub(crate) fn mpi_topo_test(_cx: &Cx, comm: &Arc<kinds::Communicator>, status: &mut c_int) -> Result<()> {
    *status = comm.topo_test();
    Ok(())
}

pub(crate) fn mpi_dims_create(cx: &Cx, nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Result<()> {
    at_least(ndims.into(), 0, "ndims", consts::MPI_ERR_DIMS)?;
    dims_create(nnodes, cx.slice_mut(dims, ndims as usize, "dims")?)
}

pub(crate) fn mpi_cart_create(
    cx: &Cx,
    comm_old: &Arc<kinds::Communicator>,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    reorder: bool,
    comm_cart: &mut Handle,
) -> Result<()> {
    let (dims, periods) = grid(cx, ndims, dims, periods)?;
    *comm_cart = register_comm(cx, comm_old.cart_create(dims, &periods, reorder)?)?;
    Ok(())
}

pub(crate) fn mpi_cart_map(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: &mut c_int,
) -> Result<()> {
    let (dims, periods) = grid(cx, ndims, dims, periods)?;
    *newrank = comm.cart_map(dims, &periods)?;
    Ok(())
}

pub(crate) fn mpi_cart_sub(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    remain_dims: *const c_int,
    newcomm: &mut Handle,
) -> Result<()> {
    let remain = logicals(cx, remain_dims, comm.cart()?.dims().len(), "remain_dims")?;
    *newcomm = register_comm(cx, Some(comm.cart_sub(&remain)?))?;
    Ok(())
}

pub(crate) fn mpi_cartdim_get(_cx: &Cx, comm: &Arc<kinds::Communicator>, ndims: &mut c_int) -> Result<()> {
    *ndims = comm.cart()?.dims().len() as c_int;
    Ok(())
}

pub(crate) fn mpi_cart_get(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Result<()> {
    let cart = comm.cart()?;
    let ndims = cart.dims().len();
    room_for(ndims, maxdims)?;
    cx.slice_mut(dims, ndims, "dims")?.copy_from_slice(cart.dims());
    for (period, &periodic) in cx.slice_mut(periods, ndims, "periods")?.iter_mut().zip(cart.periods()) {
        *period = periodic.into();
    }
    cx.slice_mut(coords, ndims, "coords")?.copy_from_slice(&cart.coords(comm.rank() as c_int)?);
    Ok(())
}

pub(crate) fn mpi_cart_coords(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Result<()> {
    let found = comm.cart()?.coords(rank)?;
    room_for(found.len(), maxdims)?;
    cx.slice_mut(coords, found.len(), "coords")?.copy_from_slice(&found);
    Ok(())
}

pub(crate) fn mpi_cart_rank(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    coords: *const c_int,
    rank: &mut c_int,
) -> Result<()> {
    let cart = comm.cart()?;
    *rank = cart.rank(cx.slice(coords, cart.dims().len(), "coords")?)?;
    Ok(())
}

pub(crate) fn mpi_cart_shift(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    direction: c_int,
    disp: c_int,
    rank_source: &mut c_int,
    rank_dest: &mut c_int,
) -> Result<()> {
    (*rank_source, *rank_dest) = comm.cart()?.shift(comm.rank() as c_int, direction, disp)?;
    Ok(())
}

// ---- graphs ---------------------------------------------------------------------------------------------------------

/// Returns the two arrays that describe a graph.
fn graph(cx: &Cx, nnodes: c_int, index: *const c_int, edges: *const c_int) -> Result<(&[c_int], &[c_int])> {
    at_least(nnodes.into(), 0, "nnodes", consts::MPI_ERR_ARG)?;
    let index = cx.slice(index, nnodes as usize, "index")?;
    Ok((index, cx.slice(edges, Graph::count_edges(index)?, "edges")?))
}

/// Checks that an output array of `max` elements has room for the needed number.
fn room(max: c_int, needed: usize, arg: &str, what: &str) -> Result<()> {
    if (max as usize) < needed {
        let text = format!("{arg} is {max}, but there are {needed} {what}");
        return Err(Error::new(consts::MPI_ERR_ARG, text));
    }
    Ok(())
}

pub(crate) fn mpi_graph_create(
    cx: &Cx,
    comm_old: &Arc<kinds::Communicator>,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    reorder: bool,
    comm_graph: &mut Handle,
) -> Result<()> {
    let (index, edges) = graph(cx, nnodes, index, edges)?;
    *comm_graph = register_comm(cx, comm_old.graph_create(index, edges, reorder)?)?;
    Ok(())
}

pub(crate) fn mpi_graph_map(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    nnodes: c_int,
    index: *const c_int,
    edges: *const c_int,
    newrank: &mut c_int,
) -> Result<()> {
    let (index, edges) = graph(cx, nnodes, index, edges)?;
    *newrank = comm.graph_map(index, edges)?;
    Ok(())
}

pub(crate) fn mpi_graphdims_get(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    nnodes: &mut c_int,
    nedges: &mut c_int,
) -> Result<()> {
    let graph = comm.graph()?;
    (*nnodes, *nedges) = (graph.size() as c_int, graph.edges().len() as c_int);
    Ok(())
}

pub(crate) fn mpi_graph_get(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    maxindex: c_int,
    maxedges: c_int,
    index: *mut c_int,
    edges: *mut c_int,
) -> Result<()> {
    let graph = comm.graph()?;
    room(maxindex, graph.size(), "maxindex", "nodes")?;
    room(maxedges, graph.edges().len(), "maxedges", "edges")?;
    cx.slice_mut(index, graph.size(), "index")?.copy_from_slice(graph.index());
    cx.slice_mut(edges, graph.edges().len(), "edges")?.copy_from_slice(graph.edges());
    Ok(())
}

pub(crate) fn mpi_graph_neighbors_count(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    rank: c_int,
    nneighbors: &mut c_int,
) -> Result<()> {
    *nneighbors = comm.graph()?.neighbours(rank)?.len() as c_int;
    Ok(())
}

pub(crate) fn mpi_graph_neighbors(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    rank: c_int,
    maxneighbors: c_int,
    neighbors: *mut c_int,
) -> Result<()> {
    let found = comm.graph()?.neighbours(rank)?;
    room(maxneighbors, found.len(), "maxneighbors", "neighbours")?;
    cx.slice_mut(neighbors, found.len(), "neighbors")?.copy_from_slice(found);
    Ok(())
}

// ---- distributed graphs ---------------------------------------------------------------------------------------------

/// Returns whether there are weights.
fn has_weights(weights: *const c_int) -> bool {
    weights as usize != consts::MPI_UNWEIGHTED
}

/// Returns the weights of `n` edges; `None` if there are none.
fn weights<'a>(cx: &'a Cx, start: *const c_int, n: usize, arg: &str) -> Result<Option<&'a [c_int]>> {
    if !has_weights(start) {
        return Ok(None);
    }
    if start as usize == consts::MPI_WEIGHTS_EMPTY && n > 0 {
        let text = format!("{arg} is MPI_WEIGHTS_EMPTY, but {n} weights are wanted");
        return Err(Error::new(consts::MPI_ERR_ARG, text));
    }
    cx.slice(start, n, arg).map(Some)
}

pub(crate) fn mpi_dist_graph_create(
    cx: &Cx,
    comm_old: &Arc<kinds::Communicator>,
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights_given: *const c_int,
    info: Option<&Arc<kinds::Info>>,
    reorder: bool,
    comm_dist_graph: &mut Handle,
) -> Result<()> {
    let edges = || -> Result<Vec<Edge>> {
        let (sources, degrees) = (cx.slice(sources, n as usize, "sources")?, cx.slice(degrees, n as usize, "degrees")?);
        let count = dist_graph::total(degrees)?;
        let destinations = cx.slice(destinations, count, "destinations")?;
        let weights = weights(cx, weights_given, count, "weights")?;
        dist_graph::edges_of(sources, degrees, destinations, weights, comm_old.size())
    };
    let info = info.map(|info| &**info);
    let comm = comm_old.dist_graph_create(edges(), has_weights(weights_given), info, reorder)?;
    *comm_dist_graph = register_comm(cx, Some(comm))?;
    Ok(())
}

pub(crate) fn mpi_dist_graph_create_adjacent(
    cx: &Cx,
    comm_old: &Arc<kinds::Communicator>,
    indegree: c_int,
    sources: *const c_int,
    sourceweights: *const c_int,
    outdegree: c_int,
    destinations: *const c_int,
    destweights: *const c_int,
    info: Option<&Arc<kinds::Info>>,
    reorder: bool,
    comm_dist_graph: &mut Handle,
) -> Result<()> {
    let node = || -> Result<Node> {
        at_least(indegree.into(), 0, "indegree", consts::MPI_ERR_ARG)?;
        at_least(outdegree.into(), 0, "outdegree", consts::MPI_ERR_ARG)?;
        if has_weights(sourceweights) != has_weights(destweights) {
            let text = "only one of sourceweights and destweights is MPI_UNWEIGHTED: give both or none";
            return Err(Error::new(consts::MPI_ERR_ARG, text));
        }
        let (incoming, outgoing) = (indegree as usize, outdegree as usize);
        let sources = (cx.slice(sources, incoming, "sources")?, weights(cx, sourceweights, incoming, "sourceweights")?);
        let destinations =
            (cx.slice(destinations, outgoing, "destinations")?, weights(cx, destweights, outgoing, "destweights")?);
        Node::adjacent(sources, destinations, has_weights(sourceweights), comm_old.size())
    };
    let comm = comm_old.dist_graph_create_adjacent(node(), info.map(|info| &**info), reorder)?;
    *comm_dist_graph = register_comm(cx, Some(comm))?;
    Ok(())
}

pub(crate) fn mpi_dist_graph_neighbors_count(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    indegree: &mut c_int,
    outdegree: &mut c_int,
    weighted: &mut c_int,
) -> Result<()> {
    let node = comm.dist_graph()?;
    (*indegree, *outdegree) = (node.sources.len() as c_int, node.destinations.len() as c_int);
    *weighted = node.is_weighted.into();
    Ok(())
}

/// Stores as many edges as there is room for. Weights are stored if the graph has any and the program does not ignore
/// them.
fn write_ends(
    cx: &Cx,
    ends: &[End],
    max: c_int,
    ranks: (*mut c_int, &str),
    weights: Option<(*mut c_int, &str)>,
) -> Result<()> {
    let ends = &ends[..ends.len().min(max as usize)];
    for (place, (rank, _)) in cx.slice_mut(ranks.0, ends.len(), ranks.1)?.iter_mut().zip(ends) {
        *place = *rank;
    }
    let Some((weights, arg)) = weights.filter(|(start, _)| has_weights(*start)) else { return Ok(()) };
    if weights as usize == consts::MPI_WEIGHTS_EMPTY && !ends.is_empty() {
        let text = format!("{arg} is MPI_WEIGHTS_EMPTY, but there are {} weights", ends.len());
        return Err(Error::new(consts::MPI_ERR_ARG, text));
    }
    for (place, (_, weight)) in cx.slice_mut(weights, ends.len(), arg)?.iter_mut().zip(ends) {
        *place = *weight;
    }
    Ok(())
}

pub(crate) fn mpi_dist_graph_neighbors(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    maxindegree: c_int,
    sources: *mut c_int,
    sourceweights: *mut c_int,
    maxoutdegree: c_int,
    destinations: *mut c_int,
    destweights: *mut c_int,
) -> Result<()> {
    let node = comm.dist_graph()?;
    let wanted = |weights, arg| node.is_weighted.then_some((weights, arg));
    let in_weights = wanted(sourceweights, "sourceweights");
    write_ends(cx, &node.sources, maxindegree, (sources, "sources"), in_weights)?;
    let out_weights = wanted(destweights, "destweights");
    write_ends(cx, &node.destinations, maxoutdegree, (destinations, "destinations"), out_weights)
}
