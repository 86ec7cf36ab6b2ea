//! Processes that are started later, as ranks ask for them ([`super::asking`]).
//!
//! | a spawn is | from | to |
//! |---|---|---|
//! | prepared | the request | all other hosts of the job have places for its processes |
//! | placed | the answer with their numbers | *go*, or the end of the connection |
//! | starting | *go* | all processes have joined the job, or one has ended before: then the others are ended too |
//!
//! The numbers of spawned ranks are used again when all ranks of a spawn have ended; not in a job over several hosts,
//! whose processes would have to be told.

use std::ops::Range;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::sync::Arc;

use limosa_job::Spawner;
use limosa_job::control::{self, Program, Refusal, Reply, Request};

use super::Job;
use super::asking::Asker;
use crate::run::hosts::pinned;
use crate::run::hosts::wire::{Order, Prepare};
use crate::run::options::Unusable;
use crate::run::placement::choose;
use crate::run::plan::{self, App};
use crate::run::rank::{Ended, Rank};
use crate::sys::signal_name;

/// A spawn under way.
pub(super) struct Spawning {
    pub asker: Asker,
    pub number: u64,
    first: usize,
    /// The program of each rank, and its host in a job over several.
    apps: Vec<Arc<App>>,
    hosts: Vec<usize>,
    /// The hosts that have no places for them yet, and what is said when they have.
    awaited: Vec<usize>,
    places: Option<Reply>,
    is_starting: bool,
}

/// Places for a spawn, and the answer that says so.
pub(super) struct Placed {
    reply: Reply,
    number: u64,
    first: usize,
    apps: Vec<Arc<App>>,
    hosts: Vec<usize>,
}

pub(super) type Outcome<T> = Result<T, (Refusal, String)>;

fn refuse<T>(why: Refusal, text: impl Into<String>) -> Outcome<T> {
    Err((why, text.into()))
}

