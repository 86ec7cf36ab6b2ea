//! Reduce to all by recursive doubling: in step k pairs of ranks 2^k apart exchange partial results and combine them,
//! the lower rank's on the left on both sides. Partial results cover neighbouring ranks, so that the order is that of
//! the ranks.
//!
//! With p not a power of two, as many ranks as there are too many first add their operand to that of their next
//! neighbour and get the result at the end.
//!
//! Cost for n bytes: log2 p (a + n b + n g), and 2 (a + n b) + n g more if p is not a power of two.

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, input: &Buffer, result: &Buffer) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let places = 1 << size.ilog2();
    let excess = size - places;
    // Of the first 2 * excess ranks the even ones step back.
    if rank < 2 * excess && rank % 2 == 0 {
        s.send(rank + 1, input.region());
        s.wait();
        s.receive(rank + 1, result.region());
        return Ok(());
    }
    let place = if rank < 2 * excess { rank / 2 } else { rank - excess };
    let rank_at = |place: usize| if place < excess { 2 * place + 1 } else { place + excess };

    // A partner's operand from above is combined into the memory that it arrived in, `mine op theirs`, and the two
    // buffers change roles. The first role is chosen so that the last one leaves the result where it is wanted.
    let changes = (0..places.ilog2()).filter(|step| place >> step & 1 == 0).count();
    let mut mine = result.clone();
    let mut theirs = if size > 1 { s.elements(input.count, &input.datatype)? } else { result.clone() };
    if changes % 2 == 1 {
        std::mem::swap(&mut mine, &mut theirs);
    }
    if mine.base != input.base {
        s.copy(input.region(), mine.region())?;
    }
    if rank < 2 * excess {
        s.receive(rank - 1, theirs.region());
        s.wait();
        s.reduce(&theirs, &mine);
    }
    let mut distance = 1;
    while distance < places {
        let partner = rank_at(place ^ distance);
        s.receive(partner, theirs.region());
        s.send(partner, mine.region());
        s.wait();
        if partner < rank {
            s.reduce(&theirs, &mine);
        } else {
            s.reduce(&mine, &theirs);
            std::mem::swap(&mut mine, &mut theirs);
        }
        distance *= 2;
    }
    if rank < 2 * excess {
        s.send(rank - 1, result.region());
    }
    Ok(())
}
