//! The shared file pointer (MPI-5 section 14.4), in etypes of the view.
//!
//! The shared pointer is a number in a window at the first process. Every process advances it by one atomic operation,
//! without the participation of the first process's program.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use limosa_mpi::comm::Comm;
use limosa_mpi::consts::*;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;
use limosa_p2p::memory::Region;
use limosa_rma::{At, Flavor, Origin, Window, WindowPart};

/// The shared file pointer.
pub(crate) enum SharedPointer {
    /// The pointer of a file with one process.
    Own(AtomicI64),
    /// A number in this window, on which every process holds a shared lock.
    InWindow(Arc<Window>),
}

impl SharedPointer {
    /// Creates a pointer with value 0, collectively.
    ///
    /// # Errors
    /// Those of windows.
    pub fn make(comm: &Arc<Comm>) -> Result<SharedPointer> {
        if comm.size() == 1 {
            return Ok(SharedPointer::Own(AtomicI64::new(0)));
        }
        let size = if comm.rank() == 0 { 8 } else { 0 };
        let part = WindowPart { flavor: Flavor::Allocate, base: std::ptr::null_mut(), size, unit: 1 };
        let window = Window::make(comm, part, None)?;
        window.lock_all(MPI_MODE_NOCHECK)?;
        Ok(SharedPointer::InWindow(window))
    }

    /// Frees the pointer, collectively.
    ///
    /// # Errors
    /// Those of windows.
    pub fn free(&self) -> Result<()> {
        match self {
            SharedPointer::Own(_) => Ok(()),
            SharedPointer::InWindow(window) => {
                window.unlock_all()?;
                window.free()
            }
        }
    }

    /// Applies `op` to the pointer. Returns the old value.
    fn apply(&self, op: c_int, mut operand: i64) -> Result<i64> {
        match self {
            SharedPointer::Own(pointer) => Ok(match op {
                MPI_SUM => pointer.fetch_add(operand, Ordering::AcqRel),
                MPI_REPLACE => pointer.swap(operand, Ordering::AcqRel),
                _ => pointer.load(Ordering::Acquire),
            }),
            SharedPointer::InWindow(window) => {
                let (datatype, mut before) = (Datatype::named(MPI_INT64_T), 0i64);
                let op = Op::builtin(op).expect("a predefined operation");
                let at = At { rank: 0, disp: 0, count: 1, datatype: &datatype };
                // SAFETY: two local numbers, which live until the flush below has ended.
                let [operand, result] = [&raw mut operand, &raw mut before]
                    .map(|place| unsafe { Region::contiguous(place.cast(), size_of::<i64>()) });
                window.fetch_and_op(Some(&Origin { region: operand, datatype: &datatype }), &result, &at, &op)?;
                window.flush(0)?;
                Ok(before)
            }
        }
    }

    /// Advances the pointer. Returns the old value.
    ///
    /// # Errors
    /// Those of windows.
    pub fn advance(&self, by: i64) -> Result<i64> {
        self.apply(MPI_SUM, by)
    }

    /// Returns the value.
    ///
    /// # Errors
    /// Those of windows.
    pub fn get(&self) -> Result<i64> {
        self.apply(MPI_NO_OP, 0)
    }

    /// Sets the value.
    ///
    /// # Errors
    /// Those of windows.
    pub fn set(&self, to: i64) -> Result<()> {
        self.apply(MPI_REPLACE, to).map(|_| ())
    }
}
