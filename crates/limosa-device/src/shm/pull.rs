//! Copying between processes by system calls that read or write a peer's memory.

use super::ports::Ports;
use crate::{Address, PeerMemory};
use limosa_base::joint::Joint;
use limosa_base::sync::{AtomicU8, Ordering};
use limosa_base::vm::{self, Slice};
use std::io;
use std::sync::Arc;

/// Longest stretch of one system call when pulling.
const PULL_STEP: usize = 1 << 30;

/// The memory of all peers.
pub(super) struct CrossMemory {
    ports: Arc<Ports>,
    enabled: bool,
    /// Accessibility of each peer.
    known: Box<[AtomicU8]>,
}

const UNKNOWN: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

impl PeerMemory for CrossMemory {
    fn can_access(&self, peer: Address) -> bool {
        if !self.enabled {
            return false;
        }
        match self.known[peer as usize].load(Ordering::Relaxed) {
            UNKNOWN => self.find_out(peer),
            known => known == YES,
        }
    }

    unsafe fn read(&self, from: Address, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()> {
        // SAFETY: the caller vouches for the local slices.
        self.copy_all(from, local, remote, |pid, locals, remotes| unsafe { vm::read(pid, locals, remotes) })
    }

    unsafe fn write(&self, to: Address, local: &mut [Slice], remote: &mut [Slice]) -> io::Result<()> {
        // SAFETY: the caller vouches for the local slices and for what is overwritten at the peer.
        self.copy_all(to, local, remote, |pid, locals, remotes| unsafe { vm::write(pid, locals, remotes) })
    }

    fn joints(&self, of: Address) -> &[Joint] {
        &self.ports.of(of).joints
    }

    fn is_waiting(&self, peer: Address) -> bool {
        self.ports.doorbell(peer).is_waited_at()
    }

    fn is_polling(&self, peer: Address) -> bool {
        self.ports.doorbell(peer).is_polled()
    }

    fn is_alive(&self, peer: Address) -> bool {
        self.ports.of(peer).is_alive()
    }
}

impl CrossMemory {
    pub(super) fn new(ports: Arc<Ports>, peers: u32, enabled: bool) -> CrossMemory {
        CrossMemory { ports, enabled, known: (0..peers).map(|_| AtomicU8::new(UNKNOWN)).collect() }
    }

    /// Another process has this number now.
    pub(super) fn forget(&self, peer: Address) {
        self.known[peer as usize].store(UNKNOWN, Ordering::Relaxed);
    }

    #[cold]
    fn find_out(&self, peer: Address) -> bool {
        // A peer that has not joined yet may be accessible later.
        let answer = self.ports.of(peer).can_be_read();
        if let Some(works) = answer {
            self.known[peer as usize].store(if works { YES } else { NO }, Ordering::Relaxed);
        }
        answer == Some(true)
    }

    fn copy_all(
        &self,
        peer: Address,
        local: &mut [Slice],
        remote: &mut [Slice],
        copy: impl Fn(u32, &[Slice], &[Slice]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let pid = self.ports.of(peer).pid.load(Ordering::Relaxed);
        let (mut l, mut r) = (0, 0);
        loop {
            skip_done(local, &mut l);
            skip_done(remote, &mut r);
            if l == local.len() || r == remote.len() {
                return if l == local.len() && r == remote.len() {
                    Ok(())
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
            let locals = &local[l..local.len().min(l + vm::MAX_SLICES)];
            let remotes = &remote[r..remote.len().min(r + vm::MAX_SLICES)];
            let mut copied = copy(pid, locals, remotes)?;
            if copied == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            debug_assert!(copied <= 2 * PULL_STEP);
            let mut rest = copied;
            take_front(local, &mut l, &mut copied);
            take_front(remote, &mut r, &mut rest);
        }
    }
}

fn skip_done(slices: &[Slice], index: &mut usize) {
    while *index < slices.len() && slices[*index].iov_len == 0 {
        *index += 1;
    }
}

/// Removes `bytes` from the front of the slices from `index` on.
fn take_front(slices: &mut [Slice], index: &mut usize, bytes: &mut usize) {
    while *bytes > 0 {
        let slice = &mut slices[*index];
        let part = slice.iov_len.min(*bytes);
        slice.iov_base = slice.iov_base.wrapping_byte_add(part);
        slice.iov_len -= part;
        *bytes -= part;
        if slice.iov_len == 0 {
            *index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::shm::tests::pair;
    use limosa_base::vm;

    #[test]
    fn pulling_joins_slices_of_different_shapes() {
        let (a, b) = pair();
        let memory = b.peer_memory();
        assert!(memory.can_access(0));
        let source: Vec<u8> = (0..=255).collect();
        let mut target = vec![0u8; 256];
        let at = |base: u64, offset: usize, len| vm::slice(base + offset as u64, len);
        let (from, to) = (source.as_ptr() as u64, target.as_mut_ptr() as u64);
        let mut remote = [at(from, 0, 10), at(from, 10, 0), at(from, 10, 246)];
        let mut local = [at(to, 0, 100), at(to, 100, 156)];
        // SAFETY: the local slices cover `target`, which no other code uses.
        unsafe { memory.read(0, &mut local, &mut remote).expect("pull") };
        assert_eq!(source, target);
        drop(a);
    }
}
