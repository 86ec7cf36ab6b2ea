//! Contributions of the members of a window, and their agreement at its creation.

use std::ffi::c_int;

use limosa_mpi::comm::Comm;
use limosa_mpi::consts::*;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;

use crate::allocated::{self, BlockLocation};

/// Origin of a window's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Memory of the program, `MPI_Win_create`.
    Create,
    /// Memory of the library, `MPI_Win_allocate`.
    Allocate,
    /// Shared memory of the library, `MPI_Win_allocate_shared`.
    Shared,
    /// Memory attached later, `MPI_Win_create_dynamic`.
    Dynamic,
}

impl Flavor {
    pub(crate) fn constant(self) -> c_int {
        match self {
            Flavor::Create => MPI_WIN_FLAVOR_CREATE,
            Flavor::Allocate => MPI_WIN_FLAVOR_ALLOCATE,
            Flavor::Shared => MPI_WIN_FLAVOR_SHARED,
            Flavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
        }
    }
}

/// Contribution of this process to a window.
#[derive(Clone, Copy, Debug)]
pub struct WindowPart {
    /// Origin of the memory.
    pub flavor: Flavor,
    /// Memory of the program; null if the library allocates it.
    pub base: *mut u8,
    /// Length in bytes.
    pub size: i64,
    /// Bytes of a displacement unit.
    pub unit: i64,
}

/// Announcement of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    pub size: u64,
    pub unit: i64,
    pub base: u64,
    /// Whether its memory need not follow that of the previous rank (`alloc_shared_noncontig`).
    pub apart: bool,
    /// Requested alignment of its memory.
    pub alignment: usize,
    /// Location of the program's memory in the host's shared memory, if it lies there.
    pub location: Option<BlockLocation>,
}

const WORDS: usize = 8;
/// Location of memory that is not in the host's shared memory.
const NOWHERE: u64 = u64::MAX;

/// Checks the contribution of a process.
fn check(part: &WindowPart) -> Result<()> {
    if part.unit <= 0 || part.unit > i64::from(c_int::MAX) {
        fail!(MPI_ERR_DISP, "disp_unit is {}, but it must be positive and fit an int", part.unit);
    }
    if part.size < 0 {
        fail!(MPI_ERR_SIZE, "size is {}, but it must not be negative", part.size);
    }
    if part.flavor == Flavor::Create && part.base.is_null() && part.size > 0 {
        return Err(Error::new(
            MPI_ERR_BASE,
            format!("base is a null pointer, but the window has {} bytes", part.size),
        ));
    }
    Ok(())
}

/// Exchanges the announcements of all members.
///
/// # Errors
/// The error of this process's contribution; otherwise that of another member's, without its sentence.
pub(crate) fn on_parts(comm: &Comm, part: &WindowPart, apart: bool, alignment: usize) -> Result<Vec<Announced>> {
    let checked = check(part);
    let class = checked.as_ref().err().map_or(0, |error| error.class);
    let head = u64::from(class as u32) << 32 | (part.flavor as u64) << 1 | u64::from(apart);
    let location = match comm.engine().host_memory() {
        Some(host) if part.flavor == Flavor::Create && checked.is_ok() => {
            allocated::find(host, part.base, part.size as usize)
        }
        _ => None,
    };
    let (place, bytes, offset) =
        location.map_or((NOWHERE, 0, 0), |location| (location.place, location.bytes, location.offset));
    let (size, base) = (part.size as u64, part.base as u64);
    let words = [head, size, part.unit as u64, base, place, bytes, offset, alignment as u64];
    let mine: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let all = limosa_coll::allgather_bytes(comm, &mine)?;
    checked?;
    let word = |rank: usize, i: usize| {
        let at = (rank * WORDS + i) * 8;
        u64::from_ne_bytes(all[at..at + 8].try_into().expect("eight bytes"))
    };
    let mut announced = Vec::with_capacity(comm.size());
    for rank in 0..comm.size() {
        let head = word(rank, 0);
        if head >> 32 != 0 {
            let detail =
                format!("rank {rank} could not create its part of the window: the error of its call has the reason");
            return Err(Error::new((head >> 32) as i32, detail));
        }
        if head >> 1 & 3 != part.flavor as u64 {
            fail!(
                MPI_ERR_RMA_FLAVOR,
                "rank {rank} called a different function to create the window: all members must call the same one"
            );
        }
        announced.push(Announced {
            size: word(rank, 1),
            unit: word(rank, 2) as i64,
            base: word(rank, 3),
            apart: head & 1 == 1,
            alignment: word(rank, 7) as usize,
            location: (word(rank, 4) != NOWHERE).then(|| BlockLocation {
                place: word(rank, 4),
                bytes: word(rank, 5),
                offset: word(rank, 6),
            }),
        });
    }
    Ok(announced)
}

/// Exchanges one word per member.
///
/// # Errors
/// Errors of the machine.
pub(crate) fn on_words(comm: &Comm, mine: u64) -> Result<Vec<u64>> {
    let all = limosa_coll::allgather_bytes(comm, &mine.to_ne_bytes())?;
    if all.len() != 8 * comm.size() {
        return Err(Error::new(MPI_ERR_OTHER, "the members of the window did not agree"));
    }
    Ok(all.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))).collect())
}

const _: () = assert!((Flavor::Dynamic as u64) < 4);
