//! Allreduce by recursive doubling. In step k, pairs of ranks 2^k apart exchange partial results, and both combine them
//! with the lower rank's on the left. Partial results cover consecutive ranks, so the order is rank order.
//!
//! If p is not a power of two, the excess ranks first add their operand to that of the next rank, and receive the
//! result at the end.
//!
//! Cost for n bytes: log2 p (a + n b + n g), and 2 (a + n b) + n g more if p is not a power of two.

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, input: &Buffer, result: &Buffer) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let places = 1 << size.ilog2();
    let excess = size - places;
    // The even ranks among the first 2 * excess ranks take no part in the doubling.
    if rank < 2 * excess && rank % 2 == 0 {
        s.send(rank + 1, input.region());
        s.wait();
        s.receive(rank + 1, result.region());
        return Ok(());
    }
    let place = if rank < 2 * excess { rank / 2 } else { rank - excess };
    let rank_at = |place: usize| if place < excess { 2 * place + 1 } else { place + excess };

    // The partner's operand from the higher ranks is combined into the memory that it arrived in, `mine op theirs`, and
    // the two buffers swap roles. The first roles are chosen so that the last swap leaves the result in its place.
    let changes = (0..places.ilog2()).filter(|step| place >> step & 1 == 0).count();
    let mut mine = result.clone();
    let mut theirs = if size > 1 { s.elements(input.count, &input.datatype)? } else { result.clone() };
    if changes % 2 == 1 {
        std::mem::swap(&mut mine, &mut theirs);
    }
    // The operand is sent from where it is, and copied while the partner's one arrives: unless that arrives in the
    // operand's place, or the operand of an excess rank is combined with it before.
    let is_copied_first = rank < 2 * excess || input.base == result.base || places == 1;
    if is_copied_first && mine.base != input.base {
        s.copy(input.region(), mine.region())?;
    }
    let mut operand = (!is_copied_first).then(|| input.clone());
    if rank < 2 * excess {
        s.receive(rank - 1, theirs.region());
        s.wait();
        s.reduce(&theirs, &mine);
    }
    let mut distance = 1;
    while distance < places {
        let partner = rank_at(place ^ distance);
        s.receive(partner, theirs.region());
        let sent = operand.take().unwrap_or_else(|| mine.clone());
        s.send(partner, sent.region());
        if partner < rank && sent.base != mine.base {
            s.copy(sent.region(), mine.region())?;
        }
        s.wait();
        if partner < rank {
            s.reduce(&theirs, &mine);
        } else {
            s.reduce(&sent, &theirs);
            std::mem::swap(&mut mine, &mut theirs);
        }
        distance *= 2;
    }
    if rank < 2 * excess {
        s.send(rank - 1, result.region());
    }
    Ok(())
}
