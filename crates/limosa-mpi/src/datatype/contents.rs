//! How a datatype was made: envelope and contents (MPI-5 section 5.1.13).
//!
//! Contract
//! - Every derived type remembers its constructor's arguments; [`Datatype::contents`] gives them back in the standard's
//!   order.
//! - Arguments of a large-count constructor come back as large counts, those of the others as integers and addresses.
//! - Named types have no contents.

use std::sync::Arc;

use super::Datatype;
use super::named::Basic;
use super::shape::{Lengths, Shape};
use crate::consts::*;
use crate::error::Result;
use crate::fail;

/// A constructor with its arguments.
pub(super) enum Maker {
    Basic(&'static Basic),
    Pair {
        name: &'static str,
        parts: [Arc<Datatype>; 2],
        displacements: [i64; 2],
    },
    /// `arguments`: p and r, or r alone.
    F90 {
        combiner: i32,
        arguments: Box<[i32]>,
        same: Arc<Datatype>,
    },
    Dup(Arc<Datatype>),
    Contiguous {
        count: i64,
        old: Arc<Datatype>,
    },
    /// `stride` as it was given; `bytes` is the same in bytes.
    Vector {
        count: i64,
        length: i64,
        stride: i64,
        bytes: i64,
        old: Arc<Datatype>,
    },
    Hvector {
        count: i64,
        length: i64,
        stride: i64,
        old: Arc<Datatype>,
    },
    /// All four indexed constructors. `unit` is the bytes of one unit of displacement.
    Indexed {
        combiner: i32,
        lengths: BlockLengths,
        displacements: Box<[i64]>,
        unit: i64,
        old: Arc<Datatype>,
    },
    Struct {
        lengths: Box<[i64]>,
        displacements: Box<[i64]>,
        types: Box<[Arc<Datatype>]>,
    },
    /// Both array constructors. `built` is the array put together from simpler types; the arguments are as the contents
    /// give them.
    Array {
        combiner: i32,
        arguments: ArrayArguments,
        built: Arc<Datatype>,
        old: Arc<Datatype>,
    },
    Resized {
        lb: i64,
        extent: i64,
        old: Arc<Datatype>,
    },
}

/// Block lengths as they were given.
pub(super) enum BlockLengths {
    Each(Box<[i64]>),
    All(i64),
}

/// Arguments of a subarray or darray: integers before, counts, integers after. Only the counts are large in the large
/// form.
pub(super) struct ArrayArguments {
    pub before: Box<[i64]>,
    pub counts: Box<[i64]>,
    pub after: Box<[i64]>,
}

/// The arguments with which a datatype was made.
#[derive(Default)]
pub struct Contents {
    /// `MPI_COMBINER_VECTOR` and so on.
    pub combiner: i32,
    /// Integers, in the standard's order.
    pub integers: Vec<i64>,
    /// Addresses.
    pub addresses: Vec<i64>,
    /// Arguments of type `MPI_Count`.
    pub large_counts: Vec<i64>,
    /// Old types.
    pub types: Vec<Arc<Datatype>>,
}

impl Contents {
    /// The same as arguments of a constructor with large counts: all numbers are of type `MPI_Count`.
    fn into_large(mut self) -> Contents {
        self.large_counts.append(&mut self.integers);
        self.large_counts.append(&mut self.addresses);
        self
    }
}

/// How many arguments of each sort [`Contents`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// `MPI_COMBINER_VECTOR` and so on.
    pub combiner: i32,
    /// Number of integers.
    pub integers: usize,
    /// Number of addresses.
    pub addresses: usize,
    /// Number of large counts.
    pub large_counts: usize,
    /// Number of old types.
    pub types: usize,
}

/// Drops a type's old types level by level instead of recursively: types may be nested deeper than the stack has room
/// for.
impl Drop for Maker {
    fn drop(&mut self) {
        let mut open = Vec::new();
        self.take_old_types(&mut open);
        while let Some(old) = open.pop() {
            // Only the last reference gives the type, and then its maker, which copies of a type share.
            if let Some(mut maker) = Arc::into_inner(old).and_then(|old| Arc::into_inner(old.maker)) {
                maker.take_old_types(&mut open);
            }
        }
    }
}

