//! Virtual topologies (MPI-5 chapter 8).

use std::ffi::c_int;
use std::sync::Arc;

use limosa_mpi::topo::dims_create;
use limosa_mpi::{Error, Result, consts};

use crate::args::at_least;
use crate::calls::comm::register_comm;
use crate::calls::kinds;
use crate::cx::Cx;
use crate::handles::Handle;

/// `n` logicals of a C array.
fn logicals(cx: &Cx, start: *const c_int, n: usize, arg: &str) -> Result<Vec<bool>> {
    Ok(cx.slice(start, n, arg)?.iter().map(|&value| value != 0).collect())
}

/// Sizes and periodicity of a grid, as several functions take them.
fn grid(cx: &Cx, ndims: c_int, dims: *const c_int, periods: *const c_int) -> Result<(&[c_int], Vec<bool>)> {
    at_least(ndims.into(), 0, "ndims", consts::MPI_ERR_DIMS)?;
    Ok((cx.slice(dims, ndims as usize, "dims")?, logicals(cx, periods, ndims as usize, "periods")?))
}

/// Checks that an output array of `maxdims` elements has room for a grid's.
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
    _reorder: bool,
    comm_cart: &mut Handle,
) -> Result<()> {
    let (dims, periods) = grid(cx, ndims, dims, periods)?;
    *comm_cart = register_comm(cx, comm_old.cart_create(dims, &periods)?)?;
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
