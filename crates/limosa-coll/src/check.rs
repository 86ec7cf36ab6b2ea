//! The comparison of datatypes between the ranks of a collective, while the checks are on ([`limosa_mpi::check`]).
//!
//! Before the operation each rank tells each other one what basic types it is going to send to it, by an exchange on a
//! communicator of the same members that nothing else uses ([`Comm::twin`]). What does not match what a rank expects is
//! an error of that rank, after the operation: so no rank waits for one that has given up. A blocking operation is
//! preceded by a blocking exchange; for others the exchange is done in the background, once, from the call that makes
//! the request ([`Compared`]).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use limosa_mpi::check::HEADER;
use limosa_mpi::comm::{Comm, Inter, Purpose};
use limosa_mpi::consts::{MPI_BYTE, MPI_ERR_TYPE};
use limosa_mpi::datatype::Datatype;
use limosa_mpi::datatype::sequence::Sequence;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::headers::{decode, encode};
use limosa_mpi::observe::{Awaits, Waiting};
use limosa_mpi::operation::{End, Operation};
use limosa_p2p::{Interrupted, View};
use parking_lot::Mutex;

use super::buffer::{Blocks, Buffer};
use super::inter::Part;
use super::{Call, alltoall};

/// What this rank sends to each rank, and what it expects from each; `None` where nothing is sent, or nothing known.
pub struct Types {
    sends: Vec<Option<Sequence>>,
    expects: Vec<Option<Sequence>>,
    /// On an intercommunicator: where the ranks of the remote group are among both groups.
    remote: Range<usize>,
}

fn of(buffer: &Buffer) -> Option<Sequence> {
    Some(Types::whole(buffer))
}

impl Types {
    fn new(
        size: usize,
        sends: impl Fn(usize) -> Option<Sequence>,
        expects: impl Fn(usize) -> Option<Sequence>,
    ) -> Types {
        Types { sends: (0..size).map(sends).collect(), expects: (0..size).map(expects).collect(), remote: 0..0 }
    }

    /// Of an operation between two groups: what this rank sends to each rank of the remote one, and expects from it.
    fn between(
        inter: &Inter,
        sends: impl Fn(usize) -> Option<Sequence>,
        expects: impl Fn(usize) -> Option<Sequence>,
    ) -> Types {
        let remote = inter.remote();
        let of_remote = |rank: usize, what: &dyn Fn(usize) -> Option<Sequence>| {
            if remote.contains(&rank) { what(rank - remote.start) } else { None }
        };
        let size = inter.both().size();
        let types = Types::new(size, |rank| of_remote(rank, &sends), |rank| of_remote(rank, &expects));
        Types { remote, ..types }
    }

    /// What a buffer holds.
    pub fn whole(buffer: &Buffer) -> Sequence {
        buffer.datatype.sequence().repeated(buffer.count as u64)
    }

    /// What one of several blocks holds.
    pub fn part(blocks: &Blocks, rank: usize) -> Sequence {
        Types::whole(&blocks.of(rank))
    }

    /// Of an operation between two groups of which nothing is known here.
    pub fn unknown_between(inter: &Inter) -> Types {
        Types::between(inter, |_| None, |_| None)
    }

    /// Of a broadcast, a gather, a scatter or a reduction between two groups: `root` has the root's part, a buffer for
    /// all or one for each rank of the other group; `other` is what any other process sends or gets.
    pub fn rooted_between(
        inter: &Inter,
        part: Part,
        root_sends: bool,
        root: impl Fn(usize) -> Option<Sequence>,
        other: Option<&Buffer>,
    ) -> Types {
        let of_other = |rank: usize| other.filter(|_| part == Part::Of(rank)).and_then(of);
        let of_root = |rank: usize| if part == Part::Root { root(rank) } else { None };
        if root_sends { Types::between(inter, of_root, of_other) } else { Types::between(inter, of_other, of_root) }
    }

    /// Of an operation between two groups in which each rank sends the same to all, and gets a part from each.
    pub fn allgather_between(inter: &Inter, send: &Buffer, receive: &Blocks) -> Types {
        Types::between(inter, |_| of(send), |rank| of(&receive.of(rank)))
    }

    /// Of an operation between two groups in which each rank sends a part to each.
    pub fn alltoall_between(inter: &Inter, send: &Blocks, receive: &Blocks) -> Types {
        Types::between(inter, |rank| of(&send.of(rank)), |rank| of(&receive.of(rank)))
    }

    /// Of a reduction between two groups in which each gets the result of the other one.
    pub fn reduction_between(inter: &Inter, operand: &Buffer) -> Types {
        Types::between(inter, |_| of(operand), |_| of(operand))
    }

