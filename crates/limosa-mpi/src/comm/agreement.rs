//! The exchange of bytes among the members of a communicator that making another communicator needs.
//!
//! Collectives do it, and they are a layer above this one. The initialisation of the library registers them before the
//! first communicator is made.

use super::Comm;
use crate::error::Result;
use crate::fail;
use std::sync::OnceLock;

/// How the members of a communicator exchange bytes.
pub trait Agreement: Send + Sync {
    /// Gives all members the bytes of each, in rank order; the length is the same on all. All members must call it, in
    /// the order in which they call collectives.
    ///
    /// # Errors
    /// Errors of the machine.
    fn allgather_bytes(&self, comm: &Comm, mine: &[u8]) -> Result<Vec<u8>>;

    /// Gives each member the part of bytes for it from each, of any length, in rank order. As above.
    ///
    /// # Errors
    /// Errors of the machine.
    fn alltoall_bytes(&self, comm: &Comm, parts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>>;
}

static PLUGGED_IN: OnceLock<&'static dyn Agreement> = OnceLock::new();

/// Registers how bytes are exchanged. The first registration stays.
pub fn plug_in(agreement: &'static dyn Agreement) {
    PLUGGED_IN.get_or_init(|| agreement);
}

/// [`Agreement::allgather_bytes`].
pub(super) fn allgather_bytes(comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    plugged_in()?.allgather_bytes(comm, mine)
}

/// [`Agreement::alltoall_bytes`].
pub(super) fn alltoall_bytes(comm: &Comm, parts: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    plugged_in()?.alltoall_bytes(comm, parts)
}

fn plugged_in() -> Result<&'static dyn Agreement> {
    match PLUGGED_IN.get() {
        Some(agreement) => Ok(*agreement),
        None => fail!(MPI_ERR_INTERN, "this library was initialised without collectives"),
    }
}
