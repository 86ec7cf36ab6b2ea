//! `limosa agent`: starts the ranks of one host for the head of a job, and reports what becomes of them.
//!
//! It decides nothing. When the head is gone (it says so, or too many signs of life are missed) the agent kills all
//! that belongs to the job on this host and ends; its guardian does that if the agent itself is killed. When the
//! connection ends, the ranks go on, and the head logs in again: `limosa agent --again` brings the new connection.
//!
//! | order | what it does |
//! |---|---|
//! | `Start` | makes the job's segment here, with the id and the numbers of the whole job |
//! | `Begin` | starts the ranks |
//! | `Signal`, `End`, `Kill`, `KillRank`, `Input`, `InputEnds` | what they say |
//! | `Card`, `Left` | tells the ranks what becomes of those of other hosts |
//! | `Prepare`, `Spawn`, `Answer`, `AskEnds`, `Reach` | see [`later`] |
//! | `Login`, `Share`, `Pass`, `Spread`, `Cut` | see [`branches`] |
//! | `Call` | has the courier connect to that of another host |
//! | `Done` | kills what is left, and ends |

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use limosa_job::config::{self, Config, DeviceChoice};
use limosa_job::{Board, Seat, Shape, State, control, monotonic_ns};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

pub(super) mod branches;
mod head;
mod later;

use branches::Branches;
pub(super) use head::Head;
pub use head::again;
use later::Asker;

use super::link::{ALIVE, Signs};
use super::wire::{Order, Report, Start};
use super::{address, courier, folders, pinned};
use crate::hang::stacks::Places;
use crate::message::say;
use crate::run::binding;
use crate::run::guardian::{self, Guardian};
use crate::run::plan::App;
use crate::run::rank::{Ended, Rank, raise_descriptor_limit};
use crate::{exit, procfs, sys};

/// Time between reports of the ranks' places on the board.
const PLACES: Duration = Duration::from_millis(250);
/// No more is read from ranks while this much waits for the head.
const QUEUE_LIMIT: usize = 1 << 20;
/// Variables of this host that those of the head do not replace.
const OWN: [&str; 4] = ["HOSTNAME", "XDG_RUNTIME_DIR", "SSH_CONNECTION", "SSH_CLIENT"];

/// Signals that end the agent.
const HANDLED: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// A rank that reads input.
struct Reader {
    rank: u32,
    pipe: OwnedFd,
}

struct Agent {
    head: Head,
    board: Arc<Board>,
    segment: OwnedFd,
    guardian: Arc<Guardian>,
    courier: Option<courier::Running>,
    /// What reaches other hosts.
    device: DeviceChoice,
    /// The hosts that it has logged in to.
    branches: Branches,
    start: Arc<Start>,
    /// What the ranks are started with, when all hosts are ready.
    expected: Option<Config>,
    signals: OwnedFd,
    wake: Arc<OwnedFd>,
    /// The ranks of this host, and their numbers.
    ranks: Vec<Rank>,
    numbers: Vec<u32>,
    /// Where ranks ask the launcher for something, and those that do; `asks`: how many have.
    control: Option<UnixListener>,
    askers: Vec<Asker>,
    /// Questions of the head for source lines, whose answers are being looked up.
    looked_up: Vec<(u64, Receiver<Places>)>,
    asks: u64,
    readers: Vec<Reader>,
    /// Input that the readers have not got, and how much of it each has.
    input: Vec<u8>,
    got: Vec<usize>,
    input_has_ended: bool,
    /// The marks of the places that were reported last, and the cards.
    marks: Vec<(u64, u32)>,
    cards: Vec<Option<Vec<u8>>>,
    next_places: Instant,
    next_alive: Instant,
    has_reported_abort: bool,
    was_carrying: bool,
    /// The ranks are stopped, and the head perhaps too.
    is_suspended: bool,
    is_done: bool,
    oom_before: u64,
}

/// What `poll` may find ready.
enum Ready {
    Head,
    Door,
    Signal,
    Wake,
    Stream(usize, usize),
    End(usize),
    Inner(usize),
    Reader,
    Control,
    Asker(u64),
    Branch(usize),
}

