//! Collective accesses by messages: some processes, the *aggregators*, move strips to and from the file.
//!
//! ```text
//! file      | strip 0 | strip 1 | strip 2 | strip 3 | ...        round 0: strips 0 and 1, round 1: strips 2 and 3
//! by        |  aggr 0 |  aggr 1 |  aggr 0 |  aggr 1 |
//! ```
//!
//! In each round every aggregator processes one strip. For a write, it receives the strip's data from all processes,
//! directly into their places in its buffer, and writes the buffer. For a read, it reads the strip and sends each
//! process its pieces. One exchange before the first round tells the aggregators which pieces each process has in each
//! strip.

use limosa_coll::alltoall_bytes;
use limosa_coll::regions::{Round, exchange_regions};
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

use crate::agree;
use crate::datarep::room;
use crate::file::File;
use crate::plan::Cut;
use crate::shares::{Share, segments, shares};
use crate::view::View;

/// The strips, and the ranks of the aggregators to which they are assigned round-robin.
struct Deal<'a> {
    cut: &'a Cut,
    aggregators: &'a [usize],
}

impl Deal<'_> {
    fn rounds(&self) -> u64 {
        self.cut.strips.div_ceil(self.aggregators.len() as u64)
    }

    /// Returns the rank of the aggregator of a strip.
    fn aggregator(&self, strip: u64) -> usize {
        self.aggregators[(strip % self.aggregators.len() as u64) as usize]
    }
}

impl File {
    /// Moves the stream of `region` to or from the stream of `view` from `from` on, collectively. Returns the outcome
    /// of this process's system calls, which the others do not know yet.
    ///
    /// # Errors
    /// Those of messages. This process must then not begin another collective operation: members that have yet to learn
    /// of the same death could mistake it for a mismatched one.
    pub(crate) fn transfer_by_messages(
        &self,
        view: &View,
        is_write: bool,
        (from, region): (u64, &Region),
        cut: &Cut,
        aggregators: &[usize],
    ) -> Result<Result<()>> {
        let deal = Deal { cut, aggregators };
        let place = aggregators.iter().position(|rank| *rank == self.comm.rank() as usize);
        let buffer = agree::on_outcome(&self.comm, self.take_strip_buffer(place.map_or(0, |_| cut.strip)))?;
        let mine = shares(view, from, region.len() as u64, cut);
        let mut told = vec![Vec::new(); self.comm.size()];
        mine.iter().for_each(|share| share.encode(&mut told[deal.aggregator(share.strip)]));
        let told = alltoall_bytes(&self.comm, &told)?;
        let theirs = told.iter().map(|message| Share::decode(message, cut)).collect::<Result<Vec<_>>>()?;
        let mut work = Rounds {
            file: self,
            deal: &deal,
            is_write,
            region,
            mine: mine.iter().peekable(),
            theirs: theirs.iter().map(|shares| shares.iter().peekable()).collect(),
            place,
            done: 0,
            buffer,
        };
        let outcome = (0..deal.rounds()).try_fold(Ok(()), |outcome, round| Ok(outcome.and(work.round(round)?)));
        *self.strip_buffer.lock() = work.buffer;
        outcome
    }

    /// Returns a buffer of at least so many bytes: that of the last access, if it is long enough.
    fn take_strip_buffer(&self, bytes: u64) -> Result<Vec<u8>> {
        let kept = std::mem::take(&mut *self.strip_buffer.lock());
        if kept.len() as u64 >= bytes { Ok(kept) } else { room(bytes as i64) }
    }
}

/// State of one process's rounds.
struct Rounds<'a> {
    file: &'a File,
    deal: &'a Deal<'a>,
    is_write: bool,
    region: &'a Region,
    mine: std::iter::Peekable<std::slice::Iter<'a, Share>>,
    theirs: Vec<std::iter::Peekable<std::slice::Iter<'a, Share>>>,
    /// Index of this process among the aggregators, if it is one.
    place: Option<usize>,
    /// Bytes of this process's data that earlier rounds have moved.
    done: usize,
    buffer: Vec<u8>,
}

impl Rounds<'_> {
    /// Performs one round. The outer error is one of messages, the inner one of the system.
    fn round(&mut self, round: u64) -> Result<Result<()>> {
        let count = self.deal.aggregators.len() as u64;
        let strip = self.place.map(|place| round * count + place as u64).filter(|strip| *strip < self.deal.cut.strips);
        let theirs: Vec<Option<&Share>> = match strip {
            Some(strip) => self.theirs.iter_mut().map(|shares| shares.next_if(|share| share.strip == strip)).collect(),
            None => Vec::new(),
        };
        let segments = segments(theirs.iter().flatten().copied());
        let mut outcome = Ok(());
        if let (false, Some(&(_, end)), Some(strip)) = (self.is_write, segments.last(), strip) {
            let start = segments[0].0;
            let part = &mut self.buffer[start as usize..end as usize];
            outcome = self.file.core.system.read(part, self.deal.cut.start_of(strip) + start).map(|_| ());
        }
        // Even after a failure: the other processes wait for the exchange.
        self.exchange((round + 1) * count, &theirs)?;
        Ok(match (self.is_write, strip) {
            (true, Some(strip)) if outcome.is_ok() => {
                self.file.core.write_segments(&mut self.buffer, self.deal.cut.start_of(strip), &segments)
            }
            _ => outcome,
        })
    }

    /// Moves the data between the processes' memory and the buffers of the aggregators. `end`: first strip of the next
    /// round.
    fn exchange(&mut self, end: u64, theirs: &[Option<&Share>]) -> Result<()> {
        let me = self.file.comm.rank() as usize;
        let mut round = Round::default();
        let (to_aggregators, from_all) = match self.is_write {
            true => (&mut round.sends, &mut round.receives),
            false => (&mut round.receives, &mut round.sends),
        };
        let mut own = None;
        while let Some(share) = self.mine.next_if(|share| share.strip < end) {
            let part = self.region.part(self.done, share.bytes as usize);
            self.done += share.bytes as usize;
            match self.deal.aggregator(share.strip) {
                rank if rank == me => own = Some(part),
                rank => to_aggregators.push((rank, part)),
            }
        }
        let buffer = self.buffer.as_mut_ptr();
        for (rank, share) in theirs.iter().enumerate() {
            let Some(share) = share else { continue };
            let place = share.region(buffer)?;
            match own.take_if(|_| rank == me) {
                Some(part) if self.is_write => round.own = Some((part, place)),
                Some(part) => round.own = Some((place, part)),
                None => from_all.push((rank, place)),
            }
        }
        exchange_regions(&self.file.comm, round)
    }
}
