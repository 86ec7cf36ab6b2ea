//! Virtual topologies (MPI-5 chapter 8): a shape laid over the members of a communicator.
//!
//! Contract
//! - A topology is fixed when its communicator is made and shared with duplicates. What it knows are ranks of that
//!   communicator.
//! - The shapes are pure data; communicators with them are made in `comm/topology.rs`.
//! - Ranks are not reordered: on one host no order is better than another. Those of several hosts will be
//!   ([`World::host_of`](crate::world::World::host_of)).

mod cart;
mod dims;

pub use cart::Cart;
pub(crate) use cart::SubGrid;
pub use dims::dims_create;

/// The shape that a communicator has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
}
