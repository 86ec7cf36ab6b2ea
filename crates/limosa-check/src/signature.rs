//! Of which basic types a datatype consists, as a number that ranks can compare.
//!
//! As the checks of Limosa do, this lets pass what programs rely on: integers of the same size and signedness, types of
//! one byte, a complex number and two real ones, and `MPI_BYTE` and `MPI_PACKED` with anything. Datatypes that are not
//! understood, or have more than [`UNITS`] basic types before they repeat, go with anything, too.

use std::collections::HashMap;

use crate::mpi;
use crate::names::DATATYPES;

/// Basic types of an element that are looked at.
const UNITS: usize = 256;
/// Numbers below are classes of basic types.
const CLASSES: u64 = 256;
/// The class of all types of one byte.
const ONE_BYTE: u64 = 1;
const SIGNED: u64 = 64;
const UNSIGNED: u64 = 128;
const FLOAT: u64 = 192;

const NAMED: i32 = 101;
const STRUCT: i32 = 110;
/// Combiners of Fortran's and C's types by precision and value: not understood.
const OTHERS: [i32; 4] = [113, 114, 115, 117];

/// A sequence of basic types that repeats: the class of the only one, or a digest; 0 goes with anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Signature(pub u64);

impl Signature {
    /// Whether two buffers certainly have different types, of which so many bytes are used.
    pub(crate) fn differs(self, bytes: u64, other: Signature, other_bytes: u64) -> bool {
        let is_known = self.0 != 0 && other.0 != 0 && bytes > 0 && other_bytes > 0;
        // Of sequences of several types, the beginnings may be the same.
        let comparable = bytes == other_bytes || (self.0 < CLASSES && other.0 < CLASSES);
        is_known && self != other && comparable
    }

    /// The type in words.
    pub(crate) fn name(self) -> String {
        match self.0 {
            0 => "something".into(),
            ONE_BYTE => "MPI_CHAR".into(),
            class if class < CLASSES => {
                // The names that programs use most come first.
                let usual = ["MPI_INT", "MPI_LONG", "MPI_UNSIGNED", "MPI_UNSIGNED_LONG", "MPI_FLOAT", "MPI_DOUBLE"];
                let all = usual.into_iter().chain(DATATYPES.iter().map(|(name, _)| *name));
                let found = all.into_iter().find(|name| {
                    let handle = DATATYPES.iter().find(|(other, _)| other == name).map_or(0, |(_, handle)| *handle);
                    basic(name, handle).is_some_and(|units| units[0] == class)
                });
                found.unwrap_or("another type").into()
            }
            _ => "a structure".into(),
        }
    }
}

/// Of datatypes that were asked for. A datatype's entry is forgotten when it is freed.
#[derive(Default)]
pub(crate) struct Signatures(HashMap<usize, (Signature, u64)>);

impl Signatures {
    /// The signature of a datatype, and the bytes of its elements.
    pub(crate) fn of(&mut self, datatype: usize) -> (Signature, u64) {
        *self.0.entry(datatype).or_insert_with(|| (find(datatype), mpi::size_of_type(datatype)))
    }

    pub(crate) fn forget(&mut self, datatype: usize) {
        self.0.remove(&datatype);
    }
}

/// The classes of a predefined datatype; none if it is none, or goes with anything.
fn basic(name: &str, handle: usize) -> Option<Vec<u64>> {
    let size = mpi::size_of_type(handle);
    let of = |kind: u64, size: u64| if size == 1 { ONE_BYTE } else { kind + size };
    let pair = |kind: u64| Some(vec![of(kind, size.checked_sub(4)?), of(SIGNED, 4)]);
    let name = name.strip_prefix("MPI_")?;
    match name {
        "DATATYPE_NULL" | "BYTE" | "PACKED" | "WCHAR" => None,
        _ if size == 0 => None,
        "2INT" | "2INTEGER" => Some(vec![of(SIGNED, size / 2)]),
        "2REAL" | "2DOUBLE_PRECISION" => Some(vec![of(FLOAT, size / 2)]),
        // What gaps these have is left open; their sizes have none.
        "FLOAT_INT" | "DOUBLE_INT" | "LONG_DOUBLE_INT" => pair(FLOAT),
        "SHORT_INT" | "LONG_INT" => pair(SIGNED),
        _ if name.contains("COMPLEX") => Some(vec![of(FLOAT, size / 2)]),
        _ if ["FLOAT", "DOUBLE", "REAL"].iter().any(|word| name.contains(word)) => Some(vec![of(FLOAT, size)]),
        _ if name.starts_with('U') => Some(vec![of(UNSIGNED, size)]),
        _ => Some(vec![of(SIGNED, size)]),
    }
}

