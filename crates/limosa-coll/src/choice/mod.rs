//! Selection of the algorithm of a collective operation, from a table.
//!
//! The built-in table is `builtin.table`, which explains its columns. `LIMOSA_COLL_TABLE` names a file of the same form
//! whose rows replace built-in rows, and `LIMOSA_COLL_<operation>` forces an algorithm where it can serve. Rows that
//! `limosa tune` has found on this machine come from the launcher. They precede those of the built-in table, which hold
//! for all other numbers of ranks and bytes. [`algorithms`] has names, costs and conditions of algorithms.
//! Contract
//! - All ranks choose by the same table. Each rank publishes a hash of its table ([`prepare`]); a rank that finds
//!   another hash reports it, and initialisation fails. A table never changes after that.
//! - A choice depends only on values that all ranks know: ranks, bytes, and the properties of the members' shared
//!   memory, found at its set-up.
//! - Choices on the shared way are resolved once per communicator, to limits that its operations compare with
//!   ([`Resolved`]). The others are looked up when an operation is planned.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use limosa_job::{Job, config};

use super::kind::{Collective, KINDS};
use limosa_mpi::error::Result;
use limosa_mpi::fail;

pub(super) mod algorithms;
pub(super) mod counts;
mod table;

use algorithms::Algorithm;
use table::{Row, Table};

/// A subject of the table: an operation, or allgather with contributions of different lengths, by messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject(usize);

/// The names of the subjects: in the order of [`Collective`], then the additional one.
pub(super) const SUBJECTS: [&str; KINDS + 1] = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_alltoall",
    "allgatherv",
];

impl Subject {
    pub(super) const ALLGATHERV: Subject = Subject(KINDS);

    /// Returns all subjects.
    pub(super) fn all() -> impl Iterator<Item = Subject> {
        (0..SUBJECTS.len()).map(Subject)
    }

    /// Returns its index among all subjects.
    pub(super) fn index(self) -> usize {
        self.0
    }

    pub(super) fn name(self) -> &'static str {
        SUBJECTS[self.0]
    }
}

impl From<Collective> for Subject {
    fn from(kind: Collective) -> Subject {
        Subject(kind as usize - 1)
    }
}

/// How the data of an operation travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableWay {
    /// Blocking, in memory that the members share.
    Shared,
    /// Non-blocking and persistent, in such memory.
    Background,
    /// By messages.
    Messages,
}

const WAYS: [&str; 3] = ["shared", "background", "messages"];

/// The word of a subject's variable, which forces an algorithm.
#[derive(Clone, Copy)]
enum Forced {
    No,
    /// Any algorithm by messages.
    ByMessages,
    This(&'static Algorithm),
}

/// The table in use.
struct Choices {
    table: Table,
    forced: [Forced; SUBJECTS.len()],
}

static CHOICES: OnceLock<Choices> = OnceLock::new();
/// Subjects for which the warning was printed that a forced algorithm cannot serve, as bits.
static SAID: AtomicU32 = AtomicU32::new(0);

/// Returns the choices: the built-in ones, parsed at the first use, unless [`prepare`] has found others.
fn choices() -> &'static Choices {
    CHOICES.get_or_init(|| Choices { table: Table::builtin(), forced: [Forced::No; SUBJECTS.len()] })
}

/// Reads the configuration, and compares it with that of the other ranks of the job. Called at initialisation.
///
/// # Errors
/// `MPI_ERR_OTHER`: the file of `LIMOSA_COLL_TABLE` cannot be read or is invalid, or other ranks use another table.
pub fn prepare() -> Result<()> {
    counts::begin_if_traced();
    let config = config::get();
    let mut changed = None;
    if let Some(path) = &config.coll_table {
        let mut table = Table::builtin();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => fail!(MPI_ERR_OTHER, "LIMOSA_COLL_TABLE is `{path}`, which cannot be read: {error}"),
        };
        match Table::parse(&text) {
            Ok(rows) => table.replace(rows),
            Err(wrong) => fail!(MPI_ERR_OTHER, "LIMOSA_COLL_TABLE, file {path}, {wrong}"),
        }
        if let Err(wrong) = table.check() {
            fail!(MPI_ERR_OTHER, "LIMOSA_COLL_TABLE, file {path}: {wrong}");
        }
        changed = Some(table);
    }
    if let Some(text) = config.coll_tuned.as_ref().filter(|_| changed.is_none()) {
        let mut table = Table::builtin();
        match table.tune(text) {
            Ok(()) => changed = Some(table),
            // All ranks have the same text, and ignore it.
            Err(wrong) => say_of_tuning(&wrong),
        }
    }
    let forced =
        forced_by(|name| config.coll_forced.iter().find(|(forced, _)| *forced == name).map(|(_, word)| word.as_str()));
    let number = hash(changed.as_ref(), &config.coll_forced);
    let (rank, others) = Job::current().map_or_else(Default::default, |job| (job.rank(), job.differing(number)));
    if !others.is_empty() {
        let list = others.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        fail!(
            MPI_ERR_OTHER,
            "rank {rank} chooses other algorithms of collectives than rank {list}: give all ranks the same \
             LIMOSA_COLL_TABLE, with the same \
             contents, and the same LIMOSA_COLL_... variables"
        );
    }
    if changed.is_some() || !config.coll_forced.is_empty() {
        CHOICES.get_or_init(|| Choices { table: changed.unwrap_or_else(Table::builtin), forced });
    }
    Ok(())
}

