//! The communicators of a world by context. The engine keeps only the context of an operation under way; here its
//! communicator is found.

use super::Comm;
use crate::group::Group;
use limosa_p2p::{Concerns, Needs};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// What is known about a communicator.
struct Known {
    comm: Weak<Comm>,
    group: Arc<Group>,
    /// [`Comm::peers`].
    peers: Arc<Group>,
}

/// The communicators of a world.
#[derive(Default)]
pub struct Registry {
    known: Arc<Mutex<FxHashMap<u64, Known>>>,
    /// What remains of freed communicators whose operations are still under way: enough to report these operations'
    /// errors. No shared memory.
    lingering: Mutex<Vec<Arc<Comm>>>,
    /// How many communicators were made of groups of sessions, by group and tag.
    from_groups: Mutex<FxHashMap<u64, u64>>,
}

impl Registry {
    /// Returns the communicator with this context, unless it has been dropped.
    pub(crate) fn find(&self, context: u64) -> Option<Arc<Comm>> {
        self.known.lock().get(&context)?.comm.upgrade()
    }

    /// Returns a function that tells which operations may need a process: those that name it, those with any member of
    /// a communicator that it is a member of, and all that belong to a collective of such a communicator. It holds no
    /// communicator meanwhile, since dropping the last reference to a communicator calls the engine, which calls this.
    pub(crate) fn concerns(&self) -> Box<Concerns> {
        let known = self.known.clone();
        Box::new(move |context, needs, process| {
            let groups = known.lock().get(&(context & !1)).map(|known| (known.group.clone(), known.peers.clone()));
            let is_collective = context & 1 == 1;
            let Some((group, peers)) = groups else { return is_collective || needs != Needs::Living };
            match needs {
                Needs::Rank(rank) if !is_collective => peers.world_rank(rank as usize) == Some(process),
                Needs::Living if !is_collective => false,
                _ => group.rank_of(process).is_some() || peers.rank_of(process).is_some(),
            }
        })
    }

    /// Counts a communicator that is made of a group of a session; `key` stands for group and tag.
    pub(super) fn count_from_group(&self, key: u64) -> u64 {
        let mut counts = self.from_groups.lock();
        let count = counts.entry(key).or_insert(0);
        *count += 1;
        *count
    }

    /// Removes a communicator that is being dropped.
    pub(super) fn forget(&self, context: u64) {
        let mut known = self.known.lock();
        if known.get(&context).is_some_and(|known| known.comm.strong_count() == 0) {
            known.remove(&context);
        }
    }
}

/// Enters a communicator in its world's registry.
pub(super) fn enrol(comm: Comm) -> Arc<Comm> {
    let comm = Arc::new(comm);
    let known = Known { comm: Arc::downgrade(&comm), group: comm.group().clone(), peers: comm.peers().clone() };
    comm.world().comms.known.lock().insert(comm.context(), known);
    comm
}

/// Keeps the part of a freed communicator that operations under way need, until these are done.
pub(super) fn retire(comm: &Comm) {
    let world = comm.world();
    let Some(engine) = world.engine_if_any() else { return };
    let busy = |comm: &Comm| engine.has_labelled(comm.context());
    let remnant = busy(comm).then(|| enrol(comm.remnant()));
    let done: Vec<Arc<Comm>> = {
        let mut lingering = world.comms.lingering.lock();
        lingering.extend(remnant);
        lingering.extract_if(.., |comm| !busy(comm)).collect()
    };
    drop(done);
}