    /// Of an exchange with neighbours: what goes to each rank in all blocks for it, one behind the other, and what
    /// comes from it. `send` and `receive` give the buffer of each destination and source.
    fn of_neighbours(call: &Call<'_>, send: impl Fn(usize) -> Buffer, receive: impl Fn(usize) -> Buffer) -> Types {
        let mut types = Types::new(call.size(), |_| None, |_| None);
        // Without a topology the operation fails.
        let Ok(neighbours) = call.neighbours() else { return types };
        let append = |all: &mut Vec<Option<Sequence>>, rank: i32, buffer: Buffer| {
            let place = usize::try_from(rank).ok().and_then(|rank| all.get_mut(rank));
            if let (Some(place), Some(next)) = (place, of(&buffer)) {
                place.get_or_insert_default().append(&next);
            }
        };
        for (block, destination) in neighbours.destinations.iter().enumerate() {
            append(&mut types.sends, *destination, send(block));
        }
        for block in &neighbours.order {
            append(&mut types.expects, neighbours.sources[*block], receive(*block));
        }
        types
    }

    /// Of an allgather with neighbours.
    pub fn neighbour_allgather(call: &Call<'_>, send: &Buffer, receive: &Blocks) -> Types {
        Types::of_neighbours(call, |_| send.clone(), |block| receive.of(block))
    }

    /// Of an alltoall with neighbours.
    pub fn neighbour_alltoall(call: &Call<'_>, send: &Blocks, receive: &Blocks) -> Types {
        Types::of_neighbours(call, |block| send.of(block), |block| receive.of(block))
    }

    /// Of a broadcast.
    pub fn bcast(call: &Call<'_>, message: &Buffer, root: i32) -> Types {
        let is_root = call.is_at(root);
        Types::new(
            call.size(),
            |_| of(message).filter(|_| is_root),
            |rank| of(message).filter(|_| !is_root && rank as i32 == root),
        )
    }

