//! The hang doctor.
//!
//! A job hangs when, in every rank that has not left, all threads that use the library sleep in it, and nothing happens
//! any more: no thread remains that could wake another. [`watch`] detects it, [`explain`] says why (both are pure),
//! [`stacks`] finds the source lines.

pub mod explain;
pub mod stacks;
pub mod watch;
