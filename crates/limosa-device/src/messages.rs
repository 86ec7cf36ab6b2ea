//! The messages-only device: processes of this host that exchange packets and share nothing else, as those of different
//! hosts would.
//!
//! It carries packets as the [shared-memory device](crate::shm) does, in a part of the shared file of its own, and
//! hides all else: no shared memory above the packets, no access to a peer's memory, no information on whether a peer
//! is polling. Every test can be run over it (`LIMOSA_DEVICE=messages`).

use crate::shm::ShmDevice;
use crate::{Address, Data, DeathWatch, Device, DeviceError, Meta, Sent, Urgency};
use std::io;
use std::sync::Arc;

/// The messages-only device of one process.
pub struct MessagesDevice(ShmDevice);

impl MessagesDevice {
    /// Makes a device that carries packets by `packets`.
    pub fn new(packets: ShmDevice) -> MessagesDevice {
        MessagesDevice(packets)
    }
}

impl Device for MessagesDevice {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn max_data(&self) -> usize {
        self.0.max_data()
    }

    fn send(&mut self, to: Address, meta: &Meta, data: Data<'_>, urgency: Urgency) -> Result<Sent, DeviceError> {
        self.0.send(to, meta, data, urgency)
    }

    fn want_room(&mut self, to: Address) {
        self.0.want_room(to);
    }

    fn poll(&mut self, sink: &mut dyn FnMut(Address, &Meta, &[u8])) -> Result<bool, DeviceError> {
        self.0.poll(sink)
    }

    /// Whether a thread of the peer polls is not known: its helper thread is woken.
    fn alert(&self, to: Address) {
        self.0.alert(to);
    }

    fn is_attended(&self, _to: Address) -> bool {
        false
    }

    fn death_watch(&self) -> Option<Arc<DeathWatch>> {
        self.0.death_watch()
    }

    fn notice_deaths(&mut self) {
        self.0.notice_deaths();
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.0.is_alive(peer)
    }

    fn prepare(&self, next: Address) -> io::Result<()> {
        self.0.prepare(next)
    }

    fn meet(&mut self, peer: Address, knew_another: bool) {
        self.0.meet(peer, knew_another);
    }
}
