//! The devices of an engine, and the device that reaches each peer.
//!
//! A peer is reached by one device, chosen when the peer is added. The shared-memory device is called directly and not
//! through its trait: it carries most traffic, and the compiler can inline it.
//!
//! No device slows down another device. Polling a device with a descriptor takes a system call, so it is polled when
//! its watcher has seen the descriptor readable ([`Devices::wait_descriptors`]), and otherwise at long intervals. From
//! then on the watcher rests, since it would only take processor time from threads that poll anyway. The device is
//! polled each time, and after many polls in vain at intervals. The watcher resumes when no thread polls any more
//! ([`Devices::watch_again`]).

use crate::shm::{HostMemory, ShmDevice};
use crate::{Address, Data, DeathWatch, Device, DeviceError, Joint, Meta, Peer, PeerMemory, Sent, Slice, Urgency};
use limosa_base::readiness::Ready;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A device with a descriptor is polled at least this often, in polls of the engine.
const POLLS_UNASKED: u32 = 64;
/// Interval of polls of a device whose watcher rests: 1, or `POLLS_IN_DOUBT` after `POLLS_IN_VAIN` polls in vain.
const POLLS_IN_VAIN: u32 = 256;
const POLLS_IN_DOUBT: u32 = 8;

/// The devices of an engine.
#[derive(Default)]
pub struct Devices {
    shm: Option<ShmDevice>,
    others: Vec<Other>,
    /// `None`: all peers are on the shared-memory device, which knows each by its own number.
    routes: Option<Box<Routes>>,
    /// Direct access to the memory of the peers of one device.
    memory: Option<Arc<dyn PeerMemory>>,
    /// The device whose peers share memory with this process, or let it access theirs.
    memory_device: DeviceId,
    /// The watcher of a device rests.
    unwatched: bool,
    /// The last poll was not only one of the shared-memory device.
    polled_others: bool,
    /// Notes of what has ended ([`Device::next_ended`]).
    ended: Vec<u64>,
}

/// A device that is reached through its trait.
struct Other {
    device: Box<dyn Device>,
    /// Whether its descriptor was readable, if it has one.
    ready: Option<Arc<Ready>>,
    /// Polls of the engine since its last one.
    polls: u32,
    /// Polls since its watcher rests, or something has come.
    in_vain: u32,
}

/// Which device reaches which peer. The shared-memory device has number 0, the others follow.
#[derive(Default)]
struct Routes {
    of: Vec<Route>,
    /// The peer at each address, by device.
    peers: Vec<Vec<Peer>>,
}

impl Routes {
    /// Returns all `size` processes of the shared-memory device, each by its own number.
    fn to_all_of_shm(size: u32) -> Routes {
        Routes { of: (0..size).map(|address| Route { device: 0, address }).collect(), peers: vec![(0..size).collect()] }
    }
}

#[derive(Clone, Copy)]
struct Route {
    device: u8,
    address: Address,
}

/// A device's number among the devices of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceId(u8);

impl DeviceId {
    /// The shared-memory device.
    pub const SHM: DeviceId = DeviceId(0);
}

impl From<ShmDevice> for Devices {
    /// Returns the shared-memory device alone, which knows each peer by its number.
    fn from(shm: ShmDevice) -> Devices {
        let memory = Some(shm.peer_memory());
        Devices { shm: Some(shm), memory, ..Devices::default() }
    }
}

impl Devices {
    /// Makes devices of the shared-memory device, if any, to which peers are to be added.
    pub fn new(shm: Option<ShmDevice>) -> Devices {
        let memory = shm.as_ref().map(ShmDevice::peer_memory);
        Devices { shm, routes: Some(Box::default()), memory, ..Devices::default() }
    }

    /// Adds a device; its peers follow.
    pub fn add_device(&mut self, device: Box<dyn Device>) -> DeviceId {
        let ready = device.wait_descriptor().is_some().then(Arc::default);
        // A first poll finds packets that came before the descriptor was watched.
        self.others.push(Other { device, ready, polls: POLLS_UNASKED, in_vain: 0 });
        DeviceId(u8::try_from(self.others.len()).expect("an engine has few devices"))
    }

    /// Sets how the memory of the peers of `device` is accessed. For engines without shared-memory device, which offers
    /// this itself.
    ///
    /// # Panics
    /// There is a shared-memory device.
    pub fn set_memory(&mut self, device: DeviceId, memory: Arc<dyn PeerMemory>) {
        assert!(self.shm.is_none(), "one device at most offers access to memory");
        (self.memory, self.memory_device) = (Some(memory), device);
    }

