//! The hang doctor of the launcher: the analysis is that of `limosa-hang`, [`stacks`] finds the source lines.

pub use limosa_hang::{alone, explain, jobs, watch};

mod java_stacks;
pub mod stacks;
