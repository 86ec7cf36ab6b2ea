//! What the generated wrappers call: one function for each sort of call. Each calls the library's function (`next`)
//! once, unless it raises an error before.
//!
//! Calls inside of calls are the library's own, or those of callbacks of the program, and are passed on; only what
//! frees and completes is noted there, too.

use limosa_interpose::site::Site;

use crate::messages::{Key, Note};
use crate::mpi::{handle, is_nested, nested};
use crate::state::{self, Begins, Message, Request, State};
use crate::{collective, mpi, place, report};

/// One direction of a message.
pub(crate) struct Part {
    pub peer: i32,
    pub tag: i32,
    pub count: i64,
    pub datatype: usize,
}

/// `MPI_Init` and `MPI_Init_thread`.
pub(crate) fn init(next: impl FnOnce() -> i32) -> i32 {
    let code = nested(next);
    if code == mpi::SUCCESS {
        let shadow = mpi::shadow_of(mpi::COMM_WORLD);
        let state = State::new(shadow);
        *state::lock() = Some(state);
    }
    code
}

/// `MPI_Finalize`.
pub(crate) fn finalize(next: impl FnOnce() -> i32) -> i32 {
    nested(|| {
        collective::poll_all();
        report::at_end();
    });
    nested(next)
}

/// `MPI_Session_init`: its objects may outlive `MPI_Finalize`.
pub(crate) fn session(next: impl FnOnce() -> i32) -> i32 {
    state::with(|state| state.has_sessions = true);
    nested(next)
}

/// What a call says it sends and receives; a part to or from MPI_PROC_NULL, or that is not known, is left out.
fn describe(
    state: &mut State,
    call: &'static str,
    site: Site,
    comm: usize,
    sends: Option<Part>,
    receives: Option<Part>,
) -> (u64, Message) {
    // What fails is not noted, even if an error handler makes it look as if it had not.
    let (sends, receives) = (sends.filter(|part| part.count >= 0), receives.filter(|part| part.count >= 0));
    let mut note = |part: &Part| {
        let (signature, size) = state.signatures.of(part.datatype);
        Note { signature, bytes: size * u64::try_from(part.count).unwrap_or(0), call, site: site.0 }
    };
    let sends = sends.map(|part| (note(&part), part));
    let receives =
        receives.filter(|part| part.peer >= 0 || part.peer == mpi::ANY_SOURCE).map(|part| (note(&part), part));
    let Some((number, comm)) = state.comm(comm) else { return (0, Message::default()) };
    if !comm.is_sure {
        return (number, Message::default());
    }
    let to = |(note, part): (Note, Part)| {
        let peer = *comm.ranks.get(usize::try_from(part.peer).ok()?)?;
        Some((Key { comm: comm.id, peer, tag: part.tag }, note))
    };
    let receives = receives.map(|(note, part)| (number, part.peer, part.tag, note));
    (number, Message { sends: sends.and_then(to), receives })
}

/// A call that sends, receives, or does both.
pub(crate) fn message(
    call: &'static str,
    comm: usize,
    sends: Option<Part>,
    receives: Option<Part>,
    begins: Begins,
    status: usize,
    next: impl FnOnce(usize) -> i32,
) -> i32 {
    if is_nested() {
        return next(status);
    }
    let site = place::here();
    let (comm, message, posted) = state::with(|state| {
        let (comm, message) = describe(state, call, site, comm, sends, receives);
        let posted = if matches!(begins, Begins::Persistent(_)) { None } else { state.begin(&message) };
        (comm, message, posted)
    });
    let mut statuses = Statuses::new(status, 1);
    let code = nested(|| next(statuses.address()));
    state::with(|state| match (code, begins) {
        (mpi::SUCCESS, Begins::Nothing) => {
            if let (Some(posted), Some((number, ..))) = (posted, message.receives) {
                let (source, tag) = statuses.source_and_tag(0);
                state.resolve(number, posted, source, tag);
            }
        }
        (mpi::SUCCESS, _) => {
            let new = Request { posted, ..Request::new(call, site, begins, comm, message) };
            state.add_request(begins, new);
        }
        _ => state.lose(&message),
    });
    code
}

