//! The head's end of the connection to the agent of one host.
//!
//! The head has logged in to the host itself, or another agent has, which passes on what both say. Nothing is sent to
//! an agent before it has answered, so that the head can log in itself where another agent cannot.
//!
//! A login may take minutes on a host under load, and nothing comes meanwhile. So silence says nothing of a host before
//! its agent has answered: then only the limit of a login counts (`LIMOSA_LOGIN_LIMIT`). Whether there is a host at all
//! is for ssh to say (`ConnectTimeout`).
//!
//! After that, each side sends a sign of life every [`ALIVE`] and counts the signs that it misses ([`Signs`]). Counting
//! makes a verdict that a busy machine cannot spoil: a process that gets no processor time counts nothing meanwhile.
//! TCP resends after pauses that double, so an interruption of the network silences a host for up to twice as long.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use limosa_job::config::Config;
use rustix::event::PollFd;

use super::login::{Login, Target};
use super::wire::{self, Come, Order, Report, Start};
use crate::run::guardian::Guardian;

/// Each side says this often that it lives.
pub const ALIVE: Duration = Duration::from_secs(2);
/// A login that takes longer than this, and than this share of its limit, is mentioned.
const LONG_LOGIN: Duration = Duration::from_secs(10);
const LONG_SHARE: u32 = 12;
/// Most of what ssh says that is kept.
const SAID: usize = 4096;

/// Fewest missed signs that make a host count as lost, whatever the limit.
const FEWEST: u32 = 3;

/// Signs of life of the other side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// Those missed since something came last.
    missed: u32,
    limit: Duration,
}

impl Signs {
    /// Expects signs of a side that may be silent for so long (`LIMOSA_HOST_LIMIT`).
    pub fn new(limit: Duration) -> Signs {
        Signs { missed: 0, limit }
    }

    /// Something has come, or the time until now does not count.
    pub fn heard(&mut self) {
        self.missed = 0;
    }

    /// Another [`ALIVE`] has passed, in which this process was awake.
    pub fn pass(&mut self) {
        self.missed = self.missed.saturating_add(1);
    }

    /// Whether the other side counts as lost.
    pub fn are_missed(&self) -> bool {
        self.missed > FEWEST.max((self.limit.as_secs_f64() / ALIVE.as_secs_f64()).ceil() as u32)
    }
}

/// How an agent is reached.
pub enum Way {
    /// By a login of this process.
    Login(Box<Login>),
    /// By the agent of this host, which has logged in.
    Through(usize),
}

/// The connection to an agent.
pub struct Link {
    /// What all agents start, and which host this is.
    start: Arc<Start>,
    host: usize,
    /// The agent that has logged in is to tell this one what it starts.
    is_to_share: bool,
    /// The host as the user calls it.
    pub name: String,
    /// Its ranks from the start, and those that were spawned.
    pub ranks: Range<u32>,
    pub spawned: Vec<u32>,
    /// Messages of its ranks are under way to other hosts.
    pub is_carrying: bool,
    way: Way,
    /// For the agent, and from it.
    queue: Vec<u8>,
    come: Vec<u8>,
    said: Vec<u8>,
    is_greeted: bool,
    /// That its login takes long was said.
    is_mentioned: bool,
    started: Instant,
    login_limit: Duration,
    heard: Instant,
    signs: Signs,
    size: u32,
}

impl Link {
    /// Starts the agent of a host, which starts its ranks, or expects that the agent of another host starts it.
    ///
    /// # Errors
    /// ssh cannot be run here.
    pub fn start(
        start: &Arc<Start>,
        host: usize,
        config: &Config,
        through: Option<usize>,
        guardian: &Arc<Guardian>,
    ) -> std::io::Result<Link> {
        // A login from here follows, if there is one to be.
        let mut link = Link::new(start, host, config, Way::Through(through.unwrap_or(host)));
        if through.is_none() {
            link.log_in(config, guardian)?;
        }
        Ok(link)
    }

    /// Connects to the agent of a host in this way.
    pub fn new(start: &Arc<Start>, host: usize, config: &Config, way: Way) -> Link {
        let now = Instant::now();
        let on = &start.hosts[host];
        Link {
            start: start.clone(),
            host,
            is_to_share: false,
            name: on.name.clone(),
            ranks: on.ranks.clone(),
            spawned: Vec::new(),
            is_carrying: false,
            way,
            queue: Vec::new(),
            come: Vec::new(),
            said: Vec::new(),
            is_greeted: false,
            is_mentioned: false,
            started: now,
            login_limit: config.login_limit,
            heard: now,
            signs: Signs::new(config.host_limit),
            size: start.capacity(),
        }
    }

    /// Logs in from here instead of another host. What was to be sent is not lost.
    ///
    /// # Errors
    /// ssh cannot be run here.
    pub fn log_in(&mut self, config: &Config, guardian: &Arc<Guardian>) -> std::io::Result<()> {
        let login = Login::start(Target::new(&self.start, self.host, &config.ssh, guardian))?;
        self.way = Way::Login(Box::new(login));
        self.come.clear();
        self.said.clear();
        self.forgive();
        Ok(())
    }

    /// The host whose agent has logged in to this one.
    pub fn through(&self) -> Option<usize> {
        match self.way {
            Way::Login(_) => None,
            Way::Through(host) => Some(host),
        }
    }

    /// Whether a rank is on this host.
    pub fn has(&self, rank: u32) -> bool {
        self.ranks.contains(&rank) || self.spawned.contains(&rank)
    }

    /// Whether the agent has answered.
    pub fn is_there(&self) -> bool {
        self.is_greeted
    }

