//! Running a program: copying a part of the stream, or listing its pieces.
//!
//! [`walk`] finds the parts of a program that a range of the stream touches and hands them to a [`Sink`], evenly spaced
//! and equally long runs as a whole, so that the copying loops ([`Copy`]) can be tight. All address arithmetic wraps;
//! only [`Copy`] touches memory.

use super::program::{Body, Code, DEEP, Placed, block_end};
use limosa_base::copy::copy_here;

/// Takes the parts of a walk in stream order. Answering `false` ends the walk.
pub(crate) trait Sink {
    /// `size` contiguous bytes.
    fn run(&mut self, at: *mut u8, size: usize) -> bool;

    /// `count` runs of `block` bytes, `stride` bytes apart.
    fn strided(&mut self, at: *mut u8, count: usize, stride: isize, block: usize) -> bool {
        (0..count).all(|i| self.run(at.wrapping_offset(stride.wrapping_mul(i as isize)), block))
    }

    /// Runs of `block` bytes at `places` from an address.
    fn gather(&mut self, at: *mut u8, places: &[isize], block: usize) -> bool {
        places.iter().all(|place| self.run(at.wrapping_offset(*place), block))
    }
}

/// Walks the bytes `[from, to)` of the stream of elements of `part` that lie `extent` bytes apart, the first at `base`.
pub(crate) fn walk_elements<S: Sink>(
    part: &Placed,
    extent: isize,
    base: *mut u8,
    from: usize,
    to: usize,
    sink: &mut S,
) -> bool {
    if from >= to {
        return true;
    }
    let base = base.wrapping_offset(part.place);
    let size = part.code.size;
    match part.code.body {
        Body::Run if extent == size as isize => sink.run(base.wrapping_add(from), to - from),
        Body::Run => walk_strided(base, extent, size, from, to, sink),
        Body::Strided { block, stride } if extent == stride.wrapping_mul((size / block) as isize) => {
            walk_strided(base, stride, block, from, to, sink)
        }
        _ => walk_turns(&part.code, extent, base, from, to, sink),
    }
}

/// Walks the bytes `[from, to)` of one element's stream; `from < to <= code.size`.
fn walk<S: Sink>(code: &Code, base: *mut u8, from: usize, to: usize, sink: &mut S) -> bool {
    match &code.body {
        Body::Loop { .. } | Body::List(_) if code.depth > DEEP => walk_deep(code, base, from, to, sink),
        Body::Run => sink.run(base.wrapping_add(from), to - from),
        Body::Strided { block, stride } => walk_strided(base, *stride, *block, from, to, sink),
        Body::Loop { stride, code } => walk_turns(code, *stride, base, from, to, sink),
        Body::Gather { block, places } => walk_gather(base, places, *block, from, to, sink),
        Body::Blocks(blocks) => {
            let first = if from == 0 { 0 } else { blocks.partition_point(|block| block.start <= from) - 1 };
            for (i, block) in blocks.iter().enumerate().skip(first) {
                if block.start >= to {
                    break;
                }
                let (low, high) = (from.max(block.start), to.min(block_end(blocks, i, code.size)));
                if !sink.run(base.wrapping_offset(block.place).wrapping_add(low - block.start), high - low) {
                    return false;
                }
            }
            true
        }
        Body::List(entries) => {
            let first = entries.partition_point(|entry| entry.start <= from) - 1;
            entries[first..].iter().take_while(|entry| entry.start < to).all(|entry| {
                let (low, high) = (from.max(entry.start) - entry.start, (to - entry.start).min(entry.part.code.size));
                walk(&entry.part.code, base.wrapping_offset(entry.part.place), low, high, sink)
            })
        }
    }
}

/// As [`walk`], for a program that may be nested too deep for recursion: what is still to be walked is a list on the
/// heap. Kept out of [`walk`], whose copies would together be a quarter larger.
#[cold]
#[inline(never)]
fn walk_deep<S: Sink>(code: &Code, base: *mut u8, from: usize, to: usize, sink: &mut S) -> bool {
    let mut open = vec![(code, base, from, to)];
    while let Some((code, base, from, to)) = open.pop() {
        // The first part of the range: where it starts in the stream and in memory.
        let (start, place, part) = match &code.body {
            Body::Loop { stride, code: part } if code.depth > DEEP => {
                let turn = from / part.size;
                (turn * part.size, stride.wrapping_mul(turn as isize), part)
            }
            Body::List(entries) if code.depth > DEEP => {
                let entry = &entries[entries.partition_point(|entry| entry.start <= from) - 1];
                (entry.start, entry.part.place, &entry.part.code)
            }
            _ => {
                if !walk(code, base, from, to, sink) {
                    return false;
                }
                continue;
            }
        };
        let end = to.min(start + part.size);
        if end < to {
            open.push((code, base, end, to));
        }
        open.push((part, base.wrapping_offset(place), from - start, end - start));
    }
    true
}

/// Walks repetitions of `code`.
fn walk_turns<S: Sink>(code: &Code, stride: isize, base: *mut u8, from: usize, to: usize, sink: &mut S) -> bool {
    let mut turn = from / code.size;
    let mut start = turn * code.size;
    while start < to {
        let (low, high) = (from.max(start) - start, (to - start).min(code.size));
        if !walk(code, base.wrapping_offset(stride.wrapping_mul(turn as isize)), low, high, sink) {
            return false;
        }
        turn += 1;
        start += code.size;
    }
    true
}

/// A part of a block: number of the block, offset in it, length.
type Partial = Option<(usize, usize, usize)>;