/// Runs the command.
pub fn main() -> ExitCode {
    match serve() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(exit::FAILED),
        Err(error) => {
            say(&format!("the agent of this host cannot start the ranks: {error}"), None);
            ExitCode::from(exit::ENVIRONMENT)
        }
    }
}

/// True if the head has said that the job has ended.
fn serve() -> std::io::Result<bool> {
    let mut head = Head::connect()?;
    let Some(start) = head.start()?.map(Arc::new) else { return Ok(false) };
    let config = config_of(&start);
    head.signs = Signs::new(config.host_limit);
    head.listen(&start);
    let guardian = Arc::new(Guardian::start(&config)?);
    let signals = sys::signal_fd(&HANDLED)?;
    let mut agent = Agent::new(head, &start, &config, guardian, signals)?;
    // It is given up last.
    let mut owner = None;
    let prepared = agent.prepare_folder(&config).and_then(|made| {
        owner = made;
        courier::prepare(&config, &agent.board, &start.hosts, start.here as usize)
    });
    match prepared {
        Ok(prepared) => {
            agent.courier = prepared.map(|prepared| prepared.run(agent.wake.clone())).transpose()?;
            agent.expect_ranks(config.clone());
        }
        Err(error) => agent
            .head
            .send(&Report::NotStarted { rank: start.hosts[start.here as usize].ranks.start, why: error.to_string() }),
    }
    agent.listen_for_bell()?;
    while !agent.is_done && !agent.head.is_gone {
        agent.step();
    }
    agent.branches.cut_all();
    agent.kill_everything();
    agent.ranks.iter_mut().for_each(Rank::reap);
    let is_done = agent.is_done;
    agent.courier = None;
    config.delete_messages(start.id);
    drop(owner);
    agent.head.farewell();
    agent.guardian.dismiss();
    Ok(is_done)
}

impl Agent {
    fn new(
        head: Head,
        start: &Arc<Start>,
        config: &Config,
        guardian: Arc<Guardian>,
        signals: OwnedFd,
    ) -> std::io::Result<Agent> {
        let shape = Shape {
            appnums: start.ranks.clone(),
            spare: start.spare,
            universe: start.universe,
            launcher_pid: std::process::id(),
        };
        let (segment, board) = Board::create_as(&shape, start.id)?;
        board.set_hosts(start.here, &start.hosts);
        guardian.job(board.id());
        let own = &start.hosts[start.here as usize].ranks;
        raise_descriptor_limit(own.len());
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let now = Instant::now();
        Ok(Agent {
            head,
            control: control::listen(start.id).ok(),
            board: Arc::new(board),
            segment,
            branches: Branches::new(start.clone(), config.ssh.clone(), guardian.clone()),
            guardian,
            courier: None,
            device: config.device.clone(),
            start: start.clone(),
            expected: None,
            signals,
            wake: Arc::new(wake),
            ranks: Vec::new(),
            numbers: Vec::new(),
            askers: Vec::new(),
            looked_up: Vec::new(),
            asks: 0,
            readers: Vec::new(),
            input: Vec::new(),
            got: Vec::new(),
            input_has_ended: false,
            marks: Vec::new(),
            cards: Vec::new(),
            next_places: now + PLACES,
            next_alive: now + ALIVE,
            has_reported_abort: false,
            was_carrying: false,
            is_suspended: false,
            is_done: false,
            oom_before: procfs::oom_kills(),
        })
    }

    /// Makes the folder of this host for the files of messages, or waits until it sees the one that all hosts share.
    fn prepare_folder(&mut self, config: &Config) -> std::io::Result<Option<folders::Owner>> {
        if matches!(config.device, DeviceChoice::LocalFiles(_)) {
            return folders::make(config, self.board.id());
        }
        let head = &mut self.head;
        let mut next_alive = Instant::now();
        folders::await_shared(config, self.board.id(), || {
            if Instant::now() >= next_alive {
                next_alive += ALIVE;
                head.send(&Report::Alive);
            }
            head.flush();
            head.read();
            !head.is_gone
        })?;
        Ok(None)
    }

    /// Says whether the ranks of this host can be started.
    fn expect_ranks(&mut self, config: Config) {
        let start = &self.start;
        for rank in start.hosts[start.here as usize].ranks.clone() {
            let app = &start.apps[start.ranks[rank as usize] as usize];
            if let Err(error) = check(app) {
                return self.head.send(&Report::NotStarted { rank, why: why_not(app, &error) });
            }
        }
        self.expected = Some(config);
        self.head.send(&Report::Ready);
    }

