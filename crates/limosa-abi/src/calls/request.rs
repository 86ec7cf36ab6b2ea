//! Completing, cancelling, freeing and starting requests (MPI-5 sections 3.7.3 to 3.9).
//!
//! A completed request is taken out of its handle, which becomes `MPI_REQUEST_NULL`; persistent requests keep theirs
//! and become inactive.

use std::ffi::c_int;
use std::sync::Arc;

use limosa_mpi::comm::Comm;
use limosa_mpi::error::Interrupted;
use limosa_mpi::grequest::Generalized;
use limosa_mpi::light::{self, NotAwaited};
use limosa_mpi::operation::End;
use limosa_mpi::request::{self, Request};
use limosa_mpi::{Error, Result, consts};

use super::p2p::{finish, report};
use crate::cx::Cx;
use crate::errors;
use crate::handles::Handle;
use crate::kinds;
use crate::status::Status;

const NULL: Handle = Handle::predefined(consts::MPI_REQUEST_NULL);

/// Directs errors of this call to the error handler of this communicator.
pub(crate) fn blame(cx: &Cx, comm: Option<&Arc<Comm>>) {
    if let Some(comm) = comm {
        cx.blame(Handle(comm.handle.load(std::sync::atomic::Ordering::Relaxed)));
    }
}

/// Returns the request of a handle; `None` for the null handle.
fn request_of(cx: &Cx, handle: Handle) -> Result<Option<Arc<Request>>> {
    Ok(cx.get_or_null::<kinds::Request>(handle, "request")?.map(|request| Arc::clone(&request)))
}

/// Returns the requests of an array of handles; `None` for null handles.
fn decode(cx: &Cx, handles: &[Handle]) -> Result<Vec<Option<Arc<Request>>>> {
    handles.iter().map(|h| request_of(cx, *h)).collect()
}

/// Takes the completion of a completed request and retires its handle.
fn collect(cx: &Cx, handle: &mut Handle, request: &Request) -> Result<Option<End>> {
    let Some(end) = request.take() else { return Ok(None) };
    if handle.is_light() {
        *handle = NULL;
    } else if !request.is_persistent() {
        cx.free::<kinds::Request>(handle, "request")?;
    }
    if end.error.is_some() {
        match (request.window(), request.file()) {
            (Some(window), _) => cx.blame_window(Handle(window)),
            (_, Some(file)) => cx.blame_file(Handle(file)),
            _ => blame(cx, request.comm()),
        }
    }
    Ok(Some(end))
}

/// Stores the empty status, whose error field is set, in contrast to other statuses (MPI-5 section 3.7.3).
fn nothing(status: Option<&mut Status>) -> Result<()> {
    if let Some(status) = status {
        *status = Status::empty();
    }
    Ok(())
}

/// Returns the statuses of an array, or `None` for `MPI_STATUSES_IGNORE`.
fn statuses(cx: &Cx, start: *mut Status, n: usize) -> Result<Option<&mut [Status]>> {
    if start.is_null() { Ok(None) } else { cx.slice_mut(start, n, "array_of_statuses").map(Some) }
}

/// Creates the error of a call with failed operations. With statuses, which hold the error of each operation, the code
/// is `MPI_ERR_IN_STATUS` itself: the standard requires it, and programs compare with it. Without statuses the code
/// carries a sentence.
#[cold]
fn in_status(count: usize, first: &Error, statuses_ignored: bool) -> Error {
    let detail = format!("{count} of the operations failed, the first of them because {}", first.detail);
    let make = if statuses_ignored { Error::new } else { Error::verbatim };
    Error { by_death: first.by_death, ..make(consts::MPI_ERR_IN_STATUS, detail) }
}

/// Stores the completions of several requests in statuses, in the order of `ends`. One error makes the call fail with
/// `MPI_ERR_IN_STATUS`, and every status has the error of its own operation.
fn finish_several(cx: &Cx, mut statuses: Option<&mut [Status]>, ends: Vec<End>) -> Result<()> {
    let failed = ends.iter().filter(|end| end.error.is_some()).count();
    let mut first: Option<Error> = None;
    for (i, end) in ends.into_iter().enumerate() {
        if let Some(status) = statuses.as_mut().and_then(|s| s.get_mut(i)) {
            report(Some(status), &end);
            if failed > 0 {
                status.error = end.error.as_ref().map_or(consts::MPI_SUCCESS, |e| errors::code(cx.name(), e));
            }
        }
        first = first.or(end.error);
    }
    match first {
        None => Ok(()),
        Some(error) => Err(in_status(failed, &error, statuses.is_none())),
    }
}

