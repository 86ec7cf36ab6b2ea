//! A simulated network: devices of several engines in one process, for tests. (And devices over sockets for tests:
//! [`socket_devices`].)
//!
//! Nothing happens spontaneously. A sent packet is in flight until [`Network::step`] delivers it: each step takes one
//! random event, by the seed of the network. Packets of one pair stay in order; those of different pairs do not. The
//! caller decides which engine runs when, and may kill a peer ([`Network::kill`]): the last packets that it had sent
//! may be lost, and the other peers learn of its death one after another.
//!
//! All randomness comes from the seed, so the same calls in the same order have the same effect.

mod random;
mod sockets;

use limosa_base::vm::{self, Slice};
use limosa_device::shm::DoorbellRef;
use limosa_device::{Address, Data, Device, DeviceError, Joint, Meta, PeerMemory, Sent, Urgency};
pub use random::Random;
pub use sockets::{socket_device, socket_devices, socket_pairs};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of inbox entries per poll.
const BURST: usize = 8;

/// Properties of a network.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Maximum data bytes of a packet.
    pub max_data: usize,
    /// Maximum number of packets of one pair in flight or in the inbox.
    pub capacity: usize,
    /// One of so many sends is refused although there is room; 0: none.
    pub refusals: u32,
    /// Whether packets are delivered when they are sent.
    pub instant: bool,
    /// Whether peers are remote ([`Device::is_far`]).
    pub far: bool,
    /// Whether the memory of peers can be accessed.
    pub memory: bool,
    /// One of so many accesses to a peer's memory fails; 0: none.
    pub memory_failures: u32,
}

impl Default for Conditions {
    /// Returns the properties of a network that delivers at once and refuses nothing.
    fn default() -> Conditions {
        Conditions {
            max_data: 16 * 1024,
            capacity: 64,
            refusals: 0,
            instant: true,
            far: false,
            memory: false,
            memory_failures: 0,
        }
    }
}

/// A network between processes with numbers from 0.
#[derive(Clone)]
pub struct Network(Arc<Mutex<Traffic>>);

struct Packet {
    meta: Meta,
    data: Box<[u8]>,
    urgency: Urgency,
}

enum Arrived {
    Packet(Packet),
    Death,
}

struct Node {
    is_dead: bool,
    bell: DoorbellRef,
    inbox: VecDeque<(Address, Arrived)>,
}

/// Packets in flight from one process to another.
#[derive(Default)]
struct Link {
    flying: VecDeque<Packet>,
    in_inbox: usize,
    wants_room: bool,
    /// Whether a send reports the receiver's death.
    is_cut: bool,
    /// Whether the receiver has been told of the sender's death.
    is_told: bool,
}

struct Traffic {
    nodes: Vec<Node>,
    /// The link from `a` to `b` is number `a * nodes + b`.
    links: Vec<Link>,
    random: Random,
    conditions: Conditions,
}

/// Event on the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet of this kind and with so many data bytes has reached its receiver's inbox.
    Delivered {
        /// The sender.
        from: Address,
        /// The receiver.
        to: Address,
        /// Kind of packet.
        kind: u8,
        /// Number of data bytes.
        bytes: usize,
    },
    /// The next send from `from` to the dead `to` fails.
    Cut {
        /// The sender.
        from: Address,
        /// The dead process.
        to: Address,
    },
    /// `to` learns of the death of `of` once it has taken the packets of its inbox.
    Told {
        /// The dead process.
        of: Address,
        /// The process that learns of it.
        to: Address,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Delivered { from, to, kind, bytes } => {
                write!(f, "network: packet of kind {kind} with {bytes} bytes, {from} -> {to}")
            }
            Event::Cut { from, to } => write!(f, "network: {from} cannot send to the dead {to} any more"),
            Event::Told { of, to } => write!(f, "network: {to} is told that {of} is dead"),
        }
    }
}

impl Network {
    /// Creates a network between `size` processes.
    pub fn new(size: u32, conditions: Conditions, seed: u64) -> Network {
        let node = || Node { is_dead: false, bell: DoorbellRef::private(), inbox: VecDeque::new() };
        let traffic = Traffic {
            nodes: (0..size).map(|_| node()).collect(),
            links: (0..size * size).map(|_| Link::default()).collect(),
            random: Random::new(seed),
            conditions,
        };
        Network(Arc::new(Mutex::new(traffic)))
    }

