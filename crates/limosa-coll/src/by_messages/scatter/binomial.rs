//! Scatter of short parts of equal length along a binomial tree: every rank receives the parts of its subtree in one
//! message, keeps its own and sends the others on. Parts travel as plain bytes, since only the root knows their layout.
//!
//! Cost for parts of n bytes: ceil(log2 p) a + (p - 1) n b.

use limosa_p2p::memory::Region;

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Blocks>, receive: Option<&Buffer>, root: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let send = send.filter(|_| rank == root);
    let bytes = receive.map_or_else(|| send.map_or(0, |blocks| blocks.bytes(root)), Buffer::bytes);
    // Ranks counted from the root; the subtree of a place begins there and ends before the place plus its lowest bit.
    let place = (rank + size - root) % size;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    let subtree = if place == 0 { size } else { bit.min(size - place) };
    if subtree == 1
        && let Some(receive) = receive
        && place != 0
    {
        s.receive((place - bit + root) % size, receive.region());
        return Ok(());
    }
    let start = s.temporary(subtree * bytes)?;
    // SAFETY: inside the temporary memory, which has room for the whole subtree.
    let part =
        |first: usize, ranks: usize| unsafe { Region::contiguous(start.wrapping_add(first * bytes), ranks * bytes) };
    match send {
        Some(send) => {
            // Place i holds the part of rank (root + i) mod p.
            let after = size - root - 1;
            s.copy(send.run(root + 1, after).region(), part(1, after))?;
            s.copy(send.run(0, root).region(), part(1 + after, root))?;
        }
        None => {
            s.receive((place - bit + root) % size, part(0, subtree));
            s.wait();
        }
    }
    let mut child = bit;
    while child > 1 {
        child /= 2;
        if child < subtree {
            s.send((place + child + root) % size, part(child, child.min(subtree - child)));
        }
    }
    match (send, receive) {
        (Some(send), Some(receive)) => s.copy(send.region(root), receive.region()),
        (None, Some(receive)) => s.copy(part(0, 1), receive.region()),
        (_, None) => Ok(()),
    }
}
