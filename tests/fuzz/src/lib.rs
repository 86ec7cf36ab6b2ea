//! Fuzz targets: functions that take any bytes, have the crates do something with them, and panic if that does harm or
//! gives a wrong result.
//!
//! `tests/fuzz/run` runs them under libFuzzer, which looks for inputs that take new ways through the code;
//! `cargo test -p limosa-fuzz` runs the
//! inputs that are kept in `corpus/`.

pub mod datatypes;
pub mod jobs;
pub mod launcher;
pub mod messages;
pub mod packets;
pub mod protocols;
pub mod windows;

use arbitrary::Unstructured;

/// A number: often small, sometimes at the border of what some type holds.
fn number(u: &mut Unstructured<'_>) -> arbitrary::Result<i64> {
    const BORDERS: [i64; 12] = [
        i64::MIN,
        i64::MIN + 1,
        i64::MAX,
        i64::MAX - 1,
        i32::MIN as i64,
        i32::MAX as i64,
        u32::MAX as i64,
        1 << 32,
        1 << 46,
        1 << 62,
        -(1 << 62),
        i64::MAX / 3,
    ];
    Ok(match u.int_in_range(0..=7u8)? {
        0 => *u.choose(&BORDERS)?,
        1 => u.arbitrary::<i32>()? as i64,
        2 => u.arbitrary()?,
        _ => u.int_in_range(-8..=20)?,
    })
}
