//! Type signatures: the sequence of basic types of a message, as a number (MPI-5 section 3.3.1).
//!
//! The sequence is read as a polynomial over a prime field, so that the signature of a concatenation, and of billions
//! of repetitions, follows from the signatures of the parts. Types that are represented alike (`MPI_INT`,
//! `MPI_INT32_T`, `MPI_INTEGER`) count as the same; two different sequences have the same signature with a probability
//! of about 2^-61 per element.

use std::sync::Arc;

use super::Datatype;
use super::named::Kind;

const PRIME: u64 = (1 << 61) - 1;
/// The point at which polynomials are evaluated.
const POINT: u64 = 0x0123_4567_89ab_cdef % PRIME;

/// The signature of a sequence of basic types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Number of basic types.
    pub elements: i64,
    hash: u64,
    /// The sequence has `MPI_BYTE` or `MPI_PACKED`, which match differently than other types.
    pub untyped: bool,
}

fn times(a: u64, b: u64) -> u64 {
    (a as u128 * b as u128 % PRIME as u128) as u64
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}

impl Signature {
    /// One value.
    pub fn basic(kind: Kind) -> Signature {
        // Spread the small codes over the field.
        let hash = times(kind.code().wrapping_mul(0x9e37_79b9_7f4a_7c15) % PRIME, POINT);
        Signature { elements: 1, hash, untyped: matches!(kind, Kind::Byte | Kind::Packed) }
    }

    /// This sequence followed by another.
    pub fn then(&self, next: &Signature) -> Signature {
        let hash = (times(self.hash, power(POINT, next.elements as u64)) + next.hash) % PRIME;
        Signature { elements: self.elements.wrapping_add(next.elements), hash, untyped: self.untyped || next.untyped }
    }

    /// This sequence `count` times.
    pub fn repeated(&self, mut count: u64) -> Signature {
        let (mut result, mut square) = (Signature::default(), *self);
        while count > 0 {
            if count & 1 == 1 {
                result = result.then(&square);
            }
            square = square.then(&square);
            count >>= 1;
        }
        result
    }

    /// Returns the signature as one word, for comparison between processes.
    pub fn word(&self) -> u64 {
        self.hash
    }
}

impl Datatype {
    /// Returns the signature of `count` elements.
    pub fn signature(&self, count: u64) -> Signature {
        self.measure.signature.repeated(count)
    }
}

/// Whether a message of `sent.1` elements of `sent.0` may be received as `received.1` elements of `received.0`, judged
/// by their signatures: they are the same, or one side is bytes or packed data of the same length.
pub fn matches(sent: (&Arc<Datatype>, u64), received: (&Arc<Datatype>, u64)) -> bool {
    let (a, b) = (sent.0.signature(sent.1), received.0.signature(received.1));
    if a.untyped || b.untyped {
        return sent.0.size() as i128 * sent.1 as i128 == received.0.size() as i128 * received.1 as i128;
    }
    a == b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::*;

    #[test]
    fn order_and_type_matter_but_structure_does_not() {
        let (int, double) = (Datatype::named(MPI_INT), Datatype::named(MPI_DOUBLE));
        let pair = Datatype::structure(&[1, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap();
        let swapped = Datatype::structure(&[1, 1], &[8, 0], &[double.clone(), int.clone()]).unwrap();
        assert!(!matches((&pair, 1), (&swapped, 1)));
        assert!(!matches((&pair, 2), (&pair, 1)));
        let three = Datatype::contiguous(3, &pair).unwrap();
        assert!(matches((&three, 2), (&pair, 6)));
        let vector = Datatype::vector(5, 2, 7, &int).unwrap();
        assert!(matches((&vector, 1), (&int, 10)));
        assert!(matches((&Datatype::named(MPI_INTEGER), 4), (&int, 4)));
        assert!(!matches((&int, 2), (&double, 1)));
        assert!(matches((&Datatype::named(MPI_BYTE), 8), (&double, 1)));
    }

    #[test]
    fn billions_of_elements_cost_nothing() {
        let int = Datatype::named(MPI_INT);
        let many = Datatype::contiguous(1 << 40, &int).unwrap();
        assert_eq!(many.signature(2), int.signature(1 << 41));
    }
}
