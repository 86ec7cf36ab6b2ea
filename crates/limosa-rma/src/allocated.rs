//! Memory of `MPI_Alloc_mem` in the host's shared memory (MPI-5 section 9.2): a window of it, made by `MPI_Win_create`,
//! is then mapped by the other members.
//!
//! Each block is an area of its own. A process has at most [`MOST`] of them, so that a program with very many blocks does
//! not run out of mappings; further ones, and those for which the host has no room, are ordinary memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use limosa_base::segment::{Foreign, Shared, available};
use limosa_base::sync::AtomicU8;
use limosa_mpi::info::Info;
use limosa_p2p::{Engine, HostMemory};
use parking_lot::Mutex;

/// Most blocks at a time.
const MOST: usize = 1024;
/// From this length on, the system is asked first whether there is so much memory.
const LARGE: usize = 1 << 20;

/// Alignment of memory that the library allocates, unless the program wants more.
pub const LINE: usize = 64;
/// Most alignment, in bytes, that a program gets.
const MOST_ALIGNMENT: usize = 1 << 30;

/// The alignment of allocated memory that an info object asks for (`mpi_minimum_memory_alignment`), at least [`LINE`].
/// A value that is no power of two, or beyond 1 GiB, is ignored, as the standard allows.
pub fn alignment(info: Option<&Info>) -> usize {
    let wanted = info.and_then(|info| info.lookup(b"mpi_minimum_memory_alignment"));
    let wanted = wanted.and_then(|value| std::str::from_utf8(&value).ok()?.trim().parse::<usize>().ok());
    wanted.filter(|bytes| bytes.is_power_of_two() && *bytes <= MOST_ALIGNMENT).map_or(LINE, |bytes| bytes.max(LINE))
}

/// Any bytes.
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

/// By address.
static ALLOCATED: Mutex<BTreeMap<usize, Allocated>> = Mutex::new(BTreeMap::new());

/// Where memory of this process lies in the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lies {
    /// The area.
    pub place: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The byte at which the memory begins.
    pub offset: u64,
}

/// Takes memory that others can map, at a multiple of `alignment`; `None` if that is not possible, or if there is nobody else.
pub fn allocate(engine: &Engine, bytes: usize, alignment: usize) -> Option<*mut u8> {
    let host = engine.host_memory().filter(|host| host.places().len() > 1)?;
    let mut all = ALLOCATED.lock();
    let is_too_much = bytes >= LARGE && available().is_some_and(|room| bytes as u64 > room);
    if all.len() >= MOST || is_too_much {
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

/// Gives a block back; false if there is none at this address.
pub fn free(start: *const u8) -> bool {
    let Some(block) = ALLOCATED.lock().remove(&start.addr()) else { return false };
    drop(block.memory);
    block.host.free_area(block.place, block.bytes);
    true
}

/// Where these bytes lie in a host's memory, if they do.
pub(crate) fn find(host: &Arc<HostMemory>, start: *const u8, bytes: usize) -> Option<Lies> {
    let all = ALLOCATED.lock();
    let (at, block) = all.range(..=start.addr()).next_back()?;
    let offset = start.addr() - at;
    let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= block.bytes) && Arc::ptr_eq(host, &block.host);
    is_inside.then_some(Lies { place: block.place, bytes: block.bytes as u64, offset: offset as u64 })
}

/// Another process's block, mapped here.
pub(crate) fn map(host: &HostMemory, lies: Lies, bytes: u64) -> Option<Shared<Bytes>> {
    let is_inside = lies.offset.checked_add(bytes).is_some_and(|end| end <= lies.bytes);
    host.map_area(lies.place, usize::try_from(lies.bytes).ok().filter(|all| *all > 0 && is_inside)?).ok()
}
