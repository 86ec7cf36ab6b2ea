//! Reduce along a binomial tree: in step k every rank whose k lower bits are 0 receives the partial result of the rank
//! 2^k further on, so that partial results always cover consecutive ranks.
//!
//! The tree ends at rank 0, which sends the result on to a different root ([`plan`]). For operations that commute it
//! can end at the root, with ranks counted from there ([`plan_rotated`]).
//!
//! Cost for n bytes: ceil(log2 p) (a + n b + n g), where `g` is the time to combine a byte; one message more for the
//! first form if the root is not rank 0.

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

/// Plans in rank order.
pub(crate) fn plan(s: &mut Schedule, input: &Buffer, result: Option<&Buffer>, root: usize) -> Result<()> {
    if root == 0 {
        return tree(s, input, result, 0);
    }
    if s.rank() == 0 {
        let combined = s.elements(input.count, &input.datatype)?;
        tree(s, input, Some(&combined), 0)?;
        s.send(root, combined.region());
        return Ok(());
    }
    tree(s, input, None, 0)?;
    if let Some(result) = result {
        s.wait();
        s.receive(0, result.region());
    }
    Ok(())
}

/// Plans in the order of ranks from the root on, cyclically.
pub(crate) fn plan_rotated(s: &mut Schedule, input: &Buffer, result: Option<&Buffer>, root: usize) -> Result<()> {
    tree(s, input, result, root)
}

/// Plans the tree that ends at `root`, with the result in `result`. `input` and `result` may be the same.
fn tree(s: &mut Schedule, input: &Buffer, result: Option<&Buffer>, root: usize) -> Result<()> {
    let (rank, size) = (s.rank(), s.size());
    let place = (rank + size - root) % size;
    let mut bit = 1;
    while bit < size && place & bit == 0 {
        bit *= 2;
    }
    let children: Vec<usize> = std::iter::successors(Some(1), |child| Some(child * 2))
        .take_while(|&child| child < bit && place + child < size)
        .collect();
    if children.is_empty() {
        match result {
            Some(result) if place == 0 && input.base != result.base => s.copy(input.region(), result.region())?,
            _ => {}
        }
    }
    // A child's operand is combined into the memory that it arrived in, `partial op child`. The two buffers alternate,
    // so that the last partial result is in its place.
    let mut partial = input.clone();
    let mut turns: [Option<Buffer>; 2] = [None, result.cloned().filter(|_| place == 0)];
    for (i, child) in children.iter().enumerate() {
        let operand = &mut turns[(children.len() - i) % 2];
        let arriving = match operand {
            Some(buffer) => buffer.clone(),
            None => operand.insert(s.elements(input.count, &input.datatype)?).clone(),
        };
        if arriving.base == partial.base {
            // In place, with the operand where the first child's is to arrive.
            let aside = s.elements(input.count, &input.datatype)?;
            s.copy(partial.region(), aside.region())?;
            partial = aside;
        }
        s.receive((place + child + root) % size, arriving.region());
        s.wait();
        s.reduce(&partial, &arriving);
        partial = arriving;
    }
    if place != 0 {
        s.send((place - bit + root) % size, partial.region());
    }
    Ok(())
}