    fn start_ranks(&mut self) {
        let Some(config) = self.expected.take() else { return };
        let start = self.start.clone();
        let here = |app: &App| pinned(&with_variables(app, &start.env), &config.device, address::of_login());
        let apps: Vec<Arc<App>> = start.apps.iter().map(|app| Arc::new(here(app))).collect();
        let own = start.hosts[start.here as usize].ranks.clone();
        let bindings = binding::of_ranks(start.bind_to, own.len());
        for rank in own.clone() {
            let processors = bindings.get((rank - own.start) as usize).map_or(&[][..], Vec::as_slice);
            let app = &apps[start.ranks[rank as usize] as usize];
            let stdin = if start.readers.contains(&rank) { self.add_reader(rank) } else { Ok(Stdio::null()) };
            let started = stdin
                .and_then(|stdin| Rank::start(app, rank, &self.board, self.segment.as_fd(), Some(stdin), processors));
            if !self.started(rank, app, started, processors) {
                return;
            }
        }
    }

    /// Reports that a process was started, or why not; true if it was.
    fn started(&mut self, rank: u32, app: &App, started: std::io::Result<Rank>, processors: &[usize]) -> bool {
        match started {
            Ok(started) => {
                self.guardian.group(started.pid);
                self.head.send(&Report::Started { rank, pid: started.pid, processors: processors.to_vec() });
                self.ranks.push(started);
                self.numbers.push(rank);
                self.marks.push((0, 0));
                self.cards.push(None);
                true
            }
            Err(error) => {
                self.head.send(&Report::NotStarted { rank, why: why_not(app, &error) });
                false
            }
        }
    }

