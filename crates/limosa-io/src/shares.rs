//! Shares: the pieces of each process in the strips of a collective access, as *runs* of equally long pieces at equal
//! distances. A multi-dimensional array takes only a few numbers.

use limosa_mpi::consts::MPI_BYTE;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_p2p::memory::Region;

use crate::plan::Cut;
use crate::view::View;

/// Number of runs beyond which pieces are described one by one.
const MANY_RUNS: usize = 32;

/// Equally long pieces at equal distances. The first one begins at an offset in its strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub start: u64,
    pub len: u64,
    pub stride: u64,
    pub count: u64,
}

impl Run {
    pub fn bytes(&self) -> u64 {
        self.len * self.count
    }

    /// Appends a piece if it continues the run. Returns whether it does.
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

    /// Returns whether the run lies within a strip: runs of other processes are untrusted.
    pub fn fits(&self, strip: u64) -> bool {
        let end = self.count.checked_sub(1).and_then(|more| more.checked_mul(self.stride));
        let end = end.and_then(|last| last.checked_add(self.start)?.checked_add(self.len));
        end.is_some_and(|end| end <= strip) && self.len > 0 && self.stride >= self.len
    }

    pub fn pieces(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let run = *self;
        (0..run.count).map(move |i| (run.start + i * run.stride, run.len))
    }
}

/// Pieces of a process in one strip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub strip: u64,
    pub bytes: u64,
    pub runs: Vec<Run>,
}

impl Share {
    fn add(&mut self, at: u64, len: u64) {
        self.bytes += len;
        if !self.runs.last_mut().is_some_and(|run| run.takes(at, len)) {
            self.runs.push(Run { start: at, len, stride: len, count: 1 });
        }
    }

    /// Encodes the share into a message.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let runs = self.runs.iter().flat_map(|run| [run.start, run.len, run.stride, run.count]);
        let words = [self.strip, self.runs.len() as u64].into_iter().chain(runs);
        to.extend(words.flat_map(u64::to_ne_bytes));
    }

    /// Decodes and checks the shares of a message, which another process has written.
    pub fn decode(message: &[u8], cut: &Cut) -> Result<Vec<Share>> {
        let mut words = message.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
        let mut shares = Vec::new();
        while let Some(strip) = words.next() {
            let mut share = Share { strip, ..Share::default() };
            for _ in 0..words.next().unwrap_or(0) {
                let mut word = || words.next().unwrap_or(u64::MAX);
                let run = Run { start: word(), len: word(), stride: word(), count: word() };
                if !run.fits(cut.strip) {
                    fail!(MPI_ERR_INTERN, "another process has sent an invalid description of what it accesses");
                }
                share.bytes += run.bytes();
                share.runs.push(run);
            }
            shares.push(share);
        }
        Ok(shares)
    }

    /// Returns the share's memory in the buffer of the strip.
    pub fn region(&self, buffer: *mut u8) -> Result<Region> {
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

/// Returns the non-empty shares of a view, by strip.
pub(crate) fn shares(view: &View, from: u64, bytes: u64, cut: &Cut) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    view.pieces(from, bytes, &mut |mut at, mut len| {
        while len > 0 {
            let strip = (at - cut.start) / cut.strip;
            let here = at - cut.start_of(strip);
            let part = len.min(cut.strip - here);
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

/// Returns the accessed segments of a strip, start and end, merged where they touch.
pub(crate) fn segments<'a>(shares: impl Iterator<Item = &'a Share>) -> Vec<(u64, u64)> {
    let mut pieces: Vec<(u64, u64)> = shares.flat_map(|share| share.runs.iter().flat_map(Run::pieces)).collect();
    // A stable sort is fast for sequences that are almost in order.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datarep::Datarep;
    use crate::plan::AccessSummary;
    use proptest::prelude::*;

    /// Access of one process: displacement, blocks, first byte of the stream and length.
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
        /// Runs the rounds of all processes without messages, and checks that every byte reaches its place in the file.
        #[test]
        fn shares_lead_every_byte_to_its_place(all in prop::collection::vec(access(), 1..5)) {
            let byte = Datatype::named(MPI_BYTE);
            let views: Vec<View> = all.iter().map(|(disp, blocks, ..)| {
                let (lengths, places): (Vec<i64>, Vec<i64>) = blocks.iter().map(|(at, len)| (*len, *at)).unzip();
                let filetype = Datatype::hindexed(&lengths, &places, &byte).unwrap();
                filetype.commit();
                View::new(*disp, &byte, &filetype, Datarep::native()).unwrap()
            }).collect();
            let accesses = views.iter().zip(&all).map(|(view, (.., from, len))| AccessSummary::new(view, *from, *len, 0));
            let busy: Vec<AccessSummary> = accesses.filter(|access| access.bytes > 0).collect();
            let Some(first) = busy.iter().map(|access| access.first).min() else { return Ok(()) };
            let end = busy.iter().map(|access| access.end).max().unwrap();
            // With such short strips there are many.
            let cut = Cut { first, end, start: first, strip: 512, strips: (end - first).div_ceil(512) };
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
                shares(view, *from, *len, &cut).iter().for_each(|share| share.encode(&mut message));
                let mut done = 0;
                for share in Share::decode(&message, &cut).unwrap() {
                    let mut strip = found[cut.start_of(share.strip) as usize..][..512].to_vec();
                    share.region(strip.as_mut_ptr()).unwrap().write(0, &data[done..][..share.bytes as usize]);
                    done += share.bytes as usize;
                    found[cut.start_of(share.strip) as usize..][..512].copy_from_slice(&strip);
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
        let cut = Cut { first: 0, end: 4096, start: 0, strip: 4096, strips: 1 };
        for run in [[0, 8, 8, 513], [4090, 8, 8, 1], [0, 0, 8, 1], [0, 8, 4, 2], [0, 8, u64::MAX, 3]] {
            let message: Vec<u8> = [0, 1].into_iter().chain(run).flat_map(u64::to_ne_bytes).collect();
            assert!(Share::decode(&message, &cut).is_err(), "{run:?}");
        }
    }
}
