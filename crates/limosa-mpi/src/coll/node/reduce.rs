//! Reductions.
//!
//! Operands that fit a slot are put on the stage, and who needs a result combines them there. If all need the same result and ranks share processors,
//! the last one to arrive combines for all. Larger operands are reduced by pieces ([`super::pieces`]).

use std::sync::Arc;

use super::fold::Reducer;
use super::memory::Scratch;
use super::pieces::{self, Delivery};
use super::posted::Place;
use super::select;
use super::turn::Turn;
use crate::coll::buffer::Buffer;
use crate::error::Result;
use crate::op::Op;

/// All ranks get the operands combined.
pub(in crate::coll) fn allreduce(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    let (bytes, size) = (input.bytes(), turn.size());
    let reducer = Reducer::new(op, input, input.base == result.base);
    if bytes > turn.slot_bytes() {
        let outcome = pieces::reduce(turn, &reducer, input, Some(&result.region()), false, Delivery::All);
        if outcome.is_err() {
            // Ranks with small operands count who comes.
            leave_early(turn)?;
        }
        return outcome;
    }
    turn.put(&input.region())?;
    if !select::meets_in_the_middle(turn.node) {
        turn.wait_for_all()?;
        return reducer.fold_to(turn, 0..size, bytes, 0..bytes, result);
    }
    if turn.arrive()? {
        combine_for_all(turn, &reducer, bytes)?;
    } else {
        turn.wait_for(size)?;
    }
    turn.node.raise_floor(turn.number() - 1);
    let posted = turn.posted(size)?;
    if matches!(posted.place, Place::Nowhere) {
        // Ranks disagree: with whom, each finds out by itself.
        for rank in 0..size {
            turn.check(rank, turn.posted(rank)?, bytes)?;
        }
    }
    turn.take(size, turn.check(size, posted, bytes)?, &result.region())
}

/// The last rank to arrive combines the operands and posts the result as the note of the group.
fn combine_for_all(turn: &Turn<'_>, reducer: &Reducer<'_>, bytes: usize) -> Result<()> {
    let size = turn.size();
    let outcome = turn.speak_for_all(bytes, |into| {
        // SAFETY: `into` has room for the operand, and nobody else uses it.
        unsafe { reducer.fold(turn, 0..size, bytes, 0..bytes, into) }
    });
    if outcome.is_err() {
        turn.speak_for_all_of_failure();
    }
    outcome
}

/// This rank takes no part in a reduction to all, but must be counted.
fn leave_early(turn: &Turn<'_>) -> Result<()> {
    if select::meets_in_the_middle(turn.node) && turn.arrive()? {
        turn.speak_for_all_of_failure();
    }
    Ok(())
}

/// The root gets the operands combined.
pub(in crate::coll) fn reduce(turn: &Turn<'_>, input: &Buffer, result: Option<&Buffer>, op: &Arc<Op>, root: usize) -> Result<()> {
    let (bytes, size) = (input.bytes(), turn.size());
    let reducer = Reducer::new(op, input, result.is_some_and(|result| result.base == input.base));
    if bytes > turn.slot_bytes() {
        return pieces::reduce(turn, &reducer, input, result.map(Buffer::region).as_ref(), false, Delivery::To(root));
    }
    turn.put(&input.region())?;
    let Some(result) = result else { return Ok(()) };
    turn.wait_for_all()?;
    reducer.fold_to(turn, 0..size, bytes, 0..bytes, result)
}

/// Each rank gets its part, of `counts[rank]` elements, of the operands combined.
pub(in crate::coll) fn reduce_scatter(
    turn: &Turn<'_>,
    input: &Buffer,
    in_place: bool,
    counts: &[usize],
    own: &Buffer,
    op: &Arc<Op>,
) -> Result<()> {
    let (bytes, size, me) = (input.bytes(), turn.size(), turn.me());
    let reducer = Reducer::new(op, input, in_place);
    if bytes > turn.slot_bytes() {
        let mut end = 0;
        let ends: Vec<usize> = counts
            .iter()
            .map(|count| {
                end += count * reducer.element();
                end
            })
            .collect();
        return pieces::reduce(turn, &reducer, input, Some(&own.region()), in_place, Delivery::Parts(&ends));
    }
    turn.put(&input.region())?;
    turn.wait_for_all()?;
    let first = counts[..me].iter().sum::<usize>() * reducer.element();
    reducer.fold_to(turn, 0..size, bytes, first..first + own.bytes(), own)
}

/// Each rank gets the operands of the ranks up to itself combined.
pub(in crate::coll) fn scan(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    prefix(turn, input, result, op, true)
}

/// Each rank but the first gets the operands of the ranks before itself combined.
pub(in crate::coll) fn exscan(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    prefix(turn, input, result, op, false)
}

fn prefix(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>, with_own: bool) -> Result<()> {
    let (bytes, me) = (input.bytes(), turn.me());
    let reducer = Reducer::new(op, input, input.base == result.base);
    let gets_any = with_own || me > 0;
    if bytes > turn.slot_bytes() {
        let region = gets_any.then(|| result.region());
        return pieces::reduce(turn, &reducer, input, region.as_ref(), false, Delivery::Prefixes { with_own });
    }
    turn.put(&input.region())?;
    if !gets_any {
        return Ok(());
    }
    for rank in (0..me).rev() {
        turn.wait_for(rank)?;
    }
    let ranks = 0..if with_own { me + 1 } else { me };
    reducer.fold_to(turn, ranks, bytes, 0..bytes, result)
}

impl Turn<'_> {
    /// Contributes, on behalf of all, `bytes` bytes that `fill` writes.
    fn speak_for_all(&self, bytes: usize, fill: impl FnOnce(*mut u8) -> Result<()>) -> Result<()> {
        match self.slot_for_all(bytes) {
            Some(slot) => {
                fill(slot)?;
                self.post_slot_for_all(bytes);
            }
            None => {
                let scratch = Scratch::take(bytes)?;
                fill(scratch.start())?;
                // SAFETY: scratch memory of at least this many bytes, all of which have a value.
                self.post_bytes_for_all(unsafe { std::slice::from_raw_parts(scratch.start(), bytes) });
            }
        }
        Ok(())
    }
}
