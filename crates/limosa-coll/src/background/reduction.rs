//! Long reductions in the background: operands and results stay in place, and any polling thread combines pieces of
//! them ([`crate::pieces`]).
//!
//! | phase | content of shared memory | progress by |
//! |---|---|---|
//! | posting | notes of some ranks: addresses of operand and result | ranks that call |
//! | combining | notes of all ranks; counts of pieces taken and pieces done | any polling thread of any rank |
//! | combined | all pieces are done; the thread that counted the last piece has posted the note of the group | each rank by itself |
//!
//! Rules for access to the memory of other ranks:
//! - A rank reads and writes the memory of another rank only for a piece that it has taken and not yet counted. Around
//!   the access it announces that it copies
//!   ([`SlotSegment::begin_copying`](limosa_base::slots::SlotSegment::begin_copying)), and after the announcement it
//!   has seen that no note was withdrawn.
//! - An operation ends in one of three ways, each of which leaves the rank's memory to itself:
//!   1. *All pieces are counted*, as the note of the group says. The result is complete, and no rank needs the operand,
//!      whatever happens to the other ranks.
//!   2. *The ranks disagree* about the operands. All find this in the notes, and none ever takes a piece.
//!   3. *The rank gives up*: it withdraws its note, takes all remaining pieces, and waits for threads that copy, in its
//!      own process and in other living processes ([`Reduction::give_up`]). From then on no copy begins.
//! - A rank gives up when a member has died, and also as soon as it finds that another rank has given up, even before
//!   it knows of a death. Otherwise it would take the missing note for a disagreement, and would return while other
//!   ranks still write to its memory.
//! - A piece that fails is counted too, and every rank then gets an error. If it failed because a member has died or
//!   given up, the count says so, and all ranks get the same error class. The memory of a process is gone a moment
//!   before the process is seen to be dead.
//! - A piece taken by a process that died is never counted. The operation ends in the third way: every living rank
//!   learns of the death by itself.
//! - One thread of a process copies at a time. It holds a lock from taking a piece to counting it, so a rank that gives
//!   up cannot overtake a thread of its own process that has a piece.
//!
//! No rank asks others to combine. A rank that waits combines all pieces if need be. If all ranks compute, the rank
//! that has called last has an alarm, and its alarm thread combines; that thread yields to a thread of its process that
//! waits.
//!
//! The operation is predefined. A thread that combines a piece holds a lock for which all polling threads of its
//! process may wait. No function of the program may run under it: user-defined operations go by messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_base::slots::{Awaited, FailedPiece};
use limosa_p2p::memory::Region;
use limosa_p2p::slice;
use parking_lot::Mutex;

use super::Mailboxes;
use super::lent::LentBuffer;
use crate::access::{Access, failed, unless_dead};
use crate::buffer::Buffer;
use crate::kind::{Collective, Signed};
use crate::memory::write;
use crate::notes::{Ends, Notes, SlotNote, given_up};
use crate::pieces::{Delivery, PieceReduction, Pieces};
use crate::reducer::Reducer;
use crate::schedule::Temporary;
use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::op::Op;

/// Operand and result of one rank in a long reduction.
pub(crate) struct Reduction {
    op: Arc<Op>,
    /// The operand.
    operand: Buffer,
    lent: LentBuffer,
    delivery: Delivery,
    pieces: Pieces,
    shape: u64,
    /// The place of this rank's result, and the memory in which it is combined if not there.
    result: Option<(Region, Option<Temporary>)>,
}

