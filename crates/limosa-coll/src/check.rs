//! Comparison of collective calls between ranks, while the checks are on ([`limosa_mpi::check`]).
//!
//! Before an operation the ranks exchange records of their calls, on a separate communicator of the same members
//! ([`Comm::twin`]): the function, its source line, and the basic types that it sends to each rank.
//!
//! - *Different functions, roots or operations* end the collectives of the communicator, as without the checks
//!   ([`crate::disagreement`]); every rank finds them, with the lines of both calls.
//! - *Different datatypes* are an error of the rank that expects others. It is raised after the operation, so no rank
//!   waits for a rank that has given up.
//!
//! All exchanges are non-blocking operations of one sequence, whatever they precede, so all ranks take part in the same
//! exchange even if they are about to call different functions. A blocking operation waits for two of them. The first
//! comes before its arguments are read ([`agree`]), so that a rank with wrong arguments stays in step; the second comes
//! before the operation begins ([`compare`]). For other operations there is one exchange, from the call that makes the
//! request ([`Compared`]).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use limosa_mpi::check::{self, HEADER};
use limosa_mpi::comm::{Comm, Inter, Purpose};
use limosa_mpi::consts::{MPI_BYTE, MPI_ERR_TYPE};
use limosa_mpi::datatype::Datatype;
use limosa_mpi::datatype::sequence::Sequence;
use limosa_mpi::error::{Error, Result};
use limosa_mpi::headers::{decode, encode};
use limosa_mpi::observe::{Awaits, Waiting, current_call};
use limosa_mpi::op::Op;
use limosa_mpi::operation::{End, Operation};
use limosa_p2p::{Interrupted, View};
use parking_lot::Mutex;

use super::buffer::{Blocks, Buffer};
use super::disagreement::{self, Difference};
use super::inter::RootRole;
use super::kind::{Collective, Signature};
use super::{Call, alltoall};

