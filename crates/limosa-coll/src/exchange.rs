//! One-step algorithms by messages: all to all, one to all, or all to one.
//!
//! [`Messages`] runs the descriptions of [`crate::one_step`]; other algorithms have steps in which all ranks exchange
//! slices ([`exchange`]).
//!
//! In step `k` rank `r` sends to `r + k` and receives from `r - k`, so every rank has different partners in each step.
//! `WINDOW` steps make a round: enough to overlap their latencies, few enough that a large job does not post thousands
//! of transfers at once.
//!
//! Cost for blocks of n bytes: ceil((p - 1) / WINDOW) a + (p - 1) n b, where `a` is the latency of a message and `b`
//! the time of a byte.

use limosa_p2p::memory::Region;

use super::buffer::Blocks;
use super::kind::Signature;
use super::one_step::{Audience, Executor, Share};
use super::run::run;
use super::schedule::{Member, Schedule};
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;

/// Number of partners with which transfers are under way at once.
pub(super) const WINDOW: usize = 32;

/// Plans that each rank sends `send(j)` to and receives `receive(j)` from every other rank `j`. The last round is left
/// open, for steps that need not wait for it.
pub(super) fn exchange(s: &mut Schedule, send: impl Fn(usize) -> Region, receive: impl Fn(usize) -> Region) {
    let (rank, size) = (s.rank(), s.size());
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        s.receive(from, receive(from));
        s.send(to, send(to));
        if step % WINDOW == 0 && step + 1 < size {
            s.wait();
        }
    }
}

/// The executor by messages, which appends the steps to a schedule.
pub(super) struct Messages<'s> {
    schedule: &'s mut Schedule,
    /// Regions by rank; empty if this rank sends nothing.
    sends: Vec<Region>,
    /// Regions by rank; empty if this rank receives nothing.
    receives: Vec<Region>,
    own: Option<(Region, Region)>,
}

impl<'s> Messages<'s> {
    pub(super) fn new(schedule: &'s mut Schedule) -> Messages<'s> {
        Messages { schedule, sends: Vec::new(), receives: Vec::new(), own: None }
    }

    /// Returns an empty region for each rank.
    fn nothing(&self) -> Vec<Region> {
        vec![Region::empty(); self.schedule.size()]
    }

    /// Returns the other ranks, beginning with the next rank.
    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let (rank, size) = (self.schedule.rank(), self.schedule.size());
        (1..size).map(move |step| (rank + step) % size)
    }

    /// Copies the parts for other ranks to temporary memory.
    fn copies(&mut self, parts: &Blocks) -> Result<Vec<Region>> {
        let bytes = self.others().map(|peer| parts.bytes(peer)).sum();
        let start = self.schedule.temporary(bytes)?;
        let (mut copies, mut used) = (self.nothing(), 0);
        for peer in self.others() {
            // SAFETY: inside the temporary memory, which has room for all of them.
            copies[peer] = unsafe { Region::contiguous(start.wrapping_add(used), parts.bytes(peer)) };
            used += parts.bytes(peer);
            self.schedule.copy(parts.region(peer), copies[peer].clone())?;
        }
        Ok(copies)
    }
}

impl Executor for Messages<'_> {
    type Outcome = ();

    fn rank(&self) -> usize {
        self.schedule.rank()
    }

    fn meet(&mut self) -> Result<()> {
        self.others().for_each(|from| self.schedule.receive_signal(from));
        self.others().for_each(|to| self.schedule.signal(to));
        Ok(())
    }

    fn contribute(&mut self, region: Region, to: Audience) -> Result<()> {
        self.sends = self.nothing();
        match to {
            Audience::All => self.sends.fill(region),
            Audience::Rank(to) => self.sends[to] = region,
        }
        Ok(())
    }

    fn contribute_parts(&mut self, parts: &Blocks, in_place: bool) -> Result<()> {
        // In place, sent and received blocks of a pair have the same length.
        self.sends =
            if in_place { self.copies(parts)? } else { (0..self.schedule.size()).map(|to| parts.region(to)).collect() };
        Ok(())
    }

    fn take(&mut self, from: usize, _share: Share, into: Region) -> Result<()> {
        self.receives = self.nothing();
        self.receives[from] = into;
        Ok(())
    }

    fn take_each(&mut self, _share: Share, own: Option<Region>, into: &Blocks) -> Result<()> {
        self.receives = (0..self.schedule.size()).map(|from| into.region(from)).collect();
        let rank = self.rank();
        own.map_or(Ok(()), |own| self.copy_own(own, into.region(rank)))
    }

    fn copy_own(&mut self, from: Region, to: Region) -> Result<()> {
        self.own = Some((from, to));
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let Messages { schedule, sends, receives, own } = self;
        if !sends.is_empty() && !receives.is_empty() {
            exchange(schedule, |to| sends[to].clone(), |from| receives[from].clone());
        } else {
            let (rank, size) = (schedule.rank(), schedule.size());
            for peer in (1..size).map(|step| (rank + step) % size) {
                receives.get(peer).into_iter().for_each(|region| schedule.receive(peer, region.clone()));
                sends.get(peer).into_iter().for_each(|region| schedule.send(peer, region.clone()));
            }
        }
        own.map_or(Ok(()), |(from, to)| schedule.copy(from, to))
    }
}

/// Exchanges bytes of the same length between some ranks, of which this is one; returns them in the order of `members`.
/// The messages are those of the blocking operation with this number.
///
/// # Errors
/// Errors of the machine.
pub(super) fn allgather_by_messages(comm: &Comm, members: &[u32], number: u64, mine: &[u8]) -> Result<Vec<u8>> {
    let length = mine.len();
    let mut schedule = Schedule::new(Member {
        rank: comm.rank() as usize,
        size: comm.size(),
        number,
        signature: Signature::setting_up(),
    });
    let mut all = vec![0; length * members.len()];
    let start = all.as_mut_ptr();
    // SAFETY: the blocks lie in `all`, which lives to the end of this function; no step uses the block of another
    // transfer.
    let block = |place: usize| unsafe { Region::contiguous(start.add(place * length), length) };
    schedule.over(members, |s| {
        let own = block(s.rank());
        own.write(0, mine);
        exchange(s, |_| own.clone(), block);
        Ok(())
    })?;
    run(comm, schedule)?;
    Ok(all)
}

/// Allocates memory for the bytes of all members, with those of this rank in place.
pub(super) fn own_among_all(comm: &Comm, mine: &[u8]) -> Vec<u8> {
    let mut all = vec![0; mine.len() * comm.size()];
    all[comm.rank() as usize * mine.len()..][..mine.len()].copy_from_slice(mine);
    all
}
