//! The MPI standard in Rust: objects and semantics, without the C ABI.

pub mod consts;
pub mod error;

pub use error::{Error, Result};
