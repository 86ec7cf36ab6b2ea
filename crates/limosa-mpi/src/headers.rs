//! The headers of messages while the checks are on ([`crate::check`]), and the comparison of the datatypes of sender
//! and receiver (MPI-5 section 3.3.1).
//!
//! Header and data are one stream for the protocols ([`Checked`]), so that the header is there however the message
//! travels. A receive compares the header that has come with its own when its end is taken ([`judged`]).
//!
//! The header is [`HEADER`] bytes: how many runs follow and whether that is all, how often they are repeated, and the
//! runs ([`Sequence`]). A header that no sender writes is not compared.

use std::any::Any;
use std::cell::UnsafeCell;
use std::sync::Arc;

use limosa_p2p::memory::{Layout, Region};

use crate::check::HEADER;
use crate::consts::MPI_ERR_TYPE;
use crate::datatype::Datatype;
use crate::datatype::sequence::{MOST_RUNS, Run, Sequence};
use crate::error::Error;
use crate::operation::End;

/// Words of a header.
const WORDS: usize = 2 + MOST_RUNS;
const _: () = assert!(8 * WORDS == HEADER);
/// The upper half of a header's first word.
const MARK: u64 = 0x5ee0_7e57;
/// In the first word: runs are left out.
const CUT: u64 = 1 << 8;
/// Of a run's word: the bits of the count.
const COUNT_BITS: u32 = 56;

/// A header as it travels.
type Words = [u64; WORDS];

/// Returns the header of a message with this sequence.
pub fn encode(sequence: &Sequence) -> Words {
    let mut words = [0; WORDS];
    words[0] = MARK << 32 | if sequence.is_cut { CUT } else { 0 } | sequence.runs.len() as u64;
    words[1] = sequence.times;
    for (word, run) in words[2..].iter_mut().zip(&sequence.runs) {
        *word = u64::from(run.basic) << COUNT_BITS | run.count.min((1 << COUNT_BITS) - 1);
    }
    words
}

/// Returns the sequence in a header; `None` if no sender writes that.
pub fn decode(words: &Words) -> Option<Sequence> {
    let (runs, is_cut) = ((words[0] & 0xff) as usize, words[0] & CUT != 0);
    if words[0] >> 32 != MARK || words[0] as u32 as u64 & !(0xff | CUT) != 0 || runs > MOST_RUNS {
        return None;
    }
    let run = |word: u64| Run { basic: (word >> COUNT_BITS) as u8, count: word & ((1 << COUNT_BITS) - 1) };
    let runs: Vec<Run> = words[2..2 + runs].iter().map(|word| run(*word)).collect();
    if runs.iter().any(|run| run.count == 0) {
        return None;
    }
    Some(Sequence { runs, times: words[1], is_cut })
}

/// The memory of a message with its header: a layout of one element, whose stream is the header and then the data.
struct Checked {
    data: Region,
    /// What is sent; of a receive, what the protocols write.
    header: UnsafeCell<Words>,
    /// What the call has said.
    own: Sequence,
}

// SAFETY: the header of a receive is written by the thread that carries the message and read when the receive is done,
// which the engine's lock orders; that of a send is only read.
unsafe impl Sync for Checked {}
// SAFETY: as above; a region may be sent.
unsafe impl Send for Checked {}

impl Checked {
    /// Splits the bytes `[offset, offset + len)` of the stream: bytes of the header, and where the data go on.
    fn split(offset: usize, len: usize) -> (usize, usize) {
        (HEADER.saturating_sub(offset).min(len), offset.saturating_sub(HEADER))
    }
}

impl Layout for Checked {
    fn size(&self) -> usize {
        HEADER + self.data.len()
    }

    unsafe fn pack(&self, _base: *const u8, _count: usize, offset: usize, dst: &mut [u8]) {
        let (of_header, at) = Checked::split(offset, dst.len());
        let (header, data) = dst.split_at_mut(of_header);
        if of_header > 0 {
            // SAFETY: within the header, by `split`.
            unsafe {
                let from = self.header.get().cast::<u8>().add(offset);
                std::ptr::copy_nonoverlapping(from, header.as_mut_ptr(), of_header);
            }
        }
        self.data.read(at, data);
    }

    unsafe fn unpack(&self, _base: *mut u8, _count: usize, offset: usize, src: &[u8]) {
        let (of_header, at) = Checked::split(offset, src.len());
        let (header, data) = src.split_at(of_header);
        if of_header > 0 {
            // SAFETY: within the header, by `split`; only the thread that carries the message writes there.
            unsafe {
                let to = self.header.get().cast::<u8>().add(offset);
                std::ptr::copy_nonoverlapping(header.as_ptr(), to, of_header);
            }
        }
        self.data.write(at, data);
    }

