//! `limosa ps`: the running jobs and what each rank is doing.
//!
//! There is no list of jobs anywhere. A launcher is a process that holds a memory file called `limosa-job-<id>` whose
//! header names that very process as its launcher; /proc shows those of the same user.
//!
//! The activity of a rank: its processor use comes from /proc, its sleeps and wake-ups from the board. Both are counted
//! from the rank's start, or, with `--during`, over a span in which this command waits.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use limosa_job::{Board, MEMFD_PREFIX, Peer, RankView, Record, State, monotonic_ns};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::hang::{explain, stacks};
use crate::message::{bytes, duration, print, say};
use crate::{Format, exit, procfs, stack};

/// Options of `limosa ps`.
#[derive(Args)]
pub struct Options {
    /// How to write the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Count CPU time, sleeps and wake-ups over the next SECONDS instead of since each rank's start
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    during: Option<f64>,
    /// Show also the stacks of all threads, as `limosa stack` does
    #[arg(long, conflicts_with = "format")]
    stacks: bool,
    /// The job: the first digits of its id, or the process number of its launcher; without it all jobs
    job: Option<String>,
}

/// The longest time that `--during` takes, in seconds: a day.
const LONGEST: f64 = 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value| (0.1..=LONGEST).contains(value))
        .ok_or_else(|| format!("a number of seconds from 0.1 to {LONGEST} is needed"))
}

/// A job that was found.
pub struct Found {
    launcher: u32,
    board: Board,
    ranks: Vec<Look>,
}

/// The counters of a rank at one moment.
struct Look {
    view: RankView,
    /// The name of its host, in a job over several, and whether that is this one.
    host: String,
    is_here: bool,
    stat: Option<procfs::Stat>,
    /// When that was, in seconds since the machine started.
    at: f64,
}

/// What a rank has done in a span of time.
struct Activity {
    /// Processor time used, in percent of one processor.
    cpu_percent: Option<f64>,
    sleeps: u64,
    wakeups: u64,
    idle_wakeups: u64,
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let mut jobs = match jobs(options.job.as_deref()) {
        Ok(jobs) => jobs,
        Err(text) => {
            say(&text, Some("`limosa ps` lists the running jobs"));
            return ExitCode::from(exit::USAGE);
        }
    };
    let mut before: Vec<Vec<Look>> = Vec::new();
    if let Some(seconds) = options.during {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        before = jobs.iter_mut().map(Found::look_again).collect();
    }
    jobs.iter_mut().for_each(Found::put_in_words);
    let with_before = || jobs.iter().enumerate().map(|(i, job)| (job, before.get(i).map(Vec::as_slice)));
    match options.format {
        Format::Json => print(&format!(
            "{:#}\n",
            Value::from(with_before().map(|(job, before)| as_json(job, before)).collect::<Vec<_>>())
        )),
        Format::Text if jobs.is_empty() => say("no job of yours is running on this machine", None),
        Format::Text => with_before().for_each(|(job, before)| {
            print(&as_text(job, before));
            if options.stacks {
                stack::show(job);
            }
        }),
    }
    ExitCode::SUCCESS
}

/// The running jobs, or the one of this name.
///
/// # Errors
/// A sentence, if there is no such job.
pub fn jobs(name: Option<&str>) -> Result<Vec<Found>, String> {
    let all: Vec<Found> = procfs::processes().into_iter().filter_map(find).collect();
    let Some(name) = name else { return Ok(all) };
    let wanted: Vec<Found> = all.into_iter().filter(|job| job.is_called(name)).collect();
    if wanted.is_empty() { Err(format!("no job of yours is called `{name}`")) } else { Ok(wanted) }
}

fn find(launcher: u32) -> Option<Found> {
    let board = board_of(launcher)?;
    let ranks = looks(&board);
    Some(Found { launcher, board, ranks })
}

/// The status board of the job of which this process is the launcher.
pub fn board_of(launcher: u32) -> Option<Board> {
    procfs::memory_files(launcher, MEMFD_PREFIX).into_iter().find_map(|(fd, _)| {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{launcher}/fd/{fd}")).ok()?;
        Board::open(file.as_fd()).ok().filter(|board| board.launcher_pid() == launcher)
    })
}

impl Found {
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

    /// Gives the calls of ranks that run Python the names by which the program knows them.
    pub fn put_in_words(&mut self) {
        let waiting = self.ranks.iter().filter(|look| look.is_here && !look.view.records.is_empty());
        let targets: Vec<stacks::Target> = waiting.map(|look| (look.view.rank, process(&look.view))).collect();
        let places = stacks::collect(&targets);
        for look in &mut self.ranks {
            look.view = explain::in_words(&look.view, &places);
        }
    }

