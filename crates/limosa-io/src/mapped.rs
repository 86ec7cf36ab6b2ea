//! Collective accesses in the page cache of the file: each process maps the range of the whole access, and copies its
//! own pieces. No data are moved twice, and none between processes.
//!
//! This path is for processes of one host, which see the same pages. First, one of them reserves space in the file
//! system for all written bytes: a store to a page cannot report a lack of space. A process that cannot map the file
//! announces that before anything is copied.
//!
//! A mapping is kept for the next access, unless it is large: the first access to each page takes much longer than the
//! copy.

use limosa_base::copy::{copy, fetch_ahead};
use limosa_base::mapped_file::MappedFile;
use limosa_mpi::comm::Comm;
use limosa_mpi::consts::MPI_ERR_IO;
use limosa_mpi::error::{Error, Result};
use limosa_p2p::memory::Region;

use crate::access::Core;
use crate::agree;
use crate::plan::Cut;
use crate::view::View;

/// Length in bytes of the longest mapping that is kept.
const MAX_KEPT: u64 = 256 << 20;

/// Mapping of the last access, if it is kept. It is the same at all processes.
#[derive(Default)]
pub(crate) struct Kept(Option<Mapped>);

struct Mapped {
    first: u64,
    end: u64,
    is_writable: bool,
    memory: MappedFile,
}

impl Kept {
    /// Moves the stream of `region` to or from the stream of `view` from `from` on, collectively. Returns false,
    /// without effect, if some process cannot map the file.
    ///
    /// # Errors
    /// Those of the system, at all processes, and the death of one.
    pub fn transfer(
        &mut self,
        (comm, core): (&Comm, &Core),
        (view, is_write): (&View, bool),
        data: (u64, &Region),
        cut: &Cut,
    ) -> Result<bool> {
        let (first, end) = (cut.first, cut.end);
        let covers = |kept: &Mapped| kept.first <= first && end <= kept.end && (kept.is_writable || !is_write);
        let mapped = self.0.take().filter(covers).or_else(|| Mapped::new(core, first, end, is_write));
        let has_room = match is_write && comm.rank() == 0 && mapped.is_some() {
            true => core.system.reserve(first, end - first),
            false => Ok(true),
        };
        let can = has_room.as_ref().is_ok_and(|has_room| *has_room && mapped.is_some());
        let (_, all) = agree::on(comm, has_room, [u64::from(can)])?;
        let Some(mapped) = mapped.filter(|_| all.iter().all(|[can]| *can == 1)) else { return Ok(false) };
        agree::on_outcome(comm, copy_pieces(core, &mapped, (view, is_write), data))?;
        self.0 = Some(mapped).filter(|mapped| mapped.end - mapped.first <= MAX_KEPT);
        Ok(true)
    }

    /// Returns the mapped range, which is the same at all processes; empty if there is none.
    pub fn range(&self) -> (u64, u64) {
        self.0.as_ref().map_or((0, 0), |mapped| (mapped.first, mapped.end))
    }

    /// Unmaps the range.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

impl Mapped {
    /// Maps the range; `None` if that is impossible.
    fn new(core: &Core, first: u64, end: u64, writes: bool) -> Option<Mapped> {
        // A writable range is mapped readable too, so that a read after a write needs no other mapping.
        let map = |is_writable| {
            let memory = MappedFile::new(core.system.fd(), first, (end - first) as usize, is_writable).ok()?;
            Some(Mapped { first, end, is_writable, memory })
        };
        map(true).or_else(|| if writes { None } else { map(false) })
    }
}

fn copy_pieces(
    core: &Core,
    mapped: &Mapped,
    (view, is_write): (&View, bool),
    (from, region): (u64, &Region),
) -> Result<()> {
    if region.is_empty() {
        return Ok(());
    }
    let last = view.byte_of(from + region.len() as u64 - 1);
    let _locked = core.lock_if_sieving(is_write, view.byte_of(from), last)?;
    let (memory, mut done) = (region.as_contiguous(), 0);
    let copied = mapped.memory.access(|base| {
        let mut move_piece = |at: *mut u8, len: usize| {
            // SAFETY: all pieces lie in the agreed range, which is mapped. Other processes copy other bytes, or the
            // program has a race. The creator of the region guarantees its memory.
            unsafe {
                match (memory, is_write) {
                    (Some(memory), true) => copy(memory.add(done), at, len),
                    (Some(memory), false) => copy(at, memory.add(done), len),
                    (None, true) => region.read(done, std::slice::from_raw_parts_mut(at, len)),
                    (None, false) => region.write(done, std::slice::from_raw_parts(at, len)),
                }
            }
            done += len;
        };
        // A piece is copied when the next one is known.
        let mut before = None;
        view.pieces(from, region.len() as u64, &mut |at, len| {
            let (at, len) = (base.wrapping_add((at - mapped.first) as usize), len as usize);
            if !is_write {
                fetch_ahead(at, len);
            }
            if let Some((at, len)) = before.replace((at, len)) {
                move_piece(at, len);
            }
            true
        });
        if let Some((at, len)) = before {
            move_piece(at, len);
        }
    });
    // Bytes read beyond the end of a file that has become shorter are zero.
    if copied.is_ok() || !is_write && core.system.size()? <= last {
        return Ok(());
    }
    let (verb, path) = (if is_write { "writing" } else { "reading" }, core.system.path().display());
    Err(Error::new(
        MPI_ERR_IO,
        format!("{verb} \"{path}\" failed: the file has become shorter meanwhile, or its storage has failed"),
    ))
}
