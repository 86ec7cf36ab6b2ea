//! Broadcast along a binomial tree: the ranks that have the message double in every step. The root passes it to the
//! farthest subtree first.
//!
//! Cost for n bytes: ceil(log2 p) (a + n b).

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, buffer: &Buffer, root: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    // Ranks counted from the root: the parent is the one without the lowest bit, children are those with one more bit
    // below it.
    let place = (rank + size - root) % size;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    if place != 0 {
        s.receive((place - bit + root) % size, buffer.region());
        s.wait();
    }
    while bit > 1 {
        bit /= 2;
        if place + bit < size {
            s.send((place + bit + root) % size, buffer.region());
        }
    }
    Ok(())
}
