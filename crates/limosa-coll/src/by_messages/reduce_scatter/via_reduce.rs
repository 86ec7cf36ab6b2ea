//! Reduce-scatter of few elements over many ranks: a reduction to rank 0, which sends each rank its part.
//!
//! Cost for n bytes in all: ceil(log2 p) (a + n b + n g) + a + n b.

use crate::Schedule;
use crate::buffer::Buffer;
use crate::by_messages::reduce::binomial;
use limosa_mpi::error::Result;

pub(crate) fn plan(s: &mut Schedule, input: &Buffer, counts: &[usize], own: &Buffer) -> Result<()> {
    if s.rank() != 0 {
        binomial::plan(s, input, None, 0)?;
        s.wait();
        s.receive(0, own.region());
        return Ok(());
    }
    let combined = s.elements(input.count, &input.datatype)?;
    binomial::plan(s, input, Some(&combined), 0)?;
    let mut first = 0;
    for (to, &count) in counts.iter().enumerate() {
        let part = combined.slice(first, count).region();
        if to == 0 {
            s.copy(part, own.region())?
        } else {
            s.send(to, part)
        }
        first += count;
    }
    Ok(())
}
