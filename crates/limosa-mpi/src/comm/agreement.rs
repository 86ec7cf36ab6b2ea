//! What making a communicator needs of the members of another one: that they tell each other some bytes.
//!
//! Collectives do that, which are a layer above this one. Whoever initialises the library plugs them in, before the first communicator is made.

use super::Comm;
use crate::error::Result;
use crate::fail;
use std::sync::OnceLock;

/// How the members of a communicator tell each other something.
pub trait Agreement: Send + Sync {
    /// Tells all members the bytes of each, which have the same length everywhere; returns them in rank order. All members must call it, in the order
    /// in which they call collectives.
    ///
    /// # Errors
    /// Errors of the machine.
    fn allgather_bytes(&self, comm: &Comm, mine: &[u8]) -> Result<Vec<u8>>;
}

static PLUGGED_IN: OnceLock<&'static dyn Agreement> = OnceLock::new();

/// Says how members agree. The first one stays.
pub fn plug_in(agreement: &'static dyn Agreement) {
    PLUGGED_IN.get_or_init(|| agreement);
}

/// [`Agreement::allgather_bytes`].
pub(super) fn allgather_bytes(comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    match PLUGGED_IN.get() {
        Some(agreement) => agreement.allgather_bytes(comm, mine),
        None => fail!(MPI_ERR_INTERN, "this library was initialised without collectives"),
    }
}
