//! Whether the address of a peer can be reached at all.
//!
//! libfabric's providers for TCP try for ever to connect: an interface whose network does not lead to the other host,
//! or a firewall, looks like a peer that is busy. So a peer to which no connection comes about is tested by a TCP
//! connection to the same address and port. The kernel of the peer's host accepts it whatever the peer does. If none
//! can be made for a limited time, the peer is given up, and the reason names address and interface.

use crate::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A connection may take so long before it is tested.
const UNTESTED: Duration = Duration::from_secs(1);
/// Time of one attempt to connect, and between two attempts that fail at once.
const ATTEMPT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(500);

/// The state of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// A connection was made.
    Open,
    /// No connection could be made for too long; the last attempt has failed so, or has had no answer.
    Closed(Option<Errno>),
}

/// The test of a peer to which there is no connection yet.
pub struct Trial {
    pub peer: Address,
    pub to: SocketAddr,
    begun: Instant,
    attempt: Option<(OwnedFd, Instant)>,
    next: Instant,
    error: Option<Errno>,
}

impl Trial {
    /// Begins the test of a peer at this address.
    pub fn new(peer: Address, to: SocketAddr) -> Trial {
        let now = Instant::now();
        Trial { peer, to, begun: now, attempt: None, next: now + UNTESTED, error: None }
    }

    /// Returns the state of the trial. `limit`: time after which no answer is a failure.
    pub fn look(&mut self, now: Instant, limit: Duration) -> Found {
        if let Some((socket, since)) = &self.attempt {
            match state_of(socket) {
                Some(Ok(())) => return Found::Open,
                Some(Err(error)) => self.fail(Some(error), now + PAUSE),
                None if now.duration_since(*since) > ATTEMPT => self.fail(None, now),
                None => {}
            }
        } else if now >= self.next {
            match attempt(self.to) {
                Ok(socket) => self.attempt = Some((socket, now)),
                Err(error) => self.fail(Some(error), now + PAUSE),
            }
        }
        if now.duration_since(self.begun) > limit { Found::Closed(self.error) } else { Found::Nothing }
    }

    fn fail(&mut self, error: Option<Errno>, next: Instant) {
        (self.attempt, self.error, self.next) = (None, error, next);
    }
}

/// Begins to connect.
fn attempt(to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Whether a socket has connected; `None` as long as it has not, and may.
fn state_of(socket: &OwnedFd) -> Option<Result<(), Errno>> {
    let mut fds = [PollFd::new(socket, PollFlags::OUT)];
    match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(1) => Some(sockopt::socket_error(socket).and_then(|result| result)),
        _ => None,
    }
}

/// The address that a structure of the system's (`sockaddr_in`, `sockaddr_in6`) holds.
pub fn internet(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => Some((Ipv4Addr::from(*rest.first_chunk::<4>()?), port).into()),
        libc::AF_INET6 => {
            let (address, scope) = rest.get(4..)?.split_first_chunk::<16>()?;
            let scope = u32::from_ne_bytes(*scope.first_chunk()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(*address), port, 0, scope).into())
        }
        _ => None,
    }
}

/// Why a peer at this address is not reached, with the system's error, or after `limit` without an answer.
pub fn reason(to: SocketAddr, interface: &str, error: Option<Errno>, limit: Duration) -> String {
    let why = error.map_or_else(
        || format!("no answer within {} s", limit.as_secs_f64()),
        |error| {
            let text = std::io::Error::from(error).to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        },
    );
    format!(
        "no connection can be made to its address {}, port {}, from the interface {interface} ({why}): a firewall \
         between the hosts refuses connections, or the interface belongs to another network; set \
         LIMOSA_FABRIC_INTERFACE to an interface by which all hosts reach each other",
        to.ip(),
        to.port()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const LIMIT: Duration = Duration::from_secs(20);

    /// What a test finds in the end, of looks at times that go on by `step`.
    fn found(to: SocketAddr, step: Duration) -> Found {
        let mut trial = Trial::new(1, to);
        let mut now = Instant::now();
        loop {
            now += step;
            match trial.look(now, LIMIT) {
                Found::Nothing => std::thread::sleep(Duration::from_millis(1)),
                found => return found,
            }
        }
    }

    #[test]
    fn a_listener_that_takes_no_connections_is_reached_and_a_closed_port_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("its address");
        assert_eq!(found(to, Duration::from_millis(50)), Found::Open);
        drop(listener);
        assert_eq!(found(to, Duration::from_millis(50)), Found::Closed(Some(Errno::CONNREFUSED)));
    }

    #[test]
    fn addresses_are_read_and_what_is_none_is_not() {
        let mut four = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        four.extend([0x1f, 0x90, 10, 0, 2, 15, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(internet(&four), Some("10.0.2.15:8080".parse().expect("an address")));
        let mut six = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        six.extend([0x1f, 0x90, 0, 0, 0, 0]);
        six.extend([0; 15]);
        six.extend([1, 0, 0, 0, 0]);
        assert_eq!(internet(&six), Some("[::1]:8080".parse().expect("an address")));
        for len in 0..8 {
            assert_eq!(internet(&four[..len]), None);
        }
        assert!((0..28).all(|len| internet(&six[..len]).is_none()));
        assert_eq!(internet(&[99; 28]), None);
    }
}
