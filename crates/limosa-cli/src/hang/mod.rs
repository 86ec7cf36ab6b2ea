//! The hang doctor.
//!
//! A job hangs when every rank that has not left sleeps inside the library with all threads that use it, and nothing happens any more. Then
//! nobody is left who could wake anybody. [`watch`] notices it, [`explain`] says why (both pure), [`stacks`] finds the source lines.

pub mod explain;
pub mod stacks;
pub mod watch;
