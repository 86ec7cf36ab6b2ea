//! Virtual topologies (MPI-5 chapter 8): a shape laid over the members of a communicator.
//!
//! Contract
//! - A topology is fixed when its communicator is made and shared with duplicates. What it knows are ranks of that communicator.
//! - The shapes are pure data; only the constructors at the end of each file know communicators.
//! - Ranks are never reordered: the processes of a job share one node, where no order is better than another.

mod cart;
mod dims;

pub use cart::Cart;
pub use dims::dims_create;

use crate::comm::Comm;
use crate::consts::{MPI_CART, MPI_UNDEFINED};
use crate::error::Result;
use crate::fail;

/// The shape that a communicator has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
}

impl Comm {
    /// The kind of topology: `MPI_CART`, or `MPI_UNDEFINED` for none (`MPI_Topo_test`).
    pub fn topo_test(&self) -> i32 {
        match self.topology() {
            Some(Topology::Cart(_)) => MPI_CART,
            None => MPI_UNDEFINED,
        }
    }

    /// The grid of this communicator; an error if it has none.
    pub fn cart(&self) -> Result<&Cart> {
        match self.topology() {
            Some(Topology::Cart(cart)) => Ok(cart),
            None => fail!(MPI_ERR_TOPOLOGY, "{} has no Cartesian topology; make one with MPI_Cart_create", self.describe()),
        }
    }
}
