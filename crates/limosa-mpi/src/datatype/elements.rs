//! Counting what arrived: from bytes to elements and basic elements, and back (MPI-5 sections 3.2.5 and 5.1.11).
//!
//! A pair type has two basic elements, a complex number one.

use super::Datatype;
use super::shape::Shape;

impl Datatype {
    /// Whole elements in `bytes` bytes; `None` (`MPI_UNDEFINED`) if something is left over.
    pub fn count_of_bytes(&self, bytes: i64) -> Option<i64> {
        match self.size() {
            0 => (bytes == 0).then_some(0),
            size => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// Basic elements in `bytes` bytes; `None` (`MPI_UNDEFINED`) if they end within one.
    pub fn elements_of_bytes(&self, bytes: i64) -> Option<i64> {
        if self.size() == 0 {
            return (bytes == 0).then_some(0);
        }
        let (whole, rest) = (bytes / self.size(), bytes % self.size());
        let within = if rest == 0 { 0 } else { self.elements_within(rest)? };
        whole.checked_mul(self.measure.signature.elements)?.checked_add(within)
    }

    /// As [`Datatype::elements_of_bytes`], for fewer bytes than one element has.
    fn elements_within(&self, bytes: i64) -> Option<i64> {
        match self.maker.shape() {
            Shape::Basic(_) => None,
            Shape::Same(old) | Shape::Bounded { old, .. } | Shape::Vector { old, .. } | Shape::Indexed { old, .. } => {
                old.elements_of_bytes(bytes)
            }
            Shape::Struct { lengths, types, .. } => {
                let (mut left, mut elements) = (bytes, 0);
                for (length, old) in lengths.iter().zip(types) {
                    let size = length * old.size();
                    if left < size {
                        return Some(elements + old.elements_of_bytes(left)?);
                    }
                    left -= size;
                    elements += length * old.measure.signature.elements;
                }
                Some(elements)
            }
        }
    }

    /// The bytes of the first `elements` basic elements, for `MPI_Status_set_elements`; `None` if they do not fit in 64 bits, or if the type
    /// has no elements but some are asked for.
    pub fn bytes_of_elements(&self, elements: i64) -> Option<i64> {
        let per_type = self.measure.signature.elements;
        if per_type == 0 {
            return (elements == 0).then_some(0);
        }
        let (whole, rest) = (elements / per_type, elements % per_type);
        let within = if rest == 0 { 0 } else { self.bytes_within(rest)? };
        whole.checked_mul(self.size())?.checked_add(within)
    }

    /// As [`Datatype::bytes_of_elements`], for fewer basic elements than one element has.
    fn bytes_within(&self, elements: i64) -> Option<i64> {
        match self.maker.shape() {
            Shape::Basic(_) => None,
            Shape::Same(old) | Shape::Bounded { old, .. } | Shape::Vector { old, .. } | Shape::Indexed { old, .. } => {
                old.bytes_of_elements(elements)
            }
            Shape::Struct { lengths, types, .. } => {
                let (mut left, mut bytes) = (elements, 0);
                for (length, old) in lengths.iter().zip(types) {
                    let here = length * old.measure.signature.elements;
                    if left < here {
                        return Some(bytes + old.bytes_of_elements(left)?);
                    }
                    left -= here;
                    bytes += length * old.size();
                }
                Some(bytes)
            }
        }
    }
}
