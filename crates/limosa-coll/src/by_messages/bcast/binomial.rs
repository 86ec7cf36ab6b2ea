//! Broadcast along a binomial tree: the number of ranks that have the message doubles in every step. The root sends to
//! the farthest subtree first.
//!
//! Cost for n bytes: ceil(log2 p) (a + n b).

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, buffer: &Buffer, root: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    // Ranks counted from the root: the parent lacks the lowest bit of `place`; children have one more bit below it.
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
