//! Collective operations (MPI-5 chapter 6) on intracommunicators; [`inter`] has those on intercommunicators,
//! [`neighbour`] those on topologies (section 8.6).
//!
//! An operation is planned and then run. Planning checks the arguments, selects an algorithm ([`choice`]) and writes
//! the steps of this rank to a [`Schedule`]; no data move yet. Running is the same for all operations: blocking by
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
//! - All ranks plan with the same algorithm. It is selected by values that are equal on all ranks of a correct program:
//!   the number of ranks, the bytes (not counts: equal signatures may be written with different datatypes), and the
//!   operation.
//! - Reductions combine in rank order, whether the operation commutes or not, unless an algorithm says otherwise. For a
//!   given number of ranks the order is always the same, and all ranks of an allreduce get the same bits.
//! - Where members are on several hosts, several of them on one, an operation can be composed of operations inside
//!   hosts and between them ([`composed`]). The order then also depends on the placement of ranks. It differs from rank
//!   order only for operations that commute, where the ranks of a host are not consecutive.
//! - Messages of a collective have a context of their own, and the operation's number as tag. The number is drawn
//!   before arguments are checked, so a rank whose call fails stays in step with the other ranks.
//! - [`multicast`], to a list of ranks, is no collective operation: only those ranks take part, by messages of their
//!   own.

use std::cell::Cell;
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
mod by_messages;
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
use call_log::Length;
pub use choice::counts::offer as offer_counts;
pub use choice::prepare;
use kind::{Collective, Signature, Sort};
pub use multicast::multicast;
pub use plan::Plan;
pub use run::run;
pub use schedule::{Member, Schedule};
pub use shared::look;
use shared::{SharedCall, SharedGroup};
use state::CommState;

/// A call of a collective operation.
pub struct Call<'a> {
    comm: &'a Comm,
    state: &'a CommState,
    /// Number among the calls of its sort, from 0.
    number: u64,
    /// For a blocking operation: the shared memory of the members.
    group: Option<&'a SharedGroup>,
    sort: Sort,
    /// The signature, once it is known.
    signature: Signature,
    /// The length by which all ranks select the same algorithm, once it is known, and the algorithm.
    length: Length,
    algorithm: Cell<u8>,
}

