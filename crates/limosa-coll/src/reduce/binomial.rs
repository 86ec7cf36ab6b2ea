//! Reduce along a binomial tree: in step k every rank whose k lower bits are 0 takes in the partial result of the one
//! 2^k further on, so that partial results always cover neighbouring ranks.
//!
//! The tree ends at rank 0, which passes the result on if the root is another one ([`plan`]); or, for operations that
//! commute, at the root, with ranks counted from there ([`plan_rotated`]).
//!
//! Cost for n bytes: ceil(log2 p) (a + n b + n g), where `g` is the time to combine a byte; one message more for the
//! first form if the root is not rank 0.

use crate::Schedule;
use crate::buffer::Buffer;
use limosa_mpi::error::Result;

/// In rank order.
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

/// In the order of ranks from the root on, and around.
pub(crate) fn plan_rotated(s: &mut Schedule, input: &Buffer, result: Option<&Buffer>, root: usize) -> Result<()> {
    tree(s, input, result, root)
}

/// The tree that ends at `root`, which puts the result into `result`. `input` and `result` may be the same.
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
    // A child's operand is combined into the memory that it arrived in, `partial op child`: the two buffers take turns,
    // so that the last one is where the result is wanted.
    let mut partial = input.clone();
    let mut turns: [Option<Buffer>; 2] = [None, result.cloned().filter(|_| place == 0)];
    for (i, child) in children.iter().enumerate() {
        let operand = &mut turns[(children.len() - i) % 2];
        let arriving = match operand {
            Some(buffer) => buffer.clone(),
            None => operand.insert(s.elements(input.count, &input.datatype)?).clone(),
        };
        if arriving.base == partial.base {
            // In place with the operand where the first child's is to arrive.
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
