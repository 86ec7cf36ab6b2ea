//! What other layers ask of all members: to wait for each other, and to tell each other some bytes.

use super::buffer::Blocks;
use super::exchange::own_among_all;
use super::{Call, allgather};
use limosa_mpi::comm::{self, Agreement, Comm};
use limosa_mpi::consts::MPI_BYTE;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
pub fn barrier(comm: &Comm) -> Result<()> {
    super::barrier::run(&Call::begin(comm))
}

/// Tells all members the bytes of each, which have the same length everywhere; returns them in rank order.
///
/// # Errors
/// Errors of the machine.
pub fn allgather_bytes(comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    let mut all = own_among_all(comm, mine);
    let blocks = Blocks::even(all.as_mut_ptr(), mine.len() as i64, Datatype::named(MPI_BYTE), comm.size(), "all")?;
    allgather::run(&Call::begin(comm), None, &blocks)?;
    Ok(all)
}

/// How the layer below has members agree: see [`Agreement`].
struct ByCollectives;

impl Agreement for ByCollectives {
    fn allgather_bytes(&self, comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
        allgather_bytes(comm, mine)
    }
}

/// Lets communicators be made by means of collectives. To be called before the first communicator is made.
pub fn plug_in() {
    comm::plug_in(&ByCollectives);
}
