//! The hosts that an agent logs in to for the head: it passes on what the head and the agents there say, unread.

use std::io;
use std::sync::Arc;

use rustix::event::PollFd;

use super::Head;
use crate::run::guardian::Guardian;
use crate::run::hosts::login::{Login, Target};
use crate::run::hosts::wire::{self, Come, Order, Report, Start};

/// A login for the head.
struct Branch {
    host: u32,
    login: Login,
    /// Its agent was told what to start.
    has_started: bool,
}

/// Logs in to the host of this number.
type LogIn = Box<dyn FnMut(usize) -> io::Result<Login>>;

/// The logins of one agent.
pub struct Branches {
    list: Vec<Branch>,
    start: Arc<Start>,
    log_in: LogIn,
}

impl Branches {
    /// None yet. An agent that is logged in to by this command starts what this one does.
    pub(super) fn new(start: Arc<Start>, ssh: String, guardian: Arc<Guardian>) -> Branches {
        let all = start.clone();
        Branches::by(start, Box::new(move |host| Login::start(Target::new(&all, host, &ssh, &guardian))))
    }

    /// The same with another way to log in.
    pub(in crate::run::hosts) fn by(start: Arc<Start>, log_in: LogIn) -> Branches {
        Branches { list: Vec::new(), start, log_in }
    }

    /// What to sleep on, with the number of the login; what comes counts only if it may be read now.
    pub(super) fn descriptors(&self, may_read: bool) -> impl Iterator<Item = (usize, PollFd<'_>)> {
        let all = self.list.iter().enumerate();
        all.flat_map(move |(at, branch)| branch.login.descriptors(may_read).map(move |fd| (at, fd)))
    }

    /// Carries out an order about other hosts. Gives the orders that are for this agent.
    pub(in crate::run::hosts) fn take(&mut self, order: Order, head: &mut Head) -> Vec<Order> {
        match order {
            Order::Login(host) => self.log_in(host, head),
            Order::Share(host) => {
                let start = Order::Start(Box::new(Start { here: host, ..Start::clone(&self.start) }));
                self.pass_on(host, &start.bytes());
            }
            Order::Pass(host, bytes) => self.pass_on(host, &bytes),
            Order::Cut(host) => self.list.retain(|branch| branch.host != host),
            Order::Spread(bytes) => return self.spread(bytes, head),
            other => return vec![other],
        }
        Vec::new()
    }

    fn log_in(&mut self, host: u32, head: &mut Head) {
        if host as usize >= self.start.hosts.len() {
            head.is_gone = true;
            return;
        }
        match (self.log_in)(host as usize) {
            Ok(login) => self.list.push(Branch { host, login, has_started: false }),
            Err(error) => {
                let come = Come { errors: error.to_string().into_bytes(), has_ended: true, ..Come::default() };
                head.send(&Report::Passed { host, come });
            }
        }
    }

    fn pass_on(&mut self, host: u32, bytes: &[u8]) {
        if let Some(branch) = self.list.iter_mut().find(|branch| branch.host == host) {
            branch.login.send(bytes);
            branch.has_started = true;
        }
    }

    /// Passes orders on to the agents behind this one. Those that were told nothing yet get them from the head.
    fn spread(&mut self, mut bytes: Vec<u8>, head: &mut Head) -> Vec<Order> {
        let order = Order::Spread(bytes.clone()).bytes();
        self.list.iter_mut().filter(|branch| branch.has_started).for_each(|branch| branch.login.send(&order));
        let mut orders = Vec::new();
        loop {
            match wire::take(&mut bytes).and_then(|fields| fields.map(Order::read).transpose()) {
                Ok(Some(order @ (Order::Card(..) | Order::Left(_)))) => orders.push(order),
                Ok(None) if bytes.is_empty() => return orders,
                _ => {
                    head.is_gone = true;
                    return Vec::new();
                }
            }
        }
    }

    /// Something has come from such a host, or there is room for what it is to hear.
    pub(in crate::run::hosts) fn hear(&mut self, at: usize, head: &mut Head) {
        let Some(branch) = self.list.get_mut(at) else { return };
        let (host, come) = (branch.host, branch.login.read());
        if come != Come::default() {
            head.send(&Report::Passed { host, come });
        }
    }

    /// How many logins there are.
    #[cfg(test)]
    pub(in crate::run::hosts) fn count(&self) -> usize {
        self.list.len()
    }

    /// Forgets the logins that have ended.
    pub(super) fn forget_ended(&mut self) {
        self.list.retain_mut(|branch| !branch.login.is_silent());
    }

    /// Logs in again where connections have ended.
    pub(super) fn keep_up(&mut self) {
        self.list.iter_mut().for_each(|branch| branch.login.flush());
    }

    /// Ends all logins, and the agents behind them.
    pub(super) fn cut_all(&mut self) {
        self.list.iter_mut().for_each(|branch| branch.login.dismiss());
        self.list.clear();
    }
}
