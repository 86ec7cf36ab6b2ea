//! Moving typed data: message regions, `MPI_Pack`, `MPI_Unpack`, `MPI_Pack_size` (MPI-5 section 5.2).
//!
//! The packed form of data is its bytes in type map order without gaps, so that a packed message and a typed message
//! are the same on the way.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_p2p::memory::{Layout, Region};

use super::Datatype;
use super::program::{Body, Placed};
use super::walk::{Copy, Pieces, walk_elements};
use crate::check;
use crate::consts::MPI_IN_PLACE;
use crate::error::{Error, Result};
use crate::fail;

impl Layout for Datatype {
    fn size(&self) -> usize {
        self.measure.size as usize
    }

    unsafe fn pack(&self, base: *const u8, _count: usize, offset: usize, dst: &mut [u8]) {
        // SAFETY: the caller's promise covers the memory that the walk reaches; the walk fills `dst` and no more.
        let mut copy = unsafe { Copy::<true>::new(dst.as_mut_ptr()) };
        walk_elements(self.program(), self.extent() as isize, base.cast_mut(), offset, offset + dst.len(), &mut copy);
    }

    unsafe fn unpack(&self, base: *mut u8, _count: usize, offset: usize, src: &[u8]) {
        // SAFETY: the caller's promise covers the memory that the walk reaches; the walk only reads `src`, and no
        // further than its end.
        let mut copy = unsafe { Copy::<false>::new(src.as_ptr().cast_mut()) };
        walk_elements(self.program(), self.extent() as isize, base, offset, offset + src.len(), &mut copy);
    }

    fn pieces(
        &self,
        base: *mut u8,
        _count: usize,
        offset: usize,
        len: usize,
        visit: &mut dyn FnMut(*mut u8, usize) -> bool,
    ) {
        let mut pieces = Pieces::new(visit);
        if walk_elements(self.program(), self.extent() as isize, base, offset, offset + len, &mut pieces) {
            pieces.finish();
        }
    }

    fn mean_piece(&self) -> usize {
        let code = &self.program().code;
        code.size / code.pieces.max(1)
    }
}

impl Datatype {
    /// Whether the elements of any number are one contiguous block, from the true lower bound of the first.
    pub fn is_dense(&self) -> bool {
        let code = &self.program().code;
        matches!(code.body, Body::Run) && code.size as i64 == self.extent()
    }

    /// Returns the place of `count` elements if they are one contiguous block: its distance from the base address.
    pub fn contiguous_at(&self, count: usize) -> Option<isize> {
        let Placed { place, code } = self.program();
        let joined = matches!(code.body, Body::Run) && (count <= 1 || code.size as i64 == self.extent());
        joined.then_some(*place)
    }

    /// Returns the bytes of `count` elements; fails if they do not fit in 64 bits.
    pub fn bytes_of(&self, count: i64) -> Result<i64> {
        match count.checked_mul(self.size()) {
            Some(bytes) => Ok(bytes),
            None => fail!(MPI_ERR_COUNT, "{count} elements of {} bytes do not fit in 64 bits", self.size()),
        }
    }

    /// Fails if a buffer is `MPI_IN_PLACE`, which has no meaning here.
    /// Fails if a null buffer (`MPI_BOTTOM`) would be accessed near address 0, where no memory is: the program passed
    /// no buffer. `arg` is the parameter's name.
    pub fn check_buffer(&self, base: *const u8, count: i64, arg: &str) -> Result<()> {
        const PAGE: i128 = 4096;
        if base as usize == MPI_IN_PLACE {
            fail!(MPI_ERR_BUFFER, "{arg} is MPI_IN_PLACE, which has no meaning here");
        }
        if !base.is_null() || count <= 0 || self.size() == 0 {
            return Ok(());
        }
        let last = (count as i128 - 1) * self.extent() as i128;
        let low = self.true_lb() as i128;
        if low.min(low + last) < PAGE {
            fail!(
                MPI_ERR_BUFFER,
                "{arg} is a null pointer, but {count} elements of {} are to be accessed",
                self.describe()
            );
        }
        Ok(())
    }

