//! `limosa ps`: the running jobs and what each rank is doing.
//!
//! There is no list of jobs anywhere. A launcher is a process that holds a memory file called `limosa-job-<id>` whose header names that very
//! process as its launcher; /proc shows those of the same user.

use std::fs::OpenOptions;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Args;
use limosa_job::{Board, MEMFD_PREFIX, Peer, RankView, Record, State, monotonic_ns};
use serde_json::{Value, json};

use crate::hang::explain;
use crate::message::{bytes, duration, print, say};
use crate::{Format, procfs};

/// Options of `limosa ps`.
#[derive(Args)]
pub struct Options {
    /// How to write the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// A job that was found.
struct Found {
    launcher: u32,
    board: Board,
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let jobs: Vec<Found> = procfs::processes().into_iter().filter_map(find).collect();
    match options.format {
        Format::Json => print(&format!("{:#}\n", Value::from(jobs.iter().map(as_json).collect::<Vec<_>>()))),
        Format::Text if jobs.is_empty() => say("no job of yours is running on this machine", None),
        Format::Text => jobs.iter().for_each(|job| print(&as_text(job))),
    }
    ExitCode::SUCCESS
}

fn find(launcher: u32) -> Option<Found> {
    procfs::memory_files(launcher, MEMFD_PREFIX).into_iter().find_map(|(fd, _)| {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{launcher}/fd/{fd}")).ok()?;
        let board = Board::open(file.as_fd()).ok()?;
        (board.launcher_pid() == launcher).then_some(Found { launcher, board })
    })
}

/// The process of a rank: the one that attached, or else the one that was started.
fn process(view: &RankView) -> u32 {
    if view.pid != 0 { view.pid } else { view.started }
}

fn state(view: &RankView) -> &'static str {
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

fn as_text(job: &Found) -> String {
    let now = monotonic_ns();
    let command = procfs::command_line(job.launcher).unwrap_or_default();
    let mut text = format!("job {:016x}  launcher {}  {} ranks  {command}\n", job.board.id(), job.launcher, job.board.size());
    text.push_str(&format!("{:>5} {:>8} {:<9} {:>7} {:>8} {:>10}  {}\n", "rank", "process", "state", "since", "cpu", "memory", "waits in"));
    for view in job.board.views() {
        let stat = procfs::stat(process(&view)).filter(|_| view.state != State::Exited);
        let cpu = stat.as_ref().map_or("-".into(), |s| duration(s.cpu_seconds));
        let memory = stat.as_ref().map_or("-".into(), |s| bytes(s.rss_bytes));
        let waits: Vec<String> = view.records.iter().map(explain::describe).collect();
        text.push_str(&format!(
            "{:>5} {:>8} {:<9} {:>7} {:>8} {:>10}  {}\n",
            view.rank,
            process(&view),
            state(&view),
            duration(since(&view, now)),
            cpu,
            memory,
            waits.join("; ")
        ));
    }
    text
}

fn as_json(job: &Found) -> Value {
    let now = monotonic_ns();
    let ranks: Vec<Value> = job.board.views().iter().map(|view| rank_json(view, now)).collect();
    json!({ "id": format!("{:016x}", job.board.id()), "launcher": job.launcher, "command": procfs::command_line(job.launcher), "ranks": ranks })
}

fn rank_json(view: &RankView, now: u64) -> Value {
    let stat = procfs::stat(process(view)).filter(|_| view.state != State::Exited);
    json!({
        "rank": view.rank,
        "process": process(view),
        "state": state(view),
        "since_seconds": since(view, now),
        "cpu_seconds": stat.as_ref().map(|s| s.cpu_seconds),
        "memory_bytes": stat.as_ref().map(|s| s.rss_bytes),
        "sleeps": view.sleeps,
        "wakeups": view.wakeups,
        "threads": view.records.iter().map(|record| record_json(record, now)).collect::<Vec<_>>(),
    })
}

fn record_json(record: &Record, now: u64) -> Value {
    let waits = record.waits.iter().map(|wait| {
        let (peer, world) = match wait.peer {
            Peer::Any => (json!("any"), Value::Null),
            Peer::Members => (json!("all"), Value::Null),
            Peer::Rank { rank, world } => (json!(rank), json!(world)),
        };
        json!({ "peer": peer, "world_rank": world, "tag": wait.tag, "communicator": wait.comm, "text": explain::peer(wait) })
    });
    json!({
        "call": record.call,
        "thread": record.thread,
        "since_seconds": now.saturating_sub(record.since_ns) as f64 / 1e9,
        "waits": waits.collect::<Vec<_>>(),
        "more": record.more,
    })
}
