//! The contribution and the intake of each operation on a set of mailboxes.

use std::ops::Range;
use std::sync::Arc;

use limosa_base::slots::BODY_BYTES;
use limosa_p2p::memory::Region;
use smallvec::SmallVec;

use super::lent::LentBuffer;
use super::neighbour_blocks::{Incoming, SentBlocks};
use super::reduction::Reduction;
use crate::buffer::{Blocks, Buffer};
use crate::call_log::LoggedCall;
use crate::kind::{Collective, Signed};
use crate::notes::LINE;
use crate::one_step::{Audience, Executor, Share};
use crate::pieces::Delivery;
use crate::schedule::{Member, Schedule, check_own};
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;
use limosa_mpi::topo::Neighbours;

/// The contribution of a rank.
pub(crate) enum Contribution {
    /// Nothing: no rank waits for it.
    Nothing,
    /// A signal that the rank has called.
    Signal,
    /// Bytes that are the same for all readers.
    Block(Region),
    /// Bytes for each rank.
    Parts(Box<Parts>),
    /// Bytes for neighbours.
    Blocks(Box<SentBlocks>),
    /// The length of the blocks for the neighbours, which go by message; 0 if the lengths differ.
    Announced(usize),
    /// Permission to read a buffer in place.
    Lent(Box<LentBuffer>),
    /// Permission to read the operand of the reduction that is the intake, and to write its result.
    Operand,
}

/// What an operation may leave in a set of mailboxes.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Most bytes of a rank; [`usize::MAX`] if all are known to fit.
    pub(crate) most: usize,
    /// Whether longer contributions are lent; otherwise they go by message.
    pub(crate) lends: bool,
}

impl Limits {
    /// Returns the length of the longest part that does not go by message, for parts for each of `size` ranks.
    fn longest_part(self, size: usize) -> usize {
        if self.lends || self.most == usize::MAX { usize::MAX } else { self.most / size - LINE }
    }

    /// Returns the length of the longest contribution that does not go by message.
    fn longest(self) -> usize {
        if self.lends { usize::MAX } else { self.most }
    }

    /// Makes a contribution of one block for all readers.
    pub(super) fn block(self, region: Region) -> Result<Contribution> {
        if region.len() <= self.most {
            Ok(Contribution::Block(region))
        } else {
            Ok(Contribution::Lent(Box::new(LentBuffer::of_block(region, false)?)))
        }
    }

    /// Makes a contribution of a part for each rank. If no part for another rank is longer than `longest`, all are left
    /// in the mailboxes. With `in_place`, received parts overwrite the sent ones.
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
    /// The length of all parts if they are equal; otherwise a table has the lengths.
    pub(super) even: Option<usize>,
    /// Length above which a part goes by message.
    pub(super) most: usize,
}

/// What a rank receives.
pub(crate) enum Intake {
    /// Nothing.
    Nothing,
    /// The signals of all ranks.
    Signals,
    /// The block of one rank, or a part of it.
    One { from: usize, is_part: bool, into: Region },
    /// The block of each rank, or a part of it; blocks longer than `most` come by message.
    Each { into: Blocks, is_part: bool, most: usize },
    /// The blocks of neighbours.
    Neighbours(Box<Incoming>),
    /// The combined operands of the first ranks: this part of the result.
    Combined { operands: Operands, part: Range<usize>, into: Buffer, for_all: bool },
    /// The same for operands that stay in place: any polling thread combines pieces of them.
    Pieces(Box<Reduction>),
}

/// The operands of a reduction.
pub(crate) struct Operands {
    pub(super) op: Arc<Op>,
    /// A buffer of the same layout as every operand.
    pub(super) like: Buffer,
    /// Number of ranks whose operands are combined.
    pub(super) ranks: usize,
}