    fn add_reader(&mut self, rank: u32) -> std::io::Result<Stdio> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        self.readers.push(Reader { rank, pipe: write });
        self.got.push(0);
        Ok(read.into())
    }

    fn listen_for_bell(&self) -> std::io::Result<()> {
        let (board, wake) = (self.board.clone(), self.wake.clone());
        std::thread::Builder::new().name("limosa-bell".into()).spawn(move || {
            loop {
                let seen = board.bell();
                let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
                board.wait_bell(seen);
            }
        })?;
        Ok(())
    }

    /// Sleeps until something is ready or due, and does it.
    fn step(&mut self) {
        for ready in self.sleep() {
            match ready {
                Ready::Head => {
                    self.head.read();
                    self.obey();
                }
                Ready::Door => self.head.open(),
                // A signal that ends the agent means the job.
                Ready::Signal => self.head.is_gone |= sys::next_signal(self.signals.as_fd()).is_some(),
                Ready::Wake => self.on_wake(),
                Ready::Stream(index, kind) => self.read_stream(index, kind),
                Ready::End(index) => self.on_end(index),
                Ready::Inner(index) => self.on_inner_end(index),
                Ready::Reader => self.hand_out(),
                Ready::Control => self.on_control(),
                Ready::Asker(ask) => self.on_asker(ask),
                Ready::Branch(at) => self.branches.hear(at, &mut self.head),
            }
        }
        self.branches.forget_ended();
        self.on_time(Instant::now());
        self.head.flush();
    }

    fn sleep(&self) -> Vec<Ready> {
        let mut fds: Vec<PollFd<'_>> = self.head.descriptors().collect();
        let mut what: Vec<Ready> = fds.iter().map(|_| Ready::Head).collect();
        if let Some(listener) = &self.head.listener {
            what.push(Ready::Door);
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        what.extend([Ready::Signal, Ready::Wake]);
        fds.extend([PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&*self.wake, PollFlags::IN)]);
        for (index, rank) in self.ranks.iter().enumerate() {
            for (kind, stream) in rank.streams.iter().enumerate() {
                if let Some(stream) = stream.as_ref().filter(|_| self.head.stream.pending() < QUEUE_LIMIT) {
                    what.push(Ready::Stream(index, kind));
                    fds.push(PollFd::new(stream, PollFlags::IN));
                }
            }
            if let Some(end) = rank.end.as_ref().filter(|_| rank.ended.is_none()) {
                what.push(Ready::End(index));
                fds.push(PollFd::new(end, PollFlags::IN));
            }
            if let Some((_, fd)) = &rank.inner {
                what.push(Ready::Inner(index));
                fds.push(PollFd::new(fd, PollFlags::IN));
            }
        }
        if let Some(listener) = &self.control {
            what.push(Ready::Control);
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        for asker in &self.askers {
            what.push(Ready::Asker(asker.number));
            fds.push(PollFd::new(&asker.stream, PollFlags::IN));
        }
        for (at, fd) in self.branches.descriptors(self.head.stream.pending() < QUEUE_LIMIT) {
            what.push(Ready::Branch(at));
            fds.push(fd);
        }
        for (reader, got) in self.readers.iter().zip(&self.got) {
            if *got < self.input.len() {
                what.push(Ready::Reader);
                fds.push(PollFd::new(&reader.pipe, PollFlags::OUT));
            }
        }
        let due = self.next_places.min(self.next_alive).saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: due.as_secs() as i64, tv_nsec: due.subsec_nanos().into() };
        let _ = rustix::event::poll(&mut fds, Some(&timeout));
        fds.iter().zip(what).filter(|(fd, _)| !fd.revents().is_empty()).map(|(_, what)| what).collect()
    }

    fn on_time(&mut self, now: Instant) {
        if now >= self.next_places {
            self.next_places = now + PLACES;
            (0..self.ranks.len()).for_each(|index| self.report_place(index));
            self.report_cards();
            let is_carrying = self.courier.as_ref().is_some_and(courier::Running::is_carrying);
            if std::mem::replace(&mut self.was_carrying, is_carrying) != is_carrying {
                self.head.send(&Report::Carrying(is_carrying));
            }
        }
        if now >= self.next_alive {
            self.next_alive = now + ALIVE;
            self.head.send(&Report::Alive);
            self.head.signs.pass();
            self.head.is_gone |= self.head.signs.are_missed() && !self.is_suspended;
            self.branches.keep_up();
        }
    }

    fn obey(&mut self) {
        while let Some(order) = self.head.next_order() {
            self.branches.take(order, &mut self.head).into_iter().for_each(|order| self.carry_out(order));
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Signal(signal) => {
                self.set_suspended(signal == libc::SIGSTOP);
                self.signal_all(signal);
            }
            Order::Begin => self.start_ranks(),
            Order::End => {
                self.set_suspended(false);
                self.board.set_ending();
                self.ranks.iter().for_each(Rank::ask_to_end);
            }
            Order::Kill => self.kill_everything(),
            Order::Input(bytes) => {
                self.input = bytes;
                self.got.fill(0);
                self.hand_out();
            }
            Order::InputEnds => {
                self.input_has_ended = true;
                self.hand_out();
            }
            Order::Card(rank, card) => self.learn(rank, |seat| seat.publish_card(&card)),
            Order::Left(rank) => self.learn(rank, |seat| seat.left_elsewhere()),
            Order::Prepare(prepare) => self.prepare(&prepare),
            Order::Spawn(rank, app) => self.spawn(rank, &app),
            Order::KillRank(rank) => self.kill_rank(rank),
            Order::Answer(ask, fields) => self.answer(ask, &fields),
            Order::AskEnds(ask) => self.askers.retain(|asker| asker.number != ask),
            Order::Reach(ask, port) => self.reach(ask, &port),
            Order::Places(question) => self.find_places(question),
            Order::Call(host) => self.courier.iter().for_each(|courier| courier.call(host as usize)),
            Order::Alive => {}
            Order::Done => self.is_done = true,
            Order::Login(_) | Order::Share(_) | Order::Pass(..) | Order::Spread(_) | Order::Cut(_) => {}
            Order::Start(_) => self.head.is_gone = true,
        }
    }

    /// Notes something about a rank of another host.
    fn learn(&self, rank: u32, note: impl FnOnce(Seat<'_>)) {
        if rank < self.board.capacity() && !self.board.is_here(rank) {
            note(self.board.seat(rank));
        }
    }

    /// Writes input to the ranks that read it. A rank that has closed its standard input gets no more.
    fn hand_out(&mut self) {
        let had = !self.input.is_empty();
        for at in (0..self.readers.len()).rev() {
            while self.got[at] < self.input.len() {
                match rustix::io::write(&self.readers[at].pipe, &self.input[self.got[at]..]) {
                    Ok(n) => self.got[at] += n,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => {
                        self.forget_reader(at);
                        break;
                    }
                }
            }
        }
        if self.got.iter().all(|got| *got == self.input.len()) {
            self.input.clear();
            self.got.fill(0);
            if had {
                self.head.send(&Report::Taken);
            }
            if self.input_has_ended {
                self.readers.clear();
                self.got.clear();
            }
        }
    }

    fn forget_reader(&mut self, at: usize) {
        self.readers.remove(at);
        self.got.remove(at);
    }

    fn set_suspended(&mut self, is_suspended: bool) {
        self.is_suspended = is_suspended;
        self.courier.iter().for_each(|courier| courier.set_patient(is_suspended));
    }

    fn signal_all(&self, signal: i32) {
        self.ranks.iter().for_each(|rank| rank.signal(signal));
    }

    fn kill_everything(&self) {
        self.signal_all(libc::SIGKILL);
        guardian::sweep(self.board.id());
    }

    fn index_of(&self, rank: u32) -> Option<usize> {
        self.numbers.iter().position(|number| *number == rank)
    }

    fn rank_of(&self, index: usize) -> u32 {
        self.numbers[index]
    }

    /// The board's bell: a rank has joined, has published its card, or aborts.
    fn on_wake(&mut self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&*self.wake, &mut count);
        for index in 0..self.ranks.len() {
            let claimed = self.board.seat(self.rank_of(index)).pid();
            let was_seen = self.ranks[index].seen_claim;
            let ended = self.ranks[index].look_for_claim(claimed);
            if !was_seen && self.ranks[index].seen_claim {
                self.report_place(index);
            }
            if let Some(pid) = ended {
                self.report_inner_end(index, pid);
            }
        }
        for host in self.courier.iter().flat_map(courier::Running::requests) {
            self.head.send(&Report::Call(host as u32));
        }
        self.report_places();
        self.report_cards();
        self.report_abort();
    }

    fn report_cards(&mut self) {
        for index in 0..self.ranks.len() {
            let rank = self.rank_of(index);
            let card = self.board.seat(rank).card();
            if let Some(card) = card.filter(|card| self.cards[index].as_ref() != Some(card)) {
                self.cards[index] = Some(card.clone());
                self.head.send(&Report::Card { rank, card });
            }
        }
    }

    fn report_abort(&mut self) {
        let Some(abort) = self.board.aborted().filter(|_| !self.has_reported_abort) else { return };
        let Some(index) = self.index_of(abort.rank) else { return };
        self.report_killed();
        self.has_reported_abort = true;
        self.drain(index);
        self.head.send(&Report::Abort { rank: abort.rank, code: abort.code, message: abort.message });
    }

    fn report_place(&mut self, index: usize) {
        let rank = self.rank_of(index);
        let mark = self.board.seat(rank).mark();
        if self.ranks[index].ended.is_none() && self.marks[index] != mark {
            self.marks[index] = mark;
            let (now_ns, copy) = (monotonic_ns(), self.board.copy_of(rank));
            self.head.send(&Report::Place { rank, now_ns, copy });
        }
    }

    fn on_end(&mut self, index: usize) {
        self.report_killed();
        if self.ranks[index].ended.is_none()
            && let Some(how) = self.ranks[index].poll_end()
        {
            self.report_abort();
            self.report_end(index, how);
        }
    }

    /// If a rank was killed, other ranks may abort or exit because of it. The head hears of the signal first, whichever
    /// is seen first here.
    fn report_killed(&mut self) {
        for index in 0..self.ranks.len() {
            if self.ranks[index].ended.is_none()
                && let Some(how @ Ended::Signal(_)) = self.ranks[index].poll_end()
            {
                self.report_end(index, how);
            }
        }
    }

    fn report_end(&mut self, index: usize, how: Ended) {
        let rank = self.rank_of(index);
        self.drain(index);
        self.marks[index] = (u64::MAX, 0);
        self.report_place(index);
        self.ranks[index].ended = Some(how);
        self.board.seat(rank).exited();
        if let Some(at) = self.readers.iter().position(|reader| reader.rank == rank) {
            self.forget_reader(at);
            self.hand_out();
        }
        self.let_go_of_spawned(index);
        let out_of_memory = procfs::oom_kills() > self.oom_before;
        self.head.send(&Report::Ended { rank, how, out_of_memory });
    }

    fn on_inner_end(&mut self, index: usize) {
        if let Some((pid, _)) = self.ranks[index].inner.take() {
            self.report_inner_end(index, pid);
        }
    }

    fn report_inner_end(&mut self, index: usize, pid: u32) {
        let rank = self.rank_of(index);
        if matches!(self.board.view(rank).state, State::Starting | State::Running) {
            self.report_place(index);
            self.head.send(&Report::InnerEnded { rank, pid });
        }
    }

    fn read_stream(&mut self, index: usize, kind: usize) {
        let rank = self.rank_of(index);
        let mut buffer = [0u8; 65536];
        let Some(stream) = &self.ranks[index].streams[kind] else { return };
        match rustix::io::read(stream, &mut buffer) {
            Ok(n) if n > 0 => {
                self.head.send(&Report::Output { rank, kind: kind as u32, bytes: buffer[..n].to_vec() });
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(_) | Err(_) => {
                self.ranks[index].streams[kind] = None;
                self.head.send(&Report::OutputEnds { rank, kind: kind as u32 });
            }
        }
    }

    /// Reads what a rank has left in its pipes.
    fn drain(&mut self, index: usize) {
        for kind in 0..2 {
            // A pipe usually holds 64 KiB.
            for _ in 0..32 {
                let Some(stream) = &self.ranks[index].streams[kind] else { break };
                let mut poll = [PollFd::new(stream, PollFlags::IN)];
                if !matches!(rustix::event::poll(&mut poll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1)) {
                    break;
                }
                self.read_stream(index, kind);
            }
        }
    }
}

