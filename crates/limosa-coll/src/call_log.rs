//! Log of this rank's calls on a communicator and of the calls that other ranks have reported. It finds ranks that
//! differ, for operations by messages and in the background ([`crate::disagreement`]).
//!
//! The tag of a collective's messages holds the number and the signature of its call ([`crate::numbers`]), so messages
//! of calls that differ never match. Such calls are found in two ways:
//! 1. *A message arrives without a posted receive.* Its tag is compared with this rank's call of that number. If this
//!    rank has not come to that call yet, the tag is recorded, and compared at the call.
//! 2. *A rank waits for long.* It reports its call to the ranks that it waits for ([`Inquirer`]), which compare it in
//!    the same way. A rank that is merely late has nothing to compare, and does not answer.
//!
//! A rank that waits for very long also reports the length of its call and the algorithm that it has selected by it
//! ([`Length`]). Ranks that have selected different ones may wait for each other, so this ends the collectives as well.
//! Other different lengths end nothing: the operation itself finds them. The rank that gets a message of another length
//! may complete the call and leave before a rank has waited for long. So it reports that message to all others
//! ([`tell_length`]). A rank that waits for very long in that call ends the collectives, also if it has got such a
//! message itself ([`Inquirer::or_ends`]).
//!
//! A blocking operation and an operation in the background never match. A rank that waits for long also reports how
//! many operations of each sort it has begun. The receiver thus sees a deadlock in which neither rank has come to the
//! operation of the other rank. A rank with a single thread reports a very long wait as well. The receiver then finds
//! an error if it has begun an operation of the other sort that the sender had not begun before its own, without having
//! come to the sender's operation. With several threads this is no error: another thread may be about to call.
//!
//! Contract
//! - A call that has failed before its signature was known is not in the log: it differs from no other call.
//! - The log holds the last [`KEPT`] calls of a sort, and the last [`KEPT_PERSISTENT`] persistent ones, which may be
//!   started long after they were made. Blocking calls in shared memory are not in the log: they are read from this
//!   rank's notes there.
//! - It may be used with the engine's lock, and does not call the engine while it holds its own.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};

use limosa_p2p::matching::Envelope;
use limosa_p2p::{Engine, Listener, Peer, ProgramJob, Urgency, Words};
use parking_lot::Mutex;

use super::disagreement::{self, Difference, OtherLength};
use super::kind::{Signature, Sort};
use super::numbers::{self, Counts, Numbers, Tagged};
use limosa_mpi::check;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Error;
use limosa_mpi::group::Group;
use limosa_mpi::observe::{Inquiry, has_several_callers};

/// Number of calls of a sort that are kept.
const KEPT: usize = 64;

/// Number of persistent calls that are kept.
const KEPT_PERSISTENT: usize = 1024;

/// Blocking calls that this rank does not enter in the log.
pub(super) trait OwnCalls: Send + Sync {
    /// Returns the call of a number, counted from 0 as all blocking collectives are; `None` if it was not done there,
    /// or is no longer known.
    fn called(&self, number: u64) -> Option<Signature>;
}

/// The calls of this rank on a communicator, and reports of other ranks' calls.
pub(super) struct CallLog {
    context: u64,
    group: Arc<Group>,
    me: usize,
    numbers: Arc<Numbers>,
    /// Blocking calls of this rank in shared memory, if it does any.
    shared: OnceLock<Weak<dyn OwnCalls>>,
    this: Weak<CallLog>,
    entries: Mutex<Entries>,
}

/// Numbers of algorithms, for the comparison of calls: in shared memory for blocking operations, in mailboxes, by lent
/// memory, by messages inside and between hosts, and by the first plan of an operation.
pub(super) const IN_MEMORY: u8 = 1;
pub(super) const MAILBOXES: u8 = 2;
pub(super) const LENT: u8 = 3;
pub(super) const COMPOSED: u8 = 4;
pub(super) const FLAT: u8 = 5;

