//! The fabric device: packets by libfabric, over whatever networks it has providers for. The library is loaded while
//! the program runs ([`Library`]); there is no network code here below it.
//!
//! A process has one endpoint, which reaches all others without connections that this code would know of. It tells them
//! its address by a card ([`Cards`]) and connects with a peer when the first packet goes there.
//!
//! - **Who is there.** A card has a random token, which only processes of the job can read. Every packet begins with
//!   its receiver's token, and with half of its sender's; others are dropped.
//! - **Order.** Providers end receives of one sender in any order, since long messages may take another way than short
//!   ones. So packets are numbered, and one that comes too early is kept until its turn.
//! - **Room.** A peer that does not take its packets fills only its own share of what is under way.
//! - **Sleep.** The device's descriptor covers the provider's and a clock, for what no descriptor tells: the card of a
//!   peer that is still starting, a connection under way, the last packets of a process that has died.
//! - **Deaths** are those of the processes of this host, which another device watches, and connections that fail. What
//!   a dead process has sent is still taken: it is dead when nothing has come from it for a while.

use crate::shm::ShmDevice;
use crate::{Address, Data, DeathWatch, Device, DeviceError, Meta, Sent, Urgency};
use rustix::event::epoll;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod clock;
mod endpoint;
mod library;
#[doc(hidden)]
pub mod packet;
mod peers;
mod sys;

pub use library::{Library, Offer, Wish};

use clock::Clock;
use endpoint::{Endpoint, Event, Known, Slot};
use packet::{Card, HEADER, Label};
use peers::{CLASSES, Class, Life, Peer, Turn};

/// Most data bytes in one packet.
const MAX_DATA: usize = 64 * 1024;
/// Most data bytes in a packet for which a short buffer is used: a message of 8 KB with the number of its send.
const SHORT: usize = 8 * 1024 + 8;
/// The class of packets whose data are not copied.
const LENT: Class = 2;
/// Packets that may come at once.
const RECEIVES: usize = 32;
/// Nothing comes any more from a process that has died and has been silent for so long.
const SILENCE: Duration = Duration::from_millis(50);

/// Where processes leave their cards for each other.
pub trait Cards: Send {
    /// Publishes this process's card.
    fn publish(&self, card: &[u8]);

    /// The card of a process; `None` if it has not published any. Untrusted.
    fn card(&self, of: Address) -> Option<Vec<u8>>;
}

/// The fabric device of one process.
pub struct FabricDevice {
    me: Address,
    token: u64,
    endpoint: Endpoint,
    cards: Box<dyn Cards>,
    peers: Vec<Peer>,
    /// Free buffers, by class.
    free: [Vec<Slot>; CLASSES],
    /// By buffer: to whom it is being sent, its class, and the packet's number.
    sending: Vec<Option<(Address, Class, u32)>>,
    clock: Clock,
    /// Readable if the provider's descriptor or the clock is.
    epoll: OwnedFd,
    /// Knows who has died.
    host: ShmDevice,
    /// A peer is dying, or somebody waits for room that comes unnoticed.
    is_restless: bool,
    /// To be reported by the next polls.
    errors: Vec<DeviceError>,
    /// Packets that came while nobody could take them.
    early: Vec<(Address, Meta, Vec<u8>)>,
}

impl FabricDevice {
    /// Joins processes, as number `host.rank()`, that read each other's cards. `host` watches for their deaths.
    ///
    /// # Errors
    /// What is missing or refused, in one sentence.
    pub fn join(wish: &Wish, cards: Box<dyn Cards>, host: ShmDevice) -> Result<FabricDevice, String> {
        let offer = Library::load(wish.library.as_deref())?.choose(wish)?;
        let (provider, interface) = (offer.provider.clone(), offer.interface.clone());
        let endpoint = Endpoint::open(offer, HEADER + MAX_DATA, RECEIVES).map_err(|error| {
            format!("libfabric's provider {provider} cannot use the interface {interface}: {error}")
        })?;
        let system = |error: io::Error| format!("the system refuses what a network device needs: {error}");
        let token = token().map_err(system)?;
        let card = Card { token, provider, address: endpoint.name().to_vec() };
        cards.publish(&card.write().ok_or("the address of this process is too long for its card")?);
        let clock = Clock::new().map_err(system)?;
        let epoll = watching(&[endpoint.descriptor(), clock.descriptor()]).map_err(system)?;
        Ok(FabricDevice {
            me: host.rank(),
            token,
            endpoint,
            cards,
            peers: (0..host.size()).map(|_| Peer::default()).collect(),
            free: [Vec::new(), Vec::new(), Vec::new()],
            sending: Vec::new(),
            clock,
            epoll,
            host,
            is_restless: false,
            errors: Vec::new(),
            early: Vec::new(),
        })
    }

