//! Blocking reductions and scans in memory that all members share.
//!
//! Operands that fit a slot are copied to the slots, and ranks that receive a result combine them there. If all receive
//! the same result and ranks share processors, the last rank to arrive combines for all. Larger operands are reduced by
//! pieces ([`super::pieces`]).

use std::sync::Arc;

use limosa_base::slots::BODY_BYTES;

use super::call::SharedCall;
use super::pieces;
use super::select;
use crate::buffer::Buffer;
use crate::disagreement;
use crate::memory::{Flat, Scratch, read, write};
use crate::notes::{Location, Notes, SlotNote, failed_for_all};
use crate::pieces::Delivery;
use crate::reducer::Reducer;
use crate::schedule::copy_own;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;
use limosa_p2p::memory::Region;

/// Combines the operands at all ranks.
pub(crate) fn allreduce(shared_call: &SharedCall<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    let (bytes, size) = (input.bytes(), shared_call.size());
    let in_place = input.base == result.base;
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(shared_call.group, shared_call.kind, bytes) {
        let outcome = pieces::reduce(shared_call, &reducer, input, Some(&result.region()), false, &Delivery::All);
        if outcome.is_err() {
            // With small operands, arriving ranks are counted.
            leave_early(shared_call)?;
        }
        return outcome;
    }
    let kept = shared_call.contribute(&input.region(), in_place)?;
    if !select::meets_in_the_middle(shared_call.group) {
        shared_call.wait_for_all()?;
        let folded = shared_call.led(&reducer).fold_to(shared_call, 0..size, bytes, 0..bytes, result);
        return shared_call.settle_own(kept, folded);
    }
    if shared_call.arrive()? {
        combine_for_all(shared_call, &reducer, bytes)?;
    } else {
        shared_call.wait_for(size)?;
    }
    shared_call.group.raise_floor(shared_call.number() - 1);
    let posted = shared_call.posted(size)?;
    if matches!(posted.place, Location::Nowhere) {
        // Ranks disagree. Each rank finds out by itself with which rank.
        for rank in 0..size {
            shared_call.posted(rank)?.check(rank, bytes)?;
        }
        return Err(failed_for_all(shared_call.kind));
    }
    shared_call.take(size, posted.check(size, bytes)?, &result.region())
}

/// Combines the operands at the last rank to arrive, which posts the result as the note of the group.
fn combine_for_all(shared_call: &SharedCall<'_>, reducer: &Reducer<'_>, bytes: usize) -> Result<()> {
    let size = shared_call.size();
    shared_call.look_for_other_ops();
    let outcome = shared_call.speak_for_all(bytes, |into| {
        // SAFETY: `into` has room for the operand, and no other thread uses it.
        unsafe { shared_call.led(reducer).fold(shared_call, 0..size, bytes, 0..bytes, into) }
    });
    if outcome.is_err() {
        shared_call.speak_for_all_of_failure();
    }
    outcome
}

/// Counts a rank that takes no part in a reduction to all.
fn leave_early(shared_call: &SharedCall<'_>) -> Result<()> {
    if select::meets_in_the_middle(shared_call.group) && shared_call.arrive()? {
        shared_call.speak_for_all_of_failure();
    }
    Ok(())
}

/// Combines the operands at the root.
pub(crate) fn reduce(
    shared_call: &SharedCall<'_>,
    input: &Buffer,
    result: Option<&Buffer>,
    op: &Arc<Op>,
    root: usize,
) -> Result<()> {
    let (bytes, size) = (input.bytes(), shared_call.size());
    let in_place = result.is_some_and(|result| result.base == input.base);
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(shared_call.group, shared_call.kind, bytes) {
        return pieces::reduce(
            shared_call,
            &reducer,
            input,
            result.map(Buffer::region).as_ref(),
            false,
            &Delivery::To(root),
        );
    }
    let kept = shared_call.contribute(&input.region(), in_place)?;
    let folded = match result {
        None => Ok(()),
        Some(result) => {
            shared_call.wait_for_all()?;
            reducer.fold_to(shared_call, 0..size, bytes, 0..bytes, result)
        }
    };
    shared_call.settle_own(kept, folded)
}

/// Gives each rank its part, of `counts[rank]` elements, of the combined operands.
pub(crate) fn reduce_scatter(
    shared_call: &SharedCall<'_>,
    input: &Buffer,
    in_place: bool,
    counts: &[usize],
    own: &Buffer,
    op: &Arc<Op>,
) -> Result<()> {
    let (bytes, size, me) = (input.bytes(), shared_call.size(), shared_call.me());
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(shared_call.group, shared_call.kind, bytes) {
        let delivery = Delivery::of_parts(counts, reducer.element());
        return pieces::reduce(shared_call, &reducer, input, Some(&own.region()), in_place, &delivery);
    }
    let kept = shared_call.contribute(&input.region(), in_place)?;
    if own.bytes() == 0 {
        return shared_call.settle_own(kept, Ok(()));
    }
    shared_call.wait_for_all()?;
    let first = counts[..me].iter().sum::<usize>() * reducer.element();
    let folded = shared_call.led(&reducer).fold_to(shared_call, 0..size, bytes, first..first + own.bytes(), own);
    shared_call.settle_own(kept, folded)
}