/// Length by which all ranks must select the same algorithm, such as that of an operand, and the selected algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    /// Bytes, counted from 1; 0 if they are not known.
    code: u32,
    algorithm: u8,
}

impl Length {
    /// Of a call whose lengths may differ.
    pub(super) const UNKNOWN: Length = Length { code: 0, algorithm: 0 };
    /// Of a blocking call in shared memory.
    const IN_MEMORY: Length = Length { code: 0, algorithm: IN_MEMORY };
    /// Longer ones are not distinguished.
    const MOST: u32 = (1 << 31) - 1;

    #[inline]
    pub(super) fn of(bytes: usize) -> Length {
        Length { code: bytes.saturating_add(1).min(Length::MOST as usize) as u32, algorithm: 0 }
    }

    /// Adds the algorithm that was selected by a known length; 0 for the only one by messages.
    #[inline]
    pub(super) fn with(self, algorithm: u8) -> Length {
        let algorithm = if algorithm == 0 { FLAT } else { algorithm };
        if self.code == 0 { self } else { Length { algorithm, ..self } }
    }

    /// Whether ranks may have selected different algorithms by different lengths; composed operations select them by
    /// stages. Other different lengths are found by the operation itself.
    fn conflicts_with(self, other: Length) -> bool {
        let algorithms = [self.algorithm, other.algorithm];
        let differ = algorithms[0] != algorithms[1] || self.algorithm == COMPOSED;
        differ && !algorithms.contains(&0) && self.code != other.code
    }

    fn in_words(self) -> String {
        match self.code {
            0 => "another number of bytes".to_owned(),
            Length::MOST => "2 GB or more".to_owned(),
            code => format!("{} bytes", code - 1),
        }
    }
}

/// A call of this rank.
#[derive(Clone, Copy)]
struct OwnCall {
    signature: Signature,
    length: Length,
}

#[derive(Default)]
struct Entries {
    own: [Recent<OwnCall>; 2],
    persistent: BTreeMap<u64, OwnCall>,
    heard: [Recent<Heard>; 3],
    /// The latest calls in which other ranks have got messages of another length.
    completed: VecDeque<(LoggedCall, OtherLength)>,
    /// The latest report, by rank, of a very long wait in a call to which this rank has not come.
    told: BTreeMap<usize, Told>,
    waits: Vec<Wait>,
}

/// The latest calls of a sort, by number.
struct Recent<T>(Vec<Option<(u64, T)>>);

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent(Vec::new())
    }
}

impl<T: Copy> Recent<T> {
    fn get(&self, number: u64) -> Option<T> {
        let (of, value) = (*self.0.get(number as usize % KEPT)?)?;
        (of == number).then_some(value)
    }

    fn set(&mut self, number: u64, value: T) {
        self.0.resize(KEPT, None);
        self.0[number as usize % KEPT] = Some((number, value));
    }
}

/// A call of another rank, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// The signature, from an inquiry.
    Whole(Signature),
    /// The code of the signature, from the tag of a message.
    Code(u32),
}

impl Said {
    fn code(self) -> u32 {
        match self {
            Said::Whole(signature) => signature.code(),
            Said::Code(code) => code,
        }
    }

    /// Returns the signature as far as it can be known, given the different call `other`.
    fn signature(self, sort: Sort, other: Signature, ranks: usize) -> Signature {
        match self {
            Said::Whole(signature) => signature,
            Said::Code(code) => Signature::of_code(code, sort, other, ranks),
        }
    }
}

#[derive(Clone, Copy)]
struct Heard {
    said: Said,
    length: Length,
    from: usize,
}

/// Report of a rank that waits in an operation, with the operations that it had begun.
#[derive(Clone, Copy)]
struct Told {
    number: u64,
    signature: Signature,
    begun: Counts,
    /// Whether the sender has waited for very long with a single thread.
    is_alone: bool,
}