/// The part of one rank in an operation.
pub(crate) struct Exchange {
    pub(super) call: Signed,
    pub(super) logged: LoggedCall,
    pub(super) contribution: Contribution,
    pub(super) intake: Intake,
    /// Whether combining calls a function of the program, which only a thread of the program may run. Equal on all
    /// ranks.
    pub(super) by_program: bool,
    /// Pairs of source and destination within this rank.
    pub(super) own: SmallVec<[(Region, Region); 1]>,
    /// Parts that are too long for the mailboxes. Both ranks of a pair know that these go by message.
    pub(super) by_messages: Option<Box<Schedule>>,
    /// The neighbours, in a neighbourhood collective. Only its destinations read this rank's contribution.
    pub(super) readers: Option<Arc<Neighbours>>,
}

impl Exchange {
    pub(super) fn new(kind: Collective, member: Member, contribution: Contribution, intake: Intake) -> Exchange {
        let logged = LoggedCall { number: member.number, signature: member.signature };
        let call = member.signed(kind);
        let own = SmallVec::new();
        Exchange { call, logged, contribution, intake, by_program: false, own, by_messages: None, readers: None }
    }

    /// Makes the exchange of a reduction, of which this rank receives into `into` what the delivery says, if anything.
    /// An operand that does not fit the mailboxes stays in place: it is combined by pieces, or lent if each rank
    /// receives only its part. A lent operand is copied if the result overwrites it.
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(crate) fn reduction(
        member: impl Into<Member>,
        kind: Collective,
        limits: Limits,
        op: &Arc<Op>,
        input: &Buffer,
        into: Option<&Buffer>,
        delivery: Delivery,
    ) -> Result<Exchange> {
        let (member, bytes) = (member.into(), input.bytes());
        let (ranks, part) = delivery.to(member.rank, member.size, bytes);
        let into = into.filter(|_| ranks > 0);
        let (is_long, has_parts) = (bytes > limits.most, matches!(delivery, Delivery::Parts(_)));
        let (contribution, intake) = if is_long && !has_parts {
            let reduction = Reduction::new(op, input, into.map(Buffer::region), delivery, member.size)?;
            (Contribution::Operand, Intake::Pieces(Box::new(reduction)))
        } else {
            let contribution = if is_long {
                let in_place = into.is_some_and(|into| into.base == input.base);
                Contribution::Lent(Box::new(LentBuffer::of_block(input.region(), in_place)?))
            } else {
                Contribution::Block(input.region())
            };
            let combined = |into: &Buffer| {
                let operands = Operands { op: op.clone(), like: input.clone(), ranks };
                Intake::Combined { operands, part, into: into.clone(), for_all: kind == Collective::Allreduce }
            };
            (contribution, into.map_or(Intake::Nothing, combined))
        };
        Ok(Exchange { by_program: !op.is_predefined(), ..Exchange::new(kind, member, contribution, intake) })
    }

    /// Whether it has memory of its own for data that are too long for a mailbox.
    #[inline]
    pub(super) fn keeps_copies(&self) -> bool {
        match (&self.contribution, &self.intake) {
            (Contribution::Lent(lent), _) => lent.has_copies(),
            (_, Intake::Pieces(reduction)) => reduction.has_copies(),
            _ => false,
        }
    }

    /// Returns the number of bytes left in the mailboxes at once.
    pub(super) fn bytes(&self, size: usize, me: usize) -> usize {
        match &self.contribution {
            Contribution::Nothing | Contribution::Signal | Contribution::Announced(_) | Contribution::Operand => 0,
            Contribution::Block(region) => region.len(),
            Contribution::Parts(parts) => match parts.even {
                Some(len) => len * size,
                None => parts.table_bytes(size, me),
            },
            Contribution::Blocks(sent) => sent.bytes(),
            Contribution::Lent(lent) => lent.note_bytes(size),
        }
    }
}

impl Parts {
    /// Returns the bytes of a table and of the parts left with it. A table is always in a slot, however short.
    fn table_bytes(&self, size: usize, me: usize) -> usize {
        let near =
            (0..size).filter(|rank| *rank != me).map(|rank| self.blocks.bytes(rank)).filter(|len| *len <= self.most);
        near.fold(size * LINE, usize::saturating_add).max(BODY_BYTES + 1)
    }
}

