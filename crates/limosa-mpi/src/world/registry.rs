//! The communicators of a world by context. The engine keeps only the context of an operation under way; here its
//! communicator is found.
//!
//! A world is built before the communicators in it, and knows of each only its group and its peers. It keeps the
//! communicator itself for [`Comm::find`](crate::comm::Comm::find).

use crate::group::Group;
use limosa_p2p::{Concerns, Needs};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::sync::{Arc, Weak};

/// A communicator, for code that knows the type.
type AnyComm = dyn Any + Send + Sync;

/// Record of a communicator.
struct Known {
    comm: Weak<AnyComm>,
    group: Arc<Group>,
    /// [`Comm::peers`](crate::comm::Comm::peers).
    peers: Arc<Group>,
}

/// The communicators of a world.
#[derive(Default)]
pub(crate) struct Registry {
    known: Arc<Mutex<FxHashMap<u64, Known>>>,
    /// What remains of freed communicators whose operations are still under way, with their contexts: enough to report
    /// these operations' errors. No shared memory.
    lingering: Mutex<Vec<(u64, Arc<AnyComm>)>>,
    /// How many communicators were made of groups of sessions, by group and tag.
    from_groups: Mutex<FxHashMap<u64, u64>>,
}

impl Registry {
    /// Enters a communicator.
    pub(crate) fn enrol(&self, context: u64, comm: Weak<AnyComm>, group: Arc<Group>, peers: Arc<Group>) {
        self.known.lock().insert(context, Known { comm, group, peers });
    }

    /// Returns the communicator with this context, unless it has been dropped.
    pub(crate) fn find(&self, context: u64) -> Option<Arc<AnyComm>> {
        self.known.lock().get(&context)?.comm.upgrade()
    }

    /// Returns the group of the communicator with this context, unless it has been dropped.
    pub(super) fn group(&self, context: u64) -> Option<Arc<Group>> {
        let known = self.known.lock();
        known.get(&context).filter(|known| known.comm.strong_count() > 0).map(|known| known.group.clone())
    }

    /// Keeps what remains of a freed communicator, and drops those whose operations are done. `is_busy`: operations are
    /// under way in a context.
    pub(crate) fn keep(&self, remnant: Option<(u64, Arc<AnyComm>)>, is_busy: impl Fn(u64) -> bool) {
        let done: Vec<_> = {
            let mut lingering = self.lingering.lock();
            lingering.extend(remnant);
            lingering.extract_if(.., |(context, _)| !is_busy(*context)).collect()
        };
        drop(done);
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
    pub(crate) fn count_from_group(&self, key: u64) -> u64 {
        let mut counts = self.from_groups.lock();
        let count = counts.entry(key).or_insert(0);
        *count += 1;
        *count
    }

    /// Removes a communicator that is being dropped.
    pub(crate) fn forget(&self, context: u64) {
        let mut known = self.known.lock();
        if known.get(&context).is_some_and(|known| known.comm.strong_count() == 0) {
            known.remove(&context);
        }
    }
}
