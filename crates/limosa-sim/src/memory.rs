//! Access to the memory of the other processes of a simulated network, all of which live in this process.

use crate::Network;
use limosa_base::vm::{self, Slice};
use limosa_device::{Address, Joint, PeerMemory};
use std::io;

/// Memory of all processes. The kernel checks the addresses, as it does between processes.
pub struct SimMemory(pub Network);

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
