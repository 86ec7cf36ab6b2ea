//! The sequence of basic types of a message (its type signature, MPI-5 section 3.3.1), written so that two can be
//! compared and the first difference named.
//!
//! A sequence is a list of runs, repeated until all elements are there. Runs beyond [`MOST_RUNS`] are left out, and
//! then only what is known is compared.
//!
//! What counts as the same (more than the standard promises, because programs do it): types of one representation
//! (`MPI_LONG` and `MPI_INT64_T`); all types of one byte; truth values and integers of the same length; a complex
//! number and two real ones; `MPI_BYTE` and `MPI_PACKED` and whatever follows them, and anything.

use super::Datatype;
use super::named::{Basic, Kind};
use super::shape::Shape;
use crate::consts::MPI_DATATYPE_NULL;

/// Most runs of a sequence.
pub const MOST_RUNS: usize = 14;

/// Consecutive values of a basic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the basic type ([`Basic::number`]).
    pub basic: u8,
    /// Number of values.
    pub count: u64,
}

impl Run {
    fn basic(self) -> Option<&'static Basic> {
        Datatype::builtin(MPI_DATATYPE_NULL + i32::from(self.basic))?.as_basic()
    }

    /// What is compared of it, and how often it is there; `None` for what matches anything.
    fn units(self) -> Option<(Unit, u64)> {
        match self.basic()?.kind {
            Kind::Byte | Kind::Packed => None,
            Kind::Complex(float) => Some((Unit::Float(float as u8), self.count.saturating_mul(2))),
            kind => Some((Unit::of(kind), self.count)),
        }
    }

    /// Returns the name of the basic type.
    pub fn name(self) -> &'static str {
        self.basic().map_or("an unknown type", |basic| basic.name)
    }
}

/// What counts as the same when sequences are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    One,
    Integer(u8),
    Unsigned(u8),
    Float(u8),
}

impl Unit {
    fn of(kind: Kind) -> Unit {
        match kind {
            kind if kind.size() == 1 => Unit::One,
            Kind::Unsigned(bytes) => Unit::Unsigned(bytes),
            Kind::Float(float) | Kind::Complex(float) => Unit::Float(float as u8),
            other => Unit::Integer(other.size() as u8),
        }
    }
}

/// A sequence of basic types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// What is repeated; never empty runs.
    pub runs: Vec<Run>,
    /// How often.
    pub times: u64,
    /// Runs were left out, behind those that are here.
    pub is_cut: bool,
}

/// The first difference between two sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The run in the first sequence.
    pub left: Run,
    /// The run in the second sequence.
    pub right: Run,
    /// Values of basic types before it, a complex number counted as two.
    pub before: u64,
}

impl Sequence {
    /// One value.
    pub fn of_basic(basic: &Basic) -> Sequence {
        let run = Run { basic: basic.number() as u8, count: 1 };
        Sequence { runs: vec![run], times: 1, is_cut: false }
    }

    /// Makes a sequence of which nothing is known.
    pub fn unknown() -> Sequence {
        Sequence { is_cut: true, ..Sequence::default() }
    }

    /// Returns the bytes of the values; `None` if runs were left out.
    pub fn bytes(&self) -> Option<u64> {
        let of_run = |run: &Run| Some(run.count.saturating_mul(run.basic()?.kind.size() as u64));
        let once = self.runs.iter().map(of_run).try_fold(0u64, |sum, bytes| Some(sum.saturating_add(bytes?)))?;
        (!self.is_cut).then(|| once.saturating_mul(self.times))
    }

    /// Returns this sequence, repeated `count` times.
    pub fn repeated(&self, count: u64) -> Sequence {
        match self.times.saturating_mul(count) {
            0 => Sequence::default(),
            times => Sequence { times, ..self.clone() },
        }
    }

    /// Appends another sequence.
    pub fn append(&mut self, next: &Sequence) {
        if next.times == 0 || self.is_cut {
            return;
        }
        if self.times == 0 {
            *self = next.clone();
        } else if self.runs == next.runs && !next.is_cut {
            self.times = self.times.saturating_add(next.times);
        } else {
            self.write_out();
            self.push_all(next);
        }
    }

    /// Writes all repetitions as runs.
    fn write_out(&mut self) {
        let all = std::mem::take(self);
        self.times = 1;
        self.push_all(&all);
    }

    fn push_all(&mut self, next: &Sequence) {
        if let ([run], false) = (&next.runs[..], next.is_cut) {
            self.push(Run { count: run.count.saturating_mul(next.times), ..*run });
            return;
        }
        for _ in 0..next.times {
            next.runs.iter().for_each(|run| self.push(*run));
            self.is_cut |= next.is_cut;
            if self.is_cut {
                return;
            }
        }
    }

