//! The launcher's main loop: starts the ranks, passes on their streams and signals, watches how they end, and leaves
//! nothing behind.
//!
//! One thread sleeps in `poll` on all descriptors. Only the writers of stdout and stderr ([`super::output`]) and the
//! sleeper on the board's bell have threads of their own.
//!
//! | phase | begins with | ends with |
//! |---|---|---|
//! | waiting for hosts | all agents started | all have answered, or a [`Cause`]; one host: not at all |
//! | running | all ranks started | all ranks ended, or a [`Cause`] |
//! | asked to end | a signal that was passed on | all ranks ended, or their time is over ([`Patience`]) |
//! | notice | a [`Cause`] that lets others end by themselves ([`Job::soon`]) | all ranks ended, or the moment is over |
//! | ending | [`Job::end`]: SIGTERM to every process group | SIGKILL [`TERM_TO_KILL`] later, or when all have ended |
//! | draining | all ranks ended | their streams have ended, or [`DRAIN`] is over |

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use limosa_job::{Board, Shape, State, control, processors, spare_ranks};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};

use super::Settings;
use super::files::RankFiles;
use super::guardian::{self, Guardian};
use super::hosts::link::Link;
use super::hosts::wire::Order;
use super::input::Input;
use super::options::Unusable;
use super::outcome::{Cause, Who, hint_of_refusal};
use super::output::{Lines, Shown, Sink, is_terminal, streams_are_one};
use super::patience::Patience;
use super::plan::{App, Plan, is_python};
use super::rank::{Ended, Rank, raise_descriptor_limit};
use super::strangers::{self, Strangers};
use crate::hang::stacks::Places;
use crate::hang::watch::{self, Watch};
use crate::{exit, procfs, sys};

pub mod adopt;
mod asking;
mod deadlines;
mod debugging;
mod elsewhere;
mod hangs;
mod neighbours;
mod spawn;
mod start;
mod streams;
mod tunnels;

use asking::Asker;
use debugging::Debugging;
use elsewhere::Between;
use neighbours::Launchers;
use spawn::Spawning;
use tunnels::Tunnel;

/// Time between SIGTERM and SIGKILL.
const TERM_TO_KILL: Duration = Duration::from_millis(50);
/// How long streams that others still hold open are read after the last rank has ended.
const DRAIN: Duration = Duration::from_millis(200);
/// How long others may run on after a rank has left without finalizing. If all do that, at about the same time, it is
/// no failure.
const UNFINALIZED_GRACE: Duration = Duration::from_millis(200);
/// How long others may run on after a rank that has finalized failed, or after an interrupt ended a rank.
const ORDERLY_GRACE: Duration = Duration::from_secs(1);

/// A signal that comes so soon after the first one is the same: `timeout` sends one to the launcher, and then one to
/// the process group.
const SAME_SIGNAL: Duration = Duration::from_millis(100);

const WAKE_FLAGS: EventfdFlags = EventfdFlags::CLOEXEC.union(EventfdFlags::NONBLOCK);

/// What `poll` may find ready.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ready {
    Signal,
    Wake,
    Stream(usize, usize),
    Inner(usize),
    End(usize),
    InputSource,
    InputPipe,
    Control,
    Spawning(u64),
    /// What an end of a connection with a port says: its number, and which end.
    Tunnel(u64, usize),
    Host(usize),
}

