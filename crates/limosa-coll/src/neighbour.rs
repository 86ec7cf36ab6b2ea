//! Neighbourhood collectives (MPI-5 section 8.6): every process exchanges blocks with its neighbours in the topology of
//! the communicator.
//!
//! One round of messages to and from all neighbours. Which block a message fills is told by the order alone: those
//! between two processes are received in the order in which they are sent ([`Neighbours`]). What a process sends to
//! itself is copied.
//!
//! [`Neighbours`]: limosa_mpi::topo::Neighbours

use limosa_p2p::memory::Region;

use super::buffer::{Blocks, Buffer};
use super::kind::Signature;
use super::{Call, Schedule};
use limosa_mpi::consts::MPI_PROC_NULL;
use limosa_mpi::error::Result;
use limosa_mpi::fail;

/// Plans that every process sends its buffer to all its neighbours. `receive` has one block per source.
///
/// # Errors
/// `MPI_ERR_TOPOLOGY`, `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`.
pub fn allgather(call: &Call<'_>, send: &Buffer, receive: &Blocks) -> Result<Schedule> {
    receive.check_apart_from(call.neighbours()?.sources.len(), send)?;
    exchange(&call.signed(Signature::neighbours(false)), |_| send.region(), |block| receive.region(block))
}

/// Plans that every process sends a block to each of its neighbours. `send` has one block per destination, `receive`
/// one per source.
///
/// # Errors
/// As for [`allgather`].
pub fn alltoall(call: &Call<'_>, send: &Blocks, receive: &Blocks) -> Result<Schedule> {
    let neighbours = call.neighbours()?;
    send.check_apart_from_others(neighbours.destinations.len(), receive, neighbours.sources.len())?;
    exchange(&call.signed(Signature::neighbours(true)), |block| send.region(block), |block| receive.region(block))
}

fn exchange(call: &Call<'_>, send: impl Fn(usize) -> Region, receive: impl Fn(usize) -> Region) -> Result<Schedule> {
    call.goes_by_messages();
    let (neighbours, this) = (call.neighbours()?, call.rank() as i32);
    let mut schedule = Schedule::new(call);
    let (mut to_this, mut from_this) = (Vec::new(), Vec::new());
    for &block in &neighbours.order {
        match neighbours.sources[block] {
            MPI_PROC_NULL => {}
            source if source == this => to_this.push(block),
            source => schedule.receive(source as usize, receive(block)),
        }
    }
    for (block, &destination) in neighbours.destinations.iter().enumerate() {
        match destination {
            MPI_PROC_NULL => {}
            _ if destination == this => from_this.push(block),
            _ => schedule.send(destination as usize, send(block)),
        }
    }
    if to_this.len() != from_this.len() {
        fail!(
            MPI_ERR_TOPOLOGY,
            "this process is {} times among its own destinations, but {} times among its own sources",
            from_this.len(),
            to_this.len()
        );
    }
    for (from, to) in from_this.into_iter().zip(to_this) {
        schedule.copy(send(from), receive(to))?;
    }
    Ok(schedule)
}
