//! Comparison of collective calls between ranks, while the checks are on ([`limosa_mpi::check`]).
//!
//! Before an operation the ranks exchange records of their calls, on a separate communicator of the same members
//! ([`Comm::twin`]): the function, its source line, and the basic types that it sends to each rank.
//!
//! - *Different functions, roots or operations* end the collectives of the communicator, as without the checks
//!   ([`crate::disagreement`]); every rank finds them, with the lines of both calls.
//! - *Different lengths* in a blocking operation are an error of all ranks, and the operation is not begun: ranks might
//!   choose different algorithms.
//! - *Different datatypes* are an error of the rank that expects others. It is raised after the operation, so no rank
//!   waits for a rank that has given up.
//!
//! Records are messages. Each rank sends its record to the next rank, so that of two ranks that differ a neighbour
//! finds out, and to the ranks that get data from it. Records of all calls have numbers of one sequence, so that
//! records of the same call meet even if ranks call different functions. A record is compared as soon as it arrives,
//! by any thread in the library.
//!
//! A blocking operation compares twice. The first time is before its arguments are read ([`agree`]). The second is
//! before the operation begins ([`compare`]), and ends with a reduction of the verdicts: no data move before all
//! ranks have compared. A rank with wrong arguments makes up for the second comparison in its next call.
//!
//! Other operations compare once, from the call that makes the request ([`Compared`]). Of a call with wrong arguments
//! only the number of its record is used ([`begin`]). Completion waits for the records of ranks whose data the
//! operation gets, and for no others. The record of the previous rank may arrive later: a difference is then the error
//! of a later call, or told at the end ([`late_differences`]).

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use limosa_mpi::check::{self, HEADER};
use limosa_mpi::comm::{Comm, Inter, Purpose};
use limosa_mpi::consts::{MPI_BYTE, MPI_ERR_TRUNCATE, MPI_ERR_TYPE, MPI_INT32_T, MPI_MAX};
use limosa_mpi::datatype::Datatype;
use limosa_mpi::datatype::sequence::Sequence;
use limosa_mpi::error::{Error, Result, error_of};
use limosa_mpi::group::Group;
use limosa_mpi::headers::{decode, encode};
use limosa_mpi::observe::{Awaits, Waiting, current_call};
use limosa_mpi::op::Op;
use limosa_mpi::operation::{End, Operation};
use limosa_p2p::matching::{Envelope, Pattern};
use limosa_p2p::memory::Region;
use limosa_p2p::{Completion, Engine, Interrupted, Mode, Peer, Started, View, in_service};
use parking_lot::Mutex;

use super::buffer::{Blocks, Buffer};
use super::disagreement::{self, Difference};
use super::inter::RootRole;
use super::kind::{Collective, Signature};
use super::numbers;
use super::state::CommState;
use super::{Call, allreduce};

