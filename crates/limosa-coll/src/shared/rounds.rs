//! Large collectives through shared memory, in rounds.
//!
//! A copy between processes costs the kernel much time per page, most of all for pages that it has not accessed
//! recently. If each byte has several readers, or several writers share a processor, two copies are cheaper: into round
//! buffers beside the slots, and out of them by each reader. The round buffers have a part for each rank and one for
//! the group. They are made when a communicator first needs them.
//!
//! Each part has two halves, used by calls of even and of odd number, so that a call can begin while the previous call
//! ends.
//!
//! | operation | a round |
//! |---|---|
//! | broadcast | all parts are one ring: the root fills chunks, other ranks copy them out; all continue when all have |
//! | reductions | every rank copies in; any running rank combines the next few kilobytes of all; every rank copies out |
//! | alltoall | every rank copies in, then copies out its own data; rounds alternate between quarters: a wait each |

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use limosa_base::copy::copy;
use limosa_base::slots::{Awaited, Bytes, MAX_STEPS, Progress, RoundBuffers};
use limosa_p2p::memory::Region;

use super::call::{First, SharedCall};
use super::{NOWHERE, SharedGroup, select};
use crate::buffer::{Blocks, Buffer};
use crate::memory::{Flat, Scratch};
use crate::pieces::Delivery;
use crate::reducer::Reducer;
use crate::schedule::copy_own;
use limosa_mpi::error::Result;
use limosa_mpi::fail;

/// Steps before the first round: whether a rank has made the round buffers.
const MADE: u64 = 1;
const NOT_MADE: u64 = 2;
/// The step of the first round.
const FIRST: u64 = 4;

/// Number of round buffers of this process.
pub(super) static ROUND_BUFFERS: AtomicUsize = AtomicUsize::new(0);

/// One call's view of the round buffers.
pub(super) struct Rounds<'a> {
    shared_call: &'a SharedCall<'a>,
    round_buffers: &'a RoundBuffers,
    /// Bytes of a part in this call.
    half: usize,
    /// Bytes of the operation, on which all must agree.
    len: usize,
    /// Whether the ranks have agreed already.
    agreed: Cell<bool>,
}

impl<'a> Rounds<'a> {
    /// Uses the round buffers in this call, in which all ranks are about to use them for `len` bytes. The first call
    /// creates them, for which ranks must meet. If only the ranks that agree with a `leader` are about to use them, and
    /// the others are ready to decline, `leader` names it. Returns `None` if there is no memory for them, but memory of
    /// other processes can be accessed; the call has then been renewed.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`; `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if ranks disagree; errors of waiting.
    pub(super) fn begin(
        shared_call: &'a SharedCall<'a>,
        len: usize,
        leader: Option<usize>,
    ) -> Result<Option<Rounds<'a>>> {
        let is_new = shared_call.group.round_buffers.get().is_none();
        if is_new {
            if let Some(leader) = leader.filter(|leader| *leader != shared_call.me()) {
                shared_call.agree_with(leader, len)?;
            }
            make_together(shared_call, len)?;
        }
        match shared_call.group.round_buffers.get() {
            Some(Some(round_buffers)) => {
                shared_call.make_room_in_round_buffers()?;
                Ok(Some(Rounds {
                    shared_call,
                    round_buffers,
                    half: round_buffers.part_bytes() / 2,
                    len,
                    agreed: Cell::new(is_new),
                }))
            }
            _ if shared_call.group.pull => {
                if is_new {
                    shared_call.renew();
                }
                Ok(None)
            }
            _ => fail!(
                MPI_ERR_NO_MEM,
                "there is not enough shared memory for large collectives; LIMOSA_COLL=p2p works without it"
            ),
        }
    }

    /// Announces that this rank has filled its part for the first round. Posts its note with that, unless ranks have
    /// agreed before.
    fn show_first(&self) -> Result<()> {
        self.advance(1);
        if self.agreed.get() { Ok(()) } else { self.shared_call.announce(self.len) }
    }

    /// Waits until all ranks have shown their first part, and agree.
    fn agree(&self) -> Result<()> {
        if !self.agreed.replace(true) {
            check_all(self.shared_call, self.len)?;
        }
        Ok(())
    }

    /// Returns the address of the part of a rank, or of the group, in this call.
    fn part(&self, rank: usize) -> *mut u8 {
        self.shared_call.part_of(self.round_buffers, rank)
    }

    fn step(&self, round: u64) -> Progress {
        Progress::new(self.shared_call.number(), FIRST + round)
    }

    /// Records that this rank has done its part of so many rounds.
    fn advance(&self, rounds: u64) {
        self.shared_call.advance(self.step(rounds));
    }

    fn wait_for_all(&self, rounds: u64) -> Result<()> {
        self.shared_call.wait(Awaited::AllProgress(self.step(rounds)))
    }

    fn rounds_of(&self, len: usize, per_round: usize) -> Result<u64> {
        let rounds = len.div_ceil(per_round) as u64;
        if rounds > MAX_STEPS - FIRST {
            fail!(MPI_ERR_COUNT, "{len} bytes are more than a collective operation can move; call it several times");
        }
        Ok(rounds)
    }
}

