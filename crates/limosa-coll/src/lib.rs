//! Collective operations (MPI-5 chapter 6) on intracommunicators; [`inter`] has those on intercommunicators,
//! [`neighbour`] those on topologies (section 8.6).
//!
//! An operation is planned and then run. Planning checks the arguments, selects an algorithm ([`choice`]) and lays down
//! what this rank does as a [`Schedule`]; nothing moves yet. Running is the same for all operations: blocking by
//! [`run`], in the background as the [`Operation`] of a request.
//!
//! [`Operation`]: limosa_mpi::operation::Operation
//!
//! ```text
//! let call = Call::begin(&comm);                       // first of all: draws the number of this collective
//! let schedule = bcast::plan(&call, buffer, root)?;    // checks, selects, plans
//! run(&comm, schedule)?;                               // or Request::under_way(.., task.into_operation(&comm)), start
//! ```
//!
//! Contract
//! - All ranks plan with the same algorithm. What it is selected by is therefore equal on all ranks of a correct
//!   program: number of ranks, bytes (not counts: equal signatures may be written with different datatypes), and the
//!   operation.
//! - Reductions combine in rank order, whether an operation is commutative or not, unless an algorithm says otherwise;
//!   for a given number of ranks the order is always the same, and all ranks of an allreduce get the same bits.
//! - Where members are on several hosts, several of them on one, an operation can be composed of others inside hosts
//!   and between them ([`composed`]). What is said above holds for a given placement of ranks then; not in rank order
//!   combine only operations that commute, where the ranks of a host do not follow each other.
//! - Messages of a collective have a context of their own and the operation's number as tag. The number is drawn before
//!   arguments are checked, so that a rank whose call fails stays in step with the others.
//! - [`multicast`], to a list of ranks, is no collective operation: only those ranks take part, by messages of their
//!   own.

use std::sync::Arc;

use limosa_mpi::comm::Comm;
use limosa_mpi::consts::MPI_DIST_GRAPH;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;
use limosa_mpi::topo::Neighbours;

mod access;
mod agreement;
pub mod allgather;
pub mod allreduce;
pub mod alltoall;
mod background;
pub mod barrier;
pub mod bcast;
mod buffer;
mod call_log;
pub mod check;
mod choice;
mod composed;
mod disagreement;
mod edges;
mod exchange;
pub mod fast_path;
pub mod gather;
mod hosts;
pub mod inter;
mod kind;
mod memory;
mod multicast;
pub mod neighbour;
mod notes;
mod numbers;
mod one_step;
mod pieces;
mod plan;
pub mod reduce;
pub mod reduce_scatter;
mod reducer;
pub mod regions;
mod run;
pub mod scan;
pub mod scatter;
mod schedule;
mod select;
mod shared;
mod slices;
mod state;
#[cfg(test)]
mod tests;

pub use agreement::{allgather_bytes, alltoall_bytes, barrier, plug_in, unseen_difference};
use background::{Exchange, Limits, MailboxUse, Mailboxes, Recorder};
pub use buffer::{Blocks, Buffer};
pub use choice::counts::offer as offer_counts;
pub use choice::prepare;
use kind::{Kind, Signature, Sort};
pub use multicast::multicast;
pub use plan::Plan;
pub use run::run;
pub use schedule::{Member, Schedule};
pub use shared::look;
use shared::{SharedCall, SharedGroup};
use state::CommState;

/// A collective operation that this rank takes part in.
pub struct Call<'a> {
    comm: &'a Comm,
    state: &'a CommState,
    /// Its number among those of its sort, from 0.
    number: u64,
    /// For a blocking operation: what the members share.
    group: Option<&'a SharedGroup>,
    sort: Sort,
    /// What all ranks must say of it alike, once it is known.
    signature: Signature,
}

