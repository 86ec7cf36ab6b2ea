//! Data movement between memory and the pieces of a view, by one process.
//!
//! | pieces of the file | memory | method |
//! |---|---|---|
//! | one | contiguous, or in pieces that are not small | direct system calls |
//! | one | small pieces | through a staging buffer |
//! | several, long or far apart | any | piece by piece |
//! | several, short and close together | any | *data sieving*: the enclosing range is read as a whole; for a write, it is modified and written back under a lock |
//!
//! Data sieving writes back bytes that the access does not own. It must not undo a concurrent write of another process
//! to them. Plain writes therefore hold a shared lock on their range as long as the view of any process has gaps (all
//! processes know that since `MPI_File_set_view`).
//!
//! In atomic mode an access holds a lock from its first to its last byte (section 14.6.1).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use limosa_base::file::RangeLock;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_p2p::memory::Region;
use parking_lot::RwLock;

use crate::datarep::room;
use crate::hints::Values;
use crate::system::{Locked, SystemFile};
use crate::view::{Piece, View};

/// Minimum mean length in bytes of memory pieces that are passed to the system as they are.
const MIN_SLICE: usize = 1024;
/// Bytes of a staging buffer for small memory pieces.
const CHUNK: usize = 256 << 10;
/// Maximum number of file pieces that are considered together.
const MAX_PIECES: usize = 1 << 15;
/// Length in bytes below which the segments of a strip are written together with the gaps between them.
const SHORT_SEGMENT: u64 = 8 << 10;
/// Bytes whose copying costs as much as a system call.
const CALL_BYTES: u64 = 4096;

/// The state of a file that data accesses need.
pub(crate) struct Core {
    pub system: SystemFile,
    pub can_read: bool,
    pub is_atomic: AtomicBool,
    /// Whether some process may sieve: read more than it needs and write it back.
    pub may_sieve: AtomicBool,
    pub hints: RwLock<Values>,
    /// Background accesses that the program has not completed.
    pub outstanding: AtomicUsize,
}

impl Core {
    /// Moves the stream of `region` to or from the stream of `view` from `from` on. Returns the number of bytes moved:
    /// less than the region has if the file ends before.
    ///
    /// # Errors
    /// The system's.
    pub fn transfer(&self, view: &View, is_write: bool, from: u64, region: &Region) -> Result<u64> {
        if region.is_empty() {
            return Ok(0);
        }
        if view.is_empty() {
            if is_write {
                fail!(MPI_ERR_IO, "the view of the file has no data, so that nothing can be written there");
            }
            return Ok(0);
        }
        let last = view.byte_of(from + region.len() as u64 - 1);
        if last >= i64::MAX as u64 {
            fail!(MPI_ERR_ARG, "the access reaches beyond the largest offset that a file can have");
        }
        let is_atomic = self.is_atomic.load(Ordering::Relaxed) && !self.system.is_stream();
        let _locked = if is_atomic {
            let first = view.byte_of(from);
            let lock = if is_write { RangeLock::Exclusive } else { RangeLock::Shared };
            Some(self.system.lock(lock, first.min(last), first.max(last) - first.min(last) + 1)?)
        } else {
            None
        };
        let job = Transfer { core: self, is_write, is_locked: is_atomic };
        match view.start {
            Some(start) => job.dense(start + from, region).map(|n| n as u64),
            None => job.scattered(view, from, region).map(|n| n as u64),
        }
    }

    /// Excludes data sieving between `first` and `last`, if any process may sieve.
    ///
    /// # Errors
    /// The system's.
    pub fn lock_if_sieving(&self, is_write: bool, first: u64, last: u64) -> Result<Option<Locked<'_>>> {
        if is_write && self.may_sieve.load(Ordering::Relaxed) {
            return self.system.lock_for_plain_write(first, last - first + 1);
        }
        Ok(None)
    }

    /// Writes the segments of a strip, which lies at `at` in the file; or everything from the first to the last
    /// segment, after reading the gaps.
    ///
    /// # Errors
    /// The system's.
    pub fn write_segments(&self, strip: &mut [u8], at: u64, segments: &[(u64, u64)]) -> Result<()> {
        if segments.is_empty() {
            return Ok(());
        }
        let (first, end) = (segments[0].0, segments[segments.len() - 1].1);
        let bytes: u64 = segments.iter().map(|(start, end)| end - start).sum();
        let sieves = self.may_sieve.load(Ordering::Relaxed);
        let is_short =
            segments.len() > 2 && bytes / (segments.len() as u64) < SHORT_SEGMENT && (end - first) / 4 < bytes;
        if is_short && sieves && self.can_read {
            let _locked = self.system.lock(RangeLock::Exclusive, at + first, end - first)?;
            let mut there = room((end - first) as i64)?;
            self.system.read(&mut there, at + first)?;
            for pair in segments.windows(2) {
                let (start, end) = (pair[0].1 as usize, pair[1].0 as usize);
                strip[start..end].copy_from_slice(&there[start - first as usize..end - first as usize]);
            }
            return self.system.write(&strip[first as usize..end as usize], at + first).map(|_| ());
        }
        let _locked = if sieves { self.system.lock_for_plain_write(at + first, end - first)? } else { None };
        for (start, end) in segments {
            self.system.write(&strip[*start as usize..*end as usize], at + start)?;
        }
        Ok(())
    }
}

/// One access.
struct Transfer<'a> {
    core: &'a Core,
    is_write: bool,
    /// Whether the whole range of the access is locked.
    is_locked: bool,
}

