//! Schedules: the steps of one rank in a collective.
//!
//! Every algorithm plans before any data move, and its plan is a [`Schedule`]. Blocking, non-blocking and persistent
//! forms of an operation run the same schedule, in the calling thread or driven by completions ([`super::run`]); tests
//! run the schedules of all ranks against each other in one thread.
//!
//! | step | meaning |
//! |---|---|
//! | send, receive | starts a transfer to or from a rank; transfers between two waits are one *round* |
//! | wait | waits until all started transfers have ended |
//! | copy, reduce | done at once, in the order of the list |
//!
//! Contract
//! - The end of the list is a wait.
//! - Between the start of a transfer and the next wait, no step changes the memory of a send or accesses that of a
//!   receive.
//! - Messages between two ranks are received in the order in which they are sent; no schedule relies on more.
//! - Transfers of no bytes are omitted, since both sides know the length. (A barrier sends signals, which are not
//!   omitted.)
//! - A schedule owns its temporary memory, and keeps datatypes and the operation alive. The program's buffers stay
//!   valid and unchanged until it has ended, as the standard requires of the program.
//! - Running a schedule does not change it, so it can run again.
//! - An algorithm asks the schedule for its rank and the number of ranks, and names partners by such ranks. Within
//!   [`Schedule::over`] these are places in a list of ranks: every algorithm runs over any subgroup, and several can be
//!   planned in sequence.

use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::Arc;

use limosa_p2p::Failure;
use limosa_p2p::memory::Region;

use super::buffer::Buffer;
use super::call_log::LoggedCall;
use super::kind::{Collective, Signature, Signed};
use super::numbers;
use limosa_mpi::datatype::{Datatype, Held};
use limosa_mpi::error::{Error, Result, error_of};
use limosa_mpi::fail;
use limosa_mpi::op::Op;

/// Temporary memory starts on a cache line.
const LINE: usize = 64;

/// One step of a schedule.
pub(super) enum Step {
    /// Starts to send to a rank.
    Send { to: u32, region: Region },
    /// Starts to receive from a rank exactly as many bytes as the region has.
    Receive { from: u32, region: Region },
    /// Waits for all started transfers.
    Wait,
    /// Copies; both regions have the same number of bytes.
    Copy { from: Region, to: Region },
    /// Combines elements: `into[i] = from[i] op into[i]`.
    Reduce { from: *const u8, into: *mut u8, count: usize },
}

/// A member of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// This rank.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// Number of the operation among those of its sort.
    pub number: u64,
    /// The signature of its call.
    pub(super) signature: Signature,
}

impl Member {
    /// Returns the operation of this kind with this member's signature.
    pub(super) fn signed(self, kind: Collective) -> Signed {
        if self.signature.is_known() { Signed::alone(kind, self.signature) } else { kind.into() }
    }
}

/// The steps of one rank in a collective operation.
pub struct Schedule {
    rank: usize,
    size: usize,
    pub(super) tag: i32,
    pub(super) call: LoggedCall,
    pub(super) steps: Vec<Step>,
    /// Ranks of a subgroup's members, while steps over it are planned.
    members: Option<Box<[u32]>>,
    temporaries: Vec<Arc<Temporary>>,
    /// Operation and datatype of the reduce steps.
    reduction: Option<(Arc<Op>, Held)>,
}

// SAFETY: the addresses in a schedule are those of memory that it owns, and of buffers that the program leaves to the
// operation until it has ended, whichever thread carries it out.
unsafe impl Send for Schedule {}

impl Schedule {
    /// Makes a schedule without steps.
    pub(super) fn new(member: impl Into<Member>) -> Schedule {
        let Member { rank, size, number, signature } = member.into();
        Schedule {
            rank,
            size,
            tag: numbers::tag(number, signature),
            call: LoggedCall { number, signature },
            steps: Vec::with_capacity(8),
            members: None,
            temporaries: Vec::new(),
            reduction: None,
        }
    }

    /// Plans steps over a subgroup, of which `members` are the ranks in order: `plan` sees their places as ranks. For a
    /// rank outside the subgroup nothing is planned. The new steps begin after a wait.
    ///
    /// # Errors
    /// Those of `plan`.
    pub(super) fn over(&mut self, members: &[u32], plan: impl FnOnce(&mut Schedule) -> Result<()>) -> Result<()> {
        let Some(place) = members.iter().position(|member| *member as usize == self.rank) else { return Ok(()) };
        if !matches!(self.steps.last(), None | Some(Step::Wait)) {
            self.wait();
        }
        let (count, members) = (members.len(), members.iter().map(|member| self.named(*member as usize)).collect());
        let (rank, size) = (self.rank, self.size);
        let outer = self.members.replace(members);
        (self.rank, self.size) = (place, count);
        let outcome = plan(self);
        (self.rank, self.size, self.members) = (rank, size, outer);
        outcome
    }

