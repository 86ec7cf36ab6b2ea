//! The hang doctor.
//!
//! A job hangs when, in every rank that has not left, all threads that use the library wait in it and nothing moves any
//! more: no thread remains that could wake another. [`watch`] detects a hang, [`verdict`] finds the cause, [`explain`]
//! and [`hints`] describe it, and [`jobs`] covers several jobs (all are pure); [`threads`] reads the state of a
//! process's other threads from the kernel.
//!
//! The launcher watches the jobs that it has started. A rank without a launcher watches its own job: [`alone`].

pub mod alone;
pub mod explain;
pub mod hints;
pub mod jobs;
pub mod places;
#[doc(hidden)]
pub mod samples;
pub mod threads;
pub mod verdict;
mod waits;
pub mod watch;
pub mod words;
