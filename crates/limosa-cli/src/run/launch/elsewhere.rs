//! Ranks of other hosts: the agents there, what they report, and input for their ranks ([`crate::run::hosts`]).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use limosa_job::config::DeviceChoice;
use limosa_job::monotonic_ns;
use rustix::event::{PollFd, Timespec};

use super::{Job, Settings};
use crate::run::hosts::link::{ALIVE, Link};
use crate::run::hosts::wire::{Come, Order, Report, Start};
use crate::run::hosts::{address, callers, courier, folders, pinned, portable_variables, tree};
use crate::run::input::Chunk;
use crate::run::outcome::Cause;
use crate::run::plan::{App, Plan};
use crate::run::rank::Ended;

/// How long an agent may take to end when it is told to.
const FAREWELL: Duration = Duration::from_secs(3);

/// What this host needs for messages to other hosts.
pub(super) struct Between {
    /// Where others reach it.
    pub(super) address: Option<IpAddr>,
    /// The folder for files of messages.
    pub(super) owner: Option<folders::Owner>,
    /// What carries the files, if other hosts have folders of their own; before it runs.
    pub(super) prepared: Option<courier::Prepared>,
    pub(super) courier: Option<courier::Running>,
}

impl Between {
    /// Also the programs as the ranks of this host run them.
    pub(super) fn new(plan: &Plan, settings: &Settings) -> (Vec<Arc<App>>, Between) {
        let address = address::towards_others(&settings.config, &plan.placement);
        let apps = plan.apps.iter().map(|app| Arc::new(pinned(app, &settings.config.device, address))).collect();
        (apps, Between { address, owner: None, prepared: None, courier: None })
    }
}

