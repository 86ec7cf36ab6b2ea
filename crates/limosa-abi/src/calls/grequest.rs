//! Generalized requests (MPI-5 section 13.2).

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::grequest::{Callbacks, Generalized};
use limosa_mpi::operation::End;
use limosa_mpi::request::Request;
use limosa_mpi::{Error, Result, consts, fail};

use crate::callback;
use crate::cx::Cx;
use crate::errors::answer;
use crate::handles::Handle;
use crate::kinds;
use crate::status::Status;

#[cold]
fn missing(argument: &str) -> Error {
    Error::new(consts::MPI_ERR_ARG, format!("{argument} is a null pointer, but it must be a function"))
}

pub(crate) fn mpi_grequest_start(
    cx: &Cx,
    query_fn: Option<callback::MPI_Grequest_query_function>,
    free_fn: Option<callback::MPI_Grequest_free_function>,
    cancel_fn: Option<callback::MPI_Grequest_cancel_function>,
    extra_state: *mut c_void,
    request: &mut Handle,
) -> Result<()> {
    let query = query_fn.ok_or_else(|| missing("query_fn"))?;
    let free = free_fn.ok_or_else(|| missing("free_fn"))?;
    let cancel = cancel_fn.ok_or_else(|| missing("cancel_fn"))?;
    let extra_state = extra_state as usize;
    let callbacks = Callbacks {
        query: Box::new(move || {
            let mut status = Status::empty();
            // SAFETY: the program promises a function of this type; it writes the status during the call only.
            let code = unsafe { query(extra_state as *mut c_void, &raw mut status) };
            End {
                source: status.source,
                tag: status.tag,
                bytes: status.bytes() as u64,
                cancelled: status.cancelled(),
                error: answer(code, format_args!("query function of the generalized request")).err(),
            }
        }),
        free: Box::new(move || {
            // SAFETY: the program promises a function of this type.
            let code = unsafe { free(extra_state as *mut c_void) };
            answer(code, format_args!("free function of the generalized request"))
        }),
        cancel: Box::new(move |complete| {
            // SAFETY: the program promises a function of this type.
            let code = unsafe { cancel(extra_state as *mut c_void, complete.into()) };
            answer(code, format_args!("cancel function of the generalized request"))
        }),
    };
    *request = cx.register(Request::under_way(None, Generalized::start(callbacks)))?;
    Ok(())
}

pub(crate) fn mpi_grequest_complete(cx: &Cx, request: &Arc<kinds::Request>) -> Result<()> {
    let Some(operation) = request.operation_as::<Generalized>() else {
        fail!(MPI_ERR_REQUEST, "the request is no generalized one: MPI_Grequest_start has not made it");
    };
    let completed = operation.complete();
    if operation.was_abandoned() {
        // MPI_Request_free has left the handle to this call.
        let mut handle = Handle(request.handle.load(Ordering::Relaxed));
        cx.free::<kinds::Request>(&mut handle, "request")?;
    }
    completed
}