    /// The provider and the interface that it uses.
    pub fn route(&self) -> (&str, &str) {
        (&self.endpoint.offer().provider, &self.endpoint.offer().interface)
    }

    /// Finds where a peer is, once it has published that; false before.
    fn find(&mut self, of: Address) -> Result<bool, DeviceError> {
        let peer = &mut self.peers[of as usize];
        if peer.place.is_some() {
            return Ok(true);
        }
        let Some(card) = self.cards.card(of) else { return Ok(false) };
        let card = Card::read(&card).ok_or(DeviceError::Corrupt { peer: of, what: "a card that makes no sense" })?;
        if card.provider != self.endpoint.offer().provider {
            let what = "it uses another provider of libfabric: set LIMOSA_FABRIC_PROVIDER for all processes";
            return Err(DeviceError::Died { peer: of, what });
        }
        let known = self.endpoint.know(&card.address);
        let known = known.map_err(|_| DeviceError::Corrupt { peer: of, what: "an address that makes no sense" })?;
        peer.place = Some((card.token, known));
        Ok(true)
    }

    /// A free buffer of this class; `None` if the provider cannot access more memory.
    fn buffer(&mut self, class: Class) -> Option<Slot> {
        let made = |endpoint: &mut Endpoint| endpoint.make(HEADER + [SHORT, MAX_DATA, 0][class]).ok();
        self.free[class].pop().or_else(|| made(&mut self.endpoint))
    }

