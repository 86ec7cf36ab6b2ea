//! Asymmetric fences: a store-then-load handshake whose frequent side costs nothing.
//!
//! Each of two sides stores a word and then loads the word of its partner: at least one must see the partner's store.
//! The frequent side calls [`light`], the rare side [`heavy`]. Where the kernel offers `membarrier`, a light fence is a
//! compiler fence, and a heavy one makes every processor that runs a registered process execute a full fence. Elsewhere
//! both are full fences.
//!
//! Both sides must use the same kind of fence, so all processes that share memory decide together. No process waits for
//! the decision:
//!
//! - A process that joins a group registers with the kernel, unless a filter for system calls forbids it. From then on
//!   its heavy fences include a `membarrier`, and its word in the group's shared memory says so ([`Word`]).
//! - Its light fences are full until the words of all members of all its groups say so. If one member cannot register,
//!   all members keep full fences, even if that member joins late.
//! - A process that joins another group first returns to full fences.
//!
//! | a process has seen | light | heavy |
//! |---|---|---|
//! | not the words of all members | full | full, and a membarrier once this process is registered |
//! | the words of all members, its own included | compiler | full and membarrier |
//!
//! Why this suffices: a full light fence works with either kind of heavy fence. A light fence that is only a compiler
//! fence belongs to a registered process that has seen its partner's word. The partner's heavy fence executes a full
//! fence and then tests whether its process is registered. If so, the membarrier reaches every thread that executes a
//! light fence at that time. If not, the full fence precedes the one in [`register`], and a process that has seen the
//! word also sees all stores before the heavy fence.

use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, compiler_fence, fence};
use std::ops::Range;
use std::sync::Arc;

/// Set once this process is registered.
static REGISTERED: AtomicBool = AtomicBool::new(false);
/// Set while light fences are compiler fences.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);
/// Number of light fences that were full ones.
static FULL: AtomicU32 = AtomicU32::new(0);
/// Full light fences after which this process rereads the words of the other members.
const FULL_PER_LOOK: u32 = 64;

static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Registration word of a process, in shared memory. Zeroed memory means: not registered.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU32);

/// The members of a group of processes that share memory.
pub trait Members: Send + Sync {
    /// Returns the word of a member.
    fn word(&self, member: u32) -> &Word;
}

struct Group {
    members: Arc<dyn Members>,
    end: u32,
    /// All members below this one are registered.
    known: u32,
    /// Set if a member that joined later is not registered.
    refused: bool,
    number: u64,
}

impl Group {
    fn is_complete(&mut self) -> bool {
        // Pairs with the release store in `join`.
        while self.known < self.end && self.members.word(self.known).0.load(Ordering::Acquire) != 0 {
            self.known += 1;
        }
        self.known == self.end && !self.refused
    }
}

/// Membership of this process in a group. Dropping it leaves the group; the process must not use the group's memory
/// afterwards.
#[derive(Debug)]
pub struct Membership(u64);

impl Membership {
    /// Admits a process to the group. The process must have registered, or must never do so later. Call this before any
    /// handshake with it. If it is not registered, light fences are full from now on.
    pub fn admit(&self, member: u32) {
        let mut groups = GROUPS.lock();
        let Some(group) = groups.iter_mut().find(|group| group.number == self.0) else { return };
        if group.members.word(member).0.load(Ordering::Acquire) == 0 {
            group.refused = true;
            if ASYMMETRIC.swap(false, Ordering::SeqCst) {
                // As in `join_among`.
                heavy();
            }
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let left = {
            let mut groups = GROUPS.lock();
            groups.iter().position(|group| group.number == self.0).map(|index| groups.swap_remove(index))
        };
        drop(left);
    }
}

/// Joins a group as member `me` of `size`, before any handshake with a member. Only one process uses the word of a
/// member.
pub fn join(members: Arc<impl Members + 'static>, me: u32, size: u32) -> Membership {
    join_among(members, me, 0..size)
}

/// Joins a group like [`join`], where the members have these numbers. Further processes may join later
/// ([`Membership::admit`]).
pub fn join_among(members: Arc<impl Members + 'static>, me: u32, numbers: Range<u32>) -> Membership {
    let number = {
        let mut groups = GROUPS.lock();
        let number = groups.iter().map(|group| group.number + 1).max().unwrap_or(0);
        groups.push(Group { members: members.clone(), end: numbers.end, known: numbers.start, refused: false, number });
        if ASYMMETRIC.swap(false, Ordering::SeqCst) {
            // Light fences that are still compiler fences end before this fence, or are made full by it.
            heavy();
        }
        number
    };
    if register() {
        // Pairs with the acquire load in `is_complete`.
        members.word(me).0.store(1, Ordering::Release);
    }
    look();
    Membership(number)
}

/// Prepares this process for [`heavy`] fences by any process. Returns whether the kernel supports them. Part of
/// [`join`].
pub fn register() -> bool {
    if REGISTERED.load(Ordering::Acquire) {
        return true;
    }
    let commands = membarrier(CMD_QUERY);
    let registered = commands > 0
        && commands & libc::c_long::from(CMD_GLOBAL_EXPEDITED) != 0
        && commands & libc::c_long::from(CMD_REGISTER_GLOBAL_EXPEDITED) != 0
        && membarrier(CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
    if registered {
        REGISTERED.store(true, Ordering::Release);
        // Follows the full fence of a process that does not see the store above, see `heavy`.
        fence(Ordering::SeqCst);
    }
    registered
}

/// Returns whether light fences are compiler fences: all members of all groups are registered.
pub fn are_asymmetric() -> bool {
    ASYMMETRIC.load(Ordering::Acquire)
}

/// Checks whether all members are registered.
#[cold]
fn look() {
    let Some(mut groups) = GROUPS.try_lock() else { return };
    if REGISTERED.load(Ordering::Acquire) && groups.iter_mut().all(Group::is_complete) {
        ASYMMETRIC.store(true, Ordering::Release);
    }
}

/// Executes the fence of the frequent side.
#[inline(always)]
pub fn light() {
    if ASYMMETRIC.load(Ordering::Acquire) {
        compiler_fence(Ordering::SeqCst);
    } else {
        light_in_full();
    }
}

#[inline(never)]
fn light_in_full() {
    fence(Ordering::SeqCst);
    // Concurrent threads may lose a count, which does not matter.
    let count = FULL.load(Ordering::Relaxed).wrapping_add(1);
    FULL.store(count, Ordering::Relaxed);
    if count.is_multiple_of(FULL_PER_LOOK) {
        look();
    }
}

/// Executes the fence of the rare side.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if REGISTERED.load(Ordering::Relaxed) {
        let done = membarrier(CMD_GLOBAL_EXPEDITED);
        assert!(
            done == 0,
            "membarrier, which worked when the library started, is refused now: install system call \
         filters before it starts"
        );
    }
}
