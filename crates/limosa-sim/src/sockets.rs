//! Processes that are pairwise connected by sockets.

use limosa_device::sockets::SocketDevice;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::os::fd::OwnedFd;

/// Creates, for each of `size` processes, its sockets to the other processes, by their numbers.
///
/// # Errors
/// The operating system's.
pub fn socket_pairs(size: u32) -> io::Result<Vec<Vec<Option<OwnedFd>>>> {
    let size = size as usize;
    let mut fds: Vec<Vec<Option<OwnedFd>>> = (0..size).map(|_| (0..size).map(|_| None).collect()).collect();
    for (a, b) in (0..size).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        (fds[a][b], fds[b][a]) = (Some(near), Some(far));
    }
    Ok(fds)
}

/// Creates a device over these sockets.
///
/// # Errors
/// The operating system's.
pub fn socket_device(fds: Vec<Option<OwnedFd>>) -> io::Result<SocketDevice> {
    let device = SocketDevice::new()?;
    for (peer, fd) in fds.into_iter().enumerate() {
        fd.map_or(Ok(()), |fd| device.sockets().put(peer as u32, fd))?;
    }
    Ok(device)
}

/// Creates the devices of `size` pairwise connected processes.
///
/// # Errors
/// The operating system's.
pub fn socket_devices(size: u32) -> io::Result<Vec<SocketDevice>> {
    socket_pairs(size)?.into_iter().map(socket_device).collect()
}
