//! The communicators of a world by context: for calls that know a message's context only, which is all that the engine keeps of an operation under
//! way.

use super::Comm;
use crate::group::Group;
use limosa_p2p::Concerns;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Weak};

/// What is known of a communicator.
struct Known {
    comm: Weak<Comm>,
    group: Arc<Group>,
}

/// The communicators of a world.
#[derive(Default)]
pub struct Registry {
    known: Arc<Mutex<FxHashMap<u64, Known>>>,
    /// What is left of freed communicators whose operations are still under way: it hears of those operations' errors, and shares no memory.
    lingering: Mutex<Vec<Arc<Comm>>>,
}

impl Registry {
    /// The communicator with this context, if it is still there.
    pub(crate) fn find(&self, context: u64) -> Option<Arc<Comm>> {
        self.known.lock().get(&context)?.comm.upgrade()
    }

    /// Which receives may need a process: those that name it, and those from any member of a communicator that it is a member of. Holds no
    /// communicator meanwhile, since whoever lets go of the last reference to one calls the engine, which asks this.
    pub(crate) fn concerns(&self) -> Box<Concerns> {
        let known = self.known.clone();
        Box::new(move |context, source, process| {
            let group = known.lock().get(&(context & !1)).map(|known| known.group.clone());
            group.is_none_or(|group| match source {
                Some(rank) => group.world_rank(rank as usize) == Some(process),
                None => group.rank_of(process).is_some(),
            })
        })
    }

    /// Forgets a communicator that is going.
    pub(super) fn forget(&self, context: u64) {
        let mut known = self.known.lock();
        if known.get(&context).is_some_and(|known| known.comm.strong_count() == 0) {
            known.remove(&context);
        }
    }
}

/// Makes a communicator known to its world.
pub(super) fn enrol(comm: Comm) -> Arc<Comm> {
    let comm = Arc::new(comm);
    let known = Known { comm: Arc::downgrade(&comm), group: comm.group().clone() };
    comm.world().comms.known.lock().insert(comm.context(), known);
    comm
}

/// A communicator has been freed by its user: what operations under way need of it is kept until they are done.
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
