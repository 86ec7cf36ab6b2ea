//! Data access calls (MPI-5 section 14.4) in all forms: at an offset or with a file pointer; by one process or
//! collective; blocking, non-blocking or split.
//!
//! | position | offset | pointer afterwards |
//! |---|---|---|
//! | at | an argument | |
//! | individual | the process's pointer | advanced by the accessed etypes; for non-blocking calls at once by the requested ones |
//! | shared | the shared pointer | advanced by the requested etypes before the access |
//! | ordered | the same, in rank order | the same |

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::request::{self, Request};
use limosa_p2p::memory::Region;

use crate::agree;
use crate::background::{Background, Convert};
use crate::datarep::room;
use crate::file::{Direction, File, Split, SplitAccess};
use crate::view::View;

/// File position at which an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPosition {
    /// An offset in etypes.
    At(i64),
    /// The process's own pointer.
    Individual,
    /// The shared pointer.
    Shared,
    /// The shared pointer, with all processes in rank order.
    Ordered,
}

/// Buffer of the program.
#[derive(Clone)]
pub struct Buffer {
    /// Address.
    pub base: *mut u8,
    /// Number of elements.
    pub count: i64,
    /// Type of the elements.
    pub datatype: Arc<Datatype>,
    /// Memory of the elements.
    pub region: Region,
}

// SAFETY: the program does not touch the buffer until the operation is complete, on whatever thread it runs.
unsafe impl Send for Buffer {}

/// Data of an access in file representation: those of the program's buffer, or converted ones.
struct Stream {
    region: Region,
    converted: Vec<u8>,
}

impl Stream {
    fn new(view: &View, direction: Direction, buffer: &Buffer) -> Result<Stream> {
        if view.datarep.copies(direction.is_write()) {
            return Ok(Stream { region: buffer.region.clone(), converted: Vec::new() });
        }
        let (datarep, datatype) = (&view.datarep, &buffer.datatype);
        let mut converted = match direction {
            // SAFETY: the program guarantees that its buffer holds these elements.
            Direction::Write => unsafe { datarep.pack(buffer.base, datatype, buffer.count)? },
            Direction::Read => room(datarep.in_file(datatype)?.bytes_of(buffer.count)?)?,
        };
        // SAFETY: bytes on the heap, which live as long as the region.
        let region = unsafe { Region::contiguous(converted.as_mut_ptr(), converted.len()) };
        Ok(Stream { region, converted })
    }
}

/// Converts the first `bytes` bytes into the program's buffer. Returns the number of bytes there.
fn unpack(view: &View, buffer: &Buffer, mut data: Vec<u8>, bytes: u64) -> Result<u64> {
    // SAFETY: the program guarantees that its buffer has room for the elements.
    unsafe { view.datarep.unpack(&mut data[..bytes as usize], buffer.base, &buffer.datatype) }
}

impl File {
    /// Converts an offset in etypes to bytes of the stream.
    pub(crate) fn stream_offset(&self, view: &View, offset: i64) -> Result<u64> {
        if offset < 0 {
            fail!(MPI_ERR_ARG, "the offset is {offset}, but it must not be negative");
        }
        match (offset as u64).checked_mul(view.etype_size).filter(|bytes| *bytes <= i64::MAX as u64) {
            Some(bytes) => Ok(bytes),
            None => fail!(MPI_ERR_ARG, "the offset of {offset} etypes is beyond what a file can have"),
        }
    }

    /// Checks that the access is allowed. Returns the number of etypes.
    fn check(&self, view: &View, direction: Direction, position: AccessPosition, buffer: &Buffer) -> Result<i64> {
        match direction {
            Direction::Read => self.check_reads()?,
            Direction::Write => self.check_writes()?,
        }
        if matches!(position, AccessPosition::At(_) | AccessPosition::Individual) {
            self.check_not_sequential()?;
        }
        let bytes = match view.datarep.copies(direction.is_write()) {
            true => buffer.region.len() as u64,
            false => view.datarep.in_file(&buffer.datatype)?.bytes_of(buffer.count)? as u64,
        };
        if !bytes.is_multiple_of(view.etype_size) {
            fail!(
                MPI_ERR_TYPE,
                "{bytes} bytes are to be accessed, but an etype of the view has {}: only whole ones can be accessed",
                view.etype_size
            );
        }
        let count = (bytes / view.etype_size) as i64;
        if let AccessPosition::At(offset) = position {
            self.stream_offset(view, offset)?;
        }
        Ok(count)
    }