fn make_together(shared_call: &SharedCall<'_>, len: usize) -> Result<()> {
    shared_call.announce(len)?;
    check_all(shared_call, len)?;
    let made = make(shared_call)?;
    shared_call.group.round_buffers.get_or_init(|| made);
    Ok(())
}

/// Waits for the notes of all ranks and checks that they have as many bytes.
fn check_all(shared_call: &SharedCall<'_>, len: usize) -> Result<()> {
    shared_call.wait_for_all()?;
    (0..shared_call.size()).try_for_each(|rank| shared_call.posted(rank)?.check(rank, len).map(|_| ()))
}

impl Drop for Rounds<'_> {
    fn drop(&mut self) {
        // In any case, no rank may wait for this rank any longer.
        self.shared_call.advance(Progress::new(self.shared_call.number(), MAX_STEPS));
    }
}

/// Creates the round buffers, in a call in which all ranks do.
fn make(shared_call: &SharedCall<'_>) -> Result<Option<RoundBuffers>> {
    let (size, part_bytes) = (shared_call.size(), select::part_bytes(shared_call.size()));
    let bytes = RoundBuffers::bytes(size, part_bytes);
    let memory = shared_call.group.engine.expect_host_memory();
    if shared_call.me() == 0 {
        let enough = shared_call.group.pull && ROUND_BUFFERS.load(Ordering::Relaxed) >= select::MOST_ROUND_BUFFERS;
        shared_call.post_place_for_all(if enough { NOWHERE } else { memory.create_area(bytes).unwrap_or(NOWHERE) });
    }
    shared_call.wait_for(size)?;
    let place = shared_call.place_for_all()?;
    let round_buffers = memory.map_area::<Bytes>(place, bytes).ok().map(|memory| RoundBuffers::new(memory, part_bytes));
    shared_call.advance(Progress::new(shared_call.number(), if round_buffers.is_some() { MADE } else { NOT_MADE }));
    shared_call.wait(Awaited::AllProgress(Progress::new(shared_call.number(), MADE)))?;
    // A rank that has continued already has seen that all ranks have them.
    let all = (0..size)
        .all(|rank| shared_call.group.slots.progress_of(rank) != Progress::new(shared_call.number(), NOT_MADE));
    if all {
        ROUND_BUFFERS.fetch_add(1, Ordering::Relaxed);
        shared_call.group.round_buffers_place.store(place, Ordering::Relaxed);
        return Ok(round_buffers);
    }
    if shared_call.me() == 0 && place != NOWHERE {
        memory.free_area(place, bytes);
    }
    Ok(None)
}

impl SharedGroup {
    /// Frees the round buffers; called by the last user.
    pub(super) fn free_round_buffers(&self) {
        if self.round_buffers.get().is_some_and(Option::is_some) {
            let place = self.round_buffers_place.load(Ordering::Relaxed);
            self.engine
                .expect_host_memory()
                .free_area(place, RoundBuffers::bytes(self.size(), select::part_bytes(self.size())));
        }
    }
}

