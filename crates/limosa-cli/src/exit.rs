//! Exit codes of the `limosa` command.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | a check of `limosa doctor` failed; a rank left the job without MPI_Finalize; no rank has joined the job, because the program uses another MPI library |
//! | 2 | usage: a bad option, or a program or directory that does not exist |
//! | 3 | environment: the operating system refused something |
//! | 86 | the hang doctor ended the job (`--on-hang=abort`) |
//! | 124 | the job took longer than `--timeout` allows |
//! | 141 | the reader of the job's output has closed it |
//! | other | the code of the first rank that failed; 128 + n if signal n killed it |

/// A check failed, a rank left without finalizing, or none has joined.
pub const FAILED: u8 = 1;
/// Usage.
pub const USAGE: u8 = 2;
/// The operating system refused something.
pub const ENVIRONMENT: u8 = 3;
/// The job took too long.
pub const TIMED_OUT: u8 = 124;
/// The hang doctor ended the job.
pub const HANG: u8 = limosa_hang::alone::EXIT_CODE;

/// The exit code of a process killed by this signal.
pub fn of_signal(signal: i32) -> u8 {
    128u8.wrapping_add(signal as u8)
}