impl Job<'_> {
    /// Finds programs and numbers for a spawn.
    pub(super) fn place(&mut self, rank: u32, folder: &std::path::Path, programs: &[Program]) -> Outcome<Placed> {
        let Some(spawner) = self.ranks.get(rank as usize).map(|rank| rank.app.clone()) else {
            return refuse(Refusal::Request, format!("there is no rank {rank} that could spawn processes"));
        };
        if self.ending.is_some() || self.interrupted.is_some() {
            return refuse(Refusal::Spawn, "the job is about to end");
        }
        let placement = &self.plan.placement;
        let found = programs.iter().map(|program| plan::spawned(program, &spawner, folder, placement));
        let (found, allowed): (Vec<Arc<App>>, Vec<Vec<usize>>) = match found.collect::<Result<Vec<_>, _>>() {
            Ok(found) => found.into_iter().map(|(app, hosts)| (Arc::new(app), hosts)).unzip(),
            Err(Unusable { what, hint }) => {
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
        let hosts = self.hosts_for(&allowed, &counts);
        self.next_number = first + appnums.len() as u32;
        self.spawns += 1;
        let number = self.spawns;
        if let Err(error) = self.board.prepare(self.segment.as_fd(), first, &appnums, &Spawner { rank, number }) {
            return refuse(Refusal::Spawn, format!("there is not enough memory for more processes: {error}"));
        }
        if !hosts.is_empty() {
            let numbers: Vec<u32> = hosts.iter().map(|host| *host as u32).collect();
            if let Some(Err(error)) = self.between.courier.as_ref().map(|courier| courier.add(first, &numbers)) {
                return refuse(Refusal::Spawn, format!("there can be no messages of more processes: {error}"));
            }
            for (rank, host) in (first..).zip(&numbers) {
                self.board.set_host_of_spawned(rank, *host, &self.plan.placement.hosts[*host as usize].name);
            }
            let prepare = Prepare { spawn: number, parent: rank, first, appnums, hosts: numbers };
            self.order_all(&Order::Prepare(Box::new(prepare)));
        }
        Ok(Placed { reply: Reply::Places { first, number, counts }, number, first: first as usize, apps, hosts })
    }

    /// The hosts of so many processes of each program; none in a job on one host.
    fn hosts_for(&self, allowed: &[Vec<usize>], counts: &[u32]) -> Vec<usize> {
        let placement = &self.plan.placement;
        if placement.hosts.is_empty() {
            return Vec::new();
        }
        let mut free = placement.slots.clone();
        let waiting =
            self.spawning.iter().filter(|spawning| !spawning.is_starting).flat_map(|s| s.hosts.iter().copied());
        let living =
            self.ranks.iter().filter(|rank| rank.ended.is_none()).filter_map(|rank| rank.host.or(placement.here));
        for host in waiting.chain(living) {
            free[host] = free[host].saturating_sub(1);
        }
        allowed.iter().zip(counts).flat_map(|(allowed, count)| choose(&mut free, allowed, *count)).collect()
    }

    /// Waits until all hosts have places for a spawn.
    pub(super) fn begin_spawn(&mut self, asker: Asker, placed: Placed) {
        let Placed { reply, number, first, apps, hosts } = placed;
        let awaited = (0..self.links.len()).filter(|host| self.links[*host].is_some()).collect();
        let places = Some(reply);
        self.spawning.push(Spawning { asker, number, first, apps, hosts, awaited, places, is_starting: false });
        self.tell_places(number);
    }

    /// A host has places for the processes of a spawn, or has none.
    pub(super) fn prepared(&mut self, host: usize, number: u64, refusal: Option<String>) {
        if let Some(why) = refusal {
            let name = &self.plan.placement.hosts[host].name;
            return self.fail_spawn(number, format!("there is not enough memory for more processes on {name}: {why}"));
        }
        if let Some(spawning) = self.spawning.iter_mut().find(|spawning| spawning.number == number) {
            spawning.awaited.retain(|awaited| *awaited != host);
            self.tell_places(number);
        }
    }

    /// Says which numbers the processes will have, once all hosts have places for them.
    fn tell_places(&mut self, number: u64) {
        let Some(at) = self.spawning.iter().position(|spawning| spawning.number == number) else { return };
        if self.spawning[at].awaited.is_empty()
            && let Some(places) = self.spawning[at].places.take()
        {
            let spawning = self.spawning.remove(at);
            self.answer(&spawning.asker, &places);
            self.spawning.insert(at, spawning);
        }
    }

    /// A host is lost: spawns that need it fail.
    pub(super) fn fail_spawns_on(&mut self, host: usize, why: &str) {
        let needs_it = |spawning: &&Spawning| spawning.awaited.contains(&host) || spawning.hosts.contains(&host);
        let numbers: Vec<u64> = self.spawning.iter().filter(needs_it).map(|spawning| spawning.number).collect();
        numbers.into_iter().for_each(|number| self.fail_spawn(number, why.to_owned()));
    }

    /// The agent of its host could not start a spawned rank.
    pub(super) fn never_started(&mut self, index: usize, why: String) {
        let rank = &mut self.ranks[index];
        (rank.ended, rank.is_gone, rank.is_unwanted) = (Some(Ended::Signal(libc::SIGKILL)), true, true);
        let number = rank.spawn;
        (0..2).for_each(|kind| self.end_stream(index, kind));
        self.fail_spawn(number, why);
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
        if !self.plan.placement.hosts.is_empty() {
            return self.free_in_a_row(after..capacity, size);
        }
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
        let asker = self.spawning.iter().find(|spawning| spawning.number == number).map(|spawning| &spawning.asker);
        if let Some(Asker::Here(stream)) = asker {
            let request = control::receive(stream).and_then(Request::read);
            self.proceed(number, matches!(request, Ok(Request::Go)));
        }
    }

    /// Starts the processes of a spawn, or gives it up.
    pub(super) fn proceed(&mut self, number: u64, is_go: bool) {
        let Some(at) = self.spawning.iter().position(|spawning| spawning.number == number) else { return };
        if !is_go || self.spawning[at].is_starting || self.spawning[at].places.is_some() {
            let spawning = self.spawning.remove(at);
            let ranks = spawning.first..spawning.first + spawning.apps.len();
            ranks.for_each(|rank| self.board.seat(rank as u32).exited());
            if spawning.is_starting {
                self.discard(number);
            }
            return;
        }
        self.spawning[at].is_starting = true;
        let (first, apps, hosts) =
            (self.spawning[at].first, self.spawning[at].apps.clone(), self.spawning[at].hosts.clone());
        for (rank, app) in (first..).zip(&apps) {
            let host = hosts.get(rank - first).copied().filter(|host| Some(*host) != self.plan.placement.here);
            if let Err(error) = self.start_spawned(rank, app, host, number) {
                let text = format!("{} cannot be started: {error}", app.program.display());
                (rank..first + apps.len()).for_each(|rank| self.board.seat(rank as u32).exited());
                return self.fail_spawn(number, text);
            }
        }
    }

    fn start_spawned(&mut self, rank: usize, app: &Arc<App>, host: Option<usize>, spawn: u64) -> std::io::Result<()> {
        if let Some(files) = &mut self.files {
            files.add(rank + 1).map_err(|error| std::io::Error::other(error.what))?;
        }
        let started = match host {
            Some(host) => self.start_elsewhere(rank as u32, app, host, spawn)?,
            None => {
                let segment = self.segment.as_fd();
                let app = Arc::new(pinned(app, &self.settings.config.device, self.between.address));
                let started = Rank::start(&app, rank as u32, &self.board, segment, Some(Stdio::null()), &[])?;
                self.guardian.group(started.pid);
                if self.settings.verbose {
                    let text = format!("limosa: rank {rank} is process {}: {}\n", started.pid, app.program.display());
                    self.say(&text);
                }
                started
            }
        };
        // A spawn that was placed before this one may start later, or never.
        while self.ranks.len() < rank {
            self.ranks.push(Rank::absent(app));
        }
        match self.ranks.get_mut(rank) {
            Some(old) => *old = started,
            None => self.ranks.push(started),
        }
        self.drained_at = None;
        Ok(())
    }

    /// Has the agent of another host start a rank.
    fn start_elsewhere(&mut self, rank: u32, app: &Arc<App>, host: usize, spawn: u64) -> std::io::Result<Rank> {
        let order = Order::Spawn(rank, Box::new(self.plan.elsewhere(app)));
        let Some(link) = self.links[host].as_mut() else {
            return Err(std::io::Error::other(format!("the host {} is lost", self.plan.placement.hosts[host].name)));
        };
        link.spawned.push(rank);
        link.send(&order);
        Ok(Rank { spawn, ..Rank::elsewhere(app, host) })
    }

    /// Says that a spawn has failed, and ends those of its processes that were started.
    fn fail_spawn(&mut self, number: u64, text: String) {
        if let Some(at) = self.spawning.iter().position(|spawning| spawning.number == number) {
            let spawning = self.spawning.remove(at);
            let reply = Reply::Refused { why: Refusal::Spawn, text };
            self.answer(&spawning.asker, &reply);
        }
        self.discard(number);
    }

    fn discard(&mut self, number: u64) {
        for (index, rank) in self.ranks.iter_mut().enumerate() {
            if rank.spawn != number || rank.ended.is_some() {
                continue;
            }
            rank.is_unwanted = true;
            rank.signal(libc::SIGKILL);
            if let Some(link) = rank.host.and_then(|host| self.links[host].as_mut()) {
                link.send(&Order::KillRank(index as u32));
            }
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
        for spawning in self.spawning.extract_if(.., has_joined).collect::<Vec<_>>() {
            self.answer(&spawning.asker, &Reply::Started);
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
        // Whatever it has started ends with it; nothing would know of it later.
        self.ranks[index].signal(libc::SIGKILL);
        self.drain_rank(index);
        self.ranks[index].streams.iter_mut().for_each(|stream| *stream = None);
        if self.ranks[index].host.is_none() {
            self.guardian.gone(self.ranks[index].pid);
        }
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
