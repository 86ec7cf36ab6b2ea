//! Areas that processes find by name, so that they can share memory without having exchanged a message.
//!
//! A directory in front of the areas has a line per name: where the area is, how large, and how many still use it. The
//! first user makes the area and decides its properties; all other announced users get the same area, whenever they
//! come. The last to leave frees it.
//!
//! Contract
//! - A name means the same area from the arrival of its first user until its last user leaves; the result of the first
//!   user (also that there is no area) is that of all.
//! - A full directory takes no further names at all, so that no user finds an area that an earlier one did not.
//! - Lines are read and written under a lock next to them, which is held while memory is reserved. The lock names its
//!   holder; if that process is dead, a waiting process takes the lock over and repairs the lines.
//! - A process that dies without leaving an area remains its user: the memory is freed when the job ends.
//!
//! The lines are a hash table with linear probing. A search passes over lines that were left and ends at a line whose
//! name is 0, behind which no searched name can be. So that the table is valid whenever its writer dies, a line gets
//! its name last, and a line without users has no name.

use crate::Address;
use limosa_base::process_lock::{Locked, ProcessLock};
use limosa_base::segment::{Foreign, PAGE};
use limosa_base::sync::{AtomicU32, AtomicU64, Ordering};

/// Names at a time.
const LINES: usize = 2040;
/// Bytes of the directory.
pub(super) const BYTES: usize = size_of::<Directory>().next_multiple_of(PAGE);

/// The name of a line that was left, while lines behind it may be in use.
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
    lock: ProcessLock,
    is_full: AtomicU32,
    lines: [Line; LINES],
}

// SAFETY: atomics only, for which any bytes are valid.
unsafe impl Foreign for Directory {}

/// An area that was found by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedArea {
    /// Its place, for [`map_area`](super::HostMemory::map_area).
    pub place: u64,
    /// Its bytes.
    pub bytes: usize,
    /// The first user's word about it.
    pub about: u64,
}

impl Line {
    fn area(&self) -> Option<NamedArea> {
        let place = self.place.load(Ordering::Relaxed);
        (place != NOWHERE).then(|| NamedArea {
            place,
            bytes: self.bytes.load(Ordering::Relaxed) as usize,
            about: self.about.load(Ordering::Relaxed),
        })
    }
}