impl Reduction {
    /// Makes the reduction of an operand at one of `size` ranks. `result` is the place of this rank's result, if it
    /// gets any.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn new(
        op: &Arc<Op>,
        operand: &Buffer,
        result: Option<Region>,
        delivery: Delivery,
        ranks: usize,
    ) -> Result<Reduction> {
        let pieces = Pieces::new(operand.bytes(), ranks, operand.datatype.size() as usize);
        let room = |region: &Region| region.as_contiguous().is_none().then(|| Temporary::new(region.len())).transpose();
        let result = match result {
            Some(region) => Some((region.clone(), room(&region)?)),
            None => None,
        };
        let lent = LentBuffer::of_block(operand.region(), false)?;
        Ok(Reduction {
            op: op.clone(),
            operand: operand.clone(),
            lent,
            shape: pieces.shape(&delivery),
            delivery,
            pieces,
            result,
        })
    }

    /// Whether the operand or the result has a copy.
    pub(super) fn has_copies(&self) -> bool {
        self.lent.has_copies() || matches!(self.result, Some((_, Some(_))))
    }

    /// Returns the address at which the result is combined in this process.
    fn own_result(&self) -> Option<*mut u8> {
        let (region, room) = self.result.as_ref()?;
        room.as_ref().map(Temporary::start).or(region.as_contiguous())
    }

    /// Posts the addresses of this rank's operand and result.
    pub(super) fn post(&self, mailboxes: &Mailboxes, number: u64, call: Signed) {
        let ends =
            Ends { operand: self.lent.prepare() as u64, result: self.own_result().map_or(0, |result| result as u64) };
        mailboxes.post(number, call, &SlotNote::of_operand(self.operand.bytes(), ends, self.shape));
    }

    /// Returns the wait condition of operation `number`: the notes of all, then that all pieces are done.
    pub(super) fn awaited(&self, mailboxes: &Mailboxes, number: u64) -> Awaited {
        let slots = &mailboxes.slots;
        if !slots.has_pieces(number, self.pieces.count()) && slots.holds(Awaited::AllNotes(number)) {
            Awaited::Note(slots.size(), number)
        } else {
            Awaited::AllNotes(number)
        }
    }

    /// Whether pieces of operation `number` are left to be combined.
    pub(super) fn has_work(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> bool {
        let slots = &mailboxes.slots;
        slots.holds(Awaited::AllNotes(number))
            && slots.has_pieces(number, self.pieces.count())
            && self.ends(mailboxes, number, call).is_ok()
    }

    /// Whether only [`Reduction::finish`] is left, where the notes of all are posted.
    pub(super) fn is_combined(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> bool {
        let slots = &mailboxes.slots;
        let has_pieces = || slots.has_pieces(number, self.pieces.count());
        slots.holds(Awaited::Note(slots.size(), number))
            || (has_pieces() && self.ends(mailboxes, number, call).is_err())
    }

    /// Returns the addresses of all operands and results.
    ///
    /// # Errors
    /// Ranks disagree.
    pub(super) fn ends(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> Result<Vec<Ends>> {
        self.pieces.ends(self.shape, mailboxes.size(), |rank| mailboxes.find(rank, number, call))
    }

    /// Combines pieces until none is left. Several threads may do so at a time; a thread that comes after the end of
    /// the operation gets no piece. Errors go to `trouble`, and all ranks will know that an error occurred.
    pub(super) fn combine(&self, mailboxes: &Mailboxes, number: u64, call: Signed, trouble: &Mutex<Option<Error>>) {
        let slots = &mailboxes.slots;
        // Read before a piece is taken: until that piece is counted the operation cannot end, and the notes stay valid.
        let Ok(ends) = self.ends(mailboxes, number, call) else { return };
        let reducer = Reducer::new(&self.op, &self.operand, true).led_by(mailboxes.leading_op(number, call));
        let work = PieceReduction {
            access: mailboxes,
            reducer: &reducer,
            pieces: self.pieces,
            ranks: &ends,
            delivery: &self.delivery,
            own_operand: self.lent.start(),
            own_result: self.own_result(),
        };
        let mut scratch = None;
        loop {
            // One thread of this process at a time, because a process announces copying in one place.
            let _copying = mailboxes.copying.lock();
            let Some(piece) = slots.take_piece(number, self.pieces.count()) else { return };
            let room = scratch.take().map_or_else(|| self.pieces.scratch(), Ok);
            slots.begin_copying(number);
            let done = room.and_then(|room| match withdrawn(mailboxes, number) {
                Some(rank) => Err(given_up(rank, call.kind)),
                None => {
                    // SAFETY: all ranks have offered their memory, and this piece of it belongs to this thread alone.
                    unsafe { work.piece(piece, &room)? };
                    scratch = Some(room);
                    Ok(())
                }
            });
            slots.end_copying();
            if let Err(error) = done {
                slots.fail_piece(number, error.class == MPI_ERR_PROC_ABORTED);
                trouble.lock().get_or_insert(error);
            }
            // The operation may end with this.
            self.count(mailboxes, number, call);
        }
    }

    /// Counts a piece as done, and wakes all ranks after the last piece.
    fn count(&self, mailboxes: &Mailboxes, number: u64, call: Signed) {
        if mailboxes.slots.count_piece(number) == self.pieces.count() {
            mailboxes.post_for_all(number, call, &SlotNote::signal());
            mailboxes.tell_all();
        }
    }

    /// Withdraws this rank's note, because a member has died or given up: no thread begins another piece. On return, no
    /// other rank accesses this rank's memory any more.
    #[cold]
    pub(super) fn give_up(&self, mailboxes: &Mailboxes, number: u64, call: Signed) {
        let slots = &mailboxes.slots;
        slots.withdraw(number);
        drop(mailboxes.copying.lock());
        while slots.take_piece(number, self.pieces.count()).is_some() {
            slots.fail_piece(number, true);
            self.count(mailboxes, number, call);
        }
        let memory = mailboxes.engine.expect_host_memory();
        for (rank, peer) in mailboxes.peers.iter().enumerate().filter(|(rank, _)| *rank != slots.me()) {
            while slots.is_copying(rank, number) && memory.is_alive(*peer) {
                std::thread::yield_now();
            }
        }
    }

    /// Copies this rank's result to its place, when all pieces are combined.
    ///
    /// # Errors
    /// Ranks disagree, a piece has failed somewhere, or a rank has given up.
    pub(super) fn finish(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> Result<()> {
        if let Err(error) = self.ends(mailboxes, number, call) {
            let Some(rank) = withdrawn(mailboxes, number) else { return Err(error) };
            self.give_up(mailboxes, number, call);
            return Err(given_up(rank, call.kind));
        }
        match mailboxes.slots.failed_piece(number) {
            Some(FailedPiece { member, given_up: true }) => return Err(given_up(member, call.kind)),
            Some(FailedPiece { member, given_up: false }) => return Err(failed_at(member, call.kind)),
            None => {}
        }
        if let Some((region, Some(room))) = &self.result {
            // SAFETY: as many bytes as the region has, which all ranks have filled.
            write(region, unsafe { std::slice::from_raw_parts(room.start(), region.len()) });
        }
        Ok(())
    }
}

/// Returns a rank that has withdrawn its note.
fn withdrawn(mailboxes: &Mailboxes, number: u64) -> Option<usize> {
    (0..mailboxes.size()).find(|rank| mailboxes.slots.is_withdrawn(*rank, number))
}

impl Access for Mailboxes {
    fn me(&self) -> usize {
        self.slots.me()
    }

    unsafe fn read(&self, from: usize, address: u64, to: *mut u8, len: usize) -> Result<()> {
        let (mut local, mut remote) = ([slice(to as u64, len)], [slice(address, len)]);
        let (memory, peer) = (self.engine.expect_peer_memory(), self.peers[from]);
        self.slots.attend(true);
        // SAFETY: the caller's promise.
        let done = unsafe { memory.read(peer, &mut local, &mut remote) };
        self.slots.attend(self.waits.now.load(Ordering::Relaxed) > 0);
        done.map_err(|error| failed(from, len, unless_dead(error, || memory.is_alive(peer))))
    }

    unsafe fn write(&self, to: usize, from: *const u8, address: u64, len: usize) -> Result<()> {
        let (mut local, mut remote) = ([slice(from as u64, len)], [slice(address, len)]);
        let (memory, peer) = (self.engine.expect_peer_memory(), self.peers[to]);
        // SAFETY: the caller's promise.
        let done = unsafe { memory.write(peer, &mut local, &mut remote) };
        done.map_err(|error| failed(to, len, unless_dead(error, || memory.is_alive(peer))))
    }
}

#[cold]
fn failed_at(rank: usize, kind: Collective) -> Error {
    let name = kind.name();
    let detail =
        format!("rank {rank} could not combine its share of the operands of {name}: the error that it got says why");
    Error::new(limosa_mpi::consts::MPI_ERR_OTHER, detail)
}
