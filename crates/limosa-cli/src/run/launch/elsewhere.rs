//! Ranks of other hosts: the agents there, what they report, and input for their ranks ([`crate::run::hosts`]).

use std::time::Instant;

use limosa_job::monotonic_ns;

use super::Job;
use crate::run::binding::BindTo;
use crate::run::hosts::courier;
use crate::run::hosts::link::{ALIVE, Link};
use crate::run::hosts::portable_variables;
use crate::run::hosts::wire::{Order, Report, Start};
use crate::run::input::Chunk;
use crate::run::outcome::Cause;
use crate::run::rank::Ended;

impl Job<'_> {
    /// Makes ready what carries messages to other hosts, if these have folders of their own and ranks are here.
    pub(super) fn prepare_courier(&mut self) -> Option<Cause> {
        let placement = &self.plan.placement;
        let here = placement.here?;
        match courier::prepare(&self.settings.config, &self.board, &placement.hosts, here) {
            Ok(prepared) => {
                self.prepared = prepared;
                None
            }
            Err(error) => Some(Cause::NotStarted { rank: placement.hosts[here].ranks.start, why: error.to_string() }),
        }
    }

    /// Starts the agents of all other hosts, which are told what to start.
    pub(super) fn start_agents(&mut self, spare: u32) -> Option<Cause> {
        let placement = &self.plan.placement;
        let room = self.board.capacity();
        for (host, on) in placement.hosts.iter().enumerate() {
            if Some(host) == placement.here {
                self.links.push(None);
                continue;
            }
            let mut link = match Link::start(&on.name, on.ranks.clone(), room, &self.settings.config) {
                Ok(link) => link,
                Err(error) => {
                    return Some(Cause::HostLost { host: on.name.clone(), why: error.to_string(), ranks: None });
                }
            };
            link.send(&Order::Start(Box::new(Start {
                id: self.board.id(),
                spare,
                universe: self.board.universe_size(),
                hosts: placement.hosts.clone(),
                here: host as u32,
                apps: self.plan.apps.iter().map(|app| self.plan.elsewhere(app)).collect(),
                ranks: self.plan.ranks.iter().map(|app| *app as u32).collect(),
                env: portable_variables(),
                is_bound: self.settings.bind_to == BindTo::Core,
                readers: on.ranks.clone().filter(|rank| self.input.is_for(*rank)).collect(),
            })));
            self.links.push(Some(link));
        }
        None
    }

    /// Sends an order to all agents.
    pub(super) fn order_all(&mut self, order: &Order) {
        self.links.iter_mut().flatten().for_each(|link| link.send(order));
    }

    /// Something has come from a host.
    pub(super) fn on_host(&mut self, host: usize) {
        let Some(link) = self.links.get_mut(host).and_then(Option::as_mut) else { return };
        let (reports, result) = link.pump();
        for report in reports {
            self.on_report(host, report);
        }
        if let Err(why) = result {
            self.lose(host, why);
        }
    }

    fn on_report(&mut self, host: usize, report: Report) {
        let report = match report {
            Report::Prepared { spawn, refusal } => return self.prepared(host, spawn, refusal),
            Report::Asks { ask, fields } => return self.on_asker(host, ask, Some(fields)),
            Report::AskEnds { ask } => return self.on_asker(host, ask, None),
            Report::Places { question, places } => return self.add_places(host, question, places),
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
                self.pass_on_card(rank, card);
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
                self.pass_on_card(rank, card);
            }
        }
    }

    fn pass_on_card(&mut self, rank: u32, card: Vec<u8>) {
        let order = Order::Card(rank, card);
        for link in self.links.iter_mut().flatten().filter(|link| !link.has(rank)) {
            link.send(&order);
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

    /// Nothing is known any more of a host: its ranks are gone, and so is the job.
    fn lose(&mut self, host: usize, why: String) {
        let Some(mut link) = self.links[host].take() else { return };
        link.cut();
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
            self.end(Cause::HostLost { host: link.name.clone(), why, ranks });
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
        // Whoever has published a card need not have rung.
        self.pass_on_own_cards();
        if now < self.next_word {
            return;
        }
        self.next_word = now + ALIVE;
        self.order_all(&Order::Alive);
        self.mention_logins(now);
        for host in 0..self.links.len() {
            if let Some(why) = self.links[host].as_ref().and_then(|link| link.overdue(now)) {
                self.lose(host, why);
            }
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

    /// Whether what is known of the ranks of other hosts is as new as that of a rank here, and no message is known to be
    /// under way between hosts.
    pub(super) fn has_heard_of_all(&self) -> bool {
        let is_known = |link: &Link| link.heard().elapsed() < 2 * ALIVE && !link.is_carrying;
        self.links.iter().flatten().all(is_known) && !self.courier.as_ref().is_some_and(courier::Running::is_carrying)
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

    /// The job has ended: no agent is left behind.
    pub(super) fn dismiss_agents(&mut self) {
        for host in 0..self.links.len() {
            let Some(mut link) = self.links[host].take() else { continue };
            for report in link.finish() {
                self.on_report(host, report);
            }
        }
    }
}
