//! `MPI_Status` (MPI-5 sections 3.2.5 and 20.3.6): 32 bytes.
//!
//! ```text
//! 0 MPI_SOURCE   4 MPI_TAG   8 MPI_ERROR   12 low half of the byte count   16 high half   20 cancelled   24 28 unused
//! ```
//! `MPI_Get_count` and `MPI_Get_elements` are computed from the byte count; -1 means undefined.

use std::ffi::c_int;

use limosa_mpi::consts;

/// The C structure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// `MPI_SOURCE`
    pub(crate) source: c_int,
    /// `MPI_TAG`
    pub(crate) tag: c_int,
    /// `MPI_ERROR`
    pub(crate) error: c_int,
    internal: [c_int; 5],
}

const _: () = assert!(size_of::<Status>() == 32);

impl Status {
    /// Creates the status of a completed operation. Leaves `error` at `MPI_SUCCESS`.
    pub(crate) fn new(source: c_int, tag: c_int, bytes: i64) -> Status {
        let mut status = Status { source, tag, error: consts::MPI_SUCCESS, internal: [0; 5] };
        status.set_bytes(bytes);
        status
    }

    /// Creates the empty status (MPI-5 section 3.7.3): any source, any tag, no error, nothing received.
    pub(crate) fn empty() -> Status {
        Status::new(consts::MPI_ANY_SOURCE, consts::MPI_ANY_TAG, 0)
    }

    /// Overwrites all but the error field, which only calls with several statuses set.
    pub(crate) fn set(&mut self, source: c_int, tag: c_int, bytes: i64) {
        let error = self.error;
        *self = Status { error, ..Status::new(source, tag, bytes) };
    }

    /// Returns the bytes received.
    pub(crate) fn bytes(&self) -> i64 {
        (self.internal[0] as u32 as i64) | (self.internal[1] as i64) << 32
    }

    /// Sets the bytes received.
    pub(crate) fn set_bytes(&mut self, bytes: i64) {
        self.internal[0] = bytes as c_int;
        self.internal[1] = (bytes >> 32) as c_int;
    }

    /// Returns whether the operation was cancelled.
    pub(crate) fn cancelled(&self) -> bool {
        self.internal[2] != 0
    }

    /// Says whether the operation was cancelled.
    pub(crate) fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] = cancelled as c_int;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_count_survives() {
        for bytes in [0, 1, -1, 3 << 30, (5 << 32) + 7, i64::MAX] {
            assert_eq!(Status::new(0, 0, bytes).bytes(), bytes);
        }
    }

    #[test]
    fn setting_the_status_keeps_the_error_field() {
        let mut status = Status::new(-1, -2, 0);
        status.error = 15;
        status.set_cancelled(true);
        status.set(1, 2, 3);
        assert_eq!((status.source, status.tag, status.error, status.bytes(), status.cancelled()), (1, 2, 15, 3, false));
    }
}