    /// Adds the next peer: the process at this address of this device.
    ///
    /// # Panics
    /// There is no such device.
    pub fn add_peer(&mut self, device: DeviceId, address: Address) -> Peer {
        let is_there =
            if device == DeviceId::SHM { self.shm.is_some() } else { usize::from(device.0) <= self.others.len() };
        assert!(is_there, "there is no device {}", device.0);
        let shared = self.shm.as_ref().map_or(0, ShmDevice::size);
        let routes = self.routes.get_or_insert_with(|| Box::new(Routes::to_all_of_shm(shared)));
        let peer = routes.of.len() as Peer;
        routes.of.push(Route { device: device.0, address });
        let at = usize::from(device.0);
        routes.peers.resize_with(routes.peers.len().max(at + 1), Vec::new);
        let known = &mut routes.peers[at];
        known.resize(known.len().max(address as usize + 1), Peer::MAX);
        known[address as usize] = peer;
        peer
    }

    #[inline]
    fn route(&self, peer: Peer) -> Route {
        match &self.routes {
            None => Route { device: 0, address: peer },
            Some(routes) => routes.of[peer as usize],
        }
    }

    fn other(&self, route: Route) -> &dyn Device {
        &*self.others[usize::from(route.device) - 1].device
    }

    fn device(&self, route: Route) -> &dyn Device {
        match &self.shm {
            Some(shm) if route.device == 0 => shm,
            _ => self.other(route),
        }
    }

