//! Element-wise loops for the predefined operations.
//!
//! [`Combine`] says what an operation does to two values of a type; [`run`] is the one loop over buffers of any
//! alignment. Each pair of them is compiled twice where that pays: for every processor of the architecture, and for
//! those with AVX2, chosen when it runs.

use std::ffi::c_char;

use half::f16;

use super::{Kernel, Reduction, wide};
use crate::consts::MPI_CHAR;
use crate::datatype::named::{Basic, Float, Group, Kind};

/// An operation on values of type `T`.
trait Combine<T> {
    /// `a op b`.
    fn combine(a: T, b: T) -> T;
}

struct Sum;
struct Prod;
struct Min;
struct Max;
struct Band;
struct Bor;
struct Bxor;
struct Land;
struct Lor;
struct Lxor;
/// Logical operations of Fortran, whose truth values other than 0 are left as they are.
struct FortranAnd;
struct FortranOr;
struct FortranXor;

/// A complex number.
#[derive(Clone, Copy)]
#[repr(C)]
struct Complex<T>(T, T);

macro_rules! combine {
    ($type:ty: $($op:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        impl Combine<$type> for $op {
            #[inline(always)]
            fn combine($a: $type, $b: $type) -> $type {
                $body
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        combine! { $type:
            Sum |a, b| a.wrapping_add(b);
            Prod |a, b| a.wrapping_mul(b);
            Min |a, b| a.min(b);
            Max |a, b| a.max(b);
            Band |a, b| a & b;
            Bor |a, b| a | b;
            Bxor |a, b| a ^ b;
            Land |a, b| <$type>::from((a != 0) & (b != 0));
            Lor |a, b| <$type>::from((a | b) != 0);
            Lxor |a, b| <$type>::from((a != 0) ^ (b != 0));
            FortranAnd |a, b| if a == 0 { a } else { b };
            FortranOr |a, b| if a != 0 { a } else { b };
            FortranXor |a, b| if a == 0 { b } else if b == 0 { a } else { 0 };
        }
    )*};
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        combine! { $type:
            Sum |a, b| a + b;
            Prod |a, b| a * b;
            Min |a, b| if a < b { a } else { b };
            Max |a, b| if a > b { a } else { b };
        }
        combine! { Complex<$type>:
            Sum |a, b| Complex(a.0 + b.0, a.1 + b.1);
            Prod |a, b| Complex(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
        }
    )*};
}

integers! { i8 i16 i32 i64 i128 u8 u16 u32 u64 }
floats! { f32 f64 f16 }

/// The loop.
///
/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn run<T: Copy, C: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    let (input, inout) = (input.cast::<T>(), inout.cast::<T>());
    for i in 0..count {
        // SAFETY: both buffers have `count` elements; unaligned accesses need no alignment.
        unsafe {
            let place = inout.add(i);
            place.write_unaligned(C::combine(input.add(i).read_unaligned(), place.read_unaligned()));
        }
    }
}

/// # Safety
/// As for [`Kernel`].
unsafe fn anywhere<T: Copy, C: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<T, C>(input, inout, count) }
}

/// # Safety
/// As for [`Kernel`], and the processor must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn with_avx2<T: Copy, C: Combine<T>>(input: *const u8, inout: *mut u8, count: usize) {
    // SAFETY: the caller's promise.
    unsafe { run::<T, C>(input, inout, count) }
}

/// Returns the kernel of an operation for this processor.
fn kernel<T: Copy, C: Combine<T>>() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return with_avx2::<T, C>;
    }
    anywhere::<T, C>
}

/// The kernels of one representation.
macro_rules! integer {
    ($type:ty, $reduction:expr) => {
        match $reduction {
            Reduction::Sum => Some(kernel::<$type, Sum>()),
            Reduction::Prod => Some(kernel::<$type, Prod>()),
            Reduction::Min => Some(kernel::<$type, Min>()),
            Reduction::Max => Some(kernel::<$type, Max>()),
            Reduction::Band => Some(kernel::<$type, Band>()),
            Reduction::Bor => Some(kernel::<$type, Bor>()),
            Reduction::Bxor => Some(kernel::<$type, Bxor>()),
            Reduction::Land => Some(kernel::<$type, Land>()),
            Reduction::Lor => Some(kernel::<$type, Lor>()),
            Reduction::Lxor => Some(kernel::<$type, Lxor>()),
            _ => None,
        }
    };
}