/// Flag for [`Told::is_alone`] in the word with the signature. The length is above.
const ALONE: u64 = 1 << 32;
const LENGTH_SHIFT: u32 = 33;
/// Place of the number of an algorithm in the word with the number of blocking calls.
const ALGORITHM_SHIFT: u32 = 56;
/// Flag in the last word: the call has completed, and a message had another length. The words are the number, the
/// signature with the message's sender above, the bytes sent, and the bytes expected.
const COMPLETED: u64 = 1 << 63;
/// Place of the sender in the word with the signature.
const SENDER_SHIFT: u32 = 32;
/// Number of the inquiry from which on a waiting rank says its length.
const SAYS_LENGTH: u32 = 6;
/// Number of the inquiry with which a waiting rank says that it has a single thread.
const SAYS_ALONE: u32 = 4;

/// A long wait of this rank in an operation.
struct Wait {
    number: u64,
    signature: Signature,
    /// Operations that this rank had begun by then.
    begun: Counts,
    inquiries: u32,
}

/// Two ranks whose calls differ.
#[derive(Debug, PartialEq, Eq)]
struct DifferingRanks {
    ranks: [usize; 2],
    difference: Difference,
    /// Their lengths, if these differ in calls that match.
    lengths: Option<[Length; 2]>,
}

impl DifferingRanks {
    fn new(ranks: [usize; 2], difference: Difference) -> DifferingRanks {
        DifferingRanks { ranks, difference, lengths: None }
    }
}

impl Entries {
    fn own(&self, sort: Sort, number: u64) -> Option<OwnCall> {
        match sort {
            Sort::Persistent => self.persistent.get(&number).copied(),
            _ => self.own[sort as usize].get(number),
        }
    }

    /// Returns this rank's call that corresponds to another rank's call of a number. Non-blocking and persistent calls
    /// are counted together.
    fn counterpart(&self, sort: Sort, number: u64) -> Option<OwnCall> {
        let other = match sort {
            Sort::Blocking => None,
            Sort::NonBlocking => Some(Sort::Persistent),
            Sort::Persistent => Some(Sort::NonBlocking),
        };
        self.own(sort, number).or_else(|| self.own(other?, number))
    }
}

impl CallLog {
    /// Returns the log of a communicator, which from now on receives the calls of other ranks there.
    pub(super) fn open(comm: &Comm, engine: &Engine, numbers: &Arc<Numbers>) -> Arc<CallLog> {
        let log = Arc::new_cyclic(|this| CallLog {
            context: comm.coll_context(),
            group: comm.group().clone(),
            me: comm.rank() as usize,
            numbers: numbers.clone(),
            shared: OnceLock::new(),
            this: this.clone(),
            entries: Mutex::default(),
        });
        let listener: Arc<dyn Listener> = log.clone();
        engine.listen(log.context, &listener);
        log
    }

    /// Returns the log of a communicator, if it was opened.
    #[cold]
    pub(super) fn of(comm: &Comm) -> Option<Arc<CallLog>> {
        comm.engine_if_any()?.listener(comm.coll_context())
    }

    /// Adds a source of blocking calls that are not in the log.
    pub(super) fn read_also(&self, calls: Weak<dyn OwnCalls>) {
        let _ = self.shared.set(calls);
    }

    /// Returns the signature of this rank's blocking call of a number, as far as the log has it.
    pub(super) fn blocking(&self, number: u64) -> Option<Signature> {
        self.entries.lock().own(Sort::Blocking, number).map(|own| own.signature)
    }