    /// When something was heard from the host last.
    pub fn heard(&self) -> Instant {
        self.heard
    }

    /// The time until now does not count: the head has slept itself, or the login has not begun yet.
    pub fn forgive(&mut self) {
        self.heard = Instant::now();
        self.signs.heard();
        self.started = self.heard;
    }

    /// A sign of life was due: why the host counts as lost, if it does.
    pub fn miss(&mut self, now: Instant) -> Option<String> {
        if !self.is_greeted {
            let limit = self.login_limit;
            let is_late = now.saturating_duration_since(self.started) > limit;
            return is_late.then(|| format!("the login has taken longer than {} s", limit.as_secs_f64()));
        }
        self.signs.pass();
        let silence = now.saturating_duration_since(self.heard).as_secs();
        self.signs.are_missed().then(|| format!("nothing has been heard of it for {silence} s (LIMOSA_HOST_LIMIT)"))
    }

    /// True once, when the login has taken long and goes on.
    pub fn is_to_be_mentioned(&mut self, now: Instant) -> bool {
        let long = LONG_LOGIN.max(self.login_limit / LONG_SHARE);
        let is_long = !self.is_greeted && now.saturating_duration_since(self.started) >= long;
        is_long && !std::mem::replace(&mut self.is_mentioned, true)
    }

    /// What to sleep on.
    pub fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let login = match &self.way {
            Way::Login(login) => Some(login),
            Way::Through(_) => None,
        };
        login.into_iter().flat_map(|login| login.descriptors(true))
    }

    /// Sends an order, as far as there is room; the rest follows.
    pub fn send(&mut self, order: &Order) {
        self.queue.extend(order.bytes());
        self.flush();
    }

    fn flush(&mut self) {
        if let Way::Login(login) = &mut self.way
            && self.is_greeted
        {
            login.send(&std::mem::take(&mut self.queue));
        }
    }

    /// Takes what the agent of another host has to pass on to this one; which host that is, and whether it first tells
    /// this one what to start.
    pub fn take_for_passing(&mut self) -> Option<(usize, bool, Vec<u8>)> {
        let by = self.through().filter(|_| self.is_greeted && (self.is_to_share || !self.queue.is_empty()))?;
        Some((by, std::mem::take(&mut self.is_to_share), std::mem::take(&mut self.queue)))
    }

    /// Puts what the agent starts ahead of all other orders.
    fn begin(&mut self) {
        match self.way {
            Way::Through(_) => self.is_to_share = true,
            Way::Login(_) => {
                let start = Start { here: self.host as u32, ..Start::clone(&self.start) };
                self.queue.splice(0..0, Order::Start(Box::new(start)).bytes());
            }
        }
    }

    /// Writes and reads what can be. Gives what the agent reports.
    ///
    /// # Errors
    /// Why the host is lost, as a sentence.
    pub fn pump(&mut self) -> (Vec<Report>, Result<(), String>) {
        let come = match &mut self.way {
            Way::Login(login) => {
                login.flush();
                login.read()
            }
            Way::Through(_) => Come::default(),
        };
        self.take_in(come)
    }

    /// The same with what has come through another host.
    ///
    /// # Errors
    /// Why the host is lost, as a sentence.
    pub fn take_in(&mut self, come: Come) -> (Vec<Report>, Result<(), String>) {
        if !come.bytes.is_empty() {
            self.heard = Instant::now();
            self.signs.heard();
        }
        self.come.extend(come.bytes);
        self.said.extend(come.errors);
        let surplus = self.said.len().saturating_sub(SAID);
        self.said.drain(..surplus);
        let (reports, mut result) = self.take();
        if come.has_ended && result.is_ok() {
            result = Err(self.why_ended());
        }
        (reports, result)
    }

    fn take(&mut self) -> (Vec<Report>, Result<(), String>) {
        let mut reports = Vec::new();
        if !self.is_greeted {
            match wire::take_greeting(&mut self.come) {
                None => return (reports, Ok(())),
                Some(Err(why)) => return (reports, Err(why)),
                Some(Ok(())) => {
                    self.is_greeted = true;
                    self.begin();
                    self.flush();
                }
            }
        }
        loop {
            let report = match wire::take(&mut self.come) {
                Ok(None) => return (reports, Ok(())),
                Ok(Some(fields)) => Report::read(fields, self.size),
                Err(error) => Err(error),
            };
            match report {
                Ok(Report::Carrying(are_under_way)) => self.is_carrying = are_under_way,
                Ok(report) if report.rank().is_none_or(|rank| self.has(rank)) => reports.push(report),
                _ => return (reports, Err("its agent has sent what is no message of an agent".into())),
            }
        }
    }

    /// Why the connection has ended.
    fn why_ended(&self) -> String {
        let said = String::from_utf8_lossy(&self.said).into_owned();
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match (last, self.is_greeted) {
            (Some(line), _) => line.to_owned(),
            (None, true) => "its agent has ended".into(),
            (None, false) => "no agent answers there".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_lost_after_several_missed_signs_and_not_before_the_limit() {
        let lost_after = |seconds| {
            let mut signs = Signs::new(Duration::from_secs(seconds));
            (0..1000).find(|_| {
                signs.pass();
                signs.are_missed()
            })
        };
        // The first may come at once: it does not count.
        assert_eq!((lost_after(60), lost_after(1), lost_after(0)), (Some(30), Some(3), Some(3)));
        let mut signs = Signs::new(Duration::from_secs(6));
        (0..20).for_each(|at| {
            signs.pass();
            assert!(!signs.are_missed());
            if at % 3 == 0 {
                signs.heard();
            }
        });
    }
}
