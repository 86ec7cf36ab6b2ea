//! Becoming a rank, and aborting.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use limosa_base::pool::POOL_BYTES;
use limosa_base::ring::LANE_BYTES;
use rustix::io::FdFlags;
use rustix::process::{Resource, getrlimit};

use crate::board::{Board, Seat, Shape};
use crate::names::{ENV_FD, ENV_ID, ENV_PID, ENV_RANK};
use crate::site::{self, Manager};
use crate::sys::process_exists;

/// This process as a rank of its job.
///
/// A process attaches once; the job then lives until the process ends. A child made by `fork` must not use it:
/// [`Job::is_own_process`].
pub struct Job {
    segment: OwnedFd,
    board: Board,
    rank: u32,
    launched: bool,
    /// The launcher of others that has started this process, until the rank takes leave of it.
    site: Mutex<Option<Box<dyn Manager>>>,
    site_name: Option<&'static str>,
    pid: u32,
}

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

static JOB: OnceLock<Result<Job, JobError>> = OnceLock::new();

impl Job {
    /// Makes this process a rank of the job that it was launched for, or a job of one.
    ///
    /// A process is a job of one if it has no launcher, or if another living process is this rank already: then it is a
    /// child of that rank that uses MPI itself. Later calls return the same job.
    pub fn attach() -> Result<&'static Job, &'static JobError> {
        JOB.get_or_init(Job::find).as_ref()
    }

