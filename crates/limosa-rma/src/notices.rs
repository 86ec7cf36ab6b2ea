//! Notices of `MPI_Win_post` and `MPI_Win_complete` in memory that all members of a window share (MPI-5 section
//! 12.5.2).
//!
//! Of each pair of members there are two numbers, in lines of the one that is told: how often the other has posted, and
//! how often it has completed. Who waits compares them with how many it has taken; who tells rings its doorbell, which
//! costs a look at a word unless it sleeps. A notice is stored after all that was done before it, so who sees it sees
//! that too. Where not all members share memory, notices go by packets ([`wire::POST`](crate::wire::POST)).
//!
//! A third number says how many accesses the other has sent by packets, up to its last fence or completion. Who is told
//! does them before its own epoch ends, so that the other one need not ask for an answer.

use std::sync::Arc;

use limosa_base::sync::{AtomicU32, Ordering};
use limosa_mpi::comm::Comm;
use limosa_p2p::Address;

use crate::memory::Area;

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// `MPI_Win_post`: the teller's memory may be accessed.
    Post,
    /// `MPI_Win_complete`: the teller accesses this memory no more.
    Complete,
}

/// What one member has told another one; the numbers wrap around.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Told {
    /// How often each notice.
    notices: [AtomicU32; 2],
    /// Accesses sent by packets.
    packets: AtomicU32,
}

/// What there is between this process and another member.
struct Pair {
    /// What this one has told, and what it was told. They live as long as the area.
    said: &'static Told,
    heard: &'static Told,
    /// The notices that this process has taken.
    taken: [AtomicU32; 2],
    /// Where the other's doorbell is.
    address: Address,
}

/// The notices of all members.
pub(crate) struct Notices {
    pairs: Box<[Pair]>,
    /// How many fences there were; it wraps around.
    fences: AtomicU32,
    /// The counters of [`Notices::count_sender`] after the last fence that used each.
    senders_seen: [AtomicU32; 2],
    area: Arc<Area>,
}

impl Notices {
    /// The notices in the area, for its member `me`. All members of the window are members of the area.
    pub fn new(area: &Arc<Area>, comm: &Comm, me: usize) -> Notices {
        let address = |rank: usize| match comm.group().world_rank(rank) {
            Some(peer) if rank != me => comm.engine().host_address(peer).expect("all members share memory"),
            _ => area.host().me(),
        };
        let pair = |rank: usize| {
            let (said, heard): (*const Told, *const Told) = (&area.told(rank)[me], &area.told(me)[rank]);
            // SAFETY: they stay where they are as long as the area, which is kept here; no reference is given away.
            let (said, heard) = unsafe { (&*said, &*heard) };
            Pair { said, heard, taken: Default::default(), address: address(rank) }
        };
        Notices {
            pairs: (0..comm.size()).map(pair).collect(),
            fences: AtomicU32::default(),
            senders_seen: Default::default(),
            area: area.clone(),
        }
    }

    /// Tells a member. All that was written before is there for it to see.
    pub fn tell(&self, member: u32, notice: Notice) {
        let pair = &self.pairs[member as usize];
        let said = &pair.said.notices[notice as usize];
        // Pairs with the acquire in `has`. Only this process writes it.
        said.store(said.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.area.host().ring(pair.address);
    }

    /// Whether there is a notice of a member that was not taken.
    #[inline]
    pub fn has(&self, member: u32, notice: Notice) -> bool {
        let (pair, notice) = (&self.pairs[member as usize], notice as usize);
        pair.heard.notices[notice].load(Ordering::Acquire) != pair.taken[notice].load(Ordering::Relaxed)
    }

    /// Takes a notice of a member.
    #[inline]
    pub fn take(&self, member: u32, notice: Notice) {
        let taken = &self.pairs[member as usize].taken[notice as usize];
        taken.store(taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Tells a member how many accesses were sent to it by packets. It looks when there is a notice, or after a barrier.
    pub fn announce_packets(&self, member: u32, sent: u32) {
        self.pairs[member as usize].said.packets.store(sent, Ordering::Release);
    }

    /// How many accesses a member has sent by packets, up to its last notice, or the last barrier.
    pub fn announced_packets(&self, member: u32) -> u32 {
        self.pairs[member as usize].heard.packets.load(Ordering::Acquire)
    }

    /// Before the barrier of a fence: this process has sent accesses by packets since the last one.
    pub fn count_sender(&self) {
        self.senders(self.fences.load(Ordering::Relaxed)).fetch_add(1, Ordering::Release);
    }

    /// After the barrier of a fence, once: whether any member has. All members get the same answer.
    pub fn were_packets_sent(&self) -> bool {
        let fence = self.fences.load(Ordering::Relaxed);
        self.fences.store(fence.wrapping_add(1), Ordering::Relaxed);
        let now = self.senders(fence).load(Ordering::Acquire);
        let seen = &self.senders_seen[fence as usize % 2];
        let before = seen.load(Ordering::Relaxed);
        seen.store(now, Ordering::Relaxed);
        now != before
    }

    /// The counter for a fence. It is used again two fences later, when all have read it: nobody is so far ahead.
    fn senders(&self, fence: u32) -> &AtomicU32 {
        &self.area.lines()[0].senders[fence as usize % 2]
    }
}