    /// Enters a call that this rank has begun. If another rank is known to differ, this ends the communicator's
    /// collectives.
    pub(super) fn enter(&self, engine: &Engine, number: u64, signature: Signature, length: Length) {
        if !signature.is_known() {
            return;
        }
        let mut entries = self.entries.lock();
        let (sort, own) = (signature.sort(), OwnCall { signature, length });
        match sort {
            Sort::Persistent => {
                entries.persistent.insert(number, own);
                if entries.persistent.len() > KEPT_PERSISTENT {
                    entries.persistent.pop_first();
                }
            }
            _ => entries.own[sort as usize].set(number, own),
        }
        let found = Sort::ALL
            .into_iter()
            .filter(|of| (*of == Sort::Blocking) == (sort == Sort::Blocking))
            .filter_map(|of| Some((of, entries.heard[of as usize].get(number)?)))
            .find_map(|(of, heard)| self.compare(of, heard, own))
            .or_else(|| {
                let is_compared = is_compared_by_records(sort);
                if is_compared { None } else { self.find_swapped_with(&mut entries, number, signature) }
            });
        drop(entries);
        if let Some(found) = found {
            disagreement::raise(engine, self.context, &self.group, found.error());
        }
    }

    /// Returns how a reported call of a sort differs from this rank's call of the same number, if it does.
    fn compare(&self, sort: Sort, heard: Heard, own: OwnCall) -> Option<DifferingRanks> {
        let (Heard { said, length, from }, OwnCall { signature: second, length: own_length }) = (heard, own);
        let differs = match said {
            Said::Whole(signature) => signature.conflicts_with(second),
            // Numbers in tags are truncated, and those of persistent calls may be old.
            Said::Code(code) => code != second.code() && sort == second.sort(),
        };
        let first = said.signature(sort, second, self.group.size());
        let found = DifferingRanks::new([from, self.me], Difference { first, second });
        if differs {
            return Some(found).filter(|_| !is_compared_by_records(sort));
        }
        let lengths = Some([length, own_length]);
        length.conflicts_with(own_length).then_some(DifferingRanks { lengths, ..found })
    }

    /// Records the call of another rank.
    fn hear(&self, sort: Sort, number: u64, heard: Heard) -> Option<DifferingRanks> {
        let mut entries = self.entries.lock();
        if let Some(own) = entries.counterpart(sort, number) {
            return self.compare(sort, heard, own);
        }
        let place = &mut entries.heard[sort as usize];
        let Some(before) = place.get(number) else {
            place.set(number, heard);
            return None;
        };
        if matches!(heard.said, Said::Whole(_)) {
            place.set(number, heard);
        }
        // Two other ranks may differ, whatever this rank is going to call.
        let second = heard.said.signature(sort, Signature::default(), self.group.size());
        let first = before.said.signature(sort, second, self.group.size());
        (before.said.code() != heard.said.code() && !is_compared_by_records(sort))
            .then_some(DifferingRanks::new([before.from, heard.from], Difference { first, second }))
    }

    /// Finds a deadlock with a rank that waits in an operation: this rank waits in an operation that the sender has not
    /// come to, and has not come to the sender's operation.
    fn find_circle(&self, from: usize, told: Told) -> Option<DifferingRanks> {
        let is_blocking = |signature: Signature| signature.sort() == Sort::Blocking;
        let entries = self.entries.lock();
        let wait = entries.waits.iter().find(|wait| {
            is_blocking(wait.signature) != is_blocking(told.signature)
                && wait.begun.of(told.signature.sort()) <= told.number
                && told.begun.of(wait.signature.sort()) <= wait.number
        })?;
        let difference = Difference { first: told.signature, second: wait.signature };
        Some(DifferingRanks::new([from, self.me], difference))
    }

    /// Finds swapped calls with a rank that waits in an operation to which this rank has not come: this rank has begun
    /// an operation of the other sort that the sender had not begun before.
    fn find_swapped(&self, from: usize, told: Told) -> Option<DifferingRanks> {
        let (sort, mine) = (told.signature.sort(), self.numbers.begun());
        if !told.is_alone || mine.of(sort) > told.number || has_several_callers() {
            return None;
        }
        let mut entries = self.entries.lock();
        let number = told.begun.of_others(sort);
        if mine.of_others(sort) <= number {
            entries.told.insert(from, told);
            return None;
        }
        let of_other_sort = if sort == Sort::Blocking { Sort::NonBlocking } else { Sort::Blocking };
        let second = entries.counterpart(of_other_sort, number).map(|own| own.signature).unwrap_or_default();
        Some(DifferingRanks::new([from, self.me], Difference { first: told.signature, second }))
    }