/// Returns the forced algorithm of each subject. `word` returns the value of a subject's variable.
fn forced_by<'w>(word: impl Fn(&str) -> Option<&'w str>) -> [Forced; SUBJECTS.len()] {
    std::array::from_fn(|subject| {
        let variable = match SUBJECTS[subject] {
            "exscan" => "scan",
            "allgatherv" => "allgather",
            name => name,
        };
        match word(variable) {
            None | Some("auto") => Forced::No,
            Some("messages") => Forced::ByMessages,
            // A variable may serve two operations; its word may name an algorithm of only one of them.
            Some(name) => algorithms::of(Subject(subject))
                .find(|algorithm| algorithm.name == name)
                .map_or(Forced::No, Forced::This),
        }
    })
}

/// Returns a hash of the table, not 0. `changed`: the table, if it is not the built-in one.
fn hash(changed: Option<&Table>, forced: &[(&'static str, String)]) -> u64 {
    const OF_BUILTIN: u64 = hash_on(0xcbf2_9ce4_8422_2325, table::BUILTIN);
    let number = changed.map_or(OF_BUILTIN, |table| hash_on(OF_BUILTIN, &format!("{table:?}")));
    if forced.is_empty() { number.max(1) } else { hash_on(number, &format!("{forced:?}")).max(1) }
}

/// Continues a hash (FNV-1a) with a text.
const fn hash_on(mut hash: u64, text: &str) -> u64 {
    let (bytes, mut at) = (text.as_bytes(), 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

impl Choices {
    fn by_messages(
        &self,
        subject: Subject,
        ranks: usize,
        bytes: usize,
        commutes: bool,
        over: Over,
    ) -> &'static Algorithm {
        if let Forced::This(algorithm) = self.forced[subject.0]
            && algorithm.way == TableWay::Messages
        {
            match over {
                _ if algorithm.commuting && !commutes => say_once(subject, algorithm, "the operation does not commute"),
                Over::Flat(reason) if algorithm.composed && ranks > 1 => say_once(subject, algorithm, reason),
                Over::Flat(_) | Over::Part if algorithm.composed => {}
                _ => return algorithm,
            }
        }
        let fits = |row: &&Row| {
            row.takes(ranks)
                && (row.least_bytes..=row.limit.bytes(0, 0)).contains(&bytes)
                && (commutes || !row.commuting)
                && (over == Over::Hosts || !row.hosts)
        };
        let row = self.table.rows(subject, TableWay::Messages).iter().find(fits);
        row.expect("the last row of each operation fits everything").algorithm()
    }

    fn in_background(&self, subject: Subject, ranks: usize) -> Background {
        if self.forced[subject.0].is_by_messages() {
            return None;
        }
        let most = |is_left: bool| {
            let rows = self
                .table
                .rows(subject, TableWay::Background)
                .iter()
                .take_while(|row| row.algorithm != "messages" || !row.takes(ranks));
            let rows = rows.filter(|row| row.takes(ranks) && (row.algorithm == "mailbox") == is_left);
            rows.map(|row| row.limit.bytes(0, 0)).max().unwrap_or(0)
        };
        Some((most(true), most(false)))
    }

    fn resolve(&self, subject: Subject, found: MemoryTraits) -> Resolved {
        let by_table = resolve_rows(self.table.shared_rows(subject, found.ranks), most_put(subject, found), found);
        match self.forced[subject.0] {
            Forced::No => by_table,
            Forced::This(algorithm) if algorithm.way == TableWay::Shared => {
                match force(algorithm, most_put(subject, found), found, &by_table) {
                    Ok(forced) => forced,
                    Err(reason) => {
                        if found.speaks {
                            say_once(subject, algorithm, reason);
                        }
                        by_table
                    }
                }
            }
            // Composed algorithms are only for members on several hosts; members of one host use the table.
            Forced::This(algorithm) if algorithm.composed => by_table,
            Forced::This(_) | Forced::ByMessages => Resolved::new(Vec::new()),
        }
    }
}

/// The group of an operation by messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// A communicator with members on several hosts, several of them on one: the operation can be composed.
    Hosts,
    /// Any other group, with the reason why the operation cannot be composed.
    Flat(&'static str),
    /// The members of a part of a composed operation.
    Part,
}

/// Returns the algorithm by messages for `ranks` ranks and these bytes, counted as the table says. `commutes`: whether
/// the operation of a reduction does.
pub(super) fn by_messages(
    subject: impl Into<Subject>,
    ranks: usize,
    bytes: usize,
    commutes: bool,
    over: Over,
) -> &'static Algorithm {
    let subject = subject.into();
    let algorithm = choices().by_messages(subject, ranks, bytes, commutes, over);
    counts::count(subject, || Some(algorithm));
    algorithm
}

/// Most bytes of an operation in the background by mailboxes, and directly from memory to memory if all ranks can
/// access each other's; `None` if it always goes by messages.
pub(super) type Background = Option<(usize, usize)>;

/// Returns the limits of all operations, in the order of [`Collective`].
pub(super) fn in_background(ranks: usize) -> [Background; KINDS] {
    std::array::from_fn(|subject| choices().in_background(Subject(subject), ranks))
}

impl Forced {
    fn is_by_messages(self) -> bool {
        match self {
            Forced::No => false,
            Forced::ByMessages => true,
            Forced::This(algorithm) => algorithm.way == TableWay::Messages && !algorithm.composed,
        }
    }
}

/// Number of bytes of which ranks may have different knowledge.
pub(super) const UNKNOWN_BYTES: usize = usize::MAX;

/// How data of a blocking operation travel among members that share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedPath {
    /// Through slots, or ring buffers.
    Slots,
    /// In rounds through shared buffers.
    Rounds,
    /// Directly from memory to memory.
    Direct,
    Messages,
}

impl SharedPath {
    fn of(algorithm: &str) -> SharedPath {
        match algorithm {
            "slots" => SharedPath::Slots,
            "rounds" => SharedPath::Rounds,
            "messages" => SharedPath::Messages,
            _ => SharedPath::Direct,
        }
    }
}

/// Paths of the blocking operations of one kind among members that share memory, by size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Most bytes up to which all sizes go through slots: short messages need no other comparison.
    put: usize,
    /// Most bytes up to which all sizes go without messages.
    shared: usize,
    /// Last size of each range in ascending order, and its path; beyond the last range data go by messages.
    ranges: Box<[(usize, SharedPath)]>,
}

