//! Gather to all in one step: every rank sends its contribution to every other.
//!
//! Cost for contributions of n bytes: ceil((p - 1) / WINDOW) a + (p - 1) n b.

use crate::Schedule;
use crate::buffer::{Blocks, Buffer};
use crate::exchange::exchange;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let rank = s.rank();
    let own = send.map_or_else(|| receive.region(rank), Buffer::region);
    exchange(s, |_| own.clone(), |from| receive.region(from));
    match send {
        Some(send) => s.copy(send.region(), receive.region(rank)),
        None => Ok(()),
    }
}