    /// Locks the traffic, even after a panic. A panic of a test is reported already; the state that other threads find
    /// afterwards does not matter.
    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the device of process `me`.
    pub fn device(&self, me: Address) -> SimDevice {
        SimDevice { network: self.clone(), me, max_data: self.traffic().conditions.max_data }
    }

    /// Returns the doorbell of process `me`, which the network rings.
    pub fn doorbell(&self, me: Address) -> DoorbellRef {
        self.traffic().nodes[me as usize].bell.clone()
    }

    /// Returns access to the memory of the other processes, if the network offers it.
    pub fn memory(&self) -> Option<Arc<dyn PeerMemory>> {
        self.traffic().conditions.memory.then(|| Arc::new(SimMemory(self.clone())) as Arc<dyn PeerMemory>)
    }

    /// Kills process `dead`. A random suffix of its unreceived packets is lost, possibly all or none.
    pub fn kill(&self, dead: Address) {
        let mut traffic = self.traffic();
        let Traffic { nodes, links, random, conditions } = &mut *traffic;
        nodes[dead as usize].is_dead = true;
        nodes[dead as usize].inbox.clear();
        for other in 0..nodes.len() {
            let sent = &mut links[dead as usize * nodes.len() + other].flying;
            sent.truncate(random.below(sent.len() + 1));
            let received = &mut links[other * nodes.len() + dead as usize];
            (received.flying, received.in_inbox) = (VecDeque::new(), 0);
        }
        if conditions.instant {
            while traffic.step().is_some() {}
        }
    }

    /// Performs one event, if any is possible.
    pub fn step(&self) -> Option<Event> {
        self.traffic().step()
    }
}

impl Traffic {
    fn link(&mut self, from: Address, to: Address) -> &mut Link {
        let size = self.nodes.len();
        &mut self.links[from as usize * size + to as usize]
    }

    fn step(&mut self) -> Option<Event> {
        let size = self.nodes.len();
        let (nodes, links) = (&self.nodes, &self.links);
        let pair = |index: usize| (index / size, index % size);
        let can_be_told = |index: usize| {
            let (from, to) = pair(index);
            nodes[from].is_dead && !nodes[to].is_dead && !links[index].is_told && links[index].flying.is_empty()
        };
        let can_be_cut = |index: usize| {
            let (from, to) = pair(index);
            nodes[to].is_dead && !nodes[from].is_dead && !links[index].is_cut
        };
        let possible: Vec<(usize, u8)> = (0..links.len())
            .flat_map(|index| {
                let kinds = [(!links[index].flying.is_empty(), 0), (can_be_told(index), 1), (can_be_cut(index), 2)];
                kinds.into_iter().filter(|(can, _)| *can).map(move |(_, kind)| (index, kind))
            })
            .collect();
        if possible.is_empty() {
            return None;
        }
        let (index, kind) = self.random.of(&possible);
        let (from, to) = ((index / size) as Address, (index % size) as Address);
        Some(match kind {
            0 => self.deliver(from, to),
            1 => {
                self.link(from, to).is_told = true;
                self.arrive(from, to, Arrived::Death, true);
                Event::Told { of: from, to }
            }
            _ => {
                self.link(from, to).is_cut = true;
                Event::Cut { from, to }
            }
        })
    }

    fn deliver(&mut self, from: Address, to: Address) -> Event {
        let link = self.link(from, to);
        let packet = link.flying.pop_front().expect("the caller has seen it");
        link.in_inbox += 1;
        let event = Event::Delivered { from, to, kind: packet.meta.kind, bytes: packet.data.len() };
        let urgent = packet.urgency == Urgency::Urgent;
        self.arrive(from, to, Arrived::Packet(packet), urgent);
        event
    }

    fn arrive(&mut self, from: Address, to: Address, what: Arrived, urgent: bool) {
        let node = &mut self.nodes[to as usize];
        node.inbox.push_back((from, what));
        node.bell.ring(urgent);
    }

    /// Takes the arrived packets of `me`, in order, up to the first report of a death.
    fn take_arrived(&mut self, me: Address) -> (Vec<(Address, Packet)>, Option<Address>) {
        let mut packets = Vec::new();
        while packets.len() < BURST {
            match self.nodes[me as usize].inbox.pop_front() {
                None => break,
                Some((dead, Arrived::Death)) => {
                    self.link(me, dead).is_cut = true;
                    return (packets, Some(dead));
                }
                Some((from, Arrived::Packet(packet))) => {
                    let link = self.link(from, me);
                    link.in_inbox -= 1;
                    if std::mem::take(&mut link.wants_room) {
                        self.nodes[from as usize].bell.ring(true);
                    }
                    packets.push((from, packet));
                }
            }
        }
        (packets, None)
    }
}