    /// Takes a bounded number of operations that have ended; true if there were any.
    fn take(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> bool {
        // The provider is asked once only, which takes a system call: who has what it waits for goes on at once.
        let any = self.endpoint.ask();
        while let Some(event) = self.endpoint.next() {
            match event {
                Event::Sent(slot) => {
                    self.sent(slot);
                }
                Event::Failed(slot, error) => {
                    if let Some(to) = self.sent(slot) {
                        self.lost(to, error);
                    }
                }
                Event::Received(slot, len) => {
                    self.received(slot, len, sink);
                    self.endpoint.post(slot);
                }
            }
        }
        any
    }

    /// As [`FabricDevice::take`], while nobody can take packets.
    fn take_early(&mut self) {
        let mut early = std::mem::take(&mut self.early);
        self.take(&mut |from, meta, data| early.push((from, *meta, data.to_vec())));
        self.early = early;
        if !self.early.is_empty() || !self.errors.is_empty() {
            self.clock.tick_soon();
        }
    }

    /// Sends a packet of a class: `send` has its data written behind the head in the buffer, and sent.
    fn send_with(
        &mut self,
        to: Address,
        meta: &Meta,
        class: Class,
        send: impl FnOnce(&mut Endpoint, Slot, Known) -> Result<bool, i32>,
    ) -> Result<Sent, DeviceError> {
        if self.peers[to as usize].life == Life::Dead {
            return Err(DeviceError::Died { peer: to, what: ENDED });
        }
        if !self.peers[to as usize].has_room(class) {
            self.take_early();
        }
        if !self.peers[to as usize].has_room(class) || !self.find(to)? {
            return Ok(Sent::NoRoom);
        }
        let Some(slot) = self.buffer(class) else { return Ok(Sent::NoRoom) };
        let peer = &mut self.peers[to as usize];
        let (token, known) = peer.place.expect("it was found");
        let label = Label { token, from: self.me, sender: self.token as u32, number: peer.next_number() };
        packet::write_head(self.endpoint.bytes_of(slot), &label, meta);
        match send(&mut self.endpoint, slot, known) {
            Ok(true) => {
                peer.begin(class);
                if self.sending.len() <= slot.0 {
                    self.sending.resize(slot.0 + 1, None);
                }
                self.sending[slot.0] = Some((to, class, label.number));
                Ok(Sent::Done)
            }
            Ok(false) => {
                self.free[class].push(slot);
                Ok(Sent::NoRoom)
            }
            Err(error) => {
                self.free[class].push(slot);
                self.peers[to as usize].life = Life::Dead;
                Err(DeviceError::Died { peer: to, what: reason(error) })
            }
        }
    }

    /// A send has ended: its buffer is free.
    fn sent(&mut self, slot: Slot) -> Option<Address> {
        let (to, class, number) = self.sending.get_mut(slot.0)?.take()?;
        self.free[class].push(slot);
        self.peers[to as usize].sent(class, number);
        Some(to)
    }

    /// A peer cannot be reached any more.
    fn lost(&mut self, to: Address, error: i32) {
        let peer = &mut self.peers[to as usize];
        // One that has ended in good order is not missed.
        if peer.life == Life::Alive && self.host.is_alive(to) {
            peer.life = Life::Dead;
            self.errors.push(DeviceError::Died { peer: to, what: reason(error) });
        }
    }

    /// Hands on a packet, and those that have waited for it.
    fn received(&mut self, slot: Slot, len: usize, sink: &mut dyn FnMut(Address, &Meta, &[u8])) {
        // What is too short, or from somebody who does not know the token, is not from a process of the job.
        let Some((label, meta, data)) = packet::read(self.endpoint.packet(slot, len)) else { return };
        if label.token != self.token {
            return;
        }
        let from = label.from;
        let Some(peer) = self.peers.get_mut(from as usize) else {
            let error = DeviceError::Corrupt { peer: from, what: "a packet although there is no such process" };
            return self.errors.push(error);
        };
        if peer.life == Life::Dead || !peer.is_of(label.sender) {
            return;
        }
        if let Life::Dying(silent_until) = &mut peer.life {
            *silent_until = Instant::now() + SILENCE;
        }
        match peer.turn(label.number) {
            Turn::Now => {
                sink(from, &meta, data);
                while let Some((meta, data)) = peer.next_kept() {
                    sink(from, &meta, &data);
                }
            }
            Turn::Later => peer.keep(label.number, meta, data),
            Turn::Never => {
                let what = "a packet out of its turn: packets were lost, or it runs another version";
                self.errors.push(DeviceError::Corrupt { peer: from, what });
            }
        }
    }

    /// Notes deaths of processes of this host.
    fn note_deaths(&mut self) {
        while let Err(DeviceError::Died { peer, .. }) = self.host.poll(&mut |_, _, _| {}) {
            let life = &mut self.peers[peer as usize].life;
            if *life == Life::Alive {
                *life = Life::Dying(Instant::now() + SILENCE);
                self.is_restless = true;
            }
        }
    }

    /// The next death that is to be reported.
    fn next_death(&mut self) -> Option<DeviceError> {
        if !self.is_restless {
            return None;
        }
        let now = Instant::now();
        let is_due = |peer: &Peer| matches!(peer.life, Life::Dying(silent_until) if silent_until <= now);
        let at = self.peers.iter().position(is_due)?;
        self.peers[at].life = Life::Dead;
        Some(DeviceError::Died { peer: at as Address, what: ENDED })
    }
}

const ENDED: &str = "its process has ended";

/// Why a packet could not be sent, for people.
fn reason(error: i32) -> &'static str {
    match error {
        libc::ECONNREFUSED => "it refuses connections",
        libc::ECONNRESET | libc::EPIPE | libc::ENOTCONN | libc::ECONNABORTED | libc::ESHUTDOWN => {
            "its connection has ended"
        }
        libc::ETIMEDOUT => "it does not answer",
        libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN | libc::ENETDOWN => {
            "there is no way to its address on the network: LIMOSA_FABRIC_INTERFACE names the interface to use"
        }
        _ => "libfabric could not send to it",
    }
}

