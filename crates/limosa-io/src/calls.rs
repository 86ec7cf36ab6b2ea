//! The calls that access data (MPI-5 section 14.4), in all their forms: at an offset, or with one of the file pointers;
//! by one process or all; blocking, non-blocking or split.
//!
//! | place | offset | afterwards |
//! |---|---|---|
//! | at | an argument | |
//! | individual | the process's pointer | moved by what was accessed; at once by what is to be if non-blocking |
//! | shared | the shared pointer | moved before the access by what is to be accessed |
//! | ordered | the same, in the order of the ranks | the same |

use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::consts::MPI_ERR_IO;
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::fail;
use limosa_mpi::request::{self, Request};
use limosa_p2p::memory::Region;

use crate::agree;
use crate::background::{Background, Convert};
use crate::datarep::room;
use crate::file::File;
use crate::view::View;

/// Whether data go to the file or come from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

impl Direction {
    fn is_write(self) -> bool {
        self == Direction::Write
    }

    fn noun(self) -> &'static str {
        if self.is_write() { "write" } else { "read" }
    }
}

/// Where in the file an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At an offset in etypes.
    At(i64),
    /// At the process's own pointer.
    Individual,
    /// At the shared pointer.
    Shared,
    /// At the shared pointer, all processes in the order of their ranks.
    Ordered,
}

/// Which split collective access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// `_all`
    All,
    /// `_at_all`
    AtAll,
    /// `_ordered`
    Ordered,
}

impl Split {
    fn name(self) -> &'static str {
        match self {
            Split::All => "all",
            Split::AtAll => "at_all",
            Split::Ordered => "ordered",
        }
    }
}

/// The program's buffer.
#[derive(Clone)]
pub struct Buffer {
    /// Its address.
    pub base: *mut u8,
    /// Elements.
    pub count: i64,
    /// Their type.
    pub datatype: Arc<Datatype>,
    /// Its memory.
    pub region: Region,
}

// SAFETY: the program leaves the buffer to the operation until that has ended, whichever thread carries it out.
unsafe impl Send for Buffer {}

/// A split collective access that has begun.
pub(crate) struct Begun {
    split: Split,
    direction: Direction,
    base: usize,
    request: Arc<Request>,
}

impl Begun {
    fn is_in_the_way(&self) -> Error {
        let detail = format!(
            "MPI_File_{}_{}_begin was called before, and has not been ended: until then no other collective access to \
             the file is allowed",
            self.direction.noun(),
            self.split.name()
        );
        Error::new(MPI_ERR_IO, detail)
    }
}

/// The data of an access as they are in the file: those of the program's buffer, or converted ones.
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
            // SAFETY: the program promises that its buffer holds these elements.
            Direction::Write => unsafe { datarep.pack(buffer.base, datatype, buffer.count)? },
            Direction::Read => room(datarep.in_file(datatype)?.bytes_of(buffer.count)?)?,
        };
        // SAFETY: bytes on the heap, which are kept with the region.
        let region = unsafe { Region::contiguous(converted.as_mut_ptr(), converted.len()) };
        Ok(Stream { region, converted })
    }
}

/// Puts the first `bytes` bytes of converted data into the program's buffer; returns how many they are there.
fn unpack(view: &View, buffer: &Buffer, mut data: Vec<u8>, bytes: u64) -> Result<u64> {
    // SAFETY: the program promises that its buffer has room for the elements that it asks for.
    unsafe { view.datarep.unpack(&mut data[..bytes as usize], buffer.base, &buffer.datatype) }
}

impl File {
    /// An offset in etypes as one in bytes of the stream.
    pub(crate) fn stream_offset(&self, view: &View, offset: i64) -> Result<u64> {
        if offset < 0 {
            fail!(MPI_ERR_ARG, "the offset is {offset}, but it must not be negative");
        }
        match (offset as u64).checked_mul(view.etype_size).filter(|bytes| *bytes <= i64::MAX as u64) {
            Some(bytes) => Ok(bytes),
            None => fail!(MPI_ERR_ARG, "the offset of {offset} etypes is beyond what a file can have"),
        }
    }

