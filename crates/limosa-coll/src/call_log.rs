//! What this rank has called on a communicator, and what it has heard of the calls of others: for finding ranks that
//! differ where operations go by messages, and those in the background ([`crate::disagreement`]).
//!
//! The tag of a collective's messages holds the number and the signature of its call ([`crate::numbers`]), so that
//! messages of calls that differ never match. They are found in two ways:
//! 1. *A message comes for which nobody has posted a receive.* Its tag is compared with what this rank has called under
//!    that number. If it has not come so far, that is noted, and compared when it calls.
//! 2. *A rank waits for long.* It tells those for whom it waits what it has called ([`Inquirer`]); they compare it in
//!    the same way. A rank that is merely late has nothing to compare, and answers nothing.
//!
//! A blocking operation and one in the background never match. A rank that waits for long says also how many of each
//! sort it has begun, so that the other one sees that both wait for each other: neither has come to the other one's
//! operation. A rank with a single thread that has waited for longer says so too: then it is wrong already if the other
//! one has begun an operation that the first had not begun before its own, to which the other has not come itself. With
//! several threads that is no mistake: another thread may be about to call.
//!
//! Contract
//! - A call that has failed before its signature was known is not in the log: it differs from nobody.
//! - The log holds the last [`KEPT`] calls of a sort, and all persistent ones. Blocking calls in shared memory are not in
//!   the log: what they were is read from this rank's notes there.
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
use limosa_mpi::comm::Comm;
use limosa_mpi::error::Error;
use limosa_mpi::group::Group;
use limosa_mpi::observe::{Inquiry, has_several_callers};

/// Calls of a sort that are kept.
const KEPT: usize = 64;

/// Where this rank does blocking calls without telling the log.
pub(super) trait OwnCalls: Send + Sync {
    /// What it has called there under a number, counted from 0 as all blocking collectives are; `None` if it was not
    /// there, or that is not known any more.
    fn called(&self, number: u64) -> Option<Signature>;
}

/// The calls of a communicator.
pub(super) struct CallLog {
    context: u64,
    group: Arc<Group>,
    me: usize,
    numbers: Arc<Numbers>,
    /// Where this rank does blocking calls in shared memory, if it does.
    shared: OnceLock<Weak<dyn OwnCalls>>,
    this: Weak<CallLog>,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    own: [Recent<Signature>; 2],
    persistent: BTreeMap<u64, Signature>,
    heard: [Recent<Heard>; 3],
    /// What others have said last of a call in which they wait and to which this rank has not come, by rank.
    told: BTreeMap<usize, Told>,
    waits: Vec<Wait>,
}

/// The last calls of a sort, by number.
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

/// What another rank has called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// As it says.
    Whole(Signature),
    /// As the tag of its message says.
    Code(u32),
}

impl Said {
    fn code(self) -> u32 {
        match self {
            Said::Whole(signature) => signature.code(),
            Said::Code(code) => code,
        }
    }

    /// What is called, as far as that can be known, as opposed to another call.
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

/// A rank waits in an operation, and had begun this when it said so.
#[derive(Clone, Copy)]
struct Told {
    number: u64,
    signature: Signature,
    begun: Counts,
    /// Nobody else calls there, and it has waited for long.
    is_alone: bool,
}

/// In the word with the signature: [`Told::is_alone`].
const ALONE: u64 = 1 << 32;
/// A rank that waits says that it is alone with this inquiry.
const SAYS_ALONE: u32 = 4;

/// This rank has waited for long in an operation.
struct Wait {
    number: u64,
    signature: Signature,
    /// What it had begun then.
    begun: Counts,
    inquiries: u32,
}

/// Two ranks differ.
#[derive(Debug, PartialEq, Eq)]
struct Found {
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

    /// What this rank has called under a number, given what another one has called under it. Non-blocking and
    /// persistent calls are counted together.
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
    /// That of a communicator, which listens to what others call there from now on.
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

    /// That of a communicator, if it was opened.
    #[cold]
    pub(super) fn of(comm: &Comm) -> Option<Arc<CallLog>> {
        comm.engine_if_any()?.listener(comm.coll_context())
    }

    /// This rank does blocking calls here too.
    pub(super) fn read_also(&self, calls: Weak<dyn OwnCalls>) {
        let _ = self.shared.set(calls);
    }

    /// What this rank has called, blocking, under a number, as far as the log says.
    pub(super) fn blocking(&self, number: u64) -> Option<Signature> {
        self.entries.lock().own(Sort::Blocking, number)
    }

    /// This rank has begun a call. If others are known to differ, this ends the communicator's collectives.
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

