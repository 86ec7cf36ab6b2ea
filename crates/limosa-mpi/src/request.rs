//! Requests (MPI-5 sections 3.7 and 3.9): operations under way, completed operations, and persistent operations.
//!
//! | state | meaning | next |
//! |---|---|---|
//! | inactive | a persistent operation that was not started | pending or done, by start |
//! | pending | the engine, or a schedule, works on it | done |
//! | done | its end has not been asked for | inactive (persistent), or gone |
//!
//! A request's end is taken exactly once, by [`Request::take`]. A `None` in a list of requests stands for `MPI_REQUEST_NULL`.

use crate::bsend::SendBuffer;
use crate::coll::{Sleepers, Work};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::fail;
use crate::instance::engine;
use crate::observe::{self, Waiting};
use crate::p2p::{self, Dest, SendMode, Source};
use limosa_job::{Kind, Wait};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Failure, RequestId, View};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// How an operation ended, in the standard's terms.
#[derive(Clone, Debug)]
pub struct End {
    /// Rank of the sender, for receives; `MPI_ANY_SOURCE` otherwise.
    pub source: i32,
    /// Tag of the message, for receives; `MPI_ANY_TAG` otherwise.
    pub tag: i32,
    /// Bytes received.
    pub bytes: u64,
    /// It was cancelled.
    pub cancelled: bool,
    /// What went wrong.
    pub error: Option<Error>,
}

impl End {
    /// The end of nothing (MPI-5 section 3.7.3): the empty status.
    pub fn empty() -> End {
        End { source: crate::consts::MPI_ANY_SOURCE, tag: crate::consts::MPI_ANY_TAG, bytes: 0, cancelled: false, error: None }
    }

    /// The end of a receive from `MPI_PROC_NULL`.
    pub fn proc_null() -> End {
        End { source: crate::consts::MPI_PROC_NULL, ..End::empty() }
    }

    pub(crate) fn of_receive(completion: Completion) -> End {
        End {
            source: completion.source,
            tag: completion.tag,
            bytes: completion.bytes,
            cancelled: completion.cancelled,
            error: completion.failure.map(error_of),
        }
    }

    pub(crate) fn of_send(completion: Completion) -> End {
        End { cancelled: completion.cancelled, error: completion.failure.map(error_of), ..End::empty() }
    }
}

/// A failure of the engine as an error of the standard.
#[cold]
pub(crate) fn error_of(failure: impl Borrow<Failure>) -> Error {
    let failure = failure.borrow();
    let class = match failure {
        Failure::Truncated { .. } => crate::consts::MPI_ERR_TRUNCATE,
        Failure::NoMemory(_) => crate::consts::MPI_ERR_NO_MEM,
        Failure::Device(_) => crate::consts::MPI_ERR_INTERN,
    };
    Error::new(class, failure.to_string())
}

enum State {
    Inactive,
    Pending(RequestId),
    Running(Work),
    /// A receive (`None`: from `MPI_PROC_NULL`) and a send (`None`: done) that count as one, and what the send reads from.
    Exchange {
        receive: Option<RequestId>,
        send: Option<RequestId>,
        _copy: Option<Box<[u8]>>,
    },
    Done(End),
}

/// A persistent operation's recipe.
pub(crate) enum Recipe {
    Send { comm: Arc<Comm>, dest: Dest, tag: i32, region: Region, mode: SendMode, buffer: Option<Arc<SendBuffer>> },
    Receive { comm: Arc<Comm>, source: Source, tag: Option<i32>, region: Region },
    Collective(Work),
}

/// What a request is about, for the status board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Send { dest: i32, tag: i32 },
    Receive { source: Option<i32>, tag: Option<i32> },
    Collective,
    Nothing,
}

/// An operation under way, or a persistent one.
pub struct Request {
    state: Mutex<State>,
    recipe: Option<Recipe>,
    comm: Option<Arc<Comm>>,
    about: About,
    /// The handle under which the ABI layer registered the request.
    pub handle: AtomicUsize,
}