    /// Whether the access is allowed; the etypes that it is to access.
    fn check(&self, view: &View, direction: Direction, place: Place, buffer: &Buffer) -> Result<i64> {
        match direction {
            Direction::Read => self.check_reads()?,
            Direction::Write => self.check_writes()?,
        }
        if matches!(place, Place::At(_) | Place::Individual) {
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
        if let Place::At(offset) = place {
            self.stream_offset(view, offset)?;
        }
        Ok(count)
    }

    /// Takes the place of an access of so many etypes, and moves the pointer behind it.
    fn claim(&self, place: Place, count: i64) -> Result<i64> {
        match place {
            Place::At(offset) => Ok(offset),
            Place::Individual => {
                let mut position = self.position.lock();
                let at = *position;
                *position += count;
                Ok(at)
            }
            Place::Shared => self.shared.advance(count),
            Place::Ordered => {
                let counts = agree::words(&self.comm, [count as u64])?;
                let sum = |of: &[[u64; 1]]| of.iter().map(|[count]| *count as i64).sum::<i64>();
                let first = if self.comm.rank() == 0 { self.shared.advance(sum(&counts)) } else { Ok(0) };
                let (_, firsts) = agree::on(&self.comm, Ok(()), [first? as u64])?;
                Ok(firsts[0][0] as i64 + sum(&counts[..self.comm.rank() as usize]))
            }
        }
    }

    /// Checks and claims. All processes do their part of claiming an ordered place, whatever is wrong at one of them.
    fn locate(&self, view: &View, direction: Direction, place: Place, buffer: &Buffer) -> Result<(i64, u64)> {
        let checked = self.check(view, direction, place, buffer);
        if checked.is_err() && place == Place::Ordered {
            self.claim(place, 0)?;
        }
        let at = self.claim(place, checked?)?;
        Ok((at, self.stream_offset(view, at)?))
    }

    /// A blocking access; returns the bytes accessed. `together`: by all processes.
    ///
    /// # Errors
    /// `MPI_ERR_ACCESS`, `MPI_ERR_READ_ONLY`, `MPI_ERR_UNSUPPORTED_OPERATION`, `MPI_ERR_ARG`, `MPI_ERR_TYPE`,
    /// `MPI_ERR_CONVERSION`, and those of the system.
    pub fn access(&self, direction: Direction, place: Place, together: bool, buffer: &Buffer) -> Result<u64> {
        let view = self.view();
        let located = self.check_not_begun(together).and_then(|()| self.locate(&view, direction, place, buffer));
        let begun = located.and_then(|(at, from)| Ok((at, from, Stream::new(&view, direction, buffer)?)));
        let moved = if together {
            let mine = begun.as_ref().map(|(_, from, stream)| (*from, &stream.region)).map_err(Clone::clone);
            self.transfer_together(&view, direction.is_write(), mine)
        } else {
            let (_, from, stream) = begun.as_ref().map_err(Clone::clone)?;
            self.core.transfer(&view, direction.is_write(), *from, &stream.region)
        };
        let (at, _, stream) = begun?;
        if place == Place::Individual {
            let (wanted, done) = (stream.region.len() as u64, *moved.as_ref().unwrap_or(&0));
            self.give_back(at, wanted / view.etype_size, done / view.etype_size);
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

    /// The pointer stands behind what was accessed, if that is less than was wanted, and nobody has moved it since.
    fn give_back(&self, at: i64, wanted: u64, done: u64) {
        let mut position = self.position.lock();
        if done < wanted && *position == at + wanted as i64 {
            *position = at + done as i64;
        }
    }

    /// A non-blocking access. `together`: by all processes.
    ///
    /// # Errors
    /// As for [`File::access`], except those of the system.
    pub fn start(&self, direction: Direction, place: Place, together: bool, buffer: Buffer) -> Result<Arc<Request>> {
        self.check_not_begun(together)?;
        self.start_unchecked(direction, place, buffer)
    }

    /// Fails if a split collective access has begun, and this is to be one by all processes too.
    fn check_not_begun(&self, together: bool) -> Result<()> {
        match &*self.begun.lock() {
            Some(open) if together => Err(open.is_in_the_way()),
            _ => Ok(()),
        }
    }

    fn start_unchecked(&self, direction: Direction, place: Place, buffer: Buffer) -> Result<Arc<Request>> {
        let view = self.view();
        let (_, from) = self.locate(&view, direction, place, &buffer)?;
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
    /// `MPI_ERR_IO` if another one has begun, and those of [`File::start`].
    pub fn begin(&self, direction: Direction, split: Split, offset: i64, buffer: Buffer) -> Result<()> {
        let mut begun = self.begun.lock();
        if let Some(open) = &*begun {
            return Err(open.is_in_the_way());
        }
        let place = match split {
            Split::All => Place::Individual,
            Split::AtAll => Place::At(offset),
            Split::Ordered => Place::Ordered,
        };
        let base = buffer.base as usize;
        let request = self.start_unchecked(direction, place, buffer)?;
        *begun = Some(Begun { split, direction, base, request });
        Ok(())
    }

    /// Ends it; returns the bytes accessed.
    ///
    /// # Errors
    /// `MPI_ERR_IO` if no such access has begun, `MPI_ERR_BUFFER`, and those of the system.
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