impl<'a> Call<'a> {
    /// Begins a blocking collective operation: the next one on this communicator.
    #[inline]
    pub fn begin(comm: &'a Comm) -> Call<'a> {
        let state = CommState::of(comm);
        let group = state.group(comm);
        let number = state.numbers.next_blocking();
        Call { comm, state, number, group, sort: Sort::Blocking, signature: Signature::default() }
    }

    /// Begins a non-blocking collective operation: the next one of these and of persistent ones on this communicator.
    ///
    /// They are numbered apart from the blocking ones, with which they never match (MPI-5 section 6.12). The standard
    /// has all ranks call both in one order; those that do not may be found when one of them waits for long.
    pub fn begin_nonblocking(comm: &'a Comm) -> Call<'a> {
        let state = CommState::of(comm);
        let number = state.numbers.next_background();
        Call { comm, state, number, group: None, sort: Sort::NonBlocking, signature: Signature::default() }
    }

    /// Begins the making of a persistent collective operation.
    pub fn begin_persistent(comm: &'a Comm) -> Call<'a> {
        let state = CommState::of(comm);
        let number = state.numbers.next_background();
        Call { comm, state, number, group: None, sort: Sort::Persistent, signature: Signature::default() }
    }

    /// The same call, now that it is known what all ranks must say of it alike.
    #[inline(always)]
    fn signed(&self, signature: impl Into<Signature>) -> Call<'a> {
        // The library's own calls have said already what they are for.
        let signature = if self.signature == Signature::default() { signature.into() } else { self.signature };
        Call { signature, ..*self }
    }

    /// The mailboxes for an operation in the background of which a rank leaves at most so many bytes there, as all
    /// ranks know; `None` if there is none, or they do not fit, or the table has it go by messages.
    fn mailbox_use(&self, kind: Kind, bytes: usize) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, None)
    }