#[cold]
fn stale(handle: Handle) -> Error {
    Error::new(consts::MPI_ERR_REQUEST, format!("request (0x{:x}) has been completed or freed already", handle.0))
}

/// Waits for requests that live in the engine, or null ones.
fn wait_light(cx: &Cx, handles: &mut [Handle], mut statuses: Option<&mut [Status]>) -> Result<()> {
    let mut failed: Vec<(usize, Error)> = Vec::new();
    let known = &*handles;
    let name = |i: usize| if known[i] == NULL { None } else { known[i].short() };
    let mut taken = 0;
    let waited = light::wait_each(known.len(), name, |i, comm, end| {
        taken = i + 1;
        report(statuses.as_mut().map(|s| &mut s[i]), &end);
        if let Some(error) = end.error {
            cx.blame(Handle(comm));
            failed.push((i, error));
        }
    });
    match waited {
        Ok(()) => {}
        Err(NotAwaited::Unknown(index)) => return Err(stale(handles[index])),
        Err(NotAwaited::Interrupted) => {
            handles[..taken].fill(NULL);
            return Err(Interrupted.into());
        }
    }
    if let Some(statuses) = &mut statuses {
        for (status, handle) in statuses.iter_mut().zip(&*handles) {
            if *handle == NULL || handle.short().is_none() {
                report(Some(status), &End::empty());
            }
        }
    }
    handles.fill(NULL);
    let Some((_, first)) = failed.first() else { return Ok(()) };
    if let Some(statuses) = &mut statuses {
        statuses.iter_mut().for_each(|status| status.error = consts::MPI_SUCCESS);
        failed.iter().for_each(|(i, error)| statuses[*i].error = errors::code(cx.name(), error));
    }
    Err(in_status(failed.len(), first, statuses.is_none()))
}

pub(crate) fn mpi_wait(cx: &Cx, request: &mut Handle, status: Option<&mut Status>) -> Result<()> {
    if request.is_light() {
        let handle = *request;
        let mut end = End::empty();
        let waited = light::wait_each(
            1,
            |_| handle.short(),
            |_, comm, ended| {
                if ended.error.is_some() {
                    cx.blame(Handle(comm));
                }
                end = ended;
            },
        );
        match waited {
            Ok(()) => {}
            Err(NotAwaited::Unknown(_)) => return Err(stale(handle)),
            Err(NotAwaited::Interrupted) => return Err(Interrupted.into()),
        }
        *request = NULL;
        return finish(status, end);
    }
    let requests = [request_of(cx, *request)?];
    let Some(waited) = &requests[0] else { return nothing(status) };
    request::wait_all(&requests)?;
    let end = collect(cx, request, waited)?.unwrap_or_else(End::empty);
    finish(status, end)
}

pub(crate) fn mpi_waitall(
    cx: &Cx,
    count: c_int,
    array_of_requests: *mut Handle,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let handles = cx.slice_mut(array_of_requests, count as usize, "array_of_requests")?;
    if handles.iter().all(|handle| handle.is_light() || *handle == NULL) {
        let statuses = statuses(cx, array_of_statuses, handles.len())?;
        return wait_light(cx, handles, statuses);
    }
    let requests = decode(cx, handles)?;
    request::wait_all(&requests)?;
    collect_all(cx, handles, &requests, array_of_statuses)
}

fn collect_all(
    cx: &Cx,
    handles: &mut [Handle],
    requests: &[Option<Arc<Request>>],
    array_of_statuses: *mut Status,
) -> Result<()> {
    let mut ends = Vec::with_capacity(handles.len());
    for (handle, request) in handles.iter_mut().zip(requests) {
        ends.push(match request {
            Some(request) => collect(cx, handle, request)?.unwrap_or_else(End::empty),
            None => End::empty(),
        });
    }
    finish_several(cx, statuses(cx, array_of_statuses, handles.len())?, ends)
}

pub(crate) fn mpi_waitany(
    cx: &Cx,
    count: c_int,
    array_of_requests: *mut Handle,
    index: &mut c_int,
    status: Option<&mut Status>,
) -> Result<()> {
    let handles = cx.slice_mut(array_of_requests, count as usize, "array_of_requests")?;
    let requests = decode(cx, handles)?;
    let found = request::wait_any(&requests)?;
    any(cx, handles, &requests, found, index, status)
}

/// Reports the completed request, or that there is no active one.
fn any(
    cx: &Cx,
    handles: &mut [Handle],
    requests: &[Option<Arc<Request>>],
    found: Option<usize>,
    index: &mut c_int,
    status: Option<&mut Status>,
) -> Result<()> {
    let Some((i, request)) = found.and_then(|i| Some((i, requests[i].as_ref()?))) else {
        *index = consts::MPI_UNDEFINED;
        return nothing(status);
    };
    *index = i as c_int;
    let end = collect(cx, &mut handles[i], request)?.unwrap_or_else(End::empty);
    finish(status, end)
}