impl Job<'_> {
    /// Makes the folder for the files of messages, and makes ready what carries them to other hosts, if these have
    /// folders of their own and ranks are here.
    pub(super) fn prepare_messages(&mut self) -> Option<Cause> {
        let placement = &self.plan.placement;
        let is_needed = placement.hosts.is_empty()
            || placement.here.is_some()
            || matches!(self.settings.config.device, DeviceChoice::Files(_));
        if is_needed {
            match folders::make(&self.settings.config, self.board.id()) {
                Ok(owner) => self.between.owner = owner,
                Err(error) => return Some(Cause::NotStarted { rank: 0, why: error.to_string() }),
            }
        }
        let here = placement.here?;
        match courier::prepare(&self.settings.config, &self.board, &placement.hosts, here) {
            Ok(prepared) => {
                self.between.prepared = prepared;
                None
            }
            Err(error) => Some(Cause::NotStarted { rank: placement.hosts[here].ranks.start, why: error.to_string() }),
        }
    }

    /// Starts the agents of all other hosts, which are told what to start, and which hosts to log in to.
    pub(super) fn start_agents(&mut self, spare: u32) -> Option<Cause> {
        let placement = &self.plan.placement;
        let callers = callers(placement, self.settings.config.logins);
        let start = Arc::new(self.start_of_agents(spare));
        for (host, on) in placement.hosts.iter().enumerate() {
            if Some(host) == placement.here {
                self.links.push(None);
                continue;
            }
            let link = match Link::start(&start, host, &self.settings.config, callers[host], &self.guardian) {
                Ok(link) => link,
                Err(error) => {
                    return Some(Cause::HostLost { host: on.name.clone(), why: error.to_string(), ranks: None });
                }
            };
            self.links.push(Some(link));
            if let Some(by) = callers[host] {
                self.order(by, &Order::Login(host as u32));
            }
        }
        None
    }

    /// What all agents start; each gets it with the number of its host.
    fn start_of_agents(&self, spare: u32) -> Start {
        let ranks: Vec<u32> = self.plan.ranks.iter().map(|app| *app as u32).collect();
        Start {
            id: self.board.id(),
            spare,
            universe: self.board.universe_size(),
            hosts: self.plan.placement.hosts.clone(),
            here: 0,
            apps: self.plan.apps.iter().map(|app| self.plan.elsewhere(app)).collect(),
            readers: (0..ranks.len() as u32).filter(|rank| self.input.is_for(*rank)).collect(),
            ranks,
            env: portable_variables(),
            bind_to: self.settings.bind_to,
        }
    }

    /// Sends an order to all agents.
    pub(super) fn order_all(&mut self, order: &Order) {
        tree::order_all(&mut self.links, &mut self.news, order);
    }

    /// Hands orders for agents behind others, and news of ranks, to the agents that pass them on.
    pub(super) fn pass_on_orders(&mut self) {
        tree::pass_on(&mut self.links, &mut self.news);
    }

    /// Has other hosts connect to the courier of this one, which has files for them.
    pub(super) fn pass_on_calls(&mut self) {
        let Some(here) = self.plan.placement.here else { return };
        let hosts = self.between.courier.as_ref().map_or_else(Vec::new, courier::Running::requests);
        hosts.into_iter().for_each(|host| self.call(host, here));
    }

    /// The courier of host `from` has files for host `to`, whose courier is to connect to it.
    pub(super) fn call(&mut self, to: usize, from: usize) {
        match self.between.courier.as_ref().filter(|_| Some(to) == self.plan.placement.here) {
            Some(courier) => courier.call(from),
            None => self.order(to, &Order::Call(from as u32)),
        }
    }

    /// Something has come from a host.
    pub(super) fn on_host(&mut self, host: usize) {
        if let Some(link) = self.links.get_mut(host).and_then(Option::as_mut) {
            let heard = link.pump();
            self.hear(host, heard);
        }
    }

    /// Something has come through the agent of another host. What it says of a host that it does not speak for (any
    /// more) counts for nothing.
    fn on_passed(&mut self, by: usize, host: usize, come: Come) {
        let link = self.links.get_mut(host).and_then(Option::as_mut);
        if let Some(link) = link.filter(|link| link.through() == Some(by)) {
            let heard = link.take_in(come);
            self.hear(host, heard);
        }
    }

    fn hear(&mut self, host: usize, (reports, result): (Vec<Report>, Result<(), String>)) {
        for report in reports {
            self.on_report(host, report);
        }
        if let Err(why) = result {
            self.lose(host, why);
        }
    }

    fn on_report(&mut self, host: usize, report: Report) {
        let report = match report {
            Report::Ready => return self.is_ready(host),
            Report::Prepared { spawn, refusal } => return self.prepared(host, spawn, refusal),
            Report::Asks { ask, fields } => return self.on_asker(host, ask, Some(fields)),
            Report::AskEnds { ask } => return self.on_asker(host, ask, None),
            Report::Places { question, places } => return self.add_places(host, question, places),
            Report::Call(to) => return self.call(to as usize, host),
            Report::Passed { host: behind, come } => return self.on_passed(host, behind as usize, come),
            other => other,
        };
        let index = report.rank().map_or(0, |rank| rank as usize);
        // After an agent that could not be started, later ranks are not there.
        if index >= self.ranks.len() {
            return;
        }
        match report {
            Report::Started { rank, pid, processors } => {
                self.ranks[index].pid = pid;
                self.ranks[index].processors = processors;
                self.board.seat(rank).set_started(pid);
                self.report_binding(rank);
                self.say_where(rank);
            }
            Report::NotStarted { why, .. } => self.not_started(index, why),
            Report::Output { kind, bytes, .. } => self.take_output(index, kind as usize, &bytes),
            Report::OutputEnds { kind, .. } => self.end_stream(index, kind as usize),
            Report::Place { rank, now_ns, copy } if self.ranks[index].ended.is_none() => {
                let behind = monotonic_ns().wrapping_sub(now_ns).cast_signed();
                self.board.show(rank, &copy, behind);
                let claimed = self.board.seat(rank).pid();
                self.ranks[index].look_for_claim(claimed);
                self.check_joined();
            }
            Report::Card { rank, card } => {
                self.board.seat(rank).publish_card(&card);
                self.tell_others(&Order::Card(rank, card));
            }
            Report::Abort { rank, code, message } => {
                self.board.abort(rank, code, &message);
                self.check_abort();
            }
            Report::Ended { how, out_of_memory, .. } if self.ranks[index].ended.is_none() => {
                self.rank_ended(index, how, out_of_memory);
            }
            Report::InnerEnded { pid, .. } => self.on_inner_end(index, pid),
            Report::Taken => self.input.taken(),
            Report::Place { .. } | Report::Ended { .. } | Report::Carrying(_) | Report::Alive => {}
            Report::Places { .. } | Report::Prepared { .. } | Report::Asks { .. } | Report::AskEnds { .. } => {}
            Report::Passed { .. } | Report::Ready | Report::Call(_) => {}
        }
    }

    /// The agent of its host could not start a rank.
    fn not_started(&mut self, index: usize, why: String) {
        let rank = index as u32;
        let why = format!("{why} ({})", self.board.seat(rank).host_name());
        if self.ranks[index].spawn != 0 {
            return self.never_started(index, why);
        }
        // Its agent starts none of those that follow.
        for later in index..self.ranks.len() {
            if self.ranks[later].host == self.ranks[index].host {
                self.ranks[later].ended = Some(Ended::Signal(libc::SIGKILL));
                (0..2).for_each(|kind| self.end_stream(later, kind));
            }
        }
        self.end(Cause::NotStarted { rank, why });
    }

    /// Tells the other hosts what the ranks of this one have published about themselves.
    pub(super) fn pass_on_own_cards(&mut self) {
        if self.links.is_empty() {
            return;
        }
        for rank in
            (0..self.ranks.len() as u32).filter(|rank| self.ranks[*rank as usize].host.is_none()).collect::<Vec<_>>()
        {
            let card = self.board.seat(rank).card();
            if let Some(card) = card.filter(|card| self.cards.get(&rank) != Some(card)) {
                self.cards.insert(rank, card.clone());
                self.tell_others(&Order::Card(rank, card));
            }
        }
    }

    /// The process of a rank has ended. The other hosts are told if it has finalized: it is not to be missed there.
    pub(super) fn pass_on_end(&mut self, rank: u32) {
        if self.board.seat(rank).has_left() {
            self.tell_others(&Order::Left(rank));
        }
    }

    /// Sends news of a rank to the agents of all hosts, together with what else is new until orders are passed on; that
    /// of its own host ignores it.
    fn tell_others(&mut self, news: &Order) {
        if !self.links.is_empty() {
            self.news.extend(news.bytes());
        }
    }

    fn say_where(&mut self, rank: u32) {
        if self.settings.verbose {
            let process = &self.ranks[rank as usize];
            let (pid, program) = (process.pid, process.app.program.display());
            let text =
                format!("limosa: rank {rank} is process {pid} on {}: {program}\n", self.board.seat(rank).host_name());
            self.say(&text);
        }
    }

    /// Nothing is known any more of a host: its ranks are gone, and so is the job. But a host that a second one could
    /// not log in to may be reached from here.
    fn lose(&mut self, host: usize, why: String) {
        let Some(link) = self.links[host].take() else { return };
        if let Some(by) = link.through() {
            self.order(by, &Order::Cut(host as u32));
            if !link.is_there() && self.ending.is_none() {
                return self.log_in_from_here(host, link, by, &why);
            }
        }
        let mut lost = 0;
        self.fail_spawns_on(host, &format!("the host {} is lost: {why}", link.name));
        for index in link.ranks.clone().chain(link.spawned.clone()).map(|rank| rank as usize) {
            if let Some(rank) = self.ranks.get_mut(index).filter(|rank| rank.ended.is_none()) {
                rank.ended = Some(Ended::Signal(libc::SIGKILL));
                lost += 1;
                self.board.seat(index as u32).exited();
            }
            if index < self.ranks.len() {
                (0..2).for_each(|kind| self.end_stream(index, kind));
            }
        }
        self.input.lose(link.ranks.clone().any(|rank| self.input.is_for(rank)));
        if self.running() == 0 {
            self.drained_at.get_or_insert_with(Instant::now);
        }
        // An agent that ends when all its ranks have is not missed.
        if lost > 0 {
            let ranks = link.is_there().then(|| link.ranks.clone());
            self.end(Cause::HostLost { host: link.name.clone(), why: why.clone(), ranks });
        }
        for behind in host + 1..self.links.len() {
            if self.links[behind].as_ref().is_some_and(|behind| behind.through() == Some(host)) {
                self.lose(behind, format!("it was reached through {}, which is lost: {why}", link.name));
            }
        }
    }

    /// Another host cannot log in to this one.
    fn log_in_from_here(&mut self, host: usize, mut link: Link, by: usize, why: &str) {
        let name = link.name.clone();
        if self.settings.verbose {
            let by = &self.plan.placement.hosts[by].name;
            self.say(&format!("limosa: {by} cannot log in to {name}, so the launcher does ({why})\n"));
        }
        let result = link.log_in(&self.settings.config, &self.guardian);
        self.links[host] = Some(link);
        if let Err(error) = result {
            self.lose(host, error.to_string());
        }
    }

    /// When the agents are to be told that the launcher lives.
    pub(super) fn next_word_to_hosts(&self) -> Option<Instant> {
        self.links.iter().any(Option::is_some).then_some(self.next_word)
    }

    /// Tells the agents that the launcher lives, and gives up those that have not said so for long.
    pub(super) fn keep_in_touch(&mut self, now: Instant) {
        if self.links.is_empty() {
            return;
        }
        // A rank that has published a card need not have rung.
        self.pass_on_own_cards();
        if now < self.next_word {
            return;
        }
        self.next_word = now + ALIVE;
        self.order_all(&Order::Alive);
        self.mention_logins(now);
        for host in 0..self.links.len() {
            self.forgive_behind(host);
            if let Some(why) = self.links[host].as_mut().and_then(|link| link.miss(now)) {
                self.lose(self.first_silent(host, now), why);
            }
        }
    }

    /// A login through another host has not begun before the agent there has answered.
    fn forgive_behind(&mut self, host: usize) {
        let by = self.links[host].as_ref().and_then(Link::through).and_then(|by| self.links[by].as_ref());
        if by.is_some_and(|by| !by.is_there())
            && let Some(link) = &mut self.links[host]
        {
            link.forgive();
        }
    }

    /// The host that is to blame if nothing is heard of this one: what comes from it comes through others.
    fn first_silent(&self, host: usize, now: Instant) -> usize {
        let is_silent = |link: &Link| now.saturating_duration_since(link.heard()) > 3 * ALIVE;
        let by = self.links[host].as_ref().and_then(Link::through);
        match by.filter(|by| self.links[*by].as_ref().is_some_and(is_silent)) {
            Some(by) => self.first_silent(by, now),
            None => host,
        }
    }

    /// Says which hosts are waited for, if their logins take long.
    fn mention_logins(&mut self, now: Instant) {
        let long: Vec<&str> = self
            .links
            .iter_mut()
            .flatten()
            .filter_map(|link| link.is_to_be_mentioned(now).then_some(link.name.as_str()))
            .collect();
        if !long.is_empty() {
            let limit = self.settings.config.login_limit.as_secs_f64();
            let text = format!(
                "limosa: still waiting for the login on {}; it may take {limit} s (LIMOSA_LOGIN_LIMIT)\n",
                long.join(", ")
            );
            self.say(&text);
        }
    }

    /// Whether all other hosts have reported lately.
    pub(super) fn has_heard_of_all(&self) -> bool {
        self.links.iter().flatten().all(|link| link.heard().elapsed() < 2 * ALIVE)
    }

    /// Whether a message is known to be under way between hosts.
    pub(super) fn is_carrying(&self) -> bool {
        self.links.iter().flatten().any(|link| link.is_carrying)
            || self.between.courier.as_ref().is_some_and(courier::Running::is_carrying)
    }

    /// Reads standard input once.
    pub(super) fn read_input(&mut self) {
        let order = match self.input.read() {
            Chunk::None => return,
            Chunk::Bytes(bytes) => Order::Input(bytes),
            Chunk::End => Order::InputEnds,
        };
        for link in self.links.iter_mut().flatten() {
            if link.ranks.clone().any(|rank| self.input.is_for(rank)) {
                link.send(&order);
                self.input.sent(matches!(order, Order::Input(_)));
            }
        }
    }

    /// Gives up the hosts whose agents have not answered: they are told nothing any more, and start nothing.
    pub(super) fn give_up_logins(&mut self) {
        for host in 0..self.links.len() {
            if self.links[host].as_ref().is_some_and(|link| !link.is_there()) {
                self.lose(host, "the login has not ended".into());
            }
        }
    }

    /// The job has ended: no agent is left behind. Those through which others are reached end after these.
    pub(super) fn dismiss_agents(&mut self) {
        self.give_up_logins();
        while self.links.iter().any(Option::is_some) {
            let passing: Vec<usize> = self.links.iter().flatten().filter_map(Link::through).collect();
            let last =
                |(host, link): (usize, &Option<Link>)| (link.is_some() && !passing.contains(&host)).then_some(host);
            let leaving: Vec<usize> = self.links.iter().enumerate().filter_map(last).collect();
            self.dismiss(&leaving);
        }
    }

    /// Ends the agents of these hosts, and waits for that for a while.
    fn dismiss(&mut self, leaving: &[usize]) {
        leaving.iter().for_each(|host| self.order(*host, &Order::Done));
        self.pass_on_orders();
        let end = Instant::now() + FAREWELL;
        while leaving.iter().any(|host| self.links[*host].is_some()) && Instant::now() < end {
            let pause = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let mut waits: Vec<PollFd<'_>> = self.links.iter().flatten().flat_map(Link::descriptors).collect();
            let _ = rustix::event::poll(&mut waits, Some(&pause));
            (0..self.links.len()).for_each(|host| self.on_host(host));
        }
        leaving.iter().for_each(|host| self.lose(*host, "its agent does not end".into()));
    }
}
