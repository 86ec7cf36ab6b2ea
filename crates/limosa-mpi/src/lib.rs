//! The MPI standard in Rust: objects and semantics, without the C ABI.

pub mod attr;
pub mod bsend;
pub mod check;
pub mod comm;
pub mod consts;
pub mod datatype;
pub mod dynamic;
pub mod errhandler;
pub mod error;
pub mod error_code;
mod error_detail;
pub mod grequest;
pub mod group;
pub mod headers;
pub mod info;
pub mod instance;
pub mod leftovers;
pub mod light;
pub mod mix;
pub mod observe;
pub mod op;
pub mod operation;
pub mod p2p;
pub mod partitioned;
pub mod process_sets;
pub mod request;
pub mod session;
pub mod tool;
pub mod topo;
mod transfer;
pub mod world;

pub use error::{Error, Result};
pub use limosa_p2p::Short;
pub use limosa_p2p::memory::Region;
