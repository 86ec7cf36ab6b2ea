//! The process of one rank, as the launcher sees it.

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use limosa_job::{Board, ENV_FD, ENV_ID, ENV_LOCAL_RANK, ENV_LOCAL_SIZE, ENV_PID, ENV_RANK, ENV_SIZE};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions};

use super::binding;
use super::ends::{end_of_child, end_of_process};
use super::plan::App;
use crate::{installation, sys};

/// Where the dynamic linker looks for libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The value of [`LIBRARY_PATH`] for a program: as it is, with the folder of the library that belongs to this launcher
/// behind, so that a program which says nothing of where the library is starts too. The folder comes first if programs
/// would find another package's library at the usual place. In front of all are the folders of the libraries with
/// the names of MPICH's and Open MPI's, whatever else a program finds under these names. `None`: as it is.
fn library_path(app: &App) -> Option<OsString> {
    let (folder, is_first) = installation::library_folder()?;
    let translations: Vec<PathBuf> =
        [installation::MPICH, installation::OPEN_MPI].iter().filter_map(installation::Translation::find).collect();
    let given = app.env.iter().rev().find(|(name, _)| name == LIBRARY_PATH).map(|(_, value)| value.clone());
    let given = given.or_else(|| std::env::var_os(LIBRARY_PATH).filter(|_| !app.clear_env)).unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&given).filter(|_| !given.is_empty()).collect();
    let before = folders.len();
    if !folders.contains(&folder) {
        folders.insert(if is_first { 0 } else { folders.len() }, folder);
    }
    if !folders.starts_with(&translations) {
        folders.splice(0..0, translations);
    }
    (folders.len() > before).then(|| std::env::join_paths(folders).ok())?
}

/// Variables in which programs look for the number of a rank, and of a rank on its host, under launchers of others. MPI
/// libraries do not take them for their own launcher: that would take a connection (`PMI_FD`) or a size as well.
const RANK_ELSEWHERE: &str = "PMI_RANK";
const LOCAL_RANK_ELSEWHERE: [&str; 2] = ["MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"];
const LOCAL_SIZE_ELSEWHERE: [&str; 2] = ["MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"];

/// Variables by which libfabric's `ofi_rxm` takes few packets from a connection ahead of the posted receives. By
/// default it takes all, and keeps each in a buffer of 16 KB, however many the program has not received yet.
const OF_LIBFABRIC: [(&str, &str); 2] = [("FI_OFI_RXM_MSG_RX_SIZE", "16"), ("FI_OFI_RXM_USE_SRX", "0")];

/// The number of a rank among those of its group on this host, and how many these are.
fn place_on_host(board: &Board, rank: u32) -> (u32, u32) {
    let (first, size) = board.seat(rank).group();
    let here = |ranks: Range<u32>| match board.hosts() {
        1 => ranks.len() as u32,
        _ => ranks.filter(|rank| board.is_here(*rank)).count() as u32,
    };
    (here(first..rank), here(first..first + size))
}

