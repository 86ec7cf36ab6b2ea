//! The kinds of collective operations.

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // named like the standard's
pub(crate) enum Kind {
    Barrier = 1,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
    Exscan,
}

impl Kind {
    /// What programs call it.
    pub(crate) fn name(self) -> &'static str {
        NAMES[self as usize - 1]
    }

    /// All ranks wait for all others.
    pub(crate) fn is_among_all(self) -> bool {
        matches!(self, Kind::Barrier | Kind::Allgather | Kind::Alltoall | Kind::Allreduce | Kind::ReduceScatter)
    }
}

/// What programs call the operation of this number.
pub(crate) fn name_of(kind: u16) -> Option<&'static str> {
    NAMES.get(usize::from(kind).wrapping_sub(1)).copied()
}

/// What programs call the operations of [`Kind`](Kind).
const NAMES: [&str; 11] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather(v)",
    "MPI_Scatter(v)",
    "MPI_Allgather(v)",
    "MPI_Alltoall(v,w)",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter(_block)",
    "MPI_Scan",
    "MPI_Exscan",
];
