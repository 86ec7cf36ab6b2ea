//! Checks of a program's calls on any MPI library behind the MPI-5 standard ABI: `liblimosa_check.so`, which is loaded
//! before the library (`LD_PRELOAD`). `limosa run --mpi NAME --check` does that; Limosa itself has checks of its own.
//!
//! Collective calls are compared between the ranks before they are made ([`collective`], [`agreement`]). Messages are
//! noted by sender and receiver, and compared at `MPI_Finalize` ([`messages`]); there it is also said what was never
//! completed or freed ([`report`]). A correct program is never told anything, and never waits where the standard would
//! not let it: what is not certain is left out.
//!
//! It sees nothing but the ABI. The wrappers are generated from the table (`limosa_api::check`); they call [`calls`]
//! and [`collective`].

// The wrappers have the names and the arguments of the standard.
#![allow(non_snake_case, clippy::too_many_arguments, clippy::unnecessary_cast)]

mod agreement;
mod calls;
mod collective;
mod messages;
mod mpi;
mod names;
mod place;
mod report;
mod signature;
mod state;

use limosa_interpose::entry;
use limosa_interpose::next::Next;

use calls::{Completed, Part};
use collective::{Block, Blocks, Collective};
use state::Begins;

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));