/// How a datatype was made: the combiner, its integers and datatypes.
struct Made {
    combiner: i32,
    integers: Vec<i32>,
    types: Vec<usize>,
}

impl Drop for Made {
    fn drop(&mut self) {
        for datatype in self.types.iter_mut().filter(|datatype| **datatype >= limosa_interpose::next::PREDEFINED) {
            // SAFETY: MPI_Type_get_contents has made a reference, which is not used any more.
            unsafe { mpi::type_free(datatype) };
        }
    }
}

fn made(datatype: usize) -> Option<Made> {
    let (mut integers, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
    // SAFETY: the datatype is one that the program has passed; the numbers are ours.
    let code = unsafe { mpi::type_get_envelope(datatype, &mut integers, &mut addresses, &mut types, &mut combiner) };
    if code != mpi::SUCCESS || combiner == NAMED || OTHERS.contains(&combiner) {
        return None;
    }
    let room = |n: i32| usize::try_from(n).unwrap_or(0);
    let mut made = Made { combiner, integers: vec![0; room(integers)], types: vec![0; room(types)] };
    let mut places = vec![0i64; room(addresses)];
    let (i, a, d) = (made.integers.as_mut_ptr(), places.as_mut_ptr(), made.types.as_mut_ptr());
    // SAFETY: the arrays are as long as the library has said.
    let code = unsafe { mpi::type_get_contents(datatype, integers, addresses, types, i, a, d) };
    (code == mpi::SUCCESS).then_some(made)
}

fn find(datatype: usize) -> Signature {
    units(datatype, true).map_or(Signature(0), |units| digest(&units))
}

/// The basic types of a datatype, or (with `once`) of what it repeats; none if that is not known, or too many.
fn units(datatype: usize, once: bool) -> Option<Vec<u64>> {
    if datatype < limosa_interpose::next::PREDEFINED {
        let (name, handle) = DATATYPES.iter().find(|(_, handle)| *handle == datatype)?;
        return basic(name, *handle);
    }
    let made = made(datatype)?;
    if made.combiner == STRUCT {
        let mut all = Vec::new();
        for (block, of) in made.integers.get(1..)?.iter().zip(&made.types).filter(|(block, _)| **block > 0) {
            repeat(&units(*of, false)?, *block as u64, &mut all)?;
        }
        return Some(all).filter(|all| !all.is_empty());
    }
    // Everything else repeats one datatype, somewhere.
    let of = *made.types.first()?;
    let inner = units(of, once)?;
    if once {
        return Some(inner);
    }
    let mut all = Vec::new();
    repeat(&inner, mpi::size_of_type(datatype).checked_div(mpi::size_of_type(of))?, &mut all)?;
    Some(all)
}

fn repeat(units: &[u64], times: u64, all: &mut Vec<u64>) -> Option<()> {
    if (units.len() as u64).saturating_mul(times) + all.len() as u64 > UNITS as u64 {
        return None;
    }
    (0..times).for_each(|_| all.extend(units));
    Some(())
}

/// The same number for all descriptions of the same sequence without end.
fn digest(units: &[u64]) -> Signature {
    let is_period = |length: &usize| {
        units.len().is_multiple_of(*length) && units.iter().zip(&units[*length..]).all(|(a, b)| a == b)
    };
    let length = (1..=units.len()).find(is_period).unwrap_or(units.len());
    match &units[..length] {
        [] => Signature(0),
        [class] => Signature(*class),
        several => {
            let mix = |digest: u64, unit: &u64| (digest.rotate_left(7) ^ unit).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            Signature(several.iter().fold(length as u64, mix) | 1 << 63)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_of_the_same_sequence_are_the_same() {
        assert_eq!(digest(&[68, 200]), digest(&[68, 200, 68, 200]));
        assert_eq!(digest(&[68, 68, 68]), Signature(68));
        assert_ne!(digest(&[68, 200]), digest(&[200, 68]));
        assert_ne!(digest(&[68, 200, 68]), digest(&[68, 200]));
    }

    #[test]
    fn only_what_is_certain_differs() {
        let (int, double, pair) = (Signature(68), Signature(200), digest(&[68, 200]));
        assert!(int.differs(4, double, 80));
        assert!(pair.differs(12, int, 12));
        assert!(!pair.differs(12, int, 4), "the beginnings may be the same");
        assert!(!int.differs(4, Signature(0), 4), "MPI_BYTE goes with anything");
        assert!(!int.differs(0, double, 8), "an empty message has no types");
    }
}