impl Maker {
    /// Moves the derived types that this one is made of to `taken`. What is left can only be dropped.
    fn take_old_types(&mut self, taken: &mut Vec<Arc<Datatype>>) {
        let mut take = |old: &mut Arc<Datatype>| {
            if !old.is_predefined() {
                taken.push(std::mem::replace(old, Datatype::named(MPI_BYTE)));
            }
        };
        match self {
            Maker::Basic(_) | Maker::Pair { .. } | Maker::F90 { .. } => {}
            Maker::Dup(old)
            | Maker::Contiguous { old, .. }
            | Maker::Vector { old, .. }
            | Maker::Hvector { old, .. }
            | Maker::Indexed { old, .. }
            | Maker::Resized { old, .. } => take(old),
            Maker::Struct { types, .. } => types.iter_mut().for_each(take),
            Maker::Array { built, old, .. } => [built, old].into_iter().for_each(take),
        }
    }

    /// Makes a pair type; the index lies behind the value where a compiler would put it.
    pub fn pair(value: Arc<Datatype>, index: Arc<Datatype>, name: &'static str) -> Maker {
        let alignment = index.measure.alignment;
        let place = (value.size() + alignment - 1) / alignment * alignment;
        Maker::Pair { name, parts: [value, index], displacements: [0, place] }
    }

    pub fn shape(&self) -> Shape<'_> {
        match self {
            Maker::Basic(basic) => Shape::Basic(basic),
            Maker::Pair { parts, displacements, .. } => Shape::Struct { lengths: &[1, 1], displacements, types: parts },
            Maker::F90 { same, .. } | Maker::Dup(same) => Shape::Same(same),
            Maker::Array { built, .. } => Shape::Same(built),
            Maker::Contiguous { count, old } => Shape::Vector { count: 1, length: *count, stride: 0, old },
            Maker::Vector { count, length, bytes, old, .. } => {
                Shape::Vector { count: *count, length: *length, stride: *bytes, old }
            }
            Maker::Hvector { count, length, stride, old } => {
                Shape::Vector { count: *count, length: *length, stride: *stride, old }
            }
            Maker::Indexed { lengths, displacements, unit, old, .. } => {
                let lengths = match lengths {
                    BlockLengths::Each(lengths) => Lengths::Each(lengths),
                    BlockLengths::All(length) => Lengths::All(*length),
                };
                Shape::Indexed { lengths, displacements, unit: *unit, old }
            }
            Maker::Struct { lengths, displacements, types } => Shape::Struct { lengths, displacements, types },
            Maker::Resized { lb, extent, old } => Shape::Bounded { lb: *lb, extent: *extent, old },
        }
    }

    pub fn combiner(&self) -> i32 {
        match self {
            Maker::Basic(_) | Maker::Pair { .. } => MPI_COMBINER_NAMED,
            Maker::F90 { combiner, .. } | Maker::Indexed { combiner, .. } | Maker::Array { combiner, .. } => *combiner,
            Maker::Dup(_) => MPI_COMBINER_DUP,
            Maker::Contiguous { .. } => MPI_COMBINER_CONTIGUOUS,
            Maker::Vector { .. } => MPI_COMBINER_VECTOR,
            Maker::Hvector { .. } => MPI_COMBINER_HVECTOR,
            Maker::Struct { .. } => MPI_COMBINER_STRUCT,
            Maker::Resized { .. } => MPI_COMBINER_RESIZED,
        }
    }

    /// Returns the constructor in a word, for messages.
    pub fn noun(&self) -> &'static str {
        match self.combiner() {
            MPI_COMBINER_NAMED => "named",
            MPI_COMBINER_DUP => "duplicated",
            MPI_COMBINER_CONTIGUOUS => "contiguous",
            MPI_COMBINER_VECTOR | MPI_COMBINER_HVECTOR => "vector",
            MPI_COMBINER_STRUCT => "struct",
            MPI_COMBINER_SUBARRAY => "subarray",
            MPI_COMBINER_DARRAY => "darray",
            MPI_COMBINER_RESIZED => "resized",
            MPI_COMBINER_F90_REAL | MPI_COMBINER_F90_COMPLEX | MPI_COMBINER_F90_INTEGER => "Fortran",
            _ => "indexed",
        }
    }
}