/// Types that this rank sends to and expects from each rank; `None` where no data are sent, or nothing is known.
pub struct Types {
    /// The call, with its root and operation as far as they are known.
    signature: Signature,
    sends: Vec<Option<Sequence>>,
    expects: Vec<Option<Sequence>>,
    /// On an intercommunicator: the range of the remote group's ranks within both groups.
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
        Types {
            signature: Signature::of_function(current_call()),
            sends: (0..size).map(sends).collect(),
            expects: (0..size).map(expects).collect(),
            remote: 0..0,
        }
    }

    /// Types of an operation that moves no data, or of which only the function is known yet.
    pub fn none(comm: &Comm) -> Types {
        Types::new(comm.size(), |_| None, |_| None)
    }

    /// Adds the root. A root that is no rank is an error of the call.
    fn rooted(mut self, root: i32) -> Types {
        if let Some(root) = usize::try_from(root).ok().filter(|root| *root < self.sends.len()) {
            self.signature = self.signature.with_root(root);
        }
        self
    }

    /// Types of an operation between two groups: sent to and expected from each rank of the remote group.
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

    /// Returns the types of a buffer.
    pub fn whole(buffer: &Buffer) -> Sequence {
        buffer.datatype.sequence().repeated(buffer.count as u64)
    }

    /// Returns the types of one of several blocks.
    pub fn part(blocks: &Blocks, rank: usize) -> Sequence {
        Types::whole(&blocks.of(rank))
    }

    /// Types of an operation between two groups, unknown at this rank.
    pub fn unknown_between(inter: &Inter) -> Types {
        Types::between(inter, |_| None, |_| None)
    }

    /// Types of a broadcast, a gather, a scatter or a reduction between two groups. `root` has the root's part, a
    /// buffer for all or for each rank of the remote group; `other` is what any other process sends or receives.
    pub fn rooted_between(
        inter: &Inter,
        part: RootRole,
        root_sends: bool,
        root: impl Fn(usize) -> Option<Sequence>,
        other: Option<&Buffer>,
    ) -> Types {
        let of_other = |rank: usize| other.filter(|_| part == RootRole::Of(rank)).and_then(of);
        let of_root = |rank: usize| if part == RootRole::Root { root(rank) } else { None };
        if root_sends { Types::between(inter, of_root, of_other) } else { Types::between(inter, of_other, of_root) }
    }

    /// Types of an operation between two groups in which each rank sends the same to all, and receives a part from
    /// each.
    pub fn allgather_between(inter: &Inter, send: &Buffer, receive: &Blocks) -> Types {
        Types::between(inter, |_| of(send), |rank| of(&receive.of(rank)))
    }

    /// Types of an operation between two groups in which each rank sends a part to each.
    pub fn alltoall_between(inter: &Inter, send: &Blocks, receive: &Blocks) -> Types {
        Types::between(inter, |rank| of(&send.of(rank)), |rank| of(&receive.of(rank)))
    }

    /// Types of a reduction between two groups in which each group receives the result of the remote group.
    pub fn reduction_between(inter: &Inter, operand: &Buffer) -> Types {
        Types::between(inter, |_| of(operand), |_| of(operand))
    }

    /// Types of an exchange with neighbours: all blocks to each rank concatenated, and all blocks from it. `send` and
    /// `receive` return the buffer of each destination and source.
    fn of_neighbours(call: &Call<'_>, send: impl Fn(usize) -> Buffer, receive: impl Fn(usize) -> Buffer) -> Types {
        let mut types = Types::new(call.size(), |_| None, |_| None);
        // Without a topology the operation fails by itself.
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

    /// Types of a neighbourhood allgather.
    pub fn neighbour_allgather(call: &Call<'_>, send: &Buffer, receive: &Blocks) -> Types {
        Types::of_neighbours(call, |_| send.clone(), |block| receive.of(block))
    }

    /// Types of a neighbourhood alltoall.
    pub fn neighbour_alltoall(call: &Call<'_>, send: &Blocks, receive: &Blocks) -> Types {
        Types::of_neighbours(call, |block| send.of(block), |block| receive.of(block))
    }

    /// Types of a broadcast.
    pub fn bcast(call: &Call<'_>, message: &Buffer, root: i32) -> Types {
        let is_root = call.is_at(root);
        Types::new(
            call.size(),
            |_| of(message).filter(|_| is_root),
            |rank| of(message).filter(|_| !is_root && rank as i32 == root),
        )
        .rooted(root)
    }

    /// Types of a gather.
    pub fn gather(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Blocks>, root: i32) -> Types {
        Types::new(
            call.size(),
            |rank| send.filter(|_| rank as i32 == root).and_then(of),
            |rank| receive.and_then(|blocks| of(&blocks.of(rank))),
        )
        .rooted(root)
    }

    /// Types of a scatter.
    pub fn scatter(call: &Call<'_>, send: Option<&Blocks>, receive: Option<&Buffer>, root: i32) -> Types {
        Types::new(
            call.size(),
            |rank| send.and_then(|blocks| of(&blocks.of(rank))),
            |rank| receive.filter(|_| rank as i32 == root).and_then(of),
        )
        .rooted(root)
    }

    /// Types of an allgather.
    pub fn allgather(call: &Call<'_>, send: Option<&Buffer>, receive: &Blocks) -> Types {
        let own = send.map_or_else(|| of(&receive.of(call.rank())), of);
        Types::new(call.size(), |_| own.clone(), |rank| of(&receive.of(rank)))
    }

    /// Types of an alltoall.
    pub fn alltoall(call: &Call<'_>, send: Option<&Blocks>, receive: &Blocks) -> Types {
        let send = send.unwrap_or(receive);
        Types::new(call.size(), |rank| of(&send.of(rank)), |rank| of(&receive.of(rank)))
    }

    /// Types of a reduction or a scan: all operands are alike.
    pub fn reduction(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Buffer>, op: &Op) -> Types {
        let operand = send.or(receive).and_then(of);
        let types = Types::new(call.size(), |_| operand.clone(), |_| operand.clone());
        Types { signature: types.signature.with_op(op), ..types }
    }

    /// Types of a reduction to a root.
    pub fn rooted_reduction(
        call: &Call<'_>,
        send: Option<&Buffer>,
        receive: Option<&Buffer>,
        op: &Op,
        root: i32,
    ) -> Types {
        Types::reduction(call, send, receive, op).rooted(root)
    }

    /// Returns the error of the first datatype from another rank that this rank does not expect.
    fn mismatch(&self, headers: &Headers) -> Option<Error> {
        self.expects.iter().enumerate().find_map(|(rank, expected)| {
            let expected = expected.as_ref()?;
            let found = headers.of_rank(rank)?.difference(expected)?;
            let sender = match rank.checked_sub(self.remote.start).filter(|_| self.remote.contains(&rank)) {
                Some(rank) => format!("rank {rank} of the remote group"),
                None => format!("rank {rank}"),
            };
            let detail = format!(
                "{sender} passes {} where this rank expects {}: the datatypes of the ranks do not match",
                found.left.name(),
                found.right.name()
            );
            Some(Error::new(MPI_ERR_TYPE, detail))
        })
    }
}