/// Cuts `[from, to)` of a stream of equal blocks: part of a block, whole blocks, part of a block.
fn cut(block: usize, from: usize, to: usize) -> (Partial, std::ops::Range<usize>, Partial) {
    let (first, last) = (from / block, to / block);
    let (offset, rest) = (from % block, to % block);
    if first == last {
        return (Some((first, offset, to - from)), 0..0, None);
    }
    let head = (offset > 0).then_some((first, offset, block - offset));
    let tail = (rest > 0).then_some((last, 0, rest));
    (head, first + usize::from(offset > 0)..last, tail)
}

fn walk_strided<S: Sink>(base: *mut u8, stride: isize, block: usize, from: usize, to: usize, sink: &mut S) -> bool {
    let (head, whole, tail) = cut(block, from, to);
    let at = |i: usize| base.wrapping_offset((i as isize).wrapping_mul(stride));
    head.is_none_or(|(i, offset, size)| sink.run(at(i).wrapping_add(offset), size))
        && (whole.is_empty() || sink.strided(at(whole.start), whole.len(), stride, block))
        && tail.is_none_or(|(i, _, size)| sink.run(at(i), size))
}

fn walk_gather<S: Sink>(base: *mut u8, places: &[isize], block: usize, from: usize, to: usize, sink: &mut S) -> bool {
    let (head, whole, tail) = cut(block, from, to);
    let at = |i: usize| base.wrapping_offset(places[i]);
    head.is_none_or(|(i, offset, size)| sink.run(at(i).wrapping_add(offset), size))
        && (whole.is_empty() || sink.gather(base, &places[whole], block))
        && tail.is_none_or(|(i, _, size)| sink.run(at(i), size))
}

/// Merges touching runs and shows them to `visit`.
pub(crate) struct Pieces<'a> {
    visit: &'a mut dyn FnMut(*mut u8, usize) -> bool,
    pending: Option<(*mut u8, usize)>,
}

impl<'a> Pieces<'a> {
    pub fn new(visit: &'a mut dyn FnMut(*mut u8, usize) -> bool) -> Pieces<'a> {
        Pieces { visit, pending: None }
    }

    /// Shows the last piece.
    pub fn finish(self) {
        if let Some((at, size)) = self.pending {
            (self.visit)(at, size);
        }
    }
}

impl Sink for Pieces<'_> {
    fn run(&mut self, at: *mut u8, size: usize) -> bool {
        match &mut self.pending {
            Some((start, length)) if start.wrapping_add(*length) == at => {
                *length += size;
                true
            }
            pending => match pending.replace((at, size)) {
                Some((start, length)) if !(self.visit)(start, length) => {
                    self.pending = None;
                    false
                }
                _ => true,
            },
        }
    }
}

/// Copies between memory and the stream: out of memory if `PACK`, else into it.
pub(crate) struct Copy<const PACK: bool> {
    stream: *mut u8,
}

impl<const PACK: bool> Copy<PACK> {
    /// Copies to or from the bytes at `stream`.
    ///
    /// # Safety
    /// The bytes that the walk asks for must exist at `stream`, and the memory that it names must be readable (`PACK`)
    /// or writable.
    pub unsafe fn new(stream: *mut u8) -> Copy<PACK> {
        Copy { stream }
    }

    /// Copies blocks whose length the compiler knows.
    fn blocks<const N: usize>(&mut self, places: impl ExactSizeIterator<Item = *mut u8>) {
        let mut stream = self.stream.cast::<[u8; N]>();
        for place in places {
            let place = place.cast::<[u8; N]>();
            // SAFETY: the creator of `self` promised valid memory on both sides; arrays of bytes need no alignment.
            unsafe {
                if PACK {
                    *stream = *place
                } else {
                    *place = *stream
                }
                stream = stream.add(1);
            }
        }
        self.stream = stream.cast();
    }

    fn all(&mut self, block: usize, places: impl ExactSizeIterator<Item = *mut u8>) -> bool {
        match block {
            1 => self.blocks::<1>(places),
            2 => self.blocks::<2>(places),
            4 => self.blocks::<4>(places),
            8 => self.blocks::<8>(places),
            12 => self.blocks::<12>(places),
            16 => self.blocks::<16>(places),
            24 => self.blocks::<24>(places),
            32 => self.blocks::<32>(places),
            _ => places.for_each(|place| {
                self.run(place, block);
            }),
        }
        true
    }
}

/// Copies `size` bytes, `N` to `2 * N`, as the first and the last `N`.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: both parts lie within the `size` bytes; arrays of bytes need no alignment.
    unsafe {
        let first = *from.cast::<[u8; N]>();
        let last = *from.add(size - N).cast::<[u8; N]>();
        *to.cast::<[u8; N]>() = first;
        *to.add(size - N).cast::<[u8; N]>() = last;
    }
}

impl<const PACK: bool> Sink for Copy<PACK> {
    #[inline]
    fn run(&mut self, at: *mut u8, size: usize) -> bool {
        let (from, to) = if PACK { (at, self.stream) } else { (self.stream, at) };
        // SAFETY: the creator of `self` promised valid memory on both sides, and message buffers do not overlap user
        // memory.
        unsafe {
            match size {
                // Fields of structures: a call would take longer than the copy. The halves overlap.
                8..=16 => copy_ends::<8>(from, to, size),
                4..8 => copy_ends::<4>(from, to, size),
                1 => *to = *from,
                _ => copy_here(from, to, size),
            }
        }
        self.stream = self.stream.wrapping_add(size);
        true
    }

    fn strided(&mut self, at: *mut u8, count: usize, stride: isize, block: usize) -> bool {
        self.all(block, (0..count).map(|i| at.wrapping_offset(stride.wrapping_mul(i as isize))))
    }

    fn gather(&mut self, at: *mut u8, places: &[isize], block: usize) -> bool {
        self.all(block, places.iter().map(|place| at.wrapping_offset(*place)))
    }
}
