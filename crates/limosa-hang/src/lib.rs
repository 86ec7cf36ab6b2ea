//! The hang doctor: decides from copies of the status board whether a job is stuck, and why.
//!
//! A job hangs when, in every rank that has not left, all threads that use the library wait in it, and nothing happens
//! any more: no thread remains that could wake another. [`watch`] detects it, [`verdict`] finds out why, [`explain`] and
//! [`hints`] say it, also over several jobs: [`jobs`] (all are pure); [`threads`] asks the kernel what other threads of a process do.
//!
//! The launcher looks after the jobs that it has started. A rank without a launcher looks after itself: [`alone`].

#![forbid(unsafe_code)]

pub mod alone;
pub mod explain;
pub mod hints;
pub mod jobs;
pub mod places;
#[doc(hidden)]
pub mod samples;
pub mod threads;
pub mod verdict;
pub mod watch;
pub mod words;