/// 64 random bits.
fn token() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

fn watching(descriptors: &[BorrowedFd<'_>]) -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for descriptor in descriptors {
        epoll::add(&epoll, descriptor, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(epoll)
}

impl Device for FabricDevice {
    fn name(&self) -> &'static str {
        "fabric"
    }

    fn max_data(&self) -> usize {
        MAX_DATA
    }

    fn is_far(&self) -> bool {
        true
    }

    fn send(&mut self, to: Address, meta: &Meta, mut data: Data<'_>, _urgency: Urgency) -> Result<Sent, DeviceError> {
        let len = data.len();
        self.send_with(to, meta, usize::from(len > SHORT), |endpoint, slot, known| {
            data.write(&mut endpoint.bytes_of(slot)[HEADER..HEADER + len]);
            endpoint.send(slot, HEADER + len, known)
        })
    }

    unsafe fn send_lent(
        &mut self,
        to: Address,
        meta: &Meta,
        bytes: &[u8],
        urgency: Urgency,
    ) -> Result<Sent, DeviceError> {
        if !self.endpoint.may_lend() || bytes.len() <= SHORT {
            return self.send(to, meta, Data::Bytes(bytes), urgency);
        }
        // SAFETY: the bytes stay until the sends of this packet and of those before it have ended, as promised.
        self.send_with(to, meta, LENT, |endpoint, slot, known| unsafe {
            endpoint.send_lent(slot, HEADER, bytes, known)
        })
    }

    fn packets_to(&self, to: Address) -> u32 {
        self.peers[to as usize].next_number()
    }

    fn is_away(&self, to: Address, count: u32) -> bool {
        let peer = &self.peers[to as usize];
        peer.life == Life::Dead || peer.is_away(count)
    }

    fn want_room(&mut self, to: Address) {
        self.peers[to as usize].wants_room = true;
        self.is_restless = true;
        self.rest();
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        self.note_deaths();
        let early = std::mem::take(&mut self.early);
        for (from, meta, data) in &early {
            sink(*from, meta, data);
        }
        let any = self.take(sink) || !early.is_empty();
        if !self.errors.is_empty() {
            return Err(self.errors.remove(0));
        }
        if let Some(death) = self.next_death() {
            return Err(death);
        }
        Ok(any)
    }

    fn is_drained(&self) -> bool {
        let lives = |to: Address| self.peers[to as usize].life == Life::Alive && self.host.is_alive(to);
        !(0..).zip(&self.peers).any(|(to, peer)| peer.is_sending() && lives(to))
    }

    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    /// Sees to it that the descriptor tells when to look again.
    fn rest(&mut self) {
        let is_dying = |peer: &Peer| matches!(peer.life, Life::Dying(_));
        self.is_restless = self.is_restless && self.peers.iter().any(|peer| is_dying(peer) || peer.must_try());
        let has_news = !self.early.is_empty() || !self.errors.is_empty();
        if has_news || !self.endpoint.may_sleep() {
            self.clock.tick_soon();
        } else if self.is_restless {
            self.clock.tick();
        } else {
            self.clock.stop();
        }
    }

    fn death_watch(&self) -> Option<Arc<DeathWatch>> {
        self.host.death_watch()
    }

    fn notice_deaths(&mut self) {
        self.host.notice_deaths();
        self.note_deaths();
        self.rest();
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.peers[peer as usize].life != Life::Dead && self.host.is_alive(peer)
    }

    fn prepare(&self, next: Address) -> io::Result<()> {
        self.host.prepare(next)
    }

    fn meet(&mut self, peer: Address, knew_another: bool) {
        self.host.meet(peer, knew_another);
        if knew_another {
            let before = std::mem::take(&mut self.peers[peer as usize]);
            if let Some((_, known)) = before.place {
                self.endpoint.forget(known);
            }
        }
    }
}
