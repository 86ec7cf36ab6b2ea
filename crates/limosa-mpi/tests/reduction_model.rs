//! Predefined reduction operations against scalar models, for every operation and every named type (MPI-5 sections
//! 6.9.2 and 6.9.4).

use std::fmt::Debug;
use std::sync::Arc;

use half::f16;
use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::op::Op;
use proptest::prelude::*;

const ARITHMETIC: [i32; 4] = [MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX];
const BITWISE: [i32; 3] = [MPI_BAND, MPI_BOR, MPI_BXOR];
const LOGICAL: [i32; 3] = [MPI_LAND, MPI_LOR, MPI_LXOR];
const LOCATION: [i32; 2] = [MPI_MINLOC, MPI_MAXLOC];

const SIGNED: [(i32, u32); 15] = [
    (MPI_SIGNED_CHAR, 1),
    (MPI_SHORT, 2),
    (MPI_INT, 4),
    (MPI_LONG, 8),
    (MPI_LONG_LONG, 8),
    (MPI_INT8_T, 1),
    (MPI_INT16_T, 2),
    (MPI_INT32_T, 4),
    (MPI_INT64_T, 8),
    (MPI_AINT, 8),
    (MPI_COUNT, 8),
    (MPI_OFFSET, 8),
    (MPI_INTEGER2, 2),
    (MPI_INTEGER, 4),
    (MPI_INTEGER16, 16),
];
const UNSIGNED: [(i32, u32); 9] = [
    (MPI_UNSIGNED_CHAR, 1),
    (MPI_UNSIGNED_SHORT, 2),
    (MPI_UNSIGNED, 4),
    (MPI_UNSIGNED_LONG, 8),
    (MPI_UNSIGNED_LONG_LONG, 8),
    (MPI_UINT8_T, 1),
    (MPI_UINT16_T, 2),
    (MPI_UINT32_T, 4),
    (MPI_UINT64_T, 8),
];
const FORTRAN_INTEGERS: [i32; 6] = [MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16];
const FLOATS: [i32; 8] =
    [MPI_FLOAT, MPI_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_LONG_DOUBLE, MPI_REAL2, MPI_REAL4, MPI_REAL8];
const COMPLEXES: [i32; 12] = [
    MPI_C_FLOAT_COMPLEX,
    MPI_C_DOUBLE_COMPLEX,
    MPI_C_LONG_DOUBLE_COMPLEX,
    MPI_CXX_FLOAT_COMPLEX,
    MPI_CXX_DOUBLE_COMPLEX,
    MPI_CXX_LONG_DOUBLE_COMPLEX,
    MPI_COMPLEX,
    MPI_DOUBLE_COMPLEX,
    MPI_COMPLEX4,
    MPI_COMPLEX8,
    MPI_COMPLEX16,
    MPI_COMPLEX32,
];
const LOGICALS: [i32; 8] =
    [MPI_LOGICAL, MPI_C_BOOL, MPI_CXX_BOOL, MPI_LOGICAL1, MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8, MPI_LOGICAL16];
const PAIRS: [i32; 9] = [
    MPI_FLOAT_INT,
    MPI_DOUBLE_INT,
    MPI_LONG_INT,
    MPI_2INT,
    MPI_SHORT_INT,
    MPI_LONG_DOUBLE_INT,
    MPI_2REAL,
    MPI_2DOUBLE_PRECISION,
    MPI_2INTEGER,
];
const NONE: [i32; 3] = [MPI_CHARACTER, MPI_WCHAR, MPI_PACKED];

fn op(handle: i32) -> Arc<Op> {
    Op::builtin(handle).unwrap()
}

/// Reduces buffers of raw bytes at an odd address.
fn reduce(handle: i32, datatype: &Arc<Datatype>, input: &[u8], inout: &[u8]) -> Vec<u8> {
    let shifted = |bytes: &[u8]| [&[0x5a], bytes].concat();
    let (input, mut inout) = (shifted(input), shifted(inout));
    let count = (input.len() - 1) / datatype.extent() as usize;
    // SAFETY: two buffers of `count` elements each.
    unsafe { op(handle).reduce_local(input.as_ptr().add(1), inout.as_mut_ptr().add(1), count, datatype).unwrap() };
    inout[1..].to_vec()
}

