//! Communicators by context: for calls that know a message's context only, which is all that the engine keeps of an operation under way.

use super::Comm;
use crate::instance;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, LazyLock, Weak};

static KNOWN: LazyLock<Mutex<FxHashMap<u64, Weak<Comm>>>> = LazyLock::new(Mutex::default);

/// Freed communicators whose operations are still under way: they hear of those operations' errors.
static LINGERING: Mutex<Vec<Arc<Comm>>> = Mutex::new(Vec::new());

/// Makes a communicator known.
pub(super) fn enrol(comm: Comm) -> Arc<Comm> {
    let comm = Arc::new(comm);
    KNOWN.lock().insert(comm.context(), Arc::downgrade(&comm));
    comm
}

/// The communicator with this context, if it is still there.
pub(crate) fn find(context: u64) -> Option<Arc<Comm>> {
    KNOWN.lock().get(&context)?.upgrade()
}

/// Forgets a communicator that is going.
pub(super) fn strike(context: u64) {
    let mut known = KNOWN.lock();
    if known.get(&context).is_some_and(|comm| comm.strong_count() == 0) {
        known.remove(&context);
    }
}

/// A communicator has been freed by its user: it is kept while operations on it are under way.
pub(super) fn retire(comm: &Arc<Comm>) {
    let Some(instance) = instance::get() else { return };
    let busy = |comm: &Arc<Comm>| instance.engine().has_labelled(comm.context());
    let done: Vec<Arc<Comm>> = {
        let mut lingering = LINGERING.lock();
        if busy(comm) {
            lingering.push(comm.clone());
        }
        lingering.extract_if(.., |comm| !busy(comm)).collect()
    };
    drop(done);
}
