//! Fast paths of frequent calls: direct access to memory that is mapped here, in an epoch that is known to allow it,
//! with dense data in the window.
//!
//! Contract: each function does the whole call, or nothing (`false`). The caller then takes the general path, which
//! checks everything and reports errors. Except [`Window::try_fence`], none waits for another process, makes a system
//! call, or sends anything.

use std::ffi::c_int;
use std::sync::atomic::{Ordering, fence};

use limosa_base::copy::copy;
use limosa_mpi::consts::MPI_MODE_NOSUCCEED;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;

use crate::accumulate::{NumberOp, Piece, Swap};
use crate::epochs::Held;
use crate::guard::Guard;
use crate::sync::FENCE_ASSERTIONS;
use crate::window::{Reach, Window, WindowTarget};

/// Location of dense data in a window.
#[derive(Clone, Copy)]
pub struct Spot {
    /// Rank of the target.
    pub rank: i32,
    /// Displacement in units of the target.
    pub disp: i64,
    /// Length in bytes.
    pub bytes: usize,
}

/// Copies between memory of the program and of a window.
///
/// # Safety
/// The bytes must be readable and writable.
#[inline(always)]
unsafe fn move_bytes(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise. They overlap only in an erroneous program, and then nothing else is touched.
    unsafe {
        if from.addr().abs_diff(to.addr()) < bytes { std::ptr::copy(from, to, bytes) } else { copy(from, to, bytes) }
    }
}

impl Window {
    /// Returns the target of an access, and the address.
    #[inline(always)]
    fn locate(&self, spot: Spot) -> Option<(&WindowTarget, *mut u8)> {
        let target = self.targets.get(spot.rank as usize)?;
        if !self.gates.is_open(spot.rank as usize) {
            return None;
        }
        let Reach::Direct(base) = target.reach else { return None };
        let offset = u64::try_from(spot.disp.checked_mul(target.unit)?).ok()?;
        let is_inside = offset.checked_add(spot.bytes as u64)? <= target.size;
        is_inside.then(|| (target, base.wrapping_add(offset as usize)))
    }

    /// Returns the address of numbers that the operation combines, and their guard.
    #[inline(always)]
    fn locate_numbers(&self, spot: Spot, number: &NumberOp) -> Option<(*mut u8, &Guard)> {
        let (target, place) = self.locate(spot)?;
        let guard = target.guard.as_deref()?;
        number.width.is_aligned(place).then_some((place, guard))
    }

    /// Performs `MPI_Put`.
    ///
    /// # Safety
    /// `len` bytes must be readable at `from`.
    #[inline(always)]
    pub unsafe fn try_put(&self, from: *const u8, len: usize, spot: Spot) -> bool {
        let Some((_, place)) = self.locate(spot).filter(|_| len <= spot.bytes) else { return false };
        // SAFETY: the caller's promise; the bytes are in the window.
        unsafe { move_bytes(from, place, len) };
        true
    }

    /// Performs `MPI_Get`.
    ///
    /// # Safety
    /// `len` bytes must be writable at `to`.
    #[inline(always)]
    pub unsafe fn try_get(&self, to: *mut u8, len: usize, spot: Spot) -> bool {
        let Some((_, place)) = self.locate(spot).filter(|_| spot.bytes <= len) else { return false };
        // SAFETY: the caller's promise; the bytes are in the window.
        unsafe { move_bytes(place, to, spot.bytes) };
        true
    }

    /// Performs `MPI_Accumulate` of elements of a named type.
    #[inline(always)]
    pub fn try_accumulate(&self, input: &[u8], element: &Datatype, spot: Spot, op: &Op) -> bool {
        let is_one = spot.bytes == element.size() as usize;
        let found = if is_one { NumberOp::find_for_one(op, element) } else { NumberOp::find(op, element) };
        let Some(number) = found.filter(|number| !number.only_reads()) else { return false };
        let Some((at, guard)) = self.locate_numbers(spot, &number).filter(|_| input.len() == spot.bytes) else {
            return false;
        };
        // SAFETY: aligned numbers in the window; all processes that accumulate there follow the same rule.
        unsafe {
            if is_one {
                guard.number(|| number.apply(at, input.as_ptr()));
            } else {
                number.apply_to(Piece { at, len: spot.bytes }, input, None, guard);
            }
        }
        true
    }

    /// Performs `MPI_Fetch_and_op` on an element of a named type. `input` is not read for `MPI_NO_OP`.
    ///
    /// # Safety
    /// An element must be readable at `input`, unless it is not read, and writable at `result`.
    #[inline(always)]
    pub unsafe fn try_fetch_and_op(
        &self,
        input: *const u8,
        result: *mut u8,
        element: &Datatype,
        spot: Spot,
        op: &Op,
    ) -> bool {
        let Some(number) = NumberOp::find_for_one(op, element) else { return false };
        let Some((place, guard)) = self.locate_numbers(spot, &number) else { return false };
        // SAFETY: the caller's promise; an aligned number in the window, and all processes that accumulate there follow
        // the same rule.
        unsafe {
            let old = guard.number(|| number.apply(place, input));
            number.width.set(result, old);
        }
        true
    }

