//! Communicators (MPI-5 section 7.4).

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use limosa_mpi::comm::{Comm, SplitKind};
use limosa_mpi::operation::End;
use limosa_mpi::request::Request;
use limosa_mpi::{Result, consts};

use crate::args;
use crate::calls::group::{comparison_code, register_group};
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds;

/// Registers a communicator that a call created. Returns `MPI_COMM_NULL` on a process without one.
pub(crate) fn register_comm(cx: &Cx, comm: Option<Arc<Comm>>) -> Result<Handle> {
    match comm {
        Some(comm) => cx.register(comm),
        None => Ok(Handle::predefined(consts::MPI_COMM_NULL)),
    }
}

pub(crate) fn mpi_comm_size(_cx: &Cx, comm: &Arc<kinds::Communicator>, size: &mut c_int) -> Result<()> {
    *size = comm.size() as c_int;
    Ok(())
}

pub(crate) fn mpi_comm_rank(_cx: &Cx, comm: &Arc<kinds::Communicator>, rank: &mut c_int) -> Result<()> {
    *rank = comm.rank() as c_int;
    Ok(())
}

pub(crate) fn mpi_comm_compare(
    _cx: &Cx,
    comm1: &Arc<kinds::Communicator>,
    comm2: &Arc<kinds::Communicator>,
    result: &mut c_int,
) -> Result<()> {
    *result = comparison_code(comm1.compare(comm2));
    Ok(())
}

pub(crate) fn mpi_comm_dup(cx: &Cx, comm: &Arc<kinds::Communicator>, newcomm: &mut Handle) -> Result<()> {
    *newcomm = register_comm(cx, Some(comm.dup(None)?))?;
    Ok(())
}

pub(crate) fn mpi_comm_dup_with_info(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    info: Option<&Arc<kinds::Info>>,
    newcomm: &mut Handle,
) -> Result<()> {
    *newcomm = register_comm(cx, Some(comm.dup(info.map(|info| &**info))?))?;
    Ok(())
}

/// Completes at once, without any message.
pub(crate) fn mpi_comm_idup(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    newcomm: &mut Handle,
    request: &mut Handle,
) -> Result<()> {
    mpi_comm_idup_with_info(cx, comm, None, newcomm, request)
}

pub(crate) fn mpi_comm_idup_with_info(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    info: Option<&Arc<kinds::Info>>,
    newcomm: &mut Handle,
    request: &mut Handle,
) -> Result<()> {
    mpi_comm_dup_with_info(cx, comm, info, newcomm)?;
    *request = cx.register(Request::done(Some(comm), End::empty()))?;
    Ok(())
}

pub(crate) fn mpi_comm_create(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    group: &Arc<kinds::Group>,
    newcomm: &mut Handle,
) -> Result<()> {
    *newcomm = register_comm(cx, comm.create(group)?)?;
    Ok(())
}

pub(crate) fn mpi_comm_create_group(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    group: &Arc<kinds::Group>,
    tag: c_int,
    newcomm: &mut Handle,
) -> Result<()> {
    *newcomm = register_comm(cx, comm.create_group(group, tag)?)?;
    Ok(())
}

pub(crate) fn mpi_comm_split(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    color: c_int,
    key: c_int,
    newcomm: &mut Handle,
) -> Result<()> {
    *newcomm = register_comm(cx, comm.split(color, key)?)?;
    Ok(())
}

pub(crate) fn mpi_comm_split_type(
    cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    split_type: c_int,
    key: c_int,
    info: Option<&Arc<kinds::Info>>,
    newcomm: &mut Handle,
) -> Result<()> {
    let kind = SplitKind::parse(split_type, info.map(|info| &**info));
    *newcomm = register_comm(cx, comm.split_type(kind, key)?)?;
    Ok(())
}

