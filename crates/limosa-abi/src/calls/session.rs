//! Sessions (MPI-5 section 11.3).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use limosa_mpi::comm::Comm;
use limosa_mpi::session::PROCESS_SETS;
use limosa_mpi::{Error, Result, consts, error_code, instance};

use crate::args::{self, OutInt};
use crate::calls::comm::register_comm;
use crate::calls::errhandler::handle_of;
use crate::calls::group::register_group;
use crate::calls::p2p;
use crate::cx::Cx;
use crate::errors::ErrorTarget;
use crate::handles::Handle;
use crate::kinds;
use crate::{errors, lifecycle, site};

pub(crate) fn mpi_session_init(
    cx: &Cx,
    info: Option<&Arc<kinds::Info>>,
    errhandler: &Arc<kinds::Errhandler>,
    session: &mut Handle,
) -> Result<()> {
    *session = Handle::predefined(consts::MPI_SESSION_NULL);
    cx.blame_handler(errhandler);
    if instance::in_forked_child() {
        return Err(lifecycle::not_running());
    }
    limosa_coll::plug_in();
    site::plug_in();
    let made = kinds::Session::init(info.map(|info| &**info), errhandler)?;
    lifecycle::entered();
    let registered = limosa_coll::prepare().and_then(|()| cx.register(made.clone()));
    match registered {
        Ok(handle) => *session = handle,
        Err(error) => {
            end(&made);
            return Err(error);
        }
    }
    Ok(())
}

fn end(session: &kinds::Session) {
    session.finalize();
    lifecycle::left();
}

pub(crate) fn mpi_session_finalize(cx: &Cx, session: &mut Handle) -> Result<()> {
    let ended = cx.free::<kinds::Session>(session, "session")?;
    end(&ended);
    Ok(())
}

pub(crate) fn mpi_session_get_num_psets(
    _cx: &Cx,
    _session: &Arc<kinds::Session>,
    _info: Option<&Arc<kinds::Info>>,
    npset_names: &mut c_int,
) -> Result<()> {
    *npset_names = PROCESS_SETS.len() as c_int;
    Ok(())
}

/// Takes and returns `pset_len` with the zero byte; with 0 only the length is returned.
pub(crate) fn mpi_session_get_nth_pset(
    _cx: &Cx,
    session: &Arc<kinds::Session>,
    _info: Option<&Arc<kinds::Info>>,
    n: c_int,
    pset_len: &mut c_int,
    pset_name: *mut c_char,
) -> Result<()> {
    let name = session.process_set_name(n)?;
    if *pset_len > 0 {
        args::not_null(pset_name, "pset_name")?;
        // SAFETY: the program promises room for so many bytes.
        unsafe { args::copy_text(pset_name, *pset_len as usize, name) };
    }
    *pset_len = name.len() as c_int + 1;
    Ok(())
}

pub(crate) fn mpi_session_get_info(cx: &Cx, session: &Arc<kinds::Session>, info_used: &mut Handle) -> Result<()> {
    *info_used = cx.register(session.info()?)?;
    Ok(())
}

pub(crate) fn mpi_session_get_pset_info(
    cx: &Cx,
    session: &Arc<kinds::Session>,
    pset_name: &CStr,
    info: &mut Handle,
) -> Result<()> {
    *info = cx.register(session.process_set_info(pset_name.to_bytes())?)?;
    Ok(())
}

pub(crate) fn mpi_group_from_session_pset(
    cx: &Cx,
    session: &Arc<kinds::Session>,
    pset_name: &CStr,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = Handle::predefined(consts::MPI_GROUP_NULL);
    *newgroup = register_group(cx, session.group(pset_name.to_bytes())?)?;
    Ok(())
}

pub(crate) fn mpi_comm_create_from_group(
    cx: &Cx,
    group: &Arc<kinds::Group>,
    stringtag: &CStr,
    info: Option<&Arc<kinds::Info>>,
    errhandler: &Arc<kinds::Errhandler>,
    newcomm: &mut Handle,
) -> Result<()> {
    *newcomm = Handle::predefined(consts::MPI_COMM_NULL);
    cx.blame_handler(errhandler);
    let world = lifecycle::world()?;
    let made = Comm::from_group(&world, group, stringtag.to_bytes(), info.map(|info| &**info), errhandler)?;
    *newcomm = register_comm(cx, made)?;
    Ok(())
}

/// Reads `remote_group` and `remote_leader` at the local leader only.
pub(crate) fn mpi_intercomm_create_from_groups(
    cx: &Cx,
    local_group: &Arc<kinds::Group>,
    local_leader: c_int,
    remote_group: Handle,
    remote_leader: c_int,
    stringtag: &CStr,
    info: Option<&Arc<kinds::Info>>,
    errhandler: &Arc<kinds::Errhandler>,
    newintercomm: &mut Handle,
) -> Result<()> {
    *newintercomm = Handle::predefined(consts::MPI_COMM_NULL);
    cx.blame_handler(errhandler);
    let world = lifecycle::world()?;
    let remote = || {
        let group = cx.get::<kinds::Group>(remote_group, "remote_group")?;
        Ok((Arc::clone(&group), remote_leader))
    };
    let (tag, info) = (stringtag.to_bytes(), info.map(|info| &**info));
    let made = Comm::intercomm_from_groups(&world, local_group, local_leader, remote, tag, info, errhandler)?;
    *newintercomm = register_comm(cx, made)?;
    Ok(())
}

// ---- error handlers -------------------------------------------------------------------------------------------------

pub(crate) fn mpi_session_set_errhandler(
    _cx: &Cx,
    session: &Arc<kinds::Session>,
    errhandler: &Arc<kinds::Errhandler>,
) -> Result<()> {
    session.set_errhandler(errhandler.clone())
}

pub(crate) fn mpi_session_get_errhandler(
    cx: &Cx,
    session: &Arc<kinds::Session>,
    errhandler: &mut Handle,
) -> Result<()> {
    *errhandler = handle_of(cx, &session.errhandler())?;
    Ok(())
}

/// Succeeds if the handler was called and returned.
pub(crate) fn mpi_session_call_errhandler(cx: &Cx, session: &Arc<kinds::Session>, errorcode: c_int) -> Result<()> {
    error_code::class_of(errorcode)?;
    let text = error_code::own_string(errorcode).map_or_else(String::new, |text| format!(": {text}"));
    let handle = Handle(session.handle.load(Ordering::Relaxed));
    errors::raise(
        cx.name(),
        ErrorTarget::Session(handle),
        Error::verbatim(errorcode, format!("the program itself raised this error{text}")),
    );
    Ok(())
}

// ---- buffers for buffered sends -------------------------------------------------------------------------------------

pub(crate) fn mpi_session_attach_buffer(
    _cx: &Cx,
    session: &Arc<kinds::Session>,
    buffer: *mut c_void,
    size: i64,
) -> Result<()> {
    p2p::attach(session.send_buffer(), buffer, size)
}

pub(crate) fn mpi_session_detach_buffer(
    _cx: &Cx,
    session: &Arc<kinds::Session>,
    buffer_addr: *mut c_void,
    size: OutInt,
) -> Result<()> {
    p2p::detach(session.send_buffer(), buffer_addr, size)
}

pub(crate) fn mpi_session_flush_buffer(_cx: &Cx, session: &Arc<kinds::Session>) -> Result<()> {
    p2p::flush(session.send_buffer())
}

pub(crate) fn mpi_session_iflush_buffer(cx: &Cx, session: &Arc<kinds::Session>, request: &mut Handle) -> Result<()> {
    p2p::iflush(cx, session.send_buffer(), request)
}
