//! What each operation leaves in a depot and gets from there.

use std::ops::Range;
use std::sync::Arc;

use limosa_base::stage::BODY_BYTES;
use limosa_p2p::memory::Region;

use super::loan::Loan;
use super::shelf::LINE;
use crate::coll::Call;
use crate::coll::buffer::{Blocks, Buffer};
use crate::coll::node::Kind;
use crate::coll::schedule::{Schedule, check_own};
use crate::error::Result;
use crate::op::Op;

/// What a rank leaves.
pub(in crate::coll) enum Give {
    /// Nothing: nobody waits for it.
    Nothing,
    /// Its word that it has called.
    Signal,
    /// Bytes, the same for all who want them.
    Block(Region),
    /// Bytes for each rank.
    Parts(Box<Parts>),
    /// Leave to read bytes where they are.
    Loan(Box<Loan>),
}

/// What an operation may leave in a depot.
#[derive(Clone, Copy)]
pub(in crate::coll) struct Terms {
    /// Most bytes of a rank; [`usize::MAX`] if all are known to fit.
    pub(in crate::coll) most: usize,
    /// What is longer is lent; otherwise it goes by message.
    pub(in crate::coll) lends: bool,
}

impl Terms {
    /// Longest part, of parts for each of `size` ranks, that does not go by message.
    fn longest_part(self, size: usize) -> usize {
        if self.lends || self.most == usize::MAX { usize::MAX } else { self.most / size - LINE }
    }

    /// Longest contribution that does not go by message.
    fn longest(self) -> usize {
        if self.lends { usize::MAX } else { self.most }
    }

    /// One block for all who want it.
    fn block(self, region: Region) -> Result<Give> {
        if region.len() <= self.most { Ok(Give::Block(region)) } else { Ok(Give::Loan(Box::new(Loan::of_block(region)?))) }
    }

    /// A part for each rank; of those that others get none goes by message that is not longer than `longest`. With `in_place` others write to
    /// their places.
    fn parts(self, blocks: &Blocks, size: usize, me: usize, in_place: bool) -> Result<Give> {
        let even = (self.most == usize::MAX).then(|| blocks.bytes(me));
        let parts = Parts { even, blocks: blocks.clone(), most: self.longest_part(size) };
        if self.lends && even.is_none() && parts.table_bytes(size, me) > self.most {
            return Ok(Give::Loan(Box::new(Loan::of_parts(parts.blocks, size, me, in_place)?)));
        }
        Ok(Give::Parts(Box::new(parts)))
    }
}

/// Bytes for each rank.
pub(in crate::coll) struct Parts {
    pub(super) blocks: Blocks,
    /// The length of all, if that is one; else there is a table.
    pub(super) even: Option<usize>,
    /// Longer parts go by message.
    pub(super) most: usize,
}

/// What a rank gets.
pub(in crate::coll) enum Take {
    /// Nothing.
    Nothing,
    /// Word that all have called.
    Signals,
    /// What one rank has for all, or a part of that.
    One { from: usize, part: Option<usize>, into: Region },
    /// What each rank has, or a part of that; longer ones than `most` come by message.
    Each { into: Blocks, part: Option<usize>, most: usize },
    /// The operands of the first ranks combined: this part of them.
    Combined { operands: Operands, part: Range<usize>, into: Buffer, for_all: bool },
}

/// What is combined.
pub(in crate::coll) struct Operands {
    pub(super) op: Arc<Op>,
    /// One like all of them.
    pub(super) like: Buffer,
    /// Of so many ranks.
    pub(super) ranks: usize,
}

/// What a rank does in an operation.
pub(in crate::coll) struct Deal {
    pub(super) kind: Kind,
    pub(super) give: Give,
    pub(super) take: Take,
    /// What it copies to itself.
    pub(super) own: Option<(Region, Region)>,
    /// Parts that are too long to be left, between ranks that both know it: these go by message.
    pub(super) far: Option<Box<Schedule>>,
}

impl Deal {
    fn new(kind: Kind, give: Give, take: Take) -> Deal {
        Deal { kind, give, take, own: None, far: None }
    }

    pub(in crate::coll) fn barrier() -> Deal {
        Deal::new(Kind::Barrier, Give::Signal, Take::Signals)
    }

    pub(in crate::coll) fn bcast(call: &Call<'_>, terms: Terms, buffer: &Buffer, root: usize) -> Result<Deal> {
        let region = buffer.region();
        if call.rank() == root {
            return Ok(Deal::new(Kind::Bcast, terms.block(region)?, Take::Nothing));
        }
        Ok(Deal::new(Kind::Bcast, Give::Nothing, Take::One { from: root, part: None, into: region }))
    }

    /// Contributions of any length.
    pub(in crate::coll) fn gather(
        call: &Call<'_>,
        terms: Terms,
        send: Option<&Buffer>,
        receive: Option<&Blocks>,
        root: usize,
    ) -> Result<Deal> {
        let (me, most) = (call.rank(), terms.longest());
        let mut far = Far::new(call);
        if me == root {
            let receive = receive.expect("the root has room for all");
            let own = own(me, send.map(Buffer::region), receive)?;
            for rank in (0..call.size()).filter(|rank| *rank != me && receive.bytes(*rank) > most) {
                far.schedule().receive(rank, receive.region(rank));
            }
            let take = Take::Each { into: receive.clone(), part: None, most };
            return Ok(Deal { own, far: far.0, ..Deal::new(Kind::Gather, Give::Signal, take) });
        }
        let region = send.expect("a rank that is not the root sends").region();
        if region.len() > most {
            far.schedule().send(root, region);
            return Ok(Deal { far: far.0, ..Deal::new(Kind::Gather, Give::Signal, Take::Nothing) });
        }
        Ok(Deal::new(Kind::Gather, terms.block(region)?, Take::Nothing))
    }