    /// Fails if the processor cannot read the first or the last byte of a buffer ([`limosa_base::readable`]). `arg` is
    /// the parameter's name.
    pub fn check_readable(&self, base: *const u8, count: i64, arg: &str) -> Result<()> {
        if count <= 0 || self.size() == 0 {
            return Ok(());
        }
        let last = (count - 1).saturating_mul(self.extent());
        let low = self.true_lb().saturating_add(last.min(0));
        let high = self.true_lb().saturating_add(self.true_extent()).saturating_add(last.max(0));
        let start = base.wrapping_offset(low as isize);
        if !limosa_base::readable::is_readable(start, high.saturating_sub(low) as usize) {
            fail!(
                MPI_ERR_BUFFER,
                "{arg} at {start:p} is memory that the processor cannot read, such as that of a graphics card: copy it \
                 to a NumPy array first (.cpu(), .get(), .copy_to_host())"
            );
        }
        Ok(())
    }

    /// Returns the memory of `count` elements at `base`, contiguous whenever the data are.
    ///
    /// # Safety
    /// As for [`Region::typed`].
    pub unsafe fn region(self: &Arc<Self>, base: *mut u8, count: usize) -> Region {
        let size = self.measure.size as usize;
        if count == 0 || size == 0 {
            return Region::empty();
        }
        // SAFETY: the caller's promise covers all bytes of the layout, which are these.
        unsafe {
            match self.contiguous_at(count) {
                Some(0) if size as i64 == self.extent() && self.is_committed() && !check::is_on() => {
                    self.dense.store(size, Ordering::Relaxed);
                    Region::contiguous(base, count * size)
                }
                Some(place) => Region::contiguous(base.wrapping_offset(place), count * size),
                None => Region::typed(base, count, self.clone()),
            }
        }
    }

    /// `MPI_Pack_size`: an upper bound, which here is exact.
    pub fn pack_size(&self, count: i64) -> Result<i64> {
        self.bytes_of(count)
    }

    /// `MPI_Pack`: appends `count` elements at `base` to the packed bytes in `packed`, from `position` on, which moves.
    ///
    /// # Safety
    /// The memory of the elements must be readable.
    pub unsafe fn pack_elements(
        self: &Arc<Self>,
        base: *const u8,
        count: i64,
        packed: &mut [u8],
        position: &mut i64,
    ) -> Result<()> {
        let range = room(*position, self.pack_size(count)?, packed.len(), "the pack buffer")?;
        *position = range.end as i64;
        // SAFETY: the caller's promise; `read` only reads.
        unsafe { self.region(base.cast_mut(), count as usize) }.read(0, &mut packed[range]);
        Ok(())
    }

    /// `MPI_Unpack`: takes `count` elements out of the packed bytes, from `position` on, which moves.
    ///
    /// # Safety
    /// The memory of the elements must be writable.
    pub unsafe fn unpack_elements(
        self: &Arc<Self>,
        packed: &[u8],
        position: &mut i64,
        base: *mut u8,
        count: i64,
    ) -> Result<()> {
        let range = room(*position, self.pack_size(count)?, packed.len(), "the packed data")?;
        *position = range.end as i64;
        // SAFETY: the caller's promise.
        unsafe { self.region(base, count as usize) }.write(0, &packed[range]);
        Ok(())
    }
}

/// Returns the bytes from `position` on, if the buffer has that many.
pub(super) fn room(position: i64, bytes: i64, buffer: usize, what: &str) -> Result<std::ops::Range<usize>> {
    if position < 0 || position > buffer as i64 {
        fail!(MPI_ERR_ARG, "position is {position}, but {what} has {buffer} bytes");
    }
    let end = position.checked_add(bytes).filter(|end| *end <= buffer as i64);
    let Some(end) = end else {
        let detail = format!(
            "{bytes} bytes are needed from position {position} on, but {what} has {buffer} bytes; MPI_Pack_size tells \
             the size"
        );
        return Err(Error::new(crate::consts::MPI_ERR_TRUNCATE, detail));
    };
    Ok(position as usize..end as usize)
}
