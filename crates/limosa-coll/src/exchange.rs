//! Every rank sends something to every other rank: the core of the one-step algorithms.
//!
//! In step `k` rank `r` sends to `r + k` and receives from `r - k`, so that no rank is everybody's partner at once. `WINDOW` steps make a
//! round: enough to overlap their latencies, few enough that a large job does not post thousands of transfers at once.
//!
//! Cost for blocks of n bytes: ceil((p - 1) / WINDOW) a + (p - 1) n b, where `a` is the latency of a message and `b` the time of a byte.

use limosa_p2p::memory::Region;

use super::run::run;
use super::schedule::{Member, Schedule};
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;

/// Transfers to and from this many partners are under way at once.
pub(super) const WINDOW: usize = 32;

/// Sends `send(j)` to and receives `receive(j)` from every other rank `j`. The last round is left open, for steps that need not wait for it.
pub(super) fn exchange(s: &mut Schedule, send: impl Fn(usize) -> Region, receive: impl Fn(usize) -> Region) {
    let (rank, size) = (s.rank(), s.size());
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        s.receive(from, receive(from));
        s.send(to, send(to));
        if step % WINDOW == 0 && step + 1 < size {
            s.wait();
        }
    }
}

/// Tells all members the bytes of each, which have the same length everywhere; returns them in rank order. The messages have this tag.
///
/// # Errors
/// Errors of the machine.
pub(super) fn allgather_by_messages(comm: &Comm, tag: i32, mine: &[u8]) -> Result<Vec<u8>> {
    let (rank, length) = (comm.rank() as usize, mine.len());
    let mut all = own_among_all(comm, mine);
    let start = all.as_mut_ptr();
    // SAFETY: the blocks lie in `all`, which lives to the end of this function; no step uses the block of another transfer.
    let block = |rank: usize| unsafe { Region::contiguous(start.add(rank * length), length) };
    let mut schedule = Schedule::new(Member { rank, size: comm.size(), tag });
    exchange(&mut schedule, |_| block(rank), block);
    run(comm, schedule)?;
    Ok(all)
}

/// Room for the bytes of all members, with this one's in place.
pub(super) fn own_among_all(comm: &Comm, mine: &[u8]) -> Vec<u8> {
    let mut all = vec![0; mine.len() * comm.size()];
    all[comm.rank() as usize * mine.len()..][..mine.len()].copy_from_slice(mine);
    all
}
