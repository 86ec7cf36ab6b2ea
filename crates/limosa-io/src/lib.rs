//! Files (MPI-5 chapter 14): parallel input and output.
//!
//! | module | holds |
//! |---|---|
//! | `file` | the object: opening, closing, size, hints, views, atomic mode |
//! | `amode` | access modes and what they allow |
//! | `system` | the file of the operating system: reads, writes and locks at offsets, and its errors |
//! | `view` | which bytes of the file a process sees |
//! | `datarep` | representations of data in the file |
//! | `access` | moving data between memory and the pieces of a view, by one process |
//! | `collective` | the same by all processes of a file together |
//! | `plan` | how these divide the work |
//! | `shares` | what each of them has in the strips of the file |
//! | `mapped` | how each moves its own data, in the system's pages of the file |
//! | `strips`, `messages` | how they exchange the data of strips |
//! | `pointers` | individual and shared file pointers |
//! | `calls` | the calls that access data, in all their forms |
//! | `background` | accesses that a thread of the library does while the program goes on |
//! | `agree`, `hints` | what these need |
//!
//! Contract
//! - Each process opens the file itself: no two share a description of the operating system, to which locks belong.
//! - All processes of a file agree on the outcome of the calls that open, close or change it. Errors of data accesses
//!   are those of the process that has them.
//! - A non-blocking call never waits. Non-blocking collective accesses do not need the other processes at all, so that
//!   programs which start them in different orders on different files cannot deadlock.
//! - Functions of the program (conversions of data representations) run in its own threads only.
//! - Outside atomic mode, concurrent accesses to different bytes never disturb each other, whatever the library reads
//!   and writes back.

mod access;
mod agree;
mod amode;
mod background;
mod calls;
mod collective;
mod datarep;
mod file;
mod hints;
mod mapped;
mod messages;
mod plan;
mod pointers;
mod shares;
mod strips;
mod system;
mod view;

pub use calls::{Buffer, Direction, Place, Split};
pub use datarep::{Conversion, Datarep, Extent, register};
pub use file::{File, default_errhandler, delete, set_default_errhandler};