    /// The job that this process has attached to, if it has.
    pub fn current() -> Option<&'static Job> {
        JOB.get()?.as_ref().ok()
    }

    fn find() -> Result<Job, JobError> {
        allow_partners();
        let Some(launch) = Launch::from_env()? else {
            return match site::find(&|name| std::env::var(name).ok())? {
                Some(manager) => Job::of_site(manager),
                None => Job::single(),
            };
        };
        let (segment, board) = launch.open()?;
        if launch.rank >= board.used() {
            return Err(JobError::Environment(format!(
                "{ENV_RANK} is {} in a job of {} ranks",
                launch.rank,
                board.used()
            )));
        }
        let pid = std::process::id();
        match board.claim(launch.rank, pid) {
            Ok(_) => Ok(Job::new(segment, board, launch.rank, true)),
            Err(other) if process_exists(other) => Job::single(),
            Err(other) => Err(JobError::RankUsed { rank: launch.rank, pid: other }),
        }
    }

    fn new(segment: OwnedFd, board: Board, rank: u32, launched: bool) -> Job {
        let pid = std::process::id();
        Job { segment, board, rank, launched, site: Mutex::new(None), site_name: None, pid }
    }

    /// The job of those that a launcher of others has started together with this process.
    fn of_site(mut manager: Box<dyn Manager>) -> Result<Job, JobError> {
        let (segment, board) = site::join::join(&mut *manager)?;
        let ((rank, _), name) = (manager.place(), manager.name());
        if let Err(pid) = board.claim(rank, std::process::id()) {
            return Err(JobError::RankUsed { rank, pid });
        }
        let site = Mutex::new(Some(manager));
        Ok(Job { site, site_name: Some(name), ..Job::new(segment, board, rank, true) })
    }

    fn single() -> Result<Job, JobError> {
        let (segment, board) = Board::create(&Shape {
            appnums: vec![0],
            spare: spare_ranks(1, processors()),
            universe: processors(),
            launcher_pid: 0,
        })?;
        let pid = std::process::id();
        // INVARIANT: nobody else knows the new board.
        assert!(board.claim(0, pid).is_ok(), "a new board is unclaimed");
        Ok(Job::new(segment, board, 0, false))
    }

    /// Rank of this process in the job.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks that were started together with this one; they follow [`Job::first`].
    pub fn size(&self) -> u32 {
        self.seat().group().1.clamp(1, self.board.capacity())
    }

    /// The first rank of those that were started together with this one.
    pub fn first(&self) -> u32 {
        self.seat().group().0.min(self.rank)
    }

    /// Number of this rank's application in a job of several programs.
    pub fn appnum(&self) -> u32 {
        self.board.seat(self.rank).appnum()
    }

    /// Number of processes that the machine is asked to hold.
    pub fn universe_size(&self) -> u32 {
        self.board.universe_size()
    }

    /// The job's id: random, never 0, the same in all ranks.
    pub fn id(&self) -> u64 {
        self.board.id()
    }

    /// The job's memory file.
    pub fn segment(&self) -> BorrowedFd<'_> {
        self.segment.as_fd()
    }

    /// Byte of the segment at which the device's part begins; a multiple of 4096. The file ends there until the device
    /// extends it.
    pub fn device_offset(&self) -> u64 {
        self.board.device_offset()
    }

    /// The status board.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Publishes a number, not 0, that must be the same on all ranks, and returns the ranks that have published another
    /// one. Of two ranks that differ, at least the later one finds the other.
    pub fn differing(&self, number: u64) -> Vec<u32> {
        self.board.differing(self.rank, number)
    }

    /// The number that this rank has published last; 0 if none.
    pub fn common_number(&self) -> u64 {
        self.board.common_number(self.rank)
    }

    /// This rank's place on the status board.
    pub fn seat(&self) -> Seat<'_> {
        self.board.seat(self.rank)
    }

    /// True if a launcher started this job.
    pub fn launched(&self) -> bool {
        self.launched
    }

    /// The launcher of others that has started this job, for people; `None` if Limosa's own has, or none.
    pub fn site(&self) -> Option<&'static str> {
        self.site_name
    }

    /// Whether this process has made the status board, as the first one of a host that a launcher of others has started
    /// does.
    pub fn is_own_board(&self) -> bool {
        self.board.launcher_pid() == self.pid
    }

    /// In a job over several hosts that a launcher of others has started: has all ranks get each other's cards.
    /// Collective. Elsewhere the cards come by themselves, and this does nothing.
    ///
    /// # Errors
    /// Why they cannot be exchanged, in a sentence.
    pub fn exchange_cards(&self) -> Result<(), String> {
        let mut site = self.site.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *site {
            Some(manager) if self.board.hosts() > 1 => site::join::exchange_cards(&mut **manager, &self.board),
            _ => Ok(()),
        }
    }

    /// Records that this rank has finalized, and takes leave of a launcher of others.
    pub fn finalized(&self) {
        self.seat().finalized();
        if let Some(mut manager) = self.site.lock().unwrap_or_else(PoisonError::into_inner).take() {
            manager.finalize();
        }
    }

    /// False in a child made by `fork`.
    pub fn is_own_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Process id of `rank`, once it has attached.
    pub fn pid_of(&self, rank: u32) -> Option<u32> {
        if rank < self.board.capacity() { self.board.seat(rank).pid() } else { None }
    }

    /// Ends the whole job. The launcher ends the other ranks and its exit code is `code` (1 if `code` has no bits that
    /// an exit code can show).
    ///
    /// `message` says why in one sentence and goes into the launcher's report; it may be empty. Buffered C output of
    /// this process is written first, unless that takes too long because another thread holds a stream.
    pub fn abort(&self, code: i32, message: &str) -> ! {
        let code = exit_code(code);
        if self.is_own_process() {
            self.board.abort(self.rank, code, message);
        }
        let (done, wait) = mpsc::channel();
        let flusher = std::thread::Builder::new().spawn(move || {
            // SAFETY: flushing all streams is what a null pointer asks for.
            unsafe { libc::fflush(std::ptr::null_mut()) };
            let _ = done.send(());
        });
        if flusher.is_ok() {
            let _ = wait.recv_timeout(Duration::from_millis(30));
        }
        if let Some(name) = self.site_name
            && self.is_own_process()
        {
            self.abort_site(name, code, message);
        }
        // SAFETY: ends the process; no destructor is needed, since all state is the kernel's or the launcher's.
        unsafe { libc::_exit(code) }
    }
}