impl Request {
    fn new(state: State, recipe: Option<Recipe>, comm: Option<Arc<Comm>>, about: About) -> Arc<Request> {
        Arc::new(Request { state: Mutex::new(state), recipe, comm, about, handle: AtomicUsize::new(0) })
    }

    /// A request that is complete already.
    pub fn done(comm: Option<&Arc<Comm>>, end: End) -> Arc<Request> {
        Request::new(State::Done(end), None, comm.cloned(), About::Nothing)
    }

    pub(crate) fn pending(id: RequestId, comm: Option<Arc<Comm>>, about: About) -> Arc<Request> {
        Request::new(State::Pending(id), None, comm, about)
    }

    pub(crate) fn exchange(
        comm: &Arc<Comm>,
        receive: Option<RequestId>,
        send: Option<RequestId>,
        copy: Option<Box<[u8]>>,
        about: About,
    ) -> Arc<Request> {
        Request::new(State::Exchange { receive, send, _copy: copy }, None, Some(comm.clone()), about)
    }

    /// A non-blocking collective.
    pub fn collective(comm: &Arc<Comm>, work: Work) -> Arc<Request> {
        Request::new(State::Running(work), None, Some(comm.clone()), About::Collective)
    }

    /// A persistent collective, to be started later.
    pub fn persistent_collective(comm: &Arc<Comm>, work: Work) -> Arc<Request> {
        Request::new(State::Inactive, Some(Recipe::Collective(work)), Some(comm.clone()), About::Collective)
    }

    pub(crate) fn persistent(recipe: Recipe, comm: &Arc<Comm>, about: About) -> Arc<Request> {
        Request::new(State::Inactive, Some(recipe), Some(comm.clone()), about)
    }

    /// The communicator, whose error handler hears of errors.
    pub fn comm(&self) -> Option<&Arc<Comm>> {
        self.comm.as_ref()
    }

    /// True for persistent operations, which become inactive instead of vanishing.
    pub fn is_persistent(&self) -> bool {
        self.recipe.is_some()
    }

    /// True unless this is a persistent operation that is not started.
    pub fn is_active(&self) -> bool {
        !matches!(*self.state.lock(), State::Inactive)
    }

    /// True if the operation has ended, without trying to make progress. Inactive operations count as ended.
    pub fn is_done(&self) -> bool {
        match &*self.state.lock() {
            State::Inactive | State::Done(_) => true,
            State::Pending(id) => engine().peek(*id).is_some(),
            State::Running(work) => work.is_done(),
            State::Exchange { receive, send, .. } => [receive, send].into_iter().flatten().all(|id| engine().peek(*id).is_some()),
        }
    }

    /// The collective under way.
    fn work(&self) -> Option<Work> {
        if let State::Running(work) = &*self.state.lock() { Some(work.clone()) } else { None }
    }

    /// True if it is known to have ended without asking the engine.
    fn has_ended(&self) -> bool {
        match &*self.state.lock() {
            State::Inactive | State::Done(_) => true,
            State::Running(work) => work.is_ripe(),
            State::Pending(_) | State::Exchange { .. } => false,
        }
    }

