//! The start of a job on many hosts, in one thread: the code of the head's links and of the agents' branches, over
//! socket pairs instead of ssh. The agents start no processes; each says what an agent with one rank says.
//!
//! What each of them sends and gets is counted: no process may do work that grows faster than the number of hosts, or
//! have more connections than the tree gives it.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use limosa_job::HostPlan;
use limosa_job::config;

use super::agent::Head;
use super::agent::branches::Branches;
use super::link::{Link, Way};
use super::login::Login;
use super::wire::{self, Order, Report, Start};
use super::{callers, tree};
use crate::run::binding::BindTo;
use crate::run::placement::Placement;
use crate::run::plan::App;
use crate::run::rank::{Ended, raise_descriptor_limit};
use crate::run::stream;

/// Logins of one process, as by default.
const WIDTH: usize = 16;
/// Lengths of a card of libfabric's `tcp` and of a rank's entry on the board, about.
const CARD: usize = 64;
const ENTRY: usize = 512;

/// A connection, in the middle: towards the process that has logged in, and towards the agent.
struct Cable {
    by: usize,
    to: usize,
    ends: [UnixStream; 2],
    /// By direction: bytes in flight, the received part of the last message, and the totals.
    held: [Vec<u8>; 2],
    frames: [Vec<u8>; 2],
    part: [Vec<u8>; 2],
    is_greeted: bool,
    bytes: usize,
    messages: usize,
}

impl Cable {
    /// Moves bytes in flight to the receiver while it has room. Returns whether any moved.
    fn carry(&mut self) -> bool {
        let (mut any, mut chunk) = (false, vec![0; 1 << 16]);
        for way in 0..2 {
            if self.held[way].is_empty() {
                let length = moved(self.ends[way].read(&mut chunk));
                self.held[way].extend_from_slice(&chunk[..length]);
                self.frames[way].extend_from_slice(&chunk[..length]);
                self.bytes += length;
            }
            let length = moved(self.ends[1 - way].write(&self.held[way]));
            self.held[way].drain(..length);
            any |= length > 0;
        }
        self.is_greeted = self.is_greeted || wire::take_greeting(&mut self.frames[1]).is_some();
        for (part, frames) in self.part.iter_mut().zip(&mut self.frames).filter(|_| self.is_greeted) {
            part.extend(stream::unframed(frames));
            while wire::take(part).expect("messages").is_some() {
                self.messages += 1;
            }
        }
        any
    }
}

/// The bytes that were moved.
fn moved(result: std::io::Result<usize>) -> usize {
    match result {
        Ok(length) => length,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("a cable: {error}"),
    }
}

/// The agent of a host with one rank, without process and board.
struct Agent {
    host: usize,
    head: Head,
    branches: Option<Branches>,
    /// Ranks whose cards it has, and those that it knows to have ended.
    cards: HashSet<u32>,
    left: HashSet<u32>,
}

/// What the logins of all processes have made.
#[derive(Default)]
struct Net {
    cables: Vec<Cable>,
    agents: Vec<Agent>,
}

impl Net {
    /// A login of a process (0: the head) on a host, where it starts an agent.
    fn log_in(&mut self, by: usize, to: usize) -> std::io::Result<Login> {
        let ((near, middle), (other_middle, far)) = (UnixStream::pair()?, UnixStream::pair()?);
        let ends = [middle, other_middle];
        for end in ends.iter().chain([&far]) {
            end.set_nonblocking(true)?;
        }
        let (held, frames, part) = Default::default();
        self.cables.push(Cable { by, to, ends, held, frames, part, is_greeted: false, bytes: 0, messages: 0 });
        let head = Head::over(far.try_clone()?.into(), far.into());
        self.agents.push(Agent { host: to, head, branches: None, cards: HashSet::new(), left: HashSet::new() });
        Login::over(near.try_clone()?.into(), near.into())
    }
}

impl Agent {
    fn step(&mut self, net: &Rc<RefCell<Net>>) {
        self.head.read();
        while let Some(order) = self.head.next_order() {
            let Some(branches) = &mut self.branches else {
                let Order::Start(start) = order else { panic!("{order:?} comes before the start") };
                assert_eq!(start.here as usize, self.host);
                let (net, by) = (net.clone(), self.host);
                let log_in = move |host| net.borrow_mut().log_in(by, host);
                self.branches = Some(Branches::by(Arc::new(*start), Box::new(log_in)));
                self.head.send(&Report::Ready);
                continue;
            };
            for order in branches.take(order, &mut self.head) {
                self.carry_out(order);
            }
        }
        if let Some(branches) = &mut self.branches {
            (0..branches.count()).for_each(|at| branches.hear(at, &mut self.head));
        }
        self.head.flush();
        assert!(!self.head.is_gone());
    }

    fn carry_out(&mut self, order: Order) {
        let rank = self.host as u32;
        match order {
            Order::Begin => {
                self.head.send(&Report::Started { rank, pid: 1, processors: Vec::new() });
                self.head.send(&Report::Place { rank, now_ns: 1, copy: vec![1; ENTRY] });
                self.head.send(&Report::Card { rank, card: vec![1; CARD] });
            }
            Order::Card(of, _) => drop(self.cards.insert(of)),
            Order::Left(of) => drop(self.left.insert(of)),
            Order::Kill => self.head.send(&Report::Ended { rank, how: Ended::Code(0), out_of_memory: false }),
            other => panic!("{other:?} is not expected"),
        }
    }
}

/// The head's part, which is on the first host.
struct Launcher {
    links: Vec<Option<Link>>,
    news: Vec<u8>,
    ready: usize,
    ended: usize,
}

