//! The device between processes that share no memory file, such as those of two jobs: sockets of one host.
//!
//! A packet is one message of a socket (`SOCK_SEQPACKET`): kind, two words, data. A process has one device for all of
//! them, whose peers come and go while it runs ([`Sockets`]). It has a descriptor to wait for, and notices by itself
//! that a peer is gone:
//! - a peer that parts says so ([`BYE`]), and is not missed, but answers nothing any more;
//! - a socket that ends without that is one whose process has died.
//!
//! Two processes may make two connections at once when their threads meet each other in two ways. So an address may
//! have several sockets: packets are taken from all, and sent through the oldest one that is open. That keeps their
//! order.

use crate::{Address, Data, Device, DeviceError, Meta, Sent, Urgency};
use limosa_base::sync::Mutex;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

const MAX_DATA: usize = 16 * 1024;
const HEADER: usize = 17;
/// Packets taken from one socket in a poll.
const BURST: usize = 8;
/// Sockets looked at in a poll.
const EVENTS: usize = 32;
/// The last message of a process that parts.
const BYE: &[u8] = b"bye";
const GONE: &str = "it belongs to another job, and has ended";

/// The device of one process.
pub struct SocketDevice {
    sockets: Arc<Sockets>,
    epoll: OwnedFd,
}

/// The sockets of a device, to be added and taken away by any thread.
pub struct Sockets {
    epoll: OwnedFd,
    state: Mutex<State>,
}

struct State {
    /// By address, the oldest first.
    of: Vec<Vec<Socket>>,
    buffer: Box<[u8]>,
    /// Every socket has a number of its own.
    next: u32,
}

struct Socket {
    fd: OwnedFd,
    number: u32,
    wants_room: bool,
    has_parted: bool,
}

/// Result of a poll of a socket.
enum Taken {
    Packet(usize),
    Nothing,
    /// The socket has ended, after a word of parting or without one.
    End {
        has_parted: bool,
    },
}

fn key(address: Address, number: u32) -> epoll::EventData {
    epoll::EventData::new_u64(u64::from(address) << 32 | u64::from(number))
}

