//! Notices of `MPI_Win_post` and `MPI_Win_complete` in memory that all members of a window share (MPI-5 section
//! 12.5.2).
//!
//! Each ordered pair of members has two counters, in lines of the receiving member: the sender's posts and its
//! completions. A waiting member compares them with the number of notices that it has taken. The sender rings the
//! receiver's doorbell, which costs one load unless the receiver sleeps. A notice is stored with release ordering: a
//! member that sees it also sees everything that the sender did before. Where not all members share memory, notices are
//! packets ([`wire::POST`](crate::wire::POST)).
//!
//! A third counter is the number of accesses that the sender has sent by packets, up to its last fence or completion.
//! The receiver executes them before its own epoch ends, so that the sender need not request an answer.

use std::sync::Arc;

use limosa_base::sync::{AtomicU32, Ordering};
use limosa_mpi::comm::Comm;
use limosa_p2p::Address;

use crate::memory::{Area, Notified};

/// Kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// `MPI_Win_post`: the sender's memory may be accessed.
    Post,
    /// `MPI_Win_complete`: the sender no longer accesses this memory.
    Complete,
}

/// Notices between this process and a peer.
struct Pair {
    /// The notices that this process has sent and received. They live as long as the area.
    sent_notices: &'static Notified,
    received_notices: &'static Notified,
    /// Number of notices that this process has taken, of each kind.
    taken: [AtomicU32; 2],
    /// Address of the peer's doorbell.
    address: Address,
}

/// The notices of all members.
pub(crate) struct Notices {
    pairs: Box<[Pair]>,
    /// Number of fences; it wraps around.
    fences: AtomicU32,
    /// Counters of [`Notices::count_sender`] as read by the last fence that used each.
    senders_seen: [AtomicU32; 2],
    area: Arc<Area>,
}

impl Notices {
    /// Creates the view of the notices in the area, for member `me`. All members of the window are members of the area.
    pub fn new(area: &Arc<Area>, comm: &Comm, me: usize) -> Notices {
        let address = |rank: usize| match comm.group().world_rank(rank) {
            Some(peer) if rank != me => comm.engine().host_address(peer).expect("all members share memory"),
            _ => area.host().me(),
        };
        let pair = |rank: usize| {
            let (sent_notices, received_notices): (*const Notified, *const Notified) =
                (&area.notices(rank)[me], &area.notices(me)[rank]);
            // SAFETY: they stay in place as long as the area, which is kept alive here; no reference is exposed.
            let (sent_notices, received_notices) = unsafe { (&*sent_notices, &*received_notices) };
            Pair { sent_notices, received_notices, taken: Default::default(), address: address(rank) }
        };
        Notices {
            pairs: (0..comm.size()).map(pair).collect(),
            fences: AtomicU32::default(),
            senders_seen: Default::default(),
            area: area.clone(),
        }
    }

    /// Sends a notice to a member, which then sees all earlier writes.
    pub fn tell(&self, member: u32, notice: Notice) {
        let pair = &self.pairs[member as usize];
        let sent_notices = &pair.sent_notices.notices[notice as usize];
        // Pairs with the acquire in `has`. Only this process writes the counter.
        sent_notices.store(sent_notices.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.area.host().ring(pair.address);
    }

    /// Returns whether there is an untaken notice of a member.
    #[inline]
    pub fn has(&self, member: u32, notice: Notice) -> bool {
        let (pair, notice) = (&self.pairs[member as usize], notice as usize);
        pair.received_notices.notices[notice].load(Ordering::Acquire) != pair.taken[notice].load(Ordering::Relaxed)
    }

    /// Takes a notice of a member.
    #[inline]
    pub fn take(&self, member: u32, notice: Notice) {
        let taken = &self.pairs[member as usize].taken[notice as usize];
        taken.store(taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Publishes the number of accesses sent to a member by packets. The member reads it after a notice or a barrier.
    pub fn announce_packets(&self, member: u32, sent: u32) {
        self.pairs[member as usize].sent_notices.packets.store(sent, Ordering::Release);
    }

    /// Returns the number of accesses that a member has sent by packets, up to its last notice or the last barrier.
    pub fn announced_packets(&self, member: u32) -> u32 {
        self.pairs[member as usize].received_notices.packets.load(Ordering::Acquire)
    }

    /// Counts this process, before the barrier of a fence, as having sent accesses by packets since the last one.
    pub fn count_sender(&self) {
        self.senders(self.fences.load(Ordering::Relaxed)).fetch_add(1, Ordering::Release);
    }

    /// Returns whether any member has sent accesses by packets. Called once after the barrier of a fence; all members
    /// get the same answer.
    pub fn were_packets_sent(&self) -> bool {
        let fence = self.fences.load(Ordering::Relaxed);
        self.fences.store(fence.wrapping_add(1), Ordering::Relaxed);
        let now = self.senders(fence).load(Ordering::Acquire);
        let seen = &self.senders_seen[fence as usize % 2];
        let before = seen.load(Ordering::Relaxed);
        seen.store(now, Ordering::Relaxed);
        now != before
    }

    /// Returns the counter of a fence. It is reused two fences later: all members have read it, since none is so far
    /// ahead.
    fn senders(&self, fence: u32) -> &AtomicU32 {
        &self.area.lines()[0].senders[fence as usize % 2]
    }
}