impl Job {
    /// Says why the job ends, as Limosa's own launcher would, and asks the launcher of others to end it.
    fn abort_site(&self, name: &str, code: i32, message: &str) {
        let why = if message.is_empty() { String::new() } else { format!(": {message}") };
        let text = format!("limosa: rank {} aborted the job with code {code}{why}\n", self.rank);
        let _ = io::stderr().write_all(text.as_bytes());
        // MPICH's launcher reads nothing more when it is told to end a job.
        limosa_base::file::wait_until_read(io::stderr());
        // A thread that speaks with the launcher has the lock; the exit code then has to do.
        if let Ok(Some(manager)) = self.site.try_lock().as_deref_mut() {
            manager.abort(code, &format!("{name}: rank {} aborted{why}", self.rank));
        }
    }
}

/// The processors that this process may use: how many processes such a machine is asked to hold, unless the user says
/// otherwise.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |number| u32::try_from(number.get()).unwrap_or(u32::MAX))
}

/// The least room that a job has for ranks that join later.
const LEAST_SPARE: u32 = 60;

/// Most ranks that share a machine.
const MOST_RANKS: u32 = 4096;

/// How many ranks more than `started` a job has room for, on a machine that is asked to hold `universe`. Where the limit
/// of file sizes is low, fewer, so that the job's shared memory stays below it.
pub fn spare_ranks(started: u32, universe: u32) -> u32 {
    let spare = LEAST_SPARE.max(started).max(universe.saturating_mul(2)).min(MOST_RANKS.saturating_sub(started));
    match getrlimit(Resource::Fsize).current {
        Some(limit) => (0..=spare).rev().find(|spare| fits(started + spare, limit)).unwrap_or(0),
        None => spare,
    }
}

/// Whether lanes and pools of so many ranks take at most half of a file of `limit` bytes; the rest is for what
/// communicators and windows share.
fn fits(ranks: u32, limit: u64) -> bool {
    u64::from(ranks) * (u64::from(ranks) * LANE_BYTES as u64 + POOL_BYTES as u64) <= limit / 2
}

/// What an exit code can show of `code`: its low eight bits, and never 0, which would look like success.
pub(crate) fn exit_code(code: i32) -> i32 {
    match code & 0xff {
        0 => 1,
        low => low,
    }
}

/// The launcher's variables.
struct Launch {
    fd: i32,
    launcher: u32,
    id: u64,
    rank: u32,
}

impl Launch {
    fn from_env() -> Result<Option<Launch>, JobError> {
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
    fn open(&self) -> Result<(OwnedFd, Board), JobError> {
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
        let board = self.check(borrowed)?;
        // SAFETY: it is the segment of this job under the number that the launcher chose for us: ours to own, and taken
        // once (`JOB`).
        Ok((unsafe { OwnedFd::from_raw_fd(self.fd) }, board))
    }

    fn check(&self, fd: BorrowedFd<'_>) -> Result<Board, JobError> {
        check(fd, self.id)
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

/// Allows the partners and the launcher to read this process's memory where the Yama security module asks for consent.
fn allow_partners() {
    // SAFETY: sets a property of this process only; where Yama is absent it fails without effect.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::{Launch, exit_code, fits};
    use crate::names::{ENV_FD, ENV_ID, ENV_PID, ENV_RANK};
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_abort_never_looks_like_success() {
        assert_eq!(exit_code(0), 1);
        assert_eq!(exit_code(256), 1);
        assert_eq!(exit_code(7), 7);
        assert_eq!(exit_code(-1), 255);
    }

    #[test]
    fn memory_of_all_ranks_stays_below_a_limit_of_file_sizes() {
        assert!(fits(2, 50_000 << 10) && fits(8, 50_000 << 10));
        assert!(!fits(62, 50_000 << 10), "the usual room for ranks that join later is given up");
        assert!(!fits(1, 1 << 20));
    }

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