struct Job<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    apps: Vec<Arc<App>>,
    segment: OwnedFd,
    board: Arc<Board>,
    /// Where ranks ask for something.
    control: Option<UnixListener>,
    /// Spawns under way, and how many there have been.
    spawning: Vec<Spawning>,
    spawns: u64,
    /// Connections of ranks with ports on other hosts, and how many there have been.
    tunnels: Vec<Tunnel>,
    reached: u64,
    /// The agents of the other hosts, by the number of the host.
    links: Vec<Option<Link>>,
    between: Between,
    /// Before the ranks are started: the hosts that have not said that they are ready.
    unready: Option<Vec<usize>>,
    /// What ranks of this host have published about themselves, as far as the agents know it.
    cards: HashMap<u32, Vec<u8>>,
    /// Orders for all agents, sent with the next orders.
    news: Vec<u8>,
    /// When they are to be told that the launcher lives.
    next_word: Instant,
    /// Where the next spawn looks for free numbers first.
    next_number: u32,
    /// Published names and their ports.
    names: HashMap<Vec<u8>, Vec<u8>>,
    guardian: Arc<Guardian>,
    signals: OwnedFd,
    wake: Arc<OwnedFd>,
    ranks: Vec<Rank>,
    input: Input,
    /// For stdout and stderr the index into `sinks`.
    route: [usize; 2],
    sinks: Vec<(Lines, Sink)>,
    files: Option<RankFiles>,
    watch: Watch,
    launchers: Launchers,
    next_look: Instant,
    hang: Option<Hang>,
    /// Questions to other hosts for source lines.
    questions: u64,
    /// The signal that has asked the job to end, and how long ranks may take.
    interrupted: Option<i32>,
    /// From when on another such signal ends the job at once.
    insists_from: Instant,
    patience: Option<Patience>,
    /// When the job has taken too long.
    timeout_at: Option<Instant>,
    /// A rank that has ended without having joined the job, and how long others may wait for it.
    absent: Option<(u32, Patience)>,
    strangers: Strangers,
    /// An MPI library that a rank has missed when it started.
    missing_library: Option<String>,
    /// A cause that takes effect at this time, unless all ranks end before.
    soon: Option<(Cause, Instant)>,
    debugging: Debugging,
    /// Expendable ranks that have died.
    deaths: Vec<Cause>,
    /// The cause that took effect, and when SIGKILL is due (none once it was sent).
    ending: Option<(Cause, Option<Instant>)>,
    drained_at: Option<Instant>,
    oom_before: u64,
    /// When unfinished lines are due.
    lines_due: Option<Instant>,
}

/// A detected hang whose source lines are being looked up.
struct Hang {
    what: watch::Hang,
    places: Receiver<Places>,
    /// What has been found, and the hosts whose answer to the question is missing; this one among them.
    found: Places,
    question: u64,
    awaited: Vec<Option<usize>>,
    deadline: Instant,
    then: Then,
}

/// What follows the report of a hang.
#[derive(Clone, Copy)]
enum Then {
    /// What the user has asked for (`--on-hang`).
    GoOn,
    /// This signal, which the report has held back, is passed on: what it ends cannot be asked any more.
    PassOn(i32),
    /// The end of the job, which has taken longer than this.
    TimeIsOver(Duration),
}

/// Signals that the launcher gets as events, instead of being ended or stopped by them.
const HANDLED: [i32; 11] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGTTIN,
    libc::SIGWINCH,
    libc::SIGXFSZ,
];

/// The signals of [`HANDLED`]; a debugger has the terminal, where the launcher may write all the same.
fn handled(settings: &Settings) -> Vec<i32> {
    HANDLED.into_iter().chain(settings.debugged.as_ref().map(|_| libc::SIGTTOU)).collect()
}

/// What the system refuses to the launcher itself.
fn refused(what: &str, error: &dyn std::fmt::Display) -> Unusable {
    let what = format!("{what}: {error}");
    Unusable { hint: Some(hint_of_refusal(&what, sys::limit)), what }
}

/// Carries out the plan. Returns the exit code.
pub fn launch(plan: &Plan, settings: &Settings) -> Result<u8, Unusable> {
    let guardian = Guardian::start(&settings.config).map_err(|e| refused("cannot start the guardian process", &e))?;
    let appnums = plan.ranks.iter().map(|app| *app as u32).collect();
    let started = plan.ranks.len() as u32;
    let slots = plan.placement.slots.iter().sum();
    let universe = settings.universe.unwrap_or_else(|| if slots == 0 { processors() } else { slots }).max(started);
    let spare = spare_ranks(started, universe);
    let (segment, board) = Board::create(&Shape { appnums, spare, universe, launcher_pid: std::process::id() })
        .map_err(|e| refused("cannot get the memory for a job of this size", &e))?;
    if !plan.placement.hosts.is_empty() {
        // A launcher without ranks of its own is on a host that is not listed.
        let here = plan.placement.here.map_or(u32::MAX, |here| here as u32);
        board.set_hosts(here, &plan.placement.hosts);
    }
    let mut job = Job::new(plan, settings, guardian, segment, board)?;
    // Processes first, threads after: forking a process with one thread is simple and fast.
    let failure = job.prepare_messages().or_else(|| job.start_agents(spare)).or_else(|| job.expect_or_start_ranks());
    job.start_threads().map_err(|e| refused("cannot start a thread", &e))?;
    if let Some(cause) = failure {
        job.end(cause);
    }
    job.announce();
    Ok(job.run())
}

