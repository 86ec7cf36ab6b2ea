//! Ports: the entries of processes through which the other processes of a machine reach them.

use super::MAX_PEERS;
use crate::Address;
use limosa_base::doorbell::Doorbell;
use limosa_base::fence;
use limosa_base::joint::Joint;
use limosa_base::process::Identity;
use limosa_base::segment::{Foreign, Shared};
use limosa_base::spread::Processor;
use limosa_base::sync::{AtomicU32, AtomicU64, Ordering};
use limosa_base::vm;
use std::any::Any;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

/// Copies that a process can help with at once.
const JOINTS: usize = 4;

const PROBE_VALUE: u64 = 0x4c49_4d4f_5341_2131;
/// A word that peers read from this process's memory to test whether they can.
static PROBE: AtomicU64 = AtomicU64::new(PROBE_VALUE);

/// The entry of a process, through which others reach it.
#[repr(C, align(128))]
pub(super) struct Port {
    pub doorbell: Doorbell,
    /// Identity of the process, see [`Identity`]; the process id is 0 until it has joined.
    pub pid: AtomicU32,
    started: AtomicU64,
    namespace: AtomicU64,
    /// Its word about its fences.
    fences: fence::Word,
    pub place: Processor,
    probe_address: AtomicU64,
    /// 1: it has finished in good order, and is not missed when it ends.
    pub has_left: AtomicU32,
    /// 1: another process has seen that it has died.
    pub has_died: AtomicU32,
    /// Number of processes that have had this number before.
    holder: AtomicU32,
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
        self.is_that_of(Identity::own());
    }

    /// Makes it the port of a process that has not joined yet.
    pub(super) fn clear(&self) {
        let next = self.holder().wrapping_add(1);
        let words = (&raw const *self).cast::<AtomicU64>();
        for at in 0..size_of::<Port>() / size_of::<AtomicU64>() {
            // SAFETY: inside this port, which consists of atomics that are zero at first; no process uses it now.
            unsafe { (*words.add(at)).store(0, Ordering::Relaxed) };
        }
        self.holder.store(next, Ordering::Release);
    }

    /// Which of the processes that have had this number it is: counted from 0.
    pub(super) fn holder(&self) -> u32 {
        self.holder.load(Ordering::Acquire)
    }

    /// Enters the process of this port.
    pub(super) fn is_that_of(&self, process: Identity) {
        self.started.store(process.started, Ordering::Relaxed);
        self.namespace.store(process.namespace, Ordering::Relaxed);
        self.pid.store(process.pid, Ordering::Release);
    }

    /// Whether this process can read the memory of the port's process; tries it. `None` if that has not joined yet.
    pub(super) fn can_be_read(&self) -> Option<bool> {
        let pid = self.pid.load(Ordering::Acquire);
        let address = self.probe_address.load(Ordering::Relaxed);
        (pid != 0).then(|| vm::read_word(pid, address).is_ok_and(|value| value == PROBE_VALUE))
    }

    /// Whose port this is; `None` if the process has not joined yet.
    pub(super) fn process(&self) -> Option<Identity> {
        let pid = self.pid.load(Ordering::Acquire);
        let (started, namespace) = (self.started.load(Ordering::Relaxed), self.namespace.load(Ordering::Relaxed));
        (pid != 0).then_some(Identity { pid, started, namespace })
    }

    /// False if the process has joined and then ended. Takes system calls: call this only after a long wait.
    #[cold]
    pub(super) fn is_alive(&self) -> bool {
        self.process().is_none_or(|process| process.is_alive())
    }
}

pub(super) const PORT_BYTES: usize = size_of::<Port>().next_multiple_of(1024);

#[repr(C)]
struct FirstPort(Port);
// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for FirstPort {}

/// The ports of all processes of a host.
pub(super) struct Ports {
    memory: Shared<FirstPort>,
    /// The ports with the doorbells, if not these: a process has one doorbell, whatever devices reach it.
    bells: Option<Arc<Ports>>,
}

impl Ports {
    pub(super) fn new(fd: BorrowedFd<'_>, offset: u64, bytes: usize, bells: Option<Arc<Ports>>) -> io::Result<Ports> {
        Ok(Ports { memory: Shared::new(fd, offset, bytes)?, bells })
    }

    #[inline]
    pub(super) fn of(&self, peer: Address) -> &Port {
        // SAFETY: a port consists of atomics, valid for any bytes; `slice` checks the range.
        unsafe { &self.memory.mapping().slice::<Port>(peer as usize * PORT_BYTES, 1)[0] }
    }

    /// Returns the doorbell of a process.
    #[inline]
    pub(super) fn doorbell(&self, peer: Address) -> &Doorbell {
        match &self.bells {
            None => &self.of(peer).doorbell,
            Some(bells) => &bells.of(peer).doorbell,
        }
    }
}

impl fence::Members for Ports {
    fn word(&self, member: u32) -> &fence::Word {
        &self.of(member).fences
    }
}

/// The doorbell of a process; its memory stays mapped as long as this is held.
#[derive(Clone)]
pub struct DoorbellRef {
    bell: NonNull<Doorbell>,
    _keeps_mapped: Arc<dyn Any + Send + Sync>,
}

// SAFETY: a doorbell is shared between threads and processes; what it lies in stays mapped as long as this value lives.
unsafe impl Send for DoorbellRef {}
// SAFETY: as above.
unsafe impl Sync for DoorbellRef {}

impl DoorbellRef {
    pub(super) fn new(ports: &Arc<Ports>, of: Address) -> DoorbellRef {
        DoorbellRef { bell: NonNull::from(ports.doorbell(of)), _keeps_mapped: ports.clone() }
    }

    /// Returns a doorbell that no other process knows: for an engine without peers on this host.
    pub fn private() -> DoorbellRef {
        let bell: Arc<Doorbell> = Arc::default();
        DoorbellRef { bell: NonNull::from(&*bell), _keeps_mapped: bell }
    }
}

impl std::ops::Deref for DoorbellRef {
    type Target = Doorbell;

    #[inline]
    fn deref(&self) -> &Doorbell {
        // SAFETY: the doorbell lies in what `_keeps_mapped` keeps, at an address that does not change.
        unsafe { self.bell.as_ref() }
    }
}
