//! Messages between the members of a communicator whose lengths both sides know: for layers above that have their own
//! collective operations.

use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

use super::{Call, Schedule};

/// What one rank sends and receives in one round.
#[derive(Default)]
pub struct Round {
    /// Rank of the receiver, and what it gets.
    pub sends: Vec<(usize, Region)>,
    /// Rank of the sender, and room for exactly what it sends.
    pub receives: Vec<(usize, Region)>,
    /// What this rank sends itself, and where that goes.
    pub own: Option<(Region, Region)>,
}

/// Moves the data of one round. All members call this, also those that have nothing to send or to receive.
///
/// # Errors
/// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` when ranks disagree about the length of a message, and errors of the machine.
pub fn exchange_regions(comm: &Comm, round: Round) -> Result<()> {
    let mut schedule = Schedule::new(&Call::begin(comm));
    for (from, region) in round.receives {
        schedule.receive(from, region);
    }
    for (to, region) in round.sends {
        schedule.send(to, region);
    }
    if let Some((from, to)) = round.own {
        schedule.copy(from, to)?;
    }
    super::run(comm, schedule)
}