impl<'a> Job<'a> {
    fn new(
        plan: &'a Plan,
        settings: &'a Settings,
        guardian: Guardian,
        segment: OwnedFd,
        board: Board,
    ) -> Result<Job<'a>, Unusable> {
        guardian.job(board.id());
        raise_descriptor_limit(plan.ranks.len());
        let files = settings.output.as_ref().map(|to| RankFiles::create(to, plan.ranks.len())).transpose()?;
        let wake = eventfd(0, WAKE_FLAGS).map_err(|e| refused("cannot make an event descriptor", &e))?;
        let (apps, between) = Between::new(plan, settings);
        Ok(Job {
            plan,
            settings,
            apps,
            segment,
            control: control::listen(board.id()).ok(),
            spawning: Vec::new(),
            tunnels: Vec::new(),
            reached: 0,
            spawns: 0,
            links: Vec::new(),
            between,
            unready: None,
            cards: HashMap::new(),
            news: Vec::new(),
            next_word: Instant::now(),
            next_number: 0,
            names: HashMap::new(),
            board: Arc::new(board),
            guardian: Arc::new(guardian),
            signals: sys::signal_fd(&handled(settings)).map_err(|e| refused("cannot receive signals", &e))?,
            wake: Arc::new(wake),
            ranks: Vec::new(),
            input: Input::new(plan.stdin, settings.debugged.is_some(), |rank| plan.placement.is_elsewhere(rank)),
            route: [0, if streams_are_one() { 0 } else { 1 }],
            sinks: Vec::new(),
            files,
            watch: Watch::new(settings.hang_after, settings.hang_grace),
            launchers: Launchers::default(),
            next_look: Instant::now() + watch::PERIOD,
            hang: None,
            questions: 0,
            interrupted: None,
            insists_from: Instant::now(),
            patience: None,
            timeout_at: settings.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            soon: None,
            debugging: Debugging::new(settings),
            deaths: Vec::new(),
            ending: None,
            absent: None,
            strangers: Strangers::new(Instant::now()),
            missing_library: None,
            drained_at: None,
            oom_before: procfs::oom_kills(),
            lines_due: None,
        })
    }

    fn run(mut self) -> u8 {
        while !self.is_over() {
            self.pass_on_orders();
            let ready = self.sleep();
            self.handle(&ready);
        }
        self.finish()
    }

    fn start_threads(&mut self) -> std::io::Result<()> {
        let size = self.plan.ranks.len();
        for stderr in 0..=self.route[1] {
            let is_stderr = stderr == 1;
            let fd = if is_stderr {
                rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 3)?
            } else {
                rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?
            };
            let wake = self.wake.clone();
            let sink = Sink::new(fd, move || ring(&wake));
            let eager = size == 1 || is_terminal(is_stderr);
            self.sinks.push((Lines::new(size, self.settings.tag_output, eager), sink));
        }
        let prepared = self.between.prepared.take();
        self.between.courier = prepared.map(|prepared| prepared.run(self.wake.clone())).transpose()?;
        let (board, wake) = (self.board.clone(), self.wake.clone());
        std::thread::Builder::new().name("limosa-bell".into()).spawn(move || {
            loop {
                let seen = board.bell();
                ring(&wake);
                board.wait_bell(seen);
            }
        })?;
        Ok(())
    }

    /// Sleeps until something is ready or due.
    fn sleep(&mut self) -> Vec<Ready> {
        let now = Instant::now();
        let timeout = self.next_deadline().map(|at| at.saturating_duration_since(now));
        let timeout = timeout.map(|t| Timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() });
        let stdin = std::io::stdin();
        let (what, mut fds): (Vec<Ready>, Vec<PollFd>) = self.waited_for(&stdin).into_iter().unzip();
        // An interrupted sleep is a sleep that ended early.
        let _ = rustix::event::poll(&mut fds, timeout.as_ref());
        let mut ready: Vec<Ready> =
            fds.iter().zip(what).filter(|(fd, _)| !fd.revents().is_empty()).map(|(_, what)| what).collect();
        ready.sort();
        ready.dedup();
        ready
    }

    /// What may become ready, and by which descriptor that is seen.
    fn waited_for<'s>(&'s self, stdin: &'s std::io::Stdin) -> Vec<(Ready, PollFd<'s>)> {
        let mut what = vec![Ready::Signal, Ready::Wake];
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN), PollFd::new(&*self.wake, PollFlags::IN)];
        for (i, rank) in self.ranks.iter().enumerate() {
            for (k, stream) in rank.streams.iter().enumerate() {
                if let Some(fd) = stream.as_ref().filter(|_| !self.sinks[self.route[k]].1.is_full()) {
                    what.push(Ready::Stream(i, k));
                    fds.push(PollFd::new(fd, PollFlags::IN));
                }
            }
            if let Some(end) = rank.end.as_ref().filter(|_| rank.ended.is_none()) {
                what.push(Ready::End(i));
                fds.push(PollFd::new(end, PollFlags::IN));
            }
            if let Some((_, fd)) = &rank.inner {
                what.push(Ready::Inner(i));
                fds.push(PollFd::new(fd, PollFlags::IN));
            }
        }
        if let Some(control) = &self.control {
            what.push(Ready::Control);
            fds.push(PollFd::new(control, PollFlags::IN));
        }
        for spawning in &self.spawning {
            if let Asker::Here(stream) = &spawning.asker {
                what.push(Ready::Spawning(spawning.number));
                fds.push(PollFd::new(stream, PollFlags::IN));
            }
        }
        for tunnel in &self.tunnels {
            for (end, stream) in tunnel.streams() {
                what.push(Ready::Tunnel(tunnel.number, end));
                fds.push(PollFd::new(stream, PollFlags::IN));
            }
        }
        for (host, link) in self.links.iter().enumerate().filter_map(|(host, link)| Some((host, link.as_ref()?))) {
            for fd in link.descriptors() {
                what.push(Ready::Host(host));
                fds.push(fd);
            }
        }
        if self.unready.is_none() && self.input.wants_read() {
            what.push(Ready::InputSource);
            fds.push(PollFd::new(stdin, PollFlags::IN));
        }
        for fd in self.input.waiting() {
            what.push(Ready::InputPipe);
            fds.push(fd);
        }
        what.into_iter().zip(fds).collect()
    }

    fn handle(&mut self, ready: &[Ready]) {
        for what in ready {
            match *what {
                Ready::Signal => {
                    while let Some((signal, is_of_terminal)) = sys::next_signal(self.signals.as_fd()) {
                        if !self.is_for_debugger(signal, is_of_terminal) {
                            self.on_signal(signal);
                        }
                    }
                }
                Ready::Wake => self.on_wake(),
                Ready::Stream(rank, kind) => self.read_stream(rank, kind),
                Ready::Inner(rank) => {
                    if let Some((pid, _)) = self.ranks[rank].inner.take() {
                        self.on_inner_end(rank, pid);
                    }
                }
                Ready::End(rank) => self.on_end(rank),
                Ready::InputSource => self.read_input(),
                Ready::InputPipe => self.input.write(),
                Ready::Control => self.on_control(),
                Ready::Spawning(number) => self.on_spawner(number),
                Ready::Tunnel(number, end) => self.on_tunnel(number, end),
                Ready::Host(host) => self.on_host(host),
            }
        }
        self.on_time(Instant::now());
    }

    /// What is due by now.
    fn on_time(&mut self, now: Instant) {
        if self.ending.is_none()
            && self.running() > 0
            && let Some((cause, _)) = self.soon.take_if(|(_, at)| *at <= now)
        {
            self.end(cause);
        }
        if let Some((_, kill)) = &mut self.ending
            && kill.is_some_and(|at| at <= now)
        {
            *kill = None;
            self.kill_everything();
        }
        self.keep_in_touch(now);
        self.lose_patience(now);
        self.end_at_timeout(now);
        self.end_if_absent_rank_is_awaited(now);
        self.look_for_strangers(now);
        self.tell_of_ended_ranks(now);
        if self.is_watching() && self.next_look <= now {
            self.next_look = now + watch::PERIOD;
            self.look();
        }
        self.report_hang(now);
        self.lines_due = None;
        for k in 0..self.sinks.len() {
            let (lines, sink) = &mut self.sinks[k];
            let mut out = Shown::default();
            let due = lines.tick(now, &mut out);
            sink.write(out);
            self.lines_due = [self.lines_due, due].into_iter().flatten().min();
        }
    }

    fn on_signal(&mut self, signal: i32) {
        match signal {
            libc::SIGTSTP => {
                self.signal_all(libc::SIGSTOP);
                sys::stop_self();
                self.links.iter_mut().flatten().for_each(Link::forgive);
            }
            libc::SIGCONT => self.signal_all(libc::SIGCONT),
            // These only interrupt the sleep: before each sleep it is tested whether the terminal may be read. A file
            // that has become too large is an error of writing.
            libc::SIGTTIN | libc::SIGTTOU | libc::SIGWINCH | libc::SIGXFSZ => {}
            libc::SIGUSR1 | libc::SIGUSR2 => self.signal_all(signal),
            _ if self.interrupted.is_some() && Instant::now() < self.insists_from => {}
            _ if self.interrupted.is_some() => {
                self.end(Cause::Interrupted { signal });
                if let Some((_, kill)) = &mut self.ending {
                    *kill = None;
                }
                self.kill_everything();
            }
            _ => {
                self.interrupted = Some(signal);
                self.insists_from = Instant::now() + SAME_SIGNAL;
                self.report_and_then(Then::PassOn(signal));
            }
        }
    }

    /// The board's bell, a writer, the courier, or the search for source lines.
    fn on_wake(&mut self) {
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&*self.wake, &mut count);
        for index in 0..self.ranks.len() {
            let claimed = self.board.seat(index as u32).pid();
            if let Some(pid) = self.ranks[index].look_for_claim(claimed) {
                self.on_inner_end(index, pid);
            }
        }
        self.pass_on_own_cards();
        self.pass_on_calls();
        self.check_abort();
        self.check_joined();
        match self.sinks.iter().find_map(|(_, sink)| sink.error()) {
            // stderr is closed too: nothing can be reported.
            Some(std::io::ErrorKind::BrokenPipe) => self.end(Cause::OutputClosed),
            Some(kind) => self.end(Cause::OutputFailed(kind.to_string())),
            None => {}
        }
    }

    /// Ends the job if a rank has aborted it. Returns whether nothing else matters any more.
    fn check_abort(&mut self) -> bool {
        let Some(abort) = self.board.aborted() else { return false };
        let rank = abort.rank as usize;
        let cause = Cause::Aborted(abort);
        if self.debugging.has_told(&cause) {
            return false;
        }
        self.look_for_killed(rank);
        if self.ending.is_none() && rank < self.ranks.len() {
            self.drain_rank(rank);
            self.end(cause.clone());
        }
        !self.debugging.has_told(&cause)
    }

    /// If a rank was killed, other ranks may abort or exit because of it: the signal is the cause that counts,
    /// whichever is seen first. `gone`: the rank that has aborted or exited.
    fn look_for_killed(&mut self, gone: usize) {
        let others = self.ranks.iter().enumerate().filter(|(index, rank)| *index != gone && !rank.is_unwanted);
        let mut killed = others.filter_map(|(index, rank)| match rank.ended.or_else(|| rank.poll_end())? {
            Ended::Signal(signal) => Some((index, signal)),
            Ended::Code(_) => None,
        });
        if let Some((index, signal)) = killed.next()
            && self.interrupted.is_none()
        {
            self.drain_rank(index);
            let out_of_memory = procfs::oom_kills() > self.oom_before;
            self.end(Cause::Signal { rank: index as u32, signal, out_of_memory });
        }
    }

    fn on_end(&mut self, index: usize) {
        if let Some(ended) = self.ranks[index].poll_end() {
            // What the rank said last comes before what we say about its end.
            self.ranks[index].ended = Some(ended);
            self.drain_rank(index);
            self.rank_ended(index, ended, procfs::oom_kills() > self.oom_before);
        }
    }

    /// A rank has ended, here or elsewhere.
    fn rank_ended(&mut self, index: usize, ended: Ended, out_of_memory: bool) {
        self.ranks[index].ended = Some(ended);
        let rank = index as u32;
        self.input.forget(rank);
        let (state, app) = (self.board.view(rank).state, self.ranks[index].app.clone());
        self.board.seat(rank).set_wait_status(ended.wait_status());
        self.board.seat(rank).exited();
        self.pass_on_end(rank);
        if self.running() == 0 {
            self.drained_at = Some(Instant::now() + DRAIN);
        }
        if self.ended_beside_debugger(rank, ended, state)
            || self.check_abort()
            || self.ending.is_some()
            || self.spawned_ended(index, ended, &app)
        {
            return;
        }
        if self.is_expendable(rank) && state == State::Running && self.interrupted.is_none() {
            return self.go_on_without(rank, ended, out_of_memory);
        }
        match (ended, self.interrupted) {
            (Ended::Code(0), _) if matches!(state, State::Starting | State::Running) => {
                self.soon(Cause::NotFinalized { rank }, UNFINALIZED_GRACE)
            }
            (Ended::Code(0), _) if state == State::Empty && self.absent.is_none() => {
                self.absent = Some((rank, Patience::new(Instant::now(), false)));
            }
            (Ended::Code(0), _) => {}
            (_, Some(signal)) => self.soon(Cause::Interrupted { signal }, ORDERLY_GRACE),
            (Ended::Code(code), None) if state == State::Finalized => {
                self.soon(Cause::Code { rank, code }, ORDERLY_GRACE)
            }
            (Ended::Code(code), None) => {
                self.look_for_killed(index);
                self.end(Cause::Code { rank, code });
            }
            (Ended::Signal(signal), None) => self.end(Cause::Signal { rank, signal, out_of_memory }),
        }
    }

    /// Returns whether the job goes on if this rank dies: the rank has asked for it, and all peers are on this host, so
    /// that they see its death themselves.
    fn is_expendable(&self, rank: u32) -> bool {
        self.links.is_empty() && self.board.seat(rank).is_expendable()
    }

    /// Continues the job after the death of an expendable rank. The library tells its peers; the end of the job names
    /// it.
    fn go_on_without(&mut self, rank: u32, ended: Ended, out_of_memory: bool) {
        let process = &mut self.ranks[rank as usize];
        process.is_unwanted = true;
        // Its children end with it.
        process.signal(libc::SIGKILL);
        self.deaths.push(match ended {
            Ended::Signal(signal) => Cause::Signal { rank, signal, out_of_memory },
            Ended::Code(0) => Cause::NotFinalized { rank },
            Ended::Code(code) => Cause::Code { rank, code },
        });
    }

    /// Process `pid`, which was the rank, has ended, but a wrapper around it may still run.
    fn on_inner_end(&mut self, index: usize, pid: u32) {
        let rank = index as u32;
        if self.check_abort() || self.ranks[index].ended.is_some() || self.ranks[index].is_debugged {
            return;
        }
        let state = self.board.view(rank).state;
        if matches!(state, State::Starting | State::Running) && !self.is_expendable(rank) {
            // The wrapper probably ends now, with an exit code that tells more.
            self.soon(Cause::Vanished { rank, pid }, UNFINALIZED_GRACE);
        }
    }

    /// `cause` takes effect after `grace` if others still run then. The first one counts.
    fn soon(&mut self, cause: Cause, grace: Duration) {
        if self.ending.is_none() && self.soon.is_none() {
            self.soon = Some((cause, Instant::now() + grace));
        }
    }

    /// Ends the job, now, because of `cause`. The first one counts.
    fn end(&mut self, cause: Cause) {
        if self.ending.is_some() || self.waits_for_debugger(&cause) {
            return;
        }
        self.forget_expected();
        let others = self.running();
        if let Some(text) = self.message_for(&cause, others).filter(|_| !self.debugging.has_told(&cause)) {
            self.say(&text);
        }
        self.board.set_ending();
        self.ranks.iter().for_each(Rank::ask_to_end);
        self.order_all(&Order::End);
        self.hang = None;
        self.ending = Some((cause, Some(Instant::now() + TERM_TO_KILL)));
        if others == 0 {
            self.drained_at.get_or_insert(Instant::now() + DRAIN);
        }
    }

    fn message_for(&self, cause: &Cause, running: usize) -> Option<String> {
        let who = cause.rank().and_then(|rank| {
            let process = self.ranks.get(rank as usize)?;
            let app = &process.app;
            // A script's name says more than its interpreter's.
            let script =
                app.args.iter().find(|arg| is_script(&arg.to_string_lossy())).filter(|_| is_python(&app.program));
            let program = script.unwrap_or(&app.name).to_string_lossy().into_owned();
            let host = cause.rank().map(|rank| self.board.seat(rank).host_name()).filter(|name| !name.is_empty());
            Some(Who { pid: process.pid, program, host, is_python: is_python(&app.program) })
        });
        // The rank that caused the end may still run (it aborts, for example); it is not one of the others.
        let blamed_runs =
            cause.rank().is_some_and(|rank| self.ranks.get(rank as usize).is_some_and(|r| r.ended.is_none()));
        let text = cause.message(who.as_ref(), self.ranks.len(), running - usize::from(blamed_runs && running > 0));
        match &self.missing_library {
            Some(library) if matches!(cause, Cause::Code { .. }) => {
                Some(text.unwrap_or_default() + &strangers::text_of_missing(library))
            }
            _ => text,
        }
    }

    fn running(&self) -> usize {
        self.ranks.iter().filter(|rank| rank.ended.is_none()).count()
    }

    fn signal_all(&mut self, signal: i32) {
        self.ranks.iter().for_each(|rank| rank.signal(signal));
        self.order_all(&Order::Signal(signal));
    }

    /// SIGKILL for all process groups and for all other processes that carry the job's id.
    fn kill_everything(&mut self) {
        self.ranks.iter().for_each(|rank| rank.signal(libc::SIGKILL));
        self.order_all(&Order::Kill);
        self.give_up_logins();
        guardian::sweep(self.board.id());
    }

    /// True when all ranks have ended and their output has been written.
    fn is_over(&self) -> bool {
        let drained = self.ranks.iter().all(Rank::is_silent);
        self.running() == 0 && (drained || self.drained_at.is_none_or(|at| at <= Instant::now()))
    }

    /// Cleans up and returns the exit code.
    fn finish(mut self) -> u8 {
        // Whatever ranks have left running ends with the job, also in sessions of its own.
        self.kill_everything();
        self.dismiss_agents();
        for index in 0..self.ranks.len() {
            self.drain_rank(index);
            (0..2).for_each(|kind| self.end_stream(index, kind));
            self.ranks[index].reap();
        }
        let are_strangers = self.report_strangers();
        for death in std::mem::take(&mut self.deaths) {
            if let Some(text) = self.message_for(&death, 0) {
                self.say(&as_warning(&text));
            }
        }
        let code = match (&self.ending, self.soon.take()) {
            (Some((cause, _)), _) => cause.code(),
            // All ranks ended before the cause took effect. That none has finalized is reported, but it is not a
            // failure.
            (None, Some((cause @ (Cause::NotFinalized { .. } | Cause::Vanished { .. }), _))) => {
                if self.ranks.len() > 1
                    && let Some(text) = self.message_for(&cause, 0)
                {
                    self.say(&as_warning(&text));
                }
                0
            }
            (None, Some((cause, _))) => {
                if let Some(text) = self.message_for(&cause, 0) {
                    self.say(&text);
                }
                cause.code()
            }
            (None, None) if are_strangers => exit::FAILED,
            (None, None) => 0,
        };
        let code = self.finish_output(code);
        self.between.courier = None;
        self.settings.config.delete_messages(self.board.id());
        self.debugging.give_terminal_back();
        self.guardian.dismiss();
        code
    }

    /// Waits until all output is written. Returns the launcher's exit code: `code`, or that of lost output if `code` is
    /// success. A reader that closed its pipe early is no error.
    fn finish_output(&mut self, code: u8) -> u8 {
        let errors: Vec<_> = self.sinks.drain(..).filter_map(|(_, sink)| sink.finish()).collect();
        let lost = errors.into_iter().find(|kind| *kind != std::io::ErrorKind::BrokenPipe);
        let Some(kind) = lost.filter(|_| code == 0) else { return code };
        let cause = Cause::OutputFailed(kind.to_string());
        if let Some(text) = self.message_for(&cause, 0) {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        }
        cause.code()
    }
}

fn is_stdin_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdin())
}

fn ring(wake: &OwnedFd) {
    let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
}

fn is_script(word: &str) -> bool {
    [".py", ".m"].iter().any(|end| word.ends_with(end))
}

fn as_warning(text: &str) -> String {
    text.replacen("limosa: ", "limosa: warning: ", 1)
}

fn counted(ranks: usize) -> String {
    if ranks == 1 { "1 rank".into() } else { format!("{ranks} ranks") }
}