impl<'a> Call<'a> {
    /// Begins a blocking collective operation: the next one on this communicator.
    #[inline]
    pub fn begin(comm: &'a Comm) -> Call<'a> {
        let state = CommState::of(comm);
        let group = state.group(comm);
        let number = state.numbers.next_blocking();
        Call {
            comm,
            state,
            number,
            group,
            sort: Sort::Blocking,
            signature: Signature::default(),
            length: Length::UNKNOWN,
            algorithm: Cell::default(),
        }
    }

    /// Begins a non-blocking collective operation: the next non-blocking or persistent operation on this communicator.
    ///
    /// They are numbered apart from blocking operations, with which they never match (MPI-5 section 6.12). The standard
    /// requires that all ranks call both sorts in one order; ranks that do not may be found when a rank waits for long.
    pub fn begin_nonblocking(comm: &'a Comm) -> Call<'a> {
        let state = CommState::of(comm);
        let number = state.numbers.next_background();
        Call {
            comm,
            state,
            number,
            group: None,
            sort: Sort::NonBlocking,
            signature: Signature::default(),
            length: Length::UNKNOWN,
            algorithm: Cell::default(),
        }
    }

    /// Begins the creation of a persistent collective operation.
    pub fn begin_persistent(comm: &'a Comm) -> Call<'a> {
        let state = CommState::of(comm);
        let number = state.numbers.next_background();
        Call {
            comm,
            state,
            number,
            group: None,
            sort: Sort::Persistent,
            signature: Signature::default(),
            length: Length::UNKNOWN,
            algorithm: Cell::default(),
        }
    }

    /// Adds the signature to the call.
    #[inline(always)]
    fn signed(&self, signature: impl Into<Signature>) -> Call<'a> {
        // The library's own calls already have a signature.
        let signature = if self.signature == Signature::default() { signature.into() } else { self.signature };
        Call { signature, algorithm: self.algorithm.clone(), ..*self }
    }

    /// Adds the bytes of an operand, or of a rank's part, which all ranks must pass alike.
    fn on(&self, bytes: usize) -> Call<'a> {
        Call { length: Length::of(bytes), algorithm: self.algorithm.clone(), ..*self }
    }

    /// Returns the mailboxes for an operation in the background of at most `bytes` per rank, as all ranks know. `None`
    /// if there are none, or the data do not fit, or the table selects messages.
    fn mailbox_use(&self, kind: Collective, bytes: usize) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, None)
    }

    /// As [`Call::mailbox_use`], for an operation whose data may be lent if they do not fit.
    fn mailbox_use_to_move(&self, kind: Collective, bytes: usize) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, Some(bytes))
    }

    /// As [`Call::mailbox_use_to_move`], for an operation with a root, of messages of `message` bytes.
    fn mailbox_use_to_move_by_root(&self, kind: Collective, bytes: usize, message: usize) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, Some(message))
    }

    /// As [`Call::mailbox_use`], for a reduction, whose operands may stay in place if they do not fit and any thread
    /// may combine them.
    fn mailbox_use_to_combine(&self, kind: Collective, bytes: usize, op: &Op) -> Option<MailboxUse> {
        self.mailbox_use_on(kind, bytes, op.is_predefined().then_some(bytes))
    }

    /// `message`: the bytes that decide whether to lend, if lending is possible.
    fn mailbox_use_on(&self, kind: Collective, bytes: usize, message: Option<usize>) -> Option<MailboxUse> {
        let limits = self.state.in_background(kind, self.size());
        let within_limits = |fits| {
            let (most_left, most_lent) = limits?;
            let fits = fits && bytes <= most_left;
            let may_lend = !fits && message.is_some_and(|message| message <= most_lent);
            let lends = may_lend && self.state.mailboxes(self.comm).is_some_and(|mailboxes| mailboxes.lends());
            if fits || lends {
                choice::counts::count(kind, || choice::behind(kind, lends));
                self.algorithm.set(if lends { call_log::LENT } else { call_log::MAILBOXES });
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

    /// As [`Call::mailbox_use`], for parts whose lengths are not known to all ranks. This rank leaves or lends `bytes`.
    fn mailbox_use_for_any(&self, kind: Collective, bytes: usize) -> Option<MailboxUse> {
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

    /// As [`Call::mailbox_use_for_any`], for an exchange with neighbours; where nothing can be lent, only if receivers
    /// know enough (`background::neighbours`).
    fn mailbox_use_for_neighbours(&self, kind: Collective, bytes: usize) -> Option<MailboxUse> {
        let (_, most_lent) = self.state.in_background(kind, self.size())?;
        let lends = || most_lent == usize::MAX && self.state.mailboxes(self.comm).is_some_and(|all| all.lends());
        let is_known = kind == Collective::NeighborAllgather || self.comm.topo_test() != MPI_DIST_GRAPH;
        if is_known || lends() { self.mailbox_use_for_any(kind, bytes) } else { None }
    }

    /// Enters the call in the log, unless notes in shared memory publish it.
    fn enter(&self) {
        if let (Some(engine), Some(log)) = (self.comm.engine_if_any(), self.state.log(self.comm)) {
            let length = self.length.with(self.algorithm.get());
            log.enter(engine, self.number, self.signature.called(self.sort), length);
        }
    }

    /// Marks the mailboxes' operation as passed over, because it goes by messages.
    fn goes_by_messages(&self) {
        if self.sort != Sort::Blocking
            && let Some(mailboxes) = self.state.mailboxes_if_any()
        {
            // Mailboxes count from 1.
            mailboxes.pass_over(self.number + 1);
        }
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Returns this process's rank.
    pub fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    /// Whether `root` is this process's rank.
    pub fn is_at(&self, root: i32) -> bool {
        root >= 0 && root as usize == self.rank()
    }

    /// Returns this process's neighbours in the topology of the communicator.
    ///
    /// # Errors
    /// `MPI_ERR_TOPOLOGY`: it has none.
    pub fn neighbours(&self) -> Result<&'a Arc<Neighbours>> {
        self.state.neighbours(self.comm)
    }

    /// Begins the operation in shared memory, if there is any and `bytes` at once can be moved there.
    #[inline]
    fn shared_call(&self, kind: Collective, bytes: usize) -> Option<SharedCall<'a>> {
        let group = self.group.filter(|group| group.can_move(kind, bytes))?;
        SharedCall::begin(group, self.comm, &self.state.numbers, self.number + 1, kind, self.signature)
            .inspect(|_| group.count(kind, bytes))
    }

    /// Begins an exchange with neighbours in shared memory, if it is done there. This rank sends blocks of at most
    /// `bytes`.
    fn shared_exchange(&self, kind: Collective, bytes: usize) -> Option<SharedCall<'a>> {
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
