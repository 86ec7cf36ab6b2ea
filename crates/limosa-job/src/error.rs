//! Why a process could not become a rank.

use std::{fmt, io};

use crate::names::ENV_ID;

/// Why a process could not become a rank.
#[derive(Debug)]
pub enum JobError {
    /// The launcher's variables are set but not valid.
    Environment(String),
    /// The file that the variables name is not a job's segment.
    NoSegment(String),
    /// This process may not open the memory of a launcher of another user.
    OtherUser {
        /// The process's user.
        user: u32,
        /// The launcher's.
        owner: u32,
    },
    /// Launcher and library are of different versions.
    Version {
        /// Layout version of the segment.
        segment: u32,
        /// Layout version of this library.
        library: u32,
    },
    /// Another process was this rank and has ended.
    RankUsed {
        /// The rank.
        rank: u32,
        /// The process that held it.
        pid: u32,
    },
    /// A launcher of others has started this process as one of several, and it cannot join them.
    Foreign(String),
    /// The operating system refused something.
    System(io::Error),
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobError::Environment(what) => {
                write!(
                    f,
                    "the launcher's variables are damaged: {what}; unset all LIMOSA_JOB_* variables to run without a \
                     launcher"
                )
            }
            JobError::NoSegment(what) => write!(
                f,
                "cannot find the memory of the job that {ENV_ID} names ({what}); its launcher may have ended: \
                 unset all LIMOSA_JOB_* variables to run without a launcher"
            ),
            JobError::OtherUser { user, owner } => write!(
                f,
                "this process runs as user {user} and the launcher as user {owner}, and what started the process has \
                 closed the descriptor of the job's memory: run the whole job as one user, or change the user with \
                 a command that leaves descriptors open (`setpriv`, `su`)"
            ),
            JobError::Version { segment, library } => write!(
                f,
                "the launcher uses version {segment} of the job's memory and the library version {library}; \
                 start the program with the `limosa` that was installed together with the library"
            ),
            JobError::RankUsed { rank, pid } => write!(
                f,
                "rank {rank} of this job was process {pid}, which has ended; only one process can be that rank, \
                 so start each MPI program with a launcher of its own"
            ),
            JobError::Foreign(complaint) => f.write_str(complaint),
            JobError::System(error) => write!(f, "the operating system refused the job's memory: {error}"),
        }
    }
}

impl std::error::Error for JobError {}

impl From<io::Error> for JobError {
    fn from(error: io::Error) -> JobError {
        JobError::System(error)
    }
}

impl From<rustix::io::Errno> for JobError {
    fn from(error: rustix::io::Errno) -> JobError {
        JobError::System(error.into())
    }
}
