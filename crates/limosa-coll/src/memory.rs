//! Memory as collectives in shared memory need it: contiguous.

use std::cell::Cell;

use limosa_p2p::memory::Region;

use super::schedule::Temporary;
use limosa_mpi::error::Result;

/// The stream of a region in one block: the region itself if it is contiguous, else temporary memory.
pub(crate) struct Flat {
    start: *mut u8,
    temporary: Option<Temporary>,
}

impl Flat {
    /// For reading: packs what is not contiguous.
    pub(crate) fn packed(region: &Region) -> Result<Flat> {
        match region.as_contiguous() {
            Some(start) => Ok(Flat { start, temporary: None }),
            None => Flat::copied(region),
        }
    }

    /// A copy.
    pub(crate) fn copied(region: &Region) -> Result<Flat> {
        let flat = Flat::temporary(region.len())?;
        // SAFETY: the temporary memory has this many bytes, all with a value, and nobody else knows it.
        region.read(0, unsafe { std::slice::from_raw_parts_mut(flat.start, region.len()) });
        Ok(flat)
    }

    /// For writing: [`Flat::deliver`] unpacks.
    pub(crate) fn room(region: &Region) -> Result<Flat> {
        match region.as_contiguous() {
            Some(start) => Ok(Flat { start, temporary: None }),
            None => Flat::temporary(region.len()),
        }
    }

    /// Memory of its own.
    pub(crate) fn temporary(bytes: usize) -> Result<Flat> {
        let temporary = Temporary::zeroed(bytes)?;
        Ok(Flat { start: temporary.start(), temporary: Some(temporary) })
    }

    /// Where it is.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Some of the bytes.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Region {
        // SAFETY: who asks for a part has made the block long enough, and keeps it.
        unsafe { Region::contiguous(self.start.wrapping_add(offset), len) }
    }

    /// Brings what was written here to the region that it was made for, if it is not there already.
    pub(crate) fn deliver(&self, region: &Region) {
        if self.temporary.is_some() {
            // SAFETY: the temporary memory has as many bytes as the region it was made for, all with a value.
            region.write(0, unsafe { std::slice::from_raw_parts(self.start, region.len()) });
        }
    }
}

/// Copies a region to shared memory. The C library's copy is the faster one here up to some kilobytes, both ways.
#[inline]
pub(crate) fn read(region: &Region, to: &mut [u8]) {
    match region.as_contiguous() {
        // SAFETY: the region has this many bytes, readable by the promise of its builder, and is not in shared memory.
        Some(from) if to.len() == region.len() => unsafe {
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len())
        },
        _ => region.read(0, to),
    }
}

/// Copies from shared memory to a region.
#[inline]
pub(crate) fn write(region: &Region, from: &[u8]) {
    match region.as_contiguous() {
        // SAFETY: the region has this many bytes, writable by the promise of its builder, and is not in shared memory.
        Some(to) if from.len() == region.len() => unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len())
        },
        _ => region.write(0, from),
    }
}

thread_local! {
    static KEPT: Cell<Option<(Temporary, usize)>> = const { Cell::new(None) };
}

/// Most scratch memory that a thread keeps for its next operation, in bytes.
const KEEP: usize = 256 << 10;

/// Scratch memory, on a cache line, with whatever its last user left in it.
pub(crate) struct Scratch(Option<(Temporary, usize)>);

impl Scratch {
    /// At least `bytes` bytes.
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

    /// Where it is.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.as_ref().map_or(std::ptr::null_mut(), |(temporary, _)| temporary.start())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let block = self.0.take();
        if block.as_ref().is_some_and(|(_, room)| *room <= KEEP) {
            // When the thread ends there is nowhere to keep it: it is freed.
            let _ = KEPT.try_with(move |kept| kept.set(block));
        }
    }
}
