//! MPI-5 as data, and the generators that read it.
//!
//! `mpi5.json` describes the interface of the MPI-5 standard and of its ABI (chapter 20): every function with the kind
//! and direction of its parameters, every constant with its value, and the handle types. `roles.json` adds what the
//! Forum's description does not say ([`roles`], `api/README.md`). [`Table::load`] parses both; the other modules each
//! render one thing from the table. This crate runs at build time only; the library does not contain it.
//!
//! - [`check`] — the wrappers of the checker, for `limosa-check`
//! - [`consts`] — Rust constants, for `limosa-mpi`
//! - [`entry`] — the exported functions, for `limosa-abi`
//! - [`fortran`] — `mpif.h`, the modules `mpi` and `mpi_f08`, the C functions behind them
//! - [`header`] — `mpi.h`
//! - [`coverage`] — `docs/coverage.md`
//! - [`java`] — the bindings for Java
//! - [`mpich`], [`openmpi`] — the facts about the ABIs of MPICH and Open MPI
//! - [`octave`] — the module `mpitb` for Octave
//! - [`profile`] — the wrappers of the profiler, for `limosa-profile`
//! - [`translation`] — the translation of these ABIs, for `limosa-mpich` and `limosa-openmpi`

#![forbid(unsafe_code)]

pub mod check;
pub mod consts;
pub mod coverage;
pub mod entry;
pub mod fortran;
pub mod header;
pub mod java;
pub mod mpich;
pub mod octave;
pub mod openmpi;
pub mod profile;
pub mod roles;
mod table;
pub mod translation;

pub use table::{Arg, Array, Constant, Direction, Function, HandleType, Kind, Param, Status, Table, Value};