/// The program's statuses, or some of ours where it ignores them.
struct Statuses {
    given: usize,
    own: Vec<u64>,
}

impl Statuses {
    fn new(given: usize, count: usize) -> Statuses {
        Statuses { given, own: if given == 0 { vec![0; count * mpi::STATUS / 8] } else { Vec::new() } }
    }

    fn address(&mut self) -> usize {
        if self.given == 0 { self.own.as_mut_ptr() as usize } else { self.given }
    }

    fn at(&mut self, index: usize) -> usize {
        self.address() + index * mpi::STATUS
    }

    fn source_and_tag(&mut self, index: usize) -> (i32, i32) {
        let at = self.at(index) as *const i32;
        // SAFETY: the library has written this status.
        unsafe { (*at, *at.add(1)) }
    }

    fn is_cancelled(&mut self, index: usize) -> bool {
        let mut flag = 0;
        // SAFETY: the library has written this status.
        unsafe { mpi::test_cancelled(self.at(index), &mut flag) };
        flag != 0
    }
}

/// What a call says has been completed.
pub(crate) enum Completed {
    /// Whether all are.
    All(bool),
    /// One, or none (negative); its status is the first.
    One(i32),
    /// So many, with their places in this array; their statuses are the first.
    Some(i32, usize),
}

/// A call that completes requests, which are an array at that address. `ended` says, once the call has succeeded,
/// which.
pub(crate) fn complete(
    waits_for_all: bool,
    count: i32,
    requests: usize,
    status: usize,
    next: impl FnOnce(usize) -> i32,
    ended: impl FnOnce() -> Completed,
) -> i32 {
    let count = usize::try_from(count).unwrap_or(0);
    if requests == 0 || state::with(|state| state.requests.is_empty()) {
        return nested(|| next(status));
    }
    // SAFETY: the program passes an array of so many handles.
    let before: Vec<usize> = unsafe { std::slice::from_raw_parts(requests as *const usize, count) }.to_vec();
    if waits_for_all && let Err(code) = finish_checks(&before) {
        return code;
    }
    let mut statuses = Statuses::new(status, count);
    let code = nested(|| next(statuses.address()));
    if code != mpi::SUCCESS {
        state::with(|state| before.iter().for_each(|handle| fail(state, *handle)));
        return code;
    }
    let done: Vec<(usize, usize)> = match ended() {
        Completed::All(true) => (0..count).map(|at| (at, at)).collect(),
        Completed::All(false) => Vec::new(),
        Completed::One(at) => usize::try_from(at).ok().map(|at| (at, 0)).into_iter().collect(),
        Completed::Some(number, places) => (0..usize::try_from(number).unwrap_or(0))
            // SAFETY: the call has written so many places.
            .map(|status| (unsafe { *(places as *const i32).add(status) } as usize, status))
            .collect(),
    };
    for (at, status) in done {
        if let Some(handle) = before.get(at) {
            state::with(|state| end(state, *handle, &mut statuses, status));
        }
    }
    code
}

/// Waits for the checks of collective operations among the requests.
fn finish_checks(requests: &[usize]) -> Result<(), i32> {
    let of_request = |request: &mut Request| Some((request.comm, request.check.take()?));
    let checks: Vec<(u64, u64)> = state::with(|state| {
        let first =
            |handle: &usize| state.requests.get_mut(handle).and_then(|all| all.first_mut()).and_then(of_request);
        requests.iter().filter_map(first).collect()
    });
    checks.into_iter().try_for_each(|(comm, check)| nested(|| collective::finish(comm, check)))
}

/// A request is complete.
fn end(state: &mut State, handle: usize, statuses: &mut Statuses, status: usize) {
    let Some(request) = take(state, handle) else { return };
    let was_cancelled = request.is_cancelled && statuses.is_cancelled(status);
    if was_cancelled {
        if let Some((key, _)) = request.message.sends {
            state.sent.lose(key);
        }
        if let (Some(posted), Some(receives)) = (request.posted, request.message.receives) {
            state.withdraw(receives, posted);
        }
    } else if let (Some(posted), Some((number, ..))) = (request.posted, request.message.receives) {
        let (source, tag) = statuses.source_and_tag(status);
        state.resolve(number, posted, source, tag);
    }
}