    /// Looks at the ranks once more; gives what they looked like before.
    fn look_again(&mut self) -> Vec<Look> {
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
    fn activity(&self, before: Option<&Look>) -> Activity {
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

fn since(view: &RankView, now: u64) -> f64 {
    let from = match view.records.iter().map(|r| r.since_ns).min() {
        Some(asleep) if view.is_blocked() => asleep,
        _ => view.state_since_ns,
    };
    if from == 0 { 0.0 } else { now.saturating_sub(from) as f64 / 1e9 }
}

fn as_text(job: &Found, before: Option<&[Look]>) -> String {
    let now = monotonic_ns();
    let mut text = format!("job {}\n", job.title());
    let widest = job.ranks.iter().map(|look| look.host.len() + 1).max().filter(|width| *width > 1);
    let host = |name: &str| widest.map_or(String::new(), |width| format!("{name:<width$}"));
    text.push_str(&host("host"));
    text.push_str(&format!(
        "{:>5} {:>8} {:<9} {:>7} {:>8} {:>7} {:>10} {:>8} {:>8} {:>8}  {}\n",
        "rank", "process", "state", "since", "cpu", "cpu %", "memory", "slept", "woken", "in vain", "waits in"
    ));
    for (rank, look) in job.ranks.iter().enumerate() {
        let Look { view, stat, .. } = look;
        let activity = look.activity(before.and_then(|looks| looks.get(rank)));
        let cpu = stat.as_ref().map_or("-".into(), |s| duration(s.cpu_seconds));
        let percent = activity.cpu_percent.map_or("-".into(), |percent| format!("{percent:.2}"));
        let memory = stat.as_ref().map_or("-".into(), |s| bytes(s.rss_bytes));
        let waits: Vec<String> = view.records.iter().map(explain::describe).collect();
        let line = format!(
            "{:>5} {:>8} {:<9} {:>7} {:>8} {:>7} {:>10} {:>8} {:>8} {:>8}  {}",
            view.rank,
            process(view),
            state(view),
            duration(since(view, now)),
            cpu,
            percent,
            memory,
            activity.sleeps,
            activity.wakeups,
            activity.idle_wakeups,
            waits.join("; ")
        );
        text.push_str(&host(&look.host));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn as_json(job: &Found, before: Option<&[Look]>) -> Value {
    let now = monotonic_ns();
    let rank = |(rank, look): (usize, &Look)| rank_json(look, before.and_then(|looks| looks.get(rank)), now);
    let ranks: Vec<Value> = job.ranks.iter().enumerate().map(rank).collect();
    json!({
        "id": format!("{:016x}", job.board.id()),
        "launcher": job.launcher,
        "command": procfs::command_line(job.launcher),
        "ranks": ranks,
    })
}

fn rank_json(look: &Look, before: Option<&Look>, now: u64) -> Value {
    let Look { view, stat, .. } = look;
    let activity = look.activity(before);
    json!({
        "rank": view.rank,
        "host": Some(&look.host).filter(|host| !host.is_empty()),
        "process": process(view),
        "state": state(view),
        "since_seconds": since(view, now),
        "cpu_seconds": stat.as_ref().map(|s| s.cpu_seconds),
        "cpu_percent": activity.cpu_percent,
        "memory_bytes": stat.as_ref().map(|s| s.rss_bytes),
        "sleeps": activity.sleeps,
        "wakeups": activity.wakeups,
        "idle_wakeups": activity.idle_wakeups,
        "threads": view.records.iter().map(|record| record_json(record, now)).collect::<Vec<_>>(),
    })
}

fn record_json(record: &Record, now: u64) -> Value {
    let waits = record.waits.iter().map(|wait| {
        let (peer, world) = match wait.peer {
            Peer::Any => (json!("any"), Value::Null),
            Peer::Members => (json!("all"), Value::Null),
            Peer::Outside { .. } => (json!("another job"), Value::Null),
            Peer::Rank { rank, world } => (json!(rank), json!(world)),
        };
        json!({
            "peer": peer,
            "world_rank": world,
            "tag": wait.tag,
            "communicator": wait.comm,
            "text": explain::peer(wait),
        })
    });
    json!({
        "call": record.call,
        "thread": record.thread,
        "since_seconds": now.saturating_sub(record.since_ns) as f64 / 1e9,
        "waits": waits.collect::<Vec<_>>(),
        "more": record.more,
        "polls": record.polls > 0,
        "unreceived": record.lying.len() as u64 + u64::from(record.more_lying),
    })
}