    /// What the request waits for, in the status board's terms.
    pub(crate) fn wait_record<'n>(&self, name: &'n str) -> Option<Wait<'n>> {
        let comm = self.comm.as_ref()?;
        Some(match self.about {
            About::Send { dest, tag } => observe::message_wait(Kind::Send, comm, Some(dest), Some(tag), name),
            About::Receive { source, tag } => observe::message_wait(Kind::Receive, comm, source, tag, name),
            About::Collective => observe::collective_wait(comm, name),
            About::Nothing => return None,
        })
    }

    /// Takes the end of an operation that has ended; `None` if it has not. An inactive request ends emptily, as often as asked.
    pub fn take(&self) -> Option<End> {
        let mut state = self.state.lock();
        let end = match &mut *state {
            State::Inactive => return Some(End::empty()),
            State::Done(end) => end.clone(),
            State::Pending(id) => self.end_of(engine().take(*id)?),
            State::Running(work) if work.is_done() => End { error: work.take_error(), ..End::empty() },
            State::Running(_) => return None,
            State::Exchange { receive, send, .. } => {
                if ![&*receive, &*send].into_iter().flatten().all(|id| engine().peek(*id).is_some()) {
                    return None;
                }
                let sent = send.and_then(|id| engine().take(id)).map_or_else(End::empty, End::of_send);
                let received = receive.and_then(|id| engine().take(id)).map_or_else(End::proc_null, End::of_receive);
                End { error: received.error.or(sent.error), ..received }
            }
        };
        *state = State::Inactive;
        Some(end)
    }

    /// The end of an operation that has ended, which stays to be taken (`MPI_Request_get_status`).
    pub fn look(&self) -> Option<End> {
        let state = self.state.lock();
        match &*state {
            State::Inactive => Some(End::empty()),
            State::Done(end) => Some(end.clone()),
            State::Pending(id) => engine().test(*id).map(|c| self.end_of(c)),
            State::Running(work) => {
                if !work.is_done() {
                    engine().poll();
                }
                work.is_done().then(End::empty)
            }
            State::Exchange { receive, send, .. } => {
                send.map_or(Some(Completion::default()), |id| engine().test(id))?;
                receive.map_or_else(|| Some(End::proc_null()), |id| engine().test(id).map(End::of_receive))
            }
        }
    }

    fn end_of(&self, completion: Completion) -> End {
        match self.about {
            About::Receive { .. } => {
                if completion.cancelled {
                    return End { cancelled: true, ..End::empty() };
                }
                End::of_receive(completion)
            }
            _ => End::of_send(completion),
        }
    }

    /// Starts a persistent operation (`MPI_Start`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` if it is not persistent, or active.
    pub fn start(&self) -> Result<()> {
        let Some(recipe) = &self.recipe else {
            fail!(MPI_ERR_REQUEST, "only persistent requests can be started, and this one is not");
        };
        let mut state = self.state.lock();
        if !matches!(*state, State::Inactive) {
            fail!(MPI_ERR_REQUEST, "the request is active already: complete it before it is started again");
        }
        *state = match recipe {
            Recipe::Send { comm, dest, tag, region, mode, buffer } => {
                match p2p::start_send(comm, *dest, *tag, region.clone(), *mode, buffer.as_deref())? {
                    limosa_p2p::Started::Done => State::Done(End::empty()),
                    limosa_p2p::Started::Pending(id) => State::Pending(id),
                }
            }
            Recipe::Receive { comm, source, tag, region } => match p2p::start_receive(comm, *source, *tag, region.clone()) {
                Some(id) => State::Pending(id),
                None => State::Done(End::proc_null()),
            },
            Recipe::Collective(work) => {
                work.start();
                State::Running(work.clone())
            }
        };
        Ok(())
    }

    /// Asks for cancellation (`MPI_Cancel`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for operations that the standard does not let be cancelled, and inactive ones.
    pub fn cancel(&self) -> Result<()> {
        match &*self.state.lock() {
            State::Inactive => fail!(MPI_ERR_REQUEST, "the request is inactive: there is nothing to cancel"),
            State::Running(_) => fail!(MPI_ERR_REQUEST, "collective operations cannot be cancelled"),
            State::Exchange { .. } => fail!(MPI_ERR_REQUEST, "combined sends and receives cannot be cancelled"),
            State::Done(_) => {}
            State::Pending(id) => engine().cancel(*id),
        }
        Ok(())
    }

    /// Nobody will ask for the end (`MPI_Request_free`).
    ///
    /// # Errors
    /// `MPI_ERR_REQUEST` for an active non-blocking collective, which the standard does not let be freed.
    pub fn release(&self) -> Result<()> {
        let mut state = self.state.lock();
        match &*state {
            State::Pending(id) => engine().release(*id),
            State::Exchange { .. } => fail!(MPI_ERR_REQUEST, "an active combined send and receive cannot be freed: complete it first"),
            State::Running(work) if !work.is_done() => {
                fail!(MPI_ERR_REQUEST, "an active collective operation cannot be freed: complete it first")
            }
            _ => {}
        }
        *state = State::Inactive;
        Ok(())
    }
}

