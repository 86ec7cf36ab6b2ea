//! The external32 representation: big-endian, IEEE, the same everywhere (MPI-5 sections 5.3 and 15.5.2).
//!
//! Contract
//! - Each basic value takes the bytes that the table of section 15.5.2 gives it; `long` and wide characters are shorter
//!   there than here, and values that do not fit are an error (`MPI_ERR_CONVERSION`), not cut off.
//! - Truth values of C are 0 or 1 in the packed form; those of Fortran keep their representation.
//! - `long double` becomes IEEE binary128. On x86-64 that is exact on the way out and rounds to nearest, ties to even,
//!   on the way in.

use std::sync::Arc;

use super::Datatype;
use super::named::{Basic, Float, Kind};
use super::shape::Shape;
use super::transfer::room;
use crate::error::Result;
use crate::fail;

/// Largest native or external size of one part of a value.
const WIDEST: usize = 16;

/// `count` values of a basic type, `stride` bytes apart.
struct Values {
    basic: &'static Basic,
    at: *mut u8,
    count: i64,
    stride: i64,
}

/// Elements of a type whose values are being shown, and how far that has come.
struct Elements<'a> {
    datatype: &'a Datatype,
    base: *mut u8,
    count: i64,
    element: i64,
    block: usize,
}

impl Datatype {
    /// `MPI_Pack_external_size` of `count` elements.
    pub fn external_size(&self, count: i64) -> Result<i64> {
        let size = self.measure.external as i128 * count as i128;
        match i64::try_from(size) {
            Ok(size) => Ok(size),
            Err(_) => fail!(MPI_ERR_COUNT, "{count} elements of {} bytes do not fit in 64 bits", self.size()),
        }
    }

    /// `MPI_Pack_external`, as [`Datatype::pack_elements`].
    ///
    /// # Safety
    /// The memory of the elements must be readable.
    pub unsafe fn pack_external(
        self: &Arc<Self>,
        base: *const u8,
        count: i64,
        packed: &mut [u8],
        position: &mut i64,
    ) -> Result<()> {
        let range = room(*position, self.external_size(count)?, packed.len(), "the pack buffer")?;
        let end = range.end as i64;
        let mut rest = &mut packed[range];
        self.for_each_value(base.cast_mut(), count, &mut |values| {
            for i in 0..values.count {
                let (to, behind) = std::mem::take(&mut rest).split_at_mut(values.basic.external_size);
                // SAFETY: the type map of the element leads to this value, which the caller promised to be readable.
                let from = unsafe {
                    std::slice::from_raw_parts(
                        values.at.wrapping_offset((i * values.stride) as isize),
                        values.basic.kind.size(),
                    )
                };
                encode(values.basic, from, to)?;
                rest = behind;
            }
            Ok(())
        })?;
        *position = end;
        Ok(())
    }

    /// `MPI_Unpack_external`, as [`Datatype::unpack_elements`].
    ///
    /// # Safety
    /// The memory of the elements must be writable.
    pub unsafe fn unpack_external(
        self: &Arc<Self>,
        packed: &[u8],
        position: &mut i64,
        base: *mut u8,
        count: i64,
    ) -> Result<()> {
        let range = room(*position, self.external_size(count)?, packed.len(), "the packed data")?;
        let end = range.end as i64;
        let mut rest = &packed[range];
        self.for_each_value(base, count, &mut |values| {
            for i in 0..values.count {
                let (from, behind) = rest.split_at(values.basic.external_size);
                // SAFETY: the type map of the element leads to this value, which the caller promised to be writable;
                // `packed` is elsewhere.
                let to = unsafe {
                    std::slice::from_raw_parts_mut(
                        values.at.wrapping_offset((i * values.stride) as isize),
                        values.basic.kind.size(),
                    )
                };
                decode(values.basic, from, to)?;
                rest = behind;
            }
            Ok(())
        })?;
        *position = end;
        Ok(())
    }

    /// Shows the basic values of `count` elements in type map order.
    fn for_each_value(&self, base: *mut u8, count: i64, visit: &mut dyn FnMut(Values) -> Result<()>) -> Result<()> {
        // Types may be nested deeper than the stack has room for.
        let mut open = vec![Elements { datatype: self, base, count, element: 0, block: 0 }];
        while let Some(last) = open.last_mut() {
            let Elements { datatype, base, count, .. } = *last;
            if last.element == count || datatype.size() == 0 {
                open.pop();
                continue;
            }
            let shape = datatype.maker.shape();
            if let Shape::Basic(basic) = shape {
                visit(Values { basic, at: base, count, stride: datatype.extent() })?;
                open.pop();
                continue;
            }
            let Some((displacement, length, old)) = shape.block(last.block) else {
                (last.element, last.block) = (last.element + 1, 0);
                continue;
            };
            last.block += 1;
            let at = last.element.wrapping_mul(datatype.extent()).wrapping_add(displacement);
            open.push(Elements {
                datatype: old,
                base: base.wrapping_offset(at as isize),
                count: length,
                element: 0,
                block: 0,
            });
        }
        Ok(())
    }
}