/// What the variables of the ranks say, for what happens on this host. The head's guardian sees to files of messages in
/// a folder that all hosts share.
fn config_of(start: &Start) -> Config {
    let app = with_variables(&start.apps[0], &start.env);
    // Of several settings the first counts there, and the last one here.
    let (mut config, _) = config::parse(app.env.iter().rev().cloned());
    let device = app.env.iter().rev().find(|(name, _)| name == "LIMOSA_DEVICE");
    let is_default = device.is_some_and(|set| set.1 == "file:local" || set.1 == "shm,file:local");
    match &mut config.device {
        DeviceChoice::LocalFiles(folder) if is_default && std::env::var_os("TMPDIR").is_none() => {
            // What the head has, if it is here, too.
            let named = app.env.iter().rev().find(|(name, _)| name == "TMPDIR");
            let named = named.map(|(_, folder)| std::path::PathBuf::from(folder));
            *folder = named.filter(|folder| folder.is_absolute() && folder.is_dir()).unwrap_or(folder.clone());
        }
        DeviceChoice::LocalFiles(_) => {}
        _ => config.file_keep = true,
    }
    config
}

/// The program with the variables of the head, as far as it wants any.
fn with_variables(app: &App, head: &[(std::ffi::OsString, std::ffi::OsString)]) -> App {
    let mut env = Vec::new();
    if !app.clear_env {
        env.extend(head.iter().cloned());
        env.extend(OWN.iter().filter_map(|name| Some(((*name).into(), std::env::var_os(name)?))));
    }
    env.extend(app.env.iter().cloned());
    App { env, clear_env: true, ..app.clone() }
}

/// Whether a program can be started here.
fn check(app: &App) -> std::io::Result<()> {
    if app.wdir.as_ref().is_some_and(|dir| !dir.is_dir()) {
        return Err(std::io::ErrorKind::NotADirectory.into());
    }
    Ok(rustix::fs::access(&app.program, rustix::fs::Access::EXEC_OK)?)
}

/// Why a program was not started: the system does not say which file is missing.
fn why_not(app: &App, error: &std::io::Error) -> String {
    match &app.wdir {
        Some(dir) if !dir.is_dir() => format!("there is no folder {} on this host", dir.display()),
        _ if !app.program.exists() => format!("there is no {} on this host", app.program.display()),
        _ => error.to_string(),
    }
}