/// The request of a handle that is no longer active: taken away, unless it is persistent.
fn take(state: &mut State, handle: usize) -> Option<Request> {
    let all = state.requests.get_mut(&handle)?;
    let first = all.first_mut()?;
    if first.is_persistent {
        let ended = Request { message: first.message.clone(), ..*first };
        (first.is_active, first.posted, first.is_cancelled) = (false, None, false);
        return Some(ended).filter(|request| request.is_active);
    }
    let request = all.remove(0);
    if all.is_empty() {
        state.requests.remove(&handle);
    }
    Some(request)
}

/// A call that was to complete a request has failed: perhaps because of it.
fn fail(state: &mut State, handle: usize) {
    let Some(message) = state.requests.get(&handle).and_then(|all| all.first()).map(|first| first.message.clone())
    else {
        return;
    };
    state.lose(&message);
    take(state, handle);
}

/// `MPI_Start` and `MPI_Startall`.
pub(crate) fn start(count: i32, requests: usize, next: impl FnOnce() -> i32) -> i32 {
    let code = nested(next);
    if code == mpi::SUCCESS && requests != 0 {
        state::with(|state| {
            for at in 0..usize::try_from(count).unwrap_or(0) {
                // SAFETY: the program passes an array of so many handles.
                let handle = unsafe { handle(requests + at * size_of::<usize>()) };
                let first = state.requests.get(&handle).and_then(|all| all.first());
                let Some(message) = first.map(|first| first.message.clone()) else { continue };
                let posted = state.begin(&message);
                if let Some(first) = state.requests.get_mut(&handle).and_then(|all| all.first_mut()) {
                    (first.is_active, first.posted) = (true, posted);
                }
            }
        });
    }
    code
}

/// `MPI_Request_free`: what an active receive gets is not known any more.
pub(crate) fn free_request(request: usize, next: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the program passes the address of a handle.
    let handle = unsafe { handle(request) };
    state::with(|state| {
        let first = state.requests.get_mut(&handle).and_then(|all| all.first_mut());
        let Some(first) = first else { return };
        let is_active = first.is_active;
        first.is_persistent = false;
        if let Some(Request { message, .. }) = take(state, handle)
            && is_active
            && message.receives.is_some()
        {
            state.lose(&Message { sends: None, ..message });
        }
    });
    nested(next)
}

/// `MPI_Cancel`.
pub(crate) fn cancel(request: usize, next: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the program passes the address of a handle.
    let handle = unsafe { handle(request) };
    state::with(|state| {
        if let Some(first) = state.requests.get_mut(&handle).and_then(|all| all.first_mut()) {
            first.is_cancelled = true;
        }
    });
    nested(next)
}

/// `MPI_Mprobe` and `MPI_Improbe`: a message is found, and belongs to this process. `was_found`: after the call.
pub(crate) fn find(
    comm: usize,
    found: usize,
    status: usize,
    next: impl FnOnce(usize) -> i32,
    was_found: impl FnOnce() -> bool,
) -> i32 {
    if is_nested() {
        return next(status);
    }
    let mut statuses = Statuses::new(status, 1);
    let code = nested(|| next(statuses.address()));
    if code == mpi::SUCCESS && was_found() {
        // SAFETY: the call has found a message.
        let message = unsafe { handle(found) };
        if message != mpi::MESSAGE_NULL && message != mpi::MESSAGE_NO_PROC {
            let (source, tag) = statuses.source_and_tag(0);
            state::with(|state| {
                let Some((number, comm)) = state.comm(comm) else { return };
                let posted = comm.receives.post(source, tag, None, state::thread());
                state.found.insert(message, (number, posted));
            });
        }
    }
    code
}

