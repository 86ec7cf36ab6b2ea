//! Messages between the members of a communicator with lengths that both sides know, for upper layers with collective
//! operations of their own.

use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

use super::{Call, Schedule};

/// Messages of one rank in one round.
#[derive(Default)]
pub struct Round {
    /// Rank of the receiver, and the data for it.
    pub sends: Vec<(usize, Region)>,
    /// Rank of the sender, and memory of exactly the length that it sends.
    pub receives: Vec<(usize, Region)>,
    /// Source and destination of the data for this rank itself.
    pub own: Option<(Region, Region)>,
}

/// Moves the data of one round. All members call this, also those without messages.
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