    /// As [`CallLog::find_swapped`], when this rank begins a call.
    fn find_swapped_with(&self, entries: &mut Entries, number: u64, signature: Signature) -> Option<DifferingRanks> {
        if entries.told.is_empty() || has_several_callers() {
            return None;
        }
        let (sort, mine) = (signature.sort(), self.numbers.begun());
        entries.told.retain(|_, told| mine.of(told.signature.sort()) <= told.number);
        let is_swapped = |told: &Told| {
            (told.signature.sort() == Sort::Blocking) != (sort == Sort::Blocking) && number >= told.begun.of(sort)
        };
        let (from, told) = entries.told.iter().find(|(_, told)| is_swapped(told))?;
        let difference = Difference { first: told.signature, second: signature };
        Some(DifferingRanks::new([*from, self.me], difference))
    }

    /// Compares a reported blocking call with this rank's note of that number, if it was done in shared memory.
    /// Comparing takes locks, so the program's thread does it later.
    fn compare_note(&self, number: u64, heard: Heard) -> Option<ProgramJob> {
        let is_there = self.shared.get().is_some() && number < self.numbers.begun().blocking;
        let log = self.this.clone();
        is_there.then(|| -> ProgramJob {
            Box::new(move |engine| {
                let Some(log) = log.upgrade() else { return };
                let shared = log.shared.get().and_then(Weak::upgrade);
                let own = shared.and_then(|shared| shared.called(number));
                let own = own.map(|signature| OwnCall { signature, length: Length::IN_MEMORY });
                if let Some(found) = own.and_then(|own| log.compare(Sort::Blocking, heard, own)) {
                    disagreement::raise(engine, log.context, &log.group, found.error());
                }
            })
        })
    }

    /// Handles the call of another rank; returns what the program's thread has to do about it.
    fn listen(&self, sort: Sort, number: u64, heard: Heard) -> Option<ProgramJob> {
        let is_known = self.entries.lock().counterpart(sort, number).is_some();
        match self.hear(sort, number, heard) {
            Some(found) => Some(self.job(found)),
            None if sort == Sort::Blocking && !is_known => self.compare_note(number, heard),
            None => None,
        }
    }

    /// Returns a message of another length that a rank has got in this call.
    fn find_completed(&self, number: u64, signature: Signature) -> Option<OtherLength> {
        let of_call = |call: &LoggedCall| (call.number, call.signature.sort()) == (number, signature.sort());
        self.entries.lock().completed.iter().find(|(call, _)| of_call(call)).map(|(_, message)| *message)
    }

    fn job(&self, found: DifferingRanks) -> ProgramJob {
        let (context, group) = (self.context, self.group.clone());
        Box::new(move |engine| drop(disagreement::raise(engine, context, &group, found.error())))
    }
}

impl DifferingRanks {
    #[cold]
    fn error(&self) -> Error {
        let (ranks, Difference { first, second }) = (self.ranks.map(Some), self.difference);
        match self.lengths {
            Some(lengths) => {
                let [other, own] = lengths.map(Length::in_words);
                let calls = [format!("{} with {other}", first.name()), format!("{} with {own}", second.name())];
                disagreement::error_of_lengths(ranks, &calls)
            }
            None => disagreement::error(ranks, self.difference),
        }
    }
}

impl Listener for CallLog {
    fn unasked(&self, envelope: &Envelope) -> Option<ProgramJob> {
        let Tagged { sort, number, code } = numbers::read_tag(envelope.tag);
        if code == 0 || is_compared_by_records(sort) {
            return None;
        }
        let latest = match sort {
            Sort::Persistent => self.entries.lock().persistent.last_key_value().map_or(0, |(of, _)| *of),
            _ => self.numbers.begun().of(sort).saturating_sub(1),
        };
        let number = numbers::whole(sort, number, latest);
        let heard = Heard { said: Said::Code(code), length: Length::UNKNOWN, from: envelope.source as usize };
        self.listen(sort, number, heard)
    }