    /// Parts, which are even and fit, or of any length.
    pub(in crate::coll) fn scatter(
        call: &Call<'_>,
        terms: Terms,
        send: Option<&Blocks>,
        receive: Option<&Buffer>,
        root: usize,
    ) -> Result<Deal> {
        let (me, size) = (call.rank(), call.size());
        let most = terms.longest_part(size);
        let mut far = Far::new(call);
        if me != root {
            let into = receive.expect("a rank that is not the root receives").region();
            if into.len() > most {
                far.schedule().receive(root, into);
                return Ok(Deal { far: far.0, ..Deal::new(Kind::Scatter, Give::Nothing, Take::Nothing) });
            }
            return Ok(Deal::new(Kind::Scatter, Give::Nothing, Take::One { from: root, part: Some(me), into }));
        }
        let send = send.expect("the root has parts for all");
        let own = receive.map(|receive| (send.region(me), receive.region()));
        if let Some((from, to)) = &own {
            check_own(me, from, to)?;
        }
        for rank in (0..size).filter(|rank| *rank != me && send.bytes(*rank) > most) {
            far.schedule().send(rank, send.region(rank));
        }
        let give = terms.parts(send, size, me, false)?;
        Ok(Deal { own, far: far.0, ..Deal::new(Kind::Scatter, give, Take::Nothing) })
    }

    /// Contributions of any length.
    pub(in crate::coll) fn allgather(call: &Call<'_>, terms: Terms, send: Option<&Buffer>, receive: &Blocks) -> Result<Deal> {
        let me = call.rank();
        let own = own(me, send.map(Buffer::region), receive)?;
        let give = terms.block(send.map_or_else(|| receive.region(me), Buffer::region))?;
        let take = Take::Each { into: receive.clone(), part: None, most: usize::MAX };
        Ok(Deal { own, ..Deal::new(Kind::Allgather, give, take) })
    }

    /// Parts, as in a scatter.
    pub(in crate::coll) fn alltoall(call: &Call<'_>, terms: Terms, send: Option<&Blocks>, receive: &Blocks) -> Result<Deal> {
        let (me, size) = (call.rank(), call.size());
        let most = terms.longest_part(size);
        let own = own(me, send.map(|send| send.region(me)), receive)?;
        let mut far = Far::new(call);
        let others = || (1..size).map(|step| (me + step) % size);
        match send {
            Some(send) => others().filter(|to| send.bytes(*to) > most).for_each(|to| far.schedule().send(to, send.region(to))),
            None => {
                // In place, what goes out has the lengths of what comes in.
                for to in others().filter(|to| receive.bytes(*to) > most) {
                    let copy = far.schedule().temporary(receive.bytes(to))?;
                    // SAFETY: memory of this many bytes, which lives as long as the schedule.
                    let copy = unsafe { Region::contiguous(copy, receive.bytes(to)) };
                    far.schedule().copy(receive.region(to), copy.clone())?;
                    far.schedule().send(to, copy);
                }
            }
        }
        others().filter(|from| receive.bytes(*from) > most).for_each(|from| far.schedule().receive(from, receive.region(from)));
        let give = terms.parts(send.unwrap_or(receive), size, me, send.is_none())?;
        let take = Take::Each { into: receive.clone(), part: Some(me), most };
        Ok(Deal { own, far: far.0, ..Deal::new(Kind::Alltoall, give, take) })
    }

    /// The operands of the first `ranks` ranks combined; `part` of that comes to `into`, if this rank gets any.
    pub(in crate::coll) fn reduction(
        kind: Kind,
        op: &Arc<Op>,
        input: &Buffer,
        ranks: usize,
        part: Range<usize>,
        into: Option<&Buffer>,
    ) -> Deal {
        let take = match into {
            Some(into) if ranks > 0 => {
                let operands = Operands { op: op.clone(), like: input.clone(), ranks };
                Take::Combined { operands, part, into: into.clone(), for_all: kind == Kind::Allreduce }
            }
            _ => Take::Nothing,
        };
        Deal::new(kind, Give::Block(input.region()), take)
    }

    /// Bytes that are left at once.
    pub(super) fn bytes(&self, size: usize, me: usize) -> usize {
        match &self.give {
            Give::Nothing | Give::Signal => 0,
            Give::Block(region) => region.len(),
            Give::Parts(parts) => match parts.even {
                Some(len) => len * size,
                None => parts.table_bytes(size, me),
            },
            Give::Loan(loan) => loan.note_bytes(size),
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
struct Far<'a>(Option<Box<Schedule>>, &'a Call<'a>);

impl<'a> Far<'a> {
    fn new(call: &'a Call<'a>) -> Far<'a> {
        Far(None, call)
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