    /// Reserves the position of an access of so many etypes, and advances the pointer.
    fn claim(&self, position: AccessPosition, count: i64) -> Result<i64> {
        match position {
            AccessPosition::At(offset) => Ok(offset),
            AccessPosition::Individual => {
                let mut position = self.position.lock();
                let at = *position;
                *position += count;
                Ok(at)
            }
            AccessPosition::Shared => self.shared.advance(count),
            AccessPosition::Ordered => {
                let counts = agree::words(&self.comm, [count as u64])?;
                let sum = |of: &[[u64; 1]]| of.iter().map(|[count]| *count as i64).sum::<i64>();
                let first = if self.comm.rank() == 0 { self.shared.advance(sum(&counts)) } else { Ok(0) };
                let (_, firsts) = agree::on(&self.comm, Ok(()), [first? as u64])?;
                Ok(firsts[0][0] as i64 + sum(&counts[..self.comm.rank() as usize]))
            }
        }
    }

    /// Checks the access and reserves its position. All processes take part in reserving an ordered position, even
    /// those whose check has failed.
    fn locate(
        &self,
        view: &View,
        direction: Direction,
        position: AccessPosition,
        buffer: &Buffer,
    ) -> Result<(i64, u64)> {
        let checked = self.check(view, direction, position, buffer);
        if checked.is_err() && position == AccessPosition::Ordered {
            self.claim(position, 0)?;
        }
        let at = self.claim(position, checked?)?;
        Ok((at, self.stream_offset(view, at)?))
    }

    /// Performs a blocking access. Returns the number of bytes accessed. `together`: a collective call.
    ///
    /// # Errors
    /// `MPI_ERR_ACCESS`, `MPI_ERR_READ_ONLY`, `MPI_ERR_UNSUPPORTED_OPERATION`, `MPI_ERR_ARG`, `MPI_ERR_TYPE`,
    /// `MPI_ERR_CONVERSION`, and those of the system.
    pub fn access(
        &self,
        direction: Direction,
        position: AccessPosition,
        together: bool,
        buffer: &Buffer,
    ) -> Result<u64> {
        let view = self.view();
        let located = self.check_not_begun(together).and_then(|()| self.locate(&view, direction, position, buffer));
        let begun = located.and_then(|(at, from)| Ok((at, from, Stream::new(&view, direction, buffer)?)));
        let moved = if together {
            let mine = begun.as_ref().map(|(_, from, stream)| (*from, &stream.region)).map_err(Clone::clone);
            self.transfer_together(&view, direction.is_write(), mine)
        } else {
            let (_, from, stream) = begun.as_ref().map_err(Clone::clone)?;
            self.core.transfer(&view, direction.is_write(), *from, &stream.region)
        };
        let (at, _, stream) = begun?;
        if position == AccessPosition::Individual {
            let (wanted, done) = (stream.region.len() as u64, *moved.as_ref().unwrap_or(&0));
            self.rewind_unused(at, wanted / view.etype_size, done / view.etype_size);
        }
        let moved = moved?;
        if stream.converted.is_empty() {
            return Ok(moved);
        }
        match direction {
            Direction::Write => Ok(buffer.region.len() as u64),
            Direction::Read => unpack(&view, buffer, stream.converted, moved),
        }
    }

    /// Sets the pointer back to the end of the accessed bytes if they are fewer than requested, unless it was moved
    /// meanwhile.
    fn rewind_unused(&self, at: i64, wanted: u64, done: u64) {
        let mut position = self.position.lock();
        if done < wanted && *position == at + wanted as i64 {
            *position = at + done as i64;
        }
    }

