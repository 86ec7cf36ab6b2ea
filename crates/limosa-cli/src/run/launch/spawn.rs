//! What ranks ask the launcher for: processes that are started later, and names of ports ([`limosa_job::control`]).
//!
//! | a spawn is | from | to |
//! |---|---|---|
//! | placed | the request | *go*, or the end of the connection |
//! | starting | *go* | all processes have joined the job, or one has ended before: then the others are ended too |
//!
//! The numbers of spawned ranks are used again when all ranks of a spawn have ended.

use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use limosa_job::Spawner;
use limosa_job::control::{self, Program, Refusal, Reply, Request};

use super::Job;
use crate::run::plan::{self, App};
use crate::run::rank::{Ended, Rank};
use crate::sys::signal_name;

/// How long a rank may take to send a request that it has begun.
const REQUEST: Duration = Duration::from_secs(2);

/// A spawn under way.
pub(super) struct Spawning {
    pub stream: UnixStream,
    pub number: u64,
    first: usize,
    /// The program of each rank.
    apps: Vec<Arc<App>>,
    is_starting: bool,
}

/// Places for a spawn, and the answer that says so.
struct Placed {
    reply: Reply,
    number: u64,
    first: usize,
    apps: Vec<Arc<App>>,
}

type Outcome<T> = Result<T, (Refusal, String)>;

fn refuse<T>(why: Refusal, text: impl Into<String>) -> Outcome<T> {
    Err((why, text.into()))
}

