//! Ports: what the other processes of a machine need to reach a process.

use super::MAX_PEERS;
use crate::Peer;
use limosa_base::doorbell::{Doorbell, State};
use limosa_base::joint::Joint;
use limosa_base::segment::{Foreign, Shared};
use limosa_base::spread::Place;
use limosa_base::sync::{AtomicU32, AtomicU64, Ordering};
use limosa_base::vm;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Copies that a process can help with at once.
const JOINTS: usize = 4;

const PROBE_VALUE: u64 = 0x4c49_4d4f_5341_2131;
/// What peers read from this process's memory to learn whether they can.
static PROBE: AtomicU64 = AtomicU64::new(PROBE_VALUE);

/// What others need to reach a process.
#[repr(C, align(128))]
pub(super) struct Port {
    pub doorbell: Doorbell,
    pub pid: AtomicU32,
    pub place: Place,
    probe_address: AtomicU64,
    /// Bytes of areas taken so far; counted in the port of process 0.
    pub areas: AtomicU64,
    pub joints: [Joint; JOINTS],
    /// Bit `p`: process `p` has opened its lane to this one.
    pub senders: [AtomicU64; MAX_PEERS / 64],
}

impl Port {
    /// This process can be reached from now on.
    pub(super) fn open(&self) {
        self.probe_address.store(&raw const PROBE as u64, Ordering::Relaxed);
        self.pid.store(std::process::id(), Ordering::Release);
    }

    /// True if this process can read the memory of the other; tries it.
    pub(super) fn can_be_read(&self) -> bool {
        let pid = self.pid.load(Ordering::Acquire);
        let address = self.probe_address.load(Ordering::Relaxed);
        pid != 0 && vm::read_word(pid, address).is_ok_and(|value| value == PROBE_VALUE)
    }

    /// True if a thread of the process is in the library and waits there.
    pub(super) fn is_waiting(&self) -> bool {
        self.doorbell.is(State::Awake) || self.doorbell.is(State::Asleep)
    }
}

pub(super) const PORT_BYTES: usize = size_of::<Port>().next_multiple_of(1024);

#[repr(C)]
struct FirstPort(Port);
// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for FirstPort {}

pub(super) struct Ports(Shared<FirstPort>);

impl Ports {
    pub(super) fn new(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Ports> {
        Shared::new(fd, offset, bytes).map(Ports)
    }

    pub(super) fn of(&self, peer: Peer) -> &Port {
        // SAFETY: a port consists of atomics, valid for any bytes; `slice` checks the range.
        unsafe { &self.0.mapping().slice::<Port>(peer as usize * PORT_BYTES, 1)[0] }
    }
}

/// This process's doorbell, alive as long as anybody holds it.
#[derive(Clone)]
pub struct OwnDoorbell {
    ports: Arc<Ports>,
    rank: Peer,
}

impl OwnDoorbell {
    pub(super) fn new(ports: Arc<Ports>, rank: Peer) -> OwnDoorbell {
        OwnDoorbell { ports, rank }
    }
}

impl std::ops::Deref for OwnDoorbell {
    type Target = Doorbell;

    #[inline]
    fn deref(&self) -> &Doorbell {
        &self.ports.of(self.rank).doorbell
    }
}
