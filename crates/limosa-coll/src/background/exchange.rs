//! What each operation leaves in a set of mailboxes and gets from there.

use std::ops::Range;
use std::sync::Arc;

use limosa_base::slots::BODY_BYTES;
use limosa_p2p::memory::Region;

use super::lent::LentBuffer;
use crate::buffer::{Blocks, Buffer};
use crate::kind::Kind;
use crate::notes::LINE;
use crate::schedule::{Member, Schedule, check_own};
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

/// What a rank leaves.
pub(crate) enum Contribution {
    /// Nothing: nobody waits for it.
    Nothing,
    /// Its word that it has called.
    Signal,
    /// Bytes, the same for all who want them.
    Block(Region),
    /// Bytes for each rank.
    Parts(Box<Parts>),
    /// Permission to read bytes where they are.
    Lent(Box<LentBuffer>),
}

/// What an operation may leave in a set of mailboxes.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Most bytes of a rank; [`usize::MAX`] if all are known to fit.
    pub(crate) most: usize,
    /// What is longer is lent; otherwise it goes by message.
    pub(crate) lends: bool,
}

impl Limits {
    /// Longest part, of parts for each of `size` ranks, that does not go by message.
    fn longest_part(self, size: usize) -> usize {
        if self.lends || self.most == usize::MAX { usize::MAX } else { self.most / size - LINE }
    }

    /// Longest contribution that does not go by message.
    fn longest(self) -> usize {
        if self.lends { usize::MAX } else { self.most }
    }

    /// One block for all who want it.
    fn block(self, region: Region) -> Result<Contribution> {
        if region.len() <= self.most {
            Ok(Contribution::Block(region))
        } else {
            Ok(Contribution::Lent(Box::new(LentBuffer::of_block(region, false)?)))
        }
    }

    /// A part for each rank; of those that others get none goes by message that is not longer than `longest`. With `in_place` others write to
    /// their places.
    fn parts(self, blocks: &Blocks, size: usize, me: usize, in_place: bool) -> Result<Contribution> {
        let even = (self.most == usize::MAX).then(|| blocks.bytes(me));
        let parts = Parts { even, blocks: blocks.clone(), most: self.longest_part(size) };
        if self.lends && even.is_none() && parts.table_bytes(size, me) > self.most {
            return Ok(Contribution::Lent(Box::new(LentBuffer::of_parts(parts.blocks, size, me, in_place)?)));
        }
        Ok(Contribution::Parts(Box::new(parts)))
    }
}

/// Bytes for each rank.
pub(crate) struct Parts {
    pub(super) blocks: Blocks,
    /// The length of all, if that is one; else there is a table.
    pub(super) even: Option<usize>,
    /// Longer parts go by message.
    pub(super) most: usize,
}

/// What a rank gets.
pub(crate) enum Intake {
    /// Nothing.
    Nothing,
    /// Word that all have called.
    Signals,
    /// What one rank has for all, or a part of that.
    One { from: usize, is_part: bool, into: Region },
    /// What each rank has, or a part of that; longer ones than `most` come by message.
    Each { into: Blocks, is_part: bool, most: usize },
    /// The operands of the first ranks combined: this part of them.
    Combined { operands: Operands, part: Range<usize>, into: Buffer, for_all: bool },
}

/// What is combined.
pub(crate) struct Operands {
    pub(super) op: Arc<Op>,
    /// One like all of them.
    pub(super) like: Buffer,
    /// Of so many ranks.
    pub(super) ranks: usize,
}

/// What a rank does in an operation.
pub(crate) struct Exchange {
    pub(super) kind: Kind,
    pub(super) contribution: Contribution,
    pub(super) intake: Intake,
    /// Combining runs a function of the program, which only a thread of the program may do. All ranks say the same.
    pub(super) by_program: bool,
    /// What it copies to itself.
    pub(super) own: Option<(Region, Region)>,
    /// Parts that are too long to be left, between ranks that both know it: these go by message.
    pub(super) by_messages: Option<Box<Schedule>>,
}

impl Exchange {
    fn new(kind: Kind, contribution: Contribution, intake: Intake) -> Exchange {
        Exchange { kind, contribution, intake, by_program: false, own: None, by_messages: None }
    }

