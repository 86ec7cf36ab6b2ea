//! What an agent does beside the ranks of the start: ranks that are spawned on its host, what ranks there ask the
//! launcher for, and source lines for the report of a hang.
//!
//! A rank finds the agent where it would find the launcher, and asks it the same ([`limosa_job::control`]). The agent
//! passes on what it says, and what the head answers.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};

use limosa_job::control::{self, Fields};
use limosa_job::{Spawner, State};

use super::{Agent, with_variables};
use crate::hang::stacks;
use crate::run::REQUEST;
use crate::run::hosts::wire::{Prepare, Report};
use crate::run::hosts::{address, pinned};
use crate::run::plan::App;
use crate::run::rank::Rank;

/// A process that asks.
pub(super) struct Asker {
    pub(super) number: u64,
    pub(super) stream: UnixStream,
}

impl Agent {
    /// A process begins to ask.
    pub(super) fn on_control(&mut self) {
        if let Some(stream) = self.control.as_ref().and_then(|control| control::accept(control, REQUEST)) {
            self.asks += 1;
            self.askers.push(Asker { number: self.asks, stream });
        }
    }

    /// It says something, or has gone.
    pub(super) fn on_asker(&mut self, ask: u64) {
        let Some(at) = self.askers.iter().position(|asker| asker.number == ask) else { return };
        match control::receive(&self.askers[at].stream) {
            Ok(fields) => self.head.send(&Report::Asks { ask, fields }),
            Err(_) => {
                self.askers.remove(at);
                self.head.send(&Report::AskEnds { ask });
            }
        }
    }

    pub(super) fn answer(&mut self, ask: u64, fields: &Fields) {
        if let Some(asker) = self.askers.iter().find(|asker| asker.number == ask) {
            // The asking rank may have ended.
            let _ = control::send(&asker.stream, fields);
        }
    }

    /// Connects a process of another host with a port here.
    pub(super) fn reach(&mut self, ask: u64, port: &[u8]) {
        match control::connect_to_port(port).and_then(|stream| control::limited(stream, REQUEST)) {
            Ok(stream) => self.askers.push(Asker { number: ask, stream }),
            Err(_) => self.head.send(&Report::AskEnds { ask }),
        }
    }

    /// Makes places for ranks that are spawned, here and elsewhere.
    pub(super) fn prepare(&mut self, places: &Prepare) {
        let end = places.first.saturating_add(places.appnums.len() as u32);
        let is_possible = places.first >= self.board.size()
            && end <= self.board.capacity()
            && places.hosts.iter().all(|host| (*host as usize) < self.start.hosts.len());
        if !is_possible {
            self.head.is_gone = true;
            return;
        }
        let by = Spawner { rank: places.parent, number: places.spawn };
        let prepared = self.board.prepare(self.segment.as_fd(), places.first, &places.appnums, &by);
        for (rank, host) in (places.first..).zip(&places.hosts) {
            self.board.set_host_of_spawned(rank, *host, &self.start.hosts[*host as usize].name);
        }
        let carried = self.courier.as_ref().map_or(Ok(()), |courier| courier.add(places.first, &places.hosts));
        let refusal = prepared.and(carried).err().map(|error| error.to_string());
        self.head.send(&Report::Prepared { spawn: places.spawn, refusal });
    }

    pub(super) fn spawn(&mut self, rank: u32, app: &App) {
        if rank >= self.board.capacity() || !self.board.is_here(rank) || self.index_of(rank).is_some() {
            self.head.is_gone = true;
            return;
        }
        let app = Arc::new(pinned(&with_variables(app, &self.start.env), &self.device, address::of_login()));
        let started = Rank::start(&app, rank, &self.board, self.segment.as_fd(), Some(Stdio::null()), &[]);
        self.started(rank, &app, started, &[]);
    }

    pub(super) fn kill_rank(&mut self, rank: u32) {
        if let Some(index) = self.index_of(rank) {
            self.ranks[index].signal(libc::SIGKILL);
        }
    }

    /// A spawned rank that has ended takes all with it that it has started: nothing would know of it later.
    pub(super) fn let_go_of_spawned(&mut self, index: usize) {
        let rank = self.rank_of(index);
        if self.ranks[index].spawn == 0 {
            return;
        }
        self.ranks[index].signal(libc::SIGKILL);
        self.drain(index);
        for kind in 0..2 {
            if self.ranks[index].streams[kind].take().is_some() {
                self.head.send(&Report::OutputEnds { rank, kind: kind as u32 });
            }
        }
        self.guardian.gone(self.ranks[index].pid);
        self.ranks[index].reap();
    }

    /// Looks up where Python ranks of this host are; reading them takes a while.
    pub(super) fn find_places(&mut self, question: u64) {
        let views = self.numbers.iter().map(|rank| self.board.view(*rank));
        let targets: Vec<_> = views.filter(|v| v.state == State::Running).map(|v| (v.rank, v.pid)).collect();
        let (send, places) = mpsc::channel();
        let wake = self.wake.clone();
        // Without the thread the channel is closed, and there are no lines.
        let _ = std::thread::Builder::new().name("limosa-stacks".into()).spawn(move || {
            let _ = send.send(stacks::collect(&targets));
            let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
        });
        self.looked_up.push((question, places));
    }

    pub(super) fn report_places(&mut self) {
        for (question, places) in std::mem::take(&mut self.looked_up) {
            match places.try_recv() {
                Ok(places) => self.head.send(&Report::Places { question, places }),
                Err(TryRecvError::Empty) => self.looked_up.push((question, places)),
                Err(TryRecvError::Disconnected) => {
                    self.head.send(&Report::Places { question, places: stacks::Places::default() });
                }
            }
        }
    }
}