    /// Returns the rank in the communicator of a rank in the subgroup that is being planned.
    fn named(&self, rank: usize) -> u32 {
        self.members.as_ref().map_or(rank as u32, |members| members[rank])
    }

    /// Returns the rank that runs this schedule.
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of ranks.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Sends the region's bytes to rank `to`.
    pub(super) fn send(&mut self, to: usize, region: Region) {
        if !region.is_empty() {
            self.steps.push(Step::Send { to: self.named(to), region });
        }
    }

    /// Receives the region's bytes from rank `from`.
    pub(super) fn receive(&mut self, from: usize, region: Region) {
        if !region.is_empty() {
            self.steps.push(Step::Receive { from: self.named(from), region });
        }
    }

    /// Sends rank `to` a message without bytes.
    pub(super) fn signal(&mut self, to: usize) {
        self.steps.push(Step::Send { to: self.named(to), region: Region::empty() });
    }

    /// Receives a message without bytes from rank `from`.
    pub(super) fn receive_signal(&mut self, from: usize) {
        self.steps.push(Step::Receive { from: self.named(from), region: Region::empty() });
    }

    /// Ends a round.
    pub(super) fn wait(&mut self) {
        self.steps.push(Step::Wait);
    }

    /// Copies this rank's data to itself.
    ///
    /// # Errors
    /// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if the two sides differ in length.
    pub(super) fn copy(&mut self, from: Region, to: Region) -> Result<()> {
        check_own(self.named(self.rank) as usize, &from, &to)?;
        if !from.is_empty() {
            self.steps.push(Step::Copy { from, to });
        }
        Ok(())
    }

    /// Sets the operation and the datatype of the reduce steps of this schedule.
    pub(super) fn reduce_with(&mut self, op: Arc<Op>, datatype: impl Into<Held>) {
        self.reduction = Some((op, datatype.into()));
    }

    /// Combines two buffers of equally many elements: `into = from op into`. `from` has the operands of lower ranks.
    pub(super) fn reduce(&mut self, from: &Buffer, into: &Buffer) {
        debug_assert_eq!(from.count, into.count);
        if into.count != 0 {
            self.steps.push(Step::Reduce { from: from.base, into: into.base, count: into.count });
        }
    }

    /// Whether a step calls a function of the program, which only a thread of the program may run.
    pub(super) fn is_for_program(&self, step: &Step) -> bool {
        matches!(step, Step::Reduce { .. }) && self.reduction.as_ref().is_some_and(|(op, _)| !op.is_predefined())
    }

    /// Runs a copy or reduce step.
    ///
    /// # Errors
    /// Errors of the operation.
    pub(super) fn do_local(&self, step: &Step) -> Result<()> {
        match step {
            Step::Copy { from, to } => copy(from, to),
            Step::Reduce { from, into, count } => {
                let (op, datatype) = self.reduction.as_ref().expect("`reduce_with` precedes the reduce steps");
                // SAFETY: planned for buffers of `count` elements; nothing else touches them during a local step.
                unsafe { op.reduce_local(*from, *into, *count, datatype)? }
            }
            Step::Send { .. } | Step::Receive { .. } | Step::Wait => {}
        }
        Ok(())
    }

    /// Returns the memory that a copy or reduce step reads, and that it writes.
    #[cfg(test)]
    pub(super) fn touched_by(&self, step: &Step) -> (Region, Region) {
        match step {
            Step::Copy { from, to } => (from.clone(), to.clone()),
            Step::Reduce { from, into, count } => {
                let (_, datatype) = self.reduction.as_ref().expect("`reduce_with` precedes the reduce steps");
                // SAFETY: planned for buffers of `count` elements.
                unsafe { (datatype.region(from.cast_mut(), *count), datatype.region(*into, *count)) }
            }
            Step::Send { .. } | Step::Receive { .. } | Step::Wait => (Region::empty(), Region::empty()),
        }
    }

    /// Allocates temporary memory for elements of a datatype, laid out as in a buffer of the program.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn elements(&mut self, count: usize, datatype: &Arc<Datatype>) -> Result<Buffer> {
        let (temporary, elements) = loose_elements(count, datatype)?;
        self.temporaries.push(Arc::new(temporary));
        Ok(elements)
    }

    /// Allocates temporary memory, which lives as long as the schedule.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn temporary(&mut self, bytes: usize) -> Result<*mut u8> {
        let temporary = Temporary::new(bytes)?;
        let start = temporary.start();
        self.temporaries.push(Arc::new(temporary));
        Ok(start)
    }

    /// Whether it has more temporary memory than should stay allocated after its end.
    pub(super) fn keeps_memory(&self) -> bool {
        const MUCH: usize = 64 << 10;
        self.temporaries.iter().map(|temporary| temporary.layout.size()).sum::<usize>() > MUCH
    }

    /// Shares temporary memory with other owners as long as the schedule lives.
    pub(super) fn keep(&mut self, temporaries: &[Arc<Temporary>]) {
        self.temporaries.extend_from_slice(temporaries);
    }
}