impl Directory {
    /// The lock of the lines. Takes it from a holder that has died, and repairs the lines then.
    pub(super) fn lock(&self, me: Address, is_alive: impl Fn(Address) -> bool) -> Locked<'_> {
        let locked = self.lock.lock(me, is_alive);
        if locked.is_taken_over {
            self.put_in_order();
        }
        locked
    }

    /// Counts the caller, which holds the lock, as a user of the area of this name, which `users` processes join once
    /// each. The first makes it by `create`; `None` is for no area. Returns the area, if there is one.
    pub(super) fn join(
        &self,
        name: u64,
        users: usize,
        create: impl FnOnce() -> Option<NamedArea>,
    ) -> Option<NamedArea> {
        let name = name.max(LEFT + 1);
        if let (Some(index), _) = self.find(name) {
            return self.lines[index].area();
        }
        if self.is_full.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let (_, Some(index)) = self.find(name) else {
            self.is_full.store(1, Ordering::Relaxed);
            return None;
        };
        let line = &self.lines[index];
        let area = create();
        line.users.store(users as u64, Ordering::Relaxed);
        line.place.store(area.map_or(NOWHERE, |area| area.place), Ordering::Relaxed);
        line.bytes.store(area.map_or(0, |area| area.bytes as u64), Ordering::Relaxed);
        line.about.store(area.map_or(0, |area| area.about), Ordering::Relaxed);
        line.name.store(name, Ordering::Release);
        area
    }

    /// Counts a user of this name out, for a caller that holds the lock. Returns an area that has lost its last user.
    pub(super) fn leave(&self, name: u64) -> Option<NamedArea> {
        let index = self.find(name.max(LEFT + 1)).0?;
        let line = &self.lines[index];
        let users = line.users.load(Ordering::Relaxed).saturating_sub(1);
        line.users.store(users, Ordering::Relaxed);
        if users > 0 {
            return None;
        }
        self.forget(index);
        line.area()
    }

    /// Repairs the lines after a process has died with the lock.
    fn put_in_order(&self) {
        for (index, line) in self.lines.iter().enumerate() {
            if line.name.load(Ordering::Relaxed) > LEFT && line.users.load(Ordering::Relaxed) == 0 {
                self.forget(index);
            }
        }
    }

    /// Removes the name of a line. Lines at the end of a row of used ones need not be passed over any more.
    fn forget(&self, index: usize) {
        let name = |index: usize| &self.lines[index % LINES].name;
        name(index).store(LEFT, Ordering::Release);
        let mut end = index;
        if name(index + 1).load(Ordering::Relaxed) == 0 {
            while name(end).load(Ordering::Relaxed) == LEFT {
                name(end).store(0, Ordering::Release);
                end = (end + LINES - 1) % LINES;
            }
        }
    }

    /// Returns the index of the line of a name, or else of the first one that could be.
    fn find(&self, name: u64) -> (Option<usize>, Option<usize>) {
        let mut room = None;
        for step in 0..LINES as u64 {
            let index = ((name % LINES as u64 + step) % LINES as u64) as usize;
            match self.lines[index].name.load(Ordering::Relaxed) {
                found if found == name => return (Some(index), None),
                0 => return (None, room.or(Some(index))),
                LEFT => room = room.or(Some(index)),
                _ => {}
            }
        }
        (None, room)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HostMemory, Seats, ShmDevice};
    use super::*;
    use limosa_base::process_lock::YIELDS_PER_LIVENESS_CHECK;
    use limosa_base::segment;
    use std::os::fd::AsFd;

    fn memories(ranks: u32) -> Vec<HostMemory> {
        let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
        let join = |rank| {
            ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, ranks), true)
                .expect("joining")
                .host_memory()
                .expect("memory")
        };
        (0..ranks).map(join).collect()
    }

    #[test]
    fn all_users_of_a_name_find_what_the_first_one_made() {
        let all = memories(3);
        let first = all[1].join_area(77, 3, || Some((3 * PAGE, 5))).expect("join").expect("memory");
        assert_eq!(first, NamedArea { place: first.place, bytes: 3 * PAGE, about: 5 });
        for other in [0, 2] {
            assert_eq!(all[other].join_area(77, 3, || panic!("it is there")).expect("join"), Some(first));
        }
        all.iter().for_each(|memory| memory.leave_area(77));
        let next = all[0].join_area(77, 3, || Some((PAGE, 6))).expect("join").expect("memory");
        assert_ne!(next.place, first.place, "a name that all have left is free for another area");
    }

    #[test]
    fn where_the_first_process_found_no_area_no_other_does() {
        let all = memories(2);
        assert_eq!(all[0].join_area(5, 2, || None).expect("join"), None);
        assert_eq!(all[1].join_area(5, 2, || Some((PAGE, 0))).expect("join"), None);
        all.iter().for_each(|memory| memory.leave_area(5));
        assert!(all[1].join_area(5, 2, || Some((PAGE, 0))).expect("join").is_some());
    }

    #[test]
    fn a_full_directory_stays_full() {
        let all = memories(1);
        for name in 0..LINES as u64 {
            all[0].join_area(100 + name * 7, 1, || None).expect("join");
        }
        assert_eq!(all[0].join_area(3, 1, || Some((PAGE, 0))).expect("join"), None);
        all[0].leave_area(100);
        assert_eq!(
            all[0].join_area(3, 1, || Some((PAGE, 0))).expect("join"),
            None,
            "another process may have found it full"
        );
        assert_eq!(all[0].join_area(107, 1, || Some((PAGE, 0))).expect("join"), None, "as its first user said");
    }

    #[test]
    fn a_lock_whose_holder_was_killed_is_taken_over() {
        let all = memories(3);
        let area = all[0].join_area(5, 1, || Some((PAGE, 0))).expect("join").expect("memory");
        let directory = all[0].directory().expect("mapped");
        // Process 2 dies after the last user has been counted out and before the line is free.
        std::mem::forget(directory.lock.lock(2, |_| true));
        directory.lines[5].users.store(0, Ordering::Relaxed);
        all[0].ports.of(2).is_that_of(super::super::tests::killed());
        let next = all[1].join_area(5, 2, || Some((PAGE, 1))).expect("join").expect("memory");
        assert_ne!(area.place, next.place, "an area that all have left is not found any more");
        assert!(directory.lock.is_free());
        assert_eq!(all[0].join_area(5, 2, || panic!("it is there")).expect("join"), Some(next));
    }

    #[test]
    fn a_lock_whose_holder_lives_is_waited_for() {
        let all = memories(2);
        let order = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            all[0]
                .join_area(5, 2, || {
                    scope.spawn(|| {
                        assert_eq!(
                            all[1].join_area(5, 2, || panic!("it is there")).expect("join").expect("an area").about,
                            3
                        );
                        order.lock().unwrap().push("second");
                    });
                    (0..5 * YIELDS_PER_LIVENESS_CHECK).for_each(|_| std::thread::yield_now());
                    order.lock().unwrap().push("first");
                    Some((PAGE, 3))
                })
                .expect("join");
        });
        assert_eq!(order.into_inner().unwrap(), ["first", "second"]);
    }

    /// As many as a program might make and free in a long run, of which few exist at a time.
    #[test]
    fn a_million_names_one_after_another_do_not_wear_the_directory_out() {
        let all = memories(2);
        let name = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for number in 0..1_000_000u64 {
            let made = all[0]
                .join_area(name(number), 2, || number.is_multiple_of(10_000).then_some((PAGE, number)))
                .expect("join");
            assert_eq!(made.is_some(), number.is_multiple_of(10_000));
            assert_eq!(all[1].join_area(name(number), 2, || panic!("it is there")).expect("join"), made);
            if let Some(old) = number.checked_sub(300) {
                all.iter().for_each(|memory| memory.leave_area(name(old)));
            }
        }
        let directory = all[0].directory().expect("mapped");
        assert_eq!(directory.is_full.load(Ordering::Relaxed), 0);
        (999_700..1_000_000).for_each(|number| all.iter().for_each(|memory| memory.leave_area(name(number))));
        let is_clean = directory.lines.iter().all(|line| line.name.load(Ordering::Relaxed) == 0);
        assert!(is_clean, "looking for a name takes no longer than at first");
    }
}
