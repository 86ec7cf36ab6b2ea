//! The courier of this host ([`limosa_device::files::courier`]) in a thread of launcher or agent, and its connections.
//!
//! Two hosts have one connection, which is made when one of them has files for its partner. The first host of the two
//! makes it: it runs `limosa courier` on the other one by ssh. If the second one has files first, its launcher or agent
//! asks for the connection through the head ([`Running::requests`]). `limosa courier` is a [`door`] to the courier of
//! the job there.
//!
//! A connection that ends is made again. After `LIMOSA_HOST_LIMIT` without one the ranks are told, or when a login has
//! taken longer than it may (`LIMOSA_LOGIN_LIMIT`). The host that is called cannot tell these apart, and waits for the
//! longer time.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use limosa_device::files::courier::{Courier, make_place};
use limosa_device::files::map::Place;
use limosa_device::files::{Folders, Notify};
use limosa_job::config::{Config, DeviceChoice, FileNotify};
use limosa_job::{Board, HostPlan};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};

use super::door;
use super::login::own_command;
use crate::message::say;
use crate::{exit, sys};

/// Longest sleep.
const LONGEST: Duration = Duration::from_secs(30);
/// A host that is to be called from elsewhere may be so much longer without.
const CALLED_LATER: Duration = Duration::from_secs(5);
/// How long a door waits for the courier, whose agent may be logging in; it ends when the caller hangs up.
const DOOR_WAITS: Duration = Duration::from_secs(600);
/// Pause before the next call: the first, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// The running courier of a host. It ends when this is dropped.
pub struct Running {
    stop: Arc<OwnedFd>,
    is_patient: Arc<AtomicBool>,
    is_carrying: Arc<AtomicBool>,
    inbox: Arc<Inbox>,
    /// Hosts that are to connect to this one.
    requests: Arc<Mutex<Vec<usize>>>,
    thread: Option<JoinHandle<()>>,
}

/// What a courier is told while it runs.
enum Word {
    /// A host has this process, too, which is started later.
    Add(usize, u32),
    /// A host has files for this one.
    Call(usize),
}

/// Words for a courier.
struct Inbox {
    folders: Folders,
    /// How many processes the job has room for.
    room: u32,
    words: Mutex<Vec<Word>>,
    /// Readable if there are any.
    wake: OwnedFd,
}

impl Inbox {
    fn put(&self, words: impl IntoIterator<Item = Word>) -> io::Result<()> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).extend(words);
        rustix::io::write(&self.wake, &1u64.to_ne_bytes()).map(drop).map_err(io::Error::from)
    }

    fn take(&self) -> Vec<Word> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Running {
    /// Has the courier carry messages of processes that are about to be started, from this one on, on these hosts.
    ///
    /// # Errors
    /// The operating system's.
    pub fn add(&self, first: u32, hosts: &[u32]) -> io::Result<()> {
        let Inbox { folders, room, .. } = &*self.inbox;
        let added = || hosts.iter().map(|host| *host as usize).zip(first..);
        added().try_for_each(|(_, rank)| make_place(folders, rank, *room))?;
        self.inbox.put(added().map(|(host, rank)| Word::Add(host, rank)))
    }

    /// Connects to a host, which has files for this one.
    pub fn call(&self, host: usize) {
        let _ = self.inbox.put([Word::Call(host)]);
    }

    /// The hosts, since the last call, that are to connect to this one, which has files for them.
    pub fn requests(&self) -> Vec<usize> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The ranks of this host are stopped, and other hosts perhaps too: no connection counts as broken now.
    pub fn set_patient(&self, is_patient: bool) {
        self.is_patient.store(is_patient, Ordering::Relaxed);
    }

    /// Whether messages of this host are under way to others.
    pub fn is_carrying(&self) -> bool {
        self.is_carrying.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A courier that does not run yet: its folders are there.
pub struct Prepared {
    courier: Courier,
    calls: Vec<Call>,
    /// That a stranger has called was said.
    has_complained: bool,
    here: usize,
    listener: UnixListener,
    id: u64,
    ssh: String,
    login_limit: Duration,
    /// How long a host may be without connection while calls of it fail.
    host_limit: Duration,
    stop: Arc<OwnedFd>,
    is_patient: Arc<AtomicBool>,
    is_carrying: Arc<AtomicBool>,
    inbox: Arc<Inbox>,
    /// Hosts that are to connect to this one.
    requests: Arc<Mutex<Vec<usize>>>,
}

/// What is known about the connection to a host.
struct Call {
    name: String,
    /// There are files for the other host, or from it: they are to be connected.
    is_wanted: bool,
    /// ssh, if this host calls.
    child: Option<Child>,
    /// Tells a door that it may end, if this host is called.
    door: Option<UnixStream>,
    /// Why the last connection has ended.
    trouble: String,
    /// Since when there is no connection.
    without: Option<Instant>,
    next: Instant,
    pause: Duration,
    is_given_up: bool,
}

impl Call {
    /// Whether there is a connection, or is to be one.
    fn is_open(&self) -> bool {
        self.is_wanted && !self.is_given_up
    }
}

/// Makes ready what the ranks of host `here` need before they start, if each host has a folder of its own for messages.
///
/// # Errors
/// The folder, and the operating system's error.
pub fn prepare(config: &Config, board: &Board, hosts: &[HostPlan], here: usize) -> io::Result<Option<Prepared>> {
    let DeviceChoice::LocalFiles(folder) = &config.device else { return Ok(None) };
    let Some(messages) = config.device.message_folder(board.id()) else { return Ok(None) };
    let notify = match config.file_notify {
        FileNotify::Auto => Notify::Auto,
        FileNotify::Inotify => Notify::Inotify,
        FileNotify::Clock => Notify::Clock,
    };
    let places: Vec<Place> = hosts.iter().map(|host| Place::new(&host.name, host.ranks.clone())).collect();
    let (folders, room) = (Folders::below(&messages), board.capacity());
    let courier = Courier::new(&folders, &places, here, room, notify).map_err(|error| {
        let folder = folder.display();
        io::Error::other(match error.kind() {
            io::ErrorKind::AlreadyExists => format!(
                "two hosts share the folder {folder}: give --device file:{folder}, or file:local:FOLDER with one that \
                 each host has for itself"
            ),
            _ => format!("the folder {folder} for the files of messages cannot be used: {error}"),
        })
    })?;
    let now = Instant::now();
    let call = |host: &HostPlan| Call {
        name: host.name.clone(),
        is_wanted: false,
        child: None,
        door: None,
        trouble: String::from("there was no call from it"),
        without: None,
        next: now,
        pause: PAUSES[0],
        is_given_up: false,
    };
    let listener = UnixListener::bind_addr(&address(board.id())?)?;
    listener.set_nonblocking(true)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    Ok(Some(Prepared {
        courier,
        calls: hosts.iter().map(call).collect(),
        has_complained: false,
        here,
        listener,
        id: board.id(),
        ssh: config.ssh.clone(),
        login_limit: config.login_limit,
        host_limit: config.host_limit,
        stop: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
        is_patient: Arc::default(),
        is_carrying: Arc::default(),
        inbox: Arc::new(Inbox { folders, room, words: Mutex::default(), wake }),
        requests: Arc::default(),
    }))
}

fn address(id: u64) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("limosa-courier-{id:016x}"))
}

