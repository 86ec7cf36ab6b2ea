//! The blocking executor of one-step algorithms ([`crate::one_step`]), in which verbs have immediate effect.
//!
//! A contribution that fits a slot or a part of the ring buffer is copied there; a longer one is offered by address and
//! fetched ([`super::rooted`] has the code of a root and its partners for long data). A rank that takes from all begins
//! with its neighbour, so that no rank is the source of all at once. After an error this rank continues, so that no
//! other rank is left waiting, and returns the first error at the end.
//!
//! In a barrier with a processor for every rank, each rank posts a note and polls those of all other ranks: the time of
//! one flag. When ranks share processors, the last rank to arrive posts the note of the group, so that the others poll
//! one line, not all.

use limosa_p2p::memory::Region;

use super::call::{First, SharedCall};
use super::post::Kept;
use super::rounds::{self, Rounds};
use super::{Collective, rooted, select};
use crate::buffer::{Blocks, Buffer};
use crate::memory::Flat;
use crate::notes::{Location, SlotNote, failed_for_all};
use crate::one_step::{self, Audience, Executor, Share};
use crate::schedule::copy_own;
use limosa_mpi::error::Result;

/// The executor of one call.
pub(super) struct Immediate<'c, 'a> {
    call: &'c SharedCall<'a>,
    contributed: Contributed,
    trouble: First,
}

/// The contribution of this rank, which must stay unchanged until all have finished the call.
enum Contributed {
    Nothing,
    Whole(Option<Flat>),
    Parts(Kept),
}

impl<'c, 'a> Immediate<'c, 'a> {
    #[inline(always)]
    pub(super) fn new(call: &'c SharedCall<'a>) -> Immediate<'c, 'a> {
        Immediate { call, contributed: Contributed::Nothing, trouble: First::default() }
    }
}

impl Executor for Immediate<'_, '_> {
    type Outcome = ();

    #[inline(always)]
    fn rank(&self) -> usize {
        self.call.me()
    }

    #[inline(always)]
    fn meet(&mut self) -> Result<()> {
        if !select::meets_in_the_middle(self.call.group) {
            self.call.sign()?;
            return self.call.meet_all();
        }
        // No rank waits for this note: it publishes this rank's call. The last rank reads all notes.
        self.call.sign()?;
        if self.call.arrive()? {
            let checked = self.call.check_all();
            self.call.post_for_all(&if checked.is_ok() { SlotNote::signal() } else { SlotNote::of_nothing() });
            checked?;
        } else {
            let all = self.call.size();
            self.call.wait_for(all)?;
            if matches!(self.call.posted(all)?.place, Location::Nowhere) {
                self.call.check_all()?;
                return Err(failed_for_all(self.call.kind));
            }
        }
        self.call.group.raise_floor(self.call.number() - 1);
        Ok(())
    }

    #[inline(always)]
    fn contribute(&mut self, region: Region, to: Audience) -> Result<()> {
        match to {
            Audience::All => self.contributed = Contributed::Whole(self.call.contribute(&region, false)?),
            Audience::Rank(root) => rooted::contribute_to(self.call, &region, root)?,
        }
        Ok(())
    }

    fn contribute_parts(&mut self, parts: &Blocks, in_place: bool) -> Result<()> {
        self.contributed = Contributed::Parts(self.call.contribute_parts(parts, in_place)?);
        Ok(())
    }

    #[inline(always)]
    fn take(&mut self, from: usize, share: Share, into: Region) -> Result<()> {
        match share {
            Share::Whole => self.call.take(from, self.call.agree_with(from, into.len())?, &into),
            Share::Part => rooted::take_part(self.call, from, &into),
        }
    }

    fn take_each(&mut self, share: Share, own: Option<Region>, into: &Blocks) -> Result<()> {
        let call = self.call;
        if matches!(self.contributed, Contributed::Nothing) {
            return rooted::take_each(call, own, into);
        }
        let me = call.me();
        if let Some(own) = own {
            self.trouble.note(copy_own(me, &own, &into.region(me)));
        }
        for rank in (1..call.size()).map(|distance| call.after(distance)) {
            call.wait_for(rank)?;
            let posted = if share == Share::Part { call.posted_part(rank) } else { call.posted(rank) };
            let posted = posted.and_then(|posted| posted.check(rank, into.bytes(rank)));
            self.trouble.note(posted.and_then(|posted| call.take(rank, posted, &into.region(rank))));
        }
        call.group.raise_floor(call.number() - 1);
        Ok(())
    }

    fn copy_own(&mut self, from: Region, to: Region) -> Result<()> {
        self.trouble.note(copy_own(self.call.me(), &from, &to));
        Ok(())
    }

    #[inline(always)]
    fn finish(self) -> Result<()> {
        let Immediate { call, contributed, mut trouble } = self;
        match contributed {
            Contributed::Nothing | Contributed::Whole(None) => {}
            // Other ranks read this rank's memory.
            Contributed::Whole(Some(_kept)) => {
                trouble.note(call.finish_together());
            }
            Contributed::Parts(kept) => {
                if call.kind == Collective::Scatter {
                    trouble.note(rooted::help_with_parts(call, &kept));
                }
                trouble.note(call.settle(&kept));
            }
        }
        trouble.end()
    }
}

/// Waits until all ranks are in this call.
#[inline]
pub(crate) fn barrier(call: &SharedCall<'_>) -> Result<()> {
    one_step::barrier(Immediate::new(call))
}

/// Copies the root's data to all ranks.
#[inline]
pub(crate) fn bcast(call: &SharedCall<'_>, buffer: &Buffer, root: usize) -> Result<()> {
    if !call.puts(buffer.bytes()) {
        return rooted::bcast_long(call, &buffer.region(), root);
    }
    one_step::bcast(Immediate::new(call), buffer, root)
}

/// Scatters the root's data.
pub(crate) fn scatter(
    call: &SharedCall<'_>,
    send: Option<&Blocks>,
    receive: Option<&Buffer>,
    root: usize,
) -> Result<()> {
    one_step::scatter(Immediate::new(call), send, receive, root)
}

/// Gathers the data of all ranks at the root.
pub(crate) fn gather(
    call: &SharedCall<'_>,
    send: Option<&Buffer>,
    receive: Option<&Blocks>,
    root: usize,
) -> Result<()> {
    one_step::gather(Immediate::new(call), send, receive, root)
}

/// Gathers the contributions of all ranks at all ranks. `send` is `None` if in place.
pub(crate) fn allgather(call: &SharedCall<'_>, send: Option<&Buffer>, receive: &Blocks) -> Result<()> {
    let most = receive.most_bytes(call.size());
    if select::in_rounds(call.group, call.kind, most)
        && let Some(rounds) = Rounds::begin(call, most, None)?
    {
        return rounds::allgather(&rounds, send, receive);
    }
    one_step::allgather(Immediate::new(call), send, receive)
}

/// Sends a part from every rank to every rank. `send` is `None` if the sent parts are in the places of the received
/// ones.
pub(crate) fn alltoall(call: &SharedCall<'_>, send: Option<&Blocks>, receive: &Blocks) -> Result<()> {
    if receive.are_even() {
        let each = receive.bytes(call.me());
        let all = each.saturating_mul(call.size());
        if all > call.slot_bytes()
            && select::in_rounds(call.group, call.kind, all)
            && let Some(rounds) = Rounds::begin(call, each, None)?
        {
            return rounds::alltoall(&rounds, send, receive);
        }
    }
    one_step::alltoall(Immediate::new(call), send, receive)
}