/// What the engine's condition looks at, so that no request is locked meanwhile.
enum Probe {
    Ended,
    Engine(RequestId),
    Both(Option<RequestId>, Option<RequestId>),
    Work(Work),
}

impl Probe {
    fn has_ended(&self, view: &View<'_>) -> bool {
        match self {
            Probe::Ended => true,
            Probe::Engine(id) => view.is_done(*id),
            Probe::Both(receive, send) => [receive, send].into_iter().flatten().all(|id| view.is_done(*id)),
            Probe::Work(work) => work.is_ripe(),
        }
    }
}

type Probes = SmallVec<[Probe; 8]>;

/// Probes of all requests; `None` for null and inactive ones, which nobody waits for.
fn probes(requests: &[Option<Arc<Request>>]) -> SmallVec<[Option<Probe>; 8]> {
    requests
        .iter()
        .map(|request| {
            Some(match &*request.as_ref()?.state.lock() {
                State::Inactive => return None,
                State::Done(_) => Probe::Ended,
                State::Pending(id) => Probe::Engine(*id),
                State::Running(work) => Probe::Work(work.clone()),
                State::Exchange { receive, send, .. } => Probe::Both(*receive, *send),
            })
        })
        .collect()
}

/// Waits until all requests have ended. Their ends are then there to be taken.
pub fn wait_all(requests: &[Option<Arc<Request>>]) {
    let waiting = Waiting::requests(requests, true);
    requests.iter().flatten().filter_map(|request| request.work()).for_each(|work| work.wait(&waiting));
    if requests.iter().flatten().all(|request| request.has_ended()) {
        return;
    }
    let mut open: Probes = probes(requests).into_iter().flatten().collect();
    engine().block_on(
        &mut |view| {
            while let Some(last) = open.last() {
                if !last.has_ended(view) {
                    return false;
                }
                open.pop();
            }
            true
        },
        &waiting,
    );
}

/// Waits until one of the active requests has ended and returns the first such; `None` if none is active.
pub fn wait_any(requests: &[Option<Arc<Request>>]) -> Option<usize> {
    let open = probes(requests);
    if open.iter().all(Option::is_none) {
        return None;
    }
    let waiting = Waiting::requests(requests, false);
    let works = open.iter().flatten().filter_map(|probe| if let Probe::Work(work) = probe { Some(work) } else { None });
    let sleepers = Sleepers::new(works, &waiting);
    loop {
        let mut found = None;
        engine().block_on(
            &mut |view| {
                found = open.iter().position(|p| p.as_ref().is_some_and(|p| p.has_ended(view)));
                found.is_some()
            },
            &sleepers,
        );
        // What seemed to have ended may still have to be finished.
        if found.is_some_and(|at| requests[at].as_ref().is_some_and(|request| request.is_done())) {
            return found;
        }
    }
}

/// True if all requests have ended; makes progress once if not.
pub fn test_all(requests: &[Option<Arc<Request>>]) -> bool {
    let all = || requests.iter().flatten().all(|r| r.is_done());
    all() || {
        engine().poll();
        all()
    }
}

/// The active requests that have ended, after making progress if there were none; `None` if none is active.
pub fn test_some(requests: &[Option<Arc<Request>>]) -> Option<Vec<usize>> {
    let active: Vec<usize> = (0..requests.len()).filter(|&i| requests[i].as_ref().is_some_and(|r| r.is_active())).collect();
    if active.is_empty() {
        return None;
    }
    let ended = || active.iter().copied().filter(|&i| requests[i].as_ref().is_some_and(|r| r.is_done())).collect::<Vec<_>>();
    let first = ended();
    if !first.is_empty() {
        return Some(first);
    }
    engine().poll();
    Some(ended())
}
