//! Shared memory of the processes of a host besides packets: doorbells, the processor on which each runs, and areas.
//!
//! Areas lie behind the lanes in the shared file, and behind their [directory](super::directory). One process reserves
//! an area and sends its place to the others; each maps it. Places are never used twice: an area that is given back
//! leaves a hole in the file, which takes no memory. They do not run out: a place is an offset in a file, of which
//! Linux allows 2^63. A job that takes an area of 1 GB a million times uses 2^50. The address space of a process holds
//! only the areas that it maps at the time.

use super::Ports;
use super::directory::{self, Directory, NamedArea};
use crate::Address;
use limosa_base::descriptor::Descriptor;
use limosa_base::process_lock::Locked;
use limosa_base::segment::{self, Foreign, PAGE, Shared};
use limosa_base::spread::Processor;
use limosa_base::sync::Ordering;
use std::io;
use std::sync::{Arc, OnceLock};

/// Doorbells and areas.
pub struct HostMemory {
    pub(super) fd: Descriptor,
    pub(super) ports: Arc<Ports>,
    /// Offset in the file of the first area.
    pub(super) first: u64,
    pub(super) me: Address,
    pub(super) size: u32,
    /// The names of areas, once they are needed.
    pub(super) directory: OnceLock<Shared<Directory>>,
}

impl HostMemory {
    /// Returns the number of this process.
    pub fn me(&self) -> Address {
        self.me
    }

    /// Wakes the threads of `peer` that sleep, after something was put where they will look. Costs a load when none
    /// does.
    #[inline]
    pub fn ring(&self, peer: Address) {
        self.ports.doorbell(peer).ring_sleepers(false);
    }

    /// As [`HostMemory::ring`], after something urgent: wakes the helper thread of `peer` if no thread is looking.
    pub fn ring_urgently(&self, peer: Address) {
        self.ports.doorbell(peer).ring_sleepers(true);
    }

    /// After something urgent was put where `peer` will look: true if a thread of it is going to see it, false if only
    /// its helper could.
    pub fn is_attended(&self, peer: Address) -> bool {
        self.ports.doorbell(peer).is_attended()
    }

    /// Returns the processor on which `peer` runs.
    pub fn place(&self, peer: Address) -> &Processor {
        &self.ports.of(peer).place
    }

    /// Returns the processors on which all processes run.
    pub fn places(&self) -> Vec<Option<u32>> {
        (0..self.size).map(|peer| self.place(peer).get()).collect()
    }

    /// Process id of `peer`, 0 if it has not joined yet.
    pub fn pid(&self, peer: Address) -> u32 {
        self.ports.of(peer).pid.load(Ordering::Acquire)
    }

    /// False if `peer` has joined and then ended. Takes system calls: call this only after a long wait.
    pub fn is_alive(&self, peer: Address) -> bool {
        self.ports.of(peer).is_alive()
    }

    /// Takes memory for an area of `bytes`, zeroed; returns its place.
    ///
    /// # Errors
    /// The operating system's, when there is not enough memory.
    pub fn create_area(&self, bytes: usize) -> io::Result<u64> {
        let bytes = bytes.next_multiple_of(PAGE);
        let place = self.ports.of(0).areas.fetch_add(bytes as u64, Ordering::Relaxed);
        segment::reserve(self.fd.get()?, self.first + place, bytes)?;
        Ok(place)
    }

    /// Maps the area at `place`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn map_area<T: Foreign>(&self, place: u64, bytes: usize) -> io::Result<Shared<T>> {
        self.map_aligned_area(place, bytes, PAGE)
    }

    /// As [`HostMemory::map_area`], at an address that is a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// The operating system's.
    pub fn map_aligned_area<T: Foreign>(&self, place: u64, bytes: usize, alignment: usize) -> io::Result<Shared<T>> {
        if !place.is_multiple_of(PAGE as u64)
            || place.saturating_add(bytes as u64) > self.ports.of(0).areas.load(Ordering::Relaxed)
        {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a place that is no area"));
        }
        Shared::aligned(self.fd.get()?, self.first + place, bytes, alignment)
    }

    /// Frees the memory of an area. A process that still maps it reads zeroes.
    pub fn free_area(&self, place: u64, bytes: usize) {
        if let Ok(fd) = self.fd.get() {
            segment::release(fd, self.first + place, bytes.next_multiple_of(PAGE));
        }
    }
}

