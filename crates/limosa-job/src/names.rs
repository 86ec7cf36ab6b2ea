//! Names that the launcher and the ranks agree on.

/// Environment: the number under which a rank inherits the job's segment.
pub const ENV_FD: &str = "LIMOSA_JOB_FD";
/// Environment: process id of the launcher, which holds the segment under the same number.
pub const ENV_PID: &str = "LIMOSA_JOB_PID";
/// Environment: the job's id (16 hexadecimal digits), which must agree with the segment's.
pub const ENV_ID: &str = "LIMOSA_JOB_ID";
/// Environment: rows for the table of collective algorithms, out of the file that `limosa tune` has written; separated
/// by semicolons.
pub const ENV_COLL_TUNED: &str = "LIMOSA_TUNED_ROWS";
/// Environment: the address of this host by which the launcher, or a host of the job, reaches it.
pub const ENV_HOST_ADDRESS: &str = "LIMOSA_JOB_ADDRESS";
/// Environment: rank of the process in its job. Also of use to scripts that are no MPI programs.
pub const ENV_RANK: &str = "LIMOSA_RANK";
/// Environment: number of ranks of the job. Also of use to scripts that are no MPI programs.
pub const ENV_SIZE: &str = "LIMOSA_SIZE";
/// Environment: number of the process among those of its group on its host.
pub const ENV_LOCAL_RANK: &str = "LIMOSA_LOCAL_RANK";
/// Environment: how many processes of its group are on its host.
pub const ENV_LOCAL_SIZE: &str = "LIMOSA_LOCAL_SIZE";

/// The memory file of a launched job is called this plus the job's id; `limosa ps` looks for it.
pub const MEMFD_PREFIX: &str = "limosa-job-";
/// The memory file of a job of one.
pub const MEMFD_SINGLE: &str = "limosa-single";
