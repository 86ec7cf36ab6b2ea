//! Collective accesses in shared memory of a file's processes: it holds strips of the file, and each process copies its
//! own pieces to or from them. No data are packed or sent by messages.
//!
//! ```text
//! write     copy to 0 | copy to 1, write 0 | copy to 2, write 1 | ... | write n       0, 1, ...: rounds of strips
//! read      read 0    | read 1, copy of 0  | read 2, copy of 1  | ... | copy of n     |: all wait for each other
//! ```
//!
//! The strips of two rounds have their slots at the same time: the processes copy those of one round while those of the
//! other move to or from the file. Each strip is moved by the first process that is free. A late process, or one that
//! shares its processor, thus delays the others as little as possible. A strip fits a processor's cache.
//!
//! Each slot lists the pieces of its strip that were copied there, as runs. A process whose runs do not fit the list
//! writes its pieces of that strip itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use limosa_base::copy::copy;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;
use limosa_rma::{Flavor, Window, WindowPart};

use crate::access::Core;
use crate::agree;
use crate::plan::{Cut, SHARED_STRIP};
use crate::shares::{Run, Share, segments, shares};
use crate::view::View;

/// Strips per round.
const ROUND: u64 = 16;
/// Slots for the strips of two rounds.
const SLOTS: usize = 2 * ROUND as usize;
/// Capacity of a slot's list of runs.
const RUNS: usize = 4 << 10;
const PAGE: usize = 4096;

/// Shared state of one access. There are two, used alternately: the unused one is cleared.
#[derive(Default)]
#[repr(C, align(64))]
struct Control {
    /// Next strip to move to or from the file.
    next: AtomicU64,
    /// Number of processes that move strips.
    busy: AtomicU32,
    /// Non-zero if some process has an error.
    failed: AtomicU32,
}

/// Number of runs in a slot's list.
#[derive(Default)]
#[repr(C, align(64))]
struct Listed(AtomicU32);

/// Head of the shared memory. The lists of runs follow, then the strips.
#[derive(Default)]
#[repr(C)]
struct Head {
    controls: [Control; 2],
    listed: [Listed; SLOTS],
}

/// A run in a list.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    start: u32,
    len: u32,
    stride: u32,
    count: u32,
}

const LISTS: usize = size_of::<Head>().next_multiple_of(PAGE);
const DATA: usize = LISTS + SLOTS * RUNS * size_of::<Entry>();
const BYTES: usize = DATA + SLOTS * SHARED_STRIP as usize;

/// The shared memory of a file.
pub(crate) struct Strips {
    window: Arc<Window>,
    base: *mut u8,
    /// Number of accesses so far, the same at all processes.
    accesses: u64,
}

// SAFETY: an address of memory that lives as long as the window.
unsafe impl Send for Strips {}

impl Strips {
    /// Creates the shared memory, collectively. Returns `None` at all processes if they cannot share memory.
    pub fn make(comm: &Arc<Comm>) -> Result<Option<Strips>> {
        let size = if comm.rank() == 0 { BYTES as i64 } else { 0 };
        let part = WindowPart { flavor: Flavor::Shared, base: std::ptr::null_mut(), size, unit: 1 };
        let Ok(window) = Window::make(comm, part, None) else { return Ok(None) };
        let (_, _, base) = window.query(0)?;
        if comm.rank() == 0 {
            // SAFETY: the start of the window; the other processes wait below.
            unsafe { base.cast::<Head>().write(Head::default()) };
        }
        limosa_coll::barrier(comm)?;
        Ok(Some(Strips { window, base, accesses: 0 }))
    }

    /// Frees the shared memory, collectively.
    ///
    /// # Errors
    /// Those of windows.
    pub fn free(self) -> Result<()> {
        self.window.free()
    }

    fn head(&self) -> &Head {
        // SAFETY: initialised by the first process; atomics only, which live as long as the window.
        unsafe { &*self.base.cast::<Head>() }
    }