pub(crate) fn mpi_waitsome(
    cx: &Cx,
    incount: c_int,
    array_of_requests: *mut Handle,
    outcount: &mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let handles = cx.slice_mut(array_of_requests, incount as usize, "array_of_requests")?;
    let requests = decode(cx, handles)?;
    let found = request::wait_any(&requests)?.and_then(|_| request::test_some(&requests));
    some(cx, handles, &requests, found, outcount, array_of_indices, array_of_statuses)
}

fn some(
    cx: &Cx,
    handles: &mut [Handle],
    requests: &[Option<Arc<Request>>],
    found: Option<Vec<usize>>,
    outcount: &mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let Some(found) = found else {
        *outcount = consts::MPI_UNDEFINED;
        return Ok(());
    };
    let indices = cx.slice_mut(array_of_indices, found.len(), "array_of_indices")?;
    let mut ends = Vec::with_capacity(found.len());
    for i in found {
        let Some(request) = &requests[i] else { continue };
        if let Some(end) = collect(cx, &mut handles[i], request)? {
            indices[ends.len()] = i as c_int;
            ends.push(end);
        }
    }
    *outcount = ends.len() as c_int;
    finish_several(cx, statuses(cx, array_of_statuses, ends.len())?, ends)
}

pub(crate) fn mpi_test(cx: &Cx, request: &mut Handle, flag: &mut c_int, status: Option<&mut Status>) -> Result<()> {
    if request.is_light() {
        let tested = match request.short() {
            Some(short) => light::test(short).map_err(|_| stale(*request))?,
            None => Some((0, End::empty())),
        };
        *flag = tested.is_some().into();
        let Some((comm, end)) = tested else { return Ok(()) };
        if end.error.is_some() {
            cx.blame(Handle(comm));
        }
        *request = NULL;
        return finish(status, end);
    }
    let Some(tested) = cx.get_or_null::<kinds::Request>(*request, "request")? else {
        *flag = 1;
        return nothing(status);
    };
    let end = if request::test_all(&[Some(tested.clone())]) { collect(cx, request, &tested)? } else { None };
    *flag = end.is_some().into();
    end.map_or(Ok(()), |end| finish(status, end))
}

pub(crate) fn mpi_testall(
    cx: &Cx,
    count: c_int,
    array_of_requests: *mut Handle,
    flag: &mut c_int,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let handles = cx.slice_mut(array_of_requests, count as usize, "array_of_requests")?;
    let requests = decode(cx, handles)?;
    let done = request::test_all(&requests);
    *flag = done.into();
    if done { collect_all(cx, handles, &requests, array_of_statuses) } else { Ok(()) }
}

pub(crate) fn mpi_testany(
    cx: &Cx,
    count: c_int,
    array_of_requests: *mut Handle,
    index: &mut c_int,
    flag: &mut c_int,
    status: Option<&mut Status>,
) -> Result<()> {
    let handles = cx.slice_mut(array_of_requests, count as usize, "array_of_requests")?;
    let requests = decode(cx, handles)?;
    match request::test_some(&requests) {
        Some(found) if found.is_empty() => {
            (*flag, *index) = (0, consts::MPI_UNDEFINED);
            Ok(())
        }
        found => {
            *flag = 1;
            any(cx, handles, &requests, found.and_then(|f| f.first().copied()), index, status)
        }
    }
}

pub(crate) fn mpi_testsome(
    cx: &Cx,
    incount: c_int,
    array_of_requests: *mut Handle,
    outcount: &mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let handles = cx.slice_mut(array_of_requests, incount as usize, "array_of_requests")?;
    let requests = decode(cx, handles)?;
    let found = request::test_some(&requests);
    some(cx, handles, &requests, found, outcount, array_of_indices, array_of_statuses)
}

/// Stores the completion of an operation whose request is kept, with its error if it failed: the call itself has not.
fn show(cx: &Cx, status: Option<&mut Status>, end: &End) {
    let Some(status) = status else { return };
    report(Some(status), end);
    if let Some(error) = &end.error {
        status.error = errors::code(cx.name(), error);
    }
}

pub(crate) fn mpi_request_get_status(
    cx: &Cx,
    request: Option<&Arc<kinds::Request>>,
    flag: &mut c_int,
    status: Option<&mut Status>,
) -> Result<()> {
    let Some(request) = request else {
        *flag = 1;
        return nothing(status);
    };
    let end = request.look();
    *flag = end.is_some().into();
    match end {
        Some(end) => show(cx, status, &end),
        None => request::tested_in_vain(&[Some((*request).clone())]),
    }
    Ok(())
}