    pub(crate) fn barrier() -> Exchange {
        Exchange::new(Kind::Barrier, Contribution::Signal, Intake::Signals)
    }

    pub(crate) fn bcast(member: impl Into<Member>, limits: Limits, buffer: &Buffer, root: usize) -> Result<Exchange> {
        let region = buffer.region();
        if member.into().rank == root {
            return Ok(Exchange::new(Kind::Bcast, limits.block(region)?, Intake::Nothing));
        }
        Ok(Exchange::new(Kind::Bcast, Contribution::Nothing, Intake::One { from: root, is_part: false, into: region }))
    }

    /// Contributions of any length.
    pub(crate) fn gather(
        member: impl Into<Member>,
        limits: Limits,
        send: Option<&Buffer>,
        receive: Option<&Blocks>,
        root: usize,
    ) -> Result<Exchange> {
        let (member, most) = (member.into(), limits.longest());
        let me = member.rank;
        let mut by_messages = ByMessages::new(member);
        if me == root {
            let receive = receive.expect("the root has room for all");
            let own = own(me, send.map(Buffer::region), receive)?;
            for rank in (0..member.size).filter(|rank| *rank != me && receive.bytes(*rank) > most) {
                by_messages.schedule().receive(rank, receive.region(rank));
            }
            let intake = Intake::Each { into: receive.clone(), is_part: false, most };
            return Ok(Exchange { own, by_messages: by_messages.0, ..Exchange::new(Kind::Gather, Contribution::Signal, intake) });
        }
        let region = send.expect("a rank that is not the root sends").region();
        if region.len() > most {
            by_messages.schedule().send(root, region);
            return Ok(Exchange { by_messages: by_messages.0, ..Exchange::new(Kind::Gather, Contribution::Signal, Intake::Nothing) });
        }
        Ok(Exchange::new(Kind::Gather, limits.block(region)?, Intake::Nothing))
    }

    /// Parts, which are even and fit, or of any length.
    pub(crate) fn scatter(
        member: impl Into<Member>,
        limits: Limits,
        send: Option<&Blocks>,
        receive: Option<&Buffer>,
        root: usize,
    ) -> Result<Exchange> {
        let member = member.into();
        let (me, size) = (member.rank, member.size);
        let most = limits.longest_part(size);
        let mut by_messages = ByMessages::new(member);
        if me != root {
            let into = receive.expect("a rank that is not the root receives").region();
            if into.len() > most {
                by_messages.schedule().receive(root, into);
                return Ok(Exchange { by_messages: by_messages.0, ..Exchange::new(Kind::Scatter, Contribution::Nothing, Intake::Nothing) });
            }
            return Ok(Exchange::new(Kind::Scatter, Contribution::Nothing, Intake::One { from: root, is_part: true, into }));
        }
        let send = send.expect("the root has parts for all");
        let own = receive.map(|receive| (send.region(me), receive.region()));
        if let Some((from, to)) = &own {
            check_own(me, from, to)?;
        }
        for rank in (0..size).filter(|rank| *rank != me && send.bytes(*rank) > most) {
            by_messages.schedule().send(rank, send.region(rank));
        }
        let contribution = limits.parts(send, size, me, false)?;
        Ok(Exchange { own, by_messages: by_messages.0, ..Exchange::new(Kind::Scatter, contribution, Intake::Nothing) })
    }

    /// Contributions of any length.
    pub(crate) fn allgather(member: impl Into<Member>, limits: Limits, send: Option<&Buffer>, receive: &Blocks) -> Result<Exchange> {
        let me = member.into().rank;
        let own = own(me, send.map(Buffer::region), receive)?;
        let contribution = limits.block(send.map_or_else(|| receive.region(me), Buffer::region))?;
        let intake = Intake::Each { into: receive.clone(), is_part: false, most: usize::MAX };
        Ok(Exchange { own, ..Exchange::new(Kind::Allgather, contribution, intake) })
    }

