//! Error handlers (MPI-5 section 9.3).

use std::ffi::c_int;
use std::sync::Arc;

use limosa_mpi::errhandler::{Action, Scope};
use limosa_mpi::{Error, Result, consts, error_code};

use crate::calls::kinds::{self, Errhandler};
use crate::cx::{Cx, Target};
use crate::entry::callback;
use crate::errors;
use crate::handles::Handle;

/// The C type of the handlers of all kinds of objects.
type HandlerFn = unsafe extern "C" fn(*mut Handle, *mut c_int, ...);

fn create(cx: &Cx, scope: Scope, function: Option<HandlerFn>, arg: &str, errhandler: &mut Handle) -> Result<()> {
    let Some(function) = function else {
        return Err(Error::new(consts::MPI_ERR_ARG, format!("{arg} is a null pointer; give a function, or use MPI_ERRORS_RETURN")));
    };
    let call = move |object: usize, code: c_int| {
        let (mut object, mut code) = (Handle(object), code);
        // SAFETY: the program promises a function of this type, which may read and write the two places during the call.
        unsafe { function(&raw mut object, &raw mut code) }
    };
    *errhandler = cx.register(Errhandler::user(scope, Arc::new(call)))?;
    Ok(())
}

/// The handle by which a program gets to know the handler in force, which it is to free: its own one for every asking.
fn handle_of(cx: &Cx, errhandler: Arc<Errhandler>) -> Result<Handle> {
    match &errhandler.action {
        Action::Fatal => Ok(Handle::predefined(consts::MPI_ERRORS_ARE_FATAL)),
        Action::Abort => Ok(Handle::predefined(consts::MPI_ERRORS_ABORT)),
        Action::Return => Ok(Handle::predefined(consts::MPI_ERRORS_RETURN)),
        Action::User(..) => cx.register(errhandler),
    }
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

pub(crate) fn mpi_comm_set_errhandler(_cx: &Cx, comm: &Arc<kinds::Communicator>, errhandler: &Arc<kinds::Errhandler>) -> Result<()> {
    comm.set_errhandler(errhandler.clone())
}

pub(crate) fn mpi_comm_get_errhandler(cx: &Cx, comm: &Arc<kinds::Communicator>, errhandler: &mut Handle) -> Result<()> {
    *errhandler = handle_of(cx, comm.errhandler())?;
    Ok(())
}

/// Succeeds when the handler has been called and came back.
pub(crate) fn mpi_comm_call_errhandler(cx: &Cx, comm: &Arc<kinds::Communicator>, errorcode: c_int) -> Result<()> {
    error_code::class_of(errorcode)?;
    let handle = Handle(comm.handle.load(std::sync::atomic::Ordering::Relaxed));
    errors::raise(cx, Target::Comm(handle), Error::new(errorcode, "the program itself raised this error"));
    Ok(())
}

/// Freeing a predefined handler is fine: `MPI_Comm_get_errhandler` returns it too.
pub(crate) fn mpi_errhandler_free(cx: &Cx, errhandler: &mut Handle) -> Result<()> {
    let freed: Arc<Errhandler> = cx.get(*errhandler, "errhandler")?;
    if matches!(freed.action, Action::User(..)) {
        return cx.free::<Errhandler>(errhandler, "errhandler").map(|_| ());
    }
    *errhandler = Handle::predefined(consts::MPI_ERRHANDLER_NULL);
    Ok(())
}
