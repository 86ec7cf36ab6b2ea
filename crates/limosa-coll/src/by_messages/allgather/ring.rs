//! Allgather around a ring: every rank forwards the contribution that it has just received to the next rank.
//!
//! Cost for contributions of n bytes: (p - 1) (a + n b). More steps than an exchange, but a rank has two partners only.

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    if let Some(send) = send {
        s.copy(send.region(), receive.region(rank))?;
    }
    let (before, after) = ((rank + size - 1) % size, (rank + 1) % size);
    for step in 1..size {
        s.receive(before, receive.region((rank + size - step) % size));
        s.send(after, receive.region((rank + size - step + 1) % size));
        s.wait();
    }
    Ok(())
}