#[test]
fn each_operation_takes_the_types_of_its_table_and_no_others() {
    let c_integers = SIGNED.iter().chain(&UNSIGNED).map(|t| t.0).filter(|t| !FORTRAN_INTEGERS.contains(t));
    let mut table: Vec<(i32, Vec<i32>)> =
        c_integers.map(|t| (t, [&ARITHMETIC[..], &BITWISE, &LOGICAL].concat())).collect();
    table.extend(FORTRAN_INTEGERS.map(|t| (t, [&ARITHMETIC[..], &BITWISE].concat())));
    table.extend(FLOATS.map(|t| (t, ARITHMETIC.to_vec())));
    table.push((MPI_REAL16, ARITHMETIC.to_vec()));
    table.extend(COMPLEXES.map(|t| (t, vec![MPI_SUM, MPI_PROD])));
    table.extend(LOGICALS.map(|t| (t, LOGICAL.to_vec())));
    table.push((MPI_BYTE, BITWISE.to_vec()));
    table.extend(PAIRS.map(|t| (t, LOCATION.to_vec())));
    // Not in the standard's table, but in other libraries.
    table.push((MPI_CHAR, [&ARITHMETIC[..], &BITWISE, &LOGICAL].concat()));
    table.extend(NONE.map(|t| (t, vec![])));
    let all: Vec<i32> = (0x200..0x300).filter(|handle| Datatype::builtin(*handle).is_some()).collect();
    assert_eq!(all.len(), table.len(), "the table has every named type");
    for (handle, allowed) in table {
        let datatype = Datatype::named(handle);
        for reduction in [&ARITHMETIC[..], &BITWISE, &LOGICAL, &LOCATION].concat() {
            let checked = op(reduction).check(&datatype);
            assert_eq!(
                checked.is_ok(),
                allowed.contains(&reduction),
                "{} of {}",
                op(reduction).name(),
                datatype.name()
            );
            if let Err(error) = checked {
                assert_eq!(error.class, MPI_ERR_OP);
                assert!(
                    error.detail.contains(op(reduction).name()) && error.detail.contains(&datatype.name()),
                    "{error}"
                );
            }
        }
        for reduction in [MPI_REPLACE, MPI_NO_OP] {
            op(reduction).check_accumulate(&datatype).unwrap();
            let refused = op(reduction).check(&datatype).unwrap_err();
            assert_eq!(refused.class, MPI_ERR_OP);
            assert!(refused.detail.contains(op(reduction).name()), "{refused}");
        }
    }
}

#[test]
fn derived_types_are_for_user_operations() {
    let derived = Datatype::contiguous(2, &Datatype::named(MPI_INT)).unwrap();
    assert_eq!(op(MPI_SUM).check(&derived).unwrap_err().class, MPI_ERR_OP);
    let user = Op::user(
        Arc::new(|input, inout, count, datatype| {
            assert_eq!(datatype.size(), 8);
            for i in 0..count * 2 {
                // SAFETY: the test passes two arrays of integers.
                unsafe { *inout.cast::<i32>().add(i) -= *input.cast::<i32>().add(i) };
            }
        }),
        false,
    );
    let (input, mut inout) = ([1, 2, 3, 4], [10, 20, 30, 40]);
    // SAFETY: two elements of eight bytes on each side.
    unsafe { user.reduce_local(input.as_ptr().cast(), inout.as_mut_ptr().cast(), 2, &derived).unwrap() };
    assert_eq!(inout, [9, 18, 27, 36]);
    assert!(
        !user.is_commutative()
            && !user.is_predefined()
            && op(MPI_SUM).is_commutative()
            && !op(MPI_REPLACE).is_commutative()
    );
}

#[test]
fn parameterised_fortran_types_are_predefined_too() {
    let real = Datatype::f90_real(15, 307).unwrap();
    assert_eq!(reduce(MPI_SUM, &real, &1.5f64.to_ne_bytes(), &2.0f64.to_ne_bytes()), 3.5f64.to_ne_bytes());
}

