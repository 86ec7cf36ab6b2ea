//! The running jobs of this user on this host, and what each rank has done: what `limosa ps` and `limosa stack` show.
//!
//! There is no list of jobs anywhere. A launcher is a process that holds a memory file called `limosa-job-<id>` whose
//! header names that very process as its launcher; /proc shows those of the same user.

use std::fs::OpenOptions;
use std::os::fd::AsFd;

use limosa_job::{Board, MEMFD_PREFIX, RankView, State};
use rustix::time::{ClockId, clock_gettime};

use crate::hang::{explain, stacks};
use crate::procfs;

/// A running job, with the counters of its ranks.
pub struct RunningJob {
    pub launcher: u32,
    pub board: Board,
    pub ranks: Vec<Look>,
}

/// The counters of a rank at one moment.
pub struct Look {
    pub view: RankView,
    /// The name of its host, in a job over several, and whether that is this one.
    pub host: String,
    is_here: bool,
    pub stat: Option<procfs::Stat>,
    /// When that was, in seconds since the machine started.
    at: f64,
}

/// What a rank has done in a span of time.
pub struct Activity {
    /// Processor time used, in percent of one processor.
    pub cpu_percent: Option<f64>,
    pub sleeps: u64,
    pub wakeups: u64,
    pub idle_wakeups: u64,
}

/// The running jobs, or the one of this name.
///
/// # Errors
/// A sentence, if there is no such job.
pub fn jobs(name: Option<&str>) -> Result<Vec<RunningJob>, String> {
    let all: Vec<RunningJob> = procfs::processes().into_iter().filter_map(find).collect();
    let Some(name) = name else { return Ok(all) };
    let wanted: Vec<RunningJob> = all.into_iter().filter(|job| job.is_called(name)).collect();
    if wanted.is_empty() { Err(format!("no job of yours is called `{name}`")) } else { Ok(wanted) }
}

fn find(launcher: u32) -> Option<RunningJob> {
    let board = board_of(launcher)?;
    let ranks = looks(&board);
    Some(RunningJob { launcher, board, ranks })
}

/// The status board of the job of which this process is the launcher.
pub fn board_of(launcher: u32) -> Option<Board> {
    procfs::memory_files(launcher, MEMFD_PREFIX).into_iter().find_map(|(fd, _)| {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{launcher}/fd/{fd}")).ok()?;
        Board::open(file.as_fd()).ok().filter(|board| board.launcher_pid() == launcher)
    })
}

impl RunningJob {
    fn is_called(&self, name: &str) -> bool {
        let id = format!("{:016x}", self.board.id());
        self.launcher.to_string() == name || (!name.is_empty() && id.starts_with(&name.to_lowercase()))
    }

    /// Id, launcher and command.
    pub fn title(&self) -> String {
        let command = procfs::command_line(self.launcher).unwrap_or_default();
        format!("{:016x}  launcher {}  {} ranks  {command}", self.board.id(), self.launcher, self.board.size())
    }

    /// What the status board says of the ranks of this host.
    pub fn views(&self) -> impl Iterator<Item = &RankView> {
        self.ranks.iter().filter(|look| look.is_here).map(|look| &look.view)
    }

    /// The ranks of other hosts as far as the board knows them, with the names of their hosts.
    pub fn elsewhere(&self) -> impl Iterator<Item = (u32, &str)> {
        self.ranks.iter().filter(|look| !look.is_here).map(|look| (look.view.rank, look.host.as_str()))
    }

    /// Gives the calls of ranks the names that the program's language has for them.
    pub fn put_in_words(&mut self) {
        let waiting = self.ranks.iter().filter(|look| look.is_here && !look.view.records.is_empty());
        let targets: Vec<stacks::Target> = waiting.map(|look| (look.view.rank, process(&look.view))).collect();
        let places = stacks::collect(&targets);
        for look in &mut self.ranks {
            look.view = explain::in_words(&look.view, &places);
        }
    }

    /// Looks at the ranks once more; gives what they looked like before.
    pub fn look_again(&mut self) -> Vec<Look> {
        std::mem::replace(&mut self.ranks, looks(&self.board))
    }
}

/// The ranks that a board knows of: the agent of a host knows only those there.
fn looks(board: &Board) -> Vec<Look> {
    let is_known = |view: &RankView| board.hosts() == 1 || board.is_here(view.rank) || process(view) != 0;
    board.views().into_iter().filter(is_known).map(|view| Look::new(board, view)).collect()
}

impl Look {
    fn new(board: &Board, view: RankView) -> Look {
        let is_here = board.hosts() == 1 || board.is_here(view.rank);
        let host = board.seat(view.rank).host_name();
        let stat = procfs::stat(process(&view)).filter(|_| is_here && view.state != State::Exited);
        let now = clock_gettime(ClockId::Boottime);
        Look { view, host, is_here, stat, at: now.tv_sec as f64 + now.tv_nsec as f64 / 1e9 }
    }

    /// What the rank has done since `before`, or since it started.
    pub fn activity(&self, before: Option<&Look>) -> Activity {
        let since =
            |now: u64, count: fn(&RankView) -> u64| now.saturating_sub(before.map_or(0, |look| count(&look.view)));
        Activity {
            cpu_percent: self.cpu_percent(before),
            sleeps: since(self.view.sleeps, |view| view.sleeps),
            wakeups: since(self.view.wakeups, |view| view.wakeups),
            idle_wakeups: since(self.view.idle_wakeups, |view| view.idle_wakeups),
        }
    }

    fn cpu_percent(&self, before: Option<&Look>) -> Option<f64> {
        let stat = self.stat.as_ref()?;
        let (from, used) = match before {
            Some(look) => (look.at, look.stat.as_ref()?.cpu_seconds),
            None => (stat.begin_seconds, 0.0),
        };
        let span = self.at - from;
        (span > 0.0).then(|| 100.0 * (stat.cpu_seconds - used).max(0.0) / span)
    }
}

/// The process of a rank: the one that attached, or else the one that was started.
pub fn process(view: &RankView) -> u32 {
    if view.pid != 0 { view.pid } else { view.started }
}

pub fn state(view: &RankView) -> &'static str {
    match view.state {
        State::Running if view.is_blocked() => "blocked",
        State::Running => "running",
        State::Empty => "no MPI",
        State::Starting => "starting",
        State::Finalized => "finalized",
        State::Exited => "exited",
        State::Aborted => "aborted",
    }
}
