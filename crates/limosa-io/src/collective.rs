//! Accesses by all processes of a file together (MPI-5 section 14.4), in two phases.
//!
//! Where the pieces of different processes are short and lie between each other, some processes, the *aggregators*, do
//! the work of the system calls: the part of the file that is accessed is cut into strips, and these are dealt out to
//! the aggregators. In each round every aggregator takes one strip. To write, it gets the strip's data from all
//! processes, straight to their places in its buffer, and writes the buffer; to read, it reads the strip and sends each
//! process what it wants.
//!
//! ```text
//! file      | strip 0 | strip 1 | strip 2 | strip 3 | ...        round 0: strips 0 and 1, round 1: strips 2 and 3
//! by        |  aggr 0 |  aggr 1 |  aggr 0 |  aggr 1 |
//! ```
//!
//! Which pieces each process has in each strip, the aggregators learn in one exchange before the first round, as *runs*
//! of equally long pieces at equal distances; so an array of many dimensions takes a few numbers.
//!
//! Otherwise each process moves its own data ([`crate::access`]): where the ranges of the processes do not overlap, or
//! the pieces are long, or there is little in a wide range, and always in atomic mode. Processes of one host also read for
//! themselves what is not too scattered: what lies between their pieces is in memory, since others read it.
//!
//! The two phases take one more copy of the data than plain accesses, and two small collective operations at the start
//! and one at the end, which tells all processes of an error.

use std::sync::atomic::Ordering;

use limosa_base::file::RangeLock;
use limosa_coll::alltoall_bytes;
use limosa_coll::regions::{Round, exchange_regions};
use limosa_mpi::consts::MPI_BYTE;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_p2p::memory::Region;

use crate::access::Core;
use crate::agree;
use crate::datarep::room;
use crate::file::File;
use crate::hints::Buffering;
use crate::view::View;

/// From this mean length on, pieces are as fast each for itself.
const LONG_PIECE: u64 = 32 << 10;
/// Shortest strip that is worth an aggregator.
const LEAST_STRIP: u64 = 64 << 10;
/// Strips begin at multiples of this, unless a hint says otherwise: pages, and blocks of most file systems.
const BLOCK: u64 = 4096;
/// If less than this part of the range is accessed, most strips would be empty.
const SPARSE: u64 = 64;
/// A process that reads at least this part of its range does so alone.
const DENSE: u64 = 8;
/// Segments of a strip that are shorter than this are written together with what lies between them.
const SHORT_SEGMENT: u64 = 8 << 10;

/// Words that each process tells before the first round.
const WORDS: usize = 6;

/// What a process is about to access.
#[derive(Clone, Copy)]
struct Wish {
    first: u64,
    end: u64,
    bytes: u64,
    pieces: u64,
    is_ordered: bool,
    processors: u64,
    size: u64,
}

impl Wish {
    fn new(view: &View, from: u64, bytes: u64, size: u64) -> Wish {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let (first, end) = match bytes {
            0 => (0, 0),
            _ => (view.byte_of(from), view.byte_of(from + bytes - 1) + 1),
        };
        let pieces = bytes.div_ceil((view.mean_piece() as u64).max(1));
        Wish { first, end, bytes, pieces, is_ordered: view.is_ordered_in(from, bytes), processors, size }
    }

    fn words(&self) -> [u64; WORDS] {
        let last = self.processors << 1 | u64::from(self.is_ordered);
        [self.first, self.end, self.bytes, self.pieces, last, self.size]
    }

    fn of([first, end, bytes, pieces, last, size]: [u64; WORDS]) -> Wish {
        Wish { first, end, bytes, pieces, is_ordered: last & 1 == 1, processors: last >> 1, size }
    }
}

/// How the work is divided: the same at all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Plan {
    /// Where the first strip begins.
    start: u64,
    strip: u64,
    strips: u64,
    /// Ranks of the aggregators.
    aggregators: Vec<usize>,
}

