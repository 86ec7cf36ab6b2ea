//! Requests (MPI-5 sections 3.7 and 3.9): operations under way, completed operations, and persistent operations.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | inactive | a persistent operation that is not started, or an operation whose end was taken | starting |
//! | starting | a thread starts the operation | active; inactive if that failed |
//! | active | the operation is under way, or has ended and its end has not been taken | ending |
//! | ending | a thread takes the end, or frees the request | inactive; active if it has not ended |
//!
//! A request does not know the kind of its operation: see [`Operation`]. The end is taken exactly once for each start,
//! by [`Request::take`]. A `None` in a list of requests stands for `MPI_REQUEST_NULL`.

use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::observe::{self, Awaits, Sleeper, Waiting};
use crate::operation::{Completed, End, Operation, StateWord};
use crate::transfer::Transfer;
use crate::world;
use limosa_p2p::{Engine, Interrupted};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

const INACTIVE: u8 = 0;
const STARTING: u8 = 1;
const ACTIVE: u8 = 2;
const ENDING: u8 = 3;

/// An operation under way, or a persistent one.
pub struct Request {
    word: StateWord,
    held: Held,
    is_persistent: bool,
    comm: Option<Arc<Comm>>,
    /// The handle under which the ABI layer registered the request.
    pub handle: AtomicUsize,
}

/// The operation. A transfer that lives in the engine gets an object for the duration of a call only (see
/// [`crate::light`]), which takes one block of memory instead of two.
enum Held {
    Light(Transfer),
    Any(Arc<dyn Operation>),
}

impl Request {
    fn new(state: u8, held: Held, is_persistent: bool, comm: Option<Arc<Comm>>) -> Arc<Request> {
        Arc::new(Request { word: StateWord::new(state), held, is_persistent, comm, handle: AtomicUsize::new(0) })
    }

    /// Makes a request that is complete from the beginning.
    pub fn done(comm: Option<&Arc<Comm>>, end: End) -> Arc<Request> {
        Request::under_way(comm, Arc::new(Completed(end)))
    }

    /// Makes the request of an operation that the caller starts once.
    pub fn under_way(comm: Option<&Arc<Comm>>, operation: Arc<dyn Operation>) -> Arc<Request> {
        Request::new(ACTIVE, Held::Any(operation), false, comm.cloned())
    }

    /// Makes the request of a transfer that is under way in the engine.
    pub(crate) fn light(comm: Option<Arc<Comm>>, transfer: Transfer) -> Arc<Request> {
        Request::new(ACTIVE, Held::Light(transfer), false, comm)
    }

    /// Makes the request of a persistent operation, to be started by [`Request::start`].
    pub fn persistent(comm: &Arc<Comm>, operation: Arc<dyn Operation>) -> Arc<Request> {
        Request::new(INACTIVE, Held::Any(operation), true, Some(comm.clone()))
    }

    /// Returns the communicator whose error handler gets the errors.
    pub fn comm(&self) -> Option<&Arc<Comm>> {
        self.comm.as_ref()
    }

    /// Returns the handle of the window whose error handler gets the errors, for operations on windows.
    pub fn window(&self) -> Option<usize> {
        self.operation().window()
    }

    /// True for persistent operations: they become inactive when they end, and the request stays.
    pub fn is_persistent(&self) -> bool {
        self.is_persistent
    }

    /// Whether it owns shared memory, or much memory: its operation does, or it is the last to use a communicator.
    pub fn keeps_memory(&self) -> bool {
        self.comm.as_ref().is_some_and(|comm| comm.is_freed()) || self.operation().keeps_memory()
    }

    /// True unless this is a persistent operation that is not started.
    pub fn is_active(&self) -> bool {
        matches!(self.word.load().state, ACTIVE | ENDING)
    }

