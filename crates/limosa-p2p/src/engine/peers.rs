//! The engine's peers: their devices, the memory shared with peers on this host, and peers that join later.

use super::{Engine, Watch};
use limosa_device::shm::HostMemory;
use limosa_device::{Address, Device, DeviceId, Peer, PeerMemory};
use std::io;
use std::sync::Arc;

impl Engine {
    /// Returns the shared structures of this host's processes, if they share memory.
    pub fn host_memory(&self) -> Option<&Arc<HostMemory>> {
        self.host.as_ref()
    }

    /// Returns access to the memory of processes on this host, if a device offers it.
    pub fn peer_memory(&self) -> Option<&Arc<dyn PeerMemory>> {
        self.memory.as_ref()
    }

    /// Returns the same as [`Engine::host_memory`], which must exist.
    ///
    /// # Panics
    /// If no memory is shared.
    pub fn expect_host_memory(&self) -> &HostMemory {
        self.host.as_ref().expect("asked for only where memory is shared")
    }

    /// Returns the same as [`Engine::peer_memory`], which must exist.
    ///
    /// # Panics
    /// If no memory is shared.
    pub fn expect_peer_memory(&self) -> &dyn PeerMemory {
        &**self.memory.as_ref().expect("asked for only where memory is shared")
    }

    /// Returns the address of `peer` in [`Engine::host_memory`] and [`Engine::peer_memory`], if it is on this host and
    /// shares memory with this process.
    pub fn host_address(&self, peer: Peer) -> Option<Address> {
        self.core.lock().devices.host_address(peer)
    }

    /// Returns the name of the device that reaches `peer`.
    pub fn device_name(&self, peer: Peer) -> &'static str {
        self.core.lock().devices.name(peer)
    }

    /// Returns whether `peer` is alive, as far as its device knows.
    pub fn is_alive(&self, peer: Peer) -> bool {
        self.core.lock().devices.is_alive(peer)
    }

    /// Announces that a layer begins, or ceases, to serve unsolicited urgent packets, for example for the memory of a
    /// window. While any layer does, a leaving thread polls once more after it has set the doorbell. Otherwise a packet
    /// that arrives just then would not wake the helper.
    pub fn serve_others(&self, begins: bool) {
        let mut core = self.core.lock();
        let served = core.state.served;
        core.state.served = if begins { served + 1 } else { served.saturating_sub(1) };
        self.leave(core);
    }

    /// Prepares for a process that will join this host as number `next`.
    ///
    /// # Errors
    /// The operating system's, when there is not enough memory.
    pub fn prepare(&self, next: Peer) -> io::Result<()> {
        self.core.lock().devices.prepare(next)
    }

    /// Adds processes that have joined this host. `true`: the number was in use by another process, which is forgotten;
    /// neither process may have sent anything yet.
    ///
    /// # Errors
    /// The operating system's, when no further thread can be created.
    pub fn meet(&self, peers: &[(Peer, bool)]) -> io::Result<()> {
        let mut core = self.core.lock();
        for (peer, knew_another) in peers {
            if *knew_another {
                core.state.forget(*peer);
            }
            core.devices.meet(*peer, *knew_another);
        }
        self.leave(core);
        let helper = self.helper.lock();
        match (self.this.upgrade().filter(|_| helper.is_some()), &self.deaths) {
            (Some(this), Some(deaths)) => deaths.restart(&this),
            _ => Ok(()),
        }
    }

    /// Adds a device to a running engine, for peers that join later (spawned or connected processes).
    ///
    /// # Errors
    /// The operating system's, when its descriptor cannot be watched.
    pub fn add_device(&self, device: Box<dyn Device>) -> io::Result<DeviceId> {
        let mut core = self.core.lock();
        let id = core.devices.add_device(device);
        let descriptor = core.devices.wait_descriptor(id)?;
        drop(core);
        if let Some((descriptor, ready)) = descriptor {
            let watch = Watch::new(descriptor, ready);
            // Holding the helper's lock prevents that threads start or stop meanwhile.
            let helper = self.helper.lock();
            if let Some(this) = self.this.upgrade().filter(|_| helper.is_some()) {
                watch.start(&this)?;
            }
            self.watched.lock().push(watch);
        }
        Ok(id)
    }

    /// Forgets a peer on a device of [`Engine::add_device`], whose number another process takes, or which returns.
    /// Pending operations with it fail.
    pub fn forget_peer(&self, peer: Peer) {
        let mut core = self.core.lock();
        core.state.forget(peer);
        self.leave(core);
    }

    /// Adds a peer that has joined, at this address of this device. Returns its number, which is the next one.
    ///
    /// # Panics
    /// If there is no such device.
    pub fn add_peer(&self, device: DeviceId, address: Address) -> Peer {
        let mut core = self.core.lock();
        core.state.add_peer();
        core.devices.add_peer(device, address)
    }
}
