//! Error handlers (MPI-5 section 9.3).

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::errhandler::{Action, Scope};
use limosa_mpi::{Error, Result, consts, error_code};

use crate::callback;
use crate::cx::Cx;
use crate::errors::{self, ErrorTarget};
use crate::handles::Handle;
use crate::kinds::{self, Errhandler};

/// The C type of the handlers of all kinds of objects.
type HandlerFn = unsafe extern "C" fn(*mut Handle, *mut c_int, ...);

fn create(cx: &Cx, scope: Scope, function: Option<HandlerFn>, arg: &str, errhandler: &mut Handle) -> Result<()> {
    let Some(function) = function else {
        return Err(Error::new(
            consts::MPI_ERR_ARG,
            format!("{arg} is a null pointer; give a function, or use MPI_ERRORS_RETURN"),
        ));
    };
    let call = move |object: usize, code: c_int| {
        let (mut object, mut code) = (Handle(object), code);
        // SAFETY: the program promises a function of this type, which may read and write both locations during the
        // call.
        unsafe { function(&raw mut object, &raw mut code) };
        code
    };
    *errhandler = handle_of(cx, &Errhandler::user(scope, Arc::new(call)))?;
    Ok(())
}

/// Returns a handle to an error handler, which the program must free. While the program has any, it gets the same
/// handle each time, so that it can compare them. A handler that it has freed, but left in force, gets a new handle.
pub(crate) fn handle_of(cx: &Cx, errhandler: &Arc<Errhandler>) -> Result<Handle> {
    match &errhandler.action {
        Action::Fatal => return Ok(Handle::predefined(consts::MPI_ERRORS_ARE_FATAL)),
        Action::Abort => return Ok(Handle::predefined(consts::MPI_ERRORS_ABORT)),
        Action::Return => return Ok(Handle::predefined(consts::MPI_ERRORS_RETURN)),
        Action::User(..) => {}
    }
    let mut references = errhandler.references.lock();
    let handle = match *references {
        0 => cx.register(errhandler.clone())?,
        _ => Handle(errhandler.handle.load(Ordering::Relaxed)),
    };
    *references += 1;
    Ok(handle)
}

pub(crate) fn mpi_comm_create_errhandler(
    cx: &Cx,
    comm_errhandler_fn: Option<callback::MPI_Comm_errhandler_function>,
    errhandler: &mut Handle,
) -> Result<()> {
    create(cx, Scope::Comm, comm_errhandler_fn, "comm_errhandler_fn", errhandler)
}

pub(crate) fn mpi_win_create_errhandler(
    cx: &Cx,
    win_errhandler_fn: Option<callback::MPI_Win_errhandler_function>,
    errhandler: &mut Handle,
) -> Result<()> {
    create(cx, Scope::Window, win_errhandler_fn, "win_errhandler_fn", errhandler)
}

pub(crate) fn mpi_file_create_errhandler(
    cx: &Cx,
    file_errhandler_fn: Option<callback::MPI_File_errhandler_function>,
    errhandler: &mut Handle,
) -> Result<()> {
    create(cx, Scope::File, file_errhandler_fn, "file_errhandler_fn", errhandler)
}

pub(crate) fn mpi_session_create_errhandler(
    cx: &Cx,
    session_errhandler_fn: Option<callback::MPI_Session_errhandler_function>,
    errhandler: &mut Handle,
) -> Result<()> {
    create(cx, Scope::Session, session_errhandler_fn, "session_errhandler_fn", errhandler)
}

pub(crate) fn mpi_comm_set_errhandler(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    errhandler: &Arc<kinds::Errhandler>,
) -> Result<()> {
    comm.set_errhandler(errhandler.clone())
}

pub(crate) fn mpi_comm_get_errhandler(cx: &Cx, comm: &Arc<kinds::Communicator>, errhandler: &mut Handle) -> Result<()> {
    *errhandler = handle_of(cx, &comm.errhandler())?;
    Ok(())
}

/// Succeeds if the handler was called and returned.
pub(crate) fn mpi_comm_call_errhandler(cx: &Cx, comm: &Arc<kinds::Communicator>, errorcode: c_int) -> Result<()> {
    error_code::class_of(errorcode)?;
    let text = error_code::own_string(errorcode).map_or_else(String::new, |text| format!(": {text}"));
    let detail = format!("the program itself raised this error{text}");
    let handle = Handle(comm.handle.load(Ordering::Relaxed));
    errors::raise(cx.name(), ErrorTarget::Comm(handle), Error::verbatim(errorcode, detail));
    Ok(())
}

/// Accepts predefined handlers: `MPI_Comm_get_errhandler` returns them too.
pub(crate) fn mpi_errhandler_free(cx: &Cx, errhandler: &mut Handle) -> Result<()> {
    let freed = Arc::clone(&*cx.get::<Errhandler>(*errhandler, "errhandler")?);
    if matches!(freed.action, Action::User(..)) {
        let mut references = freed.references.lock();
        *references = references.saturating_sub(1);
        if *references == 0 {
            return cx.free::<Errhandler>(errhandler, "errhandler").map(|_| ());
        }
    }
    *errhandler = Handle::predefined(consts::MPI_ERRHANDLER_NULL);
    Ok(())
}

#[cfg(test)]
mod tests {
    use limosa_mpi::comm::Comm;

    use super::*;

    /// Returns a handler without effect. Stable Rust cannot define variadic functions, so its type is a pretence.
    fn handler() -> HandlerFn {
        unsafe extern "C" fn ignore(_: *mut Handle, _: *mut c_int) {}
        // SAFETY: function pointers have the same representation, and the test does not call this one.
        unsafe { std::mem::transmute::<unsafe extern "C" fn(*mut Handle, *mut c_int), HandlerFn>(ignore) }
    }

    #[test]
    fn every_reference_to_a_handler_is_freed_once() {
        let (cx, comm) = (Cx::new("MPI_Test", false), Comm::without_engine(1, 0).dup(None).unwrap());
        let (mut made, mut got) = (Handle::default(), Handle::default());
        mpi_comm_create_errhandler(&cx, Some(handler()), &mut made).unwrap();
        mpi_comm_set_errhandler(&cx, &comm, &cx.get(made, "errhandler").unwrap()).unwrap();
        mpi_comm_get_errhandler(&cx, &comm, &mut got).unwrap();
        assert_eq!(made, got);
        let stale = made;
        mpi_errhandler_free(&cx, &mut made).unwrap();
        assert_eq!(made, Handle::predefined(consts::MPI_ERRHANDLER_NULL));
        mpi_errhandler_free(&cx, &mut got).unwrap();
        assert_eq!(cx.get::<Errhandler>(stale, "errhandler").err().unwrap().class, consts::MPI_ERR_ERRHANDLER);
        mpi_comm_get_errhandler(&cx, &comm, &mut got).unwrap();
        assert_ne!(got, stale);
        mpi_errhandler_free(&cx, &mut got).unwrap();
    }
}