impl Prepared {
    /// Starts the thread. It adds to this event counter when there are [`Running::requests`].
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(mut self, asks: Arc<OwnedFd>) -> io::Result<Running> {
        let (stop, is_patient, is_carrying) = (self.stop.clone(), self.is_patient.clone(), self.is_carrying.clone());
        let (inbox, requests) = (self.inbox.clone(), self.requests.clone());
        let thread = std::thread::Builder::new().name("limosa-courier".into()).spawn(move || {
            while !self.step(&asks) {}
            (0..self.calls.len()).for_each(|host| drop(self.hang_up(host)));
        })?;
        Ok(Running { stop, is_patient, is_carrying, inbox, requests, thread: Some(thread) })
    }

    /// Sleeps until there is something to do, and does it; true if the courier is to end.
    fn step(&mut self, asks: &OwnedFd) -> bool {
        let now = Instant::now();
        if self.is_patient.load(Ordering::Relaxed) {
            self.courier.forgive();
            self.calls.iter_mut().for_each(|call| call.without = call.without.map(|_| now));
        }
        if self.sleep(now) {
            return true;
        }
        while let Ok((door, _)) = self.listener.accept() {
            if let Err(error) = self.be_called(door)
                && !std::mem::replace(&mut self.has_complained, true)
            {
                say(&format!("warning: the courier of this host was called by a stranger: {error}"), None);
            }
        }
        // Before anything of theirs can come.
        for word in self.inbox.take() {
            match word {
                Word::Add(host, rank) => self.add(host, rank),
                Word::Call(host) if host < self.calls.len() => self.calls[host].is_wanted = true,
                Word::Call(_) => {}
            }
        }
        for (host, why) in self.courier.work() {
            self.lose(host, &why);
        }
        self.want(asks);
        let (here, now) = (self.here, Instant::now());
        (0..self.calls.len()).filter(|host| *host != here).for_each(|host| self.see_to(host, now));
        let mut others = (0..self.calls.len()).filter(|host| *host != here && self.calls[*host].is_open());
        let is_carrying = others.any(|host| self.courier.is_carrying(host));
        self.is_carrying.store(is_carrying, Ordering::Relaxed);
        false
    }

    fn add(&mut self, host: usize, rank: u32) {
        if let Err(error) = self.courier.add(host, rank) {
            let what = format!("warning: no messages to the new rank {rank} can be carried from this host: {error}");
            say(&what, None);
        }
    }

