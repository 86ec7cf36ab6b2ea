//! The variables that a launcher gives its ranks, and the job's memory, which they name.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::io::FdFlags;

use crate::board::Board;
use crate::error::JobError;
use crate::names::{ENV_FD, ENV_ID, ENV_PID, ENV_RANK};

/// The launcher's variables.
pub(crate) struct Launch {
    fd: i32,
    launcher: u32,
    id: u64,
    pub rank: u32,
}

impl Launch {
    pub fn from_env() -> Result<Option<Launch>, JobError> {
        Launch::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(value: impl Fn(&str) -> Option<OsString>) -> Result<Option<Launch>, JobError> {
        let Some(id) = value(ENV_ID) else { return Ok(None) };
        let id = id.to_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        let id = id.ok_or_else(|| JobError::Environment(format!("{ENV_ID} is not a hexadecimal number")))?;
        let (fd, launcher, rank) = (number(ENV_FD, &value)?, number(ENV_PID, &value)?, number(ENV_RANK, &value)?);
        Ok(Some(Launch { fd, launcher, id, rank }))
    }

    /// Opens the segment: the inherited descriptor, or, where a wrapper has closed that one (as Python's `subprocess`
    /// does), the launcher's.
    pub fn open(&self) -> Result<(OwnedFd, Board), JobError> {
        if let Ok((fd, board)) = self.inherited() {
            // The number stays taken for as long as the job lives, but programs that this rank starts do not get it.
            rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC)?;
            return Ok((fd, board));
        }
        open_memory_of(self.launcher, self.fd, self.id)
    }

    fn inherited(&self) -> Result<(OwnedFd, Board), JobError> {
        if self.fd < 0 {
            return Err(JobError::Environment(format!("{ENV_FD} is {}", self.fd)));
        }
        // SAFETY: only looked at; if the number is not open, or open as something else, the check fails and nothing
        // happens to it.
        let borrowed = unsafe { BorrowedFd::borrow_raw(self.fd) };
        let board = check(borrowed, self.id)?;
        // SAFETY: it is the segment of this job under the number that the launcher chose for us: ours to own, and taken
        // once (`JOB`).
        Ok((unsafe { OwnedFd::from_raw_fd(self.fd) }, board))
    }
}

/// The segment of job `id`, which another process has open under the number `fd`.
pub(crate) fn open_memory_of(pid: u32, fd: i32, id: u64) -> Result<(OwnedFd, Board), JobError> {
    let path = PathBuf::from(format!("/proc/{pid}/fd/{fd}"));
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path);
    let fd = OwnedFd::from(file.map_err(|error| not_opened(&path, &error))?);
    let board = check(fd.as_fd(), id)?;
    Ok((fd, board))
}

fn check(fd: BorrowedFd<'_>, id: u64) -> Result<Board, JobError> {
    let board = Board::open(fd)?;
    if board.id() != id {
        return Err(JobError::NoSegment("it belongs to another job".into()));
    }
    Ok(board)
}

/// Why the launcher's memory cannot be opened. A wrapper that runs a rank as another user (`sudo -u`) closes the
/// descriptor too; only the launcher's own user may open it again.
fn not_opened(path: &Path, error: &io::Error) -> JobError {
    let owner = path.parent().and_then(|folder| std::fs::metadata(folder).ok()).map(|folder| folder.uid());
    let user = rustix::process::geteuid().as_raw();
    match owner {
        Some(owner) if error.kind() == io::ErrorKind::PermissionDenied && owner != user => {
            JobError::OtherUser { user, owner }
        }
        _ => JobError::NoSegment(format!("{}: {error}", path.display())),
    }
}

fn number<T: FromStr>(name: &str, value: impl Fn(&str) -> Option<OsString>) -> Result<T, JobError> {
    let value = value(name).ok_or_else(|| JobError::Environment(format!("{name} is missing")))?;
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| JobError::Environment(format!("{name} is `{}`, not a number", value.display())))
}

#[cfg(test)]
mod tests {
    use super::Launch;
    use crate::names::{ENV_FD, ENV_ID, ENV_PID, ENV_RANK};
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    /// A value of a variable: none, a number, a number out of range, or any bytes.
    fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
        prop_oneof![
            1 => Just(None),
            4 => (0u32..10).prop_map(|n| Some(n.to_string().into_bytes())),
            2 => any::<i128>().prop_map(|n| Some(n.to_string().into_bytes())),
            2 => prop::collection::vec(1u8.., 0..6).prop_map(Some),
        ]
    }

    proptest! {
        #[test]
        fn the_launchers_variables_are_numbers_or_the_wrong_one_is_named(values in prop::array::uniform4(value())) {
            let names = [ENV_ID, ENV_FD, ENV_PID, ENV_RANK];
            let of = |name: &str| {
                let at = names.iter().position(|n| *n == name);
                at.and_then(|at| values[at].clone()).map(OsString::from_vec)
            };
            let text = |at: usize| values[at].as_ref().and_then(|value| std::str::from_utf8(value).ok());
            let right = [
                text(0).is_some_and(|text| u64::from_str_radix(text, 16).is_ok()),
                text(1).is_some_and(|text| text.parse::<i32>().is_ok()),
                text(2).is_some_and(|text| text.parse::<u32>().is_ok()),
                text(3).is_some_and(|text| text.parse::<u32>().is_ok()),
            ];
            match Launch::from_variables(of) {
                Ok(None) => prop_assert!(values[0].is_none()),
                Ok(Some(launch)) => {
                    prop_assert_eq!(right, [true; 4]);
                    prop_assert_eq!(Some(launch.rank), text(3).and_then(|text| text.parse().ok()));
                }
                Err(error) => {
                    let wrong = right.iter().position(|right| !right).expect("a wrong value");
                    prop_assert!(error.to_string().contains(names[wrong]), "{}", error);
                }
            }
        }
    }
}
