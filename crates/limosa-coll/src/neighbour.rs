//! Neighbourhood collectives (MPI-5 section 8.6): every process exchanges blocks with its neighbours in the topology of
//! the communicator.
//!
//! They go through memory that all members share, if there is any: blocking ones by [`shared::neighbours`], others by
//! `background::neighbours`.
//!
//! Otherwise there is one round of messages to and from all neighbours. The order alone determines which block a
//! message fills: messages between two processes are received in the order in which they are sent ([`Neighbours`]).
//! Blocks for the process itself are copied.

use limosa_p2p::memory::Region;

use super::background::{self, NeighbourExchange};
use super::buffer::{Blocks, Buffer};
use super::choice::counts;
use super::kind::Collective;
use super::schedule::check_own;
use super::shared::{self, Exchange, Sent};
use super::{Call, Plan, Schedule};
use limosa_mpi::consts::MPI_PROC_NULL;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::topo::Neighbours;

/// Sends this process's buffer to all its neighbours, and receives theirs. `receive` has one block per source.
///
/// # Errors
/// As for [`allgather`], and errors of the machine.
pub fn run_allgather(call: &Call<'_>, send: &Buffer, receive: &Blocks) -> Result<()> {
    let neighbours = call.neighbours()?;
    receive.check_apart_from(neighbours.sources.len(), send)?;
    let own = own_blocks(neighbours, call.rank() as i32)?;
    let call = &call.signed(Collective::NeighborAllgather);
    let Some(shared_call) = call.shared_exchange(Collective::NeighborAllgather, send.bytes()) else {
        return super::run(call.comm, allgather(call, send, receive)?);
    };
    let exchange = Exchange { neighbours, send: Sent::Whole(send), receive, own: &own };
    shared::neighbours(&shared_call, &exchange, || Schedule::new(call))
}

/// Sends a block to each of this process's neighbours, and receives theirs. `send` has one block per destination,
/// `receive` one per source.
///
/// # Errors
/// As for [`alltoall`], and errors of the machine.
pub fn run_alltoall(call: &Call<'_>, send: &Blocks, receive: &Blocks) -> Result<()> {
    let neighbours = call.neighbours()?;
    let (here, there) = (neighbours.destinations.len(), neighbours.sources.len());
    send.check_apart_from_others(here, receive, there)?;
    let own = own_blocks(neighbours, call.rank() as i32)?;
    let call = &call.signed(Collective::NeighborAlltoall);
    let longest = if here == 0 { 0 } else { send.most_bytes(here) };
    let Some(shared_call) = call.shared_exchange(Collective::NeighborAlltoall, longest) else {
        return super::run(call.comm, alltoall(call, send, receive)?);
    };
    let exchange = Exchange { neighbours, send: Sent::Blocks(send), receive, own: &own };
    shared::neighbours(&shared_call, &exchange, || Schedule::new(call))
}

/// Plans what [`run_allgather`] does as an operation in the background.
///
/// # Errors
/// As for [`allgather`], and `MPI_ERR_NO_MEM`.
pub fn background_allgather(call: &Call<'_>, send: &Buffer, receive: &Blocks) -> Result<Plan> {
    receive.check_apart_from(call.neighbours()?.sources.len(), send)?;
    in_background(call, Collective::NeighborAllgather, Sent::Whole(send), receive)
}

/// Plans what [`run_alltoall`] does as an operation in the background.
///
/// # Errors
/// As for [`alltoall`], and `MPI_ERR_NO_MEM`.
pub fn background_alltoall(call: &Call<'_>, send: &Blocks, receive: &Blocks) -> Result<Plan> {
    let neighbours = call.neighbours()?;
    send.check_apart_from_others(neighbours.destinations.len(), receive, neighbours.sources.len())?;
    in_background(call, Collective::NeighborAlltoall, Sent::Blocks(send), receive)
}