    /// Parts, as in a scatter.
    pub(crate) fn alltoall(member: impl Into<Member>, limits: Limits, send: Option<&Blocks>, receive: &Blocks) -> Result<Exchange> {
        let member = member.into();
        let (me, size) = (member.rank, member.size);
        let most = limits.longest_part(size);
        let own = own(me, send.map(|send| send.region(me)), receive)?;
        let mut by_messages = ByMessages::new(member);
        let others = || (1..size).map(|step| (me + step) % size);
        match send {
            Some(send) => others().filter(|to| send.bytes(*to) > most).for_each(|to| by_messages.schedule().send(to, send.region(to))),
            None => {
                // In place, what goes out has the lengths of what comes in.
                for to in others().filter(|to| receive.bytes(*to) > most) {
                    let copy = by_messages.schedule().temporary(receive.bytes(to))?;
                    // SAFETY: memory of this many bytes, which lives as long as the schedule.
                    let copy = unsafe { Region::contiguous(copy, receive.bytes(to)) };
                    by_messages.schedule().copy(receive.region(to), copy.clone())?;
                    by_messages.schedule().send(to, copy);
                }
            }
        }
        others().filter(|from| receive.bytes(*from) > most).for_each(|from| by_messages.schedule().receive(from, receive.region(from)));
        let contribution = limits.parts(send.unwrap_or(receive), size, me, send.is_none())?;
        let intake = Intake::Each { into: receive.clone(), is_part: true, most };
        Ok(Exchange { own, by_messages: by_messages.0, ..Exchange::new(Kind::Alltoall, contribution, intake) })
    }

    /// The operands of the first `ranks` ranks combined; `part` of that comes to `into`, if this rank gets any. What does not fit is lent, and a copy of
    /// it where the result takes its place.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(crate) fn reduction(
        kind: Kind,
        limits: Limits,
        op: &Arc<Op>,
        input: &Buffer,
        ranks: usize,
        part: Range<usize>,
        into: Option<&Buffer>,
    ) -> Result<Exchange> {
        let region = input.region();
        let in_place = into.is_some_and(|into| into.base == input.base);
        let is_lent = region.len() > limits.most;
        let contribution =
            if is_lent { Contribution::Lent(Box::new(LentBuffer::of_block(region, in_place)?)) } else { Contribution::Block(region) };
        let intake = match into {
            Some(into) if ranks > 0 => {
                let operands = Operands { op: op.clone(), like: input.clone(), ranks };
                Intake::Combined { operands, part, into: into.clone(), for_all: kind == Kind::Allreduce && !is_lent }
            }
            _ => Intake::Nothing,
        };
        Ok(Exchange { by_program: !op.is_predefined(), ..Exchange::new(kind, contribution, intake) })
    }

    /// Bytes that are left at once.
    pub(super) fn bytes(&self, size: usize, me: usize) -> usize {
        match &self.contribution {
            Contribution::Nothing | Contribution::Signal => 0,
            Contribution::Block(region) => region.len(),
            Contribution::Parts(parts) => match parts.even {
                Some(len) => len * size,
                None => parts.table_bytes(size, me),
            },
            Contribution::Lent(lent) => lent.note_bytes(size),
        }
    }
}

impl Parts {
    /// Bytes of a table and of the parts for others that are left with it. A table is in a slot, however short.
    fn table_bytes(&self, size: usize, me: usize) -> usize {
        let near = (0..size).filter(|rank| *rank != me).map(|rank| self.blocks.bytes(rank)).filter(|len| *len <= self.most);
        near.fold(size * LINE, usize::saturating_add).max(BODY_BYTES + 1)
    }
}

/// What goes by message, if anything.
struct ByMessages(Option<Box<Schedule>>, Member);

impl ByMessages {
    fn new(member: Member) -> ByMessages {
        ByMessages(None, member)
    }

    fn schedule(&mut self) -> &mut Schedule {
        self.0.get_or_insert_with(|| Box::new(Schedule::new(self.1)))
    }
}

/// What a rank copies to itself.
fn own(me: usize, send: Option<Region>, receive: &Blocks) -> Result<Option<(Region, Region)>> {
    let Some(from) = send else { return Ok(None) };
    let to = receive.region(me);
    check_own(me, &from, &to)?;
    Ok(Some((from, to)))
}