impl Sockets {
    /// Adds a connected socket to the peer at `address`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn put(&self, address: Address, socket: OwnedFd) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        let mut state = self.state.lock();
        let number = state.next;
        epoll::add(&self.epoll, &socket, key(address, number), epoll::EventFlags::IN)?;
        state.next = number.wrapping_add(1);
        let places = state.of.len().max(address as usize + 1);
        state.of.resize_with(places, Vec::new);
        state.of[address as usize].push(Socket { fd: socket, number, wants_room: false, has_parted: false });
        Ok(())
    }

    /// Whether packets can be sent to this address.
    pub fn is_open(&self, address: Address) -> bool {
        let state = self.state.lock();
        state.of.get(address as usize).is_some_and(|all| all.iter().any(|socket| !socket.has_parted))
    }

    /// Parts from the peer at this address: nothing is sent to it, or taken from it, any more.
    pub fn part(&self, address: Address) {
        if let Some(all) = self.state.lock().of.get_mut(address as usize) {
            all.drain(..).for_each(|socket| self.end(&socket));
        }
    }

    /// Parts from all.
    pub fn part_from_all(&self) {
        self.state.lock().of.iter_mut().flat_map(|all| all.drain(..)).for_each(|socket| self.end(&socket));
    }

    fn end(&self, socket: &Socket) {
        // A forked child may hold it open too.
        let _ = epoll::delete(&self.epoll, &socket.fd);
        let _ = send(&socket.fd, BYE, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        let _ = shutdown(&socket.fd, Shutdown::Both);
    }

    fn watch(&self, address: Address, socket: &mut Socket, wants_room: bool) {
        if socket.wants_room == wants_room {
            return;
        }
        socket.wants_room = wants_room;
        let flags = if wants_room { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
        // It fails if the program has closed the descriptor: then sends fail too.
        let _ = epoll::modify(&self.epoll, &socket.fd, key(address, socket.number), flags);
    }

    /// Takes what has come on one socket, a bounded number of packets; true if there was something.
    fn take_from(
        &self,
        event: &epoll::Event,
        sink: &mut dyn FnMut(Address, &Meta, &[u8]),
    ) -> Result<bool, DeviceError> {
        let (address, number) = ((event.data.u64() >> 32) as Address, event.data.u64() as u32);
        let mut state = self.state.lock();
        let State { of, buffer, .. } = &mut *state;
        let Some(all) = of.get_mut(address as usize) else { return Ok(false) };
        let Some(at) = all.iter().position(|socket| socket.number == number) else { return Ok(false) };
        let flags = event.flags;
        if flags.contains(epoll::EventFlags::OUT) {
            self.watch(address, &mut all[at], false);
        }
        let mut any = false;
        for _ in 0..BURST {
            match all[at].take(address, buffer)? {
                Taken::Nothing => break,
                Taken::Packet(len) => {
                    any = true;
                    let word = |at: usize| u64::from_ne_bytes(buffer[at..at + 8].try_into().expect("eight bytes"));
                    let meta = Meta { kind: buffer[0], words: [word(1), word(9)] };
                    sink(address, &meta, &buffer[HEADER..len]);
                }
                Taken::End { has_parted } => {
                    let _ = epoll::delete(&self.epoll, &all[at].fd);
                    all.remove(at);
                    match all.is_empty() {
                        true if has_parted => return Err(DeviceError::Left { peer: address, what: GONE }),
                        true => return Err(DeviceError::Died { peer: address, what: GONE }),
                        false => break,
                    }
                }
            }
        }
        Ok(any)
    }
}

impl Socket {
    /// Returns the next packet: its length in the buffer.
    fn take(&mut self, peer: Address, buffer: &mut [u8]) -> Result<Taken, DeviceError> {
        loop {
            match recv(&self.fd, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Ok(Taken::End { has_parted: self.has_parted }),
                Ok((len, _)) if buffer[..len] == *BYE => self.has_parted = true,
                Ok((len, _)) if len < HEADER => {
                    return Err(DeviceError::Corrupt { peer, what: "a packet without a head" });
                }
                Ok((len, _)) => return Ok(Taken::Packet(len)),
                // The peer has closed its socket without having read all. What it has sent follows, and then the end.
                Err(Errno::CONNRESET | Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Taken::Nothing),
                // The program has closed the descriptor.
                Err(_) => return Ok(Taken::End { has_parted: false }),
            }
        }
    }
}

impl SocketDevice {
    /// Makes a device without peers.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new() -> io::Result<SocketDevice> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let state = State { of: Vec::new(), buffer: vec![0; HEADER + MAX_DATA].into(), next: 0 };
        let sockets = Arc::new(Sockets { epoll: epoll.try_clone()?, state: Mutex::new(state) });
        Ok(SocketDevice { sockets, epoll })
    }

    /// Returns its sockets.
    pub fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
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
        let mut state = self.sockets.state.lock();
        let State { of, buffer, .. } = &mut *state;
        let packet = &mut buffer[..HEADER + data.len()];
        packet[0] = meta.kind;
        packet[1..9].copy_from_slice(&meta.words[0].to_ne_bytes());
        packet[9..HEADER].copy_from_slice(&meta.words[1].to_ne_bytes());
        data.write(&mut packet[HEADER..]);
        for socket in of.get(to as usize).into_iter().flatten() {
            loop {
                match send(&socket.fd, &*packet, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                    Ok(_) => return Ok(Sent::Done),
                    Err(Errno::INTR) => {}
                    // Packets that it has sent are still taken, and then its end.
                    Err(Errno::PIPE | Errno::CONNRESET | Errno::BADF | Errno::NOTSOCK) => break,
                    Err(_) => return Ok(Sent::NoRoom),
                }
            }
        }
        Err(DeviceError::Died { peer: to, what: GONE })
    }

    fn want_room(&mut self, to: Address) {
        let mut state = self.sockets.state.lock();
        if let Some(socket) = state.of.get_mut(to as usize).and_then(|all| all.first_mut()) {
            self.sockets.watch(to, socket, true);
        }
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        let mut events = Vec::with_capacity(EVENTS);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once)) {
            Ok(_) | Err(_) => {}
        }
        let mut any = false;
        for event in &events {
            any |= self.sockets.take_from(event, sink)?;
        }
        Ok(any)
    }

    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.sockets.is_open(peer)
    }
}
