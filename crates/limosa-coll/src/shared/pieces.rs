//! Blocking reductions of large operands: by pieces ([`crate::pieces`]), or in rounds.

use super::call::{First, SharedCall};
use super::rounds::{self, Rounds};
use super::select;
use crate::buffer::Buffer;
use crate::memory::Flat;
use crate::notes::Ends;
use crate::pieces::{Delivery, PieceReduction, Pieces};
use crate::reducer::Reducer;
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

/// Reduces. `result` is the place of this rank's result, if it gets any; with `apart` it is not written to before all
/// have finished.
///
/// # Errors
/// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if ranks have different numbers of bytes (all of them get an error then),
/// `MPI_ERR_NO_MEM`, and errors of the machine.
pub(super) fn reduce(
    shared_call: &SharedCall<'_>,
    reducer: &Reducer<'_>,
    input: &Buffer,
    result: Option<&Region>,
    apart: bool,
    delivery: &Delivery,
) -> Result<()> {
    let bytes = input.bytes();
    let by_rounds = select::in_rounds(shared_call.group, shared_call.kind, bytes)
        && reducer.element() <= select::part_bytes(shared_call.size()) / 2;
    if by_rounds && let Some(rounds) = Rounds::begin(shared_call, bytes, None)? {
        return rounds::reduce(&rounds, reducer, input, result, apart, delivery);
    }
    let operand = Flat::packed(&input.region())?;
    let room = match result {
        Some(region) if apart => Some(Flat::temporary(region.len())?),
        Some(region) => Some(Flat::room(region)?),
        None => None,
    };
    let own_result = room.as_ref().map(Flat::start);
    let pieces = Pieces::new(bytes, shared_call.size(), reducer.element());
    let shape = pieces.shape(delivery);
    let scratch = pieces.scratch()?;
    let ends = Ends { operand: operand.start() as u64, result: own_result.map_or(0, |result| result as u64) };
    shared_call.offer_operand(bytes, ends, shape)?;
    shared_call.wait_for_all()?;
    let ranks = pieces
        .ends(shape, shared_call.size(), |rank| shared_call.posted(rank))
        .inspect_err(|error| shared_call.give_up_after(error))?;
    let work = PieceReduction {
        access: shared_call,
        reducer: &shared_call.led(reducer),
        pieces,
        ranks: &ranks,
        delivery,
        own_operand: operand.start(),
        own_result,
    };
    let mut trouble = First::default();
    while let Some(next) = shared_call.group.slots.take_piece(shared_call.number(), pieces.count()) {
        // SAFETY: all ranks have offered their memory, of which this piece belongs to this rank alone.
        trouble.note(unsafe { work.piece(next, &scratch) });
    }
    trouble.note(shared_call.finish_together());
    trouble.end()?;
    if let (Some(room), Some(region)) = (room, result) {
        room.deliver(region);
    }
    Ok(())
}