    /// As [`Call::mailbox_use`], for an operation that can leave where it is what does not fit.
    fn mailbox_use_to_move(&self, kind: Kind, bytes: usize) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, Some(bytes))
    }

    /// As [`Call::mailbox_use_to_move`], for an operation with a root, of messages of so many bytes.
    fn mailbox_use_to_move_by_root(&self, kind: Kind, bytes: usize, message: usize) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, Some(message))
    }

    /// As [`Call::mailbox_use`], for a reduction, of which operands that do not fit can stay where they are if any
    /// thread may combine them.
    fn mailbox_use_to_combine(&self, kind: Kind, bytes: usize, op: &Op) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, op.is_predefined().then_some(bytes))
    }

    /// `message`: the bytes that decide whether to lend, if that is possible.
    fn mailbox_use_on(&self, kind: Kind, bytes: usize, message: Option<usize>) -> Option<MailboxUse> {
        let limits = self.state.in_background(kind, self.size());
        let within_limits = |fits| {
            let (most_left, most_lent) = limits?;
            let fits = fits && bytes <= most_left;
            let may_lend = !fits && message.is_some_and(|message| message <= most_lent);
            let lends = may_lend && self.state.mailboxes(self.comm).is_some_and(|mailboxes| mailboxes.lends());
            if fits || lends {
                choice::counts::count(kind, || choice::behind(kind, lends));
            }
            (fits || lends).then_some(Limits { most: if fits { usize::MAX } else { 0 }, lends })
        };
        // Mailboxes count from 1.
        let number = self.number + 1;
        match self.sort {
            Sort::Blocking => None,
            Sort::NonBlocking => {
                let mailboxes = self.state.mailboxes(self.comm)?;
                let Some(limits) = within_limits(mailboxes.can_hold(bytes)) else {
                    mailboxes.pass_over(number);
                    return None;
                };
                Some(MailboxUse { mailboxes: mailboxes.clone(), number: Some(number), limits })
            }
            Sort::Persistent => {
                if let Some(mailboxes) = self.state.mailboxes_if_any() {
                    mailboxes.pass_over(number);
                }
                let fits = bytes <= background::MOST_BYTES;
                let limits = within_limits(fits)?;
                let room = if limits.most > 0 { bytes } else { notes::LINE * self.size() };
                let mailboxes =
                    Mailboxes::for_persistent(self.comm, number, room).filter(|mailboxes| mailboxes.can_hold(room))?;
                Some(MailboxUse { mailboxes, number: None, limits })
            }
        }
    }

    /// As [`Call::mailbox_use`], for parts of which ranks do not know alike how long they are. This rank leaves so many
    /// bytes, or lends them.
    fn mailbox_use_for_any(&self, kind: Kind, bytes: usize) -> Option<MailboxUse> {
        let mut mailbox_use = self.mailbox_use(kind, background::SLOT_BYTES)?;
        let (_, most_lent) = self.state.in_background(kind, self.size())?;
        mailbox_use.limits.lends =
            most_lent == usize::MAX && self.state.mailboxes(self.comm).is_some_and(|mailboxes| mailboxes.lends());
        // The mailboxes of a persistent operation have large slots only if a rank that could lend needs them.
        let is_short = bytes <= background::SLOT_BYTES || bytes > background::PERSISTENT_LARGE_BYTES;
        let keeps_to_slots = self.sort == Sort::Persistent && (is_short || !mailbox_use.limits.lends);
        mailbox_use.limits.most =
            if keeps_to_slots { background::SLOT_BYTES } else { mailbox_use.mailboxes.most_bytes() };
        Some(mailbox_use)
    }

    /// As [`Call::mailbox_use_for_any`], for an exchange with neighbours, if receivers know enough where nothing can be
    /// lent (`background::neighbours`).
    fn mailbox_use_for_neighbours(&self, kind: Kind, bytes: usize) -> Option<MailboxUse> {
        let (_, most_lent) = self.state.in_background(kind, self.size())?;
        let lends = || most_lent == usize::MAX && self.state.mailboxes(self.comm).is_some_and(|all| all.lends());
        let is_known = kind == Kind::NeighborAllgather || self.comm.topo_test() != MPI_DIST_GRAPH;
        if is_known || lends() { self.mailbox_use_for_any(kind, bytes) } else { None }
    }

    /// Has others know what this rank calls, as far as that is not by notes in the memory that they share.
    fn enter(&self) {
        if let (Some(engine), Some(log)) = (self.comm.engine_if_any(), self.state.log(self.comm)) {
            log.enter(engine, self.number, self.signature.called(self.sort));
        }
    }

    /// Notes that the operation goes by messages, whatever the table says of others.
    fn goes_by_messages(&self) {
        if self.sort != Sort::Blocking
            && let Some(mailboxes) = self.state.mailboxes_if_any()
        {
            // Mailboxes count from 1.
            mailboxes.pass_over(self.number + 1);
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// This process's rank.
    pub fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// True if `root` is this process's rank.
    pub fn is_at(&self, root: i32) -> bool {
        root >= 0 && root as usize == self.rank()
    }

    /// This process's neighbours in the topology of the communicator.
    ///
    /// # Errors
    /// `MPI_ERR_TOPOLOGY`: it has none.
    pub fn neighbours(&self) -> Result<&'a Arc<Neighbours>> {
        self.state.neighbours(self.comm)
    }

    /// Begins the operation in shared memory, if there is any and so many bytes at once can be moved there.
    #[inline]
    fn shared_call(&self, kind: Kind, bytes: usize) -> Option<SharedCall<'a>> {
        let group = self.group.filter(|group| group.can_move(kind, bytes))?;
        SharedCall::begin(group, self.comm, &self.state.numbers, self.number + 1, kind, self.signature)
            .inspect(|_| group.count(kind, bytes))
    }

    /// Begins an exchange with neighbours in shared memory, if it is done there. This rank sends blocks of at most so
    /// many bytes.
    fn shared_exchange(&self, kind: Kind, bytes: usize) -> Option<SharedCall<'a>> {
        let group = self.group.filter(|group| group.can_exchange(kind))?;
        SharedCall::begin(group, self.comm, &self.state.numbers, self.number + 1, kind, self.signature)
            .inspect(|_| group.count(kind, bytes))
    }
}

impl From<&Call<'_>> for Member {
    fn from(call: &Call<'_>) -> Member {
        call.enter();
        let signature = call.signature.called(call.sort);
        Member { rank: call.rank(), size: call.size(), number: call.number, signature }
    }
}