    /// Of a gather.
    pub fn gather(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Types {
        Types::new(
            call.size(),
            |rank| send.filter(|_| rank as i32 == root).and_then(of),
            |rank| receive.and_then(|blocks| of(&blocks.of(rank))),
        )
    }

    /// Of a scatter.
    pub fn scatter(call: &Call<'_>, send: Option<&Blocks>, receive: Option<&Buffer>, root: i32) -> Types {
        Types::new(
            call.size(),
            |rank| send.and_then(|blocks| of(&blocks.of(rank))),
            |rank| receive.filter(|_| rank as i32 == root).and_then(of),
        )
    }

    /// Of an allgather.
    pub fn allgather(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Types {
        let own = send.map_or_else(|| of(&receive.of(call.rank())), of);
        Types::new(call.size(), |_| own.clone(), |rank| of(&receive.of(rank)))
    }

    /// Of an alltoall.
    pub fn alltoall(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Types {
        let send = send.unwrap_or(receive);
        Types::new(call.size(), |rank| of(&send.of(rank)), |rank| of(&receive.of(rank)))
    }

    /// Of a reduction or a scan: all operands are alike.
    pub fn reduction(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Buffer>) -> Types {
        let operand = send.or(receive).and_then(of);
        Types::new(call.size(), |_| operand.clone(), |_| operand.clone())
    }

    /// The first thing that does not match in what others have told.
    fn mismatch(&self, headers: &Headers) -> Option<Error> {
        self.expects.iter().enumerate().find_map(|(rank, expected)| {
            let expected = expected.as_ref()?;
            let found = headers.of_rank(rank)?.difference(expected)?;
            let who = match rank.checked_sub(self.remote.start).filter(|_| self.remote.contains(&rank)) {
                Some(rank) => format!("rank {rank} of the remote group"),
                None => format!("rank {rank}"),
            };
            let detail = format!(
                "{who} passes {} where this rank expects {}: the datatypes of the ranks do not match",
                found.left.name(),
                found.right.name()
            );
            Some(Error::new(MPI_ERR_TYPE, detail))
        })
    }
}

/// Words of a header.
const WORDS: usize = HEADER / 8;

/// Headers to and from all ranks.
struct Headers {
    out: Vec<AtomicU64>,
    arrived: Vec<AtomicU64>,
}

impl Headers {
    fn new(types: &Types) -> Headers {
        let words = |sequence: &Option<Sequence>| sequence.as_ref().map_or([0; WORDS], encode);
        let out: Vec<AtomicU64> = types.sends.iter().flat_map(words).map(AtomicU64::new).collect();
        Headers { arrived: out.iter().map(|_| AtomicU64::new(0)).collect(), out }
    }

    fn blocks(words: &[AtomicU64]) -> Result<Blocks> {
        let base = words.as_ptr().cast_mut().cast::<u8>();
        Blocks::even(base, HEADER as i64, Datatype::named(MPI_BYTE), words.len() / WORDS, "headers")
    }

    /// What a rank has told.
    fn of_rank(&self, rank: usize) -> Option<Sequence> {
        let words = &self.arrived[rank * WORDS..][..WORDS];
        decode(&std::array::from_fn(|i| words[i].load(Ordering::Relaxed)))
    }
}

/// Tells and learns the types of a blocking operation; gives the error of this rank after the operation.
///
/// # Errors
/// Errors of the machine.
#[cold]
pub fn compare(comm: &Comm, types: &Types) -> Result<Option<Error>> {
    let headers = Headers::new(types);
    let (out, arrived) = (Headers::blocks(&headers.out)?, Headers::blocks(&headers.arrived)?);
    alltoall::run(&Call::begin(comm.twin(Purpose::Checks)), Some(&out), &arrived)?;
    Ok(types.mismatch(&headers))
}

/// An operation in the background together with the exchange of its types.
pub struct Compared {
    comm: Arc<Comm>,
    operation: Arc<dyn Operation>,
    exchange: Arc<dyn Operation>,
    types: Types,
    headers: Headers,
    /// The exchange is over, and its end was taken.
    is_settled: AtomicBool,
    /// What it has found. Whoever takes the end of the exchange holds the lock.
    error: Mutex<Option<Error>>,
}

impl Compared {
    /// Starts the exchange for an operation that is going to be started.
    ///
    /// # Errors
    /// Those of planning the exchange.
    #[cold]
    pub fn begin(comm: &Arc<Comm>, types: Types, operation: Arc<dyn Operation>) -> Result<Arc<dyn Operation>> {
        let (headers, twin) = (Headers::new(&types), comm.twin(Purpose::Checks));
        let (out, arrived) = (Headers::blocks(&headers.out)?, Headers::blocks(&headers.arrived)?);
        let plan = alltoall::background(&Call::begin_nonblocking(twin), Some(&out), &arrived)?;
        let exchange = plan.into_operation(twin);
        exchange.clone().start()?;
        let (is_settled, error) = (AtomicBool::new(false), Mutex::new(None));
        Ok(Arc::new(Compared { comm: comm.clone(), operation, exchange, types, headers, is_settled, error }))
    }

    /// Whether the exchange is over.
    fn settle(&self) -> bool {
        if self.is_settled.load(Ordering::Acquire) {
            return true;
        }
        if !self.exchange.progress() {
            return false;
        }
        let mut error = self.error.lock();
        if !self.is_settled.load(Ordering::Acquire) {
            if let Some(End { error: None, .. }) = self.exchange.finish() {
                *error = self.types.mismatch(&self.headers);
            }
            self.is_settled.store(true, Ordering::Release);
        }
        true
    }

    fn with_error(&self, end: End) -> End {
        End { error: end.error.or_else(|| self.error.lock().clone()), ..end }
    }

    fn wait_for(&self, part: &dyn Operation, waiting: &Waiting<'_>) -> std::result::Result<(), Interrupted> {
        while !part.wait(waiting)? && !part.progress() {
            self.comm.engine().block_on(&mut |view| part.is_ready(view), waiting)?;
        }
        Ok(())
    }
}

impl Operation for Compared {
    fn start(self: Arc<Self>) -> Result<()> {
        self.operation.clone().start()
    }

    fn progress(&self) -> bool {
        let is_settled = self.settle();
        self.operation.progress() && is_settled
    }

    fn is_ready(&self, view: &View<'_>) -> bool {
        let part = if self.is_settled.load(Ordering::Acquire) { &self.operation } else { &self.exchange };
        part.is_ready(view)
    }

    fn finish(&self) -> Option<End> {
        if self.settle() { self.operation.finish().map(|end| self.with_error(end)) } else { None }
    }

    fn look(&self) -> Option<End> {
        if !self.settle() {
            self.comm.engine().poll();
        }
        if self.settle() { self.operation.look().map(|end| self.with_error(end)) } else { None }
    }

    fn cancel(&self) -> Result<()> {
        self.operation.cancel()
    }

    fn release(&self) -> Result<()> {
        self.operation.release()
    }

    fn wait(&self, waiting: &Waiting<'_>) -> std::result::Result<bool, Interrupted> {
        if !self.settle() {
            self.wait_for(&*self.exchange, waiting)?;
            self.settle();
        }
        self.wait_for(&*self.operation, waiting)?;
        Ok(true)
    }

    fn begin_sleep(&self) {
        self.exchange.begin_sleep();
        self.operation.begin_sleep();
    }

    fn end_sleep(&self) {
        self.operation.end_sleep();
        self.exchange.end_sleep();
    }

    fn keeps_memory(&self) -> bool {
        self.operation.keeps_memory()
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        self.operation.awaits()
    }
}