/// Gives a process the variables of its program, and those by which it finds its job and its place there.
fn set_variables(command: &mut Command, app: &App, board: &Board, rank: u32, segment: i32) {
    if app.clear_env {
        command.env_clear();
    }
    if app.clear_env || std::env::var_os("PYTHONUNBUFFERED").is_none() {
        // Python keeps what it prints to a pipe for a while, and loses it when the rank is killed.
        command.env("PYTHONUNBUFFERED", "1");
    }
    if std::env::var_os("PYTHONFAULTHANDLER").is_none() {
        // A Python rank that crashes says in which line.
        command.env("PYTHONFAULTHANDLER", "1");
    }
    for (name, value) in OF_LIBFABRIC {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let (local_rank, local_size) = place_on_host(board, rank);
    let (first, size) = board.seat(rank).group();
    command.env(RANK_ELSEWHERE, (rank - first).to_string());
    command.envs(LOCAL_RANK_ELSEWHERE.map(|name| (name, local_rank.to_string())));
    command.envs(LOCAL_SIZE_ELSEWHERE.map(|name| (name, local_size.to_string())));
    command.envs(app.env.iter().map(|(name, value)| (name, value)));
    if let Some(path) = library_path(app) {
        command.env(LIBRARY_PATH, path);
    }
    command
        .env(ENV_ID, format!("{:016x}", board.id()))
        .env(ENV_PID, std::process::id().to_string())
        .env(ENV_FD, segment.to_string());
    command.env(ENV_RANK, rank.to_string()).env(ENV_SIZE, size.to_string());
    command.env(ENV_LOCAL_RANK, local_rank.to_string()).env(ENV_LOCAL_SIZE, local_size.to_string());
}

/// The process of one rank.
///
/// When it has ended it stays a zombie until [`Rank::reap`], so that its number, which is also that of its process
/// group, cannot come to mean other processes while the launcher may still send signals to it.
pub struct Rank {
    /// Process id, and id of the process group.
    pub pid: u32,
    /// Becomes readable when the process ends. A rank on another host has none, nor streams here: the agent of that
    /// host reports what becomes of it.
    pub end: Option<OwnedFd>,
    /// The reading ends of its stdout and stderr, until they end.
    pub streams: [Option<OwnedFd>; 2],
    /// How it ended.
    pub ended: Option<Ended>,
    /// The same, where the system has let the process go with this information.
    pub reaped: Cell<Option<Ended>>,
    /// The process that claimed the rank, if it is not the one that we started but a child of it.
    pub inner: Option<(u32, OwnedFd)>,
    /// True once the claim has been looked at.
    pub seen_claim: bool,
    /// Its program.
    pub app: Arc<App>,
    /// The processors that it is bound to, if it is.
    pub processors: Vec<usize>,
    /// The number of its host, if that is not this one.
    pub host: Option<usize>,
    /// The streams there that have not ended.
    pub open_there: [bool; 2],
    /// The number of the spawn that started it; 0 if none did.
    pub spawn: u64,
    /// It was not started by this launcher, which has taken its job over.
    pub is_adopted: bool,
    /// It has ended and been waited for: its number may be that of another process.
    pub is_gone: bool,
    /// It runs under a debugger, which has the launcher's streams and is in the launcher's process group: the
    /// terminal's keys are for it.
    pub is_debugged: bool,
    /// Its spawn has failed, or it has died and the job goes on without it: how it ends does not matter.
    pub is_unwanted: bool,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// The same as `waitpid` tells it.
    pub fn wait_status(self) -> i32 {
        match self {
            Ended::Code(code) => (code & 0xff) << 8,
            Ended::Signal(signal) => signal,
        }
    }
}

impl Rank {
    /// Starts the process of `rank`: in a process group of its own, tied to the life of the launcher, with the job's
    /// segment open. Without `stdin` it is a debugger, which has the launcher's streams and process group.
    pub fn start(
        app: &Arc<App>,
        rank: u32,
        board: &Board,
        segment: BorrowedFd<'_>,
        stdin: Option<Stdio>,
        processors: &[usize],
    ) -> io::Result<Rank> {
        let mut command = Command::new(&app.program);
        let is_debugged = stdin.is_none();
        if let Some(stdin) = stdin {
            command.process_group(0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let launcher = std::process::id();
        let segment = segment.as_raw_fd();
        command.arg0(&app.name).args(&app.args);
        set_variables(&mut command, app, board, rank, segment);
        if let Some(dir) = &app.wdir {
            command.current_dir(dir);
        }
        let binding = (!processors.is_empty()).then(|| binding::set_of(processors));
        let become_rank = move || {
            if let Some(set) = &binding {
                rustix::thread::sched_setaffinity(None, set)?;
            }
            sys::become_rank(segment, launcher)
        };
        // SAFETY: the closure makes async-signal-safe system calls only.
        unsafe { command.pre_exec(become_rank) };
        let mut child = command.spawn()?;
        let pid = child.id();
        let end = end_of_child(pid)?;
        let streams = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        for stream in streams.iter().flatten() {
            rustix::io::ioctl_fionbio(stream, true)?;
        }
        board.seat(rank).set_started(pid);
        let spawn = board.seat(rank).spawner().map_or(0, |spawner| spawner.number);
        Ok(Rank { spawn, streams, is_debugged, ..Rank::new(pid, Some(end), app.clone()) })
    }

    fn new(pid: u32, end: Option<OwnedFd>, app: Arc<App>) -> Rank {
        Rank {
            pid,
            end,
            streams: [None, None],
            ended: None,
            reaped: Cell::new(None),
            inner: None,
            seen_claim: false,
            app,
            processors: Vec::new(),
            host: None,
            open_there: [false; 2],
            spawn: 0,
            is_adopted: false,
            is_gone: false,
            is_debugged: false,
            is_unwanted: false,
        }
    }

    /// A rank that is started when all hosts are ready.
    pub fn expected(app: &Arc<App>) -> Rank {
        Rank::new(0, None, app.clone())
    }

    /// In the place of a rank that was never started.
    pub fn absent(app: &Arc<App>) -> Rank {
        Rank { ended: Some(Ended::Code(0)), is_gone: true, spawn: u64::MAX, ..Rank::new(0, None, app.clone()) }
    }

    /// A rank that the agent of another host starts.
    pub fn elsewhere(app: &Arc<App>, host: usize) -> Rank {
        Rank { host: Some(host), open_there: [true; 2], ..Rank::new(0, None, app.clone()) }
    }

    /// True if nothing more can come from its streams.
    pub fn is_silent(&self) -> bool {
        self.streams.iter().all(Option::is_none) && self.open_there == [false; 2]
    }

    /// The process of a job of one, which this launcher takes over.
    pub fn adopt(app: &Arc<App>, pid: u32) -> io::Result<Rank> {
        let end = end_of_process(pid)?;
        Ok(Rank { seen_claim: true, is_adopted: true, ..Rank::new(pid, Some(end), app.clone()) })
    }

    /// How the process ended, if it has; it stays a zombie.
    pub fn poll_end(&self) -> Option<Ended> {
        let Some(end) = &self.end else { return self.ended };
        if self.is_adopted {
            // Its parent alone learns how it ended.
            let mut end = [PollFd::new(end, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            return matches!(rustix::event::poll(&mut end, Some(&now)), Ok(1)).then_some(Ended::Code(0));
        }
        if self.reaped.get().is_some() {
            return self.reaped.get();
        }
        let process = self.process()?;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(process), options) {
            Ok(status) => status.and_then(|status| how(status.exit_status(), status.terminating_signal())),
            // A sandbox refuses it: then the process cannot stay a zombie.
            Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
                let (_, status) = rustix::process::waitpid(Some(process), WaitOptions::NOHANG).ok()??;
                self.reaped.set(how(status.exit_status(), status.terminating_signal()));
                self.reaped.get()
            }
            Err(_) => None,
        }
    }

    /// Finds the process that has claimed the rank. If it is not the one that we started, keeps an eye on that one too,
    /// and returns its id if it has ended already.
    pub fn look_for_claim(&mut self, claimed: Option<u32>) -> Option<u32> {
        let pid = claimed.filter(|_| !self.seen_claim)?;
        self.seen_claim = true;
        if pid == self.pid || self.host.is_some() {
            return None;
        }
        match end_of_process(pid) {
            Ok(fd) => {
                self.inner = Some((pid, fd));
                None
            }
            Err(_) => Some(pid),
        }
    }

    /// Sends SIGTERM, and SIGCONT, since a stopped process cannot end.
    pub fn ask_to_end(&self) {
        self.signal(libc::SIGTERM);
        self.signal(libc::SIGCONT);
    }

    /// Sends a signal to the rank and everything in its process group.
    pub fn signal(&self, signal: i32) {
        if self.is_adopted {
            // The program's user has the other signals sent as he likes.
            if self.ended.is_none() && [libc::SIGTERM, libc::SIGKILL].contains(&signal) {
                sys::signal_process(self.pid, signal);
            }
            return;
        }
        if self.is_gone || self.reaped.get().is_some() || self.host.is_some() {
            return;
        }
        if self.is_debugged {
            return self.signal_debugged(signal);
        }
        sys::signal_group(self.pid, signal);
    }

    /// Sends a signal to the debugger; one of the user's to the program. Ctrl-Z has reached the debugger already.
    fn signal_debugged(&self, signal: i32) {
        let program = self.inner.as_ref().map(|(pid, _)| *pid).or(self.seen_claim.then_some(self.pid));
        match (signal, program) {
            (libc::SIGUSR1 | libc::SIGUSR2, Some(pid)) => sys::signal_process(pid, signal),
            (libc::SIGUSR1 | libc::SIGUSR2 | libc::SIGSTOP, _) => false,
            _ => sys::signal_process(self.pid, signal),
        };
    }

    /// Lets the ended process go.
    pub fn reap(&mut self) {
        if self.is_adopted || self.is_gone {
            return;
        }
        self.is_gone = true;
        if let Some(process) = self.process().filter(|_| self.reaped.get().is_none()) {
            let _ = rustix::process::waitpid(Some(process), WaitOptions::empty());
        }
    }

    /// The process that the launcher started, which keeps its number until it is reaped.
    fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.pid as i32).filter(|_| self.end.is_some())
    }
}

fn how(code: Option<i32>, signal: Option<i32>) -> Option<Ended> {
    code.map(Ended::Code).or(signal.map(Ended::Signal))
}

/// Raises the limit of descriptors: a rank needs up to eight of the launcher's. Programs inherit the higher limit,
/// which the administrator allows.
pub fn raise_descriptor_limit(ranks: usize) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let needed = 8 * ranks as u64 + 64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |most| most.min(needed)));
        // If it is still not enough, the start of some rank fails and says why.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
