//! Areas that processes find by name, so that they can share memory without having exchanged a message.
//!
//! A directory in front of the areas has a line per name: where the area is, how large, and how many still use it. Whoever comes first makes the
//! area and says what it is like; all others that were announced get the same answer, whenever they come. The last to leave frees it.
//!
//! Contract
//! - A name means the same area from its first user's coming to its last user's leaving; what the first user found (also that there is no area)
//!   holds for all.
//! - Once the directory is full it takes no names any more, so that nobody finds what an earlier user did not.
//! - Lines are read and written under a lock that lies beside them, for as long as it takes to reserve memory.
//!
//! A line's name is 0 if it was never used. Looking for a name passes over lines that were used once.

use super::Commons;
use limosa_base::cpu;
use limosa_base::segment::{self, Foreign, PAGE, Shared};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Names at a time.
const LINES: usize = 2040;
/// Bytes of the directory.
pub(super) const BYTES: usize = size_of::<Directory>().next_multiple_of(PAGE);

/// A line that was used once.
const LEFT: u64 = 1;
/// The place of no area.
const NOWHERE: u64 = u64::MAX;

#[repr(C)]
struct Line {
    name: AtomicU64,
    place: AtomicU64,
    bytes: AtomicU64,
    about: AtomicU64,
    users: AtomicU64,
}

/// The names of areas, in shared memory.
#[repr(C)]
pub(super) struct Directory {
    lock: AtomicU32,
    is_full: AtomicU32,
    lines: [Line; LINES],
}

// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for Directory {}

/// An area that was found by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// For [`Commons::map_area`].
    pub place: u64,
    /// Its bytes.
    pub bytes: usize,
    /// What the first user said about it.
    pub about: u64,
}

struct Locked<'a>(&'a Directory);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.lock.store(0, Ordering::Release);
    }
}

impl Directory {
    fn lock(&self) -> Locked<'_> {
        while self.lock.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            cpu::yield_now();
        }
        Locked(self)
    }

    /// The line of a name, or else the first one that could be.
    fn find(&self, name: u64) -> (Option<&Line>, Option<&Line>) {
        let mut room = None;
        for step in 0..LINES as u64 {
            let line = &self.lines[(name.wrapping_add(step) % LINES as u64) as usize];
            match line.name.load(Ordering::Relaxed) {
                found if found == name => return (Some(line), None),
                0 => return (None, room.or(Some(line))),
                LEFT => room = room.or(Some(line)),
                _ => {}
            }
        }
        (None, room)
    }
}

impl Commons {
    fn directory(&self) -> io::Result<&Shared<Directory>> {
        if let Some(directory) = self.directory.get() {
            return Ok(directory);
        }
        let place = self.first - BYTES as u64;
        segment::reserve(self.fd.as_fd(), place, BYTES)?;
        let mapped = Shared::new(self.fd.as_fd(), place, BYTES)?;
        Ok(self.directory.get_or_init(|| mapped))
    }

    /// Joins the area of this name, which `users` processes share, each of which joins once. If this one is the first, it makes the area,
    /// zeroed, as `wanted` says: how many bytes, and a word about it; `None` is for no area. `None` comes back where there is none.
    ///
    /// # Errors
    /// The operating system's, when the directory cannot be mapped.
    pub fn join_area(&self, name: u64, users: usize, wanted: impl FnOnce() -> Option<(usize, u64)>) -> io::Result<Option<Found>> {
        let name = name.max(LEFT + 1);
        let directory = self.directory()?;
        let locked = directory.lock();
        if let (Some(line), _) = locked.0.find(name) {
            let place = line.place.load(Ordering::Relaxed);
            let found = Found { place, bytes: line.bytes.load(Ordering::Relaxed) as usize, about: line.about.load(Ordering::Relaxed) };
            return Ok((place != NOWHERE).then_some(found));
        }
        if locked.0.is_full.load(Ordering::Relaxed) != 0 {
            return Ok(None);
        }
        let (_, Some(line)) = locked.0.find(name) else {
            locked.0.is_full.store(1, Ordering::Relaxed);
            return Ok(None);
        };
        let found = wanted().and_then(|(bytes, about)| Some(Found { place: self.create_area(bytes).ok()?, bytes, about }));
        line.name.store(name, Ordering::Relaxed);
        line.users.store(users as u64, Ordering::Relaxed);
        line.place.store(found.map_or(NOWHERE, |found| found.place), Ordering::Relaxed);
        line.bytes.store(found.map_or(0, |found| found.bytes as u64), Ordering::Relaxed);
        line.about.store(found.map_or(0, |found| found.about), Ordering::Relaxed);
        Ok(found)
    }

    /// Leaves the area of this name, or the name if there is no area. The last of its users to leave frees it.
    pub fn leave_area(&self, name: u64) {
        let name = name.max(LEFT + 1);
        let Ok(directory) = self.directory() else { return };
        let locked = directory.lock();
        let (Some(line), _) = locked.0.find(name) else { return };
        let users = line.users.load(Ordering::Relaxed).saturating_sub(1);
        line.users.store(users, Ordering::Relaxed);
        if users == 0 {
            line.name.store(LEFT, Ordering::Relaxed);
            let place = line.place.load(Ordering::Relaxed);
            if place != NOWHERE {
                self.free_area(place, line.bytes.load(Ordering::Relaxed) as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ShmDevice;
    use super::*;

    fn commons(ranks: u32) -> Vec<Commons> {
        let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
        let join = |rank| ShmDevice::join(file.as_fd(), PAGE as u64, rank, ranks, true).expect("joining").commons().expect("commons");
        (0..ranks).map(join).collect()
    }

    #[test]
    fn all_users_of_a_name_find_what_the_first_one_made() {
        let all = commons(3);
        let first = all[1].join_area(77, 3, || Some((3 * PAGE, 5))).expect("join").expect("memory");
        assert_eq!(first, Found { place: first.place, bytes: 3 * PAGE, about: 5 });
        for other in [0, 2] {
            assert_eq!(all[other].join_area(77, 3, || panic!("it is there")).expect("join"), Some(first));
        }
        all.iter().for_each(|commons| commons.leave_area(77));
        let next = all[0].join_area(77, 3, || Some((PAGE, 6))).expect("join").expect("memory");
        assert_ne!(next.place, first.place, "a name that all have left is free for another area");
    }

    #[test]
    fn where_the_first_one_found_no_area_nobody_does() {
        let all = commons(2);
        assert_eq!(all[0].join_area(5, 2, || None).expect("join"), None);
        assert_eq!(all[1].join_area(5, 2, || Some((PAGE, 0))).expect("join"), None);
        all.iter().for_each(|commons| commons.leave_area(5));
        assert!(all[1].join_area(5, 2, || Some((PAGE, 0))).expect("join").is_some());
    }

    #[test]
    fn a_full_directory_stays_full() {
        let all = commons(1);
        for name in 0..LINES as u64 {
            all[0].join_area(100 + name * 7, 1, || None).expect("join");
        }
        assert_eq!(all[0].join_area(3, 1, || Some((PAGE, 0))).expect("join"), None);
        all[0].leave_area(100);
        assert_eq!(all[0].join_area(3, 1, || Some((PAGE, 0))).expect("join"), None, "another process may have found it full");
        assert_eq!(all[0].join_area(107, 1, || Some((PAGE, 0))).expect("join"), None, "as its first user said");
    }
}
