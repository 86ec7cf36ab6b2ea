//! The fabric device: packets by libfabric, over whatever networks it has providers for. The library is loaded while
//! the program runs ([`Library`]); there is no network code here below it.
//!
//! A process has one endpoint, which reaches all others without connections that this code would know of. It tells them
//! its address by a card ([`Cards`]) and connects with a peer when the first packet goes there.
//!
//! - **Connections.** With the provider `tcp`, two processes that connect with each other at the same moment may lose
//!   what they have sent: one of them may take its peer's request, which is void by then, for that of a new process at
//!   the old one's address, and end the good connection. So of two processes only the one with the higher number
//!   connects. The process with the lower number, if it is the first to send, *calls* its peer over a connection from
//!   another address, and waits until a packet comes: an empty one if there is nothing else ([`Endpoint::call`]).
//! - **Identity.** A card has a random token, which only processes of the job can read. Every packet begins with
//!   its receiver's token, and with half of its sender's; others are dropped.
//! - **Order.** Providers end receives of one sender in any order, since long messages may take another way than short
//!   ones. So packets are numbered, and one that comes too early is kept until its turn.
//! - **Long messages** travel straight from the sender's memory to the receiver's where the provider can do that
//!   ([`straight`]), the others in packets.
//! - **Room.** A peer that does not take its packets fills only its own share of what is under way.
//! - **Sleep.** The device's descriptor covers the provider's and a clock, for what no descriptor tells: the card of a
//!   peer that is still starting, a connection under way, the last packets of a process that has died.
//! - **Deaths** are those of the processes of this host, which another device watches, and connections that fail. What
//!   a dead process has sent is still taken: it is dead when nothing has come from it for a while.
//! - **Unreachable peers** are found by a test ([`reach`]) if no connection comes about.
//! - **Leaving** in good order is no error. Providers do not tell it: they try for ever to connect with an address that
//!   no process has any more. So the job's cards tell it, and packets that wait for such a process are not sent. What a
//!   process has sent may be lost with its connections when it ends: TCP throws away what it has not delivered if
//!   something comes for a process that is gone. So a process that leaves says *farewell* to the peers it has exchanged
//!   packets with, and stays until each has answered that all have come, or has said farewell itself.

use crate::shm::ShmDevice;
use crate::{Address, Data, DeathWatch, Device, DeviceError, Meta, Sent, Slice, Urgency};
use rustix::event::epoll;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod clock;
mod endpoint;
mod library;
#[doc(hidden)]
pub mod packet;
mod peers;
mod reach;
mod straight;
mod sys;

pub use library::{Library, Offer, Wish};

use clock::Clock;
use endpoint::{Endpoint, Event, Known, Slot};
use packet::{Card, Content, HEADER, Label};
use peers::{CLASSES, Class, Life, Peer, Turn};
use reach::{Found, Trial};
use straight::{Part, Straight, Transfer, Way};
use sys::FI_ETRUNC;

/// Most data bytes in one packet.
const MAX_DATA: usize = 64 * 1024;
/// Most data bytes in a packet for which a short buffer is used: a message of 8 KB with the number of its send.
const SHORT: usize = 8 * 1024 + 8;
/// The class of short packets.
const SHORTEST: Class = 0;
/// The class of packets whose data are not copied.
const LENT: Class = 2;
/// Packets that may come at once. The provider fills the buffers in turns: these fit together into a cache of 2 MB.
const RECEIVES: usize = 16;
/// Nothing comes any more from a process that has died and has been silent for so long.
const SILENCE: Duration = Duration::from_millis(50);
/// Where a connection has failed, it takes no longer until it is known, by agents, whether the process there has left.
const NEWS: Duration = Duration::from_secs(5);
/// The provider lets go of memory that a dead process was to write to within this time. It is not read or written after
/// that either, since nothing comes from there any more.
const LETTING_GO: Duration = Duration::from_secs(1);

/// A peer to which no connection can be made for so long is given up, if no shorter time is asked for.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Where processes leave their cards for each other.
pub trait Cards: Send {
    /// Publishes this process's card.
    fn publish(&self, card: &[u8]);

    /// The card of a process; `None` if it has not published any. Untrusted.
    fn card(&self, of: Address) -> Option<Vec<u8>>;

