//! Collective operations on intercommunicators (MPI-5 sections 6.2.2 and 6.2.3).
//!
//! All are schedules over the communicator of both groups ([`Inter::both`]), to which the [`Call`] belongs. Blocks are
//! those for or from the remote group, by rank there. In rooted operations, one group has the root and the other group
//! sends or receives the data. In the others, each group receives the data of the remote group.
//!
//! | operation | algorithm |
//! |---|---|
//! | broadcast | by the table, over the root and the remote group |
//! | gather, scatter, allgather, alltoall | a message for each pair that has data |
//! | reductions | inside each group to its first rank, from there to the root or the first rank of the remote group; there a broadcast or scatter |
//!
//! A barrier is a barrier over both groups, and needs no code here. Scans are not defined.

use std::sync::Arc;

use super::buffer::{Blocks, Buffer, check_apart};
use super::by_messages;
use super::kind::Collective;
use super::select::select_part;
use super::{Call, Schedule};
use limosa_mpi::comm::{Comm, Inter};
use limosa_mpi::consts::{MPI_PROC_NULL, MPI_ROOT};
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::op::Op;

/// The role of a process in an operation with a root, by the argument `root`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootRole {
    /// `MPI_ROOT`: it is the root.
    Root,
    /// `MPI_PROC_NULL`: it is in the group of the root, and does nothing.
    Idle,
    /// The root is this rank of the remote group.
    Of(usize),
}

impl RootRole {
    /// Reads the argument `root` of a call on an intercommunicator.
    ///
    /// # Errors
    /// `MPI_ERR_ROOT`.
    pub fn of(comm: &Comm, root: i32) -> Result<RootRole> {
        let size = comm.peers().size();
        match root {
            MPI_ROOT => Ok(RootRole::Root),
            MPI_PROC_NULL => Ok(RootRole::Idle),
            rank if usize::try_from(rank).is_ok_and(|rank| rank < size) => Ok(RootRole::Of(rank as usize)),
            _ => fail!(
                MPI_ERR_ROOT,
                "the root is {root}, but on {} it must be MPI_ROOT, MPI_PROC_NULL, or a rank of the remote group (0 to \
                 {})",
                comm.describe(),
                size - 1
            ),
        }
    }
}

/// The two groups from the view of one process.
struct Sides {
    /// Ranks of the local group within both groups.
    local: Vec<u32>,
    /// First rank of the remote group within both groups.
    remote: usize,
    remote_size: usize,
}

impl Sides {
    fn of(inter: &Inter) -> Sides {
        let remote = inter.remote();
        Sides {
            local: inter.local().map(|rank| rank as u32).collect(),
            remote: remote.start,
            remote_size: remote.len(),
        }
    }

    /// Whether this process is the first of its group.
    fn is_first(&self, s: &Schedule) -> bool {
        self.local[0] as usize == s.rank()
    }
}

/// Begins a schedule. The root is not compared: each group names it in its own way.
fn begin(call: &Call<'_>, inter: &Inter, kind: Collective) -> (Schedule, Sides) {
    call.goes_by_messages();
    (Schedule::new(&call.signed(kind)), Sides::of(inter))
}

/// Plans a copy of the root's buffer to the group without the root. An idle process has no buffer.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub fn bcast(call: &Call<'_>, inter: &Inter, buffer: Option<&Buffer>, part: RootRole) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Bcast);
    let mut members = match part {
        RootRole::Idle => return Ok(s),
        RootRole::Root => vec![s.rank() as u32],
        RootRole::Of(root) => vec![(sides.remote + root) as u32],
    };
    match part {
        RootRole::Root => members.extend(inter.remote().map(|rank| rank as u32)),
        _ => members.extend(&sides.local),
    }
    let buffer = buffer.expect("only idle processes have none");
    let plan = select_part(Collective::Bcast, by_messages::BCAST, members.len(), buffer.bytes(), None);
    s.over(&members, |s| plan(s, buffer, 0))?;
    Ok(s)
}

/// Plans a gather at the root: `receive` is the root's, `send` that of the processes of the remote group.
///
/// # Errors
/// None so far.
pub fn gather(
    call: &Call<'_>,
    inter: &Inter,
    send: Option<&Buffer>,
    receive: Option<&Blocks>,
    part: RootRole,
) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Gather);
    match (part, send, receive) {
        (RootRole::Root, _, Some(receive)) => {
            (0..sides.remote_size).for_each(|from| s.receive(sides.remote + from, receive.region(from)));
        }
        (RootRole::Of(root), Some(send), _) => s.send(sides.remote + root, send.region()),
        _ => {}
    }
    Ok(s)
}

/// Plans a scatter of the root's parts to the processes of the group without the root.
///
/// # Errors
/// None so far.
pub fn scatter(
    call: &Call<'_>,
    inter: &Inter,
    send: Option<&Blocks>,
    receive: Option<&Buffer>,
    part: RootRole,
) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Scatter);
    match (part, send, receive) {
        (RootRole::Root, Some(send), _) => {
            (0..sides.remote_size).for_each(|to| s.send(sides.remote + to, send.region(to)));
        }
        (RootRole::Of(root), _, Some(receive)) => s.receive(sides.remote + root, receive.region()),
        _ => {}
    }
    Ok(s)
}

