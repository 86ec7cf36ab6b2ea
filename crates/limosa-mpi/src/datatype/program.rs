//! Programs: what a datatype touches, as loops over runs of bytes.
//!
//! Contract
//! - A [`Code`] describes the data bytes of one element in stream order; where the element lies is added when it runs
//!   ([`Placed`]).
//! - Programs are in normal form: touching runs are one run, a loop of one turn is its body, two loops that continue
//!   each other are one, equal bodies at equal distances are a loop, and small irregular types are one flat list of
//!   blocks. So data that are contiguous are [`Body::Run`], and evenly spaced blocks are [`Body::Strided`], however the
//!   type was put together.
//! - Places and distances are numbers modulo 2^64, as addresses are: what a type covers fits, but steps on the way
//!   there need not.
//! - The stream position of every part is known, so any position is found in logarithmic time per level of nesting.

use std::sync::Arc;

/// Types of at most this many pieces are flattened.
const FLATTEN_PIECES: usize = 64;
/// Programs nested no deeper than this are handled by recursion, deeper ones with a list on the heap: the stack may be
/// a helper thread's.
pub(super) const DEEP: u32 = 32;

/// The program of one element.
#[derive(Debug)]
pub(crate) struct Code {
    /// Data bytes.
    pub size: usize,
    /// Contiguous pieces, as far as they are seen one by one.
    pub pieces: usize,
    /// Levels of loops and lists.
    pub depth: u32,
    pub body: Body,
}

/// Deep programs are equal to themselves only: a comparison would recurse as deep. That costs no more than a missed
/// simplification.
impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        let shallow = self.depth == other.depth && self.depth <= DEEP;
        std::ptr::eq(self, other)
            || (shallow && self.size == other.size && self.pieces == other.pieces && self.body == other.body)
    }
}

impl Eq for Code {}

/// Drops deep programs level by level instead of recursively.
impl Drop for Code {
    fn drop(&mut self) {
        if self.depth <= DEEP {
            return;
        }
        let mut open = Vec::new();
        self.take_parts(&mut open);
        while let Some(code) = open.pop() {
            if let Some(mut code) = Arc::into_inner(code) {
                code.take_parts(&mut open);
            }
        }
    }
}

impl Code {
    /// Moves the programs that this one consists of to `parts`.
    fn take_parts(&mut self, parts: &mut Vec<Arc<Code>>) {
        match std::mem::replace(&mut self.body, Body::Run) {
            Body::Loop { code, .. } => parts.push(code),
            Body::List(entries) => parts.extend(entries.into_vec().into_iter().map(|entry| entry.part.code)),
            Body::Run | Body::Strided { .. } | Body::Gather { .. } | Body::Blocks(_) => {}
        }
    }
}

/// The forms of a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// `size` bytes.
    Run,
    /// Runs of `block` bytes, `stride` bytes apart.
    Strided { block: usize, stride: isize },
    /// `code` again and again, `stride` bytes apart.
    Loop { stride: isize, code: Arc<Code> },
    /// Runs of `block` bytes at these places.
    Gather { block: usize, places: Box<[isize]> },
    /// Runs of different lengths.
    Blocks(Box<[Block]>),
    /// Different programs one after another.
    List(Box<[Entry]>),
}

/// A run of [`Body::Blocks`]; it ends in the stream where the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub place: isize,
    pub start: usize,
}

/// A part of [`Body::List`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub start: usize,
    pub part: Placed,
}

/// A program at some distance from the element's base address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub place: isize,
    pub code: Arc<Code>,
}

impl Placed {
    /// Returns a run of `size` bytes.
    pub fn run(place: isize, size: usize) -> Placed {
        let pieces = usize::from(size > 0);
        Placed {
            place: if size > 0 { place } else { 0 },
            code: Arc::new(Code { size, pieces, depth: 0, body: Body::Run }),
        }
    }

    /// Nothing.
    pub fn empty() -> Placed {
        Placed::run(0, 0)
    }

    /// The same further on.
    pub fn moved(&self, by: isize) -> Placed {
        Placed { place: self.place.wrapping_add(by), code: self.code.clone() }
    }

    fn as_run(&self) -> Option<(isize, usize)> {
        matches!(self.code.body, Body::Run).then_some((self.place, self.code.size))
    }

    /// `count` times this program, `stride` bytes apart.
    pub fn repeated(&self, count: usize, stride: isize) -> Placed {
        let Code { size, pieces, body, .. } = &*self.code;
        let size = *size;
        if count == 0 || size == 0 {
            return Placed::empty();
        }
        if count == 1 {
            return self.clone();
        }
        let body = match *body {
            Body::Run if stride == size as isize => return Placed::run(self.place, count * size),
            Body::Run => Body::Strided { block: size, stride },
            Body::Strided { block, stride: inner } if stride == inner.wrapping_mul((size / block) as isize) => {
                Body::Strided { block, stride: inner }
            }
            Body::Loop { stride: inner, ref code } if stride == inner.wrapping_mul((size / code.size) as isize) => {
                Body::Loop { stride: inner, code: code.clone() }
            }
            _ => Body::Loop { stride, code: self.code.clone() },
        };
        let depth = if let Body::Loop { code, .. } = &body { code.depth + 1 } else { 0 };
        let code = Code { size: count * size, pieces: pieces.saturating_mul(count), depth, body };
        Placed { place: self.place, code: Arc::new(code) }
    }