/// Copies bytes in the opposite order (from or to big-endian).
fn turn(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
    if cfg!(target_endian = "little") {
        to.reverse();
    }
}

/// Copies a complex number part by part, other values whole.
fn by_parts(kind: Kind, from: &[u8], to: &mut [u8], part: impl Fn(&[u8], &mut [u8])) {
    let parts = if matches!(kind, Kind::Complex(_)) { 2 } else { 1 };
    let (from_size, to_size) = (from.len() / parts, to.len() / parts);
    from.chunks_exact(from_size).zip(to.chunks_exact_mut(to_size)).for_each(|(from, to)| part(from, to));
}

/// Native to external.
fn encode(basic: &Basic, from: &[u8], to: &mut [u8]) -> Result<()> {
    match basic.kind {
        Kind::Signed(_) | Kind::Unsigned(_) | Kind::Wide if from.len() > to.len() => {
            let mut wide = [0; WIDEST];
            let wide = &mut wide[..from.len()];
            turn(from, wide);
            let (cut, kept) = wide.split_at(from.len() - to.len());
            let signed = matches!(basic.kind, Kind::Signed(_));
            let negative = signed && cut[0] & 0x80 != 0;
            let extends = cut.iter().all(|byte| *byte == if negative { 0xff } else { 0 });
            if !extends || (signed && (kept[0] & 0x80 != 0) != negative) {
                fail!(
                    MPI_ERR_CONVERSION,
                    "a value of type {} does not fit in the {} bytes that external32 has for it",
                    basic.name,
                    to.len()
                );
            }
            to.copy_from_slice(kept);
        }
        Kind::Bool => to[0] = u8::from(from[0] != 0),
        Kind::Float(Float::Extended) | Kind::Complex(Float::Extended) => {
            by_parts(basic.kind, from, to, extended_to_quad)
        }
        _ => by_parts(basic.kind, from, to, turn),
    }
    Ok(())
}

/// External to native.
fn decode(basic: &Basic, from: &[u8], to: &mut [u8]) -> Result<()> {
    match basic.kind {
        Kind::Signed(_) | Kind::Unsigned(_) | Kind::Wide if from.len() < to.len() => {
            let mut wide = [0; WIDEST];
            let wide = &mut wide[..to.len()];
            let (fill, kept) = wide.split_at_mut(to.len() - from.len());
            kept.copy_from_slice(from);
            if matches!(basic.kind, Kind::Signed(_)) && from[0] & 0x80 != 0 {
                fill.fill(0xff);
            }
            turn(wide, to);
        }
        Kind::Bool => to[0] = u8::from(from[0] != 0),
        Kind::Float(Float::Extended) | Kind::Complex(Float::Extended) => {
            by_parts(basic.kind, from, to, quad_to_extended)
        }
        _ => by_parts(basic.kind, from, to, turn),
    }
    Ok(())
}

/// `long double` to big-endian binary128.
fn extended_to_quad(from: &[u8], to: &mut [u8]) {
    if !cfg!(target_arch = "x86_64") {
        return turn(from, to);
    }
    let mantissa = u64::from_le_bytes(from[..8].try_into().expect("eight bytes"));
    let head = u16::from_le_bytes([from[8], from[9]]);
    let (sign, mut exponent) = (head & 0x8000, head & 0x7fff);
    if exponent == 0 && mantissa >> 63 == 1 {
        exponent = 1;
    }
    // The leading bit is explicit in the x87 format and implied in binary128; both formats have the same exponents.
    let quad = ((sign | exponent) as u128) << 112 | ((mantissa << 1) as u128) << 48;
    to.copy_from_slice(&quad.to_be_bytes());
}