impl Resolved {
    fn new(mut ranges: Vec<(usize, SharedPath)>) -> Resolved {
        ranges.dedup_by(|next, range| {
            let is_same = next.1 == range.1;
            range.0 = if is_same { next.0 } else { range.0 };
            is_same
        });
        let end_while = |fits: fn(SharedPath) -> bool| {
            ranges.iter().take_while(|(_, path)| fits(*path)).last().map_or(0, |(end, _)| *end)
        };
        let put = end_while(|path| path == SharedPath::Slots);
        let shared = end_while(|path| path != SharedPath::Messages);
        Resolved { put, shared, ranges: ranges.into() }
    }

    fn path(&self, bytes: usize) -> SharedPath {
        self.ranges.iter().find(|(end, _)| bytes <= *end).map_or(SharedPath::Messages, |(_, path)| *path)
    }

    /// Whether a rank puts so many bytes into shared memory at once.
    #[inline]
    pub(super) fn puts(&self, bytes: usize) -> bool {
        bytes <= self.put || self.path(bytes) == SharedPath::Slots
    }

    /// Whether so many bytes go in rounds.
    pub(super) fn takes_rounds(&self, bytes: usize) -> bool {
        self.path(bytes) == SharedPath::Rounds
    }

    /// Whether so many bytes go without messages.
    #[inline]
    pub(super) fn is_shared(&self, bytes: usize) -> bool {
        bytes <= self.shared || self.path(bytes) != SharedPath::Messages
    }

    /// Whether any bytes go without messages.
    pub(super) fn is_ever_shared(&self) -> bool {
        self.shared > 0 || self.ranges.iter().any(|(_, path)| *path != SharedPath::Messages)
    }

    /// Returns the algorithm for `bytes` of this subject, which go without messages.
    pub(super) fn algorithm(&self, subject: impl Into<Subject>, bytes: usize) -> Option<&'static Algorithm> {
        let path = if self.puts(bytes) { SharedPath::Slots } else { self.path(bytes) };
        algorithms::of(subject.into())
            .filter(|algorithm| algorithm.way == TableWay::Shared)
            .find(|algorithm| algorithm.name == "flags" || SharedPath::of(algorithm.name) == path)
    }
}

