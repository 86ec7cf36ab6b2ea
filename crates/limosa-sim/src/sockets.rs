//! A device over socket pairs between processes, or between engines of one process: slow and simple. Unlike the others
//! it has a descriptor to wait for, and it notices by itself that a peer is gone.
//!
//! A packet is one message of a socket: kind, two words, data.

use limosa_device::{Address, Data, Device, DeviceError, Meta, Sent, Urgency};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const MAX_DATA: usize = 16 * 1024;
const HEADER: usize = 17;
/// Packets taken from one socket in a poll.
const BURST: usize = 8;

/// The device of one process.
pub struct SocketDevice {
    /// By address; none to itself and to the dead.
    sockets: Vec<Option<Socket>>,
    epoll: OwnedFd,
    buffer: Box<[u8]>,
}

struct Socket {
    fd: OwnedFd,
    wants_room: bool,
}

impl SocketDevice {
    /// The devices of `size` processes that are connected with one another.
    ///
    /// # Errors
    /// The operating system's.
    pub fn connect(size: u32) -> io::Result<Vec<SocketDevice>> {
        let size = size as usize;
        let mut fds: Vec<Vec<Option<OwnedFd>>> = (0..size).map(|_| (0..size).map(|_| None).collect()).collect();
        for (a, b) in (0..size).flat_map(|a| (0..a).map(move |b| (a, b))) {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            (fds[a][b], fds[b][a]) = (Some(near), Some(far));
        }
        fds.into_iter().map(SocketDevice::new).collect()
    }

    fn new(fds: Vec<Option<OwnedFd>>) -> io::Result<SocketDevice> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for fd in fds.iter().flatten() {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let sockets = fds.into_iter().map(|fd| fd.map(|fd| Socket { fd, wants_room: false })).collect();
        Ok(SocketDevice { sockets, epoll, buffer: vec![0; HEADER + MAX_DATA].into() })
    }

    /// Sends bytes that need not be a packet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn send_raw(&self, to: Address, bytes: &[u8]) -> io::Result<()> {
        let socket = self.sockets[to as usize].as_ref().ok_or(io::ErrorKind::NotConnected)?;
        send(&socket.fd, bytes, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn watch(&mut self, peer: usize, wants_room: bool) {
        let Some(socket) = self.sockets[peer].as_mut().filter(|socket| socket.wants_room != wants_room) else { return };
        socket.wants_room = wants_room;
        let flags = if wants_room { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        epoll::modify(&self.epoll, &socket.fd, epoll::EventData::new_u64(0), flags).expect("a socket that is watched");
    }

    /// Who wanted room and sees now that there is some need not be woken for it.
    fn see_room(&mut self, peer: usize) {
        let has_room = self.sockets[peer].as_ref().is_some_and(|socket| {
            let mut watched = [PollFd::new(&socket.fd, PollFlags::OUT)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            socket.wants_room && poll(&mut watched, Some(&at_once)).is_ok_and(|ready| ready > 0)
        });
        if has_room {
            self.watch(peer, false);
        }
    }

    /// The next packet of a peer: its length, or `None` if there is none.
    fn take(&mut self, peer: usize) -> Result<Option<usize>, DeviceError> {
        loop {
            let Some(socket) = &self.sockets[peer] else { return Ok(None) };
            match recv(&socket.fd, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => {
                    self.sockets[peer] = None;
                    return Err(DeviceError::Died { peer: peer as Address, what: "its socket is closed" });
                }
                Ok((len, _)) if len < HEADER => {
                    return Err(DeviceError::Corrupt { peer: peer as Address, what: "a packet without a head" });
                }
                Ok((len, _)) => return Ok(Some(len)),
                // The peer has closed its socket without having read all. What it has sent follows, and then the end.
                Err(Errno::CONNRESET | Errno::INTR) => {}
                Err(_) => return Ok(None),
            }
        }
    }
}

impl Device for SocketDevice {
    fn name(&self) -> &'static str {
        "sockets"
    }

    fn max_data(&self) -> usize {
        MAX_DATA
    }

    fn send(&mut self, to: Address, meta: &Meta, mut data: Data<'_>, _urgency: Urgency) -> Result<Sent, DeviceError> {
        let died = DeviceError::Died { peer: to, what: "its socket is closed" };
        let Some(socket) = &self.sockets[to as usize] else { return Err(died) };
        let packet = &mut self.buffer[..HEADER + data.len()];
        packet[0] = meta.kind;
        packet[1..9].copy_from_slice(&meta.words[0].to_ne_bytes());
        packet[9..HEADER].copy_from_slice(&meta.words[1].to_ne_bytes());
        data.write(&mut packet[HEADER..]);
        loop {
            match send(&socket.fd, packet, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(Sent::Done),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(died),
                Err(_) => return Ok(Sent::NoRoom),
            }
        }
    }

    fn want_room(&mut self, to: Address) {
        self.watch(to as usize, true);
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        let mut any = false;
        for peer in 0..self.sockets.len() {
            self.see_room(peer);
            for _ in 0..BURST {
                let Some(len) = self.take(peer)? else { break };
                any = true;
                let word = |at: usize| u64::from_ne_bytes(self.buffer[at..at + 8].try_into().expect("eight bytes"));
                let meta = Meta { kind: self.buffer[0], words: [word(1), word(9)] };
                sink(peer as Address, &meta, &self.buffer[HEADER..len]);
            }
        }
        Ok(any)
    }

    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.sockets[peer as usize].is_some()
    }
}