    /// How what was heard of a call of a sort differs from this rank's call of that number, if it does.
    fn compare(&self, sort: Sort, Heard { said, from }: Heard, own: Signature) -> Option<Found> {
        let differs = match said {
            Said::Whole(signature) => signature.conflicts_with(own),
            // Numbers in tags are short, and those of persistent calls may be old.
            Said::Code(code) => code != own.code() && sort == own.sort(),
        };
        let first = said.signature(sort, own, self.group.size());
        differs.then_some(Found { ranks: [from, self.me], difference: Difference { first, second: own } })
    }

    /// Another rank has called something.
    fn hear(&self, sort: Sort, number: u64, heard: Heard) -> Option<Found> {
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
        // Two others may differ, whatever this rank is going to call.
        let second = heard.said.signature(sort, Signature::default(), self.group.size());
        let first = before.said.signature(sort, second, self.group.size());
        (before.said.code() != heard.said.code())
            .then_some(Found { ranks: [before.from, heard.from], difference: Difference { first, second } })
    }

    /// A rank waits in an operation and has begun this: it is for ever if this rank waits in one that the other has not
    /// come to, and has not come to the other one's.
    fn find_circle(&self, from: usize, told: Told) -> Option<Found> {
        let is_blocking = |signature: Signature| signature.sort() == Sort::Blocking;
        let entries = self.entries.lock();
        let wait = entries.waits.iter().find(|wait| {
            is_blocking(wait.signature) != is_blocking(told.signature)
                && wait.begun.of(told.signature.sort()) <= told.number
                && told.begun.of(wait.signature.sort()) <= wait.number
        })?;
        let difference = Difference { first: told.signature, second: wait.signature };
        Some(Found { ranks: [from, self.me], difference })
    }

    /// A rank waits in an operation to which this one has not come: whether this one has begun one of the other sort
    /// that the first had not begun before.
    fn find_swapped(&self, from: usize, told: Told) -> Option<Found> {
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
        Some(Found { ranks: [from, self.me], difference: Difference { first: told.signature, second } })
    }

    /// The same, when this rank begins a call.
    fn find_swapped_with(&self, entries: &mut Entries, number: u64, signature: Signature) -> Option<Found> {
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
        Some(Found { ranks: [*from, self.me], difference })
    }

    /// Compares what was heard of a blocking call with what this rank has noted of its own of that number, if it has
    /// done that in shared memory: done later, because it takes locks.
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

    /// Another rank has called something: what is to be done about it.
    fn listen(&self, sort: Sort, number: u64, heard: Heard) -> Option<ProgramJob> {
        let is_known = self.entries.lock().counterpart(sort, number).is_some();
        match self.hear(sort, number, heard) {
            Some(found) => Some(self.job(found)),
            None if sort == Sort::Blocking && !is_known => self.compare_note(number, heard),
            None => None,
        }
    }

    fn job(&self, found: Found) -> ProgramJob {
        let (context, group) = (self.context, self.group.clone());
        Box::new(move |engine| drop(disagreement::raise(engine, context, &group, found.error())))
    }
}

impl Found {
    #[cold]
    fn error(&self) -> Error {
        disagreement::error(self.ranks.map(Some), self.difference)
    }
}

impl Listener for CallLog {
    fn unasked(&self, envelope: &Envelope) -> Option<ProgramJob> {
        let Tagged { sort, number, code } = numbers::read_tag(envelope.tag);
        if code == 0 {
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

/// Calls its argument with some ranks.
pub(super) type ListRanks<'a> = dyn Fn(&mut dyn FnMut(usize)) + 'a;

/// Asks others what they do, for an operation in which this thread waits.
pub(super) struct Inquirer<'a, F> {
    comm: &'a Comm,
    signature: Signature,
    /// Its number; `None` for the blocking operation that was begun last.
    number: Option<u64>,
    inquired: Cell<Option<LoggedCall>>,
    /// Gives the ranks for whom it waits.
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

/// Tells those for whom this rank waits in a call what that is. [`end_inquiries`] is to follow once it waits no more.
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
    // Who computes is disturbed once.
    let urgency = if inquiries == SAYS_ALONE { Urgency::Urgent } else { Urgency::Normal };
    // Of more messages than the log keeps in mind some were forgotten.
    engine.overhear_again(log.context, &*log);
    awaited(&mut |rank| {
        if let Some(peer) = log.group.world_rank(rank).filter(|_| rank != log.me) {
            let word = u64::from(signature.word()) | if is_alone { ALONE } else { 0 };
            let words = [number, word, begun.blocking, begun.background];
            engine.say(peer, log.context, words, urgency);
        }
    });
}

/// This rank does not wait any more in a call about which it has inquired.
#[cold]
pub(super) fn end_inquiries(comm: &Comm, call: LoggedCall) {
    if let Some(log) = CallLog::of(comm) {
        let LoggedCall { number, signature } = call;
        log.entries.lock().waits.retain(|wait| wait.number != number || wait.signature != signature);
    }
}
