//! Process sets (MPI-5 section 11.3.2): names of groups of processes, for sessions and for splitting communicators.

/// A process set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessSet {
    /// All processes of the job.
    World,
    /// Returns the number of this process.
    Own,
}

/// The process sets, in the order of their numbers.
pub const PROCESS_SETS: [(&str, ProcessSet); 2] = [("mpi://WORLD", ProcessSet::World), ("mpi://SELF", ProcessSet::Own)];