impl Plan {
    /// `None` if each process had better move its own data.
    fn new(wishes: &[Wish], use_of: &Use) -> Option<Plan> {
        let Use { is_write, buffering, wanted, buffer, stripe, hosts } = *use_of;
        let total: u64 = wishes.iter().map(|wish| wish.bytes).sum();
        let busy: Vec<&Wish> = wishes.iter().filter(|wish| wish.bytes > 0).collect();
        let first = busy.iter().map(|wish| wish.first).min()?;
        let end = busy.iter().map(|wish| wish.end).max()?;
        let span = end - first;
        let can = busy.iter().all(|wish| wish.is_ordered) && span / SPARSE <= total && buffering != Buffering::Never;
        let pays = || {
            let mut ranges: Vec<(u64, u64)> = busy.iter().map(|wish| (wish.first, wish.end)).collect();
            ranges.sort_unstable();
            let interleaved = ranges.windows(2).any(|pair| pair[1].0 < pair[0].1);
            // On one host the others have brought what this process does not want into memory: reading it is a copy.
            let reads_alone =
                !is_write && hosts == 1 && busy.iter().all(|wish| (wish.end - wish.first) / DENSE <= wish.bytes);
            interleaved && !reads_alone && total / busy.iter().map(|wish| wish.pieces).sum::<u64>().max(1) < LONG_PIECE
        };
        if !can || wishes.len() == 1 || buffering == Buffering::Automatic && !pays() {
            return None;
        }
        let size = wishes.len() as u64;
        let most = if wanted > 0 { wanted } else { wishes[0].processors.max(1).saturating_mul(hosts) };
        let most = most.clamp(1, size);
        let block = if stripe > 0 { stripe } else { BLOCK };
        let strip = span.div_ceil(most).max(LEAST_STRIP).min(buffer).next_multiple_of(block);
        let start = first / block * block;
        let strips = (end - start).div_ceil(strip);
        let count = most.min(strips);
        let aggregators = (0..count).map(|i| (i * size / count) as usize).collect();
        Some(Plan { start, strip, strips, aggregators })
    }

    fn rounds(&self) -> u64 {
        self.strips.div_ceil(self.aggregators.len() as u64)
    }

    /// Place among the aggregators of the one that has a strip.
    fn place(&self, strip: u64) -> usize {
        (strip % self.aggregators.len() as u64) as usize
    }

    fn start_of(&self, strip: u64) -> u64 {
        self.start + strip * self.strip
    }
}

/// What hints and the job say about a collective access.
struct Use {
    is_write: bool,
    buffering: Buffering,
    /// Aggregators; 0: as many as are good.
    wanted: u64,
    /// Most bytes of a strip.
    buffer: u64,
    /// What strips are aligned to; 0: as is good.
    stripe: u64,
    hosts: u64,
}

/// Equally long pieces at equal distances. The first one begins at an offset in its strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u64,
    len: u64,
    stride: u64,
    count: u64,
}

impl Run {
    fn bytes(&self) -> u64 {
        self.len * self.count
    }

    /// Appends a piece if it continues the run.
    fn takes(&mut self, at: u64, len: u64) -> bool {
        if len != self.len || at < self.start + self.len {
            return false;
        }
        if self.count == 1 {
            self.stride = at - self.start;
        } else if at != self.start + self.stride * self.count {
            return false;
        }
        self.count += 1;
        true
    }

    fn pieces(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let run = *self;
        (0..run.count).map(move |i| (run.start + i * run.stride, run.len))
    }
}

/// What a process has in one strip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Share {
    strip: u64,
    bytes: u64,
    runs: Vec<Run>,
}

impl Share {
    fn add(&mut self, at: u64, len: u64) {
        self.bytes += len;
        if !self.runs.last_mut().is_some_and(|run| run.takes(at, len)) {
            self.runs.push(Run { start: at, len, stride: len, count: 1 });
        }
    }

    /// As a message.
    fn encode(&self, to: &mut Vec<u8>) {
        let runs = self.runs.iter().flat_map(|run| [run.start, run.len, run.stride, run.count]);
        let words = [self.strip, self.runs.len() as u64].into_iter().chain(runs);
        to.extend(words.flat_map(u64::to_ne_bytes));
    }

