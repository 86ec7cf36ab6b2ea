//! Memory that those members of a communicator share who are on one host, for the stages there of operations that are
//! composed over hosts.
//!
//! A stage says in its note which operation it belongs to. The next operation may have no stage here, so that no later
//! note speaks of this one; therefore each rank compares the notes at the end of a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use limosa_p2p::Engine;

use super::{Kind, SharedCall, SharedGroup};
use crate::call_log::CallLog;
use crate::hosts::Hosts;
use crate::kind::Signature;
use crate::numbers::Numbers;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::{Result, error_of};

/// Stages inside a host that an operation has at most.
const STAGES: u64 = 2;

/// Memory that the members on a host share.
///
/// Their stages there are numbered by the operation that they belong to, so that a rank stays in step whose call failed
/// before its first stage.
pub(crate) struct HostGroup {
    group: SharedGroup,
    numbers: Numbers,
    /// How many more numbers were used: by stages that began anew.
    renewed: AtomicU64,
}

impl HostGroup {
    /// Sets up what the members on this host share, if they can. All members of the communicator call this, at its
    /// first blocking operation.
    pub(crate) fn establish(comm: &Comm, engine: &Arc<Engine>, hosts: &Hosts, numbers: &Numbers) -> Option<HostGroup> {
        let first = SharedGroup::next_numbers(numbers);
        let group = SharedGroup::establish_part(comm, engine, hosts.here(), first)?;
        Some(HostGroup { group, numbers: Numbers::default(), renewed: AtomicU64::new(0) })
    }

    /// Number of members.
    pub(crate) fn size(&self) -> usize {
        self.group.size()
    }

    /// Whether so many bytes are moved in this memory in such an operation.
    pub(crate) fn can_move(&self, kind: Kind, bytes: usize) -> bool {
        self.group.can_move(kind, bytes)
    }

    /// Does a stage of blocking operation `number`, from 0, of the communicator: the one with this index among those in
    /// this memory, from 0.
    ///
    /// # Errors
    /// Those of `run`.
    pub(crate) fn stage(
        &self,
        comm: &Comm,
        (number, index): (u64, u64),
        (kind, signature): (Kind, Signature),
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
