//! Gather in one step: everybody sends to the root.
//!
//! Cost for contributions of n bytes: a + (p - 1) (n b + o) at the root, where `o` is the time that it needs to post a receive.

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Buffer>, receive: Option<&Blocks>, root: usize) -> Result<()> {
    let Some(receive) = receive.filter(|_| s.rank() == root) else {
        if let Some(send) = send {
            s.send(root, send.region());
        }
        return Ok(());
    };
    for from in (0..s.size()).filter(|&from| from != root) {
        s.receive(from, receive.region(from));
    }
    match send {
        Some(send) => s.copy(send.region(), receive.region(root)),
        None => Ok(()),
    }
}