    /// The shares of a message, checked: another process has written it.
    fn decode(message: &[u8], plan: &Plan) -> Result<Vec<Share>> {
        let mut words = message.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        let mut shares = Vec::new();
        while let Some(strip) = words.next() {
            let mut share = Share { strip, ..Share::default() };
            for _ in 0..words.next().unwrap_or(0) {
                let mut word = || words.next().unwrap_or(u64::MAX);
                let run = Run { start: word(), len: word(), stride: word(), count: word() };
                let end = run.count.checked_sub(1).and_then(|more| more.checked_mul(run.stride));
                let end = end.and_then(|last| last.checked_add(run.start)?.checked_add(run.len));
                if end.is_none_or(|end| end > plan.strip) || run.len == 0 || run.stride < run.len {
                    fail!(MPI_ERR_INTERN, "another process has sent an invalid description of what it accesses");
                }
                share.bytes += run.bytes();
                share.runs.push(run);
            }
            shares.push(share);
        }
        Ok(shares)
    }

    /// Its memory in the buffer of the strip.
    fn region(&self, buffer: *mut u8) -> Result<Region> {
        let byte = Datatype::named(MPI_BYTE);
        if let [run] = self.runs[..]
            && run.count == 1
        {
            // SAFETY: a part of the strip's buffer, which lives until the round has ended.
            return Ok(unsafe { Region::contiguous(buffer.add(run.start as usize), run.len as usize) });
        }
        let datatype = if self.runs.len() > MANY_RUNS {
            let (lengths, places): (Vec<i64>, Vec<i64>) =
                self.runs.iter().flat_map(Run::pieces).map(|(at, len)| (len as i64, at as i64)).unzip();
            Datatype::hindexed(&lengths, &places, &byte)?
        } else {
            let vector = |run: &Run| Datatype::hvector(run.count as i64, run.len as i64, run.stride as i64, &byte);
            let types = self.runs.iter().map(vector).collect::<Result<Vec<_>>>()?;
            let places: Vec<i64> = self.runs.iter().map(|run| run.start as i64).collect();
            Datatype::structure(&vec![1; types.len()], &places, &types)?
        };
        datatype.commit();
        // SAFETY: all pieces lie in the strip's buffer, which lives until the round has ended.
        Ok(unsafe { datatype.region(buffer, 1) })
    }
}

/// More runs than this are described piece by piece.
const MANY_RUNS: usize = 32;

/// What a view has in each strip that has anything, in order.
fn shares(view: &View, from: u64, bytes: u64, plan: &Plan) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    view.pieces(from, bytes, &mut |mut at, mut len| {
        while len > 0 {
            let strip = (at - plan.start) / plan.strip;
            let here = at - plan.start_of(strip);
            let part = len.min(plan.strip - here);
            if shares.last().is_none_or(|share| share.strip != strip) {
                shares.push(Share { strip, ..Share::default() });
            }
            shares.last_mut().expect("just pushed").add(here, part);
            (at, len) = (at + part, len - part);
        }
        true
    });
    shares
}

/// The bytes of a strip that are accessed, joined where they touch: start and end of each segment.
fn segments<'a>(shares: impl Iterator<Item = &'a Share>) -> Vec<(u64, u64)> {
    let mut pieces: Vec<(u64, u64)> = shares.flat_map(|share| share.runs.iter().flat_map(Run::pieces)).collect();
    // Stable, since that is fast for sequences that are in order already.
    pieces.sort_by_key(|piece| piece.0);
    let mut segments: Vec<(u64, u64)> = Vec::new();
    for (at, len) in pieces {
        match segments.last_mut() {
            Some((_, end)) if at <= *end => *end = (*end).max(at + len),
            _ => segments.push((at, at + len)),
        }
    }
    segments
}

impl File {
    /// Does this process's part of a collective access; `mine` has its place in the stream and its data, or the error
    /// that keeps it from taking part.
    pub(crate) fn transfer_together(&self, view: &View, is_write: bool, mine: Result<(u64, &Region)>) -> Result<u64> {
        if self.comm.size() == 1 || self.core.is_atomic.load(Ordering::Relaxed) {
            let (from, region) = mine?;
            return self.core.transfer(view, is_write, from, region);
        }
        let (from, region) = mine.as_ref().map_or((0, Region::empty()), |(from, region)| (*from, (*region).clone()));
        let is_seen = !view.is_empty() && from.checked_add(region.len() as u64).is_some();
        let wanted = if is_seen { region.len() as u64 } else { 0 };
        let size = if is_write || self.comm.rank() != 0 { 0 } else { self.core.system.size().unwrap_or(0) };
        let wish = Wish::new(view, from, wanted, size);
        let wishes: Vec<Wish> = agree::words(&self.comm, wish.words())?.into_iter().map(Wish::of).collect();
        let Some(plan) = self.plan(&wishes, is_write) else {
            return mine.and_then(|(from, region)| self.core.transfer(view, is_write, from, region));
        };
        // What lies behind the end of the file is not asked for.
        let bytes = match is_write {
            true => wanted,
            false => wanted.min(view.bytes_within(wishes[0].size).saturating_sub(from)),
        };
        let moved = self.two_phases(view, is_write, from, &region.part(0, bytes as usize), &plan);
        agree::on_outcome(&self.comm, moved)?;
        mine.map(|_| bytes)
    }