    fn told(&self, from: Peer, words: Words) -> Option<ProgramJob> {
        let [number, word, counts, background] = words;
        let (algorithm, blocking) = ((counts >> ALGORITHM_SHIFT) as u8, counts & ((1 << ALGORITHM_SHIFT) - 1));
        let (length, is_alone) = (Length { code: (word >> LENGTH_SHIFT) as u32, algorithm }, word & ALONE != 0);
        let signature = Signature::of_word(word as u32)?;
        let from = self.group.rank_of(from)? as usize;
        if background & COMPLETED != 0 {
            let (sent, expected) = (counts as usize, (background & !COMPLETED) as usize);
            let message = OtherLength { from: (word >> SENDER_SHIFT) as usize, to: from, sent, expected };
            let completed = &mut self.entries.lock().completed;
            completed.truncate(KEPT - 1);
            completed.push_front((LoggedCall { number, signature }, message));
            return None;
        }
        let told = Told { number, signature, begun: Counts { blocking, background }, is_alone };
        let heard = Heard { said: Said::Whole(signature), length, from };
        let found = if is_compared_by_records(signature.sort()) {
            None
        } else {
            self.find_circle(from, told).or_else(|| self.find_swapped(from, told))
        };
        found.map(|found| self.job(found)).or_else(|| self.listen(signature.sort(), number, heard))
    }
}

/// Whether records of calls of this sort are compared ([`crate::check`]), which name the lines of both ranks.
fn is_compared_by_records(sort: Sort) -> bool {
    check::is_on() && sort != Sort::Blocking
}

/// Calls its argument with each of some ranks.
pub(super) type ListRanks<'a> = dyn Fn(&mut dyn FnMut(usize)) + 'a;

/// Returns a message of another length than this rank expects, if there was one.
pub(super) type FindLength<'a> = dyn Fn() -> Option<OtherLength> + 'a;

/// Inquires at other ranks on behalf of an operation in which this thread waits.
pub(super) struct Inquirer<'a, F> {
    comm: &'a Comm,
    signature: Signature,
    /// Number of the operation; `None` for the latest blocking operation.
    number: Option<u64>,
    inquired: Cell<Option<LoggedCall>>,
    /// Lists the ranks that it waits for.
    awaited: F,
    /// Finds a message of another length in the operation so far.
    trouble: Option<&'a FindLength<'a>>,
}

/// A call in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedCall {
    pub(super) number: u64,
    pub(super) signature: Signature,
}

impl<'a, F: Fn(&mut dyn FnMut(usize))> Inquirer<'a, F> {
    pub(super) fn new(comm: &'a Comm, signature: Signature, number: Option<u64>, awaited: F) -> Inquirer<'a, F> {
        Inquirer { comm, signature, number, inquired: Cell::new(None), awaited, trouble: None }
    }

    /// Ends the operation after a very long wait, if a message had another length.
    pub(super) fn or_ends(mut self, trouble: &'a FindLength<'a>) -> Self {
        self.trouble = Some(trouble);
        self
    }
}

impl<F: Fn(&mut dyn FnMut(usize))> Inquiry for Inquirer<'_, F> {
    fn inquire(&self) {
        let latest = || Some(CallLog::of(self.comm)?.numbers.begun().blocking.saturating_sub(1));
        let Some(number) = self.number.or_else(latest) else { return };
        let call = LoggedCall { number, signature: self.signature };
        self.inquired.set(Some(call));
        inquire(self.comm, call, &self.awaited, &|| self.trouble.and_then(|trouble| trouble()));
    }
}

