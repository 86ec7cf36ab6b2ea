//! Contiguous memory for collectives in shared memory.

use std::cell::Cell;

use limosa_base::copy::copy_here;
use limosa_p2p::memory::Region;

use super::schedule::Temporary;
use limosa_mpi::error::Result;

/// The data of a region in one block: the region itself if it is contiguous, else temporary memory.
pub(crate) struct Flat {
    start: *mut u8,
    temporary: Option<Temporary>,
}

impl Flat {
    /// Makes a block for reading: packs a region that is not contiguous.
    pub(crate) fn packed(region: &Region) -> Result<Flat> {
        match region.as_contiguous() {
            Some(start) => Ok(Flat { start, temporary: None }),
            None => Flat::copied(region),
        }
    }

    /// Makes a copy of a region.
    pub(crate) fn copied(region: &Region) -> Result<Flat> {
        let flat = Flat::temporary(region.len())?;
        // SAFETY: the temporary memory has this many bytes, all initialised, and no other reference to it exists.
        region.read(0, unsafe { std::slice::from_raw_parts_mut(flat.start, region.len()) });
        Ok(flat)
    }

    /// Makes a block for writing: [`Flat::deliver`] unpacks it.
    pub(crate) fn room(region: &Region) -> Result<Flat> {
        match region.as_contiguous() {
            Some(start) => Ok(Flat { start, temporary: None }),
            None => Flat::temporary(region.len()),
        }
    }

    /// Allocates temporary memory.
    pub(crate) fn temporary(bytes: usize) -> Result<Flat> {
        let temporary = Temporary::zeroed(bytes)?;
        Ok(Flat { start: temporary.start(), temporary: Some(temporary) })
    }

    /// Returns its address.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Returns a part of the block.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Region {
        // SAFETY: the caller has made the block long enough, and keeps it.
        unsafe { Region::contiguous(self.start.wrapping_add(offset), len) }
    }

    /// Copies the block to the region that it was made for, unless it is that region.
    pub(crate) fn deliver(&self, region: &Region) {
        if self.temporary.is_some() {
            // SAFETY: the temporary memory has as many bytes as the region it was made for, all with a value.
            region.write(0, unsafe { std::slice::from_raw_parts(self.start, region.len()) });
        }
    }
}

/// Copies a region to shared memory. The C library's copy is faster here up to some kilobytes, in both directions.
#[inline]
pub(crate) fn read(region: &Region, to: &mut [u8]) {
    match region.as_contiguous() {
        // SAFETY: the region has this many bytes, readable by the promise of its creator, and is not in shared memory.
        Some(from) if to.len() == region.len() => unsafe { copy_here(from, to.as_mut_ptr(), to.len()) },
        _ => region.read(0, to),
    }
}

/// Copies from shared memory to a region.
#[inline]
pub(crate) fn write(region: &Region, from: &[u8]) {
    match region.as_contiguous() {
        // SAFETY: the region has this many bytes, writable by the promise of its creator, and is not in shared memory.
        Some(to) if from.len() == region.len() => unsafe { copy_here(from.as_ptr(), to, from.len()) },
        _ => region.write(0, from),
    }
}

thread_local! {
    static KEPT: Cell<Option<(Temporary, usize)>> = const { Cell::new(None) };
}

/// Most scratch memory that a thread keeps for its next operation, in bytes.
const KEEP: usize = 256 << 10;

/// Scratch memory, aligned to a cache line, with arbitrary content.
pub(crate) struct Scratch(Option<(Temporary, usize)>);

impl Scratch {
    /// Takes at least `bytes` bytes.
    pub(crate) fn take(bytes: usize) -> Result<Scratch> {
        let kept = KEPT.try_with(Cell::take).ok().flatten();
        if let Some((_, room)) = &kept
            && *room >= bytes
        {
            return Ok(Scratch(kept));
        }
        let room = bytes.next_multiple_of(4 << 10);
        Ok(Scratch(Some((Temporary::zeroed(room)?, room))))
    }

    /// Returns its address.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.as_ref().map_or(std::ptr::null_mut(), |(temporary, _)| temporary.start())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let block = self.0.take();
        if block.as_ref().is_some_and(|(_, room)| *room <= KEEP) {
            // While the thread ends it cannot be kept: it is freed.
            let _ = KEPT.try_with(move |kept| kept.set(block));
        }
    }
}
