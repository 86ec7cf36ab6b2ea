//! `MPI_Status` of the standard ABI, converted from and to that of the program ([`TheirStatus`]).
//!
//! ```text
//! 0 MPI_SOURCE   4 MPI_TAG   8 MPI_ERROR   12 .. 32 of the library
//! ```
//! Where the library keeps the byte count and the mark of a cancelled operation is found out by a trial; if its layout
//! is not Limosa's, the standard's functions are called.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::convert::{
    Own, error_code_to_standard, error_code_to_theirs, rank_to_standard, rank_to_theirs, tag_to_standard, tag_to_theirs,
};
use crate::layout::TheirStatus;
use crate::standard::{abi, standard_value as standard, their_value as theirs};

/// The status of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Status {
    source: i32,
    tag: i32,
    error: i32,
    internal: [i32; 5],
}

const _: () = assert!(size_of::<Status>() == 4 * standard::MPI_F_STATUS_SIZE as usize);

/// Value of fields that the library has not written.
const UNTOUCHED: i32 = i32::MIN + 7;

/// How the library keeps the byte count: not yet known, as Limosa, or otherwise.
static LAYOUT: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const LIMOSA: u8 = 1;
const OTHER: u8 = 2;

#[inline]
fn has_layout_of_limosa() -> bool {
    match LAYOUT.load(Relaxed) {
        UNKNOWN => try_layout(),
        layout => layout == LIMOSA,
    }
}

/// Finds out how the library keeps a byte count and the mark of a cancelled operation.
#[cold]
fn try_layout() -> bool {
    let mut status = Status { source: 0, tag: 0, error: 0, internal: [0; 5] };
    let (bytes, at) = ((5i64 << 32) + 7, &raw mut status as usize);
    // SAFETY: the status is a local.
    let done = unsafe {
        abi::MPI_Status_set_elements_c(at, standard::MPI_BYTE as usize, bytes) == 0
            && abi::MPI_Status_set_cancelled(at, 1) == 0
    };
    let layout = if done && status.internal[..3] == [7, 5, 1] { LIMOSA } else { OTHER };
    LAYOUT.store(layout, Relaxed);
    layout == LIMOSA
}

/// True for null and for `MPI_STATUS_IGNORE`.
#[inline(always)]
fn is_ignored(address: usize) -> bool {
    const _: () = assert!(theirs::MPI_STATUS_IGNORE == theirs::MPI_STATUSES_IGNORE);
    address <= theirs::MPI_STATUS_IGNORE as usize
}

impl Status {
    /// A status for the library to write to.
    #[inline(always)]
    pub(crate) fn fresh() -> Status {
        Status { source: UNTOUCHED, tag: 0, error: UNTOUCHED, internal: [0; 5] }
    }

    /// Returns the address for the library, in place of the program's.
    #[inline(always)]
    pub(crate) fn address(&mut self, program: usize) -> usize {
        if is_ignored(program) { 0 } else { self as *mut Status as usize }
    }

    /// Converts a status of the program.
    ///
    /// # Safety
    /// The address is that of a status, or of none.
    pub(crate) unsafe fn read(address: usize) -> Status {
        if is_ignored(address) {
            return Status::fresh();
        }
        // SAFETY: promised by the caller.
        Status::from(unsafe { &*(address as *const TheirStatus) })
    }

    pub(crate) fn from(theirs: &TheirStatus) -> Status {
        let mut status = Status {
            source: rank_to_standard(theirs.source),
            tag: tag_to_standard(theirs.tag),
            error: if theirs.error == 0 { 0 } else { error_code_to_standard(theirs.error) },
            internal: [0; 5],
        };
        let (low, high, cancelled) = theirs.count();
        if has_layout_of_limosa() {
            status.internal = [low, high, cancelled, 0, 0];
            return status;
        }
        let at = &raw mut status as usize;
        // SAFETY: the status is a local.
        unsafe {
            abi::MPI_Status_set_elements_c(
                at,
                standard::MPI_BYTE as usize,
                (low as u32 as i64) | i64::from(high) << 32,
            );
            abi::MPI_Status_set_cancelled(at, cancelled);
        }
        status
    }

    /// Writes what the library has written to the program's status, if it has.
    ///
    /// # Safety
    /// The address is valid for a status, or that of none.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, address: usize) {
        if !is_ignored(address) && self.source != UNTOUCHED {
            // SAFETY: promised by the caller.
            self.store(unsafe { &mut *(address as *mut TheirStatus) });
        }
    }

    #[inline(never)]
    pub(crate) fn store(&self, theirs: &mut TheirStatus) {
        let (low, high, cancelled) = match has_layout_of_limosa() {
            true => (self.internal[0], self.internal[1], self.internal[2]),
            false => self.ask(),
        };
        theirs.set_count(low, high, cancelled);
        theirs.source = rank_to_theirs(self.source);
        theirs.tag = tag_to_theirs(self.tag);
        // Calls with one status leave the field as it is.
        if self.error != UNTOUCHED {
            theirs.error = if self.error == 0 { 0 } else { error_code_to_theirs(self.error) };
        }
    }

    /// Asks the library for the byte count and the mark of a cancelled operation.
    #[cold]
    fn ask(&self) -> (i32, i32, i32) {
        let (mut bytes, mut cancelled) = (0i64, 0i32);
        // SAFETY: the addresses are those of locals, and of this status, which is only read.
        unsafe {
            let at = self as *const Status as usize;
            abi::MPI_Get_elements_c(at, standard::MPI_BYTE as usize, &raw mut bytes as usize);
            abi::MPI_Test_cancelled(at, &raw mut cancelled as usize);
        }
        (bytes as i32, (bytes >> 32) as i32, i32::from(cancelled != 0))
    }
}

/// An array of statuses for the library to write to.
pub(crate) struct Statuses(Own<Status>);

impl Statuses {
    pub(crate) fn new(program: usize, length: i64) -> Statuses {
        Statuses(Own::from_fn(if is_ignored(program) { 0 } else { length }, |_| Status::fresh()))
    }

    pub(crate) fn address(&mut self, program: usize) -> usize {
        if is_ignored(program) { 0 } else { self.0.as_mut_ptr() as usize }
    }

    /// Writes those that the library has written to the program's array.
    ///
    /// # Safety
    /// The address is that of so many statuses, or of none.
    pub(crate) unsafe fn write(&self, program: usize) {
        for (index, status) in self.0.as_slice().iter().enumerate() {
            // SAFETY: promised by the caller. The array is empty if the program ignores the statuses.
            unsafe { status.write(program + index * size_of::<TheirStatus>()) };
        }
    }
}
