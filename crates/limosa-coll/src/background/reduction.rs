//! A long reduction in the background: operands and results stay where they are, and whoever looks combines pieces of
//! them ([`crate::pieces`]).
//!
//! | phase | what is in shared memory | who goes on |
//! |---|---|---|
//! | posting | notes of some ranks: where they have their operand and want their result | ranks that call |
//! | combining | the notes of all ranks; pieces are counted as taken and as done | any thread of any rank that looks |
//! | combined | all pieces are done; who counted the last one has posted the note of the group | each rank by itself |
//!
//! Rules: who may access whose memory when
//! - A rank neither reads nor writes another one's memory but for a piece that it has taken and not yet counted, and
//!   only while it says that it copies ([`SlotSegment::begin_copying`](limosa_base::slots::SlotSegment::begin_copying))
//!   and has seen, after saying so, that no note was taken back.
//! - So there are three ways to be done, each of which leaves the rank's memory to itself:
//!   1. *All pieces are counted*, as the note of the group says. The result is complete, and nobody needs the operand,
//!      whatever the other ranks do.
//!   2. *The ranks do not agree* about the operands. All find it so in the notes, and none ever takes a piece.
//!   3. *The rank gives up*: it takes back its note, takes all pieces that are left, and waits for those who copy, in
//!      its own process and in others that live ([`Reduction::give_up`]). From then on nobody begins a copy.
//! - A rank gives up when a member has died, and also as soon as it finds that another one has given up, whether it
//!   knows of a death or not: otherwise it would take the note that is gone for a disagreement, and would return while
//!   others still write to its memory.
//! - A piece that fails is counted too, and every rank then gets an error. If it failed because a member has died or
//!   given up, that is said with the count, so that all ranks get the same error class. The memory of a process is gone
//!   a moment before the process is seen to be dead.
//! - A piece that was taken by a process that died is never counted. Its operation ends in the third way: every living
//!   rank learns of the death by itself.
//! - One thread of a process copies at a time. It holds a lock from taking a piece to counting it, so that a rank that
//!   gives up cannot overtake a thread of its own that has a piece.
//!
//! Nobody asks others to combine. A rank that waits combines all if need be. If all compute, the rank that has called
//! last has an alarm, whose thread does it; that thread leaves it to a thread of its process that waits.
//!
//! The operation is predefined. A thread that works at a piece holds a lock for which all threads of its process that
//! look may wait, so that no function of the program may run there: such operations go by messages.

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
use crate::kind::{Kind, Signed};
use crate::memory::write;
use crate::notes::{Ends, Note, Notes, given_up};
use crate::pieces::{Delivery, Pieces, Work};
use crate::reducer::Reducer;
use crate::schedule::Temporary;
use limosa_mpi::consts::MPI_ERR_PROC_ABORTED;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::op::Op;

/// What a rank has and wants in a long reduction.
pub(crate) struct Reduction {
    op: Arc<Op>,
    /// The operand.
    operand: Buffer,
    lent: LentBuffer,
    delivery: Delivery,
    pieces: Pieces,
    shape: u64,
    /// What this rank gets, and where it is put together if not there.
    result: Option<(Region, Option<Temporary>)>,
}

impl Reduction {
    /// Of an operand at one of so many ranks. `result` is where this rank wants what it gets, if anything.
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

    /// Where the result is put together in this process.
    fn own_result(&self) -> Option<*mut u8> {
        let (region, room) = self.result.as_ref()?;
        room.as_ref().map(Temporary::start).or(region.as_contiguous())
    }

    /// Says where this rank has its operand and wants its result.
    pub(super) fn post(&self, mailboxes: &Mailboxes, number: u64, call: Signed) {
        let ends =
            Ends { operand: self.lent.prepare() as u64, result: self.own_result().map_or(0, |result| result as u64) };
        mailboxes.post(number, call, &Note::of_operand(self.operand.bytes(), ends, self.shape));
    }

    /// What operation `number` waits for: the notes of all, then that all pieces are done.
    pub(super) fn awaited(&self, mailboxes: &Mailboxes, number: u64) -> Awaited {
        let slots = &mailboxes.slots;
        if !slots.has_pieces(number, self.pieces.count()) && slots.holds(Awaited::AllNotes(number)) {
            Awaited::Note(slots.size(), number)
        } else {
            Awaited::AllNotes(number)
        }
    }

    /// There are pieces to be combined in operation `number`.
    pub(super) fn has_work(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> bool {
        let slots = &mailboxes.slots;
        slots.holds(Awaited::AllNotes(number))
            && slots.has_pieces(number, self.pieces.count())
            && self.ends(mailboxes, number, call).is_ok()
    }

    /// Nothing is left to do but [`Reduction::finish`], where the notes of all are there.
    pub(super) fn is_combined(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> bool {
        let slots = &mailboxes.slots;
        let has_pieces = || slots.has_pieces(number, self.pieces.count());
        slots.holds(Awaited::Note(slots.size(), number))
            || (has_pieces() && self.ends(mailboxes, number, call).is_err())
    }

    /// Where all have their operands and want their results.
    ///
    /// # Errors
    /// Ranks do not agree.
    pub(super) fn ends(&self, mailboxes: &Mailboxes, number: u64, call: Signed) -> Result<Vec<Ends>> {
        self.pieces.ends(self.shape, mailboxes.size(), |rank| mailboxes.find(rank, number, call))
    }

    /// Combines pieces until none is left. Several threads may do so at a time, and one may come too late, when the
    /// operation has ended: it gets no piece. What goes wrong here comes to `trouble`, and all ranks will know that
    /// something did.
    pub(super) fn combine(&self, mailboxes: &Mailboxes, number: u64, call: Signed, trouble: &Mutex<Option<Error>>) {
        let slots = &mailboxes.slots;
        // Read before a piece is taken: who has one can rely on the notes, since the operation cannot end before that
        // piece is counted.
        let Ok(ends) = self.ends(mailboxes, number, call) else { return };
        let reducer = Reducer::new(&self.op, &self.operand, true).led_by(mailboxes.leading_op(number, call));
        let work = Work {
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
            // One thread of this process at a time, because there is one place to say that it copies.
            let _copying = mailboxes.copying.lock();
            let Some(piece) = slots.take_piece(number, self.pieces.count()) else { return };
            let room = scratch.take().map_or_else(|| self.pieces.scratch(), Ok);
            slots.begin_copying(number);
            let done = room.and_then(|room| match withdrawn(mailboxes, number) {
                Some(rank) => Err(given_up(rank, call.kind)),
                None => {
                    // SAFETY: all ranks have offered their memory, of which this piece is this thread's alone.
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

    /// Counts a piece as done; who counts the last one says so to all.
    fn count(&self, mailboxes: &Mailboxes, number: u64, call: Signed) {
        if mailboxes.slots.count_piece(number) == self.pieces.count() {
            mailboxes.post_for_all(number, call, &Note::signal());
            mailboxes.tell_all();
        }
    }

    /// Takes back this rank's note, because a member has died or given up: nobody begins with another piece, and when
    /// this returns nobody accesses this rank's memory any more.
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

    /// Brings this rank's result to its place, when all is combined.
    ///
    /// # Errors
    /// Ranks do not agree, a piece has failed somewhere, or a rank has given up.
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

/// A rank that has taken back its note.
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
fn failed_at(rank: usize, kind: Kind) -> Error {
    let name = kind.name();
    let detail =
        format!("rank {rank} could not combine its share of the operands of {name}: the error that it got says why");
    Error::new(limosa_mpi::consts::MPI_ERR_OTHER, detail)
}
