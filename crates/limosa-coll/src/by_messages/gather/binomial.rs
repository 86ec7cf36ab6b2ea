//! Gather of short contributions of equal length along a binomial tree: every rank collects those of its subtree and
//! sends them on in one message. Contributions travel as plain bytes, since only the root knows their final layout.
//!
//! Cost for contributions of n bytes: ceil(log2 p) a + (p - 1) n b.

use limosa_p2p::memory::Region;

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Buffer>, receive: Option<&Blocks>, root: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let receive = receive.filter(|_| rank == root);
    let bytes = send.map_or_else(|| receive.map_or(0, |blocks| blocks.bytes(root)), Buffer::bytes);
    // Ranks counted from the root; the subtree of a place begins there and ends before the place plus its lowest bit.
    let place = (rank + size - root) % size;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    let subtree = if place == 0 { size } else { bit.min(size - place) };
    if subtree == 1
        && let Some(send) = send
        && place != 0
    {
        s.send((place - bit + root) % size, send.region());
        return Ok(());
    }
    let start = s.temporary(subtree * bytes)?;
    // SAFETY: inside the temporary memory, which has room for the whole subtree.
    let part =
        |first: usize, ranks: usize| unsafe { Region::contiguous(start.wrapping_add(first * bytes), ranks * bytes) };
    let mut child = 1;
    while child < subtree {
        s.receive((place + child + root) % size, part(child, child.min(subtree - child)));
        child *= 2;
    }
    match (receive, send) {
        (Some(receive), own) => {
            if let Some(own) = own {
                s.copy(own.region(), receive.region(root))?;
            }
            s.wait();
            // Place i holds the contribution of rank (root + i) mod p.
            let after = size - root - 1;
            s.copy(part(1, after), receive.run(root + 1, after).region())?;
            s.copy(part(1 + after, root), receive.run(0, root).region())
        }
        (None, Some(own)) => {
            s.copy(own.region(), part(0, 1))?;
            s.wait();
            s.send((place - bit + root) % size, part(0, subtree));
            Ok(())
        }
        (None, None) => Ok(()),
    }
}