impl Launcher {
    fn new(start: &Arc<Start>, net: &Rc<RefCell<Net>>) -> Launcher {
        let placement = Placement { hosts: start.hosts.clone(), slots: vec![1; start.hosts.len()], here: Some(0) };
        let config = config::parse(std::iter::empty::<(OsString, OsString)>()).0;
        let mut links = vec![None];
        for (host, caller) in callers(&placement, WIDTH).into_iter().enumerate().skip(1) {
            let login = || net.borrow_mut().log_in(0, host).map(Box::new).map(Way::Login).expect("socket pairs");
            let way = caller.map_or_else(login, Way::Through);
            links.push(Some(Link::new(start, host, &config, way)));
            if let Some(by) = caller {
                tree::order(&mut links, by, &Order::Login(host as u32));
            }
        }
        Launcher { links, news: Vec::new(), ready: 0, ended: 0 }
    }

    fn step(&mut self) {
        for host in 1..self.links.len() {
            let heard = self.links[host].as_mut().expect("no host is lost").pump();
            self.hear(heard);
        }
        tree::pass_on(&mut self.links, &mut self.news);
    }

    fn hear(&mut self, (reports, result): (Vec<Report>, Result<(), String>)) {
        assert_eq!(result, Ok(()));
        let others = self.links.len() - 1;
        for report in reports {
            match report {
                Report::Passed { host, come } => {
                    let heard = self.links[host as usize].as_mut().expect("no host is lost").take_in(come);
                    self.hear(heard);
                }
                Report::Ready => {
                    self.ready += 1;
                    if self.ready == others {
                        self.news.extend(Order::Card(0, vec![1; CARD]).bytes());
                        tree::order_all(&mut self.links, &mut self.news, &Order::Begin);
                    }
                }
                Report::Card { rank, card } => self.news.extend(Order::Card(rank, card).bytes()),
                Report::Ended { rank, .. } => {
                    self.ended += 1;
                    self.news.extend(Order::Left(rank).bytes());
                }
                Report::Started { .. } | Report::Place { .. } => {}
                other => panic!("{other:?} is not expected"),
            }
        }
    }
}

/// What one process had to do.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    connections: usize,
    bytes: usize,
    messages: usize,
}

/// Starts and ends a job; gives the load of the head, and the highest of all agents.
fn start_and_end(hosts: usize) -> (Load, Load) {
    let plan = |host: usize| HostPlan { name: format!("node{host}"), ranks: host as u32..host as u32 + 1 };
    let text = |length: usize| "x".repeat(length).into();
    let app = App {
        program: "/usr/bin/program".into(),
        name: "program".into(),
        args: Vec::new(),
        env: Vec::new(),
        clear_env: false,
        wdir: None,
    };
    let start = Arc::new(Start {
        id: 1,
        spare: 0,
        universe: hosts as u32,
        hosts: (0..hosts).map(plan).collect(),
        here: 0,
        apps: vec![app],
        ranks: vec![0; hosts],
        env: (0..50).map(|_| (text(10), text(40))).collect(),
        bind_to: BindTo::ALL[0],
        readers: vec![0],
    });
    let net = Rc::new(RefCell::new(Net::default()));
    let mut launcher = Launcher::new(&start, &net);
    let (mut agents, mut is_killed) = (Vec::new(), false);
    loop {
        let moved = net.borrow_mut().cables.iter_mut().fold(false, |any, cable| cable.carry() | any);
        agents.append(&mut net.borrow_mut().agents);
        agents.iter_mut().for_each(|agent: &mut Agent| agent.step(&net));
        launcher.step();
        let all_know = |known: fn(&Agent) -> usize| agents.iter().all(|agent| known(agent) >= hosts - 1);
        if !is_killed && agents.len() == hosts - 1 && all_know(|agent| agent.cards.len()) {
            is_killed = true;
            tree::order_all(&mut launcher.links, &mut launcher.news, &Order::Kill);
        } else if is_killed && launcher.ended == hosts - 1 && all_know(|agent| agent.left.len()) {
            break;
        } else {
            assert!(moved || net.borrow().cables.iter().all(|cable| cable.bytes == 0), "the start does not go on");
        }
    }
    let mut loads = vec![Load::default(); hosts];
    for cable in &net.borrow().cables {
        for end in [cable.by, cable.to] {
            let load = &mut loads[end];
            load.connections += 1;
            load.bytes += cable.bytes;
            load.messages += cable.messages;
        }
    }
    let most = |of: fn(&Load) -> usize| loads[1..].iter().map(of).max().unwrap_or(0);
    let agent = Load { connections: most(|l| l.connections), bytes: most(|l| l.bytes), messages: most(|l| l.messages) };
    (loads[0], agent)
}

#[test]
fn the_load_of_each_process_at_the_start_grows_at_most_like_the_number_of_hosts() {
    raise_descriptor_limit(1000);
    let loads = [10, 100, 1000].map(|hosts| (hosts, start_and_end(hosts)));
    for (hosts, (head, agent)) in loads {
        println!("{hosts} hosts: {head:?}, most of any agent {agent:?}");
        assert!(head.connections <= WIDTH && agent.connections <= WIDTH + 1);
    }
    let [_, (_, (head, agent)), (_, (large_head, large_agent))] = loads;
    for (small, large) in [(head, large_head), (agent, large_agent)] {
        assert!(large.bytes < 15 * small.bytes, "{large:?} after {small:?}");
        assert!(large.messages < 15 * small.messages, "{large:?} after {small:?}");
    }
}