/// Big-endian binary128 to `long double`.
fn quad_to_extended(from: &[u8], to: &mut [u8]) {
    if !cfg!(target_arch = "x86_64") {
        return turn(from, to);
    }
    let quad = u128::from_be_bytes(from.try_into().expect("sixteen bytes"));
    let (sign, mut exponent) = ((quad >> 112) as u16 & 0x8000, (quad >> 112) as u16 & 0x7fff);
    let fraction = quad & ((1 << 112) - 1);
    let (kept, rest) = ((fraction >> 49) as u64, fraction & ((1 << 49) - 1));
    let mut mantissa = kept | u64::from(exponent != 0) << 63;
    if exponent == 0x7fff {
        // Infinity has no fraction; a NaN must keep one.
        if fraction != 0 {
            mantissa |= 1 << 62;
        }
    } else if rest > 1 << 48 || (rest == 1 << 48 && kept & 1 == 1) {
        match mantissa.checked_add(1) {
            Some(rounded) => mantissa = rounded,
            None => (mantissa, exponent) = (1 << 63, exponent + 1),
        }
        if exponent == 0 && mantissa >> 63 == 1 {
            exponent = 1;
        }
    }
    to.fill(0);
    to[..8].copy_from_slice(&mantissa.to_le_bytes());
    to[8..10].copy_from_slice(&(sign | exponent).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::*;

    fn external(handle: i32, native: &[u8]) -> Result<Vec<u8>> {
        let datatype = Datatype::named(handle);
        let mut packed = vec![0; datatype.external_size(1)? as usize];
        // SAFETY: `native` is one value.
        unsafe { datatype.pack_external(native.as_ptr(), 1, &mut packed, &mut 0)? };
        Ok(packed)
    }

    fn internal(handle: i32, packed: &[u8]) -> Vec<u8> {
        let datatype = Datatype::named(handle);
        let mut native = vec![0; datatype.size() as usize];
        // SAFETY: `native` has room for one value.
        unsafe { datatype.unpack_external(packed, &mut 0, native.as_mut_ptr(), 1).unwrap() };
        native
    }

    #[test]
    fn integers_are_big_endian_and_long_has_four_bytes() {
        assert_eq!(external(MPI_INT, &0x0102_0304i32.to_ne_bytes()).unwrap(), [1, 2, 3, 4]);
        assert_eq!(external(MPI_LONG, &(-2i64).to_ne_bytes()).unwrap(), [0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(internal(MPI_LONG, &[0xff, 0xff, 0xff, 0xfe]), (-2i64).to_ne_bytes());
        assert_eq!(internal(MPI_UNSIGNED_LONG, &[0xff, 0xff, 0xff, 0xfe]), 0xffff_fffeu64.to_ne_bytes());
        assert_eq!(external(MPI_WCHAR, &0x20acu32.to_ne_bytes()).unwrap(), [0x20, 0xac]);
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        for (handle, value, fits) in [
            (MPI_LONG, i32::MAX as i64, true),
            (MPI_LONG, i32::MAX as i64 + 1, false),
            (MPI_LONG, i32::MIN as i64, true),
            (MPI_LONG, i32::MIN as i64 - 1, false),
            (MPI_UNSIGNED_LONG, u32::MAX as i64, true),
            (MPI_UNSIGNED_LONG, u32::MAX as i64 + 1, false),
            (MPI_UNSIGNED_LONG, -1, false),
        ] {
            match external(handle, &value.to_ne_bytes()) {
                Ok(packed) => {
                    assert!(fits, "{value}");
                    assert_eq!(internal(handle, &packed), value.to_ne_bytes());
                }
                Err(error) => assert!(!fits && error.class == MPI_ERR_CONVERSION, "{value}"),
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn long_doubles_become_quads_and_come_back() {
        let extended = |sign_exponent: u16, mantissa: u64| {
            let mut bytes = [0u8; 16];
            bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
            bytes[8..10].copy_from_slice(&sign_exponent.to_le_bytes());
            bytes
        };
        let one = extended(0x3fff, 1 << 63);
        assert_eq!(external(MPI_LONG_DOUBLE, &one).unwrap()[..3], [0x3f, 0xff, 0]);
        for value in [
            one,
            extended(0xbfff, 0xc90f_daa2_2168_c235),
            extended(0, 0),
            extended(0, 12345),
            extended(0x7fff, 1 << 63),
            extended(0x7ffe, u64::MAX),
            extended(0x7fff, 0xc000_0000_0000_0000),
        ] {
            assert_eq!(internal(MPI_LONG_DOUBLE, &external(MPI_LONG_DOUBLE, &value).unwrap()), value);
        }
        // A quad just above 2 - 2^-64 rounds up to 2.
        let quad: u128 = 0x3fff << 112 | ((1u128 << 112) - 1);
        assert_eq!(internal(MPI_LONG_DOUBLE, &quad.to_be_bytes()), extended(0x4000, 1 << 63));
    }

    #[test]
    fn pairs_have_no_gap() {
        let mut native = [0u8; 16];
        native[..8].copy_from_slice(&1.5f64.to_ne_bytes());
        native[8..12].copy_from_slice(&7i32.to_ne_bytes());
        let packed = external(MPI_DOUBLE_INT, &native).unwrap();
        assert_eq!(packed, [1.5f64.to_be_bytes().as_slice(), &7i32.to_be_bytes()].concat());
    }
}