    /// Moves the stream of `region` to or from the stream of `view` from `from` on, collectively, after all processes
    /// have agreed on `cut`. At most `movers` of them use the file at a time.
    ///
    /// # Errors
    /// Those of the system, at all processes, and the death of one.
    pub fn transfer(
        &mut self,
        (comm, core): (&Comm, &Core),
        (view, is_write): (&View, bool),
        (from, region): (u64, &Region),
        (cut, movers): (&Cut, u64),
    ) -> Result<()> {
        let current = (self.accesses % 2) as usize;
        self.accesses += 1;
        if comm.rank() == 0 {
            // All other processes have left the last access, and reach the next one after this.
            let Control { next, busy, failed } = &self.head().controls[1 - current];
            next.store(0, Ordering::Relaxed);
            busy.store(0, Ordering::Relaxed);
            failed.store(0, Ordering::Relaxed);
        }
        let mine = shares(view, from, region.len() as u64, cut);
        let control = &self.head().controls[current];
        let mut work =
            Access { strips: self, control, core, view, region, cut, movers, from, done: 0, outcome: Ok(()) };
        let mut mine = &mine[..];
        let rounds = cut.strips.div_ceil(ROUND);
        for round in 0..=rounds {
            let (end, before) = (((round + 1) * ROUND).min(cut.strips), (round * ROUND).min(cut.strips));
            if is_write {
                work.move_strips(is_write, before);
                let here = take_until(&mut mine, end);
                work.copy(is_write, here);
                work.move_strips(is_write, before);
            } else {
                work.move_strips(is_write, end);
                let here = take_until(&mut mine, before);
                work.copy(is_write, here);
            }
            if is_write || round < rounds {
                limosa_coll::barrier(comm)?;
            }
        }
        // A read copies after the last barrier, which cannot fail.
        let outcome = work.outcome;
        match control.failed.load(Ordering::Relaxed) {
            0 => outcome,
            _ => agree::on_outcome(comm, outcome),
        }
    }
}

/// Takes the shares of strips before `end`.
fn take_until<'a>(shares: &mut &'a [Share], end: u64) -> &'a [Share] {
    let (here, rest) = shares.split_at(shares.partition_point(|share| share.strip < end));
    *shares = rest;
    here
}

/// One access of one process.
struct Access<'a> {
    strips: &'a Strips,
    control: &'a Control,
    core: &'a Core,
    view: &'a View,
    region: &'a Region,
    cut: &'a Cut,
    movers: u64,
    /// Start of the access in the view's stream.
    from: u64,
    /// Bytes of this process's data that were copied.
    done: usize,
    outcome: Result<()>,
}