/// Copies the root's data to all ranks.
pub(super) fn bcast(rounds: &Rounds<'_>, region: &Region, root: usize) -> Result<()> {
    let (shared_call, len) = (rounds.shared_call, region.len());
    let chunk = select::chunk_bytes(rounds.half);
    let per_part = (rounds.half / chunk) as u64;
    let ring = per_part * (shared_call.size() as u64 + 1);
    let place = |index: u64| {
        let slot = index % ring;
        rounds.part((slot / per_part) as usize).wrapping_add((slot % per_part) as usize * chunk)
    };
    let chunks = rounds.rounds_of(len, chunk)?;
    for index in 0..chunks {
        let offset = index as usize * chunk;
        let here = chunk.min(len - offset);
        if shared_call.me() == root {
            if index >= ring {
                // This rank's own mark is ahead of the others': the wait is for them alone.
                rounds.wait_for_all(index + 1 - ring)?;
            }
            // SAFETY: a chunk of the round buffers, which all others have copied out, or which was not used in this
            // call.
            region.read(offset, unsafe { std::slice::from_raw_parts_mut(place(index), here) });
            if index == 0 {
                rounds.show_first()?;
            } else {
                rounds.advance(index + 1);
            }
        } else {
            if index == 0 && !rounds.agreed.get() {
                shared_call.agree_with(root, len)?;
            }
            shared_call.wait(Awaited::Progress(root, rounds.step(index + 1)))?;
            // SAFETY: a chunk of the round buffers, which the root has filled and leaves unchanged until this rank
            // continues.
            region.write(offset, unsafe { std::slice::from_raw_parts(place(index), here) });
            rounds.advance(index + 1);
        }
    }
    Ok(())
}

/// Reduces. `result` is the place of this rank's result, if it gets any.
pub(super) fn reduce(
    rounds: &Rounds<'_>,
    reducer: &Reducer<'_>,
    input: &Buffer,
    result: Option<&Region>,
    apart: bool,
    delivery: &Delivery,
) -> Result<()> {
    let (shared_call, bytes, me) = (rounds.shared_call, input.bytes(), rounds.shared_call.me());
    let element = reducer.element();
    if element > rounds.half {
        fail!(
            MPI_ERR_TYPE,
            "an element of {element} bytes is too large to be reduced through shared memory; LIMOSA_COLL=p2p can do it"
        );
    }
    let operand = input.region();
    let apart = result.filter(|_| apart).map(|region| Flat::temporary(region.len())).transpose()?;
    let per_round = rounds.half / element * element;
    let piece = (select::combine_bytes(bytes.min(per_round), shared_call.size()) / element).max(1) * element;
    let all_rounds = rounds.rounds_of(bytes, per_round)?;
    let mut pieces_before = 0;
    let mut trouble = First::default();
    for round in 0..all_rounds {
        let offset = round as usize * per_round;
        let len = per_round.min(bytes - offset);
        // SAFETY: this rank's part, which no rank reads now: the previous round is combined.
        operand.read(offset, unsafe { std::slice::from_raw_parts_mut(rounds.part(me), len) });
        if round == 0 {
            rounds.show_first()?;
        } else {
            rounds.advance(round + 1);
        }
        let everything_is_there = Awaited::AllProgress(rounds.step(round + 1));
        let gets_any = delivery.reaches(me, offset..offset + len);
        if !gets_any && round + 1 == all_rounds && !shared_call.group.slots.holds(everything_is_there) {
            // The others do not need this rank.
            break;
        }
        rounds.agree()?;
        shared_call.wait(everything_is_there)?;
        let combined = rounds.step(round + 1);
        // SAFETY: all operands are there.
        trouble.note(unsafe { combine_pieces(rounds, reducer, [len, piece], pieces_before, combined, delivery) });
        pieces_before += len.div_ceil(piece) as u64;
        shared_call.wait(Awaited::Progress(shared_call.size(), combined))?;
        if let (true, Some(region)) = (gets_any, result) {
            // SAFETY: the result is complete, and stays until this rank continues.
            unsafe { copy_out(rounds, region, apart.as_ref(), offset, len, delivery) };
        }
    }
    if let (Some(apart), Some(region)) = (apart, result) {
        // A rank that reduces in place has read its operand by now, and the others have recorded that they have read it
        // too.
        apart.deliver(region);
    }
    trouble.end()
}

