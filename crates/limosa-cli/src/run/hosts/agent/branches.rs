//! The hosts that an agent logs in to for the head: it passes on what the head and the agents there say, unread.

use limosa_job::Seat;
use rustix::event::PollFd;

use super::{Agent, QUEUE_LIMIT};
use crate::run::hosts::login::{Come, Login};
use crate::run::hosts::wire::{self, Order, Report};

/// A login for the head.
pub(super) struct Branch {
    host: u32,
    login: Login,
    /// Something was passed to its agent, which begins with what it is to start.
    has_started: bool,
}

impl Branch {
    /// What to sleep on. Nothing more is read while much waits for the head.
    pub(super) fn descriptors(&self, queued: usize) -> impl Iterator<Item = PollFd<'_>> {
        self.login.descriptors(queued < QUEUE_LIMIT)
    }
}

impl Agent {
    /// Logs in to another host of the job.
    pub(super) fn log_in(&mut self, host: u32) {
        let Some(on) = self.hosts.get(host as usize) else {
            self.head.is_gone = true;
            return;
        };
        match Login::start(&self.ssh, &on.name) {
            Ok(login) => self.branches.push(Branch { host, login, has_started: false }),
            Err(error) => {
                let come = Come { errors: error.to_string().into_bytes(), has_ended: true, ..Come::default() };
                self.head.send(&Report::Passed { host, come });
            }
        }
    }

    /// For the agent of such a host.
    pub(super) fn pass_on(&mut self, host: u32, bytes: &[u8]) {
        if let Some(branch) = self.branches.iter_mut().find(|branch| branch.host == host) {
            branch.login.send(bytes);
            branch.has_started = true;
        }
    }

    /// Obeys an order that is for the agents behind this one, too. The head sends each of those that have been passed
    /// nothing yet the order itself.
    pub(super) fn spread(&mut self, mut bytes: Vec<u8>) {
        let order = Order::Spread(bytes.clone()).bytes();
        self.branches.iter_mut().filter(|branch| branch.has_started).for_each(|branch| branch.login.send(&order));
        match wire::take(&mut bytes).and_then(|fields| fields.map(Order::read).transpose()) {
            Ok(Some(Order::Card(rank, card))) => self.learn(rank, |seat| seat.publish_card(&card)),
            Ok(Some(Order::Left(rank))) => self.learn(rank, |seat| seat.left_elsewhere()),
            _ => self.head.is_gone = true,
        }
    }

    /// Notes something about a rank of another host.
    pub(super) fn learn(&self, rank: u32, note: impl FnOnce(Seat<'_>)) {
        if rank < self.board.capacity() && !self.board.is_here(rank) {
            note(self.board.seat(rank));
        }
    }

    /// The head has given up such a host.
    pub(super) fn cut(&mut self, host: u32) {
        self.branches.retain(|branch| branch.host != host);
    }

    /// It says something, or there is room for what it is to hear.
    pub(super) fn on_branch(&mut self, at: usize) {
        let Some(branch) = self.branches.get_mut(at) else { return };
        branch.login.flush();
        let (host, come) = (branch.host, branch.login.read());
        if come != Come::default() {
            self.head.send(&Report::Passed { host, come });
        }
    }

    /// Forgets the logins that have ended.
    pub(super) fn forget_branches(&mut self) {
        self.branches.retain_mut(|branch| !branch.login.is_silent());
    }
}
