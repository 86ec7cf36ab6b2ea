//! Counting what arrived: from bytes to elements and basic elements, and back (MPI-5 sections 3.2.5 and 5.1.11).
//!
//! A pair type has two basic elements, a complex number one.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Datatype;
use super::shape::Shape;

impl Datatype {
    /// Returns the predefined type that all data are of, as one-sided accumulation demands (MPI-5 section 12.3.4);
    /// `None` if there are several, or none.
    pub fn only_predefined(self: &Arc<Self>) -> Option<Arc<Datatype>> {
        if self.is_predefined() {
            return Some(self.clone());
        }
        let (mut open, mut seen, mut only) = (vec![self], FxHashSet::default(), None::<&Arc<Datatype>>);
        while let Some(datatype) = open.pop() {
            if !datatype.is_predefined() {
                open.extend(datatype.maker.shape().old_types().iter().filter(|old| seen.insert(Arc::as_ptr(old))));
            } else if only.is_some_and(|only| !Arc::ptr_eq(only, datatype)) {
                return None;
            } else {
                only = Some(datatype);
            }
        }
        only.cloned()
    }

    /// Whole elements in `bytes` bytes; `None` (`MPI_UNDEFINED`) if something is left over.
    pub fn count_of_bytes(&self, bytes: i64) -> Option<i64> {
        match self.size() {
            0 => (bytes == 0).then_some(0),
            size => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// Basic elements in `bytes` bytes; `None` (`MPI_UNDEFINED`) if they end within one.
    pub fn elements_of_bytes(&self, bytes: i64) -> Option<i64> {
        self.convert(bytes, Datatype::size, |datatype| datatype.measure.signature.elements)
    }

    /// Returns the bytes of the first `elements` basic elements, for `MPI_Status_set_elements`; `None` if they do not
    /// fit in 64 bits, or if the type has no elements but some are asked for.
    pub fn bytes_of_elements(&self, elements: i64) -> Option<i64> {
        self.convert(elements, |datatype| datatype.measure.signature.elements, Datatype::size)
    }

    /// Follows the type map for `left` units of which a datatype has `from`, and adds up the units of which it has
    /// `to`; `None` if it ends within a basic element, or if the sum does not fit in 64 bits.
    fn convert(&self, mut left: i64, from: fn(&Datatype) -> i64, to: fn(&Datatype) -> i64) -> Option<i64> {
        let (mut datatype, mut sum) = (self, 0i64);
        // In each turn, whole elements of `datatype` are counted; what is left lies within the next one.
        loop {
            if from(datatype) == 0 {
                return (left == 0).then_some(sum);
            }
            sum = sum.checked_add((left / from(datatype)).checked_mul(to(datatype))?)?;
            left %= from(datatype);
            if left == 0 {
                return Some(sum);
            }
            datatype = match datatype.maker.shape() {
                Shape::Basic(_) => return None,
                Shape::Same(old)
                | Shape::Bounded { old, .. }
                | Shape::Vector { old, .. }
                | Shape::Indexed { old, .. } => old,
                Shape::Struct { lengths, types, .. } => {
                    let mut parts = lengths.iter().zip(types);
                    loop {
                        let (length, old) = parts.next()?;
                        if left < length * from(old) {
                            break old;
                        }
                        left -= length * from(old);
                        sum = sum.checked_add(length * to(old))?;
                    }
                }
            };
        }
    }
}