/// The executor of one-step algorithms in the background ([`crate::one_step`]). It records contribution and intake, and
/// schedules messages for blocks that are too long, where both ranks know the length.
pub(crate) struct Recorder {
    member: Member,
    limits: Limits,
    exchange: Exchange,
}

impl Recorder {
    pub(crate) fn new(kind: Collective, member: impl Into<Member>, limits: Limits) -> Recorder {
        let member = member.into();
        Recorder { member, limits, exchange: Exchange::new(kind, member, Contribution::Nothing, Intake::Nothing) }
    }

    fn by_messages(&mut self) -> &mut Schedule {
        let member = self.member;
        self.exchange.by_messages.get_or_insert_with(|| Box::new(Schedule::new(member)))
    }

    /// Returns the other ranks whose block is longer than `most`, beginning with the next rank.
    fn longer(&self, blocks: &Blocks, most: usize) -> SmallVec<[usize; 8]> {
        let Member { rank, size, .. } = self.member;
        if most == usize::MAX {
            return SmallVec::new();
        }
        (1..size).map(|step| (rank + step) % size).filter(|peer| blocks.bytes(*peer) > most).collect()
    }
}

impl Executor for Recorder {
    type Outcome = Exchange;

    fn rank(&self) -> usize {
        self.member.rank
    }

    fn meet(&mut self) -> Result<()> {
        (self.exchange.contribution, self.exchange.intake) = (Contribution::Signal, Intake::Signals);
        Ok(())
    }

    fn contribute(&mut self, region: Region, to: Audience) -> Result<()> {
        self.exchange.contribution = match to {
            Audience::Rank(root) if region.len() > self.limits.longest() => {
                self.by_messages().send(root, region);
                Contribution::Signal
            }
            _ => self.limits.block(region)?,
        };
        Ok(())
    }

    fn contribute_parts(&mut self, parts: &Blocks, in_place: bool) -> Result<()> {
        let Member { rank, size, .. } = self.member;
        for to in self.longer(parts, self.limits.longest_part(size)) {
            let mut region = parts.region(to);
            if in_place {
                let copy = self.by_messages().temporary(region.len())?;
                // SAFETY: memory of this many bytes, which lives as long as the schedule.
                let copy = unsafe { Region::contiguous(copy, region.len()) };
                self.by_messages().copy(region, copy.clone())?;
                region = copy;
            }
            self.by_messages().send(to, region);
        }
        self.exchange.contribution = self.limits.parts(parts, size, rank, in_place)?;
        Ok(())
    }

    fn take(&mut self, from: usize, share: Share, into: Region) -> Result<()> {
        let is_part = share == Share::Part;
        if is_part && into.len() > self.limits.longest_part(self.member.size) {
            self.by_messages().receive(from, into);
        } else {
            self.exchange.intake = Intake::One { from, is_part, into };
        }
        Ok(())
    }

    fn take_each(&mut self, share: Share, own: Option<Region>, into: &Blocks) -> Result<()> {
        let is_part = share == Share::Part;
        let most = if is_part { self.limits.longest_part(self.member.size) } else { self.limits.longest() };
        for from in self.longer(into, most) {
            self.by_messages().receive(from, into.region(from));
        }
        if matches!(self.exchange.contribution, Contribution::Nothing) {
            self.exchange.contribution = Contribution::Signal;
        }
        self.exchange.intake = Intake::Each { into: into.clone(), is_part, most };
        own.map_or(Ok(()), |own| self.copy_own(own, into.region(self.member.rank)))
    }

    fn copy_own(&mut self, from: Region, to: Region) -> Result<()> {
        check_own(self.member.rank, &from, &to)?;
        self.exchange.own.push((from, to));
        Ok(())
    }

    fn finish(self) -> Result<Exchange> {
        Ok(self.exchange)
    }
}