/// Gives each rank the combined operands of the ranks up to itself.
pub(crate) fn scan(shared_call: &SharedCall<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    prefix(shared_call, input, result, op, true)
}

/// Gives each rank but the first the combined operands of lower ranks.
pub(crate) fn exscan(shared_call: &SharedCall<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>) -> Result<()> {
    prefix(shared_call, input, result, op, false)
}

/// Scans. Small operands go along a chain: each rank appends its own to the combined operands of the previous rank, and
/// posts the result. It waits for the previous rank only, so that in a series of such operations lower ranks run ahead.
fn prefix(shared_call: &SharedCall<'_>, input: &Buffer, result: &Buffer, op: &Arc<Op>, with_own: bool) -> Result<()> {
    let (bytes, me) = (input.bytes(), shared_call.me());
    let in_place = input.base == result.base;
    let reducer = Reducer::new(op, input, in_place);
    if !select::folds(shared_call.group, shared_call.kind, bytes) {
        let region = (with_own || me > 0).then(|| result.region());
        return pieces::reduce(shared_call, &reducer, input, region.as_ref(), false, &Delivery::Prefixes { with_own });
    }
    let own = input.region();
    if me == 0 {
        let kept = shared_call.contribute(&own, false)?;
        let copied = if with_own && !in_place { copy_own(me, &own, &result.region()) } else { Ok(()) };
        return shared_call.settle_own(kept, copied);
    }
    let posted = shared_call.agree_with(me - 1, bytes)?;
    let scratch;
    let before = match posted.place {
        Location::Here(start) => start,
        _ => {
            scratch = Scratch::take(bytes)?;
            // SAFETY: scratch memory of as many bytes.
            shared_call.take(me - 1, posted, &unsafe { Region::contiguous(scratch.start(), bytes) })?;
            scratch.start()
        }
    };
    // SAFETY: memory in the slots, of the result, or temporary memory, of as many bytes. The operands of lower ranks
    // were posted, and stay until this rank has finished. An operand that is in place already is left there.
    let combine = |into: *mut u8| unsafe {
        if own.as_contiguous() != Some(into) {
            read(&own, std::slice::from_raw_parts_mut(into, bytes));
        }
        reducer.combine(before, into, bytes)
    };
    let received = result.region();
    let is_last = me + 1 == shared_call.size();
    let flat;
    let (combined, kept) = if !is_last {
        shared_call.contribute_filled(bytes, combine)?
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
        // SAFETY: bytes in the slots, which stay until this rank has finished, or in temporary memory.
        write(&received, unsafe { std::slice::from_raw_parts(if with_own { combined } else { before }, bytes) });
    }
    shared_call.settle_own(kept, Ok(()))
}

impl SharedCall<'_> {
    /// Returns the reducer with the operation of the leader, whose note is posted.
    #[inline]
    pub(super) fn led<'r>(&self, reducer: &Reducer<'r>) -> Reducer<'r> {
        reducer.led_by(self.group.leading_op(self.number(), self.signed()))
    }

    /// Warns if ranks have named different operations in their posted notes, on behalf of the leader, which may read no
    /// note.
    fn look_for_other_ops(&self) {
        let (slots, number, word) = (&self.group.slots, self.number(), self.signed().word);
        let leader = self.group.leader(self.signed());
        if self.me() == leader || slots.all_noted(number, word) {
            return;
        }
        let other_op = |rank| Some((rank, disagreement::tolerated(word, slots.noted(rank, number)?)?));
        if let Some((rank, difference)) = (0..self.size()).find_map(other_op) {
            self.group.warn([rank, leader], difference);
        }
    }

    /// Contributes, on behalf of all, `bytes` bytes that `fill` writes.
    fn speak_for_all(&self, bytes: usize, fill: impl FnOnce(*mut u8) -> Result<()>) -> Result<()> {
        if bytes <= BODY_BYTES {
            let mut note = SlotNote::of_bytes(bytes);
            fill(note.bytes())?;
            self.post_for_all(&note);
            return Ok(());
        }
        // This rank has arrived last, after using its own slot, so the group's slot is free too.
        let slot = self.group.slot(self.size(), self.number());
        assert!(bytes <= slot.bytes, "{bytes} bytes do not fit a slot");
        fill(slot.start)?;
        self.post_for_all(&SlotNote::of_area(bytes, &slot));
        Ok(())
    }
}
