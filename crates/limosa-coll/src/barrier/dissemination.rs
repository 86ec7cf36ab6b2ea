//! Barrier by dissemination: in round k every rank signals the one 2^k further on. After the last round each has heard,
//! directly or through others, of everybody.
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