    /// These programs one after another.
    pub fn sequence(parts: Vec<Placed>) -> Placed {
        let pieces = parts.iter().fold(0usize, |n, part| n.saturating_add(part.code.pieces));
        if pieces <= FLATTEN_PIECES {
            let mut runs = Runs::new();
            parts.iter().for_each(|part| part.for_each_run(0, &mut |place, size| runs.push(place, size)));
            return runs.finish();
        }
        if parts.iter().all(|part| part.as_run().is_some()) {
            let mut runs = Runs::new();
            parts.iter().filter_map(Placed::as_run).for_each(|(place, size)| runs.push(place, size));
            return runs.finish();
        }
        let mut merged: Vec<Placed> = Vec::with_capacity(parts.len());
        for part in parts.into_iter().filter(|part| part.code.size > 0) {
            let last = merged.last().and_then(Placed::as_run);
            match (last, part.as_run()) {
                (Some((place, size)), Some((next, more))) if place.wrapping_add(size as isize) == next => {
                    merged.pop();
                    merged.push(Placed::run(place, size + more));
                }
                _ => merged.push(part),
            }
        }
        if let Some(stride) = even_spacing(merged.iter().map(|part| part.place))
            && merged.iter().all(|part| part.code == merged[0].code)
        {
            return merged[0].repeated(merged.len(), stride);
        }
        if merged.len() <= 1 {
            return merged.pop().unwrap_or_else(Placed::empty);
        }
        let first = merged[0].place;
        let depth = 1 + merged.iter().map(|part| part.code.depth).max().unwrap_or(0);
        let mut start = 0;
        let entries: Box<[Entry]> = merged
            .into_iter()
            .map(|part| {
                let entry = Entry { start, part: part.moved(first.wrapping_neg()) };
                start += entry.part.code.size;
                entry
            })
            .collect();
        Placed { place: first, code: Arc::new(Code { size: start, pieces, depth, body: Body::List(entries) }) }
    }

    /// Every run in stream order; for small programs only.
    fn for_each_run(&self, base: isize, visit: &mut dyn FnMut(isize, usize)) {
        let base = base.wrapping_add(self.place);
        let size = self.code.size;
        match &self.code.body {
            _ if size == 0 => {}
            Body::Run => visit(base, size),
            Body::Strided { block, stride } => {
                (0..size / block).for_each(|i| visit(base.wrapping_add(stride.wrapping_mul(i as isize)), *block))
            }
            Body::Loop { stride, code } => {
                let turn = Placed { place: 0, code: code.clone() };
                (0..size / code.size)
                    .for_each(|i| turn.for_each_run(base.wrapping_add(stride.wrapping_mul(i as isize)), visit));
            }
            Body::Gather { block, places } => places.iter().for_each(|place| visit(base.wrapping_add(*place), *block)),
            Body::Blocks(blocks) => {
                for (i, block) in blocks.iter().enumerate() {
                    visit(base.wrapping_add(block.place), block_end(blocks, i, size) - block.start);
                }
            }
            Body::List(entries) => entries.iter().for_each(|entry| entry.part.for_each_run(base, visit)),
        }
    }
}

/// Where block `i` ends in a stream of `size` bytes.
pub(crate) fn block_end(blocks: &[Block], i: usize, size: usize) -> usize {
    blocks.get(i + 1).map_or(size, |next| next.start)
}

/// Collects runs in stream order and finds their best form.
pub(crate) struct Runs {
    blocks: Vec<Block>,
    size: usize,
}

impl Runs {
    pub fn new() -> Runs {
        Runs { blocks: Vec::new(), size: 0 }
    }

    /// Adds a run behind the others.
    pub fn push(&mut self, place: isize, size: usize) {
        if size == 0 {
            return;
        }
        let touches =
            self.blocks.last().is_some_and(|last| last.place.wrapping_add((self.size - last.start) as isize) == place);
        if !touches {
            self.blocks.push(Block { place, start: self.size });
        }
        self.size += size;
    }

    /// Returns the program of all runs.
    pub fn finish(mut self) -> Placed {
        let (size, pieces) = (self.size, self.blocks.len());
        let Some(first) = self.blocks.first().map(|block| block.place) else { return Placed::empty() };
        if pieces == 1 {
            return Placed::run(first, size);
        }
        self.blocks.iter_mut().for_each(|block| block.place = block.place.wrapping_sub(first));
        let block = size / pieces;
        let body = if self.blocks.iter().enumerate().all(|(i, b)| b.start == i * block) && size % pieces == 0 {
            match even_spacing(self.blocks.iter().map(|block| block.place)) {
                Some(stride) => Body::Strided { block, stride },
                None => Body::Gather { block, places: self.blocks.iter().map(|block| block.place).collect() },
            }
        } else {
            Body::Blocks(self.blocks.into_boxed_slice())
        };
        Placed { place: first, code: Arc::new(Code { size, pieces, depth: 0, body }) }
    }
}

/// Returns the distance between neighbours if it is the same everywhere and there are at least two.
fn even_spacing(mut places: impl Iterator<Item = isize>) -> Option<isize> {
    let (first, second) = (places.next()?, places.next()?);
    let stride = second.wrapping_sub(first);
    let mut last = second;
    for place in places {
        if place.wrapping_sub(last) != stride {
            return None;
        }
        last = place;
    }
    Some(stride)
}
