//! Scatter in one step: the root sends to everybody, first to its next neighbour.
//!
//! Cost for parts of n bytes: a + (p - 1) (n b + o) at the root, where `o` is the time that it needs to start a send.

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Blocks>, receive: Option<&Buffer>, root: usize) -> Result<()> {
    let Some(send) = send.filter(|_| s.rank() == root) else {
        if let Some(receive) = receive {
            s.receive(root, receive.region());
        }
        return Ok(());
    };
    for step in 1..s.size() {
        let to = (root + step) % s.size();
        s.send(to, send.region(to));
    }
    match receive {
        Some(receive) => s.copy(send.region(root), receive.region()),
        None => Ok(()),
    }
}
