//! Becoming a rank, and aborting.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use limosa_base::pool::POOL_BYTES;
use limosa_base::ring::LANE_BYTES;
use rustix::process::{Resource, getrlimit};

use crate::board::{Board, Seat, Shape};
use crate::error::JobError;
use crate::launch::Launch;
use crate::names::ENV_RANK;
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
        // INVARIANT: only this process knows the new board.
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

    /// Publishes a number, not 0, that must be the same on all ranks, and returns the ranks that have published a
    /// different one. Of two ranks that differ, at least the later one finds the difference.
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

/// How many ranks more than `started` a job has room for, on a machine that is asked to hold `universe`. Where the
/// limit of file sizes is low, fewer, so that the job's shared memory stays below it.
pub fn spare_ranks(started: u32, universe: u32) -> u32 {
    let spare = LEAST_SPARE.max(started).max(universe.saturating_mul(2)).min(MOST_RANKS.saturating_sub(started));
    match getrlimit(Resource::Fsize).current {
        Some(limit) => (0..=spare).rev().find(|spare| fits(started + spare, limit)).unwrap_or(0),
        None => spare,
    }
}

/// Whether lanes and pools of so many ranks take at most two thirds of a file of `limit` bytes; the rest is for what
/// communicators and windows share.
fn fits(ranks: u32, limit: u64) -> bool {
    u64::from(ranks) * (u64::from(ranks) * LANE_BYTES as u64 + POOL_BYTES as u64) <= limit / 3 * 2
}

/// What an exit code can show of `code`: its low eight bits, and never 0, which would look like success.
pub(crate) fn exit_code(code: i32) -> i32 {
    match code & 0xff {
        0 => 1,
        low => low,
    }
}

/// Allows the partners and the launcher to read this process's memory where the Yama security module asks for consent.
fn allow_partners() {
    // SAFETY: sets a property of this process only; where Yama is absent it fails without effect.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::{exit_code, fits};

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
}
