//! Initialisation and finalisation (MPI-5 sections 11.2 to 11.4).

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use limosa_mpi::{Result, consts, fail, instance};

use crate::calls::dynamic;
use crate::cx::Cx;
use crate::handles::{Handle, Object};
use crate::kinds::{Communicator, Info};
use crate::{lifecycle, origins, python, site};

static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

fn start(cx: &Cx) -> Result<()> {
    if instance::in_forked_child() {
        return Err(lifecycle::not_running());
    }
    if lifecycle::is_ended() {
        fail!(MPI_ERR_OTHER, "MPI has been finalised: it cannot be initialised a second time");
    }
    if lifecycle::is_world_model_running() {
        fail!(MPI_ERR_OTHER, "MPI is initialised already");
    }
    limosa_coll::plug_in();
    site::plug_in();
    python::watch_for_signals();
    let instance = instance::init()?;
    limosa_coll::prepare()?;
    let _ = MAIN_THREAD.set(thread::current().id());
    Communicator::table().set_predefined(consts::MPI_COMM_WORLD, instance.comm_world().clone(), true);
    Communicator::table().set_predefined(consts::MPI_COMM_SELF, instance.comm_self().clone(), true);
    Info::table().set_predefined(consts::MPI_INFO_ENV, limosa_mpi::info::Info::predefined_environment(), true);
    lifecycle::started();
    dynamic::meet_parent(cx)
}

pub(crate) fn mpi_init(cx: &Cx, _argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Result<()> {
    start(cx)
}

pub(crate) fn mpi_init_thread(
    cx: &Cx,
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: &mut c_int,
) -> Result<()> {
    let levels = [
        consts::MPI_THREAD_SINGLE,
        consts::MPI_THREAD_FUNNELED,
        consts::MPI_THREAD_SERIALIZED,
        consts::MPI_THREAD_MULTIPLE,
    ];
    if !levels.contains(&required) {
        fail!(
            MPI_ERR_ARG,
            "required is {required}, which is none of the thread levels MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE"
        );
    }
    start(cx)?;
    *provided = consts::MPI_THREAD_MULTIPLE;
    Ok(())
}

pub(crate) fn mpi_initialized(_cx: &Cx, flag: &mut c_int) -> Result<()> {
    *flag = lifecycle::is_begun().into();
    Ok(())
}

pub(crate) fn mpi_finalize(_cx: &Cx) -> Result<()> {
    if !lifecycle::is_world_model_running() {
        return Err(lifecycle::not_running());
    }
    if let Some(instance) = instance::get() {
        instance.finalize(origins::report)?;
    }
    for comm in [consts::MPI_COMM_WORLD, consts::MPI_COMM_SELF] {
        Communicator::table().clear_predefined(comm);
    }
    lifecycle::ended();
    Ok(())
}

pub(crate) fn mpi_finalized(_cx: &Cx, flag: &mut c_int) -> Result<()> {
    // In a forked child MPI counts as finalised, so that clean-up code at its exit does not call MPI.
    *flag = (lifecycle::is_ended() || instance::in_forked_child()).into();
    Ok(())
}

pub(crate) fn mpi_query_thread(_cx: &Cx, provided: &mut c_int) -> Result<()> {
    *provided = consts::MPI_THREAD_MULTIPLE;
    Ok(())
}

pub(crate) fn mpi_is_thread_main(_cx: &Cx, flag: &mut c_int) -> Result<()> {
    *flag = (MAIN_THREAD.get() == Some(&thread::current().id())).into();
    Ok(())
}

pub(crate) fn mpi_abort(_cx: &Cx, _comm: Handle, errorcode: c_int) -> Result<()> {
    instance::abort(errorcode, "the program called MPI_Abort")
}

pub(crate) fn mpi_pcontrol(_cx: &Cx, _level: c_int) -> Result<()> {
    Ok(())
}
