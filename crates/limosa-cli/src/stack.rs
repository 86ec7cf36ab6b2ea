//! `limosa stack`, and `limosa ps --stacks`: where every thread of every rank of a job is now.
//!
//! Python ranks are read by py-spy, others by gdb or eu-stack where one of them is installed. Otherwise /proc tells
//! what each thread waits for in the kernel. Above each stack stands what the status board says of the rank. The ranks
//! are stopped for some milliseconds while gdb or eu-stack reads them. py-spy stops a rank only if its stack changes
//! meanwhile.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use limosa_job::{RankView, State};

use crate::hang::{explain, stacks};
use crate::message::{print, ranks, say};
use crate::running::{self, RunningJob};
use crate::{exit, procfs};

/// Options of `limosa stack`.
#[derive(Args)]
pub struct Options {
    /// The job: the first digits of its id, or the process number of its launcher; without it all jobs
    job: Option<String>,
}

/// Runs the command.
pub fn main(options: &Options) -> ExitCode {
    let mut jobs = match running::jobs(options.job.as_deref()) {
        Ok(jobs) => jobs,
        Err(text) => {
            say(&text, Some("`limosa ps` lists the running jobs"));
            return ExitCode::from(exit::USAGE);
        }
    };
    if jobs.is_empty() {
        say("no job of yours is running on this machine", None);
    }
    for job in &mut jobs {
        job.put_in_words();
        print(&format!("job {}\n", job.title()));
        show(job);
    }
    ExitCode::SUCCESS
}

/// Prints the stacks of all ranks of a job.
pub fn show(job: &RunningJob) {
    for view in job.views() {
        print(&of_rank(view));
    }
    let mut elsewhere: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    job.elsewhere().for_each(|(rank, host)| elsewhere.entry(host).or_default().push(rank));
    for (host, numbers) in elsewhere {
        let verb = if numbers.len() == 1 { "is" } else { "are" };
        print(&format!("{} {verb} on {host}: run `limosa stack` there\n", ranks(&numbers)));
    }
}

/// The stacks of a rank, each line indented.
fn of_rank(view: &RankView) -> String {
    let process = running::process(view);
    let mut text = format!("rank {}, process {process}: {}\n", view.rank, running::state(view));
    for record in &view.records {
        text.push_str(&format!("  thread {}: {}\n", record.thread, explain::describe(record)));
    }
    if process == 0 || view.state == State::Exited {
        return text;
    }
    let body = match stacks::is_python(process) {
        true => of_python(process),
        false => native(process),
    };
    for line in body.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text
}

/// The Python stack of each thread; if py-spy cannot read it, the reason and what there is without it.
fn of_python(pid: u32) -> String {
    match stacks::dump_text(pid) {
        Ok(text) => text,
        Err(why) => format!("(no Python stack: {why})\n{}", native(pid)),
    }
}

/// The native stack of each thread, or what /proc tells of it.
fn native(pid: u32) -> String {
    let pid_text = pid.to_string();
    let gdb = ["-p", &pid_text, "-batch", "-nx", "-ex", "thread apply all bt"];
    let tools: [(&str, &[&str]); 2] = [("gdb", &gdb), ("eu-stack", &["-p", &pid_text])];
    tools
        .iter()
        .filter(|(tool, _)| procfs::in_path(tool).is_some())
        .find_map(|(tool, args)| read_by(Path::new(tool), args))
        .unwrap_or_else(|| without_tools(pid))
}

/// What a tool prints of the threads' frames; `None` if it finds none.
fn read_by(tool: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new(tool).args(args).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_threads = |line: &&str| ["#", "Thread ", "TID "].iter().any(|start| line.starts_with(start));
    let kept: Vec<&str> = text.lines().filter(of_threads).collect();
    kept.iter().any(|line| line.starts_with('#')).then(|| kept.join("\n"))
}

/// For each thread its name, its state and the kernel's function that it waits in.
fn without_tools(pid: u32) -> String {
    let mut text = String::new();
    for thread in procfs::threads(pid) {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}")).ok();
        let name = read("comm").unwrap_or_default();
        let place = read("wchan").filter(|place| !place.is_empty() && place != "0");
        let place = place.map_or("running, or in a place that the kernel does not tell".into(), |place| {
            format!("waits in the kernel in {}", place.trim())
        });
        text.push_str(&format!("thread {thread} ({}): {place}\n", name.trim()));
    }
    text.push_str("(with gdb or eu-stack installed, the functions are shown)\n");
    text
}