    /// Whether a process is known to have ended in good order.
    fn has_left(&self, peer: Address) -> bool;
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
    /// By buffer: the peer to which it is being sent, its class and its content.
    sending: Vec<Option<(Address, Class, Content)>>,
    /// Of two processes, only the one with the higher number connects.
    is_orderly: bool,
    /// Peers that have called, and wait for a packet.
    callers: Vec<Address>,
    /// Peers whose farewells are to be answered.
    parting: Vec<Address>,
    /// Peers to which there is no connection yet, and how long they may be tested; `None`: they are not.
    trials: Vec<Trial>,
    trial_limit: Option<Duration>,
    straight: Straight,
    /// The provider has been asked since then to let go of memory that a peer was to write to.
    withdrawing_since: Option<Instant>,
    clock: Clock,
    /// Readable if the provider's descriptor or the clock is.
    epoll: OwnedFd,
    /// Knows which processes have died.
    host: ShmDevice,
    /// A send has asked the provider for room since the last poll. A rank with much to send to a peer that takes
    /// nothing tries again and again.
    has_looked_for_room: bool,
    /// A peer is dying, or a send waits for room that comes unnoticed.
    is_restless: bool,
    /// To be reported by the next polls.
    errors: VecDeque<DeviceError>,
    /// Packets that came while the handler could not take them.
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
        let is_orderly = offer.may_lose_crossing();
        let limit = wish.connect_limit.map_or(CONNECT_LIMIT, |limit| limit.min(CONNECT_LIMIT));
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
            is_orderly,
            callers: Vec::new(),
            parting: Vec::new(),
            trials: Vec::new(),
            trial_limit: (!wish.is_local).then_some(limit),
            straight: Straight::default(),
            withdrawing_since: None,
            clock,
            epoll,
            host,
            has_looked_for_room: false,
            is_restless: false,
            errors: VecDeque::new(),
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
            self.lose(of, what, SILENCE);
            return Err(DeviceError::Died { peer: of, what });
        }
        let known = self.endpoint.know(&card.address);
        let known = known.map_err(|_| DeviceError::Corrupt { peer: of, what: "an address that makes no sense" })?;
        peer.place = Some((card.token, known));
        peer.internet = library::tcp_address(&card.provider, &card.address).filter(|_| self.trial_limit.is_some());
        Ok(true)
    }

    /// A connection to a peer, whose place is known, is about to be made unless there is one.
    fn begin_trial(&mut self, of: Address) {
        let peer = &mut self.peers[of as usize];
        if let Some(to) = peer.internet.filter(|_| !peer.is_reached && !std::mem::replace(&mut peer.is_tested, true)) {
            self.trials.push(Trial::new(of, to));
            self.is_restless = true;
        }
    }

    /// Tests the peers to which no connection comes about, and gives up those that cannot be reached.
    fn test_peers(&mut self) {
        let (Some(limit), false) = (self.trial_limit, self.trials.is_empty()) else { return };
        let now = Instant::now();
        for mut trial in std::mem::take(&mut self.trials) {
            let peer = &self.peers[trial.peer as usize];
            if peer.is_reached || peer.life != Life::Alive || !peer.is_tested {
                continue;
            }
            match trial.look(now, limit) {
                Found::Nothing => self.trials.push(trial),
                Found::Open => {}
                Found::Closed(error) => {
                    self.part(trial.peer, trial.to, error);
                    self.lose(trial.peer, UNREACHED, SILENCE);
                }
            }
        }
    }

    /// Notes why no connection to a peer at this address was made.
    fn part(&mut self, from: Address, to: SocketAddr, error: Option<Errno>) {
        let interface = &self.endpoint.offer().interface;
        let why = reach::reason(to, interface, error, self.trial_limit.unwrap_or(CONNECT_LIMIT));
        self.peers[from as usize].unreached = Some(why);
    }

    /// The error of a peer that is lost.
    fn loss(&self, of: Address, what: &'static str) -> DeviceError {
        match &self.peers[of as usize].unreached {
            Some(why) => DeviceError::Severed { peer: of, what: why.clone() },
            None => DeviceError::Died { peer: of, what },
        }
    }

    /// A free buffer of this class; `None` if the provider cannot access more memory.
    fn buffer(&mut self, class: Class) -> Option<Slot> {
        let made = |endpoint: &mut Endpoint| endpoint.make(HEADER + [SHORT, MAX_DATA, 0][class]).ok();
        self.free[class].pop().or_else(|| made(&mut self.endpoint))
    }

    /// Takes a bounded number of operations that have ended; true if there were any.
    fn take(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> bool {
        // The provider is asked once only, which takes a system call: a rank that has what it waits for goes on at
        // once.
        let any = self.endpoint.ask();
        while let Some(event) = self.endpoint.next() {
            match event {
                Event::Sent(slot) => match self.straight.part_ended(slot) {
                    Some(part) => self.straight.go_on(&mut self.endpoint, part),
                    None => {
                        let to = self.sent(slot);
                        to.into_iter().for_each(|to| self.peers[to as usize].is_reached = true);
                    }
                },
                Event::Filled(slot, len) => {
                    if let Some(part) = self.straight.part_ended(slot) {
                        self.filled(part, len);
                    }
                }
                Event::Failed(slot, error) => match self.straight.part_ended(slot) {
                    Some(part) => self.part_failed(part, error),
                    None => {
                        if let Some(to) = self.sent(slot) {
                            _ = self.lost(to, error);
                        }
                    }
                },
                Event::Received(slot, len) => {
                    self.received(slot, len, sink);
                    self.endpoint.post(slot);
                }
            }
        }
        self.straight.try_again(&mut self.endpoint);
        if !self.callers.is_empty() {
            self.answer_calls();
        }
        if !self.parting.is_empty() {
            self.answer_farewells();
        }
        any
    }

    /// A part of a message has come straight to its place.
    fn filled(&mut self, part: Part, len: usize) {
        if let Life::Dying(silent_until, _) = &mut self.peers[part.peer as usize].life {
            *silent_until = (*silent_until).max(Instant::now() + SILENCE);
        }
        if len == part.len {
            return self.straight.go_on(&mut self.endpoint, part);
        }
        self.straight.give_up(part);
        self.errors.push_back(DeviceError::Corrupt { peer: part.peer, what: "a part of a message that is too short" });
    }

    /// A part of a message was not sent, or not received.
    fn part_failed(&mut self, part: Part, error: i32) {
        self.straight.give_up(part);
        match error {
            FI_ETRUNC => {
                let what = "a part of a message that is too long";
                self.errors.push_back(DeviceError::Corrupt { peer: part.peer, what });
            }
            libc::ECANCELED => {}
            _ => _ = self.lost(part.peer, error),
        }
    }

    /// Has the provider let go of memory that a peer was to write to; whether it has.
    fn withdraw(&mut self, from: Address, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> bool {
        let mut is_done = self.straight.withdraw(&mut self.endpoint, from);
        if !is_done {
            self.take(sink);
            is_done = self.straight.withdraw(&mut self.endpoint, from);
        }
        is_done |= self.withdrawing_since.get_or_insert_with(Instant::now).elapsed() > LETTING_GO;
        if is_done {
            self.withdrawing_since = None;
        }
        is_done
    }

    /// As [`FabricDevice::take`], while the handler cannot take packets.
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
        match self.peers[to as usize].life {
            Life::Alive => {}
            Life::Dying(_, ENDED) => return Err(DeviceError::Died { peer: to, what: ENDED }),
            // The polls will tell whether it has died or left.
            Life::Dying(..) => return self.no_room(to),
            Life::Dead => return Err(self.loss(to, ENDED)),
            Life::Left => return Err(DeviceError::Left { peer: to, what: LEFT }),
        }
        if !self.peers[to as usize].has_room(class) && !std::mem::replace(&mut self.has_looked_for_room, true) {
            self.take_early();
        }
        if !self.peers[to as usize].has_room(class) || !self.find(to)? || !self.may_send(to)? {
            return self.no_room(to);
        }
        let Some(slot) = self.buffer(class) else { return Ok(Sent::NoRoom) };
        let peer = &mut self.peers[to as usize];
        let (token, known) = peer.place.expect("it was found");
        let content = Content::Packet(peer.next_number());
        let label = Label { token, from: self.me, sender: self.token as u32, content };
        packet::write_head(self.endpoint.bytes_of(slot), &label, meta);
        self.begin_trial(to);
        let peer = &mut self.peers[to as usize];
        match send(&mut self.endpoint, slot, known) {
            Ok(true) => {
                peer.begin(class);
                self.begun(slot, to, class, content);
                Ok(Sent::Done)
            }
            Ok(false) => {
                self.free[class].push(slot);
                self.no_room(to)
            }
            Err(error) => {
                self.free[class].push(slot);
                match self.lost(to, error) {
                    DeviceError::Died { .. } | DeviceError::Severed { .. }
                        if matches!(self.peers[to as usize].life, Life::Dying(..)) =>
                    {
                        Ok(Sent::NoRoom)
                    }
                    died => Err(died),
                }
            }
        }
    }

    /// There is no room for a packet to a peer now, or never any more.
    fn no_room(&mut self, to: Address) -> Result<Sent, DeviceError> {
        if self.has_left(to) { Err(DeviceError::Left { peer: to, what: LEFT }) } else { Ok(Sent::NoRoom) }
    }

    /// Whether a peer has ended in good order.
    fn has_left(&mut self, peer: Address) -> bool {
        let life = &mut self.peers[peer as usize].life;
        if matches!(life, Life::Alive | Life::Dying(..)) && self.cards.has_left(peer) {
            *life = Life::Left;
        }
        *life == Life::Left
    }

    /// The send of a buffer is under way.
    fn begun(&mut self, slot: Slot, to: Address, class: Class, content: Content) {
        self.sending.resize(self.sending.len().max(slot.0 + 1), None);
        self.sending[slot.0] = Some((to, class, content));
    }

    /// Whether packets may be sent to a peer, whose place is known. If it has to connect before, it is called.
    fn may_send(&mut self, to: Address) -> Result<bool, DeviceError> {
        let peer = &self.peers[to as usize];
        let may_send = !self.is_orderly || to <= self.me || peer.has_come;
        if !may_send && !peer.is_called {
            self.peers[to as usize].is_called = self.say(to, Content::Greeting, Endpoint::call)?;
        }
        Ok(may_send)
    }

    /// Sends a peer, whose place is known, something that is no packet of the program; false if there is no room for it
    /// now.
    fn say(
        &mut self,
        to: Address,
        content: Content,
        send: fn(&mut Endpoint, Slot, usize, Known) -> Result<bool, i32>,
    ) -> Result<bool, DeviceError> {
        let Some(slot) = self.buffer(SHORTEST) else { return Ok(false) };
        let (token, known) = self.peers[to as usize].place.expect("it was found");
        let label = Label { token, from: self.me, sender: self.token as u32, content };
        packet::write_head(self.endpoint.bytes_of(slot), &label, &Meta::default());
        self.begin_trial(to);
        let sent = send(&mut self.endpoint, slot, HEADER, known);
        if sent == Ok(true) {
            self.begun(slot, to, SHORTEST, content);
            self.peers[to as usize].said(content);
        } else {
            self.free[SHORTEST].push(slot);
        }
        sent.map_err(|error| self.lost(to, error))
    }

    /// Connects with the peers that have called.
    fn answer_calls(&mut self) {
        for to in std::mem::take(&mut self.callers) {
            let has_answered = self.peers[to as usize].life != Life::Alive || self.packets_to(to) > 0;
            // After an error it is dead.
            if !has_answered
                && !self
                    .find(to)
                    .and_then(|found| Ok(found && self.say(to, Content::Greeting, Endpoint::send)?))
                    .unwrap_or(true)
            {
                self.callers.push(to);
            }
        }
    }

    /// Answers the farewells of peers from which all packets have come.
    fn answer_farewells(&mut self) {
        for to in std::mem::take(&mut self.parting) {
            let peer = &self.peers[to as usize];
            let Some(come) = peer.due_answer().filter(|_| peer.life == Life::Alive) else { continue };
            // After an error it is dead.
            let found = self.find(to);
            if !found
                .and_then(|found| Ok(found && self.say(to, Content::Answer(come), Endpoint::send)?))
                .unwrap_or(true)
            {
                self.parting.push(to);
            }
        }
    }

    /// Says farewell to the peers that need it.
    fn say_farewells(&mut self) {
        for to in 0..self.peers.len() as Address {
            let peer = &self.peers[to as usize];
            let Some(sent) = peer.due_farewell().filter(|_| peer.life == Life::Alive) else { continue };
            // Without room the next call sees to it; after an error the peer is dead.
            if let Ok(true) = self.find(to) {
                let _ = self.say(to, Content::Farewell(sent), Endpoint::send);
            }
        }
    }

    /// A send has ended: its buffer is free.
    fn sent(&mut self, slot: Slot) -> Option<Address> {
        let (to, class, content) = self.sending.get_mut(slot.0)?.take()?;
        self.free[class].push(slot);
        let peer = &mut self.peers[to as usize];
        if let Content::Packet(number) = content {
            peer.sent(class, number);
        }
        self.is_restless |= peer.must_try();
        Some(to)
    }

    /// A peer cannot be reached any more, for an error of the library. The polls report it.
    fn lost(&mut self, peer: Address, error: i32) -> DeviceError {
        if self.has_left(peer) {
            return DeviceError::Left { peer, what: LEFT };
        }
        let of = &self.peers[peer as usize];
        if let Some(to) = of.internet.filter(|_| !of.is_reached && of.life == Life::Alive) {
            self.part(peer, to, Some(Errno::from_raw_os_error(error)));
        }
        // One of this host that has ended in good order is not missed, either.
        if self.host.is_alive(peer) {
            self.lose(peer, reason(error), NEWS);
        }
        self.loss(peer, reason(error))
    }

    /// The polls report that a peer cannot be reached any more, when nothing has come from it for so long.
    fn lose(&mut self, peer: Address, what: &'static str, silence: Duration) {
        let (life, silent_until) = (&mut self.peers[peer as usize].life, Instant::now() + silence);
        if life.lasts_beyond(silent_until) {
            *life = Life::Dying(silent_until, what);
            self.is_restless = true;
            self.clock.tick();
        }
    }

    /// Hands on a packet, and those that have waited for it.
    fn received(&mut self, slot: Slot, len: usize, sink: &mut dyn FnMut(Address, &Meta, &[u8])) {
        // A packet that is too short, or lacks the token, is not from a process of the job.
        let Some((label, meta, data)) = packet::read(self.endpoint.packet(slot, len)) else { return };
        if label.token != self.token {
            return;
        }
        let from = label.from;
        let Some(peer) = self.peers.get_mut(from as usize) else {
            let error = DeviceError::Corrupt { peer: from, what: "a packet although there is no such process" };
            return self.errors.push_back(error);
        };
        if peer.life == Life::Dead || !peer.is_of(label.sender) {
            return;
        }
        if let Life::Dying(silent_until, _) = &mut peer.life {
            *silent_until = (*silent_until).max(Instant::now() + SILENCE);
        }
        (peer.has_come, peer.is_reached) = (true, true);
        match label.content {
            Content::Greeting if from < self.me => self.callers.push(from),
            Content::Greeting => {}
            Content::Answer(come) => peer.answers(come),
            Content::Farewell(sent) => peer.parts(sent),
            Content::Packet(number) => match peer.turn(number) {
                Turn::Now => {
                    sink(from, &meta, data);
                    while let Some((meta, data)) = peer.next_kept() {
                        sink(from, &meta, &data);
                    }
                }
                Turn::Later => peer.keep(number, meta, data),
                Turn::Never => {
                    let what = "a packet out of its turn: packets were lost, or it runs another version";
                    self.errors.push_back(DeviceError::Corrupt { peer: from, what });
                }
            },
        }
        if peer.due_answer().is_some() {
            self.parting.push(from);
        }
    }

    /// Notes deaths of processes of this host.
    fn note_deaths(&mut self) {
        while let Err(DeviceError::Died { peer, .. }) = self.host.poll(&mut |_, _, _| {}) {
            self.lose(peer, ENDED, SILENCE);
        }
    }

    /// The next death that is to be reported. Before, the provider has let go of memory that the dead was to write to.
    fn next_death(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Option<DeviceError> {
        if !self.is_restless {
            return None;
        }
        let now = Instant::now();
        let (at, what) = (0..).zip(&self.peers).find_map(|(at, peer)| Some((at, peer.life.ends_before(now)?)))?;
        if self.has_left(at) {
            return Some(DeviceError::Left { peer: at, what: LEFT });
        }
        if !self.withdraw(at, sink) {
            return None;
        }
        self.peers[at as usize].life = Life::Dead;
        Some(self.loss(at, what))
    }
}

const ENDED: &str = "its process has ended";
const UNREACHED: &str = "no connection to it can be made";
const LEFT: &str = "it has ended by MPI_Finalize";

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

    unsafe fn expect_straight(&mut self, from: Address, room: Slice, note: u64) -> Option<u64> {
        let bits = self.endpoint.tag_bits()?;
        if self.peers[from as usize].life != Life::Alive {
            return None;
        }
        let ticket = token().ok()? & bits;
        let transfer = Transfer::new(from, Way::In, room, ticket, bits, note);
        // SAFETY: the caller's promise.
        unsafe { self.straight.begin(&mut self.endpoint, transfer) }.ok().map(|()| ticket)
    }

    unsafe fn send_straight(&mut self, to: Address, ticket: u64, bytes: Slice, note: u64) -> Result<(), DeviceError> {
        let (Some(bits), true) = (self.endpoint.tag_bits(), self.find(to)?) else {
            return Err(DeviceError::Corrupt { peer: to, what: "a ticket that cannot be used" });
        };
        let (_, known) = self.peers[to as usize].place.expect("it was found");
        let transfer = Transfer::new(to, Way::Out(known), bytes, ticket, bits, note);
        // SAFETY: the caller's promise.
        let begun = unsafe { self.straight.begin(&mut self.endpoint, transfer) };
        begun.map_err(|error| self.lost(to, error))
    }

    fn next_ended(&mut self) -> Option<u64> {
        self.straight.next_ended()
    }

    fn is_transferring(&self) -> bool {
        self.straight.is_under_way()
    }

    fn packets_to(&self, to: Address) -> u32 {
        self.peers[to as usize].next_number()
    }

    fn is_away(&self, to: Address, count: u32) -> bool {
        let peer = &self.peers[to as usize];
        peer.life == Life::Dead || peer.is_away(count)
    }

    fn want_room(&mut self, to: Address) {
        if !std::mem::replace(&mut self.peers[to as usize].wants_room, true) {
            self.is_restless = true;
            self.rest();
        }
    }

    fn finds_room_by_polls(&self) -> bool {
        true
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        self.note_deaths();
        self.has_looked_for_room = false;
        let early = std::mem::take(&mut self.early);
        for (from, meta, data) in &early {
            sink(*from, meta, data);
        }
        let any = self.take(sink) || !early.is_empty();
        self.test_peers();
        match self.errors.pop_front().or_else(|| self.next_death(sink)) {
            Some(error) => Err(error),
            None => Ok(any),
        }
    }

    fn is_drained(&mut self) -> bool {
        self.say_farewells();
        let lives = |to: Address| self.peers[to as usize].life == Life::Alive && self.is_alive(to);
        let is_owed = |to: Address| self.peers[to as usize].is_owed() || self.straight.is_sending(to);
        let answers = self.sending.iter().flatten().filter(|(_, _, content)| matches!(content, Content::Answer(_)));
        !(0..self.peers.len() as Address).any(|to| is_owed(to) && lives(to))
            && !self.parting.iter().chain(answers.map(|(to, ..)| to)).any(|to| lives(*to))
    }

    fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }

    /// Sees to it that the descriptor tells when to look again.
    fn rest(&mut self) {
        let is_dying = |peer: &Peer| matches!(peer.life, Life::Dying(..));
        self.is_restless = self.straight.must_try()
            || !self.callers.is_empty()
            || !self.parting.is_empty()
            || !self.trials.is_empty()
            || (self.is_restless && self.peers.iter().any(|peer| is_dying(peer) || peer.must_try()));
        let has_news = !self.early.is_empty() || !self.errors.is_empty() || self.straight.has_ended();
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
        !matches!(self.peers[peer as usize].life, Life::Dead | Life::Left)
            && self.host.is_alive(peer)
            && !self.cards.has_left(peer)
    }

    fn prepare(&self, next: Address) -> io::Result<()> {
        self.host.prepare(next)
    }

    fn meet(&mut self, peer: Address, knew_another: bool) {
        self.host.meet(peer, knew_another);
        if knew_another {
            self.straight.withdraw(&mut self.endpoint, peer);
            let before = std::mem::take(&mut self.peers[peer as usize]);
            if let Some((_, known)) = before.place {
                self.endpoint.forget(known);
            }
            self.callers.retain(|caller| *caller != peer);
            self.parting.retain(|parting| *parting != peer);
        }
    }
}
