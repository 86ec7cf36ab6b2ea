//! Accesses to windows (MPI-5 section 12.3), each in its forms without and with a request.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use limosa_mpi::consts::MPI_NO_OP;
use limosa_mpi::request::Request;
use limosa_mpi::{Result, check, fail};
use limosa_rma::{At, Origin};

use crate::calls::p2p::plain_region;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds::{Datatype, Operation, Window};

/// Returns the target side of an access.
fn at<'a>(rank: c_int, disp: i64, count: i64, datatype: &'a Arc<Datatype>) -> At<'a> {
    At { rank, disp, count, datatype }
}

/// Returns the operand of an access, at the origin.
fn origin<'a>(addr: *mut c_void, count: i64, datatype: &'a Arc<Datatype>) -> Result<Origin<'a>> {
    Ok(Origin { region: plain_region(addr, count, datatype)?, datatype })
}

/// Returns the operand; `None` for `MPI_NO_OP`, which ignores it.
fn origin_unless_no_op<'a>(
    op: &Operation,
    addr: *mut c_void,
    count: i64,
    datatype: Option<&'a Arc<Datatype>>,
) -> Result<Option<Origin<'a>>> {
    match datatype {
        _ if op.handle() == MPI_NO_OP as usize => Ok(None),
        Some(datatype) => origin(addr, count, datatype).map(Some),
        None => fail!(MPI_ERR_TYPE, "origin_datatype is MPI_DATATYPE_NULL, which is allowed with MPI_NO_OP only"),
    }
}

/// Compares the types at the origin and at the target, while the checks are on.
///
/// # Errors
/// `MPI_ERR_TYPE`.
fn compare(origin: (i64, &Datatype), target: (i64, &Datatype)) -> Result<()> {
    if !check::is_on() {
        return Ok(());
    }
    let [own, theirs] = [origin, target].map(|(count, datatype)| datatype.sequence().repeated(count.max(0) as u64));
    match own.difference(&theirs) {
        None => Ok(()),
        Some(found) => fail!(
            MPI_ERR_TYPE,
            "the origin's elements are {} where those of the target are {}: an access does not convert them",
            found.left.name(),
            found.right.name()
        ),
    }
}

fn register(cx: &Cx, made: Option<Arc<Request>>, request: &mut Handle) -> Result<()> {
    if let Some(made) = made {
        *request = cx.register(made)?;
    }
    Ok(())
}

pub(crate) fn mpi_put(
    _cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
) -> Result<()> {
    let buffer = plain_region(origin_addr, origin_count, origin_datatype)?;
    compare((origin_count, origin_datatype), (target_count, target_datatype))?;
    win.put(&buffer, &at(target_rank, target_disp, target_count, target_datatype), false).map(|_| ())
}

pub(crate) fn mpi_get(
    _cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
) -> Result<()> {
    let buffer = plain_region(origin_addr, origin_count, origin_datatype)?;
    compare((origin_count, origin_datatype), (target_count, target_datatype))?;
    win.get(&buffer, &at(target_rank, target_disp, target_count, target_datatype), false).map(|_| ())
}

pub(crate) fn mpi_accumulate(
    _cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Operation>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = origin(origin_addr, origin_count, origin_datatype)?;
    win.accumulate(&origin, &at(target_rank, target_disp, target_count, target_datatype), op, false).map(|_| ())
}

pub(crate) fn mpi_get_accumulate(
    _cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Option<&Arc<Datatype>>,
    result_addr: *mut c_void,
    result_count: i64,
    result_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Operation>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = origin_unless_no_op(op, origin_addr, origin_count, origin_datatype)?;
    let result = plain_region(result_addr, result_count, result_datatype)?;
    compare((result_count, result_datatype), (target_count, target_datatype))?;
    win.get_accumulate(
        origin.as_ref(),
        &result,
        &at(target_rank, target_disp, target_count, target_datatype),
        op,
        false,
    )
    .map(|_| ())
}

pub(crate) fn mpi_rput(
    cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
    request: &mut Handle,
) -> Result<()> {
    let buffer = plain_region(origin_addr, origin_count, origin_datatype)?;
    compare((origin_count, origin_datatype), (target_count, target_datatype))?;
    let made = win.put(&buffer, &at(target_rank, target_disp, target_count, target_datatype), true)?;
    register(cx, made, request)
}

pub(crate) fn mpi_rget(
    cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    win: &Arc<Window>,
    request: &mut Handle,
) -> Result<()> {
    let buffer = plain_region(origin_addr, origin_count, origin_datatype)?;
    compare((origin_count, origin_datatype), (target_count, target_datatype))?;
    let made = win.get(&buffer, &at(target_rank, target_disp, target_count, target_datatype), true)?;
    register(cx, made, request)
}

pub(crate) fn mpi_raccumulate(
    cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Operation>,
    win: &Arc<Window>,
    request: &mut Handle,
) -> Result<()> {
    let origin = origin(origin_addr, origin_count, origin_datatype)?;
    let made = win.accumulate(&origin, &at(target_rank, target_disp, target_count, target_datatype), op, true)?;
    register(cx, made, request)
}

pub(crate) fn mpi_rget_accumulate(
    cx: &Cx,
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Option<&Arc<Datatype>>,
    result_addr: *mut c_void,
    result_count: i64,
    result_datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    target_count: i64,
    target_datatype: &Arc<Datatype>,
    op: &Arc<Operation>,
    win: &Arc<Window>,
    request: &mut Handle,
) -> Result<()> {
    let origin = origin_unless_no_op(op, origin_addr, origin_count, origin_datatype)?;
    let result = plain_region(result_addr, result_count, result_datatype)?;
    compare((result_count, result_datatype), (target_count, target_datatype))?;
    let made = win.get_accumulate(
        origin.as_ref(),
        &result,
        &at(target_rank, target_disp, target_count, target_datatype),
        op,
        true,
    )?;
    register(cx, made, request)
}

pub(crate) fn mpi_fetch_and_op(
    _cx: &Cx,
    origin_addr: *mut c_void,
    result_addr: *mut c_void,
    datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    op: &Arc<Operation>,
    win: &Arc<Window>,
) -> Result<()> {
    let origin = origin_unless_no_op(op, origin_addr, 1, Some(datatype))?;
    let result = plain_region(result_addr, 1, datatype)?;
    win.fetch_and_op(origin.as_ref(), &result, &at(target_rank, target_disp, 1, datatype), op)
}

pub(crate) fn mpi_compare_and_swap(
    _cx: &Cx,
    origin_addr: *mut c_void,
    compare_addr: *mut c_void,
    result_addr: *mut c_void,
    datatype: &Arc<Datatype>,
    target_rank: c_int,
    target_disp: i64,
    win: &Arc<Window>,
) -> Result<()> {
    let (new, expected) = (plain_region(origin_addr, 1, datatype)?, plain_region(compare_addr, 1, datatype)?);
    let result = plain_region(result_addr, 1, datatype)?;
    win.compare_and_swap(&new, &expected, &result, &at(target_rank, target_disp, 1, datatype))
}
