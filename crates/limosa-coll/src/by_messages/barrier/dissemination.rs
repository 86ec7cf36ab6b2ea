//! Barrier by dissemination: in round k every rank signals the rank 2^k further on. After the last round, each rank has
//! heard of all others, directly or indirectly.
//!
//! Cost: ceil(log2 p) a.

use crate::Schedule;

pub(crate) fn plan(s: &mut Schedule) {
    let (rank, size) = (s.rank(), s.size());
    let mut distance = 1;
    while distance < size {
        s.receive_signal((rank + size - distance) % size);
        s.signal((rank + distance) % size);
        s.wait();
        distance *= 2;
    }
}