/// Combines free pieces of `piece` bytes of a round of `len` bytes, until none is left. `before`: pieces of earlier
/// rounds. The last piece of the round completes the step `combined`.
///
/// # Errors
/// The first error of a piece; the others are combined nevertheless.
///
/// # Safety
/// The operands must be in the parts.
unsafe fn combine_pieces(
    rounds: &Rounds<'_>,
    reducer: &Reducer<'_>,
    [len, piece]: [usize; 2],
    before: u64,
    combined: Progress,
    delivery: &Delivery,
) -> Result<()> {
    let (shared_call, slots) = (rounds.shared_call, &rounds.shared_call.group.slots);
    let (led, end) = (shared_call.led(reducer), before + len.div_ceil(piece) as u64);
    let mut trouble = First::default();
    while let Some(next) = slots.take_piece(shared_call.number(), end) {
        let from = (next - before) as usize * piece;
        // SAFETY: this piece belongs to this rank alone; the rest is the caller's promise.
        trouble.note(unsafe { combine(rounds, &led, from, piece.min(len - from), delivery) });
        if slots.count_piece(shared_call.number()) == end {
            shared_call.advance_all(combined);
        }
    }
    trouble.end()
}

/// Combines the operands of all ranks: `len` bytes from `from` on.
///
/// # Safety
/// The operands must be in the parts, and no other thread may use these bytes.
unsafe fn combine(
    rounds: &Rounds<'_>,
    reducer: &Reducer<'_>,
    from: usize,
    len: usize,
    delivery: &Delivery,
) -> Result<()> {
    let at = |rank: usize| rounds.part(rank).wrapping_add(from);
    let size = rounds.shared_call.size();
    // SAFETY: parts of the round buffers of this many bytes, by the caller's promise; scratch memory is this rank's.
    unsafe {
        match delivery {
            Delivery::Prefixes { with_own: true } => {
                (1..size).try_for_each(|rank| reducer.combine(at(rank - 1), at(rank), len))
            }
            Delivery::Prefixes { with_own: false } => {
                // Each part receives the combined operands of lower ranks.
                let scratch = Scratch::take(2 * len)?;
                let (before, own) = (scratch.start(), scratch.start().add(len));
                copy(at(0), before, len);
                for rank in 1..size {
                    copy(at(rank), own, len);
                    copy(before, at(rank), len);
                    reducer.combine(before, own, len)?;
                    copy(own, before, len);
                }
                Ok(())
            }
            Delivery::All | Delivery::To(_) | Delivery::Parts(_) => {
                let into = at(size);
                copy(at(size - 1), into, len);
                (0..size - 1).rev().try_for_each(|rank| reducer.combine(at(rank), into, len))
            }
        }
    }
}

/// Copies this rank's share of a round to its result.
///
/// # Safety
/// The round must be combined.
unsafe fn copy_out(
    rounds: &Rounds<'_>,
    region: &Region,
    apart: Option<&Flat>,
    offset: usize,
    len: usize,
    delivery: &Delivery,
) {
    let me = rounds.shared_call.me();
    let (from, to, len) = match delivery {
        Delivery::All | Delivery::To(_) => (rounds.part(rounds.shared_call.size()), offset, len),
        Delivery::Prefixes { .. } => (rounds.part(me), offset, len),
        Delivery::Parts(ends) => {
            let start = if me == 0 { 0 } else { ends[me - 1] };
            let (first, end) = (start.max(offset), ends[me].min(offset + len));
            (rounds.part(rounds.shared_call.size()).wrapping_add(first - offset), first - start, end - first)
        }
    };
    // SAFETY: bytes of the round buffers that are complete, by the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(from, len) };
    match apart {
        // SAFETY: the temporary memory has room for the whole result.
        Some(apart) => unsafe { copy(bytes.as_ptr(), apart.start().add(to), len) },
        None => region.write(to, bytes),
    }
}