/// Returns the scalar model of an integer operation, on values that were widened to 128 bits.
fn integer_model(handle: i32, a: i128, b: i128) -> i128 {
    match handle {
        MPI_SUM => a.wrapping_add(b),
        MPI_PROD => a.wrapping_mul(b),
        MPI_MIN => a.min(b),
        MPI_MAX => a.max(b),
        MPI_BAND => a & b,
        MPI_BOR => a | b,
        MPI_BXOR => a ^ b,
        MPI_LAND => (a != 0 && b != 0).into(),
        MPI_LOR => (a != 0 || b != 0).into(),
        MPI_LXOR => ((a != 0) != (b != 0)).into(),
        _ => unreachable!(),
    }
}

/// Reads an integer of `bytes` bytes.
fn widen(bytes: &[u8], signed: bool) -> i128 {
    let negative = signed && bytes[bytes.len() - 1] & 0x80 != 0;
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

/// Checks floating-point results, given how to make and read a value. Equal bits, or both NaN.
fn check_floats<T: Copy + Debug + PartialEq>(
    handle: i32,
    a: &[T],
    b: &[T],
    bytes: fn(T) -> Vec<u8>,
    model: impl Fn(i32, T, T) -> T,
) {
    for reduction in ARITHMETIC {
        let flat = |values: &[T]| values.iter().flat_map(|v| bytes(*v)).collect::<Vec<u8>>();
        let got = reduce(reduction, &Datatype::named(handle), &flat(a), &flat(b));
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            let wanted = model(reduction, *a, *b);
            let size = bytes(wanted).len();
            #[allow(clippy::eq_op)] // NaN
            let is_nan = wanted != wanted;
            assert!(
                is_nan || got[i * size..(i + 1) * size] == bytes(wanted),
                "{reduction:#x} of {a:?} and {b:?}, type {handle:#x}"
            );
        }
    }
}

macro_rules! float_model {
    () => {
        |reduction, a, b| match reduction {
            MPI_SUM => a + b,
            MPI_PROD => a * b,
            MPI_MIN => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            _ => {
                if a > b {
                    a
                } else {
                    b
                }
            }
        }
    };
}

/// Returns a small integer as `long double` of this machine, or as binary128.
fn wide_bytes(value: i32, quad: bool) -> Vec<u8> {
    let magnitude = value.unsigned_abs() as u64;
    let sign = if value < 0 { 0x8000u16 } else { 0 };
    if magnitude == 0 {
        return vec![0; 16];
    }
    let shift = magnitude.leading_zeros();
    let (head, mantissa) = (sign | (16383 + 63 - shift as u16), magnitude << shift);
    if quad || !cfg!(target_arch = "x86_64") {
        return ((head as u128) << 112 | ((mantissa << 1) as u128) << 48).to_le_bytes().to_vec();
    }
    [&mantissa.to_le_bytes()[..], &head.to_le_bytes(), &[0; 6]].concat()
}