    /// Notes for which hosts there are files, and asks those of them to call that this one does not call.
    fn want(&mut self, asks: &OwnedFd) {
        for host in self.courier.take_wanted() {
            if !std::mem::replace(&mut self.calls[host].is_wanted, true) && host < self.here {
                self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(host);
                let _ = rustix::io::write(asks, &1u64.to_ne_bytes());
            }
        }
    }

    /// True if this courier was told to end.
    fn sleep(&self, now: Instant) -> bool {
        let is_waiting = |call: &&Call| call.without.is_some() && call.is_open();
        let next_call = self.calls.iter().filter(is_waiting).map(|call| call.next.max(now + PAUSES[0]));
        let due = next_call.chain(self.courier.due()).min().unwrap_or(now + LONGEST);
        let time = due.saturating_duration_since(Instant::now());
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let own = [self.stop.as_fd(), self.listener.as_fd(), self.inbox.wake.as_fd()];
        let mut fds: Vec<PollFd<'_>> = own.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        fds.extend(self.courier.descriptors());
        let _ = rustix::event::poll(&mut fds, Some(&time));
        !fds[0].revents().is_empty()
    }

    /// Calls a host that is to be called, and gives one up that cannot be reached.
    fn see_to(&mut self, host: usize, now: Instant) {
        if self.courier.reaches(host) {
            (self.calls[host].without, self.calls[host].pause) = (None, PAUSES[0]);
            return;
        }
        let is_caller = self.here < host;
        let call = &mut self.calls[host];
        let patience = match (is_caller, &call.child) {
            (true, None) => self.host_limit.min(self.login_limit),
            (true, Some(_)) => self.login_limit,
            (false, _) => self.login_limit + CALLED_LATER,
        };
        if !call.is_open() {
            return;
        }
        if now.duration_since(*call.without.get_or_insert(now)) > patience {
            call.is_given_up = true;
            if call.child.is_some() {
                call.trouble = format!("the login has taken longer than {} s", self.login_limit.as_secs_f64());
            }
            let why = std::mem::take(&mut call.trouble);
            self.hang_up(host);
            self.courier.give_up(host, &why);
        } else if is_caller
            && call.child.is_none()
            && now >= call.next
            && let Err(error) = self.call(host)
        {
            self.lose(host, &format!("cannot run ssh: {error}"));
        }
    }

    fn call(&mut self, host: usize) -> io::Result<()> {
        let mut words = self.ssh.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("ssh"));
        let door = own_command(&format!("courier {:016x} {}", self.id, self.here))?;
        command.args(words).arg(&self.calls[host].name).arg(door);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let own = std::process::id();
        // SAFETY: the closure makes async-signal-safe system calls only.
        unsafe { command.pre_exec(move || sys::end_with(own)) };
        let mut child = command.spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        self.calls[host].child = Some(child);
        let (Some(to), Some(from)) = (to, from) else { return Err(io::Error::other("no pipes to ssh")) };
        self.courier.connect(host, from.into(), to.into(), true)
    }

    /// A door brings the descriptors of a connection.
    fn be_called(&mut self, door: UnixStream) -> io::Result<()> {
        let (host, from, to) = door::take_connection(&door, PAUSES[1])?;
        let host = host as usize;
        if host >= self.here {
            return Err(io::Error::other(format!("host {host} does not call this one")));
        }
        self.hang_up(host);
        self.calls[host].is_wanted = true;
        self.calls[host].door = Some(door);
        self.courier.connect(host, from, to, false)
    }

    /// The connection to a host is broken.
    fn lose(&mut self, host: usize, why: &str) {
        let said = self.hang_up(host).unwrap_or_else(|| why.to_owned());
        let call = &mut self.calls[host];
        let now = Instant::now();
        call.without.get_or_insert(now);
        call.next = now + call.pause;
        call.pause = (call.pause * 2).min(PAUSES[1]);
        call.trouble = said;
    }

    /// Ends what there is of a connection. Gives what ssh has said last.
    fn hang_up(&mut self, host: usize) -> Option<String> {
        let call = &mut self.calls[host];
        call.door = None;
        let mut child = call.child.take()?;
        sys::signal_group(child.id(), libc::SIGKILL);
        let _ = child.wait();
        let mut said = Vec::new();
        let mut errors = child.stderr.take()?;
        // Processes left of its group may hold the pipe open.
        rustix::io::ioctl_fionbio(&errors, true).ok()?;
        let _ = errors.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said).into_owned();
        said.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// Runs `limosa courier ID HOST`: brings the connection over which it was called to the courier of this host.
pub fn door(id: &str, host: u32) -> ExitCode {
    match door::job_of(id).and_then(address).and_then(|address| door::bring(&address, host, DOOR_WAITS)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("no courier of job {id} is on this host: {error}"), None);
            ExitCode::from(exit::FAILED)
        }
    }
}