    /// What the operation waits for, or has waited for.
    pub fn awaits(&self) -> Option<Awaits<'_>> {
        self.operation().awaits()
    }

    /// Returns the handle of the file whose error handler gets the errors, if it is a file's.
    pub fn file(&self) -> Option<usize> {
        self.operation().file()
    }

    /// Returns the bytes of its buffer, if they are known.
    pub fn bytes(&self) -> Option<u64> {
        self.operation().bytes()
    }

    #[inline]
    fn operation(&self) -> &dyn Operation {
        match &self.held {
            Held::Light(transfer) => transfer,
            Held::Any(operation) => &**operation,
        }
    }

    /// Returns the operation, if it is one of this kind: for calls that only one kind has.
    pub fn operation_as<T: Operation>(&self) -> Option<&T> {
        let Held::Any(operation) = &self.held else { return None };
        let operation: &dyn Any = &**operation;
        operation.downcast_ref()
    }

    /// Returns the operation, if it is active.
    #[inline]
    fn active(&self) -> Option<&dyn Operation> {
        self.is_active().then(|| self.operation())
    }

    /// Whether the operation has ended, without progress in the engine. Inactive operations count as ended.
    pub fn is_done(&self) -> bool {
        self.active().is_none_or(|operation| operation.progress())
    }

    /// Takes the end of an operation that has ended; `None` if it has not. An inactive request always returns the empty
    /// end.
    pub fn take(&self) -> Option<End> {
        let now = self.word.load();
        if now.state == INACTIVE {
            return Some(End::empty());
        }
        if !self.word.advance(now.number, ACTIVE, ENDING) {
            // Another thread starts it, or takes the end.
            return None;
        }
        let end = self.operation().finish();
        self.word.set(now.number, if end.is_some() { INACTIVE } else { ACTIVE });
        end
    }

    /// Returns a copy of the end of an operation that has ended; it can still be taken (`MPI_Request_get_status`).
    pub fn look(&self) -> Option<End> {
        match self.active() {
            None => Some(End::empty()),
            Some(operation) => operation.look(),
        }
    }

    /// Starts a persistent operation (`MPI_Start`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` if it is not persistent, or active; those of the operation.
    pub fn start(&self) -> Result<()> {
        let Held::Any(operation) = &self.held else {
            return not_persistent();
        };
        if !self.is_persistent {
            return not_persistent();
        }
        let number = self.word.load().number;
        if !self.word.advance(number, INACTIVE, STARTING) {
            fail!(MPI_ERR_REQUEST, "the request is active already: complete it before it is started again");
        }
        match operation.clone().start() {
            Ok(()) => self.word.set(number + 1, ACTIVE),
            Err(error) => {
                self.word.set(number, INACTIVE);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Asks for cancellation (`MPI_Cancel`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for operations that cannot be cancelled, and for inactive ones.
    pub fn cancel(&self) -> Result<()> {
        match self.active() {
            None => fail!(MPI_ERR_REQUEST, "the request is inactive: there is nothing to cancel"),
            Some(operation) => operation.cancel(),
        }
    }

    /// Frees the request: the operation completes, and its end is dropped (`MPI_Request_free`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for an active operation that cannot be freed.
    pub fn release(&self) -> Result<()> {
        let number = self.word.load().number;
        if !self.word.advance(number, ACTIVE, ENDING) {
            return Ok(());
        }
        let released = self.operation().release();
        self.word.set(number, if released.is_ok() { INACTIVE } else { ACTIVE });
        released
    }
}

#[cold]
fn not_persistent() -> Result<()> {
    fail!(MPI_ERR_REQUEST, "only persistent requests can be started, and this one is not")
}

/// Lists what those of these requests wait for that have not ended.
fn list_awaits(requests: &[Option<Arc<Request>>], tell: &mut dyn FnMut(Awaits<'_>)) {
    let open = requests.iter().flatten().filter(|request| !request.is_done());
    open.filter_map(|request| request.operation().awaits()).for_each(tell);
}

/// Active operations; the engine's condition reads their states.
type Open<'a> = SmallVec<[&'a dyn Operation; 8]>;

/// Waits until all requests have ended; their ends can then be taken.
///
/// # Errors
/// [`Interrupted`]: some are still under way.
pub fn wait_all(requests: &[Option<Arc<Request>>]) -> std::result::Result<(), Interrupted> {
    let list = |tell: &mut dyn FnMut(Awaits<'_>)| list_awaits(requests, tell);
    let waiting = Waiting::several(&list, true);
    let active = requests.iter().flatten().filter_map(|request| request.active());
    // In its place: a list that is returned is copied, room and all.
    let mut open: Open<'_> = SmallVec::new();
    for operation in active {
        if !operation.wait(&waiting)? {
            open.push(operation);
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    engine_of(requests).block_on(
        &mut |view| {
            while let Some(last) = open.last() {
                if !last.is_ready(view) {
                    return false;
                }
                open.pop();
            }
            true
        },
        &waiting,
    )
}

/// As [`wait_all`], whatever the program wants: for requests that end by themselves.
pub fn wait_for_certain(requests: &[Option<Arc<Request>>]) {
    while wait_all(requests).is_err() {}
}

/// Waits until one of the active requests has ended and returns the first such; `None` if none is active.
///
/// # Errors
/// [`Interrupted`]: all are still under way.
pub fn wait_any(requests: &[Option<Arc<Request>>]) -> std::result::Result<Option<usize>, Interrupted> {
    let open: SmallVec<[Option<&dyn Operation>; 8]> =
        requests.iter().map(|request| request.as_ref()?.active()).collect();
    if open.iter().all(Option::is_none) {
        return Ok(None);
    }
    let list = |tell: &mut dyn FnMut(Awaits<'_>)| list_awaits(requests, tell);
    let sleeper = Sleeper {
        waiting: &Waiting::several(&list, false),
        begin_sleep: &|| open.iter().flatten().for_each(|operation| operation.begin_sleep()),
        end_sleep: &|| open.iter().flatten().for_each(|operation| operation.end_sleep()),
    };
    loop {
        let mut found = None;
        engine_of(requests).block_on(
            &mut |view| {
                found = open.iter().position(|operation| operation.is_some_and(|operation| operation.is_ready(view)));
                found.is_some()
            },
            &sleeper,
        )?;
        // What is ready may still have to be finished.
        if found.is_some_and(|at| open[at].is_some_and(|operation| operation.progress())) {
            return Ok(found);
        }
    }
}

/// Returns the engine that works on these requests: all requests of a list are of one world.
fn engine_of(requests: &[Option<Arc<Request>>]) -> &Arc<Engine> {
    engine_if_any(requests).expect("started requests have an engine")
}

fn engine_if_any(requests: &[Option<Arc<Request>>]) -> Option<&Arc<Engine>> {
    let of_comm = requests.iter().flatten().find_map(|request| request.comm()?.engine_if_any());
    of_comm.or_else(|| world::of_job_if_any().map(|world| world.engine()))
}

/// Makes progress once, if there is an engine.
fn poll(requests: &[Option<Arc<Request>>]) {
    if let Some(engine) = engine_if_any(requests) {
        engine.poll();
    }
}

/// Whether all requests have ended; makes progress once if not.
pub fn test_all(requests: &[Option<Arc<Request>>]) -> bool {
    let all = || requests.iter().flatten().all(|r| r.is_done());
    all() || {
        poll(requests);
        all() || {
            tested_in_vain(requests);
            false
        }
    }
}

/// Notes that the program has asked about these requests, none of which has ended.
pub fn tested_in_vain(requests: &[Option<Arc<Request>>]) {
    observe::polled(requests.len() as u64, &|tell| list_awaits(requests, tell));
}

/// Returns the active requests that have ended, after making progress if there were none; `None` if none is active.
pub fn test_some(requests: &[Option<Arc<Request>>]) -> Option<Vec<usize>> {
    let active: Vec<usize> =
        (0..requests.len()).filter(|&i| requests[i].as_ref().is_some_and(|r| r.is_active())).collect();
    if active.is_empty() {
        return None;
    }
    let ended =
        || active.iter().copied().filter(|&i| requests[i].as_ref().is_some_and(|r| r.is_done())).collect::<Vec<_>>();
    let first = ended();
    if !first.is_empty() {
        return Some(first);
    }
    poll(requests);
    let found = ended();
    if found.is_empty() {
        tested_in_vain(requests);
    }
    Some(found)
}
