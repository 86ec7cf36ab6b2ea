//! How communicators enter their world's registry, and leave it.

use super::Comm;
use crate::world::World;
use std::any::Any;
use std::sync::{Arc, Weak};

impl Comm {
    /// Returns the communicator of a world with this context, unless it has been dropped.
    pub(crate) fn find(world: &World, context: u64) -> Option<Arc<Comm>> {
        world.comms.find(context)?.downcast().ok()
    }
}

/// Enters a communicator in its world's registry.
pub(super) fn enrol(comm: Comm) -> Arc<Comm> {
    let comm = Arc::new(comm);
    let weak: Weak<Comm> = Arc::downgrade(&comm);
    comm.world().comms.enrol(comm.context(), weak, comm.group().clone(), comm.peers().clone());
    comm
}

/// Keeps the part of a freed communicator that operations under way need, until these are done.
pub(super) fn retire(comm: &Comm) {
    let world = comm.world();
    let Some(engine) = world.engine_if_any() else { return };
    let is_busy = |context| engine.has_labelled(context);
    let remnant = is_busy(comm.context()).then(|| enrol(comm.remnant()));
    let remnant = remnant.map(|comm| (comm.context(), comm as Arc<dyn Any + Send + Sync>));
    world.comms.keep(remnant, is_busy);
}