impl Job<'_> {
    /// A rank asks for something.
    pub(super) fn on_control(&mut self) {
        let Some(Ok((stream, _))) = self.control.as_ref().map(|control| control.accept()) else { return };
        let is_ours = control::check_user(stream.as_fd()).is_ok()
            && stream.set_nonblocking(false).is_ok()
            && stream.set_read_timeout(Some(REQUEST)).is_ok()
            && stream.set_write_timeout(Some(REQUEST)).is_ok();
        if !is_ours {
            return;
        }
        let reply = match control::receive(&stream).and_then(Request::read) {
            Ok(Request::Spawn { rank, folder, programs }) => {
                match self.place(rank, &PathBuf::from(std::ffi::OsString::from_vec(folder)), &programs) {
                    Ok(Placed { reply, number, first, apps }) => {
                        if control::send(&stream, &reply.fields()).is_ok() {
                            self.spawning.push(Spawning { stream, number, first, apps, is_starting: false });
                        }
                        return;
                    }
                    Err((why, text)) => Reply::Refused { why, text },
                }
            }
            Ok(Request::Go) => Reply::Refused { why: Refusal::Request, text: "there is nothing to start".into() },
            Ok(other) => self.named(other),
            Err(error) => Reply::Refused { why: Refusal::Request, text: error.to_string() },
        };
        // Who has asked may have ended.
        let _ = control::send(&stream, &reply.fields());
    }

    fn named(&mut self, request: Request) -> Reply {
        let refused = |text: String| Reply::Refused { why: Refusal::Name, text };
        let show = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        match request {
            Request::Publish { service, .. } if self.names.contains_key(&service) => {
                refused(format!("the name `{}` is published already: unpublish it first", show(&service)))
            }
            Request::Publish { service, port } => {
                self.names.insert(service, port);
                Reply::Done
            }
            Request::Unpublish { service } => match self.names.remove(&service) {
                Some(_) => Reply::Done,
                None => refused(format!("no name `{}` is published in this job", show(&service))),
            },
            Request::Lookup { service } => match self.names.get(&service) {
                Some(port) => Reply::Port(port.clone()),
                None => refused(format!("no name `{}` is published in this job", show(&service))),
            },
            Request::Spawn { .. } | Request::Go => refused("the request is not understood".into()),
        }
    }

    /// Finds programs and numbers for a spawn.
    fn place(&mut self, rank: u32, folder: &std::path::Path, programs: &[Program]) -> Outcome<Placed> {
        let Some(spawner) = self.ranks.get(rank as usize).map(|rank| rank.app.clone()) else {
            return refuse(Refusal::Request, format!("there is no rank {rank} that could spawn processes"));
        };
        if self.ending.is_some() || self.interrupted.is_some() {
            return refuse(Refusal::Spawn, "the job is about to end");
        }
        let found = programs.iter().map(|program| plan::spawned(program, &spawner, folder).map(Arc::new));
        let found: Vec<Arc<App>> = match found.collect() {
            Ok(found) => found,
            Err(plan::Unusable { what, hint }) => {
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                return refuse(Refusal::Spawn, format!("{what}{hint}"));
            }
        };
        let Some((first, counts)) = self.room_for(programs) else {
            let asked: u64 = programs.iter().map(|program| u64::from(program.count)).sum();
            let room = self.board.capacity();
            return refuse(
                Refusal::Spawn,
                format!(
                    "there is no room for {asked} more processes: this job has room for {room} in all, which \
                     --universe-size of `limosa run` raises"
                ),
            );
        };
        if counts.iter().sum::<u32>() == 0 {
            return refuse(Refusal::Spawn, "maxprocs is 0 for all programs: there is nothing to start");
        }
        let numbered = || counts.iter().enumerate().flat_map(|(app, count)| std::iter::repeat_n(app, *count as usize));
        let appnums: Vec<u32> = numbered().map(|app| app as u32).collect();
        let apps: Vec<Arc<App>> = numbered().map(|app| found[app].clone()).collect();
        self.next_number = first + appnums.len() as u32;
        self.spawns += 1;
        let number = self.spawns;
        if let Err(error) = self.board.prepare(self.segment.as_fd(), first, &appnums, &Spawner { rank, number }) {
            return refuse(Refusal::Spawn, format!("there is not enough memory for more processes: {error}"));
        }
        Ok(Placed { reply: Reply::Places { first, number, counts }, number, first: first as usize, apps })
    }

    /// The first of enough free numbers in a row, and how many processes of each program there will be.
    fn room_for(&self, programs: &[Program]) -> Option<(u32, Vec<u32>)> {
        let counts = |of: fn(&Program) -> u32| -> Vec<u32> { programs.iter().map(of).collect() };
        let fits = |counts: Vec<u32>| {
            let size = counts.iter().try_fold(0u32, |sum, count| sum.checked_add(*count))?;
            self.free_numbers(size).map(|first| (first, counts))
        };
        if let Some(found) = fits(counts(|program| program.count)) {
            return Some(found);
        }
        // Fewer will do for some: as few as that.
        if programs.iter().all(|program| program.least == program.count) {
            return None;
        }
        fits(counts(|program| program.least))
    }

    fn free_numbers(&self, size: u32) -> Option<u32> {
        let (started, capacity) = (self.board.size(), self.board.capacity());
        // Those that were freed longest ago first: what their processes sent last has been taken by then.
        let after = self.next_number.clamp(started, capacity);
        self.free_in_a_row(after..capacity, size).or_else(|| self.free_in_a_row(started..capacity, size))
    }

    fn free_in_a_row(&self, numbers: Range<u32>, size: u32) -> Option<u32> {
        let mut run = 0;
        for number in numbers {
            run = if self.is_free(number as usize) { run + 1 } else { 0 };
            if run >= size.max(1) {
                return Some(number + 1 - run);
            }
        }
        None
    }

    fn is_free(&self, number: usize) -> bool {
        let is_placed = |spawning: &Spawning| (spawning.first..spawning.first + spawning.apps.len()).contains(&number);
        if self.spawning.iter().any(is_placed) {
            return false;
        }
        match self.ranks.get(number) {
            None => true,
            Some(rank) => !self.ranks.iter().any(|other| other.spawn == rank.spawn && !other.is_gone),
        }
    }

    /// The rank that has asked for this spawn says something more, or has gone.
    pub(super) fn on_spawner(&mut self, number: u64) {
        let Some(at) = self.spawning.iter().position(|spawning| spawning.number == number) else { return };
        let request = control::receive(&self.spawning[at].stream).and_then(Request::read);
        if !matches!(request, Ok(Request::Go)) || self.spawning[at].is_starting {
            let spawning = self.spawning.remove(at);
            let ranks = spawning.first..spawning.first + spawning.apps.len();
            ranks.for_each(|rank| self.board.seat(rank as u32).exited());
            if spawning.is_starting {
                self.discard(number);
            }
            return;
        }
        self.spawning[at].is_starting = true;
        let (first, apps) = (self.spawning[at].first, self.spawning[at].apps.clone());
        for (rank, app) in (first..).zip(&apps) {
            if let Err(error) = self.start_spawned(rank, app) {
                let text = format!("{} cannot be started: {error}", app.program.display());
                (rank..first + apps.len()).for_each(|rank| self.board.seat(rank as u32).exited());
                return self.fail_spawn(number, text);
            }
        }
    }

    fn start_spawned(&mut self, rank: usize, app: &Arc<App>) -> std::io::Result<()> {
        if let Some(files) = &mut self.files {
            files.add(rank + 1).map_err(|error| std::io::Error::other(error.what))?;
        }
        let segment = self.segment.as_fd();
        let started = Rank::start(app, rank as u32, &self.board, segment, Stdio::null(), &[])?;
        self.guardian.group(started.pid);
        if self.settings.verbose {
            let text = format!("limosa: rank {rank} is process {}: {}\n", started.pid, app.program.display());
            self.say(&text);
        }
        // A spawn that was placed before this one may start later, or never.
        while self.ranks.len() < rank {
            self.ranks.push(Rank::absent(app, self.wake.try_clone()?));
        }
        match self.ranks.get_mut(rank) {
            Some(old) => *old = started,
            None => self.ranks.push(started),
        }
        self.drained_at = None;
        Ok(())
    }

    /// Says that a spawn has failed, and ends those of its processes that were started.
    fn fail_spawn(&mut self, number: u64, text: String) {
        if let Some(at) = self.spawning.iter().position(|spawning| spawning.number == number) {
            let spawning = self.spawning.remove(at);
            let reply = Reply::Refused { why: Refusal::Spawn, text };
            let _ = control::send(&spawning.stream, &reply.fields());
        }
        self.discard(number);
    }

    fn discard(&mut self, number: u64) {
        for rank in self.ranks.iter_mut().filter(|rank| rank.spawn == number && rank.ended.is_none()) {
            rank.is_unwanted = true;
            rank.signal(libc::SIGKILL);
        }
    }

    /// Answers spawns all of whose processes have joined.
    pub(super) fn check_joined(&mut self) {
        let ranks = &self.ranks;
        let has_joined = |spawning: &mut Spawning| {
            spawning.is_starting
                && (spawning.first..spawning.first + spawning.apps.len())
                    .all(|rank| ranks.get(rank).is_some_and(|rank| rank.spawn == spawning.number && rank.seen_claim))
        };
        for spawning in self.spawning.extract_if(.., has_joined) {
            let _ = control::send(&spawning.stream, &Reply::Started.fields());
        }
    }

    /// A rank has ended. True if that needs no more attention: it was spawned, and its spawn fails because of it or has
    /// failed.
    pub(super) fn spawned_ended(&mut self, index: usize, ended: Ended, app: &App) -> bool {
        let number = self.ranks[index].spawn;
        if number == 0 {
            if self.ranks[index].is_adopted {
                self.soon(crate::run::outcome::Cause::ProgramEnded, super::ORDERLY_GRACE);
            }
            return false;
        }
        // Whatever it has started ends with it; nobody would know of it later.
        self.ranks[index].signal(libc::SIGKILL);
        self.drain_rank(index);
        self.ranks[index].streams.iter_mut().for_each(|stream| *stream = None);
        self.guardian.gone(self.ranks[index].pid);
        self.ranks[index].reap();
        if self.spawning.iter().any(|spawning| spawning.number == number) {
            let how = match ended {
                Ended::Code(code) => format!("exited with code {code}"),
                Ended::Signal(signal) => format!("was killed by signal {signal} ({})", signal_name(signal)),
            };
            let name = app.name.to_string_lossy();
            self.fail_spawn(number, format!("{name}, which was spawned as rank {index}, {how} before MPI_Init"));
            return true;
        }
        self.ranks[index].is_unwanted
    }
}