/// Returns the algorithm for an operation in the background, whose operands are lent or left in the mailboxes.
pub(super) fn behind(subject: impl Into<Subject>, is_lent: bool) -> Option<&'static Algorithm> {
    algorithms::of(subject.into())
        .find(|algorithm| algorithm.way == TableWay::Background && (algorithm.name != "mailbox") == is_lent)
}

/// Properties of the members' shared memory.
#[derive(Clone, Copy)]
pub(super) struct MemoryTraits {
    pub(super) ranks: usize,
    /// Whether all ranks can read and write each other's memory.
    pub(super) direct: bool,
    /// Bytes of a slot.
    pub(super) slot: usize,
    /// Bytes of a ring buffer.
    pub(super) ring: usize,
    /// Whether this rank prints warnings on behalf of all.
    pub(super) speaks: bool,
}

/// Resolves the choices of all operations, in the order of [`Collective`].
pub(super) fn resolve(found: MemoryTraits) -> [Resolved; KINDS] {
    std::array::from_fn(|subject| choices().resolve(Subject(subject), found))
}

/// Returns the first matching row for each size.
fn resolve_rows<'r>(rows: impl Iterator<Item = &'r Row>, most_put: usize, found: MemoryTraits) -> Resolved {
    let ranges = |row: &Row| {
        let (path, limit) = (SharedPath::of(row.algorithm), row.limit.bytes(found.slot, found.ring));
        (row.least_bytes, if path == SharedPath::Slots { limit.min(most_put) } else { limit }, path)
    };
    let rows: Vec<_> = rows.filter(|row| found.direct || !row.direct).map(ranges).collect();
    // The path changes only after the end of a row, or where a row begins.
    let mut ends: Vec<_> = rows
        .iter()
        .flat_map(|(least, most, _)| [least.saturating_sub(1), *most])
        .chain([found.most_shared()])
        .collect();
    ends.retain(|end| *end <= found.most_shared());
    ends.sort_unstable();
    ends.dedup();
    let path =
        |end: usize| rows.iter().find(|(least, most, _)| (*least..=*most).contains(&end)).map(|(_, _, path)| *path);
    Resolved::new(ends.into_iter().map(|end| (end, path(end).unwrap_or(SharedPath::Messages))).collect())
}

impl MemoryTraits {
    /// Returns the most bytes that can go without messages: if ranks may have different lengths, only direct access
    /// works.
    fn most_shared(&self) -> usize {
        if self.direct { UNKNOWN_BYTES } else { UNKNOWN_BYTES - 1 }
    }
}

/// Returns the most bytes that a rank can put into shared memory at once. A result combined by one rank for all must
/// fit a slot.
fn most_put(subject: Subject, found: MemoryTraits) -> usize {
    let combines_for_all = subject == Collective::Allreduce.into() && found.ranks > 2;
    if found.direct && !combines_for_all { found.slot.max(found.ring) } else { found.slot }
}

/// Resolves to one algorithm for all sizes that it can serve; otherwise returns the reason why it cannot.
fn force(
    algorithm: &Algorithm,
    most_put: usize,
    found: MemoryTraits,
    by_table: &Resolved,
) -> std::result::Result<Resolved, &'static str> {
    if algorithm.direct && !found.direct {
        return Err("the ranks cannot read each other's memory");
    }
    let (most, path) = match SharedPath::of(algorithm.name) {
        _ if algorithm.name == "flags" => return Ok(by_table.clone()),
        // Larger sizes go as the table says.
        SharedPath::Slots => {
            let beyond = by_table.ranges.iter().filter(|(end, _)| *end > most_put);
            return Ok(Resolved::new([(most_put, SharedPath::Slots)].iter().chain(beyond).copied().collect()));
        }
        path => (found.most_shared(), path),
    };
    // A contribution that fits a slot always goes through it.
    Ok(Resolved::new(vec![(found.slot, SharedPath::Slots), (most, path)]))
}

/// Warns, at one rank, that the rows of a tuning file are invalid.
fn say_of_tuning(wrong: &str) {
    if Job::current().is_none_or(|job| job.rank() == 0) {
        eprintln!("limosa: warning: the tuning file is invalid: {wrong}; run `limosa tune` again");
    }
}

/// Warns once that a forced algorithm cannot serve.
#[cold]
fn say_once(subject: Subject, algorithm: &Algorithm, reason: &str) {
    let bit = 1 << subject.0;
    if SAID.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        let (variable, name) = (subject.name().to_uppercase(), algorithm.name);
        eprintln!(
            "limosa: warning: LIMOSA_COLL_{variable}={name} does not apply here, because {reason}; the table chooses \
             instead"
        );
    }
}

#[cfg(test)]
mod tests;