macro_rules! logical {
    ($type:ty, $reduction:expr) => {
        match $reduction {
            Reduction::Land => Some(kernel::<$type, FortranAnd>()),
            Reduction::Lor => Some(kernel::<$type, FortranOr>()),
            Reduction::Lxor => Some(kernel::<$type, FortranXor>()),
            _ => None,
        }
    };
}

macro_rules! float {
    ($type:ty, $reduction:expr) => {
        match $reduction {
            Reduction::Sum => Some(kernel::<$type, Sum>()),
            Reduction::Prod => Some(kernel::<$type, Prod>()),
            Reduction::Min => Some(kernel::<$type, Min>()),
            Reduction::Max => Some(kernel::<$type, Max>()),
            _ => None,
        }
    };
}

macro_rules! complex {
    ($type:ty, $reduction:expr) => {
        match $reduction {
            Reduction::Sum => Some(kernel::<Complex<$type>, Sum>()),
            Reduction::Prod => Some(kernel::<Complex<$type>, Prod>()),
            _ => None,
        }
    };
}

/// Returns the kernel of a predefined operation for a type, if it is defined for it.
pub(super) fn find(reduction: Reduction, basic: &Basic) -> Option<Kernel> {
    use Reduction as R;
    let allowed = match basic.group {
        Group::CInteger | Group::MultiLanguage => !matches!(reduction, R::Minloc | R::Maxloc),
        Group::FortranInteger => matches!(reduction, R::Sum | R::Prod | R::Min | R::Max | R::Band | R::Bor | R::Bxor),
        Group::FloatingPoint => matches!(reduction, R::Sum | R::Prod | R::Min | R::Max),
        Group::Complex => matches!(reduction, R::Sum | R::Prod),
        Group::Logical => matches!(reduction, R::Land | R::Lor | R::Lxor),
        Group::Byte => matches!(reduction, R::Band | R::Bor | R::Bxor),
        // Other libraries take characters for numbers, and programs rely on it. The checks refuse that (`Op::check`).
        Group::None => basic.handle == MPI_CHAR && !matches!(reduction, R::Minloc | R::Maxloc),
    };
    if !allowed {
        return None;
    }
    match basic.kind {
        Kind::Text if c_char::MIN == 0 => integer!(u8, reduction),
        Kind::Signed(1) | Kind::Text => integer!(i8, reduction),
        Kind::Signed(2) => integer!(i16, reduction),
        Kind::Signed(4) => integer!(i32, reduction),
        Kind::Signed(8) => integer!(i64, reduction),
        Kind::Signed(16) => integer!(i128, reduction),
        Kind::Unsigned(1) | Kind::Bool | Kind::Byte => integer!(u8, reduction),
        Kind::Unsigned(2) => integer!(u16, reduction),
        Kind::Unsigned(4) => integer!(u32, reduction),
        Kind::Unsigned(8) => integer!(u64, reduction),
        Kind::Logical(1) => logical!(i8, reduction),
        Kind::Logical(2) => logical!(i16, reduction),
        Kind::Logical(4) => logical!(i32, reduction),
        Kind::Logical(8) => logical!(i64, reduction),
        Kind::Logical(16) => logical!(i128, reduction),
        Kind::Float(Float::Half) => float!(f16, reduction),
        Kind::Float(Float::Single) => float!(f32, reduction),
        Kind::Float(Float::Double) => float!(f64, reduction),
        Kind::Complex(Float::Half) => complex!(f16, reduction),
        Kind::Complex(Float::Single) => complex!(f32, reduction),
        Kind::Complex(Float::Double) => complex!(f64, reduction),
        Kind::Float(format) => wide::real(format, reduction),
        Kind::Complex(format) => wide::complex(format, reduction),
        _ => None,
    }
}
