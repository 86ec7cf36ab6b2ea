//! All to all, block by block. In place, what is to be sent is copied away first.
//!
//! Cost for blocks of n bytes: ceil((p - 1) / WINDOW) a + (p - 1) n b, and in place p n bytes copied.

use limosa_p2p::memory::Region;

use crate::Schedule;
use crate::buffer::Blocks;
use crate::exchange::exchange;
use limosa_mpi::error::Result;

pub(super) fn plan(s: &mut Schedule, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    if let Some(send) = send {
        exchange(s, |to| send.region(to), |from| receive.region(from));
        return s.copy(send.region(rank), receive.region(rank));
    }
    // What goes to a rank has the length of what comes from it, and a rank's own block stays where it is.
    let mut first = Vec::with_capacity(size);
    let mut bytes = 0;
    for peer in 0..size {
        first.push(bytes);
        bytes += if peer == rank { 0 } else { receive.bytes(peer) };
    }
    let start = s.temporary(bytes)?;
    // SAFETY: inside the temporary memory.
    let packed = |peer: usize| unsafe { Region::contiguous(start.wrapping_add(first[peer]), receive.bytes(peer)) };
    for peer in (0..size).filter(|&peer| peer != rank) {
        s.copy(receive.region(peer), packed(peer))?;
    }
    exchange(s, packed, |from| receive.region(from));
    Ok(())
}
