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
//! A blocking operation and an operation in the background never match. A rank that waits for long also reports how
//! many operations of each sort it has begun. The receiver thus sees a deadlock in which neither rank has come to the
//! operation of the other rank. A rank with a single thread reports a very long wait as well. The receiver then finds
//! an error if it has begun an operation of the other sort that the sender had not begun before its own, without having
//! come to the sender's operation. With several threads this is no error: another thread may be about to call.
//!
//! Contract
//! - A call that has failed before its signature was known is not in the log: it differs from no other call.
//! - The log holds the last [`KEPT`] calls of a sort, and all persistent ones. Blocking calls in shared memory are not
//!   in the log: they are read from this rank's notes there.
//! - It may be used with the engine's lock, and does not call the engine while it holds its own.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use limosa_p2p::matching::Envelope;
use limosa_p2p::{Engine, Listener, Peer, ProgramJob, Urgency, Words};
use parking_lot::Mutex;

use super::disagreement::{self, Difference};
use super::kind::{Signature, Sort};
use super::numbers::{self, Counts, Numbers, Tagged};
use limosa_mpi::check;
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Error;
use limosa_mpi::group::Group;
use limosa_mpi::observe::{Inquiry, has_several_callers};

/// Number of calls of a sort that are kept.
const KEPT: usize = 64;

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

#[derive(Default)]
struct Entries {
    own: [Recent<Signature>; 2],
    persistent: BTreeMap<u64, Signature>,
    heard: [Recent<Heard>; 3],
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

/// Flag for [`Told::is_alone`] in the word with the signature.
const ALONE: u64 = 1 << 32;
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
}

impl Entries {
    fn own(&self, sort: Sort, number: u64) -> Option<Signature> {
        match sort {
            Sort::Persistent => self.persistent.get(&number).copied(),
            _ => self.own[sort as usize].get(number),
        }
    }

    /// Returns this rank's call that corresponds to another rank's call of a number. Non-blocking and persistent calls
    /// are counted together.
    fn counterpart(&self, sort: Sort, number: u64) -> Option<Signature> {
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
        self.entries.lock().own(Sort::Blocking, number)
    }

    /// Enters a call that this rank has begun. If another rank is known to differ, this ends the communicator's
    /// collectives.
    pub(super) fn enter(&self, engine: &Engine, number: u64, signature: Signature) {
        if !signature.is_known() {
            return;
        }
        let mut entries = self.entries.lock();
        let sort = signature.sort();
        match sort {
            Sort::Persistent => drop(entries.persistent.insert(number, signature)),
            _ => entries.own[sort as usize].set(number, signature),
        }
        if is_compared_by_records(sort) {
            return;
        }
        let found = Sort::ALL
            .into_iter()
            .filter(|of| (*of == Sort::Blocking) == (sort == Sort::Blocking))
            .filter_map(|of| Some((of, entries.heard[of as usize].get(number)?)))
            .find_map(|(of, heard)| self.compare(of, heard, signature))
            .or_else(|| self.find_swapped_with(&mut entries, number, signature));
        drop(entries);
        if let Some(found) = found {
            disagreement::raise(engine, self.context, &self.group, found.error());
        }
    }

    /// Returns how a reported call of a sort differs from this rank's call of the same number, if it does.
    fn compare(&self, sort: Sort, Heard { said, from }: Heard, own: Signature) -> Option<DifferingRanks> {
        let differs = match said {
            Said::Whole(signature) => signature.conflicts_with(own),
            // Numbers in tags are truncated, and those of persistent calls may be old.
            Said::Code(code) => code != own.code() && sort == own.sort(),
        };
        let first = said.signature(sort, own, self.group.size());
        differs.then_some(DifferingRanks { ranks: [from, self.me], difference: Difference { first, second: own } })
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
        (before.said.code() != heard.said.code())
            .then_some(DifferingRanks { ranks: [before.from, heard.from], difference: Difference { first, second } })
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
        Some(DifferingRanks { ranks: [from, self.me], difference })
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
        let second = entries.counterpart(of_other_sort, number).unwrap_or_default();
        Some(DifferingRanks { ranks: [from, self.me], difference: Difference { first: told.signature, second } })
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
        Some(DifferingRanks { ranks: [*from, self.me], difference })
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

    fn job(&self, found: DifferingRanks) -> ProgramJob {
        let (context, group) = (self.context, self.group.clone());
        Box::new(move |engine| drop(disagreement::raise(engine, context, &group, found.error())))
    }
}

impl DifferingRanks {
    #[cold]
    fn error(&self) -> Error {
        disagreement::error(self.ranks.map(Some), self.difference)
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
        let heard = Heard { said: Said::Code(code), from: envelope.source as usize };
        self.listen(sort, number, heard)
    }

