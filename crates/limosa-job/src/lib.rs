//! The job: what a rank and the launcher know of each other.
//!
//! A job is a number of ranks (processes). Those of one machine share one *segment*, an anonymous memory file made by
//! the launcher, or on other hosts by its agent. The file begins with the job's description and the *status board*;
//! behind it, from [`Job::device_offset`] on, it belongs to the device that moves messages. Nothing of a job has a name
//! in a file system, so nothing can be left behind.
//!
//! - [`Job::attach`] makes the calling process a rank of its job, or a job of one if it was not launched;
//! - [`Board`] is the status board: what each rank waits for, which ranks have left or aborted. Ranks write their own
//!   [`Seat`]; the launcher, `limosa ps` and the hang doctor read [`RankView`]s;
//! - [`site`] speaks with launchers of others, which may have started the process;
//! - [`log`] shows what the library does;
//! - [`config`] declares every `LIMOSA_*` variable.
//!
//! Contract:
//! - this crate knows no MPI words: names of calls and communicators are opaque text;
//! - what is read from the segment is untrusted: lengths, kinds and text are checked, and a wrong value never leads
//!   outside the mapping.

mod board;
mod card;
pub mod config;
pub mod control;
mod deaths;
mod error;
mod foreign;
mod hosts;
mod job;
mod launch;
mod layout;
pub mod log;
mod names;
pub mod site;
mod sys;
mod view;

pub use board::{Asleep, Board, Polling, Seat, Shape, Spawner};
pub use card::CARD_BYTES;
pub use error::JobError;
pub use hosts::HostPlan;
pub use job::{Job, processors, spare_ranks};
pub use layout::{MAX_RANKS, MOST_COUNTED, WAITS};
pub use names::{
    ENV_COLL_TUNED, ENV_FD, ENV_HOST_ADDRESS, ENV_ID, ENV_LOCAL_RANK, ENV_LOCAL_SIZE, ENV_PID, ENV_RANK, ENV_SIZE,
    MEMFD_PREFIX, MEMFD_SINGLE,
};
pub use sys::{monotonic_ns, thread_id};
pub use view::{Abort, Blocked, Kind, Lying, LyingView, Peer, RankView, Record, State, Wait, WaitView};
