//! Which algorithm serves a collective operation: a table, which is data.
//!
//! The built-in table is `builtin.table`, which says what its columns mean. `LIMOSA_COLL_TABLE` names a file of the
//! same form whose rows take the place of those, and `LIMOSA_COLL_<operation>` forces one algorithm where it can serve.
//! Rows that `limosa tune` has found on this machine come from the launcher: they precede those of the built-in table,
//! which hold for all other numbers of ranks and bytes. [`algorithms`] has names, costs and conditions of algorithms.
//!
//! Contract
//! - All ranks choose by the same table. Each tells the others of its job what its table is ([`prepare`]); who finds
//!   another one says so, and initialisation fails. A table never changes after that.
//! - What a choice depends on is known to all ranks alike: ranks, bytes, and what was found when the members' shared
//!   memory was set up.
//! - Choices on the shared way are resolved once per communicator, to limits that its operations compare with
//!   ([`Resolved`]). The others are looked up when an operation is planned.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use limosa_job::{Job, config};

use super::kind::{KINDS, Kind};
use limosa_mpi::error::Result;
use limosa_mpi::fail;

pub(super) mod algorithms;
pub(super) mod counts;
mod table;

use algorithms::Algorithm;
use table::{Row, Table};

/// What a table has rows for: the operations, and allgather with contributions of different lengths, by messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject(usize);

/// The names of the subjects: in the order of [`Kind`], then what is beside it.
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

    /// All there are.
    pub(super) fn all() -> impl Iterator<Item = Subject> {
        (0..SUBJECTS.len()).map(Subject)
    }

    /// Its place among all.
    pub(super) fn index(self) -> usize {
        self.0
    }

    pub(super) fn name(self) -> &'static str {
        SUBJECTS[self.0]
    }
}

impl From<Kind> for Subject {
    fn from(kind: Kind) -> Subject {
        Subject(kind as usize - 1)
    }
}

/// How an operation travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Blocking, in memory that the members share.
    Shared,
    /// Non-blocking and persistent, in such memory.
    Background,
    /// By messages.
    Messages,
}

const WAYS: [&str; 3] = ["shared", "background", "messages"];

/// What is forced for a subject by its variable.
#[derive(Clone, Copy)]
enum Forced {
    No,
    /// Some algorithm, by messages.
    ByMessages,
    This(&'static Algorithm),
}

/// The table in use.
struct Choices {
    table: Table,
    forced: [Forced; SUBJECTS.len()],
}

static CHOICES: OnceLock<Choices> = OnceLock::new();
/// Subjects of which has been said that what is forced cannot serve, as bits.
static SAID: AtomicU32 = AtomicU32::new(0);

/// The choices: the built-in ones, read when they are asked for first, unless [`prepare`] has found others.
fn choices() -> &'static Choices {
    CHOICES.get_or_init(|| Choices { table: Table::builtin(), forced: [Forced::No; SUBJECTS.len()] })
}

/// Reads what the configuration says, and compares it with what the other ranks of the job have. At initialisation.
///
/// # Errors
/// `MPI_ERR_OTHER`: the file of `LIMOSA_COLL_TABLE` cannot be read or makes no sense, or other ranks use another table.
pub fn prepare() -> Result<()> {
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
            // All ranks have the same text, and do without it.
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

/// What is forced for each subject, of which `word` tells the word of its variable.
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
            // A word of one of the two operations of a variable may be none of the other.
            Some(name) => algorithms::of(Subject(subject))
                .find(|algorithm| algorithm.name == name)
                .map_or(Forced::No, Forced::This),
        }
    })
}

