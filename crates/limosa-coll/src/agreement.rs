//! Collectives for other layers: a barrier, and exchanges of bytes between all members.

use super::buffer::Blocks;
use super::exchange::own_among_all;
use super::kind::{Collective, Signature};
use super::state::CommState;
use super::{Call, allgather, alltoall, check};
use limosa_mpi::comm::{self, Agreement, Comm};
use limosa_mpi::consts::MPI_BYTE;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
pub fn barrier(comm: &Comm) -> Result<()> {
    super::barrier::run(&Call::begin(comm))
}

/// Exchanges bytes of the same length between all members; returns them in rank order.
///
/// # Errors
/// Errors of the machine.
pub fn allgather_bytes(comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    let mut all = own_among_all(comm, mine);
    let blocks = Blocks::even(all.as_mut_ptr(), mine.len() as i64, Datatype::named(MPI_BYTE), comm.size(), "all")?;
    check::agree_on_making(comm, Collective::Allgather)?;
    let call = Call::begin(comm);
    allgather::run(&call.signed(Signature::making(Collective::Allgather)), None, &blocks)?;
    Ok(all)
}

/// Sends each member its part, of any length; returns the parts for this rank in rank order.
///
/// # Errors
/// `MPI_ERR_NO_MEM`, and errors of the machine.
pub fn alltoall_bytes(comm: &Comm, parts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let byte = || Datatype::named(MPI_BYTE);
    let mut lengths: Vec<u64> = parts.iter().map(|part| part.len() as u64).collect();
    let blocks = Blocks::even(lengths.as_mut_ptr().cast(), 8, byte(), comm.size(), "lengths")?;
    check::agree_on_making(comm, Collective::Alltoall)?;
    let call = Call::begin(comm);
    alltoall::run(&call.signed(Signature::making(Collective::Alltoall)), None, &blocks)?;
    let displacements = |lengths: &[i64]| {
        let ends = lengths.iter().scan(0, |end: &mut i64, length| Some(std::mem::replace(end, *end + length)));
        ends.collect::<Vec<i64>>()
    };
    let mut sent = parts.concat();
    // The address of an empty vector would be that of MPI_IN_PLACE.
    sent.reserve(1);
    let counts: Vec<i64> = parts.iter().map(|part| part.len() as i64).collect();
    let send = Blocks::uneven(sent.as_mut_ptr(), &counts, displacements(&counts), byte(), "parts")?;
    let Some(counts) = lengths.iter().map(|length| i64::try_from(*length).ok()).collect::<Option<Vec<i64>>>() else {
        fail!(MPI_ERR_INTERN, "another process has announced more bytes than there can be");
    };
    let all = counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count as usize));
    let mut received: Vec<u8> = Vec::new();
    if all.is_none_or(|all| received.try_reserve_exact(all.max(1)).is_err()) {
        fail!(MPI_ERR_NO_MEM, "there is not enough memory for what other processes send about a communicator");
    }
    received.resize(all.unwrap_or(0), 0);
    let starts = displacements(&counts);
    let receive = Blocks::uneven(received.as_mut_ptr(), &counts, starts.clone(), byte(), "parts")?;
    alltoall::run(&Call::begin(comm).signed(Signature::making(Collective::Alltoall)), Some(&send), &receive)?;
    let part = |(start, count): (&i64, &i64)| received[*start as usize..][..*count as usize].to_vec();
    Ok(starts.iter().zip(&counts).map(part).collect())
}

/// Returns how another rank's last blocking operation differs from this rank's, as far as shared memory shows it, where
/// the operation itself needed no other rank and therefore did not notice.
pub fn unseen_difference(comm: &Comm) -> Option<String> {
    CommState::of(comm).group_if_any()?.unseen_difference(comm)
}

/// The agreement that the layer below calls: see [`Agreement`].
struct ByCollectives;

impl Agreement for ByCollectives {
    fn allgather_bytes(&self, comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
        allgather_bytes(comm, mine)
    }

    fn alltoall_bytes(&self, comm: &Comm, parts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        alltoall_bytes(comm, parts)
    }
}

/// Lets communicators be created by means of collectives. Call it before the first communicator is created.
pub fn plug_in() {
    comm::plug_in(&ByCollectives);
}
