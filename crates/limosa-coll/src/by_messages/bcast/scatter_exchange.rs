//! Broadcast of large messages: the root sends every rank a different slice, then all ranks exchange their slices.
//!
//! The slices are cut by bytes of the message, because ranks may describe it with different datatypes. Where the data
//! are not contiguous, the message passes through a contiguous copy.
//!
//! Cost for n bytes: 2 a + 2 (p - 1)/p n b, instead of log2 p n b.

use limosa_p2p::memory::Region;

use crate::Schedule;
use crate::buffer::Buffer;
use crate::exchange::exchange;
use limosa_mpi::error::Result;

/// Slices are multiples of this number of bytes, so that no two ranks write to one cache line.
const LINE: usize = 64;

pub(crate) fn plan(s: &mut Schedule, buffer: &Buffer, root: usize) -> Result<()> {
    let (rank, size, bytes) = (s.rank(), s.size(), buffer.bytes());
    let start = match buffer.region().as_contiguous() {
        Some(start) => start,
        None => s.temporary(bytes)?,
    };
    let is_copy = buffer.region().as_contiguous().is_none();
    // SAFETY: the buffer's memory, or temporary memory of its length.
    let stream = unsafe { Region::contiguous(start, bytes) };
    let share = bytes.div_ceil(size).next_multiple_of(LINE);
    let slice = |rank: usize| {
        let first = (rank * share).min(bytes);
        // SAFETY: inside the stream.
        unsafe { Region::contiguous(start.wrapping_add(first), share.min(bytes - first)) }
    };
    if rank == root {
        if is_copy {
            s.copy(buffer.region(), stream.clone())?;
        }
        for step in 1..size {
            let to = (root + step) % size;
            s.send(to, slice(to));
        }
    } else {
        s.receive(root, slice(rank));
    }
    s.wait();
    // The root has everything, and has already sent each rank its slice.
    let nothing = Region::empty;
    exchange(
        s,
        |to| if to == root { nothing() } else { slice(rank) },
        |from| if rank == root { nothing() } else { slice(from) },
    );
    if is_copy && rank != root {
        s.wait();
        s.copy(stream, buffer.region())?;
    }
    Ok(())
}