/// Words of a record: types, the function's name, the source line of the call, and the total.
const TYPE_WORDS: usize = HEADER / 8;
const NAME_WORDS: usize = 4;
const SITE_WORDS: usize = 27;
const WORDS: usize = TYPE_WORDS + 1 + NAME_WORDS + SITE_WORDS;

/// Returns a text as a number of words, ended by a zero byte if it is shorter; no text if it is longer.
fn words_of_text(text: &str, words: usize) -> impl Iterator<Item = u64> {
    let text = if text.len() <= 8 * words { text.as_bytes() } else { &[] };
    (0..words).map(move |word| {
        let bytes = |at: usize| text.get(8 * word + at).copied().unwrap_or(0);
        u64::from_ne_bytes(std::array::from_fn(bytes))
    })
}

fn text_of_words(words: &[AtomicU64]) -> String {
    let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
    String::from_utf8_lossy(&bytes.take_while(|byte| *byte != 0).collect::<Vec<u8>>()).into_owned()
}

/// Records to and from all ranks.
struct Headers {
    out: Vec<AtomicU64>,
    arrived: Vec<AtomicU64>,
}

impl Headers {
    fn new(types: &Types) -> Headers {
        let call = current_call();
        let (name, site) = (call.strip_suffix("_c").unwrap_or(call), check::site());
        let mut out = Vec::with_capacity(types.sends.len() * WORDS);
        for sequence in &types.sends {
            out.extend(sequence.as_ref().map_or([0; TYPE_WORDS], encode));
            out.push(types.signature.word().into());
            out.extend(words_of_text(name, NAME_WORDS));
            out.extend(words_of_text(&site, SITE_WORDS));
        }
        let arrived = out.iter().map(|_| AtomicU64::new(0)).collect();
        Headers { arrived, out: out.into_iter().map(AtomicU64::new).collect() }
    }

    fn blocks(words: &[AtomicU64]) -> Result<Blocks> {
        let base = words.as_ptr().cast_mut().cast::<u8>();
        Blocks::even(base, 8 * WORDS as i64, Datatype::named(MPI_BYTE), words.len() / WORDS, "headers")
    }

    /// Starts the exchange of records with all ranks of a communicator.
    fn exchange(&self, comm: &Comm) -> Result<Arc<dyn Operation>> {
        let twin = comm.twin(Purpose::Checks);
        let (out, arrived) = (Headers::blocks(&self.out)?, Headers::blocks(&self.arrived)?);
        let plan = alltoall::background(&Call::begin_nonblocking(twin), Some(&out), &arrived)?;
        let exchange = plan.into_operation(twin);
        exchange.clone().start()?;
        Ok(exchange)
    }

    fn record(&self, rank: usize) -> &[AtomicU64] {
        &self.arrived[rank * WORDS..][..WORDS]
    }

    /// Returns the types that a rank sends to this one.
    fn of_rank(&self, rank: usize) -> Option<Sequence> {
        decode(&std::array::from_fn(|i| self.record(rank)[i].load(Ordering::Relaxed)))
    }

    fn signature(&self, rank: usize) -> Option<Signature> {
        Signature::of_word(self.record(rank)[TYPE_WORDS].load(Ordering::Relaxed) as u32)
    }