    /// Returns the name of the device that reaches `peer`.
    pub fn name(&self, peer: Peer) -> &'static str {
        self.device(self.route(peer)).name()
    }

    /// Most data bytes in one packet to `peer`.
    #[inline]
    pub fn max_data(&self, peer: Peer) -> usize {
        self.device(self.route(peer)).max_data()
    }

    /// Most data bytes in one packet to any peer.
    pub fn least_max_data(&self) -> usize {
        let others = self.others.iter().map(|other| other.device.max_data());
        others.chain(self.shm.iter().map(Device::max_data)).min().unwrap_or(usize::MAX)
    }

    /// As [`Device::is_far`], of the device that reaches `peer`.
    #[inline]
    pub fn is_far(&self, peer: Peer) -> bool {
        let route = self.route(peer);
        route.device != DeviceId::SHM.0 && self.other(route).is_far()
    }

    /// As [`Device::finds_room_by_polls`], of the device that reaches `peer`.
    pub fn finds_room_by_polls(&self, peer: Peer) -> bool {
        let route = self.route(peer);
        route.device != DeviceId::SHM.0 && self.other(route).finds_room_by_polls()
    }

    /// As [`Device::send`].
    ///
    /// # Errors
    /// As for [`Device::send`].
    #[inline]
    pub fn send(&mut self, to: Peer, meta: &Meta, data: Data<'_>, urgency: Urgency) -> Result<Sent, DeviceError> {
        let route = self.route(to);
        match &mut self.shm {
            Some(shm) if route.device == 0 => shm.send(route.address, meta, data, urgency),
            _ => self.others[usize::from(route.device) - 1].device.send(route.address, meta, data, urgency),
        }
        .map_err(|error| self.of_peer(route.device, error))
    }

    /// As [`Device::send_lent`].
    ///
    /// # Errors
    /// As for [`Device::send`].
    ///
    /// # Safety
    /// As for [`Device::send_lent`].
    pub unsafe fn send_lent(
        &mut self,
        to: Peer,
        meta: &Meta,
        bytes: &[u8],
        urgency: Urgency,
    ) -> Result<Sent, DeviceError> {
        let route = self.route(to);
        let Some(other) = usize::from(route.device).checked_sub(1).and_then(|at| self.others.get_mut(at)) else {
            return self.send(to, meta, Data::Bytes(bytes), urgency);
        };
        // SAFETY: the caller's promise is the same.
        let sent = unsafe { other.device.send_lent(route.address, meta, bytes, urgency) };
        sent.map_err(|error| self.of_peer(route.device, error))
    }

    /// As [`Device::expect_straight`].
    ///
    /// # Safety
    /// As for [`Device::expect_straight`].
    pub unsafe fn expect_straight(&mut self, from: Peer, room: Slice, note: u64) -> Option<u64> {
        let route = self.route(from);
        let other = self.others.get_mut(usize::from(route.device).checked_sub(1)?)?;
        // SAFETY: the caller's promise is the same.
        unsafe { other.device.expect_straight(route.address, room, note) }
    }

    /// As [`Device::send_straight`].
    ///
    /// # Errors
    /// As for [`Device::send_straight`].
    ///
    /// # Safety
    /// As for [`Device::send_straight`].
    pub unsafe fn send_straight(&mut self, to: Peer, ticket: u64, bytes: Slice, note: u64) -> Result<(), DeviceError> {
        let route = self.route(to);
        let Some(other) = usize::from(route.device).checked_sub(1).and_then(|at| self.others.get_mut(at)) else {
            return Err(DeviceError::Corrupt { peer: to, what: "a ticket although it shares memory" });
        };
        // SAFETY: the caller's promise is the same.
        let sent = unsafe { other.device.send_straight(route.address, ticket, bytes, note) };
        sent.map_err(|error| self.of_peer(route.device, error))
    }

    /// As [`Device::next_ended`], of all that had ended by the last poll.
    #[inline]
    pub fn next_ended(&mut self) -> Option<u64> {
        self.ended.pop()
    }

    /// As [`Device::is_transferring`], of any device.
    pub fn is_transferring(&self) -> bool {
        self.others.iter().any(|other| other.device.is_transferring())
    }

    /// As [`Device::packets_to`].
    pub fn packets_to(&self, to: Peer) -> u32 {
        let route = self.route(to);
        self.device(route).packets_to(route.address)
    }

    /// As [`Device::is_away`].
    pub fn is_away(&self, to: Peer, count: u32) -> bool {
        let route = self.route(to);
        self.device(route).is_away(route.address, count)
    }

    /// As [`ShmDevice::try_send`]; false for the peers of other devices.
    #[inline(always)]
    pub fn try_send(&mut self, to: Peer, meta: &Meta, bytes: &[u8]) -> bool {
        let route = self.route(to);
        match &mut self.shm {
            Some(shm) if route.device == 0 => shm.try_send(route.address, meta, bytes),
            _ => false,
        }
    }

    /// As [`ShmDevice::try_take`]; `None` unless all peers are of that device.
    #[inline(always)]
    pub fn try_take(&mut self, from: Peer, wanted: &Meta, mask: u64, to: &mut [u8]) -> Option<(u64, usize)> {
        match (&mut self.shm, &self.routes) {
            (Some(shm), None) => shm.try_take(from, wanted, mask, to),
            _ => None,
        }
    }

    /// As [`Device::want_room`].
    pub fn want_room(&mut self, to: Peer) {
        let route = self.route(to);
        match &mut self.shm {
            Some(shm) if route.device == 0 => shm.want_room(route.address),
            _ => self.others[usize::from(route.device) - 1].device.want_room(route.address),
        }
    }

    /// As [`Device::release`], on all devices.
    ///
    /// # Errors
    /// As for [`Device::release`].
    pub fn release(&mut self) -> Result<(), DeviceError> {
        for at in 0..self.others.len() {
            let released = self.others[at].device.release();
            released.map_err(|error| self.of_peer(at as u8 + 1, error))?;
        }
        Ok(())
    }

    /// Whether a device is not watched, since it is polled often.
    #[inline]
    pub fn is_unwatched(&self) -> bool {
        self.unwatched
    }

    /// Whether the last poll was one of a device other than that of shared memory, too.
    #[inline]
    pub fn has_polled_others(&self) -> bool {
        self.polled_others
    }

    /// Resumes resting watchers, when no thread polls any more.
    #[inline]
    pub fn watch_again(&mut self) {
        if std::mem::take(&mut self.unwatched) {
            for other in &mut self.others {
                other.device.rest();
                other.in_vain = 0;
                let _ = other.ready.as_ref().is_some_and(|ready| ready.take());
            }
        }
    }

    /// As [`Device::is_drained`], of all devices.
    pub fn is_drained(&mut self) -> bool {
        self.others.iter_mut().all(|other| other.device.is_drained())
    }

    /// As [`Device::poll`], on all devices.
    ///
    /// # Errors
    /// As for [`Device::poll`].
    #[inline]
    pub fn poll(&mut self, sink: &mut dyn FnMut(Peer, &Meta, &[u8])) -> Result<bool, DeviceError> {
        match (&mut self.shm, &self.routes) {
            (Some(shm), None) => shm.poll(sink),
            _ => self.poll_all(sink),
        }
    }

    fn poll_all(&mut self, sink: &mut dyn FnMut(Peer, &Meta, &[u8])) -> Result<bool, DeviceError> {
        let mut any = false;
        let mut unwatched = false;
        self.polled_others = false;
        let empty = Vec::new();
        let peers = |device: usize| self.routes.as_ref().and_then(|routes| routes.peers.get(device)).unwrap_or(&empty);
        if let Some(shm) = &mut self.shm {
            let known = peers(0);
            any |= poll_known(shm, known, sink)?;
        }
        for (index, other) in self.others.iter_mut().enumerate() {
            if other.is_due() {
                self.polled_others = true;
                let known = peers(index + 1);
                let polled = poll_known(&mut *other.device, known, sink);
                if !matches!(polled, Ok(false)) {
                    // There may be more packets, which the device does not announce again; after an error, too.
                    other.polls = POLLS_UNASKED;
                    other.in_vain = 0;
                }
                self.ended.extend(std::iter::from_fn(|| other.device.next_ended()));
                if !other.is_unwatched() {
                    other.device.rest();
                }
                self.unwatched |= other.is_unwatched();
                any |= polled?;
            }
            unwatched |= other.is_unwatched();
        }
        self.unwatched = unwatched;
        Ok(any)
    }

    #[cold]
    fn of_peer(&self, device: u8, error: DeviceError) -> DeviceError {
        match self.routes.as_ref().and_then(|routes| routes.peers.get(usize::from(device))) {
            Some(known) => renumbered(error, known),
            None => error,
        }
    }

    /// As [`Device::alert`].
    pub fn alert(&self, to: Peer) {
        let route = self.route(to);
        self.device(route).alert(route.address);
    }

    /// As [`Device::is_attended`].
    pub fn is_attended(&self, to: Peer) -> bool {
        let route = self.route(to);
        self.device(route).is_attended(route.address)
    }

    /// As [`Device::is_alive`].
    pub fn is_alive(&self, peer: Peer) -> bool {
        let route = self.route(peer);
        self.device(route).is_alive(route.address)
    }

    /// As [`Device::death_watch`]: that of the processes of this host, which all devices between them share.
    pub fn death_watch(&self) -> Option<Arc<DeathWatch>> {
        let shm = self.shm.as_ref().and_then(Device::death_watch);
        shm.or_else(|| self.others.iter().find_map(|other| other.device.death_watch()))
    }

    /// As [`Device::notice_deaths`], on all devices.
    pub fn notice_deaths(&mut self) {
        self.shm.iter_mut().for_each(Device::notice_deaths);
        self.others.iter_mut().for_each(|other| other.device.notice_deaths());
    }

    /// Makes ready what devices need for a process that is to join this host as number `next`.
    ///
    /// # Errors
    /// The operating system's, when there is not enough memory.
    pub fn prepare(&self, next: Peer) -> io::Result<()> {
        self.shm.iter().try_for_each(|shm| shm.prepare(next))?;
        self.others.iter().try_for_each(|other| other.device.prepare(next))
    }

    /// Adds a process that has joined this host as number `peer`. `knew_another`: this process knew a different process
    /// of this number, whose state is forgotten.
    pub fn meet(&mut self, peer: Peer, knew_another: bool) {
        self.shm.iter_mut().for_each(|shm| shm.meet(peer, knew_another));
        self.others.iter_mut().for_each(|other| other.device.meet(peer, knew_another));
        self.death_watch().iter().for_each(|watch| watch.meet(peer));
    }

    /// Returns the memory that the processes of this host share, if a device offers it.
    ///
    /// # Errors
    /// The operating system's, when there are no file descriptors left.
    pub fn host_memory(&self) -> io::Result<Option<HostMemory>> {
        self.shm.as_ref().map(ShmDevice::host_memory).transpose()
    }

    /// Direct access to peers' memory, if a device offers it.
    pub fn peer_memory(&self) -> Option<Arc<dyn PeerMemory>> {
        self.memory.clone()
    }

    /// Returns the address of `peer` for direct access to its memory, if that works.
    #[inline]
    pub fn reach(&self, peer: Peer) -> Option<Address> {
        let memory = self.memory.as_ref()?;
        self.host_address(peer).filter(|address| memory.can_access(*address))
    }

    /// Whether a thread of `peer` is known to be in the library and to wait there.
    pub fn is_waiting(&self, peer: Peer) -> bool {
        self.memory.as_ref().zip(self.host_address(peer)).is_some_and(|(memory, address)| memory.is_waiting(address))
    }

    /// Copies of offered messages that process `of` makes together with its receivers; none where memory cannot be
    /// accessed.
    pub fn joints(&self, of: Peer) -> &[Joint] {
        self.memory.as_ref().zip(self.host_address(of)).map_or(&[], |(memory, address)| memory.joints(address))
    }

    /// Returns the address of `peer` in shared memory and for direct access, if it is on the device that offers these.
    #[inline]
    pub fn host_address(&self, peer: Peer) -> Option<Address> {
        let route = self.route(peer);
        (route.device == self.memory_device.0 && self.memory.is_some()).then_some(route.address)
    }

    /// Returns the descriptors to be watched, each with the flag to be set when it is readable (see [`Devices::poll`]).
    ///
    /// # Errors
    /// The operating system's, when there are no file descriptors left.
    pub fn wait_descriptors(&self) -> io::Result<Vec<(OwnedFd, Arc<Ready>)>> {
        self.others.iter().filter_map(|other| other.watched().transpose()).collect()
    }

    /// As [`Devices::wait_descriptors`], for one device; `None` if it has no descriptor.
    ///
    /// # Errors
    /// As for [`Devices::wait_descriptors`].
    pub fn wait_descriptor(&self, device: DeviceId) -> io::Result<Option<(OwnedFd, Arc<Ready>)>> {
        self.others.get(usize::from(device.0).wrapping_sub(1)).map_or(Ok(None), Other::watched)
    }
}