/// `MPI_Mrecv` and `MPI_Imrecv`.
pub(crate) fn receive_found(
    call: &'static str,
    found: usize,
    (count, datatype): (i64, usize),
    begins: Begins,
    next: impl FnOnce() -> i32,
) -> i32 {
    if is_nested() {
        return next();
    }
    let site = place::here();
    // SAFETY: the program passes the address of a handle.
    let message = unsafe { handle(found) };
    let code = nested(next);
    state::with(|state| {
        let (signature, size) = state.signatures.of(datatype);
        let note = Note { signature, bytes: size * u64::try_from(count).unwrap_or(0), call, site: site.0 };
        let comm = state.found.remove(&message).map(|(number, posted)| {
            state.note_found(number, posted, note, code == mpi::SUCCESS);
            number
        });
        if code == mpi::SUCCESS {
            state.add_request(begins, Request::new(call, site, begins, comm.unwrap_or(0), Message::default()));
        }
    });
    code
}

/// A call that makes an object of a kind, and perhaps a request, too.
pub(crate) fn make(
    call: &'static str,
    kind: &'static str,
    object: usize,
    begins: Begins,
    next: impl FnOnce() -> i32,
) -> i32 {
    if is_nested() {
        return next();
    }
    let site = place::here();
    let code = nested(next);
    if code == mpi::SUCCESS {
        state::with(|state| {
            note_object(state, call, kind, object, site);
            state.add_request(begins, Request::new(call, site, begins, 0, Message::default()));
        });
    }
    code
}

fn note_object(state: &mut State, call: &'static str, kind: &'static str, object: usize, site: Site) {
    // SAFETY: the call has succeeded, and written the handle there.
    let handle = unsafe { handle(object) };
    if state::is_made(handle) {
        state.objects.entry((kind, handle)).or_default().push((call, site.0));
    }
}

/// A call that makes a communicator from another, 0 if that is not all its members' doing. `is_begun`: all members call
/// it, but it does not wait for them.
pub(crate) fn make_comm(
    call: &'static str,
    function: usize,
    parent: usize,
    is_begun: bool,
    new: usize,
    begins: Begins,
    next: impl FnOnce() -> i32,
) -> i32 {
    if is_nested() {
        return next();
    }
    let site = place::here();
    let of = collective::Collective { function, comm: parent, root: None, op: None, blocks: [None, None], each: None };
    let code = match parent != 0 && !is_begun {
        true => collective::call(&of, Begins::Nothing, next),
        false => nested(next),
    };
    if code != mpi::SUCCESS {
        return code;
    }
    // SAFETY: the call has succeeded, and written the handle there.
    let handle = unsafe { handle(new) };
    if state::is_made(handle) {
        nested(|| note_comm(call, parent, is_begun, handle));
    }
    state::with(|state| {
        if state::is_made(handle) {
            note_object(state, call, "communicator", new, site);
        }
        state.add_request(begins, Request::new(call, site, begins, 0, Message::default()));
    });
    code
}

fn note_comm(call: &'static str, parent: usize, is_begun: bool, handle: usize) {
    if state::lock().is_none() {
        return;
    }
    if is_begun {
        // Nothing can be asked of the new one yet; its members are those of its parent.
        let members = state::members(parent);
        state::with(|state| {
            let id = state.comm(parent).map_or(0, |(_, comm)| comm.id);
            state.add_members(handle, members, call, id, None);
        });
        return;
    }
    let (ranks, own, _) = state::members(handle);
    let is_here = ranks.iter().chain(&own).all(|rank| *rank >= 0) && ranks.len() + own.len() > 2;
    let shadow = if is_here { mpi::shadow_of(handle) } else { None };
    state::with(|state| state.add_comm(handle, call, 0, shadow));
}

/// A call that frees an object.
pub(crate) fn free(kind: &'static str, object: usize, next: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the program passes the address of a handle.
    let handle = unsafe { handle(object) };
    if kind == "communicator" && !is_nested() {
        nested(|| collective::poll(handle));
    }
    let code = nested(next);
    if code != mpi::SUCCESS {
        return code;
    }
    let shadow = state::with(|state| {
        if let Some(made) = state.objects.get_mut(&(kind, handle)) {
            made.pop();
            if made.is_empty() {
                state.objects.remove(&(kind, handle));
            }
        }
        if kind == "datatype" {
            state.signatures.forget(handle);
        }
        if kind == "communicator" { state.remove_comm(handle) } else { None }
    });
    if let Some(shadow) = shadow {
        nested(|| mpi::free(shadow));
    }
    code
}
