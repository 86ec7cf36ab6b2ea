//! The engine's peers: how each is reached, what this process shares with those of its host, and peers that join later.

use super::{Engine, Watch};
use limosa_device::shm::HostMemory;
use limosa_device::{Address, Device, DeviceId, Peer, PeerMemory};
use std::io;
use std::sync::Arc;

impl Engine {
    /// What the processes of this host share beside messages, if they share memory.
    pub fn host_memory(&self) -> Option<&Arc<HostMemory>> {
        self.host.as_ref()
    }

    /// Direct access to the memory of processes of this host, if any device offers it.
    pub fn peer_memory(&self) -> Option<&Arc<dyn PeerMemory>> {
        self.memory.as_ref()
    }

    /// As [`Engine::host_memory`], for those who know that it is there.
    ///
    /// # Panics
    /// No memory is shared.
    pub fn expect_host_memory(&self) -> &HostMemory {
        self.host.as_ref().expect("asked for only where memory is shared")
    }

    /// As [`Engine::peer_memory`], for those who know that it is there.
    ///
    /// # Panics
    /// No memory is shared.
    pub fn expect_peer_memory(&self) -> &dyn PeerMemory {
        &**self.memory.as_ref().expect("asked for only where memory is shared")
    }

    /// The address of `peer` in [`Engine::host_memory`] and [`Engine::peer_memory`], if it is on this host and shares
    /// memory with this process.
    pub fn host_address(&self, peer: Peer) -> Option<Address> {
        self.core.lock().devices.host_address(peer)
    }

    /// The name of the device that reaches `peer`.
    pub fn device_name(&self, peer: Peer) -> &'static str {
        self.core.lock().devices.name(peer)
    }

    /// Whether `peer` lives, as far as its device knows.
    pub fn is_alive(&self, peer: Peer) -> bool {
        self.core.lock().devices.is_alive(peer)
    }

    /// A layer begins, or ceases, to be something for which others send urgent packets unasked, such as the memory of a
    /// window. While there is any, a thread that leaves the library looks once more after it has said so: otherwise the
    /// helper would not be woken for a packet that comes just then.
    pub fn serve_others(&self, begins: bool) {
        let mut core = self.core.lock();
        let served = core.state.served;
        core.state.served = if begins { served + 1 } else { served.saturating_sub(1) };
        self.leave(core);
    }

    /// Makes ready what a process needs that is to join this host as number `next`.
    ///
    /// # Errors
    /// The operating system's, when there is not enough memory.
    pub fn prepare(&self, next: Peer) -> io::Result<()> {
        self.core.lock().devices.prepare(next)
    }

    /// Gets to know processes that have joined this host. `true`: this process knew another one by this number, of which
    /// it forgets everything; neither of the two may have sent anything yet.
    ///
    /// # Errors
    /// The operating system's, when there can be no more threads.
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

    /// Adds a device to an engine that runs, for peers that join later (spawned or connected processes).
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
            // Threads neither start nor stop meanwhile.
            let helper = self.helper.lock();
            if let Some(this) = self.this.upgrade().filter(|_| helper.is_some()) {
                watch.start(&this)?;
            }
            self.watched.lock().push(watch);
        }
        Ok(id)
    }

    /// Forgets all of a peer that is on a device of [`Engine::add_device`]: another process gets its number, or it comes
    /// back. What is under way with it ends.
    pub fn forget_peer(&self, peer: Peer) {
        let mut core = self.core.lock();
        core.state.forget(peer);
        self.leave(core);
    }

    /// Adds a peer that has joined: the one at this address of this device. Its number is the next one.
    ///
    /// # Panics
    /// There is no such device.
    pub fn add_peer(&self, device: DeviceId, address: Address) -> Peer {
        let mut core = self.core.lock();
        core.state.add_peer();
        core.devices.add_peer(device, address)
    }
}