    fn plan(&self, wishes: &[Wish], is_write: bool) -> Option<Plan> {
        let hints = self.core.hints.read();
        let buffering = if is_write { hints.collective_writes } else { hints.collective_reads };
        let (wanted, buffer, stripe) = (hints.aggregators, hints.collective_buffer, hints.stripe);
        drop(hints);
        // They are numbered from 0.
        let hosts = self.comm.world().hosts_of(self.comm.group()).into_iter().max().map_or(0, |last| last + 1);
        Plan::new(wishes, &Use { is_write, buffering, wanted, buffer, stripe, hosts: hosts.into() })
    }

    fn two_phases(&self, view: &View, is_write: bool, from: u64, region: &Region, plan: &Plan) -> Result<()> {
        let place = plan.aggregators.iter().position(|rank| *rank == self.comm.rank() as usize);
        let buffer = agree::on_outcome(&self.comm, self.take_strip_buffer(place.map_or(0, |_| plan.strip)))?;
        let mine = shares(view, from, region.len() as u64, plan);
        let mut told = vec![Vec::new(); self.comm.size()];
        mine.iter().for_each(|share| share.encode(&mut told[plan.aggregators[plan.place(share.strip)]]));
        let told = alltoall_bytes(&self.comm, &told)?;
        let theirs = told.iter().map(|message| Share::decode(message, plan)).collect::<Result<Vec<_>>>()?;
        let mut work = Rounds {
            file: self,
            plan,
            is_write,
            region,
            mine: mine.iter().peekable(),
            theirs: theirs.iter().map(|shares| shares.iter().peekable()).collect(),
            place,
            done: 0,
            buffer,
        };
        let mut outcome = Ok(());
        for round in 0..plan.rounds() {
            outcome = outcome.and(work.round(round));
        }
        *self.strip_buffer.lock() = work.buffer;
        outcome
    }

    /// A buffer of at least so many bytes: the one of the last time, if it is long enough.
    fn take_strip_buffer(&self, bytes: u64) -> Result<Vec<u8>> {
        let kept = std::mem::take(&mut *self.strip_buffer.lock());
        if kept.len() as u64 >= bytes { Ok(kept) } else { room(bytes as i64) }
    }
}

/// The rounds of one process.
struct Rounds<'a> {
    file: &'a File,
    plan: &'a Plan,
    is_write: bool,
    region: &'a Region,
    mine: std::iter::Peekable<std::slice::Iter<'a, Share>>,
    theirs: Vec<std::iter::Peekable<std::slice::Iter<'a, Share>>>,
    /// This process's place among the aggregators, if it is one.
    place: Option<usize>,
    /// Bytes of this process's data that earlier rounds have moved.
    done: usize,
    buffer: Vec<u8>,
}