impl Datatype {
    /// Whether a large-count constructor made the type: only the large-count functions return its contents.
    pub fn is_large(&self) -> bool {
        self.large
    }

    /// What [`Datatype::contents`] would return, in numbers (`MPI_Type_get_envelope`).
    pub fn envelope(&self) -> Envelope {
        let (large, combiner) = (self.large, self.maker.combiner());
        // Integers and addresses that become large counts in the large form, integers that never do, types.
        let (integers, addresses, always, types) = match &*self.maker {
            Maker::Basic(_) | Maker::Pair { .. } => (0, 0, 0, 0),
            Maker::F90 { arguments, .. } => (0, 0, arguments.len(), 0),
            Maker::Dup(_) => (0, 0, 0, 1),
            Maker::Contiguous { .. } => (1, 0, 0, 1),
            Maker::Vector { .. } => (3, 0, 0, 1),
            Maker::Hvector { .. } => (2, 1, 0, 1),
            Maker::Indexed { lengths, displacements, .. } => {
                let n = displacements.len();
                let lengths = if matches!(lengths, BlockLengths::All(_)) { 1 } else { n };
                match combiner {
                    MPI_COMBINER_HINDEXED | MPI_COMBINER_HINDEXED_BLOCK => (1 + lengths, n, 0, 1),
                    _ => (1 + lengths + n, 0, 0, 1),
                }
            }
            Maker::Struct { types, .. } => (1 + types.len(), types.len(), 0, types.len()),
            Maker::Array { arguments, .. } => {
                (arguments.counts.len(), 0, arguments.before.len() + arguments.after.len(), 1)
            }
            Maker::Resized { .. } => (0, 2, 0, 1),
        };
        if large {
            Envelope { combiner, integers: always, addresses: 0, large_counts: integers + addresses, types }
        } else {
            Envelope { combiner, integers: integers + always, addresses, large_counts: 0, types }
        }
    }

    /// Returns the arguments with which the type was made (`MPI_Type_get_contents`).
    pub fn contents(&self) -> Result<Contents> {
        let mut c = Contents { combiner: self.maker.combiner(), ..Contents::default() };
        match &*self.maker {
            Maker::Basic(_) | Maker::Pair { .. } => {
                let name = self.name();
                fail!(
                    MPI_ERR_TYPE,
                    "{name} is a named datatype and has no contents; look at the combiner of MPI_Type_get_envelope \
                     first"
                )
            }
            Maker::F90 { arguments, .. } => c.integers.extend(arguments.iter().map(|a| *a as i64)),
            Maker::Dup(old) => c.types.push(old.clone()),
            Maker::Contiguous { count, old } => {
                c.integers.push(*count);
                c.types.push(old.clone());
            }
            Maker::Vector { count, length, stride, old, .. } => {
                c.integers.extend([count, length, stride]);
                c.types.push(old.clone());
            }
            Maker::Hvector { count, length, stride, old } => {
                c.integers.extend([count, length]);
                c.addresses.push(*stride);
                c.types.push(old.clone());
            }
            Maker::Indexed { combiner, lengths, displacements, old, .. } => {
                c.integers.push(displacements.len() as i64);
                match lengths {
                    BlockLengths::Each(lengths) => c.integers.extend(lengths),
                    BlockLengths::All(length) => c.integers.push(*length),
                }
                match *combiner {
                    MPI_COMBINER_HINDEXED | MPI_COMBINER_HINDEXED_BLOCK => c.addresses.extend(displacements),
                    _ => c.integers.extend(displacements),
                }
                c.types.push(old.clone());
            }
            Maker::Struct { lengths, displacements, types } => {
                c.integers.push(types.len() as i64);
                c.integers.extend(lengths);
                c.addresses.extend(displacements);
                c.types.extend(types.iter().cloned());
            }
            Maker::Array { arguments, old, .. } => {
                c.integers.extend(&arguments.before);
                if self.large { &mut c.large_counts } else { &mut c.integers }.extend(&arguments.counts);
                c.integers.extend(&arguments.after);
                c.types.push(old.clone());
                return Ok(c);
            }
            Maker::Resized { lb, extent, old } => {
                c.addresses.extend([lb, extent]);
                c.types.push(old.clone());
            }
        }
        Ok(if self.large { c.into_large() } else { c })
    }
}