fn in_background(call: &Call<'_>, kind: Collective, send: Sent<'_>, receive: &Blocks) -> Result<Plan> {
    let (call, neighbours) = (&call.signed(kind), call.neighbours()?);
    let own = own_blocks(neighbours, call.rank() as i32)?
        .into_iter()
        .map(|(from, to)| (send.region(from), receive.region(to)))
        .collect::<Vec<_>>();
    own.iter().try_for_each(|(from, to)| check_own(call.rank(), from, to))?;
    let bytes = match send {
        Sent::Whole(buffer) => buffer.bytes(),
        Sent::Blocks(blocks) => blocks.all_bytes(neighbours.destinations.len()),
    };
    match call.mailbox_use_for_neighbours(kind, bytes) {
        Some(mailbox_use) => {
            let exchange = NeighbourExchange { neighbours, send, receive, own };
            background::Exchange::with_neighbours(call, kind, mailbox_use.limits, exchange)
                .map(|exchange| Plan::at(mailbox_use, exchange))
        }
        None => exchange(call, kind, |block| send.region(block), |block| receive.region(block)).map(Plan::from),
    }
}

/// Plans that every process sends its buffer to all its neighbours. `receive` has one block per source.
///
/// # Errors
/// `MPI_ERR_TOPOLOGY`, `MPI_ERR_BUFFER`, `MPI_ERR_TRUNCATE`, `MPI_ERR_COUNT`.
pub fn allgather(call: &Call<'_>, send: &Buffer, receive: &Blocks) -> Result<Schedule> {
    receive.check_apart_from(call.neighbours()?.sources.len(), send)?;
    exchange(call, Collective::NeighborAllgather, |_| send.region(), |block| receive.region(block))
}

/// Plans that every process sends a block to each of its neighbours. `send` has one block per destination, `receive`
/// one per source.
///
/// # Errors
/// As for [`allgather`].
pub fn alltoall(call: &Call<'_>, send: &Blocks, receive: &Blocks) -> Result<Schedule> {
    let neighbours = call.neighbours()?;
    send.check_apart_from_others(neighbours.destinations.len(), receive, neighbours.sources.len())?;
    exchange(call, Collective::NeighborAlltoall, |block| send.region(block), |block| receive.region(block))
}

fn exchange(
    call: &Call<'_>,
    kind: Collective,
    send: impl Fn(usize) -> Region,
    receive: impl Fn(usize) -> Region,
) -> Result<Schedule> {
    call.goes_by_messages();
    counts::count_messages(kind, "exchange");
    let (neighbours, this) = (call.neighbours()?, call.rank() as i32);
    let mut schedule = Schedule::new(&call.signed(kind));
    for &block in &neighbours.order {
        match neighbours.sources[block] {
            source if source == MPI_PROC_NULL || source == this => {}
            source => schedule.receive(source as usize, receive(block)),
        }
    }
    for (block, &destination) in neighbours.destinations.iter().enumerate() {
        if destination != MPI_PROC_NULL && destination != this {
            schedule.send(destination as usize, send(block));
        }
    }
    for (from, to) in own_blocks(neighbours, this)? {
        schedule.copy(send(from), receive(to))?;
    }
    Ok(schedule)
}

/// Returns the blocks that a process sends to itself, each with the block that it fills.
///
/// # Errors
/// `MPI_ERR_TOPOLOGY`.
fn own_blocks(neighbours: &Neighbours, this: i32) -> Result<Vec<(usize, usize)>> {
    let Neighbours { sources, destinations, order, .. } = neighbours;
    let sent = (0..destinations.len()).filter(|block| destinations[*block] == this);
    let received = order.iter().copied().filter(|block| sources[*block] == this);
    let (to_this, from_this) = (received.clone().count(), sent.clone().count());
    if to_this != from_this {
        fail!(
            MPI_ERR_TOPOLOGY,
            "this process is {from_this} times among its own destinations, but {to_this} times among its own sources"
        );
    }
    Ok(sent.zip(received).collect())
}
