//! Accesses by all processes of a file together.

use limosa_mpi::error::Result;
use limosa_p2p::memory::Region;

use crate::file::File;
use crate::view::View;

impl File {
    /// Does this process's part of a collective access; `mine` has its place in the stream and its data, or the error
    /// that keeps it from taking part.
    pub(crate) fn transfer_together(&self, view: &View, is_write: bool, mine: Result<(u64, &Region)>) -> Result<u64> {
        let (from, region) = mine?;
        self.core.transfer(view, is_write, from, region)
    }
}
