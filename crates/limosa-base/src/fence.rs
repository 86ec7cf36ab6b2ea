//! Asymmetric fences: a store-then-load handshake whose frequent side costs nothing.
//!
//! Two sides each store a word and then load the other's: at least one must see the other's store. The frequent side
//! calls [`light`], the rare side [`heavy`]. Where the kernel offers `membarrier`, light is a compiler fence and heavy
//! makes every processor that runs a registered process execute a full fence; elsewhere both are full fences.
//!
//! Both sides must use the same kind of fence, so all processes that share memory decide together. No process waits for
//! the decision:
//!
//! - A process that joins a group registers with the kernel, unless a filter for system calls forbids it. From then on
//!   its heavy fences include a `membarrier`, and its word in the group's shared memory says so ([`Word`]).
//! - Its light fences are full ones until the words of all members of all its groups say so. If one member cannot
//!   register, all keep full fences, also if that member joins late.
//! - A process that joins another group goes back to full fences first.
//!
//! | a process has seen | light | heavy |
//! |---|---|---|
//! | no word, or that of some members | full | full, and a membarrier once this process is registered |
//! | the word of all members, its own among them | compiler | full and membarrier |
//!
//! Why this is enough: a full light fence works with either kind of heavy fence. A light fence that is only a compiler
//! fence belongs to a registered process that has seen its partner's word. The partner's heavy fence executes a full
//! fence and then tests whether its process is registered. If so, the membarrier reaches every thread that runs a light
//! fence at that time. If not, the full fence comes before the one in [`register`], and a process that has seen the
//! word also sees all that was stored before the heavy fence.

use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, compiler_fence, fence};
use std::ops::Range;
use std::sync::Arc;

/// This process is registered.
static REGISTERED: AtomicBool = AtomicBool::new(false);
/// Light fences are compiler fences.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);
/// Light fences that were full ones.
static FULL: AtomicU32 = AtomicU32::new(0);
/// After so many of them this process reads the words of the others.
const FULL_PER_LOOK: u32 = 64;

static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());

const CMD_QUERY: libc::c_int = 0;
const CMD_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const CMD_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes three integers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// A process's word about its fences, in shared memory. Zeroed memory means: not registered.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU32);

/// Processes that share memory.
pub trait Members: Send + Sync {
    /// The word of a member.
    fn word(&self, member: u32) -> &Word;
}

struct Group {
    members: Arc<dyn Members>,
    end: u32,
    /// All members before this one are registered.
    known: u32,
    /// A member that came later is not registered.
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

/// That this process is a member of a group; it leaves when this is dropped, and must not use the group's memory any
/// more.
#[derive(Debug)]
pub struct Membership(u64);

impl Membership {
    /// A process has come to the group and has said whether it is registered, or never will. To be called before any
    /// handshake with it. If it is not registered, light fences are full ones from now on.
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

/// Joins a group as member `me` of `size`, before any handshake with another member. A member's word is used by one
/// process only.
pub fn join(members: Arc<impl Members + 'static>, me: u32, size: u32) -> Membership {
    join_among(members, me, 0..size)
}

/// As [`join`], for a group whose members have these numbers; others may come to it later ([`Membership::admit`]).
pub fn join_among(members: Arc<impl Members + 'static>, me: u32, numbers: Range<u32>) -> Membership {
    let number = {
        let mut groups = GROUPS.lock();
        let number = groups.iter().map(|group| group.number + 1).max().unwrap_or(0);
        groups.push(Group { members: members.clone(), end: numbers.end, known: numbers.start, refused: false, number });
        if ASYMMETRIC.swap(false, Ordering::SeqCst) {
            // Light fences that are still compiler fences end before this does, or are made full by it.
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

/// Prepares this process for [`heavy`] fences, its own and those of others; true if the kernel can do it. Part of
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
        // Comes after the full fence of whoever does not see the store above, see `heavy`.
        fence(Ordering::SeqCst);
    }
    registered
}

/// True if light fences cost nothing: all members of all groups can do their part.
pub fn are_asymmetric() -> bool {
    ASYMMETRIC.load(Ordering::Acquire)
}

/// Tests whether all members are registered.
#[cold]
fn look() {
    let Some(mut groups) = GROUPS.try_lock() else { return };
    if REGISTERED.load(Ordering::Acquire) && groups.iter_mut().all(Group::is_complete) {
        ASYMMETRIC.store(true, Ordering::Release);
    }
}

/// The frequent side's fence.
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
    // Counting is not exact if threads do it at the same time, which does not matter.
    let count = FULL.load(Ordering::Relaxed).wrapping_add(1);
    FULL.store(count, Ordering::Relaxed);
    if count.is_multiple_of(FULL_PER_LOOK) {
        look();
    }
}

/// The rare side's fence.
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
