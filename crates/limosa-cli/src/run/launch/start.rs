//! The start of the ranks: at once on one host, otherwise when all hosts have said that they are ready.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::{Job, counted};
use crate::run::binding;
use crate::run::hosts::map_of;
use crate::run::hosts::wire::Order;
use crate::run::outcome::Cause;
use crate::run::rank::{Ended, Rank};

impl Job<'_> {
    /// Starts the ranks of a job on one host; those of others wait for all hosts.
    pub(super) fn expect_or_start_ranks(&mut self) -> Option<Cause> {
        let unready: Vec<usize> = (0..self.links.len()).filter(|host| self.links[*host].is_some()).collect();
        if unready.is_empty() {
            return self.start_ranks();
        }
        self.unready = Some(unready);
        let placement = &self.plan.placement;
        for (rank, app) in (0..).zip(&self.plan.ranks) {
            let app = &self.apps[*app];
            self.ranks
                .push(placement.elsewhere(rank).map_or_else(|| Rank::expected(app), |at| Rank::elsewhere(app, at)));
        }
        None
    }

    /// A host has said that it is ready. When all have, the ranks start.
    pub(super) fn is_ready(&mut self, host: usize) {
        let Some(unready) = self.unready.as_mut().filter(|_| self.ending.is_none()) else { return };
        unready.retain(|other| *other != host);
        if !unready.is_empty() {
            return;
        }
        self.ranks.clear();
        if let Some(cause) = self.start_ranks() {
            return self.end(cause);
        }
        self.unready = None;
        self.order_all(&Order::Begin);
        self.announce_ranks();
    }

    /// The ranks that wait for all hosts are not started any more.
    pub(super) fn forget_expected(&mut self) {
        if self.unready.take().is_some() {
            for rank in self.ranks.iter_mut().filter(|rank| rank.pid == 0) {
                (rank.ended, rank.is_gone, rank.open_there) = (Some(Ended::Signal(libc::SIGKILL)), true, [false; 2]);
            }
        }
    }

    fn start_ranks(&mut self) -> Option<Cause> {
        let own = self.plan.placement.own(self.plan.ranks.len() as u32);
        let bindings = binding::of_ranks(self.settings.bind_to, own.len());
        for (rank, app) in self.plan.ranks.iter().enumerate() {
            let rank = rank as u32;
            if let Some(host) = self.plan.placement.elsewhere(rank) {
                self.ranks.push(Rank::elsewhere(&self.apps[*app], host));
                continue;
            }
            let processors = bindings.get((rank - own.start) as usize).map_or(&[][..], Vec::as_slice);
            let app = &self.apps[*app];
            let debugged = self.settings.debugged.as_ref().filter(|debugged| debugged.rank == rank);
            let app = debugged.map_or_else(|| app.clone(), |debugged| Arc::new(debugged.command(app)));
            let stdin = debugged.is_none().then(|| self.input.stdin_of(rank)).transpose();
            let started =
                stdin.and_then(|stdin| Rank::start(&app, rank, &self.board, self.segment.as_fd(), stdin, processors));
            match started {
                Ok(started) => {
                    self.guardian.group(started.pid);
                    self.ranks.push(Rank { processors: processors.to_vec(), ..started });
                }
                Err(error) => return Some(Cause::NotStarted { rank, why: error.to_string() }),
            }
        }
        None
    }

    pub(super) fn announce(&mut self) {
        if self.settings.show_map {
            self.say(&map_of(self.plan, &self.settings.config));
        }
        if self.settings.verbose {
            let (id, size) = (self.board.id(), counted(self.plan.ranks.len()));
            self.say(&format!("limosa: job {id:016x} of {size}, launcher process {}\n", std::process::id()));
        }
        if self.unready.is_none() {
            self.announce_ranks();
        }
    }

    fn announce_ranks(&mut self) {
        self.announce_debugger();
        for rank in self.plan.placement.own(self.ranks.len() as u32) {
            self.report_binding(rank);
        }
        if !self.settings.verbose {
            return;
        }
        let mut text = String::new();
        for (rank, process) in self.ranks.iter().enumerate().filter(|(_, process)| process.host.is_none()) {
            text.push_str(&format!(
                "limosa: rank {rank} is process {}: {}\n",
                process.pid,
                process.app.program.display()
            ));
        }
        self.say(&text);
    }

    pub(super) fn report_binding(&mut self, rank: u32) {
        if self.settings.report_bindings
            && let Some(process) = self.ranks.get(rank as usize)
        {
            self.say(&binding::report(rank, &self.board.seat(rank).host_name(), &process.processors));
        }
    }
}
