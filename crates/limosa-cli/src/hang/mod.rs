//! The hang doctor.
//!
//! A job hangs when, in every rank that has not left, all threads that use the library wait in it, and nothing happens
//! any more: no thread remains that could wake another. [`watch`] detects it, [`verdict`] finds out why, [`explain`] and
//! [`hints`] say it (all are pure), [`stacks`] finds the source lines.

pub mod explain;
pub mod hints;
pub mod stacks;
pub mod verdict;
pub mod watch;