pub(crate) fn mpi_request_get_status_all(
    cx: &Cx,
    count: c_int,
    array_of_requests: *const Handle,
    flag: &mut c_int,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let requests = decode(cx, cx.slice(array_of_requests, count as usize, "array_of_requests")?)?;
    let ends: Option<Vec<End>> = requests.iter().map(|r| r.as_ref().map_or(Some(End::empty()), |r| r.look())).collect();
    *flag = ends.is_some().into();
    if ends.is_none() {
        request::tested_in_vain(&requests);
    }
    if let (Some(ends), Some(statuses)) = (ends, statuses(cx, array_of_statuses, requests.len())?) {
        statuses.iter_mut().zip(&ends).for_each(|(status, end)| show(cx, Some(status), end));
    }
    Ok(())
}

/// Returns the completed active requests, with their completions; `None` if no request is active.
fn ended(requests: &[Option<Arc<Request>>]) -> Option<Vec<(usize, End)>> {
    let active = |i: &usize| requests[*i].as_ref().is_some_and(|r| r.is_active());
    if !(0..requests.len()).any(|i| active(&i)) {
        return None;
    }
    let ended: Vec<_> =
        (0..requests.len()).filter(active).filter_map(|i| Some((i, requests[i].as_ref()?.look()?))).collect();
    if ended.is_empty() {
        request::tested_in_vain(requests);
    }
    Some(ended)
}

pub(crate) fn mpi_request_get_status_any(
    cx: &Cx,
    count: c_int,
    array_of_requests: *const Handle,
    index: &mut c_int,
    flag: &mut c_int,
    status: Option<&mut Status>,
) -> Result<()> {
    let requests = decode(cx, cx.slice(array_of_requests, count as usize, "array_of_requests")?)?;
    (*flag, *index) = (1, consts::MPI_UNDEFINED);
    let Some(ends) = ended(&requests) else { return nothing(status) };
    match ends.into_iter().next() {
        Some((i, end)) => {
            *index = i as c_int;
            show(cx, status, &end);
        }
        None => *flag = 0,
    }
    Ok(())
}

pub(crate) fn mpi_request_get_status_some(
    cx: &Cx,
    incount: c_int,
    array_of_requests: *const Handle,
    outcount: &mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut Status,
) -> Result<()> {
    let requests = decode(cx, cx.slice(array_of_requests, incount as usize, "array_of_requests")?)?;
    let Some(ends) = ended(&requests) else {
        *outcount = consts::MPI_UNDEFINED;
        return Ok(());
    };
    *outcount = ends.len() as c_int;
    let indices = cx.slice_mut(array_of_indices, ends.len(), "array_of_indices")?;
    let mut statuses = statuses(cx, array_of_statuses, ends.len())?;
    for (at, (i, end)) in ends.into_iter().enumerate() {
        indices[at] = i as c_int;
        show(cx, statuses.as_mut().map(|s| &mut s[at]), &end);
    }
    Ok(())
}

pub(crate) fn mpi_request_free(cx: &Cx, request: &mut Handle) -> Result<()> {
    {
        // The request must be unused before its handle is freed.
        let freed = cx.get::<kinds::Request>(*request, "request")?;
        blame(cx, freed.comm());
        freed.release()?;
        if freed.operation_as::<Generalized>().is_some_and(|operation| operation.was_abandoned()) {
            // The program still needs it to report completion.
            *request = NULL;
            return Ok(());
        }
    }
    if request.is_light() {
        *request = NULL;
        return Ok(());
    }
    cx.free::<kinds::Request>(request, "request").map(drop)
}

pub(crate) fn mpi_cancel(cx: &Cx, request: &mut Handle) -> Result<()> {
    let cancelled = cx.get::<kinds::Request>(*request, "request")?;
    blame(cx, cancelled.comm());
    cancelled.cancel()
}

pub(crate) fn mpi_start(cx: &Cx, request: &mut Handle) -> Result<()> {
    let started = cx.get::<kinds::Request>(*request, "request")?;
    blame(cx, started.comm());
    started.start()
}

pub(crate) fn mpi_startall(cx: &Cx, count: c_int, array_of_requests: *mut Handle) -> Result<()> {
    let requests = cx.get_all::<kinds::Request>(array_of_requests, count as usize, "array_of_requests")?;
    for request in requests {
        blame(cx, request.comm());
        request.start()?;
    }
    Ok(())
}
