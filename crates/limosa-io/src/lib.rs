//! Files (MPI-5 chapter 14): parallel input and output.
//!
//! | module | holds |
//! |---|---|
//! | `file` | the object: opening, closing, size, hints, views, atomic mode |
//! | `amode` | access modes and what they allow |
//! | `system` | the file of the operating system: reads, writes and locks at offsets, and its errors |
//! | `view` | the bytes of the file that a process sees |
//! | `datarep` | representations of data in the file |
//! | `access` | data movement between memory and the pieces of a view, by one process |
//! | `collective` | the same, collectively |
//! | `plan` | division of collective accesses among the processes |
//! | `shares` | pieces of each process in the strips of the file |
//! | `mapped` | collective accesses in the page cache of the file |
//! | `strips`, `messages` | exchange of the data of strips |
//! | `pointers` | individual and shared file pointers |
//! | `calls` | the calls that access data, in all their forms |
//! | `background` | accesses that a thread of the library performs while the program computes |
//! | `agree`, `hints` | helpers of these |
//!
//! Contract
//! - Each process opens the file itself: no two share an open file description, to which locks belong.
//! - All processes of a file agree on the outcome of calls that open, close or change it. Errors of data accesses are
//!   local.
//! - A non-blocking call never waits. Non-blocking collective accesses do not need the other processes at all, so
//!   programs that start them in different orders on different files cannot deadlock.
//! - Functions of the program (conversions of data representations) run only in its own threads.
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

pub use calls::{AccessPosition, Buffer};
pub use datarep::{Conversion, Datarep, Extent, register};
pub use file::{Direction, File, Split, default_errhandler, delete, set_default_errhandler};
