//! Memory of `MPI_Alloc_mem` in the host's shared memory (MPI-5 section 9.2): the other members can map a window of it
//! that `MPI_Win_create` makes.
//!
//! Each block is an area of its own. A process has at most [`MAX_BLOCKS`], so that a program with very many blocks does
//! not run out of mappings. Further blocks, and those for which the host has no room, are ordinary memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use limosa_base::segment::{Foreign, Shared, available};
use limosa_base::sync::AtomicU8;
use limosa_mpi::info::Info;
use limosa_p2p::{Engine, HostMemory};
use parking_lot::Mutex;

/// Maximum number of blocks at a time.
const MAX_BLOCKS: usize = 1024;
/// Length in bytes from which the available memory is checked first.
const LARGE: usize = 1 << 20;

/// Default alignment in bytes of memory that the library allocates.
pub const LINE: usize = 64;
/// Maximum alignment in bytes.
const MAX_ALIGNMENT: usize = 1 << 30;

/// Returns the alignment that an info object requests (`mpi_minimum_memory_alignment`), at least [`LINE`]. A value that
/// is no power of two, or above 1 GiB, is ignored, as the standard allows.
pub fn alignment(info: Option<&Info>) -> usize {
    let wanted = info.and_then(|info| info.lookup(b"mpi_minimum_memory_alignment"));
    let wanted = wanted.and_then(|value| std::str::from_utf8(&value).ok()?.trim().parse::<usize>().ok());
    wanted.filter(|bytes| bytes.is_power_of_two() && *bytes <= MAX_ALIGNMENT).map_or(LINE, |bytes| bytes.max(LINE))
}

/// Untyped bytes.
#[repr(transparent)]
pub(crate) struct Bytes(AtomicU8);

// SAFETY: an atomic, for which any bytes are valid.
unsafe impl Foreign for Bytes {}

/// A block of this process.
struct Allocated {
    bytes: usize,
    place: u64,
    memory: Shared<Bytes>,
    host: Arc<HostMemory>,
}

/// Blocks of this process, by address.
static ALLOCATED: Mutex<BTreeMap<usize, Allocated>> = Mutex::new(BTreeMap::new());

/// Location of memory of this process in the host's shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockLocation {
    /// Position of the area.
    pub place: u64,
    /// Bytes of the area.
    pub bytes: u64,
    /// Offset of the memory in the area.
    pub offset: u64,
}

/// Allocates memory that other processes can map, at a multiple of `alignment`; `None` if that is impossible, or if
/// there is no other process.
pub fn allocate(engine: &Engine, bytes: usize, alignment: usize) -> Option<*mut u8> {
    let host = engine.host_memory().filter(|host| host.places().len() > 1)?;
    let mut all = ALLOCATED.lock();
    let is_too_much = bytes >= LARGE && available().is_some_and(|room| bytes as u64 > room);
    if all.len() >= MAX_BLOCKS || is_too_much {
        return None;
    }
    let bytes = bytes.max(1);
    let place = host.create_area(bytes).ok()?;
    let Ok(memory) = host.map_aligned_area::<Bytes>(place, bytes, alignment) else {
        host.free_area(place, bytes);
        return None;
    };
    let start = memory.mapping().address(0);
    all.insert(start.addr(), Allocated { bytes, place, memory, host: host.clone() });
    Some(start)
}

/// Frees a block. Returns false if there is none at this address.
pub fn free(start: *const u8) -> bool {
    let Some(block) = ALLOCATED.lock().remove(&start.addr()) else { return false };
    drop(block.memory);
    block.host.free_area(block.place, block.bytes);
    true
}

/// Returns the location of these bytes in the host's shared memory, if they lie there.
pub(crate) fn find(host: &Arc<HostMemory>, start: *const u8, bytes: usize) -> Option<BlockLocation> {
    let all = ALLOCATED.lock();
    let (at, block) = all.range(..=start.addr()).next_back()?;
    let offset = start.addr() - at;
    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= block.bytes) && Arc::ptr_eq(host, &block.host);
    is_inside.then_some(BlockLocation { place: block.place, bytes: block.bytes as u64, offset: offset as u64 })
}

/// Maps a block of another process.
pub(crate) fn map(host: &HostMemory, location: BlockLocation, bytes: u64) -> Option<Shared<Bytes>> {
    let is_inside = location.offset.checked_add(bytes).is_some_and(|end| end <= location.bytes);
    host.map_area(location.place, usize::try_from(location.bytes).ok().filter(|all| *all > 0 && is_inside)?).ok()
}
