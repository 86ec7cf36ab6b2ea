//! `MPI_Status` of MPICH's ABI.
//!
//! ```text
//! 0 count_lo   4 count_hi_and_cancelled   8 MPI_SOURCE   12 MPI_TAG   16 MPI_ERROR
//! ```
//! Bit 0 of `count_hi_and_cancelled` says whether the operation was cancelled; the other bits are the high half of the
//! byte count.

use crate::standard::their_value as theirs;

/// The status of the program.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct TheirStatus {
    count_low: i32,
    count_high_and_cancelled: i32,
    pub(crate) source: i32,
    pub(crate) tag: i32,
    pub(crate) error: i32,
}

const _: () = assert!(size_of::<TheirStatus>() == 4 * theirs::MPI_F_STATUS_SIZE as usize);

impl TheirStatus {
    /// Returns the halves of the byte count, and 1 if the operation was cancelled.
    pub(crate) fn count(&self) -> (i32, i32, i32) {
        (self.count_low, self.count_high_and_cancelled >> 1, self.count_high_and_cancelled & 1)
    }

    /// Sets what [`TheirStatus::count`] returns.
    #[inline]
    pub(crate) fn set_count(&mut self, low: i32, high: i32, cancelled: i32) {
        self.count_low = low;
        self.count_high_and_cancelled = high << 1 | cancelled & 1;
    }
}