/// Reads `peer_comm` and `remote_leader` at the local leader only.
pub(crate) fn mpi_intercomm_create(
    cx: &Cx,
    local_comm: &Arc<kinds::Communicator>,
    local_leader: c_int,
    peer_comm: Handle,
    remote_leader: c_int,
    tag: c_int,
    newintercomm: &mut Handle,
) -> Result<()> {
    let peer = || cx.get::<Comm>(peer_comm, "peer_comm").map(|peer| (Arc::clone(&peer), remote_leader));
    *newintercomm = register_comm(cx, Some(local_comm.intercomm_create(local_leader, peer, tag)?))?;
    Ok(())
}

pub(crate) fn mpi_intercomm_merge(
    cx: &Cx,
    intercomm: &Arc<kinds::Communicator>,
    high: bool,
    newintracomm: &mut Handle,
) -> Result<()> {
    *newintracomm = register_comm(cx, Some(intercomm.merge(high)?))?;
    Ok(())
}

/// Keeps the handle valid while delete callbacks run, and if one of them refuses.
pub(crate) fn mpi_comm_free(cx: &Cx, comm: &mut Handle) -> Result<()> {
    cx.get::<Comm>(*comm, "comm")?.free()?;
    cx.free::<Comm>(comm, "comm").map(|_| ())
}

/// Waits for all members: when it returns, no member needs anything of another, and each may end. Dead members are not
/// waited for.
pub(crate) fn mpi_comm_disconnect(cx: &Cx, comm: &mut Handle) -> Result<()> {
    let object = cx.get::<Comm>(*comm, "comm")?;
    if !object.is_predefined()
        && let Err(error) = limosa_coll::barrier(object.carrier())
        && error.interrupted
    {
        return Err(error);
    }
    let (world, group) = (object.world().clone(), object.carrier().group().clone());
    drop(object);
    mpi_comm_free(cx, comm)?;
    world.part_from(&group);
    Ok(())
}

pub(crate) fn mpi_comm_test_inter(_cx: &Cx, comm: &Arc<kinds::Communicator>, flag: &mut c_int) -> Result<()> {
    *flag = comm.is_inter().into();
    Ok(())
}

pub(crate) fn mpi_comm_remote_size(_cx: &Cx, comm: &Arc<kinds::Communicator>, size: &mut c_int) -> Result<()> {
    *size = comm.remote_group()?.size() as c_int;
    Ok(())
}

pub(crate) fn mpi_comm_remote_group(cx: &Cx, comm: &Arc<kinds::Communicator>, group: &mut Handle) -> Result<()> {
    *group = register_group(cx, comm.remote_group()?)?;
    Ok(())
}

pub(crate) fn mpi_comm_group(cx: &Cx, comm: &Arc<kinds::Communicator>, group: &mut Handle) -> Result<()> {
    *group = register_group(cx, comm.group().clone())?;
    Ok(())
}

pub(crate) fn mpi_comm_set_name(_cx: &Cx, comm: &Arc<kinds::Communicator>, comm_name: &CStr) -> Result<()> {
    comm.set_name(comm_name.to_bytes());
    Ok(())
}

/// Returns a name for the null communicator, too.
pub(crate) fn mpi_comm_get_name(
    _cx: &Cx,
    comm: Option<&Arc<kinds::Communicator>>,
    comm_name: *mut c_char,
    resultlen: &mut c_int,
) -> Result<()> {
    let name = comm.map_or_else(|| b"MPI_COMM_NULL".to_vec(), |comm| comm.name());
    // SAFETY: the program promises room for MPI_MAX_OBJECT_NAME bytes.
    *resultlen = unsafe { args::copy_bytes(comm_name, consts::MPI_MAX_OBJECT_NAME as usize, &name) };
    Ok(())
}

pub(crate) fn mpi_comm_set_info(
    _cx: &Cx,
    comm: &Arc<kinds::Communicator>,
    info: Option<&Arc<kinds::Info>>,
) -> Result<()> {
    if let Some(info) = info {
        comm.hints().update(info);
    }
    Ok(())
}

pub(crate) fn mpi_comm_get_info(cx: &Cx, comm: &Arc<kinds::Communicator>, info_used: &mut Handle) -> Result<()> {
    *info_used = cx.register(comm.info_in_use()?)?;
    Ok(())
}