/// Types that this rank sends to and expects from each rank; `None` where no data are sent. A rank waits for records of
/// ranks from which it expects types, so those send a record whatever their arguments, of unknown types if need be.
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

    /// Types of a call that has failed before its arguments were compared.
    fn of_failed(comm: &Comm) -> Types {
        let types = Types::new(comm.size(), |_| Some(Sequence::unknown()), |_| None);
        Types { signature: Signature::default(), ..types }
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
        Types::between(inter, |_| Some(Sequence::unknown()), |_| None)
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
            |rank| (rank as i32 == root).then(|| send.map_or_else(Sequence::unknown, Types::whole)),
            |rank| receive.and_then(|blocks| of(&blocks.of(rank))),
        )
        .rooted(root)
    }

    /// Types of a scatter.
    pub fn scatter(call: &Call<'_>, send: Option<&Blocks>, receive: Option<&Buffer>, root: i32) -> Types {
        let is_root = call.is_at(root);
        Types::new(
            call.size(),
            |rank| is_root.then(|| send.map_or_else(Sequence::unknown, |blocks| Types::part(blocks, rank))),
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

    /// Types of a reduction: all operands are alike.
    pub fn reduction(call: &Call<'_>, send: Option<&Buffer>, receive: Option<&Buffer>, op: &Op) -> Types {
        Types::combined(call, send.or(receive), op, |_| true, |_| true)
    }

    /// Types of a reduction of which each rank gets a part, of this many elements: it combines that part of all
    /// operands.
    pub fn reduction_in_parts(
        call: &Call<'_>,
        send: Option<&Buffer>,
        receive: &Buffer,
        counts: &[i64],
        op: &Op,
    ) -> Types {
        let operand = send.unwrap_or(receive);
        let part = |rank: usize| Some(operand.datatype.sequence().repeated(counts[rank] as u64));
        let types = Types::new(call.size(), part, |_| part(call.rank()));
        Types { signature: types.signature.with_op(op), ..types }
    }

    /// Types of a scan: operands go to higher ranks.
    pub fn scan(call: &Call<'_>, send: Option<&Buffer>, receive: &Buffer, op: &Op) -> Types {
        let me = call.rank();
        Types::combined(call, send.or(Some(receive)), op, |rank| rank > me, |rank| rank < me)
    }

    /// Types of a reduction to a root.
    pub fn rooted_reduction(
        call: &Call<'_>,
        send: Option<&Buffer>,
        receive: Option<&Buffer>,
        op: &Op,
        root: i32,
    ) -> Types {
        let is_root = call.is_at(root);
        Types::combined(call, send.or(receive), op, |rank| rank as i32 == root, |_| is_root).rooted(root)
    }

    /// Types of a reduction whose operands go to some ranks, and come from some ranks.
    fn combined(
        call: &Call<'_>,
        operand: Option<&Buffer>,
        op: &Op,
        is_sent: impl Fn(usize) -> bool,
        is_expected: impl Fn(usize) -> bool,
    ) -> Types {
        let operand = operand.map_or_else(Sequence::unknown, Types::whole);
        let when = |is: bool| is.then(|| operand.clone());
        let types = Types::new(call.size(), |rank| when(is_sent(rank)), |rank| when(is_expected(rank)));
        Types { signature: types.signature.with_op(op), ..types }
    }

    /// Returns the error if a rank passes a datatype that this rank does not expect.
    fn mismatch(&self, rank: usize, passed: &Sequence) -> Option<Error> {
        let found = passed.difference(self.expects[rank].as_ref()?)?;
        let sender = name_of(rank, &self.remote);
        let detail = format!(
            "{sender} passes {} where this rank expects {}: the datatypes of the ranks do not match",
            found.left.name(),
            found.right.name()
        );
        Some(Error::new(MPI_ERR_TYPE, detail))
    }
}

/// Names a rank of both groups of an intercommunicator, whose `remote` group has these ranks among them; otherwise a
/// rank of the communicator.
fn name_of(rank: usize, remote: &Range<usize>) -> String {
    if remote.contains(&rank) {
        format!("rank {} of the remote group", rank - remote.start)
    } else {
        let first = if remote.start == 0 { remote.end } else { 0 };
        format!("rank {}", rank - first)
    }
}

/// Words of a record: types, the function's name, the source line of the call, and the total.
const TYPE_WORDS: usize = HEADER / 8;
const NAME_WORDS: usize = 4;
const SITE_WORDS: usize = 27;
const WORDS: usize = TYPE_WORDS + 1 + NAME_WORDS + SITE_WORDS;

/// Writes a text, ended by a zero byte if it is shorter than the words; no text if it is longer.
fn write_text(words: &mut [u64], text: &str) {
    if text.len() <= 8 * words.len() {
        for (word, part) in words.iter_mut().zip(text.as_bytes().chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..part.len()].copy_from_slice(part);
            *word = u64::from_ne_bytes(bytes);
        }
    }
}

fn read_text(words: &[u64]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    String::from_utf8_lossy(&bytes.take_while(|byte| *byte != 0).collect::<Vec<u8>>()).into_owned()
}

/// Returns the memory of a record.
fn region(start: *const u8) -> Result<Region> {
    Ok(Blocks::even(start.cast_mut(), 8 * WORDS as i64, Datatype::named(MPI_BYTE), 1, "record")?.region(0))
}

/// The record of a rank's call.
#[derive(Clone)]
struct Record([u64; WORDS]);

impl Record {
    /// Makes the record of this rank's call, without types.
    fn own(signature: Signature) -> Record {
        let call = current_call();
        let mut record = Record([0; WORDS]);
        record.0[TYPE_WORDS] = signature.word().into();
        let (name, site) = record.0[TYPE_WORDS + 1..].split_at_mut(NAME_WORDS);
        write_text(name, call.strip_suffix("_c").unwrap_or(call));
        write_text(site, &check::site());
        record
    }