/// Drops the padding of x87 numbers, whose content is undefined.
fn significant(bytes: &[u8], quad: bool) -> Vec<u8> {
    let kept = if quad || !cfg!(target_arch = "x86_64") { 16 } else { 10 };
    bytes.chunks(16).flat_map(|number| number[..kept].to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn integer_operations_wrap_around_and_compare_by_sign(
        mut a in prop::collection::vec(any::<u8>(), 16 * 37),
        b in prop::collection::vec(any::<u8>(), 16 * 37),
    ) {
        a[..64].fill(0);
        for (types, signed) in [(&SIGNED[..], true), (&UNSIGNED[..], false)] {
            for (handle, size) in types {
                let datatype = Datatype::named(*handle);
                for reduction in [&ARITHMETIC[..], &BITWISE, &LOGICAL].concat() {
                    if op(reduction).check(&datatype).is_err() {
                        continue;
                    }
                    let got = reduce(reduction, &datatype, &a, &b);
                    let size = *size as usize;
                    let operands = a.chunks(size).zip(b.chunks(size));
                    for ((a, b), got) in operands.zip(got.chunks(size)) {
                        let wanted = integer_model(reduction, widen(a, signed), widen(b, signed)).to_le_bytes();
                        let name = op(reduction).name();
                        prop_assert_eq!(got, &wanted[..size], "{} of {}", name, datatype.name());
                    }
                }
            }
        }
    }

    #[test]
    fn floating_point_operations_are_those_of_the_language(
        a in prop::collection::vec(any::<f64>(), 1..70),
        b in prop::collection::vec(any::<f64>(), 70),
    ) {
        let b = &b[..a.len()];
        for handle in [MPI_DOUBLE, MPI_DOUBLE_PRECISION, MPI_REAL8] {
            check_floats(handle, &a, b, |v: f64| v.to_ne_bytes().to_vec(), float_model!());
        }
        let narrow = |values: &[f64]| values.iter().map(|v| *v as f32).collect::<Vec<f32>>();
        for handle in [MPI_FLOAT, MPI_REAL, MPI_REAL4] {
            check_floats(handle, &narrow(&a), &narrow(b), |v: f32| v.to_ne_bytes().to_vec(), float_model!());
        }
        let half = |values: &[f64]| values.iter().map(|v| f16::from_f64(v % 1000.0)).collect::<Vec<f16>>();
        check_floats(MPI_REAL2, &half(&a), &half(b), |v: f16| v.to_ne_bytes().to_vec(), float_model!());
    }

    #[test]
    fn complex_numbers_multiply_as_they_should(
        numbers in prop::collection::vec([1i32..100, -100..0, 1..100, -100..0], 1..20),
    ) {
        for handle in COMPLEXES {
            let datatype = Datatype::named(handle);
            let half = handle == MPI_COMPLEX4;
            let number = |v: i32| match datatype.size() {
                4 => f16::from_f32(v as f32).to_ne_bytes().to_vec(),
                8 => (v as f32).to_ne_bytes().to_vec(),
                16 => (v as f64).to_ne_bytes().to_vec(),
                _ => wide_bytes(v, handle == MPI_COMPLEX32),
            };
            let flat = |values: Vec<[i32; 2]>| values.iter().flatten().flat_map(|v| number(*v)).collect::<Vec<u8>>();
            // No factor is zero, so that no result is minus zero; products must be exact in the 11 bits of the halves.
            let narrow = |v: i32| if half { v.signum() * (v.abs() % 30 + 1) } else { v };
            let numbers: Vec<[i32; 4]> = numbers.iter().map(|n| n.map(narrow)).collect();
            let a = flat(numbers.iter().map(|n| [n[0], n[1]]).collect());
            let b = flat(numbers.iter().map(|n| [n[2], n[3]]).collect());
            let sums = flat(numbers.iter().map(|n| [n[0] + n[2], n[1] + n[3]]).collect());
            let product = |n: &[i32; 4]| [n[0] * n[2] - n[1] * n[3], n[0] * n[3] + n[1] * n[2]];
            let products = flat(numbers.iter().map(product).collect());
            for (reduction, wanted) in [(MPI_SUM, sums), (MPI_PROD, products)] {
                let got = reduce(reduction, &datatype, &a, &b);
                if datatype.size() == 32 {
                    let quad = handle == MPI_COMPLEX32;
                    prop_assert_eq!(significant(&got, quad), significant(&wanted, quad));
                } else {
                    prop_assert_eq!(got, wanted, "{} of {}", op(reduction).name(), datatype.name());
                }
            }
        }
    }

    #[test]
    fn wide_floats_are_exact_where_they_must_be(
        numbers in prop::collection::vec((-40000i32..40000, -40000i32..40000), 1..20),
    ) {
        for (handle, quad) in [(MPI_LONG_DOUBLE, false), (MPI_REAL16, true)] {
            let flat = |get: &dyn Fn(&(i32, i32)) -> i32| {
                numbers.iter().flat_map(|n| wide_bytes(get(n), quad)).collect::<Vec<u8>>()
            };
            let (a, b) = (flat(&|n| n.0), flat(&|n| n.1));
            for (reduction, wanted) in [
                (MPI_SUM, flat(&|n| n.0 + n.1)),
                (MPI_PROD, flat(&|n| n.0.wrapping_mul(n.1))),
                (MPI_MIN, flat(&|n| n.0.min(n.1))),
                (MPI_MAX, flat(&|n| n.0.max(n.1))),
            ] {
                let products_of_zero_have_signs = reduction == MPI_PROD && numbers.iter().any(|n| n.0 == 0 || n.1 == 0);
                if !products_of_zero_have_signs {
                    let got = reduce(reduction, &Datatype::named(handle), &a, &b);
                    prop_assert_eq!(significant(&got, quad), significant(&wanted, quad));
                }
            }
        }
    }

    #[test]
    fn logical_results_are_true_when_they_should_be(
        values in prop::collection::vec(
            (prop::sample::select(vec![0u8, 0, 1, 2, 255]), prop::sample::select(vec![0u8, 0, 1, 4])),
            1..50,
        ),
    ) {
        for handle in LOGICALS {
            let datatype = Datatype::named(handle);
            let size = datatype.size() as usize;
            let widened = |v: &u8| [vec![*v], vec![0; size - 1]].concat();
            let flat = |values: Vec<u8>| values.iter().flat_map(widened).collect::<Vec<u8>>();
            let (a, b) = (flat(values.iter().map(|v| v.0).collect()), flat(values.iter().map(|v| v.1).collect()));
            let and: fn(bool, bool) -> bool = |a, b| a && b;
            for (reduction, model) in [(MPI_LAND, and), (MPI_LOR, |a, b| a || b), (MPI_LXOR, |a, b| a != b)] {
                let got = reduce(reduction, &datatype, &a, &b);
                for (value, got) in values.iter().zip(got.chunks(size)) {
                    prop_assert_eq!(got.iter().any(|byte| *byte != 0), model(value.0 != 0, value.1 != 0));
                    if handle == MPI_C_BOOL {
                        prop_assert!(got[0] <= 1, "C knows only two truth values");
                    }
                }
            }
        }
    }

    #[test]
    fn the_least_pair_wins_and_gaps_are_left_alone(
        pairs in prop::collection::vec((-3i32..3, -3i32..3, -3i32..3, -3i32..3), 1..40),
    ) {
        for datatype in PAIRS.map(Datatype::named) {
            let (value, index) = datatype.as_pair().unwrap();
            let number = |basic: &limosa_mpi::datatype::named::Basic, v: i32| -> Vec<u8> {
                use limosa_mpi::datatype::named::{Float, Kind};
                match basic.kind {
                    Kind::Float(Float::Single) => (v as f32).to_ne_bytes().to_vec(),
                    Kind::Float(Float::Double) => (v as f64).to_ne_bytes().to_vec(),
                    Kind::Float(format) => wide_bytes(v, format == Float::Quad),
                    other => (v as i128).to_le_bytes()[..other.size()].to_vec(),
                }
            };
            let index_at = value.kind.size().next_multiple_of(index.kind.alignment());
            let pair = |v: i32, i: i32, gap: u8| {
                let mut bytes = vec![gap; datatype.extent() as usize];
                let (v, i) = (number(value, v), number(index, i));
                bytes[..v.len()].copy_from_slice(&v);
                bytes[index_at..index_at + i.len()].copy_from_slice(&i);
                bytes
            };
            let a: Vec<u8> = pairs.iter().flat_map(|p| pair(p.0, p.1, 0x11)).collect();
            let b: Vec<u8> = pairs.iter().flat_map(|p| pair(p.2, p.3, 0x22)).collect();
            for (reduction, sign) in [(MPI_MINLOC, 1), (MPI_MAXLOC, -1)] {
                let wanted: Vec<u8> = pairs.iter().flat_map(|p| {
                    let (v, i) = (sign * p.0, p.1).min((sign * p.2, p.3));
                    pair(sign * v, i, 0x22)
                }).collect();
                let got = reduce(reduction, &datatype, &a, &b);
                prop_assert_eq!(got, wanted, "{} of {:?}", op(reduction).name(), datatype);
            }
            prop_assert_eq!(&reduce(MPI_NO_OP, &datatype, &a, &b), &b);
            let replaced: Vec<u8> = pairs.iter().flat_map(|p| pair(p.0, p.1, 0x22)).collect();
            prop_assert_eq!(reduce(MPI_REPLACE, &datatype, &a, &b), replaced);
        }
    }
}