/// Makes the error of a collective operation that can no longer complete.
#[cold]
pub(super) fn broken() -> Error {
    error_of(Failure::Device("the device failed during a collective operation".to_owned()))
}

/// Makes the error that ranks disagree about the length of a message.
#[cold]
pub(super) fn mismatch(from: usize, sent: usize, room: usize) -> Error {
    let class = if sent > room { limosa_mpi::consts::MPI_ERR_TRUNCATE } else { limosa_mpi::consts::MPI_ERR_COUNT };
    let detail = format!(
        "rank {from} sent {sent} bytes where this rank expects {room}: the counts or datatypes of the ranks do not \
         match"
    );
    Error::new(class, detail)
}

pub(super) fn check_own(rank: usize, from: &Region, to: &Region) -> Result<()> {
    if from.len() == to.len() { Ok(()) } else { Err(mismatch(rank, from.len(), to.len())) }
}

/// Copies this rank's data to itself.
///
/// # Errors
/// `MPI_ERR_TRUNCATE` or `MPI_ERR_COUNT` if the two sides differ in length.
pub(super) fn copy_own(rank: usize, from: &Region, to: &Region) -> Result<()> {
    check_own(rank, from, to)?;
    copy(from, to);
    Ok(())
}

/// Allocates temporary memory for elements of a datatype, laid out as in a buffer of the program.
///
/// # Errors
/// `MPI_ERR_NO_MEM`.
pub(super) fn loose_elements(count: usize, datatype: &Arc<Datatype>) -> Result<(Temporary, Buffer)> {
    let (extent, true_lb, true_extent) = (datatype.extent(), datatype.true_lb(), datatype.true_extent());
    // From the lowest byte of the data to the highest; with a negative extent the last element is the lowest.
    let stretch = (count as i64 - 1).max(0).checked_mul(extent);
    let bytes = stretch
        .and_then(|stretch| stretch.abs().checked_add(true_extent))
        .and_then(|bytes| usize::try_from(bytes).ok());
    let temporary = Temporary::new(bytes.unwrap_or(usize::MAX))?;
    let lowest = true_lb + stretch.unwrap_or(0).min(0);
    let base = temporary.start().wrapping_offset(-lowest as isize);
    Ok((temporary, Buffer { base, count, datatype: datatype.into() }))
}

/// Copies the bytes of a region, in stream order, to a region of the same length.
pub(super) fn copy(from: &Region, to: &Region) {
    const CHUNK: usize = 16 << 10;
    let bytes = from.len().min(to.len());
    match (from.as_contiguous(), to.as_contiguous()) {
        // SAFETY: both blocks have at least `bytes` bytes, which are readable and writable by the promise of their
        // creators.
        (Some(source), Some(target)) => unsafe { std::ptr::copy(source, target, bytes) },
        // SAFETY: as above. Overlapping regions are an error of the program, which is checked for where that is cheap.
        (None, Some(target)) => from.read(0, unsafe { std::slice::from_raw_parts_mut(target, bytes) }),
        // SAFETY: as above.
        (Some(source), None) => to.write(0, unsafe { std::slice::from_raw_parts(source, bytes) }),
        (None, None) => {
            let mut chunk = [0; CHUNK];
            for offset in (0..bytes).step_by(CHUNK) {
                let part = &mut chunk[..CHUNK.min(bytes - offset)];
                from.read(offset, part);
                to.write(offset, part);
            }
        }
    }
}

/// A block of memory.
pub(super) struct Temporary {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its block, and only returns the address.
unsafe impl Send for Temporary {}
// SAFETY: as above.
unsafe impl Sync for Temporary {}

impl Temporary {
    /// Allocates a block of so many bytes, uninitialised.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn new(bytes: usize) -> Result<Temporary> {
        // SAFETY: the layout is not empty.
        Temporary::made(bytes, |layout| unsafe { alloc::alloc(layout) })
    }

    /// Allocates a block of so many zeroes.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM`.
    pub(super) fn zeroed(bytes: usize) -> Result<Temporary> {
        // SAFETY: the layout is not empty.
        Temporary::made(bytes, |layout| unsafe { alloc::alloc_zeroed(layout) })
    }

    fn made(bytes: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Result<Temporary> {
        // One byte at least, so that every block has an address of its own.
        let Ok(layout) = Layout::from_size_align(bytes.max(1), LINE) else {
            fail!(
                MPI_ERR_NO_MEM,
                "this operation needs {bytes} bytes of temporary memory, which is more than there can be"
            );
        };
        match NonNull::new(allocate(layout)) {
            Some(start) => Ok(Temporary { start, layout }),
            None => fail!(
                MPI_ERR_NO_MEM,
                "there is not enough memory for the {bytes} bytes that this operation needs temporarily"
            ),
        }
    }

    /// Returns its address.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}
