//! Groups (MPI-5 sections 7.3 and 7.4.1).

use std::ffi::c_int;
use std::sync::Arc;

use limosa_mpi::group::{Comparison, Group, RankRange};
use limosa_mpi::{Result, consts};

use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds;
use crate::lifecycle;

/// Returns the handle of a group that a call created; without members it is `MPI_GROUP_EMPTY`.
pub(crate) fn register_group(cx: &Cx, group: Arc<Group>) -> Result<Handle> {
    if group.is_empty() { Ok(Handle::predefined(consts::MPI_GROUP_EMPTY)) } else { cx.register(group) }
}

/// Returns the ABI's constant for the result of a comparison.
pub(crate) fn comparison_code(comparison: Comparison) -> c_int {
    match comparison {
        Comparison::Ident => consts::MPI_IDENT,
        Comparison::Congruent => consts::MPI_CONGRUENT,
        Comparison::Similar => consts::MPI_SIMILAR,
        Comparison::Unequal => consts::MPI_UNEQUAL,
    }
}

pub(crate) fn mpi_group_size(_cx: &Cx, group: &Arc<kinds::Group>, size: &mut c_int) -> Result<()> {
    *size = group.size() as c_int;
    Ok(())
}

pub(crate) fn mpi_group_rank(_cx: &Cx, group: &Arc<kinds::Group>, rank: &mut c_int) -> Result<()> {
    let mine = lifecycle::rank().and_then(|world_rank| group.rank_of(world_rank));
    *rank = mine.map_or(consts::MPI_UNDEFINED, |rank| rank as c_int);
    Ok(())
}

pub(crate) fn mpi_group_translate_ranks(
    cx: &Cx,
    group1: &Arc<kinds::Group>,
    n: c_int,
    ranks1: *const c_int,
    group2: &Arc<kinds::Group>,
    ranks2: *mut c_int,
) -> Result<()> {
    let from = cx.slice(ranks1, n as usize, "ranks1")?;
    let translated = from.iter().map(|&rank| group1.translate(rank, group2)).collect::<Result<Vec<c_int>>>()?;
    cx.slice_mut(ranks2, n as usize, "ranks2")?.copy_from_slice(&translated);
    Ok(())
}

pub(crate) fn mpi_group_compare(
    _cx: &Cx,
    group1: &Arc<kinds::Group>,
    group2: &Arc<kinds::Group>,
    result: &mut c_int,
) -> Result<()> {
    *result = comparison_code(group1.compare(group2));
    Ok(())
}

pub(crate) fn mpi_group_union(
    cx: &Cx,
    group1: &Arc<kinds::Group>,
    group2: &Arc<kinds::Group>,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group1.union(group2))?;
    Ok(())
}

pub(crate) fn mpi_group_intersection(
    cx: &Cx,
    group1: &Arc<kinds::Group>,
    group2: &Arc<kinds::Group>,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group1.intersection(group2))?;
    Ok(())
}

pub(crate) fn mpi_group_difference(
    cx: &Cx,
    group1: &Arc<kinds::Group>,
    group2: &Arc<kinds::Group>,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group1.difference(group2))?;
    Ok(())
}

pub(crate) fn mpi_group_incl(
    cx: &Cx,
    group: &Arc<kinds::Group>,
    n: c_int,
    ranks: *const c_int,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group.incl(cx.slice(ranks, n as usize, "ranks")?)?)?;
    Ok(())
}

pub(crate) fn mpi_group_excl(
    cx: &Cx,
    group: &Arc<kinds::Group>,
    n: c_int,
    ranks: *const c_int,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group.excl(cx.slice(ranks, n as usize, "ranks")?)?)?;
    Ok(())
}

pub(crate) fn mpi_group_range_incl(
    cx: &Cx,
    group: &Arc<kinds::Group>,
    n: c_int,
    ranges: *mut c_int,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group.range_incl(triplets(cx, ranges, n)?)?)?;
    Ok(())
}

pub(crate) fn mpi_group_range_excl(
    cx: &Cx,
    group: &Arc<kinds::Group>,
    n: c_int,
    ranges: *mut c_int,
    newgroup: &mut Handle,
) -> Result<()> {
    *newgroup = register_group(cx, group.range_excl(triplets(cx, ranges, n)?)?)?;
    Ok(())
}

fn triplets(cx: &Cx, ranges: *mut c_int, n: c_int) -> Result<&[RankRange]> {
    cx.slice(ranges.cast_const().cast(), n as usize, "ranges")
}

/// Accepts `MPI_GROUP_EMPTY`: calls that create groups return it too.
pub(crate) fn mpi_group_free(cx: &Cx, group: &mut Handle) -> Result<()> {
    if *group == Handle::predefined(consts::MPI_GROUP_EMPTY) {
        *group = Handle::predefined(consts::MPI_GROUP_NULL);
        return Ok(());
    }
    cx.free::<kinds::Group>(group, "group").map(|_| ())
}
