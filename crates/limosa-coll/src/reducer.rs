//! Combination of contiguous elements.

use std::sync::Arc;

use super::buffer::Buffer;
use super::schedule::loose_elements;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::op::{Kernel, Op};

/// Operation and datatype of a reduction, for packed elements in contiguous blocks.
pub(crate) struct Reducer<'a> {
    op: &'a Arc<Op>,
    datatype: &'a Arc<Datatype>,
    /// The kernel of the operation, if it is one of the standard's.
    kernel: Option<Kernel>,
    /// Offset of a buffer of such elements in a packed block, if elements are packed in memory.
    place: Option<isize>,
    /// This rank's operand, if it is contiguous and no result is written there.
    pub(crate) own: Option<*const u8>,
}

impl<'a> Reducer<'a> {
    /// Makes a reducer for operands of this layout. `in_place`: the result replaces this rank's operand.
    pub(crate) fn new(op: &'a Arc<Op>, operand: &'a Buffer, in_place: bool) -> Reducer<'a> {
        let datatype = &operand.datatype;
        // If two elements are contiguous, any number is.
        let place = datatype.contiguous_at(2);
        let own = place.filter(|_| !in_place).map(|place| operand.base.wrapping_offset(place).cast_const());
        Reducer { op, datatype, kernel: op.kernel(datatype), place, own }
    }

    /// Returns the reducer for the operation that the leader has named, if there is one and it is defined for the
    /// elements.
    pub(crate) fn led_by(&self, op: Option<&'a Arc<Op>>) -> Reducer<'a> {
        let op = op.filter(|op| op.check(self.datatype).is_ok()).unwrap_or(self.op);
        Reducer { op, kernel: op.kernel(self.datatype), ..*self }
    }

    /// Returns the bytes of an element.
    pub(crate) fn element(&self) -> usize {
        self.datatype.size() as usize
    }

    /// Computes `into = from op into` for so many bytes of elements.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`, and those of the operation.
    ///
    /// # Safety
    /// Both must be blocks of this many bytes, whole elements; no other thread uses `into`.
    pub(crate) unsafe fn combine(&self, from: *const u8, into: *mut u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let count = bytes / self.element();
        if let (Some(kernel), Some(0)) = (self.kernel, self.place) {
            // SAFETY: the elements lie in the blocks as they lie in buffers; the rest is the caller's promise.
            unsafe { kernel(from, into, count) };
            return Ok(());
        }
        if let Some(place) = self.place {
            // SAFETY: the elements lie in the blocks as in buffers that begin `place` before them; the rest is the
            // caller's promise.
            return unsafe {
                self.op.reduce_local(from.wrapping_offset(-place), into.wrapping_offset(-place), count, self.datatype)
            };
        }
        let (_lower, left) = loose_elements(count, self.datatype)?;
        let (_upper, right) = loose_elements(count, self.datatype)?;
        // SAFETY: blocks of this many bytes, by the caller's promise; the elements have memory of their own.
        unsafe {
            left.region().write(0, std::slice::from_raw_parts(from, bytes));
            right.region().write(0, std::slice::from_raw_parts(into, bytes));
            self.op.reduce_local(left.base, right.base, count, self.datatype)?;
            right.region().read(0, std::slice::from_raw_parts_mut(into, bytes));
        }
        Ok(())
    }
}
