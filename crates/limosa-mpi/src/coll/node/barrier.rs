//! Barrier.
//!
//! With a processor for every rank, each posts a note and looks at all the others: one flag's time. When ranks share processors the last to arrive
//! posts the note of the group, so that the others look at one line, not at all.

use super::select;
use super::turn::Turn;
use crate::error::Result;

/// Waits until all ranks are in this turn.
pub(in crate::coll) fn barrier(turn: &Turn<'_>) -> Result<()> {
    if !select::meets_in_the_middle(turn.node) {
        turn.sign()?;
        return turn.wait_for_all();
    }
    if turn.arrive()? {
        turn.post_bytes_for_all(&[]);
    } else {
        turn.wait_for(turn.size())?;
    }
    turn.node.raise_floor(turn.number() - 1);
    Ok(())
}
