//! `MPI_MINLOC` and `MPI_MAXLOC` on value-index pairs (MPI-5 section 6.9.4).
//!
//! The pair with the smaller (greater) value wins; among equal values the smaller index. Values that do not compare
//! (NaN) leave `inout` as it is. Only value and index are written, never the gap that a compiler leaves in a structure.

use super::Kernel;
use super::wide::Extended;
use crate::datatype::named::{Basic, Float, Kind};

/// A pair as C lays it out.
#[repr(C)]
struct Pair<V, I> {
    value: V,
    index: I,
}

/// Returns the kernel for pairs of these types.
pub(super) fn find(max: bool, value: &Basic, index: &Basic) -> Option<Kernel> {
    match (value.kind, index.kind) {
        (Kind::Signed(2), Kind::Signed(4)) => kernel::<i16, i32>(max),
        (Kind::Signed(4), Kind::Signed(4)) => kernel::<i32, i32>(max),
        (Kind::Signed(8), Kind::Signed(4)) => kernel::<i64, i32>(max),
        (Kind::Float(Float::Single), Kind::Signed(4)) => kernel::<f32, i32>(max),
        (Kind::Float(Float::Double), Kind::Signed(4)) => kernel::<f64, i32>(max),
        (Kind::Float(Float::Extended), Kind::Signed(4)) => kernel::<Extended, i32>(max),
        (Kind::Float(Float::Single), Kind::Float(Float::Single)) => kernel::<f32, f32>(max),
        (Kind::Float(Float::Double), Kind::Float(Float::Double)) => kernel::<f64, f64>(max),
        _ => None,
    }
}

fn kernel<V: PartialOrd + Copy, I: PartialOrd + Copy>(max: bool) -> Option<Kernel> {
    Some(if max { reduce::<V, I, true> } else { reduce::<V, I, false> })
}

/// # Safety
/// As for [`Kernel`].
unsafe fn reduce<V: PartialOrd + Copy, I: PartialOrd + Copy, const MAX: bool>(
    input: *const u8,
    inout: *mut u8,
    count: usize,
) {
    let (input, inout) = (input.cast::<Pair<V, I>>(), inout.cast::<Pair<V, I>>());
    for i in 0..count {
        // SAFETY: both buffers have `count` pairs; no reference to a place that may be unaligned is made.
        unsafe {
            let (from, to) = (input.add(i), inout.add(i));
            let (value, index) =
                ((&raw const (*from).value).read_unaligned(), (&raw const (*from).index).read_unaligned());
            let (old_value, old_index) =
                ((&raw const (*to).value).read_unaligned(), (&raw const (*to).index).read_unaligned());
            let better = if MAX { value > old_value } else { value < old_value };
            if better {
                (&raw mut (*to).value).write_unaligned(value);
                (&raw mut (*to).index).write_unaligned(index);
            } else if value == old_value && index < old_index {
                (&raw mut (*to).index).write_unaligned(index);
            }
        }
    }
}
