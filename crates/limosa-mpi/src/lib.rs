//! The MPI standard in Rust: objects and semantics, without the C ABI.

pub mod attr;
pub mod coll;
pub mod comm;
pub mod consts;
pub mod datatype;
pub mod errhandler;
pub mod error;
pub mod error_code;
pub mod group;
pub mod info;
pub mod op;
pub mod topo;
pub mod request;
pub mod p2p;
pub mod observe;
pub mod instance;
pub mod bsend;

pub use error::{Error, Result};
pub use limosa_p2p::memory::Region;
