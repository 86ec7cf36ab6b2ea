//! Allgather of short contributions in few steps (Bruck and others, 1997), for any number of ranks. The number of
//! contributions at a rank doubles in every step. They are collected as plain bytes, beginning with the rank's own, and
//! copied to their places at the end.
//!
//! Cost for contributions of n bytes: ceil(log2 p) a + (p - 1) n b, and p n bytes copied.

use limosa_p2p::memory::Region;

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let bytes = receive.bytes(rank);
    let start = s.temporary(size * bytes)?;
    // SAFETY: inside the temporary memory, which has room for all ranks.
    let part =
        |first: usize, ranks: usize| unsafe { Region::contiguous(start.wrapping_add(first * bytes), ranks * bytes) };
    match send {
        Some(send) => {
            s.copy(send.region(), receive.region(rank))?;
            s.copy(send.region(), part(0, 1))?;
        }
        None => s.copy(receive.region(rank), part(0, 1))?,
    }
    let mut have = 1;
    while have < size {
        let more = have.min(size - have);
        s.receive((rank + have) % size, part(have, more));
        s.send((rank + size - have) % size, part(0, more));
        s.wait();
        have += more;
    }
    // Place i holds the contribution of rank (rank + i) mod p.
    let after = size - rank - 1;
    s.copy(part(1, after), receive.run(rank + 1, after).region())?;
    s.copy(part(1 + after, rank), receive.run(0, rank).region())
}
