//! Communicators with a virtual topology (MPI-5 chapter 8).

use std::sync::Arc;

use super::{ChildPlan, Comm};
use crate::consts::{MPI_CART, MPI_UNDEFINED};
use crate::error::Result;
use crate::fail;
use crate::topo::{Cart, SubGrid, Topology};

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
            None => {
                fail!(MPI_ERR_TOPOLOGY, "{} has no Cartesian topology; make one with MPI_Cart_create", self.describe())
            }
        }
    }

    /// A communicator with a grid over its first processes; `None` on the processes left over (`MPI_Cart_create`).
    pub fn cart_create(&self, dims: &[i32], periods: &[bool]) -> Result<Option<Arc<Comm>>> {
        let place = self.next_child();
        let cart = Cart::fitting(dims, periods, self.size())?;
        let group = if cart.size() == self.size() { self.group().clone() } else { self.group().first(cart.size()) };
        Ok(self.child(place, ChildPlan { group, discriminator: 0, topology: Some(Arc::new(Topology::Cart(cart))) }))
    }

    /// The part of the grid that this process reaches along the dimensions that remain (`MPI_Cart_sub`).
    pub fn cart_sub(&self, remain: &[bool]) -> Result<Arc<Comm>> {
        let place = self.next_child();
        let SubGrid { cart, ranks } = self.cart()?.sub(self.rank() as i32, remain)?;
        // The first rank of a part is in no other part.
        let discriminator = ranks[0] as u64;
        let group = self.group().incl(&ranks)?;
        let plan = ChildPlan { group, discriminator, topology: Some(Arc::new(Topology::Cart(cart))) };
        Ok(self.child(place, plan).expect("a process is in its own part of the grid"))
    }

    /// The rank that this process would have in such a grid, or `MPI_UNDEFINED` (`MPI_Cart_map`).
    pub fn cart_map(&self, dims: &[i32], periods: &[bool]) -> Result<i32> {
        let cart = Cart::fitting(dims, periods, self.size())?;
        Ok(if (self.rank() as usize) < cart.size() { self.rank() as i32 } else { MPI_UNDEFINED })
    }
}