    fn push(&mut self, run: Run) {
        let is_full = self.runs.len() == MOST_RUNS;
        match self.runs.last_mut() {
            _ if self.is_cut => {}
            Some(last) if last.basic == run.basic => last.count = last.count.saturating_add(run.count),
            _ if is_full => self.is_cut = true,
            _ => self.runs.push(run),
        }
    }

    /// Returns the first difference between this sequence, as far as it goes, and `other`, which may be longer.
    pub fn difference(&self, other: &Sequence) -> Option<Difference> {
        let (mut left, mut right) = (Walk::new(self), Walk::new(other));
        // Two periodic sequences that are the same for the sum of their periods are the same for ever.
        let enough = left.period().saturating_add(right.period());
        let mut before = 0;
        while before < enough {
            let ((left_run, a, more_left), (right_run, b, more_right)) = (left.next()?, right.next()?);
            if a != b {
                return Some(Difference { left: left_run, right: right_run, before });
            }
            let step = more_left.min(more_right);
            left.advance(step);
            right.advance(step);
            before += step;
        }
        None
    }
}

impl Datatype {
    /// Returns the sequence of one element.
    pub fn sequence(&self) -> &Sequence {
        self.sequence.get().unwrap_or_else(|| self.work_out_sequence())
    }

    /// Works out the sequences of all types below first: types may be nested deeper than the stack has room for.
    fn work_out_sequence(&self) -> &Sequence {
        let mut open = vec![self];
        while let Some(&datatype) = open.last() {
            let known = open.len();
            let old_types = datatype.maker.shape().old_types().iter().map(|old| &**old);
            open.extend(old_types.filter(|old| old.sequence.get().is_none()));
            if open.len() == known {
                datatype.sequence.get_or_init(|| datatype.maker.shape().sequence());
                open.pop();
            }
        }
        self.sequence.get().expect("the last one worked out is this one")
    }
}

impl Shape<'_> {
    /// Returns the sequence of one element. Those of the old types must exist.
    fn sequence(&self) -> Sequence {
        let times = |count: i64, length: i64| (count.max(0) as u64).saturating_mul(length.max(0) as u64);
        match *self {
            Shape::Basic(basic) => Sequence::of_basic(basic),
            Shape::Same(old) | Shape::Bounded { old, .. } => old.sequence().clone(),
            Shape::Vector { count, length, old, .. } => old.sequence().repeated(times(count, length)),
            Shape::Indexed { lengths, displacements, old, .. } => {
                let elements = (0..displacements.len()).map(|i| times(1, lengths.get(i)));
                old.sequence().repeated(elements.fold(0, u64::saturating_add))
            }
            Shape::Struct { lengths, types, .. } => {
                let mut sequence = Sequence::default();
                for (length, old) in lengths.iter().zip(types) {
                    sequence.append(&old.sequence().repeated(times(1, *length)));
                }
                sequence
            }
        }
    }
}

/// Goes through a sequence.
struct Walk<'a> {
    sequence: &'a Sequence,
    run: usize,
    /// Units of that run that are behind.
    within: u64,
    /// Repetitions to come after this one.
    left: u64,
}