/// Device of one process of a [`Network`].
pub struct SimDevice {
    network: Network,
    me: Address,
    max_data: usize,
}

impl Device for SimDevice {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn max_data(&self) -> usize {
        self.max_data
    }

    fn is_far(&self) -> bool {
        self.network.traffic().conditions.far
    }

    fn send(&mut self, to: Address, meta: &Meta, mut data: Data<'_>, urgency: Urgency) -> Result<Sent, DeviceError> {
        assert!(data.len() <= self.max_data, "a packet of {} bytes where {} are allowed", data.len(), self.max_data);
        let mut traffic = self.network.traffic();
        let Conditions { capacity, refusals, instant, .. } = traffic.conditions;
        let is_refused = traffic.random.one_in(refusals);
        let is_lost = traffic.nodes[to as usize].is_dead;
        let link = traffic.link(self.me, to);
        if link.is_cut {
            return Err(DeviceError::Died { peer: to, what: "its connection is closed" });
        }
        if is_refused || link.flying.len() + link.in_inbox >= capacity {
            return Ok(Sent::NoRoom);
        }
        let mut bytes = vec![0; data.len()];
        data.write(&mut bytes);
        if !is_lost {
            link.flying.push_back(Packet { meta: *meta, data: bytes.into(), urgency });
            if instant {
                traffic.deliver(self.me, to);
            }
        }
        Ok(Sent::Done)
    }

    fn want_room(&mut self, to: Address) {
        let mut traffic = self.network.traffic();
        traffic.link(self.me, to).wants_room = true;
        traffic.nodes[to as usize].bell.ring(true);
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        let (packets, dead) = self.network.traffic().take_arrived(self.me);
        for (from, packet) in &packets {
            sink(*from, &packet.meta, &packet.data);
        }
        match dead {
            Some(peer) => Err(DeviceError::Died { peer, what: "its process has ended" }),
            None => Ok(!packets.is_empty()),
        }
    }

    fn alert(&self, to: Address) {
        self.network.doorbell(to).ring(true);
    }

    fn is_attended(&self, to: Address) -> bool {
        self.network.doorbell(to).is_attended()
    }

    fn is_alive(&self, peer: Address) -> bool {
        !self.network.traffic().nodes[peer as usize].is_dead
    }
}

/// Memory of all processes. The kernel checks the addresses, as it does between processes.
struct SimMemory(Network);

impl SimMemory {
    /// Decides whether an access succeeds.
    fn try_reach(&self, peer: Address) -> io::Result<()> {
        let mut traffic = self.0.traffic();
        let failures = traffic.conditions.memory_failures;
        if traffic.nodes[peer as usize].is_dead {
            return Err(io::ErrorKind::NotFound.into());
        }
        if traffic.random.one_in(failures) { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }
}

impl PeerMemory for SimMemory {
    fn can_access(&self, peer: Address) -> bool {
        !self.0.traffic().nodes[peer as usize].is_dead
    }

    unsafe fn read(&self, from: Address, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()> {
        self.try_reach(from)?;
        // SAFETY: the caller guarantees the local slices.
        copy_all(local, remote, |locals, remotes| unsafe { vm::read(std::process::id(), locals, remotes) })
    }

    unsafe fn write(&self, to: Address, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()> {
        self.try_reach(to)?;
        // SAFETY: the caller guarantees the local slices and the overwritten memory.
        copy_all(local, remote, |locals, remotes| unsafe { vm::write(std::process::id(), locals, remotes) })
    }

    fn joints(&self, _of: Address) -> &[Joint] {
        &[]
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.can_access(peer)
    }

    fn is_waiting(&self, _peer: Address) -> bool {
        self.0.traffic().random.one_in(2)
    }

    fn is_polling(&self, _peer: Address) -> bool {
        false
    }
}

/// Copies in one call; the tests have no more slices than that takes.
fn copy_all(
    local: &[Slice],
    remote: &[Slice],
    copy: impl Fn(&[Slice], &[Slice]) -> io::Result<usize>,
) -> io::Result<()> {
    let wanted = remote.iter().map(|slice| slice.iov_len).sum();
    if copy(local, remote)? == wanted { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
