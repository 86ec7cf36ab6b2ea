//! An agent's end of the connection to its head, and of those that follow when it ends.

use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::exit;
use crate::run::hosts::door;
use crate::run::hosts::link::Signs;
use crate::run::hosts::wire::{self, Order, Report, Start};
use crate::run::stream::Stream;

/// A door brings its connection within this time. A process that connects and brings none delays the agent as much.
const BROUGHT: Duration = Duration::from_millis(200);
/// How long the first order may take.
const FIRST_ORDER: Duration = Duration::from_secs(60);

/// What the head and the agent say to each other.
pub(in crate::run::hosts) struct Head {
    /// The connection; none while the head logs in again.
    from: Option<OwnedFd>,
    to: Option<OwnedFd>,
    /// Takes the next connection, and the door that has brought this one.
    pub(super) listener: Option<UnixListener>,
    door: Option<UnixStream>,
    pub(super) stream: Stream,
    come: Vec<u8>,
    pub(super) signs: Signs,
    /// Nothing more is said.
    pub(super) is_gone: bool,
}

/// Runs `limosa agent --again ID HOST`: brings a new connection to the agent of this host.
pub fn again(id: &str, host: u32) -> ExitCode {
    let address = door::job_of(id).and_then(|id| address_of(id, host));
    match address.and_then(|address| door::bring(&address, host, Duration::ZERO)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => {
            print!("{}", wire::no_agent());
            ExitCode::from(exit::FAILED)
        }
    }
}

/// Where the agent of a host takes connections.
fn address_of(id: u64, host: u32) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("limosa-agent-{id:016x}-{host}"))
}

impl Head {
    /// Takes standard input and output for the connection; other code may not use them.
    pub(super) fn connect() -> std::io::Result<Head> {
        let from = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?;
        let to = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
        let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::io::ioctl_fionbio(&from, true)?;
        rustix::io::ioctl_fionbio(&to, true)?;
        Ok(Head::over(from, to))
    }

    /// Greets the head over this connection.
    pub(in crate::run::hosts) fn over(from: OwnedFd, to: OwnedFd) -> Head {
        let mut head = Head {
            from: None,
            to: None,
            listener: None,
            door: None,
            stream: Stream::default(),
            come: Vec::new(),
            signs: Signs::new(FIRST_ORDER),
            is_gone: false,
        };
        head.greet(from, to);
        head
    }

    fn greet(&mut self, from: OwnedFd, to: OwnedFd) {
        (self.from, self.to) = (Some(from), Some(to));
        self.stream.connect(wire::greeting().as_bytes());
        self.flush();
    }

    /// Expects further connections. Without a socket for them the end of this one is that of the head.
    pub(super) fn listen(&mut self, start: &Start) {
        let bound = address_of(start.id, start.here).and_then(|address| UnixListener::bind_addr(&address));
        self.listener = bound.ok().filter(|listener| listener.set_nonblocking(true).is_ok());
    }

    /// Takes the connection that a door brings. The one before has ended, or is about to.
    pub(super) fn open(&mut self) {
        let Some((door, _)) = self.listener.as_ref().and_then(|listener| listener.accept().ok()) else { return };
        let Ok((_, from, to)) = door::take_connection(&door, BROUGHT) else { return };
        if rustix::io::ioctl_fionbio(&from, true).is_ok() && rustix::io::ioctl_fionbio(&to, true).is_ok() {
            self.door = Some(door);
            self.greet(from, to);
        }
    }

    /// Says that this agent ends.
    pub(super) fn farewell(&mut self) {
        if let Some(to) = &self.to {
            self.stream.end(to);
        }
    }

    #[cfg(test)]
    pub(in crate::run::hosts) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The next order that has come; none after one that makes no sense, which ends the connection.
    pub(in crate::run::hosts) fn next_order(&mut self) -> Option<Order> {
        let order = wire::take(&mut self.come).and_then(|fields| fields.map(Order::read).transpose());
        order.unwrap_or_else(|_| {
            self.is_gone = true;
            None
        })
    }

    /// Waits for the first order; `None` if none comes.
    pub(super) fn start(&mut self) -> std::io::Result<Option<Start>> {
        let begin = Instant::now();
        while !self.is_gone && begin.elapsed() < FIRST_ORDER {
            let mut fds: Vec<PollFd<'_>> = self.descriptors().collect();
            let _ = rustix::event::poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
            self.flush();
            self.read();
            if let Some(fields) = wire::take(&mut self.come)? {
                let Order::Start(start) = Order::read(fields)? else { return Ok(None) };
                return Ok(Some(*start));
            }
        }
        Ok(None)
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = PollFd<'_>> {
        let to = self.to.as_ref().filter(|_| self.stream.has_frames()).map(|to| PollFd::new(to, PollFlags::OUT));
        self.from.iter().map(|from| PollFd::new(from, PollFlags::IN)).chain(to)
    }

    pub(in crate::run::hosts) fn send(&mut self, report: &Report) {
        self.stream.push(&report.bytes());
    }

    pub(in crate::run::hosts) fn flush(&mut self) {
        if let Some(to) = &self.to
            && self.stream.write(to).is_err()
        {
            // What the head has said last may still come.
            self.to = None;
        }
    }

    pub(in crate::run::hosts) fn read(&mut self) {
        let Some(from) = &self.from else { return };
        let mut chunk = vec![0u8; 1 << 16];
        match rustix::io::read(from, &mut chunk) {
            Ok(n) if n > 0 => {
                self.signs.heard();
                self.is_gone |= self.stream.take(&chunk[..n], &mut self.come).unwrap_or(true);
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) | Err(_) => {
                (self.from, self.to, self.door) = (None, None, None);
                self.is_gone |= self.listener.is_none();
            }
        }
    }
}