    /// Copies the record, with these types.
    fn with(&self, types: Option<&Sequence>) -> Box<Record> {
        let mut copy = Box::new(self.clone());
        if let Some(types) = types {
            copy.0[..TYPE_WORDS].copy_from_slice(&encode(types));
        }
        copy
    }

    /// Returns the types that the rank sends to this one.
    fn types(&self) -> Option<Sequence> {
        decode(&std::array::from_fn(|i| self.0[i]))
    }

    fn signature(&self) -> Option<Signature> {
        Signature::of_word(self.0[TYPE_WORDS] as u32)
    }

    /// Returns how this call differs from another rank's, if it does.
    fn difference(&self, other: &Record) -> Option<Difference> {
        let (first, second) = (self.signature()?, other.signature()?);
        (first != second).then_some(Difference { first, second })
    }

    /// Describes the call, with these words about its arguments.
    fn in_words(&self, arguments: &str) -> String {
        let (name, site) = self.0[TYPE_WORDS + 1..].split_at(NAME_WORDS);
        format!("{}{arguments}{}", read_text(name), check::site_in_words(&read_text(site)))
    }
}

/// Sentences about ranks that differ which no call has returned as an error yet, by the context of the communicator.
static UNTOLD: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

/// Passes on the error of a communicator's collectives, which a call returns.
fn told(context: u64, error: Error) -> Error {
    UNTOLD.lock().retain(|(of, _)| *of != context);
    error
}

/// Returns the differences between calls that no call has returned as an error, for the end of the program.
pub fn late_differences() -> Vec<String> {
    std::mem::take(&mut *UNTOLD.lock()).into_iter().map(|(_, sentence)| sentence).collect()
}

/// The comparison that an exchange is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The first one of a blocking call.
    Functions,
    /// The second one of a blocking call.
    Arguments,
    /// The only one of a call in the background.
    Background,
}

