//! Collective operations (MPI-5 chapter 6) on intracommunicators.
//!
//! An operation is planned and then run. Planning checks the arguments, selects an algorithm ([`select`]) and lays down what this rank does as
//! a [`Schedule`]; nothing moves yet. Running is the same for all operations: blocking by [`run`], in the background as [`Work`].
//!
//! ```text
//! let call = Call::begin(&comm);                       // first of all: draws the number of this collective
//! let schedule = bcast::plan(&call, buffer, root)?;    // checks, selects, plans
//! run(&comm, schedule)?;                               // or Work::new(&comm, task).start()
//! ```
//!
//! Contract
//! - All ranks plan with the same algorithm. What it is selected by is therefore equal on all ranks of a correct program: number of ranks, bytes
//!   (not counts: equal signatures may be written with different datatypes), and the operation.
//! - Reductions combine in rank order, whether an operation is commutative or not, unless an algorithm says otherwise; for a given number of
//!   ranks the order is always the same, and all ranks of an allreduce get the same bits.
//! - Messages of a collective have a context of their own and the operation's number as tag. The number is drawn before arguments are checked, so
//!   that a rank whose call fails stays in step with the others.

use std::sync::atomic::Ordering;

use limosa_p2p::Failure;
use limosa_p2p::memory::Region;

use crate::comm::Comm;
use crate::consts::MPI_BYTE;
use crate::datatype::Datatype;
use crate::error::{Error, Result};
use crate::request::error_of;

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod buffer;
mod depot;
mod exchange;
pub mod gather;
mod node;
pub mod reduce;
pub mod reduce_scatter;
mod run;
pub mod scan;
pub mod scatter;
mod schedule;
mod select;
#[cfg(test)]
mod tests;
mod work;

pub use buffer::{Blocks, Buffer};
use depot::{Deal, Desk, Terms};
pub(crate) use depot::{Depot, Sleepers};
pub(crate) use node::Node;
use node::{Kind, Turn};
pub use run::run;
pub use schedule::Schedule;
pub use work::{Task, Work};

/// Collectives of a sort are numbered modulo this: half of the tags, which are not negative, for each of two sorts.
const NUMBERS: u64 = 1 << 30;

/// A collective operation that this rank takes part in.
pub struct Call<'a> {
    comm: &'a Comm,
    tag: i32,
    /// For a blocking operation: what the members share, and the number of their turn.
    node: Option<(&'a Node, u64)>,
    sort: Sort,
}

/// How an operation is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Blocking,
    /// With its number, from 1.
    NonBlocking(u64),
    Persistent(u64),
}

