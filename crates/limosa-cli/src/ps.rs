//! `limosa ps`: the running jobs and what each rank is doing.
//!
//! The activity of a rank: its processor use comes from /proc, its sleeps and wake-ups from the board. Both are counted
//! from the rank's start, or, with `--during`, over a span in which this command waits.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use limosa_job::{Peer, RankView, Record, monotonic_ns};
use serde_json::{Value, json};

use crate::hang::explain;
use crate::message::{Format, bytes, duration, print, say};
use crate::running::{Look, RunningJob, jobs, process, state};
use crate::{exit, procfs, stack};

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
        before = jobs.iter_mut().map(RunningJob::look_again).collect();
    }
    jobs.iter_mut().for_each(RunningJob::put_in_words);
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

fn since(view: &RankView, now: u64) -> f64 {
    let from = match view.records.iter().map(|r| r.since_ns).min() {
        Some(asleep) if view.is_blocked() => asleep,
        _ => view.state_since_ns,
    };
    if from == 0 { 0.0 } else { now.saturating_sub(from) as f64 / 1e9 }
}

fn as_text(job: &RunningJob, before: Option<&[Look]>) -> String {
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

fn as_json(job: &RunningJob, before: Option<&[Look]>) -> Value {
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