impl Rounds<'_> {
    fn round(&mut self, round: u64) -> Result<()> {
        let count = self.plan.aggregators.len() as u64;
        let strip = self.place.map(|place| round * count + place as u64).filter(|strip| *strip < self.plan.strips);
        let theirs: Vec<Option<&Share>> = match strip {
            Some(strip) => self.theirs.iter_mut().map(|shares| shares.next_if(|share| share.strip == strip)).collect(),
            None => Vec::new(),
        };
        let segments = segments(theirs.iter().flatten().copied());
        let mut outcome = Ok(());
        if let (false, Some(&(_, end)), Some(strip)) = (self.is_write, segments.last(), strip) {
            let start = segments[0].0;
            let part = &mut self.buffer[start as usize..end as usize];
            outcome = self.file.core.system.read(part, self.plan.start_of(strip) + start).map(|_| ());
        }
        // Also if that has failed: the others wait for it.
        outcome = outcome.and(self.exchange((round + 1) * count, &theirs));
        match (self.is_write, strip) {
            (true, Some(strip)) if outcome.is_ok() && !segments.is_empty() => self.write(strip, &segments),
            _ => outcome,
        }
    }

    /// Moves the data between the processes' memory and the buffers of the aggregators. `end`: the first strip that is
    /// not of this round.
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
            match self.plan.aggregators[self.plan.place(share.strip)] {
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

    /// Writes the segments of a strip, or all from the first to the last after reading what lies between them.
    fn write(&mut self, strip: u64, segments: &[(u64, u64)]) -> Result<()> {
        let core: &Core = &self.file.core;
        let at = self.plan.start_of(strip);
        let (first, end) = (segments[0].0, segments[segments.len() - 1].1);
        let bytes: u64 = segments.iter().map(|(start, end)| end - start).sum();
        let sieves = core.may_sieve.load(Ordering::Relaxed);
        let is_short =
            segments.len() > 2 && bytes / (segments.len() as u64) < SHORT_SEGMENT && (end - first) / 4 < bytes;
        if is_short && sieves && core.can_read {
            let _locked = core.system.lock(RangeLock::Exclusive, at + first, end - first)?;
            let mut there = room((end - first) as i64)?;
            core.system.read(&mut there, at + first)?;
            for pair in segments.windows(2) {
                let (start, end) = (pair[0].1 as usize, pair[1].0 as usize);
                self.buffer[start..end].copy_from_slice(&there[start - first as usize..end - first as usize]);
            }
            return core.system.write(&self.buffer[first as usize..end as usize], at + first).map(|_| ());
        }
        let _locked = if sieves { core.system.lock_for_plain_write(at + first, end - first)? } else { None };
        for (start, end) in segments {
            core.system.write(&self.buffer[*start as usize..*end as usize], at + start)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datarep::Datarep;
    use proptest::prelude::*;

    fn wish(first: u64, end: u64, bytes: u64, pieces: u64) -> Wish {
        Wish { first, end, bytes, pieces, is_ordered: true, processors: 2, size: 0 }
    }

    const WRITE: Use =
        Use { is_write: true, buffering: Buffering::Automatic, wanted: 0, buffer: 1 << 20, stripe: 0, hosts: 1 };

    fn plan(wishes: &[Wish]) -> Option<Plan> {
        Plan::new(wishes, &WRITE)
    }

    #[test]
    fn two_phases_are_for_short_pieces_that_interleave() {
        let short = [wish(0, 9_000_000, 1 << 20, 1000), wish(5000, 9_005_000, 1 << 20, 1000)];
        let made = plan(&short).unwrap();
        assert_eq!((made.start, made.strip, made.aggregators.len()), (0, 1 << 20, 2));
        assert_eq!(made.strips, 9_005_000u64.div_ceil(1 << 20));
        let long = short.map(|wish| Wish { pieces: 10, ..wish });
        assert_eq!(plan(&long), None);
        let apart = [wish(0, 5000, 500, 50), wish(5000, 10_000, 500, 50)];
        assert_eq!(plan(&apart), None);
        let backwards = short.map(|wish| Wish { is_ordered: false, ..wish });
        assert_eq!(plan(&backwards), None);
        let sparse = short.map(|wish| Wish { end: wish.end << 10, ..wish });
        assert_eq!(plan(&sparse), None);
        assert_eq!(plan(&[wish(0, 0, 0, 0); 3]), None);
        let read = Use { is_write: false, ..WRITE };
        assert_eq!(Plan::new(&short.map(|wish| Wish { bytes: 2 << 20, ..wish }), &read), None);
        assert!(Plan::new(&short.map(|wish| Wish { bytes: 1 << 19, ..wish }), &read).is_some());
        assert!(Plan::new(&short.map(|wish| Wish { bytes: 2 << 20, ..wish }), &Use { hosts: 2, ..read }).is_some());
        assert!(Plan::new(&apart, &Use { buffering: Buffering::Always, wanted: 1, ..WRITE }).is_some());
        assert_eq!(Plan::new(&short, &Use { buffering: Buffering::Never, ..WRITE }), None);
    }

    /// What one process accesses: displacement, blocks, first byte of the stream and length.
    type Access = (u64, Vec<(i64, i64)>, u64, u64);

    fn access() -> impl Strategy<Value = Access> {
        (0u64..3000, prop::collection::vec((0i64..40, 1i64..40), 1..6), 0u64..500, 0u64..3000).prop_map(
            |(disp, gaps, from, len)| {
                let mut end = 0;
                let block = |(gap, len)| {
                    let at = end + gap;
                    end = at + len;
                    (at, len)
                };
                (disp, gaps.into_iter().map(block).collect(), from, len)
            },
        )
    }

    proptest! {
        /// The rounds of all processes, without messages: every byte comes to its place in the file.
        #[test]
        fn shares_lead_every_byte_to_its_place(all in prop::collection::vec(access(), 1..5), wanted in 1u64..5) {
            let byte = Datatype::named(MPI_BYTE);
            let views: Vec<View> = all.iter().map(|(disp, blocks, ..)| {
                let (lengths, places): (Vec<i64>, Vec<i64>) = blocks.iter().map(|(at, len)| (*len, *at)).unzip();
                let filetype = Datatype::hindexed(&lengths, &places, &byte).unwrap();
                filetype.commit();
                View::new(*disp, &byte, &filetype, Datarep::native()).unwrap()
            }).collect();
            let wishes: Vec<Wish> =
                views.iter().zip(&all).map(|(view, (.., from, len))| Wish::new(view, *from, *len, 0)).collect();
            let always = Use { buffering: Buffering::Always, wanted, ..WRITE };
            let Some(mut plan) = Plan::new(&wishes, &always) else { return Ok(()) };
            // Strips as short as these make many rounds.
            plan.strip = 512;
            plan.strips = (wishes.iter().map(|wish| wish.end).max().unwrap() - plan.start).div_ceil(512);
            let (mut expected, mut found) = (vec![0u8; 200_000], vec![0u8; 200_000]);
            for (rank, (view, (.., from, len))) in views.iter().zip(&all).enumerate() {
                let data: Vec<u8> = (0..*len).map(|i| (i * 7 + 1) as u8 ^ rank as u8).collect();
                let mut done = 0;
                view.pieces(*from, *len, &mut |at, len| {
                    expected[at as usize..][..len as usize].copy_from_slice(&data[done..][..len as usize]);
                    done += len as usize;
                    true
                });
                let mut message = Vec::new();
                shares(view, *from, *len, &plan).iter().for_each(|share| share.encode(&mut message));
                let mut done = 0;
                for share in Share::decode(&message, &plan).unwrap() {
                    let mut strip = found[plan.start_of(share.strip) as usize..][..512].to_vec();
                    share.region(strip.as_mut_ptr()).unwrap().write(0, &data[done..][..share.bytes as usize]);
                    done += share.bytes as usize;
                    found[plan.start_of(share.strip) as usize..][..512].copy_from_slice(&strip);
                    let joined: u64 = segments([&share].into_iter()).iter().map(|(start, end)| end - start).sum();
                    prop_assert_eq!(joined, share.bytes);
                }
                prop_assert_eq!(done as u64, *len);
            }
            prop_assert!(expected == found);
        }
    }

    #[test]
    fn even_pieces_become_one_run() {
        let mut share = Share::default();
        (0..100).for_each(|i| share.add(i * 16, 8));
        assert_eq!(share.runs, [Run { start: 0, len: 8, stride: 16, count: 100 }]);
        share.add(3000, 8);
        assert_eq!(share.runs.len(), 2);
    }

    #[test]
    fn nonsense_from_other_processes_is_refused() {
        let plan = Plan { start: 0, strip: 4096, strips: 1, aggregators: vec![0] };
        for run in [[0, 8, 8, 513], [4090, 8, 8, 1], [0, 0, 8, 1], [0, 8, 4, 2], [0, 8, u64::MAX, 3]] {
            let message: Vec<u8> = [0, 1].into_iter().chain(run).flat_map(u64::to_ne_bytes).collect();
            assert!(Share::decode(&message, &plan).is_err(), "{run:?}");
        }
    }
}