impl Transfer<'_> {
    /// Locks `len` bytes for a plain write.
    fn plain_lock(&self, offset: u64, len: u64) -> Result<Option<Locked<'_>>> {
        if self.is_write && !self.is_locked && self.core.may_sieve.load(Ordering::Relaxed) {
            return self.core.system.lock_for_plain_write(offset, len);
        }
        Ok(None)
    }

    /// Moves data to or from one piece of the file.
    fn dense(&self, offset: u64, region: &Region) -> Result<usize> {
        let (system, len) = (&self.core.system, region.len());
        let _locked = self.plain_lock(offset, len as u64)?;
        if region.mean_piece() >= MIN_SLICE.min(len) {
            return system.move_region(self.is_write, region, 0, len, offset);
        }
        let mut buffer = room(len.min(CHUNK) as i64)?;
        let mut done = 0;
        while done < len {
            let part = &mut buffer[..(len - done).min(CHUNK)];
            let moved = if self.is_write {
                region.read(done, part);
                system.write(part, offset + done as u64)?
            } else {
                let n = system.read(part, offset + done as u64)?;
                region.write(done, &part[..n]);
                n
            };
            done += moved;
            if moved < part.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Moves data to or from several pieces.
    fn scattered(&self, view: &View, from: u64, region: &Region) -> Result<usize> {
        let len = region.len();
        let (mut done, mut scratch) = (0, Vec::new());
        while done < len {
            let pieces = next_pieces(view, from + done as u64, len - done);
            let mut first = 0;
            while first < pieces.len() {
                let group = &pieces[first..first + self.group(&pieces[first..])];
                let bytes = group.iter().map(|piece| piece.1 as usize).sum::<usize>();
                let part = region.part(done, bytes);
                let moved = match group {
                    [(offset, _)] => self.dense(*offset, &part)?,
                    group if self.is_write => self.sieve_write(group, &part, &mut scratch)?,
                    group => self.sieve_read(group, &part, &mut scratch)?,
                };
                done += moved;
                if moved < bytes {
                    return Ok(done);
                }
                first += group.len();
            }
        }
        Ok(done)
    }

    /// Returns how many of these pieces are best moved together.
    fn group(&self, pieces: &[Piece]) -> usize {
        let hints = self.core.hints.read();
        let (sieves, most) = if self.is_write {
            (hints.sieves_writes, hints.write_buffer)
        } else {
            (hints.sieves_reads, hints.read_buffer)
        };
        // Sieving writes need permission to read.
        if !sieves || self.is_write && !self.core.can_read {
            return 1;
        }
        let (start, mut end) = (pieces[0].0, pieces[0].0 + pieces[0].1);
        let mut count = 1;
        for &(offset, len) in &pieces[1..] {
            if offset < end || offset + len - start > most {
                break;
            }
            // Bytes by which a gap costs more than a system call.
            let hole = (offset - end) * if self.is_write { 2 } else { 1 };
            if hole + if self.is_write { len } else { 0 } > CALL_BYTES {
                break;
            }
            end = offset + len;
            count += 1;
        }
        // A sieving write must also repay the read.
        if self.is_write && !self.is_locked && count < 4 { 1 } else { count }
    }

    fn sieve_read(&self, pieces: &[Piece], region: &Region, scratch: &mut Vec<u8>) -> Result<usize> {
        let (start, span) = enclosing(pieces);
        let whole = at_least(scratch, span as usize)?;
        let there = self.core.system.read(whole, start)?;
        let mut done = 0;
        for &(offset, len) in pieces {
            let at = (offset - start) as usize;
            let n = there.saturating_sub(at).min(len as usize);
            region.write(done, &whole[at.min(there)..][..n]);
            done += n;
            if n < len as usize {
                break;
            }
        }
        Ok(done)
    }

    fn sieve_write(&self, pieces: &[Piece], region: &Region, scratch: &mut Vec<u8>) -> Result<usize> {
        let (start, span) = enclosing(pieces);
        let whole = at_least(scratch, span as usize)?;
        let _locked = match self.is_locked {
            true => None,
            false => Some(self.core.system.lock(RangeLock::Exclusive, start, span)?),
        };
        let there = self.core.system.read(whole, start)?;
        // Bytes beyond the end of the file read as zeros, as holes do.
        whole[there..].fill(0);
        let mut done = 0;
        for &(offset, len) in pieces {
            let (at, len) = ((offset - start) as usize, len as usize);
            region.read(done, &mut whole[at..at + len]);
            done += len;
        }
        self.core.system.write(whole, start)?;
        Ok(done)
    }
}

/// Returns the first `len` bytes of a buffer, which is extended if necessary.
fn at_least(scratch: &mut Vec<u8>, len: usize) -> Result<&mut [u8]> {
    if scratch.len() < len {
        *scratch = room(len as i64)?;
    }
    Ok(&mut scratch[..len])
}

/// Returns start and length of the range that encloses some pieces in order.
fn enclosing(pieces: &[Piece]) -> (u64, u64) {
    let (last, len) = pieces[pieces.len() - 1];
    (pieces[0].0, last + len - pieces[0].0)
}

/// Returns the next pieces of a view, at most so many bytes.
fn next_pieces(view: &View, from: u64, len: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    view.pieces(from, len as u64, &mut |at, len| {
        pieces.push((at, len));
        pieces.len() < MAX_PIECES
    });
    pieces
}