/// Plans that each process receives the data of all processes of the remote group.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
pub fn allgather(call: &Call<'_>, inter: &Inter, send: &Buffer, receive: &Blocks) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Allgather);
    receive.check_apart_from(sides.remote_size, send)?;
    for peer in sides.others(&s) {
        s.receive(sides.remote + peer, receive.region(peer));
        s.send(sides.remote + peer, send.region());
    }
    Ok(s)
}

/// Plans that each process receives its part of the data of each process of the remote group.
///
/// # Errors
/// `MPI_ERR_BUFFER`.
pub fn alltoall(call: &Call<'_>, inter: &Inter, send: &Blocks, receive: &Blocks) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Alltoall);
    send.check_apart_from_blocks(sides.remote_size, receive)?;
    for peer in sides.others(&s) {
        s.receive(sides.remote + peer, receive.region(peer));
        s.send(sides.remote + peer, send.region(peer));
    }
    Ok(s)
}

impl Sides {
    /// Returns the ranks of the remote group, beginning with a different rank for each process.
    fn others(&self, s: &Schedule) -> impl Iterator<Item = usize> + use<> {
        let (first, size) = (s.rank() - self.local[0] as usize, self.remote_size);
        (0..size).map(move |step| (first + step) % size)
    }
}

/// Plans a reduction to the first process of the local group; returns the memory of the result there.
fn reduce_here(s: &mut Schedule, sides: &Sides, send: &Buffer, op: &Arc<Op>) -> Result<Option<Buffer>> {
    op.check(&send.datatype)?;
    s.reduce_with(op.clone(), send.datatype.clone());
    let result = if sides.is_first(s) { Some(s.elements(send.count, &send.datatype)?) } else { None };
    let plan = select_part(Collective::Reduce, by_messages::REDUCE, sides.local.len(), send.bytes(), Some(op));
    s.over(&sides.local, |s| plan(s, send, result.as_ref(), 0))?;
    s.wait();
    Ok(result)
}

/// Plans a reduction of the remote group's operands to the root: `receive` is the root's, `send` that of the processes
/// of the remote group.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_NO_MEM`.
pub fn reduce(
    call: &Call<'_>,
    inter: &Inter,
    send: Option<&Buffer>,
    receive: Option<&Buffer>,
    op: &Arc<Op>,
    part: RootRole,
) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Reduce);
    match (part, send, receive) {
        (RootRole::Root, _, Some(receive)) => {
            op.check(&receive.datatype)?;
            s.receive(sides.remote, receive.region());
        }
        (RootRole::Of(root), Some(send), _) => {
            if let Some(result) = reduce_here(&mut s, &sides, send, op)? {
                s.send(sides.remote + root, result.region());
            }
        }
        _ => {}
    }
    Ok(s)
}

/// Plans that each group receives the combined operands of the remote group.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn allreduce(call: &Call<'_>, inter: &Inter, send: &Buffer, receive: &Buffer, op: &Arc<Op>) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::Allreduce);
    check_apart(send, receive)?;
    if let Some(result) = reduce_here(&mut s, &sides, send, op)? {
        s.receive(sides.remote, receive.region());
        s.send(sides.remote, result.region());
        s.wait();
    }
    let plan = select_part(Collective::Bcast, by_messages::BCAST, sides.local.len(), receive.bytes(), None);
    s.over(&sides.local, |s| plan(s, receive, 0))?;
    Ok(s)
}

/// Plans that the operands of each group are combined and scattered over the remote group. `counts` are the elements of
/// the result for each process of the local group; the operands have their sum, the same in both groups.
///
/// # Errors
/// `MPI_ERR_OP`, `MPI_ERR_BUFFER`, `MPI_ERR_NO_MEM`.
pub fn reduce_scatter(
    call: &Call<'_>,
    inter: &Inter,
    send: &Buffer,
    receive: &Buffer,
    counts: &[i64],
    op: &Arc<Op>,
) -> Result<Schedule> {
    let (mut s, sides) = begin(call, inter, Collective::ReduceScatter);
    check_apart(send, receive)?;
    let mut parts = None;
    if let Some(result) = reduce_here(&mut s, &sides, send, op)? {
        let whole = s.elements(send.count, &send.datatype)?;
        s.receive(sides.remote, whole.region());
        s.send(sides.remote, result.region());
        s.wait();
        let starts = counts.iter().scan(0, |end: &mut i64, count| Some(std::mem::replace(end, *end + count)));
        let datatype = send.datatype.clone();
        parts = Some(Blocks::uneven(whole.base, counts, starts.collect(), datatype, "temporary memory")?);
    }
    s.over(&sides.local, |s| by_messages::SCATTER_ANY(s, parts.as_ref(), Some(receive), 0))?;
    Ok(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use limosa_mpi::consts::MPI_ERR_ROOT;

    #[test]
    fn the_root_is_of_the_other_group_or_a_constant() {
        let comm = Comm::without_engine(3, 0);
        assert_eq!(RootRole::of(&comm, MPI_ROOT).unwrap(), RootRole::Root);
        assert_eq!(RootRole::of(&comm, MPI_PROC_NULL).unwrap(), RootRole::Idle);
        assert_eq!(RootRole::of(&comm, 2).unwrap(), RootRole::Of(2));
        for root in [-1, 3, i32::MIN] {
            assert_eq!(RootRole::of(&comm, root).unwrap_err().class, MPI_ERR_ROOT);
        }
    }
}
