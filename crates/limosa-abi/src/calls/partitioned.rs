//! Partitioned communication (MPI-5 chapter 4).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::info::Info;
use limosa_mpi::partitioned::{self, PartitionedReceive, PartitionedSend, Partitions};
use limosa_mpi::{Error, Result, check, consts, fail};

use super::p2p::plain_region;
use super::request::blame;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{self, Communicator, Datatype};

fn divide(buf: *mut c_void, partitions: i64, count: i64, datatype: &Arc<Datatype>) -> Result<Partitions> {
    let Some(elements) = partitions.checked_mul(count).filter(|all| all.checked_mul(datatype.size()).is_some()) else {
        fail!(MPI_ERR_COUNT, "{partitions} partitions of {count} elements are more than memory can hold");
    };
    let types = check::is_on().then(|| datatype.sequence().repeated(elements.max(0) as u64));
    Ok(Partitions { region: plain_region(buf, elements, datatype)?, count: partitions as usize, types })
}

pub(crate) fn mpi_psend_init(
    cx: &Cx,
    buf: *mut c_void,
    partitions: c_int,
    count: i64,
    datatype: &Arc<Datatype>,
    dest: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: &mut Handle,
) -> Result<()> {
    let partitions = divide(buf, partitions.into(), count, datatype)?;
    *request = cx.register(partitioned::send_init(comm, partitions, dest, tag)?)?;
    Ok(())
}

pub(crate) fn mpi_precv_init(
    cx: &Cx,
    buf: *mut c_void,
    partitions: c_int,
    count: i64,
    datatype: &Arc<Datatype>,
    source: c_int,
    tag: c_int,
    comm: &Arc<Communicator>,
    _info: Option<&Arc<Info>>,
    request: &mut Handle,
) -> Result<()> {
    let partitions = divide(buf, partitions.into(), count, datatype)?;
    *request = cx.register(partitioned::receive_init(comm, partitions, source, tag)?)?;
    Ok(())
}

#[cold]
fn of_another_kind(wanted: &str) -> Error {
    Error::new(consts::MPI_ERR_REQUEST, format!("the request is not that of a partitioned {wanted}"))
}

/// Returns the send of a request, which must have been started.
fn active_send<'r>(cx: &Cx, request: &'r Arc<kinds::Request>) -> Result<&'r PartitionedSend> {
    blame(cx, request.comm());
    let send = request.operation_as::<PartitionedSend>().ok_or_else(|| of_another_kind("send (MPI_Psend_init)"))?;
    if !request.is_active() {
        fail!(MPI_ERR_REQUEST, "the request is inactive: start it before its partitions are marked ready");
    }
    Ok(send)
}

pub(crate) fn mpi_pready(cx: &Cx, partition: c_int, request: &Arc<kinds::Request>) -> Result<()> {
    active_send(cx, request)?.mark_ready(partition)
}

pub(crate) fn mpi_pready_range(
    cx: &Cx,
    partition_low: c_int,
    partition_high: c_int,
    request: &Arc<kinds::Request>,
) -> Result<()> {
    let send = active_send(cx, request)?;
    if partition_low > partition_high {
        fail!(MPI_ERR_ARG, "partition_low is {partition_low}, but partition_high only {partition_high}");
    }
    // Both ends are checked first, so that an invalid range marks no partition.
    send.check(&[partition_low, partition_high])?;
    (partition_low..=partition_high).try_for_each(|partition| send.mark_ready(partition))
}

pub(crate) fn mpi_pready_list(
    cx: &Cx,
    length: c_int,
    array_of_partitions: *const c_int,
    request: &Arc<kinds::Request>,
) -> Result<()> {
    let send = active_send(cx, request)?;
    let partitions = cx.slice(array_of_partitions, length as usize, "array_of_partitions")?;
    send.check(partitions)?;
    partitions.iter().try_for_each(|partition| send.mark_ready(*partition))
}

/// Reports all partitions of a null or inactive request as arrived (MPI-5 section 4.2.2).
pub(crate) fn mpi_parrived(
    cx: &Cx,
    request: Option<&Arc<kinds::Request>>,
    partition: c_int,
    flag: &mut c_int,
) -> Result<()> {
    let has_arrived = match request {
        Some(request) if request.is_active() => {
            blame(cx, request.comm());
            let receive = request.operation_as::<PartitionedReceive>();
            receive.ok_or_else(|| of_another_kind("receive (MPI_Precv_init)"))?.has_arrived(partition)?
        }
        _ => true,
    };
    *flag = has_arrived.into();
    Ok(())
}