/// A number that tells tables apart; not 0. `changed`: the table, if it is not the built-in one.
fn hash(changed: Option<&Table>, forced: &[(&'static str, String)]) -> u64 {
    const OF_BUILTIN: u64 = hash_on(0xcbf2_9ce4_8422_2325, table::BUILTIN);
    let number = changed.map_or(OF_BUILTIN, |table| hash_on(OF_BUILTIN, &format!("{table:?}")));
    if forced.is_empty() { number.max(1) } else { hash_on(number, &format!("{forced:?}")).max(1) }
}

/// The hash of a text (FNV-1a) behind one of this hash.
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
            && algorithm.way == Way::Messages
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
        let row = self.table.rows(subject, Way::Messages).iter().find(fits);
        row.expect("the last row of each operation fits everything").algorithm()
    }

    fn in_background(&self, subject: Subject, ranks: usize) -> Background {
        if self.forced[subject.0].is_by_messages() {
            return None;
        }
        let most = |is_left: bool| {
            let rows = self
                .table
                .rows(subject, Way::Background)
                .iter()
                .take_while(|row| row.algorithm != "messages" || !row.takes(ranks));
            let rows = rows.filter(|row| row.takes(ranks) && (row.algorithm == "mailbox") == is_left);
            rows.map(|row| row.limit.bytes(0, 0)).max().unwrap_or(0)
        };
        Some((most(true), most(false)))
    }

    fn resolve(&self, subject: Subject, found: Found) -> Resolved {
        let by_table = resolve_rows(self.table.shared_rows(subject, found.ranks), most_put(subject, found), found);
        match self.forced[subject.0] {
            Forced::No => by_table,
            Forced::This(algorithm) if algorithm.way == Way::Shared => {
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
            // Only where members are on several hosts; those of one share memory as the table says.
            Forced::This(algorithm) if algorithm.composed => by_table,
            Forced::This(_) | Forced::ByMessages => Resolved::new(Vec::new()),
        }
    }
}

/// Among whom an operation by messages is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// A communicator whose members are on several hosts, several of them on one: it can be composed.
    Hosts,
    /// Another one, or one where it cannot be composed for this reason.
    Flat(&'static str),
    /// The members of a part of a composed operation.
    Part,
}

/// The algorithm by messages for `ranks` ranks and these bytes, of which the table says whose they are. `commutes`: the
/// operation of a reduction does.
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

/// Most bytes for which an operation in the background goes by mailboxes, and straight from memory to memory if all
/// can access each other's; `None` if it goes by messages in any case.
pub(super) type Background = Option<(usize, usize)>;

/// Those of all operations, in the order of [`Kind`].
pub(super) fn in_background(ranks: usize) -> [Background; KINDS] {
    std::array::from_fn(|subject| choices().in_background(Subject(subject), ranks))
}

impl Forced {
    fn is_by_messages(self) -> bool {
        match self {
            Forced::No => false,
            Forced::ByMessages => true,
            Forced::This(algorithm) => algorithm.way == Way::Messages && !algorithm.composed,
        }
    }
}

/// Stands for a number of bytes that ranks do not know alike.
pub(super) const UNKNOWN_BYTES: usize = usize::MAX;

/// How data of a blocking operation travel among members that share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedPath {
    /// Through slots, or ring buffers.
    Slots,
    /// In rounds through buffers that all share.
    Rounds,
    /// From memory to memory.
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

    /// The algorithm for so many bytes of this subject, which go without messages.
    pub(super) fn algorithm(&self, subject: impl Into<Subject>, bytes: usize) -> Option<&'static Algorithm> {
        let path = if self.puts(bytes) { SharedPath::Slots } else { self.path(bytes) };
        algorithms::of(subject.into())
            .filter(|algorithm| algorithm.way == Way::Shared)
            .find(|algorithm| algorithm.name == "flags" || SharedPath::of(algorithm.name) == path)
    }
}

/// The algorithm for an operation in the background, whose operands are lent to the others, or left in the mailboxes.
pub(super) fn behind(subject: impl Into<Subject>, is_lent: bool) -> Option<&'static Algorithm> {
    algorithms::of(subject.into())
        .find(|algorithm| algorithm.way == Way::Background && (algorithm.name != "mailbox") == is_lent)
}

/// What was found when the members' shared memory was set up.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) ranks: usize,
    /// All can read and write each other's memory.
    pub(super) direct: bool,
    /// Bytes of a slot.
    pub(super) slot: usize,
    /// Bytes of a ring buffer.
    pub(super) ring: usize,
    /// This rank speaks for all.
    pub(super) speaks: bool,
}

/// Resolves the choices of all operations, in the order of [`Kind`].
pub(super) fn resolve(found: Found) -> [Resolved; KINDS] {
    std::array::from_fn(|subject| choices().resolve(Subject(subject), found))
}

/// Takes the first row that fits for each size.
fn resolve_rows<'r>(rows: impl Iterator<Item = &'r Row>, most_put: usize, found: Found) -> Resolved {
    let ranges = |row: &Row| {
        let (path, limit) = (SharedPath::of(row.algorithm), row.limit.bytes(found.slot, found.ring));
        (row.least_bytes, if path == SharedPath::Slots { limit.min(most_put) } else { limit }, path)
    };
    let rows: Vec<_> = rows.filter(|row| found.direct || !row.direct).map(ranges).collect();
    // The path changes only behind the end of a row, or where one begins.
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

impl Found {
    /// Most bytes that can go without messages: where ranks do not know all lengths alike, only direct access can do it.
    fn most_shared(&self) -> usize {
        if self.direct { UNKNOWN_BYTES } else { UNKNOWN_BYTES - 1 }
    }
}

/// Most bytes that a rank can put into shared memory at once. What one rank combines for all others must fit a slot.
fn most_put(subject: Subject, found: Found) -> usize {
    let combines_for_all = subject == Kind::Allreduce.into() && found.ranks > 2;
    if found.direct && !combines_for_all { found.slot.max(found.ring) } else { found.slot }
}

/// One algorithm for everything that it can serve, or why it cannot.
fn force(
    algorithm: &Algorithm,
    most_put: usize,
    found: Found,
    by_table: &Resolved,
) -> std::result::Result<Resolved, &'static str> {
    if algorithm.direct && !found.direct {
        return Err("the ranks cannot read each other's memory");
    }
    let (most, path) = match SharedPath::of(algorithm.name) {
        _ if algorithm.name == "flags" => return Ok(by_table.clone()),
        // What is larger goes as the table says.
        SharedPath::Slots => {
            let beyond = by_table.ranges.iter().filter(|(end, _)| *end > most_put);
            return Ok(Resolved::new([(most_put, SharedPath::Slots)].iter().chain(beyond).copied().collect()));
        }
        path => (found.most_shared(), path),
    };
    // A contribution that fits a slot always goes through it.
    Ok(Resolved::new(vec![(found.slot, SharedPath::Slots), (most, path)]))
}

/// Says, at one rank, that the rows of a tuning file make no sense.
fn say_of_tuning(wrong: &str) {
    if Job::current().is_none_or(|job| job.rank() == 0) {
        eprintln!("limosa: warning: the tuning file makes no sense: {wrong}; run `limosa tune` again");
    }
}

/// Says that what is forced cannot serve, if that has not been said.
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