/// Areas with names.
impl HostMemory {
    pub(super) fn directory(&self) -> io::Result<&Shared<Directory>> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let place = self.first - directory::BYTES as u64;
        segment::reserve(self.fd.get()?, place, directory::BYTES)?;
        let mapped = Shared::new(self.fd.get()?, place, directory::BYTES)?;
        Ok(self.directory.get_or_init(|| mapped))
    }

    fn lock<'a>(&self, directory: &'a Directory) -> Locked<'a> {
        directory.lock(self.me, |holder| holder < self.size && self.is_alive(holder))
    }

    /// Joins the area of this name, which `users` processes share, each of which joins once. The first process makes
    /// the area, zeroed, as `wanted` says: number of bytes, and a word about it; `None` is for no area. Returns `None`
    /// if there is no area.
    ///
    /// # Errors
    /// The operating system's, when the directory cannot be mapped.
    pub fn join_area(
        &self,
        name: u64,
        users: usize,
        wanted: impl FnOnce() -> Option<(usize, u64)>,
    ) -> io::Result<Option<NamedArea>> {
        let directory = self.directory()?;
        let _locked = self.lock(directory);
        Ok(directory.join(name, users, || {
            let (bytes, about) = wanted()?;
            Some(NamedArea { place: self.create_area(bytes).ok()?, bytes, about })
        }))
    }

    /// Leaves the area of this name, or the name if there is no area. The last of its users to leave frees it.
    pub fn leave_area(&self, name: u64) {
        let Ok(directory) = self.directory() else { return };
        let _locked = self.lock(directory);
        if let Some(NamedArea { place, bytes, .. }) = directory.leave(name) {
            self.free_area(place, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Seats, ShmDevice};
    use super::*;
    use std::os::fd::AsFd;

    struct Words([limosa_base::sync::AtomicU64; 2]);
    // SAFETY: atomics only.
    unsafe impl Foreign for Words {}

    #[test]
    fn an_area_is_shared_and_its_memory_goes_back() {
        let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
        let join = |rank| {
            ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, 2), true)
                .expect("joining")
                .host_memory()
                .expect("memory")
        };
        let (a, b) = (join(0), join(1));
        let used = || {
            let copy = std::fs::File::from(file.try_clone().expect("dup"));
            std::os::unix::fs::MetadataExt::blocks(&copy.metadata().expect("stat")) * 512
        };
        let before = used();
        let place = a.create_area(3 * PAGE).expect("memory");
        let other = b.create_area(PAGE).expect("memory");
        assert!(other >= place + 3 * PAGE as u64);
        let (here, there) =
            (a.map_area::<Words>(place, 3 * PAGE).expect("map"), b.map_area::<Words>(place, 3 * PAGE).expect("map"));
        here.0[1].store(77, Ordering::Relaxed);
        assert_eq!(there.0[1].load(Ordering::Relaxed), 77);
        a.free_area(place, 3 * PAGE);
        a.free_area(other, PAGE);
        assert_eq!(used(), before);
        assert!(a.map_area::<Words>(1 << 40, PAGE).is_err());
    }

    #[test]
    fn places_do_not_run_out() {
        let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
        let host = ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(0, 1), true)
            .expect("joining")
            .host_memory()
            .expect("memory");
        // As if a million areas of 1 GB had been taken and given back.
        host.ports.of(0).areas.fetch_add(1_000_000 << 30, Ordering::Relaxed);
        for _ in 0..100 {
            let place = host.create_area(3 * PAGE).expect("memory");
            assert!(place >= 1_000_000 << 30);
            let area = host.map_area::<Words>(place, 3 * PAGE).expect("map");
            assert_eq!(area.0[1].swap(77, Ordering::Relaxed), 0);
            host.free_area(place, 3 * PAGE);
        }
    }
}