impl<'a> Call<'a> {
    /// Begins a blocking collective operation: the next one on this communicator.
    #[inline]
    pub fn begin(comm: &'a Comm) -> Call<'a> {
        let node = Node::of(comm);
        // Members call collectives one after the other, so that nobody else counts meanwhile; an atomic addition would wait for all stores before it.
        let number = comm.coll_seq.load(Ordering::Relaxed);
        comm.coll_seq.store(number + 1, Ordering::Relaxed);
        Call { comm, tag: tag(0, number), node: node.map(|node| (node, number + 1)), sort: Sort::Blocking }
    }

    /// As [`Call::begin`], for an operation that goes by messages whatever there is.
    fn by_messages(comm: &'a Comm) -> Call<'a> {
        Call { comm, tag: tag(0, comm.coll_seq.fetch_add(1, Ordering::Relaxed)), node: None, sort: Sort::Blocking }
    }

    /// Begins a non-blocking collective operation: the next one of these and of persistent ones on this communicator.
    ///
    /// They are numbered apart from the blocking ones, with which they never match (MPI-5 section 6.12). The standard has all ranks call both in
    /// one order; programs that do not keep it between the two sorts still work.
    pub fn begin_nonblocking(comm: &'a Comm) -> Call<'a> {
        let number = comm.icoll_seq.fetch_add(1, Ordering::Relaxed);
        Call { comm, tag: tag(NUMBERS, number), node: None, sort: Sort::NonBlocking(number + 1) }
    }

    /// Begins the making of a persistent collective operation.
    pub fn begin_persistent(comm: &'a Comm) -> Call<'a> {
        let number = comm.icoll_seq.fetch_add(1, Ordering::Relaxed);
        Call { comm, tag: tag(NUMBERS, number), node: None, sort: Sort::Persistent(number + 1) }
    }

    /// The depot for an operation in the background of which a rank leaves at most so many bytes there, as all ranks know; `None` if there is none,
    /// or they do not fit.
    fn desk(&self, bytes: usize) -> Option<Desk> {
        self.desk_on(bytes, false)
    }

    /// As [`Call::desk`], for an operation that can lend what does not fit.
    fn desk_to_move(&self, bytes: usize) -> Option<Desk> {
        self.desk_on(bytes, true)
    }

    fn desk_on(&self, bytes: usize, may_lend: bool) -> Option<Desk> {
        let lends = |fits: bool| !fits && may_lend && Depot::of(self.comm).is_some_and(|depot| depot.lends());
        let on_terms = |fits| {
            let lends = lends(fits);
            (fits || lends).then_some(Terms { most: if fits { usize::MAX } else { 0 }, lends })
        };
        match self.sort {
            Sort::Blocking => None,
            Sort::NonBlocking(number) => {
                let depot = Depot::of(self.comm)?;
                let Some(terms) = on_terms(depot.can_hold(bytes)) else {
                    depot.pass_over(number);
                    return None;
                };
                Some(Desk { depot: depot.clone(), number: Some(number), terms })
            }
            Sort::Persistent(number) => {
                if let Some(Some(depot)) = self.comm.depot.get() {
                    depot.pass_over(number);
                }
                let fits = bytes <= depot::MOST_BYTES;
                let terms = on_terms(fits)?;
                let room = if fits { bytes } else { depot::LOAN_LINE * self.size() };
                let depot = Depot::for_persistent(self.comm, number, room).filter(|depot| depot.can_hold(room))?;
                Some(Desk { depot, number: None, terms })
            }
        }
    }

    /// As [`Call::desk_to_move`], for an operation with a root, of messages of so many bytes.
    fn desk_to_move_by_root(&self, bytes: usize, message: usize) -> Option<Desk> {
        self.desk_on(bytes, self.root_may_lend(message))
    }

    /// Two ranks with one large message copy it together if it goes by message, which takes half the time.
    fn root_may_lend(&self, message: usize) -> bool {
        const TOGETHER: usize = 128 << 10;
        self.size() > 2 || message < TOGETHER
    }

    /// As [`Call::desk`], for parts of which ranks do not know alike how long they are.
    fn desk_for_any(&self, has_root: bool) -> Option<Desk> {
        let mut desk = self.desk(depot::SLOT_BYTES)?;
        desk.terms.lends = (!has_root || self.root_may_lend(usize::MAX)) && Depot::of(self.comm).is_some_and(|depot| depot.lends());
        desk.terms.most = if matches!(self.sort, Sort::Persistent(_)) { depot::SLOT_BYTES } else { desk.depot.most_bytes() };
        Some(desk)
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

    /// Takes the operation's turn in shared memory, if there is any and so many bytes at once can be moved there.
    #[inline]
    fn turn(&self, kind: Kind, bytes: usize) -> Option<Turn<'a>> {
        let (node, number) = self.node.filter(|(node, _)| node.can_move(kind, bytes))?;
        Some(Turn::begin(node, self.comm, number, kind))
    }
}

fn tag(base: u64, number: u64) -> i32 {
    (base + number % NUMBERS) as i32
}

/// Waits until all members have called.
///
/// # Errors
/// Errors of the machine.
pub fn barrier(comm: &Comm) -> Result<()> {
    barrier::run(&Call::begin(comm))
}

/// Tells all members the bytes of each, which have the same length everywhere; returns them in rank order.
///
/// # Errors
/// Errors of the machine.
pub fn allgather_bytes(comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    let mut all = own_among_all(comm, mine);
    let blocks = Blocks::even(all.as_mut_ptr(), mine.len() as i64, Datatype::named(MPI_BYTE), comm.size(), "all")?;
    allgather::run(&Call::begin(comm), None, &blocks)?;
    Ok(all)
}

/// As [`allgather_bytes`], by messages.
fn allgather_by_messages(call: &Call<'_>, mine: &[u8]) -> Result<Vec<u8>> {
    let length = mine.len();
    let mut all = own_among_all(call.comm, mine);
    let start = all.as_mut_ptr();
    // SAFETY: the blocks lie in `all`, which lives to the end of this function; no step uses the block of another transfer.
    let block = |rank: usize| unsafe { Region::contiguous(start.add(rank * length), length) };
    let mut schedule = Schedule::new(call);
    exchange::exchange(&mut schedule, |_| block(call.rank()), block);
    run(call.comm, schedule)?;
    Ok(all)
}

/// The error of a collective operation that nothing can complete any more.
#[cold]
fn broken() -> Error {
    error_of(Failure::Device("the device failed during a collective operation".to_owned()))
}

/// Room for the bytes of all members, with this one's in place.
fn own_among_all(comm: &Comm, mine: &[u8]) -> Vec<u8> {
    let mut all = vec![0; mine.len() * comm.size()];
    all[comm.rank() as usize * mine.len()..][..mine.len()].copy_from_slice(mine);
    all
}