    /// Performs `MPI_Compare_and_swap` on an element of a named type.
    ///
    /// # Safety
    /// An element must be readable at `new` and `expected`, and writable at `result`.
    #[inline(always)]
    pub unsafe fn try_compare_and_swap(
        &self,
        new: *const u8,
        expected: *const u8,
        result: *mut u8,
        element: &Datatype,
        spot: Spot,
    ) -> bool {
        let Ok(swap) = Swap::new(element) else { return false };
        let Some((target, place)) = self.locate(spot) else { return false };
        let Some(guard) = target.guard.as_deref() else { return false };
        // SAFETY: the caller's promise; an element in the window, and all processes that accumulate there follow the
        // same rule.
        unsafe {
            let read = |at| std::slice::from_raw_parts(at, spot.bytes);
            let old = std::slice::from_raw_parts_mut(result, spot.bytes);
            swap.apply(place, read(expected), read(new), old, guard);
        }
        true
    }

    /// Performs `MPI_Win_lock`, if the lock is free.
    #[inline(always)]
    pub fn try_lock(&self, exclusive: bool, rank: i32) -> bool {
        let Some(locks) = self.locks.as_ref().filter(|_| (rank as usize) < self.targets.len()) else { return false };
        let (target, mut epochs) = (rank as u32, self.epochs.lock());
        let is_taken = epochs.check_lock(target).is_ok() && locks.try_acquire(target, exclusive);
        if is_taken {
            epochs.lock(target, Held { unchecked: false });
        }
        is_taken
    }

    /// Performs `MPI_Win_unlock`, if no process waits for the lock.
    #[inline(always)]
    pub fn try_unlock(&self, rank: i32) -> bool {
        let can = self.is_direct && (rank as usize) < self.targets.len();
        let Some(locks) = self.locks.as_ref().filter(|_| can) else { return false };
        let (target, mut epochs) = (rank as u32, self.epochs.lock());
        let is_given_back = epochs.check_unlock(target).is_ok_and(|held| !held.unchecked) && locks.try_release(target);
        if is_given_back {
            epochs.unlock(target);
        }
        is_given_back
    }

    /// Performs `MPI_Win_lock_all`, if all locks are free.
    pub fn try_lock_all(&self) -> bool {
        let Some(locks) = &self.locks else { return false };
        let mut epochs = self.epochs.lock();
        if epochs.check_lock_all().is_err() {
            return false;
        }
        let all = self.targets.len() as u32;
        let taken = (0..all).take_while(|target| locks.try_acquire(*target, false)).count() as u32;
        if taken < all {
            drop(epochs);
            // A process may have entered the queue of one of them meanwhile.
            (0..taken).for_each(|target| self.return_lock(target));
            return false;
        }
        epochs.lock_all(Held { unchecked: false });
        true
    }

    /// Performs `MPI_Win_unlock_all`, if no process waits for a lock.
    pub fn try_unlock_all(&self) -> bool {
        let Some(locks) = self.locks.as_ref().filter(|_| self.is_direct) else { return false };
        let mut epochs = self.epochs.lock();
        if !epochs.check_unlock_all().is_ok_and(|held| !held.unchecked) {
            return false;
        }
        epochs.unlock_all();
        drop(epochs);
        for target in 0..self.targets.len() as u32 {
            if !locks.try_release(target) {
                self.return_lock(target);
            }
        }
        true
    }

    /// Performs `MPI_Win_fence` on memory that is mapped here, which needs only the barrier. Returns `None` without
    /// effect.
    #[inline]
    pub fn try_fence(&self, assert: c_int) -> Option<Result<()>> {
        if !self.is_direct || assert & !FENCE_ASSERTIONS != 0 || self.epochs.lock().check_fence().is_err() {
            return None;
        }
        let waited = limosa_coll::fast_path::try_barrier(&self.comm)?.and_then(|()| self.finish_fence());
        if waited.is_ok() {
            self.epochs.lock().fence(assert & MPI_MODE_NOSUCCEED == 0);
        }
        Some(waited)
    }

    /// Performs `MPI_Win_flush_all`.
    #[inline]
    pub fn try_flush_all(&self) -> bool {
        let can = self.is_direct && (0..self.targets.len()).any(|target| self.gates.is_locked(target));
        if can {
            fence(Ordering::SeqCst);
        }
        can
    }

    /// Performs `MPI_Win_flush` on memory that is mapped here: writes have been executed, and only a fence is missing.
    #[inline(always)]
    pub fn try_flush(&self, rank: i32) -> bool {
        let can = self.is_direct && (rank as usize) < self.targets.len() && self.gates.is_locked(rank as usize);
        if can {
            fence(Ordering::SeqCst);
        }
        can
    }

    /// Performs `MPI_Win_flush_local`.
    #[inline(always)]
    pub fn try_flush_local(&self, rank: i32) -> bool {
        self.is_direct && (rank as usize) < self.targets.len() && self.gates.is_locked(rank as usize)
    }
}
