//! Reductions.
//!
//! Operands that fit a slot are put on the stage, and who needs a result combines them there. If all need the same result and ranks share processors,
//! the last one to arrive combines for all. Larger operands are reduced by pieces ([`super::pieces`]).

use std::sync::Arc;

use super::fold::Reducer;
use super::memory::{Flat, Scratch, read, write};
use super::pieces::{self, Delivery};
use super::posted::Place;
use super::select;
use super::turn::Turn;
use crate::coll::buffer::Buffer;
use crate::coll::schedule::copy_own;
use crate::error::Result;
use crate::op::Op;
use limosa_p2p::memory::Region;

/// All ranks get the operands combined.
pub(in crate::coll) fn allreduce(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    let (bytes, size) = (input.bytes(), turn.size());
    let in_place = input.base == result.base;
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(turn.node, turn.kind, bytes) {
        let outcome = pieces::reduce(turn, &reducer, input, Some(&result.region()), false, Delivery::All);
        if outcome.is_err() {
            // Ranks with small operands count who comes.
            leave_early(turn)?;
        }
        return outcome;
    }
    let kept = turn.contribute(&input.region(), in_place)?;
    if !select::meets_in_the_middle(turn.node) {
        turn.wait_for_all()?;
        let folded = reducer.fold_to(turn, 0..size, bytes, 0..bytes, result);
        return turn.settle_own(kept, folded);
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
    let in_place = result.is_some_and(|result| result.base == input.base);
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(turn.node, turn.kind, bytes) {
        return pieces::reduce(turn, &reducer, input, result.map(Buffer::region).as_ref(), false, Delivery::To(root));
    }
    let kept = turn.contribute(&input.region(), in_place)?;
    let folded = match result {
        None => Ok(()),
        Some(result) => {
            turn.wait_for_all()?;
            reducer.fold_to(turn, 0..size, bytes, 0..bytes, result)
        }
    };
    turn.settle_own(kept, folded)
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
    if !select::folds(turn.node, turn.kind, bytes) {
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
    let kept = turn.contribute(&input.region(), in_place)?;
    if own.bytes() == 0 {
        return turn.settle_own(kept, Ok(()));
    }
    turn.wait_for_all()?;
    let first = counts[..me].iter().sum::<usize>() * reducer.element();
    let folded = reducer.fold_to(turn, 0..size, bytes, first..first + own.bytes(), own);
    turn.settle_own(kept, folded)
}

/// Each rank gets the operands of the ranks up to itself combined.
pub(in crate::coll) fn scan(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    prefix(turn, input, result, op, true)
}

/// Each rank but the first gets the operands of the ranks before itself combined.
pub(in crate::coll) fn exscan(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    prefix(turn, input, result, op, false)
}

/// Small operands go along a chain: each rank puts its own to what the one before it has combined, and passes that on. It waits for nobody else, so that
/// in a row of such operations ranks run ahead of those behind them.
fn prefix(turn: &Turn<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>, with_own: bool) -> Result<()> {
    let (bytes, me) = (input.bytes(), turn.me());
    let in_place = input.base == result.base;
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(turn.node, turn.kind, bytes) {
        let region = (with_own || me > 0).then(|| result.region());
        return pieces::reduce(turn, &reducer, input, region.as_ref(), false, Delivery::Prefixes { with_own });
    }
    let own = input.region();
    if me == 0 {
        let kept = turn.contribute(&own, false)?;
        let copied = if with_own && !in_place { copy_own(me, &own, &result.region()) } else { Ok(()) };
        return turn.settle_own(kept, copied);
    }
    let posted = turn.agree_with(me - 1, bytes)?;
    let scratch;
    let before = match posted.place {
        Place::Here(start) => start,
        _ => {
            scratch = Scratch::take(bytes)?;
            // SAFETY: scratch memory of as many bytes.
            turn.take(me - 1, posted, &unsafe { Region::contiguous(scratch.start(), bytes) })?;
            scratch.start()
        }
    };
    // SAFETY: memory on the stage, of the result, or temporary memory, of as many bytes; what comes before was posted, and stays until this rank has
    // finished. An operand that is in place already is left there.
    let combine = |into: *mut u8| unsafe {
        if own.as_contiguous() != Some(into) {
            read(&own, std::slice::from_raw_parts_mut(into, bytes));
        }
        reducer.combine(before, into, bytes)
    };
    let received = result.region();
    let is_last = me + 1 == turn.size();
    let flat;
    let (combined, kept) = if !is_last {
        turn.contribute_filled(bytes, combine)?
    } else if !with_own {
        (before, None)
    } else if let Some(start) = received.as_contiguous() {
        return combine(start);
    } else {
        flat = Flat::temporary(bytes)?;
        combine(flat.start())?;
        (flat.start().cast_const(), None)
    };
    if bytes > 0 {
        // SAFETY: bytes on the stage, which stay until this rank has finished, or in temporary memory.
        write(&received, unsafe { std::slice::from_raw_parts(if with_own { combined } else { before }, bytes) });
    }
    turn.settle_own(kept, Ok(()))
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