    /// Starts a non-blocking access. `together`: a collective call.
    ///
    /// # Errors
    /// As for [`File::access`], except those of the system.
    pub fn start(
        &self,
        direction: Direction,
        position: AccessPosition,
        together: bool,
        buffer: Buffer,
    ) -> Result<Arc<Request>> {
        self.check_not_begun(together)?;
        self.start_unchecked(direction, position, buffer)
    }

    /// Fails for a collective access while a split collective access is in progress.
    fn check_not_begun(&self, together: bool) -> Result<()> {
        match &*self.begun.lock() {
            Some(open) if together => Err(open.is_in_the_way()),
            _ => Ok(()),
        }
    }

    fn start_unchecked(&self, direction: Direction, position: AccessPosition, buffer: Buffer) -> Result<Arc<Request>> {
        let view = self.view();
        let (_, from) = self.locate(&view, direction, position, &buffer)?;
        let stream = Stream::new(&view, direction, &buffer)?;
        let bytes = buffer.region.len() as u64;
        let is_converted = !stream.converted.is_empty();
        let convert: Option<Convert> = match direction {
            _ if !is_converted => None,
            Direction::Write => Some(Box::new(move |_, _| Ok(bytes))),
            Direction::Read => {
                let view = view.clone();
                Some(Box::new(move |data, moved| unpack(&view, &buffer, data, moved)))
            }
        };
        let core = self.core.clone();
        let work = Box::new(move || {
            let moved = core.transfer(&view, direction.is_write(), from, &stream.region)?;
            Ok((moved, stream.converted))
        });
        let (engine, handle) = (self.comm.engine(), self.handle.load(Ordering::Relaxed));
        let operation = Background::start(&self.core, engine, handle, bytes, work, convert);
        Ok(Request::under_way(None, operation))
    }

    /// Begins a split collective access.
    ///
    /// # Errors
    /// `MPI_ERR_IO` if one is in progress, and those of [`File::start`].
    pub fn begin(&self, direction: Direction, split: Split, offset: i64, buffer: Buffer) -> Result<()> {
        let mut begun = self.begun.lock();
        if let Some(open) = &*begun {
            return Err(open.is_in_the_way());
        }
        let position = match split {
            Split::All => AccessPosition::Individual,
            Split::AtAll => AccessPosition::At(offset),
            Split::Ordered => AccessPosition::Ordered,
        };
        let base = buffer.base as usize;
        let request = self.start_unchecked(direction, position, buffer)?;
        *begun = Some(SplitAccess { split, direction, base, request });
        Ok(())
    }

    /// Ends a split collective access. Returns the number of bytes accessed.
    ///
    /// # Errors
    /// `MPI_ERR_IO` if no such access is in progress, `MPI_ERR_BUFFER`, and those of the system.
    pub fn end(&self, direction: Direction, split: Split, base: *mut u8) -> Result<u64> {
        let mut begun = self.begun.lock();
        let request = match &*begun {
            Some(open) if (open.split, open.direction) == (split, direction) => {
                if open.base != base as usize {
                    fail!(
                        MPI_ERR_BUFFER,
                        "buf is {base:p}, but the access began with the buffer {:#x}, and both must be the same",
                        open.base
                    );
                }
                open.request.clone()
            }
            other => {
                let there = other.as_ref().map_or_else(
                    || "no split collective access has begun".to_owned(),
                    |open| format!("MPI_File_{}_{}_begin has begun one", open.direction.noun(), open.split.name()),
                );
                fail!(MPI_ERR_IO, "{there}, so MPI_File_{}_{}_end cannot end it", direction.noun(), split.name());
            }
        };
        request::wait_all(&[Some(request.clone())])?;
        *begun = None;
        let end = request.take().expect("it was waited for");
        end.error.map_or(Ok(end.bytes), Err)
    }
}