    /// Returns the error of all ranks if two of them have called different functions, or with different roots or
    /// operations.
    fn difference(&self) -> Option<Error> {
        let mut known = (0..self.out.len() / WORDS).filter_map(|rank| Some((rank, self.signature(rank)?)));
        let (rank, first) = known.next()?;
        let (other, second) = known.find(|(_, signature)| *signature != first)?;
        let call = |rank: usize, signature: Signature, other: Signature| {
            let (name, site) = self.record(rank)[TYPE_WORDS + 1..].split_at(NAME_WORDS);
            let line = check::site_in_words(&text_of_words(site));
            format!("{}{}{line}", text_of_words(name), signature.distinction(other))
        };
        let calls = [call(rank, first, second), call(other, second, first)];
        Some(disagreement::error_in_words([Some(rank), Some(other)], Difference { first, second }, calls))
    }

    /// Returns the verdict of a finished exchange: `Err` ends the collectives of the communicator, and an `Error` is
    /// this rank's own, after the operation.
    fn judge(&self, comm: &Comm, types: &Types) -> Result<Option<Error>> {
        match self.difference() {
            Some(error) => Err(disagreement::raise(comm.engine(), comm.coll_context(), comm.group(), error)),
            None => Ok(types.mismatch(self)),
        }
    }
}

/// Waits for the end of an operation, which the hang report shows as an operation on `comm`.
fn wait_for(comm: &Comm, operation: &dyn Operation, waiting: &Waiting<'_>) -> std::result::Result<(), Interrupted> {
    while !operation.wait(waiting)? && !operation.progress() {
        comm.engine().block_on(&mut |view| operation.is_ready(view), waiting)?;
    }
    Ok(())
}

/// Compares the functions that ranks have called, before the arguments of a blocking operation are read.
///
/// # Errors
/// Ranks have called different functions; errors of the machine.
pub fn agree(comm: &Comm) -> Result<()> {
    if check::is_on() { compare(comm, &Types::none(comm)).map(drop) } else { Ok(()) }
}

/// As [`agree`], for a function that makes a communicator or another object.
pub(crate) fn agree_on_making(comm: &Comm, kind: Collective) -> Result<()> {
    if !check::is_on() {
        return Ok(());
    }
    compare(comm, &Types { signature: Signature::making(kind), ..Types::none(comm) }).map(drop)
}

/// Compares the calls of a blocking operation; returns the error that this rank raises after the operation.
///
/// # Errors
/// Ranks have called different functions, or with different roots or operations; errors of the machine.
#[cold]
pub fn compare(comm: &Comm, types: &Types) -> Result<Option<Error>> {
    let headers = Headers::new(types);
    let exchange = headers.exchange(comm)?;
    if let Err(interrupted) = wait_for(comm, &*exchange, &Waiting::collective(comm, None)) {
        // The exchange continues to use them.
        std::mem::forget(headers);
        comm.engine().fall_out_of_step(comm.coll_context());
        return Err(interrupted.into());
    }
    match exchange.finish().and_then(|end| end.error) {
        Some(error) => Err(error),
        None => headers.judge(comm, types),
    }
}

/// An operation in the background together with the exchange of its types.
pub struct Compared {
    comm: Arc<Comm>,
    operation: Arc<dyn Operation>,
    exchange: Arc<dyn Operation>,
    types: Types,
    headers: Headers,
    /// Whether the exchange is over and its end was taken.
    is_settled: AtomicBool,
    /// The error found by the exchange. The lock is held while the end of the exchange is taken.
    error: Mutex<Option<Error>>,
}

impl Compared {
    /// Starts the exchange for an operation that is going to be started.
    ///
    /// # Errors
    /// Those of planning the exchange.
    #[cold]
    pub fn begin(comm: &Arc<Comm>, types: Types, operation: Arc<dyn Operation>) -> Result<Arc<dyn Operation>> {
        let headers = Headers::new(&types);
        let exchange = headers.exchange(comm)?;
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
                *error = self.headers.judge(&self.comm, &self.types).unwrap_or_else(Some);
            }
            self.is_settled.store(true, Ordering::Release);
        }
        true
    }

    fn with_error(&self, end: End) -> End {
        End { error: end.error.or_else(|| self.error.lock().clone()), ..end }
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
            wait_for(&self.comm, &*self.exchange, waiting)?;
            self.settle();
        }
        wait_for(&self.comm, &*self.operation, waiting)?;
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
