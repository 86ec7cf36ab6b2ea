//! How a datatype arranges its old types, and what follows from it: sizes, bounds, alignment, signature, program.
//!
//! A [`Shape`] is the one view of all constructors that the rest of the module works with.

use std::sync::Arc;

use super::Datatype;
use super::named::Basic;
use super::program::{Placed, Runs};
use super::signature::Signature;
use crate::error::Result;
use crate::fail;

/// How copies of old types are arranged in one element of a new type.
pub(super) enum Shape<'a> {
    /// One value.
    Basic(&'static Basic),
    /// One element of the old type.
    Same(&'a Arc<Datatype>),
    /// `count` blocks of `length` consecutive elements, `stride` bytes apart.
    Vector { count: i64, length: i64, stride: i64, old: &'a Arc<Datatype> },
    /// Blocks of consecutive elements at displacements in units of `unit` bytes.
    Indexed { lengths: Lengths<'a>, displacements: &'a [i64], unit: i64, old: &'a Arc<Datatype> },
    /// Blocks of consecutive elements of different types at displacements in bytes.
    Struct { lengths: &'a [i64], displacements: &'a [i64], types: &'a [Arc<Datatype>] },
    /// One element of the old type with other bounds.
    Bounded { lb: i64, extent: i64, old: &'a Arc<Datatype> },
}

/// Block lengths of an indexed type.
#[derive(Clone, Copy)]
pub(super) enum Lengths<'a> {
    /// One for each block.
    Each(&'a [i64]),
    /// The same for all blocks.
    All(i64),
}

impl Lengths<'_> {
    pub fn get(&self, i: usize) -> i64 {
        match self {
            Lengths::Each(lengths) => lengths[i],
            Lengths::All(length) => *length,
        }
    }
}

/// A range of bytes relative to the base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub low: i64,
    pub high: i64,
}

/// The numbers that describe a datatype.
#[derive(Clone, Debug)]
pub(super) struct Measure {
    pub size: i64,
    pub lb: i64,
    pub ub: i64,
    /// From the first to behind the last data byte, if there are entries in the type map.
    pub data: Option<Range>,
    /// The bounds are those of markers in the type map.
    pub marked: bool,
    pub alignment: i64,
    /// Bytes in the external32 representation. No basic type has more of them than native bytes, so that they fit where
    /// `size` does.
    pub external: i64,
    pub signature: Signature,
}

/// Adds up a type map. Works in 128 bits, in which nothing here can overflow, and cuts down at the end.
struct Tally {
    size: i128,
    data: Option<(i128, i128)>,
    /// From the lowest lower to the highest upper bound: of copies with markers, and of the others.
    marked: Option<(i128, i128)>,
    unmarked: Option<(i128, i128)>,
    alignment: i64,
    external: i128,
    signature: Signature,
    elements: i128,
}

fn stretch(range: &mut Option<(i128, i128)>, low: i128, high: i128) {
    *range = Some(match *range {
        None => (low, high),
        Some((l, h)) => (l.min(low), h.max(high)),
    });
}

impl Tally {
    /// Adds `count` blocks of `length` elements, the first at byte `at`, the others `stride` bytes apart.
    fn add(&mut self, at: i128, count: i64, stride: i128, length: i64, old: &Datatype) -> Result<()> {
        if count == 0 || length == 0 {
            return Ok(());
        }
        let total = count as i128 * length as i128;
        self.size += too_large(total.checked_mul(old.size() as i128))?;
        self.external += too_large(total.checked_mul(old.measure.external as i128))?;
        self.elements += too_large(total.checked_mul(old.measure.signature.elements as i128))?;
        let across = too_large((count as i128 - 1).checked_mul(stride))?;
        let along = (length as i128 - 1) * old.extent() as i128;
        for corner in [0, across] {
            for corner in [corner, too_large(corner.checked_add(along))?] {
                let at = too_large(at.checked_add(corner))?;
                if let Some(data) = old.measure.data {
                    stretch(&mut self.data, at + data.low as i128, at + data.high as i128);
                }
                let bounds = if old.measure.marked { &mut self.marked } else { &mut self.unmarked };
                if old.measure.marked || old.measure.data.is_some() {
                    stretch(bounds, at + old.measure.lb as i128, at + old.measure.ub as i128);
                }
            }
        }
        self.alignment = self.alignment.max(old.measure.alignment);
        self.signature = self.signature.then(&old.measure.signature.repeated(total as u64));
        too_large(fits(self.size).and(fits(self.external)).and(fits(self.elements)))?;
        Ok(())
    }

    fn finish(self) -> Result<Measure> {
        let cut =
            |(low, high)| -> Result<Range> { Ok(Range { low: too_large(fits(low))?, high: too_large(fits(high))? }) };
        let data = self.data.map(cut).transpose()?;
        let bounds = match (self.marked, self.unmarked) {
            (Some(marked), _) => cut(marked)?,
            (None, Some((low, high))) => {
                let alignment = self.alignment as i128;
                cut((low, low + (high - low + alignment - 1) / alignment * alignment))?
            }
            (None, None) => Range { low: 0, high: 0 },
        };
        for range in [Some(bounds), data].into_iter().flatten() {
            too_large(range.high.checked_sub(range.low))?;
        }
        Ok(Measure {
            size: self.size as i64,
            lb: bounds.low,
            ub: bounds.high,
            data,
            marked: self.marked.is_some(),
            alignment: self.alignment,
            external: self.external as i64,
            signature: self.signature,
        })
    }
}

fn fits(value: i128) -> Option<i64> {
    i64::try_from(value).ok()
}

fn too_large<T>(value: Option<T>) -> Result<T> {
    match value {
        Some(value) => Ok(value),
        None => fail!(
            MPI_ERR_VALUE_TOO_LARGE,
            "the size or the bounds of the datatype would not fit in 64 bits; use smaller counts or displacements"
        ),
    }
}

impl Measure {
    pub fn of(shape: &Shape) -> Result<Measure> {
        let signature = Signature::default();
        let mut tally = Tally {
            size: 0,
            data: None,
            marked: None,
            unmarked: None,
            alignment: 1,
            external: 0,
            signature,
            elements: 0,
        };
        match *shape {
            Shape::Basic(basic) => {
                tally.size = basic.kind.size() as i128;
                tally.data = Some((0, tally.size));
                tally.unmarked = tally.data;
                tally.alignment = basic.kind.alignment() as i64;
                tally.external = basic.external_size as i128;
                tally.signature = Signature::basic(basic.kind);
            }
            Shape::Same(old) => tally.add(0, 1, 0, 1, old)?,
            Shape::Vector { count, length, stride, old } => tally.add(0, count, stride as i128, length, old)?,
            Shape::Indexed { lengths, displacements, unit, old } => {
                for (i, displacement) in displacements.iter().enumerate() {
                    tally.add(*displacement as i128 * unit as i128, 1, 0, lengths.get(i), old)?;
                }
            }
            Shape::Struct { lengths, displacements, types } => {
                for ((length, displacement), old) in lengths.iter().zip(displacements).zip(types) {
                    tally.add(*displacement as i128, 1, 0, *length, old)?;
                }
            }
            Shape::Bounded { lb, extent, old } => {
                tally.add(0, 1, 0, 1, old)?;
                tally.marked = Some((lb as i128, lb as i128 + extent as i128));
            }
        }
        tally.finish()
    }
}

impl<'a> Shape<'a> {
    /// Returns the types that this type is made of.
    pub fn old_types(&self) -> &'a [Arc<Datatype>] {
        match *self {
            Shape::Basic(_) => &[],
            Shape::Same(old) | Shape::Bounded { old, .. } | Shape::Vector { old, .. } | Shape::Indexed { old, .. } => {
                std::slice::from_ref(old)
            }
            Shape::Struct { types, .. } => types,
        }
    }

    /// Block `i` of an element, in the order of the type map: its displacement in bytes, its length in elements of its
    /// type, and the type. `None` behind the last block, and for a basic type.
    pub fn block(&self, i: usize) -> Option<(i64, i64, &'a Arc<Datatype>)> {
        match *self {
            Shape::Basic(_) => None,
            Shape::Same(old) | Shape::Bounded { old, .. } => (i == 0).then_some((0, 1, old)),
            Shape::Vector { count, length, stride, old } => {
                ((i as i64) < count).then(|| (stride.wrapping_mul(i as i64), length, old))
            }
            Shape::Indexed { lengths, displacements, unit, old } => {
                displacements.get(i).map(|displacement| (displacement.wrapping_mul(unit), lengths.get(i), old))
            }
            Shape::Struct { lengths, displacements, types } => {
                types.get(i).map(|old| (displacements[i], lengths[i], old))
            }
        }
    }

    /// Returns the program of one element. Those of the old types must exist, or this recurses ([`Datatype::program`]
    /// sees to that).
    ///
    /// The bounds were checked when the type was made, so that no place overflows here.
    pub fn program(&self) -> Placed {
        match *self {
            Shape::Basic(basic) => Placed::run(0, basic.kind.size()),
            Shape::Same(old) | Shape::Bounded { old, .. } => old.program().clone(),
            // Without blocks their length may be any, also one that would not fit.
            Shape::Vector { count: 0, .. } => Placed::empty(),
            Shape::Vector { count, length, stride, old } => {
                old.program().repeated(length as usize, old.extent() as isize).repeated(count as usize, stride as isize)
            }
            Shape::Indexed { lengths, displacements, unit, old } => {
                let one = old.program();
                if old.is_dense() {
                    let mut runs = Runs::new();
                    for (i, displacement) in displacements.iter().enumerate() {
                        runs.push(
                            one.place.wrapping_add(displacement.wrapping_mul(unit) as isize),
                            lengths.get(i) as usize * one.code.size,
                        );
                    }
                    return runs.finish();
                }
                // Neighbours are often equally long and then share their program.
                let mut last = (0, Placed::empty());
                let mut parts = Vec::with_capacity(displacements.len());
                for (i, displacement) in displacements.iter().enumerate().filter(|(i, _)| lengths.get(*i) > 0) {
                    if last.0 != lengths.get(i) {
                        last = (lengths.get(i), one.repeated(lengths.get(i) as usize, old.extent() as isize));
                    }
                    parts.push(last.1.moved(displacement.wrapping_mul(unit) as isize));
                }
                Placed::sequence(parts)
            }
            Shape::Struct { lengths, displacements, types } => {
                let part = |((length, displacement), old): ((&i64, &i64), &Arc<Datatype>)| {
                    old.program().repeated(*length as usize, old.extent() as isize).moved(*displacement as isize)
                };
                Placed::sequence(
                    lengths
                        .iter()
                        .zip(displacements)
                        .zip(types)
                        .filter(|((length, _), _)| **length > 0)
                        .map(part)
                        .collect(),
                )
            }
        }
    }
}