impl<F> Drop for Inquirer<'_, F> {
    fn drop(&mut self) {
        if let Some(call) = self.inquired.get() {
            end_inquiries(self.comm, call);
        }
    }
}

/// Reports the call in which this rank waits to the ranks that it waits for. After a very long wait it ends the
/// communicator's collectives if lengths differ, as `trouble` may find. [`end_inquiries`] must follow after the wait.
#[cold]
pub(super) fn inquire(comm: &Comm, call: LoggedCall, awaited: &ListRanks<'_>, trouble: &FindLength<'_>) {
    let LoggedCall { number, signature } = call;
    let Some(log) = CallLog::of(comm).filter(|_| signature.is_known()) else { return };
    let (engine, begun) = (comm.engine(), log.numbers.begun());
    let (inquiries, length) = {
        let mut entries = log.entries.lock();
        // Blocking calls in shared memory are not in the log.
        let is_in_memory = signature.sort() == Sort::Blocking && log.shared.get().is_some();
        let otherwise = if is_in_memory { Length::IN_MEMORY } else { Length::UNKNOWN };
        let length = entries.own(signature.sort(), number).map_or(otherwise, |own| own.length);
        let waits = &mut entries.waits;
        let inquiries = match waits.iter_mut().find(|wait| wait.number == number && wait.signature == signature) {
            Some(wait) => {
                wait.inquiries += 1;
                wait.inquiries
            }
            None => {
                waits.push(Wait { number, signature, begun, inquiries: 1 });
                1
            }
        };
        (inquiries, if inquiries >= SAYS_LENGTH { length } else { Length::UNKNOWN })
    };
    let is_alone = inquiries >= SAYS_ALONE && !has_several_callers();
    // Interrupts a computing rank only once.
    let urgency = if inquiries == SAYS_ALONE { Urgency::Urgent } else { Urgency::Normal };
    // The log may have dropped some messages if more came than it keeps.
    engine.overhear_again(log.context, &*log);
    awaited(&mut |rank| {
        if let Some(peer) = log.group.world_rank(rank).filter(|_| rank != log.me) {
            let word =
                u64::from(signature.word()) | if is_alone { ALONE } else { 0 } | u64::from(length.code) << LENGTH_SHIFT;
            let counts = begun.blocking | u64::from(length.algorithm) << ALGORITHM_SHIFT;
            let words = [number, word, counts, begun.background];
            engine.say(peer, log.context, words, urgency);
        }
    });
    if engine.lost_group(log.context).is_some() {
        disagreement::give_up_sends(engine, &log.group);
    } else if inquiries >= SAYS_LENGTH
        && let Some(message) = trouble().or_else(|| log.find_completed(number, signature))
    {
        disagreement::raise(engine, log.context, &log.group, disagreement::error_of_wait(log.me, message));
    }
}

/// Reports to all other ranks that a call has completed in which a message had another length. They may wait for
/// messages that do not come, and a rank that has selected another algorithm may do so for messages that the algorithm
/// of this rank does not have.
#[cold]
pub(super) fn tell_length(comm: &Comm, call: LoggedCall, message: OtherLength) {
    let LoggedCall { number, signature } = call;
    let Some(log) = CallLog::of(comm).filter(|_| signature.is_known()) else { return };
    let word = u64::from(signature.word()) | (message.from as u64) << SENDER_SHIFT;
    for rank in (0..log.group.size()).filter(|rank| *rank != log.me) {
        if let Some(peer) = log.group.world_rank(rank) {
            let words = [number, word, message.sent as u64, message.expected as u64 | COMPLETED];
            comm.engine().say(peer, log.context, words, Urgency::Normal);
        }
    }
}

/// Ends the inquiries of a call in which this rank no longer waits.
#[cold]
pub(super) fn end_inquiries(comm: &Comm, call: LoggedCall) {
    if let Some(log) = CallLog::of(comm) {
        let LoggedCall { number, signature } = call;
        log.entries.lock().waits.retain(|wait| wait.number != number || wait.signature != signature);
    }
}
