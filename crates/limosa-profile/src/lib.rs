//! A profiler for any MPI library behind the MPI-5 standard ABI: `liblimosa_profile.so`, which is loaded before the
//! library (`LD_PRELOAD`), exports the standard's functions, records each call and passes it on. `limosa run --profile`
//! does that.
//!
//! It depends only on the ABI. A process records into a memory-mapped file (`record`), so nothing is lost when the
//! process is killed, and its exit needs no action. The laboratory reads these files (`limosa_lab.profile`).
//!
//! The wrappers are generated from the table (`limosa_api::profile`).

// The wrappers have the names and the arguments of the standard.
#![allow(
    non_snake_case,
    clippy::too_many_arguments,
    clippy::unit_arg,
    clippy::let_unit_value,
    clippy::unnecessary_cast
)]

mod bytes;
mod file;
mod names;
mod record;
mod requests;

use limosa_interpose::entry;
use limosa_interpose::next::{IN_PLACE, Next};

use bytes::{OwnStatus, Received, bytes_of, bytes_of_blocks};
use record::{Call, Details, Facts, Object};
use requests::{Asked, number_at};

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
