//! Barrier.
//!
//! With a processor for every rank, each posts a note and looks at all the others: one flag's time. When ranks share processors the last to arrive
//! posts the note of the group, so that the others look at one line, not at all.

use super::call::SharedCall;
use super::select;
use crate::notes::Note;
use limosa_mpi::error::Result;

/// Waits until all ranks are in this call.
pub(crate) fn barrier(shared_call: &SharedCall<'_>) -> Result<()> {
    if !select::meets_in_the_middle(shared_call.group) {
        shared_call.sign()?;
        return shared_call.wait_for_all();
    }
    if shared_call.arrive()? {
        shared_call.post_for_all(&Note::signal());
    } else {
        shared_call.wait_for(shared_call.size())?;
    }
    shared_call.group.raise_floor(shared_call.number() - 1);
    Ok(())
}
