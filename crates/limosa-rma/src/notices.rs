//! Notices of `MPI_Win_post` and `MPI_Win_complete` in memory that all members of a window share (MPI-5 section
//! 12.5.2).
//!
//! Of each pair of members there are two numbers, in lines of the one that is told: how often the other has posted, and
//! how often it has completed. Who waits compares them with how many it has taken; who tells rings its doorbell, which
//! costs a look at a word unless it sleeps. A notice is stored after all that was done before it, so who sees it sees
//! that too. Where not all members share memory, notices go by packets ([`wire::POST`](crate::wire::POST)).

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

/// How often one member has told another one each notice; the numbers wrap around.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Told([AtomicU32; 2]);

/// The notices of all members.
pub(crate) struct Notices {
    area: Arc<Area>,
    me: usize,
    /// Where each member's doorbell is.
    addresses: Box<[Address]>,
    /// Of each member, the notices that this process has taken.
    taken: Box<[Told]>,
}

impl Notices {
    /// The notices in the area, for its member `me`. All members of the window are members of the area.
    pub fn new(area: &Arc<Area>, comm: &Comm, me: usize) -> Notices {
        let address = |rank: usize| match comm.group().world_rank(rank) {
            Some(peer) if rank != me => comm.engine().host_address(peer).expect("all members share memory"),
            _ => area.host().me(),
        };
        let addresses = (0..comm.size()).map(address).collect();
        Notices { area: area.clone(), me, addresses, taken: (0..comm.size()).map(|_| Told::default()).collect() }
    }

    /// Tells a member. All that was written before is there for it to see.
    pub fn tell(&self, member: u32, notice: Notice) {
        let told = &self.area.told(member as usize)[self.me].0[notice as usize];
        // Pairs with the acquire in `has`. Only this process writes it.
        told.store(told.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.area.host().ring(self.addresses[member as usize]);
    }

    /// Whether there is a notice of a member that was not taken.
    pub fn has(&self, member: u32, notice: Notice) -> bool {
        let (member, notice) = (member as usize, notice as usize);
        let told = self.area.told(self.me)[member].0[notice].load(Ordering::Acquire);
        told != self.taken[member].0[notice].load(Ordering::Relaxed)
    }

    /// Takes a notice of a member.
    pub fn take(&self, member: u32, notice: Notice) {
        let taken = &self.taken[member as usize].0[notice as usize];
        taken.store(taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}