impl Access<'_> {
    fn slot(strip: u64) -> usize {
        (strip % SLOTS as u64) as usize
    }

    /// Returns the address of a strip's slot.
    fn data(&self, strip: u64) -> *mut u8 {
        self.strips.base.wrapping_add(DATA + Self::slot(strip) * SHARED_STRIP as usize)
    }

    /// Returns the address of a strip's list of runs.
    fn list(&self, strip: u64) -> *mut Entry {
        self.strips.base.wrapping_add(LISTS).cast::<Entry>().wrapping_add(Self::slot(strip) * RUNS)
    }

    fn listed(&self, strip: u64) -> &AtomicU32 {
        &self.strips.head().listed[Self::slot(strip)].0
    }

    fn note(&mut self, outcome: Result<()>) {
        if outcome.is_err() {
            self.control.failed.store(1, Ordering::Relaxed);
        }
        self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(outcome);
    }

    /// Moves strips before `end` to or from the file while there are any, unless enough other processes do so.
    fn move_strips(&mut self, is_write: bool, end: u64) {
        let busy = &self.control.busy;
        if self.control.next.load(Ordering::Relaxed) >= end {
            return;
        }
        let more = |n: u32| (u64::from(n) < self.movers).then_some(n + 1);
        if busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return;
        }
        let next = |strip: u64| (strip < end).then_some(strip + 1);
        while let Ok(strip) = self.control.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            let moved = if is_write { self.write(strip) } else { self.read(strip) };
            self.note(moved);
        }
        busy.fetch_sub(1, Ordering::Relaxed);
    }

    fn write(&self, strip: u64) -> Result<()> {
        let listed = (self.listed(strip).swap(0, Ordering::Relaxed) as usize).min(RUNS);
        // SAFETY: a list in the window. At the last barrier all other processes have finished with it.
        let entries = unsafe { std::slice::from_raw_parts(self.list(strip), listed) };
        let mut all = Share { strip, ..Share::default() };
        all.runs.extend(entries.iter().map(|&Entry { start, len, stride, count }| Run {
            start: u64::from(start),
            len: u64::from(len),
            stride: u64::from(stride),
            count: u64::from(count),
        }));
        if !all.runs.iter().all(|run| run.fits(self.cut.strip)) {
            limosa_mpi::fail!(MPI_ERR_INTERN, "another process has listed an invalid piece of a strip");
        }
        // SAFETY: a slot in the window; as above.
        let data = unsafe { std::slice::from_raw_parts_mut(self.data(strip), self.cut.strip as usize) };
        self.core.write_segments(data, self.cut.start_of(strip), &segments(std::iter::once(&all)))
    }

    fn read(&self, strip: u64) -> Result<()> {
        let at = self.cut.start_of(strip);
        let (first, end) = (self.cut.first.max(at), self.cut.end.min(at + self.cut.strip));
        // SAFETY: a slot in the window, which belongs to this process until the next barrier.
        let part = unsafe {
            std::slice::from_raw_parts_mut(self.data(strip).add((first - at) as usize), (end - first) as usize)
        };
        let there = self.core.system.read(part, first)?;
        // The file may have become shorter.
        part[there..].fill(0);
        Ok(())
    }

    /// Copies this process's pieces between its memory and strips.
    fn copy(&mut self, is_write: bool, shares: &[Share]) {
        for share in shares {
            let bytes = share.bytes as usize;
            if !is_write || self.list_runs(share) {
                self.copy_share(is_write, share);
            } else {
                let region = self.region.part(self.done, bytes);
                let written = self.core.transfer(self.view, true, self.from + self.done as u64, &region);
                self.note(written.map(|_| ()));
            }
            self.done += bytes;
        }
    }

    /// Appends runs to the list of their strip. Returns whether they fit.
    fn list_runs(&self, share: &Share) -> bool {
        let count = share.runs.len();
        let room = |listed: u32| (count <= RUNS.saturating_sub(listed as usize)).then_some(listed + count as u32);
        let Ok(at) = self.listed(share.strip).fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) else {
            return false;
        };
        for (i, run) in share.runs.iter().enumerate() {
            let [start, len, stride, count] = [run.start, run.len, run.stride, run.count].map(|word| word as u32);
            // SAFETY: in the list, at positions that only this process has taken.
            unsafe { self.list(share.strip).add(at as usize + i).write(Entry { start, len, stride, count }) };
        }
        true
    }

    fn copy_share(&self, is_write: bool, share: &Share) {
        let (data, memory) = (self.data(share.strip), self.region.as_contiguous());
        let mut done = self.done;
        for run in &share.runs {
            for (at, len) in run.pieces() {
                let (at, len) = (data.wrapping_add(at as usize), len as usize);
                // SAFETY: runs lie within their strip, which has its slot in the window. Other processes copy other
                // bytes, or the program has a race. The creator of the region guarantees its memory.
                unsafe {
                    match (memory, is_write) {
                        (Some(memory), true) => copy(memory.add(done), at, len),
                        (Some(memory), false) => copy(at, memory.add(done), len),
                        (None, true) => self.region.read(done, std::slice::from_raw_parts_mut(at, len)),
                        (None, false) => self.region.write(done, std::slice::from_raw_parts(at, len)),
                    }
                }
                done += len;
            }
        }
    }
}