thread_local! {
    /// Number of the record of this thread's call in the background, whose arguments are being read.
    static BEGUN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Begins a call in the background. Its record is counted even if its arguments are wrong and the record is not sent:
/// the following calls stay in step.
///
/// # Errors
/// Errors of making up for the comparison of a blocking call that has failed.
pub fn begin(comm: &Comm) -> Result<()> {
    if check::is_on() {
        BEGUN.set(Some(next_record(comm, Stage::Background)?));
    }
    Ok(())
}

/// Draws the number of a record, after making up for the second comparison of a blocking call that has failed.
fn next_record(comm: &Comm, stage: Stage) -> Result<u64> {
    let state = CommState::of(comm.twin(Purpose::Checks));
    let is_half_compared = state.is_half_compared.swap(stage == Stage::Functions, Ordering::Relaxed);
    if is_half_compared && stage != Stage::Arguments {
        // That call has returned its error.
        compare_all(comm, Types::of_failed(comm))?;
        state.is_half_compared.store(stage == Stage::Functions, Ordering::Relaxed);
    }
    Ok(state.numbers.next_record())
}

/// The exchange of the records of one call.
struct Exchange {
    /// Context of the communicator's collectives, its members, and the rank of this process.
    context: u64,
    group: Arc<Group>,
    me: usize,
    types: Types,
    own: Record,
    /// Number of records that the call waits for and that have not been compared.
    awaited: AtomicUsize,
    outcome: Mutex<Outcome>,
}

#[derive(Default)]
struct Outcome {
    /// The error of all ranks: two of them differ, or an error of the machine.
    failure: Option<Error>,
    /// The error of this rank: it gets a datatype that it does not expect.
    mismatch: Option<Error>,
    /// The error of this rank: it gets more or fewer bytes than it expects.
    other_length: Option<Error>,
}

impl Outcome {
    /// Adds the errors of a later stage. Earlier errors are kept.
    fn add(&mut self, later: Outcome) {
        self.failure = self.failure.take().or(later.failure);
        self.mismatch = self.mismatch.take().or(later.mismatch);
        self.other_length = self.other_length.take().or(later.other_length);
    }
}

impl Exchange {
    /// Starts the exchange of a call, which waits for the records of ranks whose data it gets, and, if it is blocking,
    /// for the record of the previous rank.
    ///
    /// # Errors
    /// The collectives of the communicator have ended; errors of the machine.
    fn start(comm: &Comm, types: Types, stage: Stage) -> Result<Arc<Exchange>> {
        let (engine, twin, me) = (comm.engine(), comm.twin(Purpose::Checks), comm.rank() as usize);
        let context = comm.coll_context();
        if let Some(failure) = engine.is_impaired().then(|| engine.lost_group(context)).flatten() {
            return Err(told(context, error_of(failure)));
        }
        let number = if stage == Stage::Background { BEGUN.take() } else { None };
        let number = number.map_or_else(|| next_record(comm, stage), Ok)?;
        let tag = numbers::tag(number, Signature::default());
        let source = |rank: usize| {
            let is_previous = rank + 1 == me;
            let is_awaited = types.expects[rank].is_some() || (is_previous && stage != Stage::Background);
            (is_awaited || is_previous).then_some((rank, is_awaited))
        };
        let others = (0..types.expects.len()).filter(|rank| *rank != me);
        let sources: Vec<(usize, bool)> = others.clone().filter_map(source).collect();
        let exchange = Arc::new(Exchange {
            context,
            group: comm.group().clone(),
            me,
            own: Record::own(types.signature),
            awaited: AtomicUsize::new(sources.iter().filter(|(_, is_awaited)| *is_awaited).count()),
            outcome: Mutex::new(Outcome {
                mismatch: types.sends[me].as_ref().and_then(|own| types.mismatch(me, own)),
                ..Outcome::default()
            }),
            types,
        });
        let (context, mine) = (twin.coll_context(), me as i32);
        for (rank, is_awaited) in sources {
            exchange.receive(engine, &Pattern { context, source: Some(rank as i32), tag: Some(tag) }, is_awaited)?;
        }
        for rank in others.filter(|rank| exchange.types.sends[*rank].is_some() || *rank == me + 1) {
            exchange.send(engine, rank, twin.world_rank_of(rank as i32)?, &Envelope { context, source: mine, tag })?;
        }
        Ok(exchange)
    }

    /// Sends this rank's record to another rank.
    fn send(&self, engine: &Engine, rank: usize, peer: Peer, envelope: &Envelope) -> Result<()> {
        let record = self.own.with(self.types.sends[rank].as_ref());
        match engine.send(peer, envelope, region(record.0.as_ptr().cast())?, Mode::Standard) {
            Ok(Started::Done) => Ok(()),
            Ok(Started::Pending(id)) => {
                engine.then_lazily(id, Box::new(move |_, _| drop(record)));
                Ok(())
            }
            Err(failure) => Err(told(self.context, error_of(failure))),
        }
    }

    /// Starts the receive of another rank's record.
    fn receive(self: &Arc<Exchange>, engine: &Engine, pattern: &Pattern, is_awaited: bool) -> Result<()> {
        let memory = Box::new([const { AtomicU64::new(0) }; WORDS]);
        let id = engine.receive(pattern, region(memory.as_ptr().cast())?);
        let (exchange, rank) = (self.clone(), pattern.source.unwrap_or_default() as usize);
        let then = move |engine: &Engine, end: Completion| {
            let record = Record(std::array::from_fn(|i| memory[i].load(Ordering::Relaxed)));
            let arrived = end.failure.map_or(Ok(record), |failure| Err(error_of(*failure)));
            exchange.take(engine, rank, arrived, is_awaited);
        };
        engine.then_lazily(id, Box::new(then));
        Ok(())
    }

    /// Compares the record of another rank, or takes the reason why it has not come.
    fn take(self: Arc<Exchange>, engine: &Engine, rank: usize, arrived: Result<Record>, is_awaited: bool) {
        let differs = arrived.as_ref().is_ok_and(|record| self.own.difference(record).is_some());
        if differs && in_service() {
            // Service threads have small stacks, and finding source lines runs much code.
            return engine.leave_to_program(Box::new(move |engine| self.take(engine, rank, arrived, is_awaited)));
        }
        let found = match arrived {
            Ok(record) if differs => Outcome { failure: self.raise(engine, rank, &record), ..Outcome::default() },
            Ok(record) => self.compare_types(rank, &record).unwrap_or_default(),
            // A call that does not need the other rank completes without it.
            Err(error) => Outcome { failure: is_awaited.then_some(error), ..Outcome::default() },
        };
        // Not locked above: the engine may take records meanwhile.
        self.outcome.lock().add(found);
        if is_awaited && self.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            engine.notify();
        }
    }

    /// Compares what another rank passes, in the same call, with what this rank expects.
    fn compare_types(&self, rank: usize, record: &Record) -> Option<Outcome> {
        let (passed, expected) = (record.types()?, self.types.expects[rank].as_ref()?);
        let mismatch = self.types.mismatch(rank, &passed);
        let other_length = passed.bytes().zip(expected.bytes()).filter(|(passed, expected)| passed != expected);
        let in_words = |(passed, expected): (u64, u64)| {
            let [rank, me] = [rank, self.me].map(|rank| name_of(rank, &self.types.remote));
            let passing = record.in_words(&format!(" with {passed} bytes for {me}"));
            let expecting = self.own.in_words(&format!(" and expects {expected} bytes"));
            Error::new(MPI_ERR_TRUNCATE, format!("{rank} called {passing}, but {me} called {expecting}{OTHER_LENGTHS}"))
        };
        Some(Outcome { failure: None, mismatch, other_length: other_length.map(in_words) })
    }

    /// Ends the collectives of the communicator, because another rank's call differs from this one. Returns the error.
    #[cold]
    fn raise(&self, engine: &Engine, rank: usize, record: &Record) -> Option<Error> {
        let (own, other) = ((self.me, &self.own), (rank, record));
        let [(rank, record), (other, other_record)] = if rank < self.me { [other, own] } else { [own, other] };
        let difference = record.difference(other_record)?;
        let Difference { first, second } = difference;
        let (ranks, calls) = (
            [Some(rank), Some(other)],
            [record.in_words(&first.distinction(second)), other_record.in_words(&second.distinction(first))],
        );
        UNTOLD.lock().push((self.context, disagreement::sentence(ranks, &calls)));
        let error = disagreement::error_in_words(ranks, difference, &calls);
        Some(disagreement::raise(engine, self.context, &self.group, error))
    }

    /// Whether all awaited records were compared. If a member dies or ranks differ, the receives end too.
    fn is_over(&self) -> bool {
        self.awaited.load(Ordering::Acquire) == 0
    }

    /// Waits for the awaited records.
    fn wait(&self, engine: &Engine, waiting: &Waiting<'_>) -> std::result::Result<(), Interrupted> {
        engine.block_on(&mut |_| self.is_over(), waiting)
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
    if check::is_on() { exchange(comm, Types::none(comm), Stage::Functions).map(drop) } else { Ok(()) }
}

/// As [`agree`], for a function that makes a communicator or another object.
pub(crate) fn agree_on_making(comm: &Comm, kind: Collective) -> Result<()> {
    if !check::is_on() {
        return Ok(());
    }
    let types = || Types { signature: Signature::making(kind), ..Types::none(comm) };
    exchange(comm, types(), Stage::Functions)?;
    compare(comm, types()).map(drop)
}

/// Compares the calls of a blocking operation; returns the error that this rank raises after the operation.
///
/// # Errors
/// Ranks have called different functions, or with different roots, operations or lengths; errors of the machine.
#[cold]
pub fn compare(comm: &Comm, types: Types) -> Result<Option<Error>> {
    let Outcome { mismatch, other_length, .. } = compare_all(comm, types)?;
    other_length.map_or(Ok(mismatch), Err)
}

/// As [`compare`]; returns the findings about the arguments. If a rank gets another length, all ranks get that error.
fn compare_all(comm: &Comm, types: Types) -> Result<Outcome> {
    let remote = types.remote.clone();
    let mut outcome = exchange(comm, types, Stage::Arguments)?;
    // The greatest rank that has found an error, counted from 1; 0 if none has.
    let verdict = Box::new(AtomicI32::new(if outcome.other_length.is_some() { comm.rank() as i32 + 1 } else { 0 }));
    let twin = comm.twin(Purpose::Checks);
    let (place, max) = (verdict.as_ptr().cast(), Op::builtin(MPI_MAX).expect("it is predefined"));
    let place = Buffer::new(place, 1, Datatype::named(MPI_INT32_T), "verdict")?;
    let plan = allreduce::background(&Call::begin_nonblocking(twin), None, &place, &max)?;
    let operation = plan.into_operation(twin);
    operation.clone().start()?;
    if let Err(interrupted) = wait_for(comm, &*operation, &Waiting::collective(comm, None)) {
        // The operation continues to use it.
        std::mem::forget(verdict);
        return Err(out_of_step(comm, interrupted));
    }
    if let Some(error) = operation.finish().and_then(|end| end.error) {
        return Err(told(comm.coll_context(), error));
    }
    if let Some(by) = usize::try_from(verdict.load(Ordering::Relaxed)).ok().and_then(|rank| rank.checked_sub(1)) {
        outcome.other_length.get_or_insert_with(|| {
            let detail = format!("{} gets more or fewer bytes than it expects{OTHER_LENGTHS}", name_of(by, &remote));
            Error::new(MPI_ERR_TRUNCATE, detail)
        });
    }
    Ok(outcome)
}

/// End of a sentence about lengths that differ.
const OTHER_LENGTHS: &str = ": all ranks must pass matching counts and datatypes; no data were moved";

/// Exchanges the records of a blocking call; returns what this rank has found alone.
fn exchange(comm: &Comm, types: Types, stage: Stage) -> Result<Outcome> {
    let exchange = Exchange::start(comm, types, stage)?;
    exchange
        .wait(comm.engine(), &Waiting::collective(comm, None))
        .map_err(|interrupted| out_of_step(comm, interrupted))?;
    let mut outcome = std::mem::take(&mut *exchange.outcome.lock());
    outcome.failure.take().map_or(Ok(outcome), |error| Err(told(comm.coll_context(), error)))
}

#[cold]
fn out_of_step(comm: &Comm, interrupted: Interrupted) -> Error {
    comm.engine().fall_out_of_step(comm.coll_context());
    interrupted.into()
}

/// An operation in the background together with the exchange of its records.
pub struct Compared {
    comm: Arc<Comm>,
    operation: Arc<dyn Operation>,
    exchange: Arc<Exchange>,
    /// Whether only the exchange is missing, as far as is known.
    has_ended: AtomicBool,
}

impl Compared {
    /// Starts the exchange for an operation that is going to be started.
    ///
    /// # Errors
    /// Those of starting the exchange.
    #[cold]
    pub fn begin(comm: &Arc<Comm>, types: Types, operation: Arc<dyn Operation>) -> Result<Arc<dyn Operation>> {
        let (exchange, has_ended) = (Exchange::start(comm, types, Stage::Background)?, AtomicBool::new(false));
        Ok(Arc::new(Compared { comm: comm.clone(), operation, exchange, has_ended }))
    }

    fn with_error(&self, end: End) -> End {
        let Outcome { failure, mismatch, .. } = &*self.exchange.outcome.lock();
        let error = failure.clone().or(end.error).map(|error| told(self.exchange.context, error));
        End { error: error.or_else(|| mismatch.clone()), ..end }
    }
}

impl Operation for Compared {
    fn start(self: Arc<Self>) -> Result<()> {
        self.has_ended.store(false, Ordering::Relaxed);
        self.operation.clone().start()
    }

    fn progress(&self) -> bool {
        let has_ended = self.operation.progress();
        self.has_ended.store(has_ended, Ordering::Release);
        has_ended && self.exchange.is_over()
    }

    fn is_ready(&self, view: &View<'_>) -> bool {
        // While records are missing, other ranks may already need the operation's next step.
        if self.has_ended.load(Ordering::Acquire) { self.exchange.is_over() } else { self.operation.is_ready(view) }
    }

    fn finish(&self) -> Option<End> {
        if self.exchange.is_over() { self.operation.finish().map(|end| self.with_error(end)) } else { None }
    }

    fn look(&self) -> Option<End> {
        if !self.exchange.is_over() {
            self.comm.engine().poll();
        }
        if self.exchange.is_over() { self.operation.look().map(|end| self.with_error(end)) } else { None }
    }

    fn cancel(&self) -> Result<()> {
        self.operation.cancel()
    }

    fn release(&self) -> Result<()> {
        self.operation.release()
    }

    fn wait(&self, waiting: &Waiting<'_>) -> std::result::Result<bool, Interrupted> {
        wait_for(&self.comm, &*self.operation, waiting)?;
        self.exchange.wait(self.comm.engine(), waiting)?;
        Ok(true)
    }

    fn begin_sleep(&self) {
        self.operation.begin_sleep();
    }

    fn end_sleep(&self) {
        self.operation.end_sleep();
    }

    fn keeps_memory(&self) -> bool {
        self.operation.keeps_memory()
    }

    fn awaits(&self) -> Option<Awaits<'_>> {
        self.operation.awaits()
    }
}