    fn pieces(
        &self,
        _base: *mut u8,
        _count: usize,
        offset: usize,
        len: usize,
        visit: &mut dyn FnMut(*mut u8, usize) -> bool,
    ) {
        let (of_header, at) = Checked::split(offset, len);
        if of_header == 0 || visit(self.header.get().cast::<u8>().wrapping_add(offset), of_header) {
            self.data.pieces(at, len - of_header, visit);
        }
    }

    fn mean_piece(&self) -> usize {
        self.data.mean_piece().max(HEADER)
    }
}

/// Returns the memory of a message of `count` elements of a datatype, with a header.
#[cold]
pub fn region(data: Region, count: i64, datatype: &Datatype) -> Region {
    let own = datatype.sequence().repeated(count.max(0) as u64);
    let checked = Arc::new(Checked { data, header: UnsafeCell::new(encode(&own)), own });
    // SAFETY: the layout has its own memory and that of the region, for which its builder has promised.
    unsafe { Region::typed(std::ptr::null_mut(), 1, checked) }
}

fn checked(region: &Region) -> Option<&Checked> {
    (region.layout()? as &dyn Any).downcast_ref()
}

/// Returns the bytes of a message's stream before the program's data.
pub fn header_of(region: &Region) -> usize {
    if checked(region).is_some() { HEADER } else { 0 }
}

/// Returns the end of a receive into this memory, with an error if the message holds other types than the receive
/// expects.
pub(crate) fn judged(region: Option<&Region>, end: End) -> End {
    match region {
        Some(region) if end.error.is_none() && !end.cancelled => End { error: mismatch(region), ..end },
        _ => end,
    }
}

/// What is wrong with the types of the message that has been received here.
#[cold]
fn mismatch(region: &Region) -> Option<Error> {
    let checked = checked(region)?;
    // SAFETY: the receive is done, so no thread writes there.
    let arrived = decode(unsafe { &*checked.header.get() })?;
    let found = arrived.difference(&checked.own)?;
    let (holds, expects) = (found.left.name(), found.right.name());
    let detail = match found.before {
        0 => format!("the message holds {holds}, the receive expects {expects}"),
        before => {
            format!("behind {before} values the message holds {holds} where the receive expects {expects}")
        }
    };
    Some(Error::new(MPI_ERR_TYPE, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::*;

    #[test]
    fn a_header_survives_the_journey_and_nonsense_is_refused() {
        let parts = [Datatype::named(MPI_INT), Datatype::named(MPI_DOUBLE)];
        let pair = Datatype::structure(&[1, 3], &[0, 8], &parts).unwrap();
        let sequence = pair.sequence().repeated(7);
        let words = encode(&sequence);
        assert_eq!(decode(&words), Some(sequence));
        for (at, word) in [(0, 0), (0, words[0] | 0xff), (0, words[0] | 1 << 20), (2, words[2] >> 8 << 8)] {
            let mut changed = words;
            changed[at] = word;
            assert_eq!(decode(&changed), None, "{at} {word:#x}");
        }
        // An unknown type matches anything.
        let mut changed = words;
        changed[2] = 0xff << COUNT_BITS | 1;
        assert_eq!(decode(&changed).unwrap().difference(pair.sequence()), None);
    }

    #[test]
    fn header_and_data_are_one_stream() {
        let mut from = [1u8, 2, 3, 4, 5, 6, 7, 8];
        let mut to = [0u8; 8];
        let region_of = |bytes: &mut [u8], handle: i32| {
            // SAFETY: the arrays live longer than the regions.
            let data = unsafe { Region::contiguous(bytes.as_mut_ptr(), bytes.len()) };
            let datatype = Datatype::named(handle);
            region(data, bytes.len() as i64 / datatype.size(), &datatype)
        };
        let (send, receive) = (region_of(&mut from, MPI_DOUBLE), region_of(&mut to, MPI_INT));
        assert_eq!((send.len(), header_of(&send)), (HEADER + 8, HEADER));
        for cut in [1, HEADER - 1, HEADER, HEADER + 3, HEADER + 8] {
            let mut all = vec![0; send.len()];
            let (head, tail) = all.split_at_mut(cut);
            send.read(0, head);
            send.read(cut, tail);
            receive.write(0, head);
            receive.write(cut, tail);
            assert_eq!(from, to);
            to.fill(0);
        }
        let mut lengths = Vec::new();
        send.pieces(5, HEADER, &mut |_, len| {
            lengths.push(len);
            true
        });
        assert_eq!(lengths, [HEADER - 5, 5]);
        let error = judged(Some(&receive), End::empty()).error.expect("the types differ");
        assert_eq!(error.class, MPI_ERR_TYPE);
        assert_eq!(error.detail, "the message holds MPI_DOUBLE, the receive expects MPI_INT");
    }
}
