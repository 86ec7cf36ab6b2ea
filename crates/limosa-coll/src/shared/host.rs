//! Shared memory of those members of a communicator that are on one host, for the stages there of composed operations.
//!
//! The note of a stage says which operation it belongs to. The next operation may have no stage here, so no later note
//! describes this one; therefore each rank compares the notes at the end of a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use limosa_p2p::Engine;

use super::{Collective, SharedCall, SharedGroup};
use crate::call_log::CallLog;
use crate::hosts::Hosts;
use crate::kind::Signature;
use crate::numbers::Numbers;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::{Result, error_of};

/// Most stages of an operation inside a host.
const STAGES: u64 = 2;

/// Shared memory of the members on a host.
///
/// Their stages there are numbered by operation, so a rank whose call failed before its first stage stays in step.
pub(crate) struct HostGroup {
    group: SharedGroup,
    numbers: Numbers,
    /// Number of additional calls, by stages that were restarted.
    renewed: AtomicU64,
}

impl HostGroup {
    /// Sets up the shared memory of the members on this host, if possible. All members of the communicator call this,
    /// at its first blocking operation.
    pub(crate) fn establish(comm: &Comm, engine: &Arc<Engine>, hosts: &Hosts, numbers: &Numbers) -> Option<HostGroup> {
        let first = SharedGroup::next_numbers(numbers);
        let group = SharedGroup::establish_part(comm, engine, hosts.here(), first)?;
        Some(HostGroup { group, numbers: Numbers::default(), renewed: AtomicU64::new(0) })
    }

    /// Returns the number of members.
    pub(crate) fn size(&self) -> usize {
        self.group.size()
    }

    /// Whether so many bytes are moved in this memory in such an operation.
    pub(crate) fn can_move(&self, kind: Collective, bytes: usize) -> bool {
        self.group.can_move(kind, bytes)
    }

    /// Runs a stage of the communicator's blocking operation `number`: stage `index` of those in this memory. Both
    /// count from 0.
    ///
    /// # Errors
    /// Errors of `run`.
    pub(crate) fn stage(
        &self,
        comm: &Comm,
        (number, index): (u64, u64),
        (kind, signature): (Collective, Signature),
        run: impl FnOnce(&SharedCall<'_>) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(index < STAGES);
        if index == 0 {
            self.group.follow(number.checked_sub(1).and_then(|before| CallLog::of(comm)?.blocking(before)));
        }
        let number = STAGES * number + index + self.renewed.load(Ordering::Relaxed) + 1;
        self.numbers.skip_to(number);
        let Some(shared_call) = SharedCall::begin(&self.group, comm, &self.numbers, number, kind, signature) else {
            let failure = self.group.engine.lost_group(comm.coll_context());
            return failure.map_or(Ok(()), |failure| Err(error_of(failure)));
        };
        let outcome = run(&shared_call).and_then(|()| shared_call.compare());
        drop(shared_call);
        self.renewed.fetch_add(self.numbers.blocking() - number, Ordering::Relaxed);
        outcome
    }
}
