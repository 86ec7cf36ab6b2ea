//! `MPI_Status` of Open MPI's ABI.
//!
//! ```text
//! 0 MPI_SOURCE   4 MPI_TAG   8 MPI_ERROR   12 _cancelled   16 _ucount
//! ```

use crate::standard::their_value as theirs;

/// The status of the program.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct TheirStatus {
    pub(crate) source: i32,
    pub(crate) tag: i32,
    pub(crate) error: i32,
    cancelled: i32,
    bytes: usize,
}

const _: () = assert!(size_of::<TheirStatus>() == 4 * theirs::MPI_F_STATUS_SIZE as usize);

impl TheirStatus {
    /// Returns the halves of the byte count, and 1 if the operation was cancelled.
    pub(crate) fn count(&self) -> (i32, i32, i32) {
        (self.bytes as i32, (self.bytes >> 32) as i32, i32::from(self.cancelled != 0))
    }

    /// Sets what [`TheirStatus::count`] returns.
    #[inline]
    pub(crate) fn set_count(&mut self, low: i32, high: i32, cancelled: i32) {
        self.cancelled = cancelled;
        self.bytes = low as u32 as usize | (high as usize) << 32;
    }
}
