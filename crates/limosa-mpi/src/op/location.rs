//! `MPI_MINLOC` and `MPI_MAXLOC` on value-index pairs (MPI-5 section 6.9.4).
//!
//! The pair with the smaller (greater) value wins; among equal values the smaller index. Values that do not compare (NaN) leave `inout` as it
//! is. Only value and index are written, never the gap that a compiler leaves in a structure.

use std::cmp::Ordering;

use half::f16;

use super::wide;
use crate::datatype::named::{Basic, Float, Kind};

/// Compares two values in memory.
type Compare = unsafe fn(*const u8, *const u8) -> Option<Ordering>;

/// The operation on one pair type.
pub(super) struct Pairs {
    /// The order of values that makes `input` win.
    wins: Ordering,
    value: Compare,
    value_size: usize,
    index: Compare,
    index_size: usize,
    index_at: usize,
    extent: usize,
    /// A loop for this pair type alone, if it is a common one.
    special: Option<unsafe fn(Ordering, *const u8, *mut u8, usize)>,
}

impl Pairs {
    /// The operation on pairs of these types.
    pub fn of(max: bool, value: &Basic, index: &Basic, extent: usize) -> Option<Pairs> {
        let alignment = index.kind.alignment();
        let special: Option<unsafe fn(Ordering, *const u8, *mut u8, usize)> = match (value.kind, index.kind) {
            (Kind::Float(Float::Single), Kind::Signed(4)) => Some(special::<f32, i32>),
            (Kind::Float(Float::Double), Kind::Signed(4)) => Some(special::<f64, i32>),
            (Kind::Signed(8), Kind::Signed(4)) => Some(special::<i64, i32>),
            (Kind::Signed(4), Kind::Signed(4)) => Some(special::<i32, i32>),
            (Kind::Signed(2), Kind::Signed(4)) => Some(special::<i16, i32>),
            _ => None,
        };
        Some(Pairs {
            wins: if max { Ordering::Greater } else { Ordering::Less },
            value: compare(value.kind)?,
            value_size: value.kind.size(),
            index: compare(index.kind)?,
            index_size: index.kind.size(),
            index_at: value.kind.size().next_multiple_of(alignment),
            extent,
            special,
        })
    }

    /// Combines `count` pairs.
    ///
    /// # Safety
    /// As for [`Op::reduce_local`](super::Op::reduce_local).
    pub unsafe fn reduce(&self, input: *const u8, inout: *mut u8, count: usize) {
        if let Some(special) = self.special {
            // SAFETY: the caller's promise.
            return unsafe { special(self.wins, input, inout, count) };
        }
        for i in 0..count {
            // SAFETY: both buffers have `count` pairs, and value and index lie within a pair.
            unsafe {
                let (from, to) = (input.add(i * self.extent), inout.add(i * self.extent));
                let (from_index, to_index) = (from.add(self.index_at), to.add(self.index_at));
                let order = (self.value)(from, to);
                if order == Some(self.wins) {
                    std::ptr::copy_nonoverlapping(from, to, self.value_size);
                    std::ptr::copy_nonoverlapping(from_index, to_index, self.index_size);
                } else if order == Some(Ordering::Equal) && (self.index)(from_index, to_index) == Some(Ordering::Less) {
                    std::ptr::copy_nonoverlapping(from_index, to_index, self.index_size);
                }
            }
        }
    }
}

/// A pair as C lays it out.
#[repr(C)]
struct Pair<V, I> {
    value: V,
    index: I,
}

/// # Safety
/// As for [`Pairs::reduce`].
unsafe fn special<V: PartialOrd + Copy, I: PartialOrd + Copy>(wins: Ordering, input: *const u8, inout: *mut u8, count: usize) {
    let (input, inout) = (input.cast::<Pair<V, I>>(), inout.cast::<Pair<V, I>>());
    for i in 0..count {
        // SAFETY: both buffers have `count` pairs; no reference to a place that may be unaligned is made.
        unsafe {
            let (from, to) = (input.add(i), inout.add(i));
            let (value, index) = ((&raw const (*from).value).read_unaligned(), (&raw const (*from).index).read_unaligned());
            let (old_value, old_index) = ((&raw mut (*to).value).read_unaligned(), (&raw mut (*to).index).read_unaligned());
            let better = if wins == Ordering::Greater { value > old_value } else { value < old_value };
            if better {
                (&raw mut (*to).value).write_unaligned(value);
                (&raw mut (*to).index).write_unaligned(index);
            } else if value == old_value && index < old_index {
                (&raw mut (*to).index).write_unaligned(index);
            }
        }
    }
}

/// # Safety
/// Both addresses must hold a `T`.
unsafe fn native<T: PartialOrd + Copy>(a: *const u8, b: *const u8) -> Option<Ordering> {
    // SAFETY: the caller's promise.
    unsafe { a.cast::<T>().read_unaligned().partial_cmp(&b.cast::<T>().read_unaligned()) }
}

fn compare(kind: Kind) -> Option<Compare> {
    Some(match kind {
        Kind::Signed(1) => native::<i8>,
        Kind::Signed(2) => native::<i16>,
        Kind::Signed(4) => native::<i32>,
        Kind::Signed(8) => native::<i64>,
        Kind::Signed(16) => native::<i128>,
        Kind::Unsigned(1) => native::<u8>,
        Kind::Unsigned(2) => native::<u16>,
        Kind::Unsigned(4) => native::<u32>,
        Kind::Unsigned(8) => native::<u64>,
        Kind::Float(Float::Half) => native::<f16>,
        Kind::Float(Float::Single) => native::<f32>,
        Kind::Float(Float::Double) => native::<f64>,
        Kind::Float(Float::Extended) => wide::compare_extended,
        Kind::Float(Float::Quad) => wide::compare_quad,
        _ => return None,
    })
}