    fn told(&self, from: Peer, words: Words) -> Option<ProgramJob> {
        let [number, word, blocking, background] = words;
        let (word, is_alone) = (word & !ALONE, word & ALONE != 0);
        let signature = u32::try_from(word).ok().and_then(Signature::of_word)?;
        let from = self.group.rank_of(from)? as usize;
        let told = Told { number, signature, begun: Counts { blocking, background }, is_alone };
        let found = self.find_circle(from, told).or_else(|| self.find_swapped(from, told));
        found
            .map(|found| self.job(found))
            .or_else(|| self.listen(signature.sort(), number, Heard { said: Said::Whole(signature), from }))
    }
}

/// Whether records of calls of this sort are compared ([`crate::check`]), which name the lines of both ranks.
fn is_compared_by_records(sort: Sort) -> bool {
    check::is_on() && sort != Sort::Blocking
}

/// Calls its argument with each of some ranks.
pub(super) type ListRanks<'a> = dyn Fn(&mut dyn FnMut(usize)) + 'a;

/// Inquires at other ranks on behalf of an operation in which this thread waits.
pub(super) struct Inquirer<'a, F> {
    comm: &'a Comm,
    signature: Signature,
    /// Number of the operation; `None` for the latest blocking operation.
    number: Option<u64>,
    inquired: Cell<Option<LoggedCall>>,
    /// Lists the ranks that it waits for.
    awaited: F,
}

/// A call in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedCall {
    pub(super) number: u64,
    pub(super) signature: Signature,
}

impl<'a, F: Fn(&mut dyn FnMut(usize))> Inquirer<'a, F> {
    pub(super) fn new(comm: &'a Comm, signature: Signature, number: Option<u64>, awaited: F) -> Inquirer<'a, F> {
        Inquirer { comm, signature, number, inquired: Cell::new(None), awaited }
    }
}

impl<F: Fn(&mut dyn FnMut(usize))> Inquiry for Inquirer<'_, F> {
    fn inquire(&self) {
        let latest = || Some(CallLog::of(self.comm)?.numbers.begun().blocking.saturating_sub(1));
        let Some(number) = self.number.or_else(latest) else { return };
        let call = LoggedCall { number, signature: self.signature };
        self.inquired.set(Some(call));
        inquire(self.comm, call, &self.awaited);
    }
}

impl<F> Drop for Inquirer<'_, F> {
    fn drop(&mut self) {
        if let Some(call) = self.inquired.get() {
            end_inquiries(self.comm, call);
        }
    }
}

/// Reports the call in which this rank waits to the ranks that it waits for. [`end_inquiries`] must follow after the
/// wait.
#[cold]
pub(super) fn inquire(comm: &Comm, call: LoggedCall, awaited: &ListRanks<'_>) {
    let LoggedCall { number, signature } = call;
    let Some(log) = CallLog::of(comm).filter(|_| signature.is_known()) else { return };
    let (engine, begun) = (comm.engine(), log.numbers.begun());
    let inquiries = {
        let waits = &mut log.entries.lock().waits;
        match waits.iter_mut().find(|wait| wait.number == number && wait.signature == signature) {
            Some(wait) => {
                wait.inquiries += 1;
                wait.inquiries
            }
            None => {
                waits.push(Wait { number, signature, begun, inquiries: 1 });
                1
            }
        }
    };
    let is_alone = inquiries >= SAYS_ALONE && !has_several_callers();
    // Interrupts a computing rank only once.
    let urgency = if inquiries == SAYS_ALONE { Urgency::Urgent } else { Urgency::Normal };
    // The log may have dropped some messages if more came than it keeps.
    engine.overhear_again(log.context, &*log);
    awaited(&mut |rank| {
        if let Some(peer) = log.group.world_rank(rank).filter(|_| rank != log.me) {
            let word = u64::from(signature.word()) | if is_alone { ALONE } else { 0 };
            let words = [number, word, begun.blocking, begun.background];
            engine.say(peer, log.context, words, urgency);
        }
    });
}

/// Ends the inquiries of a call in which this rank no longer waits.
#[cold]
pub(super) fn end_inquiries(comm: &Comm, call: LoggedCall) {
    if let Some(log) = CallLog::of(comm) {
        let LoggedCall { number, signature } = call;
        log.entries.lock().waits.retain(|wait| wait.number != number || wait.signature != signature);
    }
}