impl Other {
    fn watched(&self) -> io::Result<Option<(OwnedFd, Arc<Ready>)>> {
        let Some((descriptor, ready)) = self.device.wait_descriptor().zip(self.ready.clone()) else { return Ok(None) };
        Ok(Some((descriptor.try_clone_to_owned()?, ready)))
    }

    /// Whether it is to be polled now.
    fn is_due(&mut self) -> bool {
        if self.ready.is_none() {
            return true;
        }
        self.polls += 1;
        let is_unwatched = self.is_unwatched();
        let most = match self.in_vain {
            _ if !is_unwatched => POLLS_UNASKED,
            0..POLLS_IN_VAIN => 1,
            _ => POLLS_IN_DOUBT,
        };
        if self.polls < most {
            return false;
        }
        self.polls = 0;
        self.in_vain = if is_unwatched { self.in_vain.saturating_add(1) } else { 0 };
        true
    }

    /// Whether its watcher rests.
    #[inline]
    fn is_unwatched(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.is_set())
    }
}

/// Polls a device, which knows its peers by their addresses.
#[inline]
fn poll_known(
    device: &mut (impl Device + ?Sized),
    known: &[Peer],
    sink: &mut dyn FnMut(Peer, &Meta, &[u8]),
) -> Result<bool, DeviceError> {
    let mut stranger = false;
    let polled = device.poll(&mut |from, meta, data| match peer_at(known, from) {
        Peer::MAX => stranger = true,
        peer => sink(peer, meta, data),
    });
    if stranger {
        return Err(DeviceError::Corrupt { peer: Peer::MAX, what: "a packet from an address without a known process" });
    }
    match polled.map_err(|error| renumbered(error, known)) {
        // It is reached by another device, or by none.
        Err(DeviceError::Died { peer: Peer::MAX, .. } | DeviceError::Left { peer: Peer::MAX, .. }) => Ok(false),
        polled => polled,
    }
}

/// Returns the peer at an address; an address without a peer gives a number that no peer has.
#[inline]
fn peer_at(known: &[Peer], address: Address) -> Peer {
    known.get(address as usize).copied().unwrap_or(Peer::MAX)
}

/// Returns a device's error with the engine's number of the peer.
fn renumbered(error: DeviceError, known: &[Peer]) -> DeviceError {
    let peer_of = |address| peer_at(known, address);
    match error {
        DeviceError::NoMemory { peer, cause } => DeviceError::NoMemory { peer: peer_of(peer), cause },
        DeviceError::Corrupt { peer, what } => DeviceError::Corrupt { peer: peer_of(peer), what },
        DeviceError::Died { peer, what } => DeviceError::Died { peer: peer_of(peer), what },
        DeviceError::Left { peer, what } => DeviceError::Left { peer: peer_of(peer), what },
        DeviceError::Severed { peer, what } => DeviceError::Severed { peer: peer_of(peer), what },
        error @ DeviceError::Storage { .. } => error,
    }
}
