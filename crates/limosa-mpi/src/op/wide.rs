//! Arithmetic on `long double` and IEEE binary128, which Rust does not have: the loops are in `wide.c`.

use std::cmp::Ordering;
use std::ffi::c_int;

use super::{Kernel, Reduction};
use crate::datatype::named::Float;

unsafe extern "C" {
    fn limosa_extended_sum(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_extended_prod(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_extended_min(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_extended_max(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_extended_complex_prod(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_extended_compare(a: *const u8, b: *const u8) -> c_int;
    fn limosa_quad_sum(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_quad_prod(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_quad_min(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_quad_max(input: *const u8, inout: *mut u8, count: usize);
    fn limosa_quad_complex_prod(input: *const u8, inout: *mut u8, count: usize);
}

/// Gives a function of C the type of a kernel, for so many numbers per element.
macro_rules! kernel {
    ($function:ident, $numbers:literal) => {{
        /// # Safety
        /// As for [`Kernel`].
        unsafe fn call(input: *const u8, inout: *mut u8, count: usize) {
            // SAFETY: the caller's promise; the loop accesses so many numbers and needs no alignment.
            unsafe { $function(input, inout, count * $numbers) }
        }
        Some(call as Kernel)
    }};
}

/// Returns the kernel for real numbers of a wide format.
pub(super) fn real(format: Float, reduction: Reduction) -> Option<Kernel> {
    match (format, reduction) {
        (Float::Extended, Reduction::Sum) => kernel!(limosa_extended_sum, 1),
        (Float::Extended, Reduction::Prod) => kernel!(limosa_extended_prod, 1),
        (Float::Extended, Reduction::Min) => kernel!(limosa_extended_min, 1),
        (Float::Extended, Reduction::Max) => kernel!(limosa_extended_max, 1),
        (Float::Quad, Reduction::Sum) => kernel!(limosa_quad_sum, 1),
        (Float::Quad, Reduction::Prod) => kernel!(limosa_quad_prod, 1),
        (Float::Quad, Reduction::Min) => kernel!(limosa_quad_min, 1),
        (Float::Quad, Reduction::Max) => kernel!(limosa_quad_max, 1),
        _ => None,
    }
}

/// Returns the kernel for complex numbers of a wide format.
pub(super) fn complex(format: Float, reduction: Reduction) -> Option<Kernel> {
    match (format, reduction) {
        (Float::Extended, Reduction::Sum) => kernel!(limosa_extended_sum, 2),
        (Float::Extended, Reduction::Prod) => kernel!(limosa_extended_complex_prod, 1),
        (Float::Quad, Reduction::Sum) => kernel!(limosa_quad_sum, 2),
        (Float::Quad, Reduction::Prod) => kernel!(limosa_quad_complex_prod, 1),
        _ => None,
    }
}

/// A `long double`.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Extended([u8; 16]);

impl PartialOrd for Extended {
    fn partial_cmp(&self, other: &Extended) -> Option<Ordering> {
        // SAFETY: both are numbers of this format.
        match unsafe { limosa_extended_compare(self.0.as_ptr(), other.0.as_ptr()) } {
            2 => None, // NaN
            answer => Some(answer.cmp(&0)),
        }
    }
}

impl PartialEq for Extended {
    fn eq(&self, other: &Extended) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}