/// Gathers the contributions of all ranks at all ranks.
pub(super) fn allgather(rounds: &Rounds<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let me = rounds.shared_call.me();
    let own = send.map_or_else(|| receive.region(me), Buffer::region);
    if send.is_some() {
        copy_own(me, &own, &receive.region(me))?;
    }
    let incoming: Vec<Region> = (0..rounds.shared_call.size()).map(|rank| receive.region(rank)).collect();
    let longest = incoming.iter().map(Region::len).max().unwrap_or(0);
    exchange(
        rounds,
        longest,
        rounds.half,
        |offset, room, place| {
            let len = room.min(own.len().saturating_sub(offset));
            // SAFETY: this rank's part has room for it.
            own.read(offset.min(own.len()), unsafe { std::slice::from_raw_parts_mut(place, len) });
        },
        |rank, offset, room, place| {
            let region = &incoming[rank];
            let len = room.min(region.len().saturating_sub(offset));
            // SAFETY: that rank has filled its part, with as many bytes as are expected here.
            region.write(offset.min(region.len()), unsafe { std::slice::from_raw_parts(place, len) });
        },
    )
}

/// Sends a part of equal length from every rank to every rank.
pub(super) fn alltoall(rounds: &Rounds<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    let (me, size) = (rounds.shared_call.me(), rounds.shared_call.size());
    let len = receive.bytes(me);
    let copies = match send {
        Some(send) => {
            copy_own(me, &send.region(me), &receive.region(me))?;
            None
        }
        // In place, received data overwrite the sent data.
        None => Some(Flat::copied(&receive.run(0, size).region())?),
    };
    let outgoing = |rank: usize| match (&copies, send) {
        (Some(copies), _) => copies.part(rank * len, len),
        (None, Some(send)) => send.region(rank),
        (None, None) => Region::empty(),
    };
    let outgoing: Vec<Region> = (0..size).map(outgoing).collect();
    let incoming: Vec<Region> = (0..size).map(|rank| receive.region(rank)).collect();
    let share = whole_lines(rounds.half / size);
    exchange(
        rounds,
        len,
        share,
        |offset, room, place| {
            for (rank, region) in outgoing.iter().enumerate().filter(|(rank, _)| *rank != me) {
                let here = room.min(len - offset);
                // SAFETY: this rank's part has so much room for each rank.
                region.read(offset, unsafe { std::slice::from_raw_parts_mut(place.wrapping_add(rank * room), here) });
            }
        },
        |rank, offset, room, place| {
            let here = room.min(len - offset);
            // SAFETY: that rank has filled its part, with as many bytes as are expected here.
            incoming[rank].write(offset, unsafe { std::slice::from_raw_parts(place.wrapping_add(me * room), here) });
        },
    )
}

/// Rounds down to cache lines, unless the result would be 0.
fn whole_lines(bytes: usize) -> usize {
    if bytes < 64 { bytes } else { bytes / 64 * 64 }
}

/// Runs rounds in which every rank copies in and then copies out from all others. `room` is the number of bytes per
/// round of a rank, or of each pair, if one round is enough for `len` bytes; else half of it, so that rounds can
/// alternate.
fn exchange(
    rounds: &Rounds<'_>,
    len: usize,
    room: usize,
    fill: impl Fn(usize, usize, *mut u8),
    take: impl Fn(usize, usize, usize, *mut u8),
) -> Result<()> {
    let shared_call = rounds.shared_call;
    let alternate = len > room;
    let room = if alternate { whole_lines(room / 2) } else { room };
    let place = |rank: usize, round: u64| {
        let shift = if alternate { (round % 2) as usize * (rounds.half / 2) } else { 0 };
        rounds.part(rank).wrapping_add(shift)
    };
    for round in 0..rounds.rounds_of(len, room)? {
        let offset = round as usize * room;
        // The quarter is free: all have come to the previous round, and so have left the round before that.
        fill(offset, room, place(shared_call.me(), round));
        if round == 0 {
            rounds.show_first()?;
            rounds.agree()?;
        } else {
            rounds.advance(round + 1);
        }
        for rank in (1..shared_call.size()).map(|distance| shared_call.after(distance)) {
            shared_call.wait(Awaited::Progress(rank, rounds.step(round + 1)))?;
            take(rank, offset, room, place(rank, round));
        }
    }
    Ok(())
}