impl<'a> Walk<'a> {
    fn new(sequence: &'a Sequence) -> Walk<'a> {
        Walk { sequence, run: 0, within: 0, left: sequence.times.saturating_sub(1) }
    }

    /// Units of one repetition.
    fn period(&self) -> u64 {
        let units = |run: &Run| run.units().map_or(0, |(_, count)| count);
        self.sequence.runs.iter().map(units).fold(0, u64::saturating_add)
    }

    /// Returns the present run, its unit, and the number of remaining units; `None` at the end, and where anything
    /// matches.
    fn next(&mut self) -> Option<(Run, Unit, u64)> {
        if self.run == self.sequence.runs.len() {
            if self.sequence.is_cut || self.left == 0 {
                return None;
            }
            (self.run, self.left) = (0, self.left - 1);
        }
        let run = *self.sequence.runs.get(self.run)?;
        let (unit, count) = run.units()?;
        Some((run, unit, count - self.within))
    }

    fn advance(&mut self, units: u64) {
        self.within += units;
        let count = self.sequence.runs[self.run].units().map_or(0, |(_, count)| count);
        if self.within == count {
            (self.run, self.within) = (self.run + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::*;
    use std::sync::Arc;

    fn of(count: u64, datatype: &Arc<Datatype>) -> Sequence {
        datatype.sequence().repeated(count)
    }

    fn named(count: u64, handle: i32) -> Sequence {
        of(count, &Datatype::named(handle))
    }

    fn int_and_double() -> Arc<Datatype> {
        Datatype::structure(&[1, 1], &[0, 8], &[Datatype::named(MPI_INT), Datatype::named(MPI_DOUBLE)]).unwrap()
    }

    #[test]
    fn what_differs_is_found_and_named() {
        let found = named(2, MPI_INT).difference(&named(1, MPI_DOUBLE)).expect("they differ");
        assert_eq!((found.left.name(), found.right.name(), found.before), ("MPI_INT", "MPI_DOUBLE", 0));
        let found = of(5, &int_and_double()).difference(&named(9, MPI_INT)).expect("they differ");
        assert_eq!((found.left.name(), found.right.name(), found.before), ("MPI_DOUBLE", "MPI_INT", 1));
        for (a, b) in [(MPI_LONG, MPI_INT), (MPI_UNSIGNED, MPI_INT), (MPI_FLOAT, MPI_INT), (MPI_DOUBLE, MPI_INT64_T)] {
            assert!(named(3, a).difference(&named(3, b)).is_some(), "{a:#x} {b:#x}");
        }
    }

    #[test]
    fn what_programs_take_for_the_same_is_the_same() {
        for (a, b) in [
            (MPI_LONG, MPI_INT64_T),
            (MPI_INT, MPI_INTEGER),
            (MPI_CHAR, MPI_SIGNED_CHAR),
            (MPI_CHAR, MPI_UNSIGNED_CHAR),
            (MPI_C_BOOL, MPI_UINT8_T),
            (MPI_LOGICAL, MPI_INTEGER),
            (MPI_AINT, MPI_LONG_LONG),
            (MPI_DOUBLE, MPI_DOUBLE_PRECISION),
            (MPI_DOUBLE_COMPLEX, MPI_DOUBLE),
            (MPI_BYTE, MPI_DOUBLE),
            (MPI_INT, MPI_PACKED),
        ] {
            assert_eq!(named(3, a).difference(&named(3, b)), None, "{a:#x} {b:#x}");
            assert_eq!(named(3, b).difference(&named(3, a)), None, "{b:#x} {a:#x}");
        }
    }

    #[test]
    fn structure_does_not_matter_and_a_prefix_is_enough() {
        let pair = int_and_double();
        let two = Datatype::structure(&[1, 1], &[0, 16], &[pair.clone(), pair.clone()]).unwrap();
        let vector = Datatype::vector(3, 2, 7, &two).unwrap();
        assert_eq!(of(1, &vector).difference(&of(12, &pair)), None);
        assert_eq!(of(1, &pair).difference(&of(7, &two)), None);
        assert_eq!(named(1, MPI_INT).difference(&of(1, &pair)), None);
        assert!(named(2, MPI_INT).difference(&of(1, &pair)).is_some());
        assert_eq!(named(0, MPI_INT).difference(&named(1, MPI_DOUBLE)), None);
        assert_eq!(named(1 << 60, MPI_INT).difference(&named(1 << 61, MPI_INT)), None);
        let swapped =
            Datatype::structure(&[1, 1], &[0, 8], &[Datatype::named(MPI_DOUBLE), Datatype::named(MPI_INT)]).unwrap();
        assert!(of(1, &swapped).difference(&of(1, &pair)).is_some());
    }

    #[test]
    fn of_long_lists_the_beginning_is_compared() {
        let parts: Vec<_> = (0..100).map(|i| Datatype::named([MPI_INT, MPI_DOUBLE][i % 2])).collect();
        let places: Vec<i64> = (0..100).map(|i| 8 * i).collect();
        let long = Datatype::structure(&[1; 100], &places, &parts).unwrap();
        assert_eq!(long.sequence().runs.len(), MOST_RUNS);
        assert_eq!(of(1, &long).difference(&of(50, &int_and_double())), None);
        assert!(of(1, &long).difference(&named(100, MPI_INT)).is_some());
        assert!(named(8, MPI_INT).difference(&of(1, &long)).is_some());
    }

    #[test]
    fn types_nested_deeply_and_lists_of_many_blocks_have_sequences() {
        let mut nested = int_and_double();
        for _ in 0..10_000 {
            nested = Datatype::contiguous(1, &nested).unwrap();
        }
        assert_eq!(of(3, &nested).difference(&of(3, &int_and_double())), None);
        let places: Vec<i64> = (0..10_000).map(|i| 2 * i).collect();
        let many = Datatype::indexed_block(1, &places, &int_and_double()).unwrap();
        assert_eq!(many.sequence().times, 10_000);
    }
}
