//! Which algorithm serves a collective operation: a table, which is data.
//!
//! The built-in table is `builtin.table`, which says what its columns mean. `LIMOSA_COLL_TABLE` names a file of the
//! same form whose rows take the place of those, and `LIMOSA_COLL_<operation>` forces one algorithm where it can serve.
//! What `limosa tune` has found on this machine comes from the launcher, as rows too: for some numbers of ranks they take
//! the place of those of the built-in table. What an algorithm is called, what it costs and where it can serve is in [`algorithms`].
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
                && row.limit.bytes(0, 0) >= bytes
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
                force(algorithm, most_put(subject, found), found, by_table).unwrap_or_else(|reason| {
                    if found.speaks {
                        say_once(subject, algorithm, reason);
                    }
                    by_table
                })
            }
            // Only where members are on several hosts; those of one share memory as the table says.
            Forced::This(algorithm) if algorithm.composed => by_table,
            Forced::This(_) | Forced::ByMessages => Resolved { put: 0, rounds: 0, shared: 0 },
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

/// How blocking operations of one kind go among members that share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Most bytes that a rank puts into shared memory at once.
    pub(super) put: usize,
    /// Most bytes that go in rounds beyond that; what is larger goes straight from memory to memory.
    pub(super) rounds: usize,
    /// Most bytes that go without messages.
    pub(super) shared: usize,
}

impl Resolved {
    /// The algorithm for so many bytes of this subject, which go without messages.
    pub(super) fn algorithm(&self, subject: impl Into<Subject>, bytes: usize) -> Option<&'static Algorithm> {
        let is_this = |algorithm: &&Algorithm| match algorithm.name {
            "slots" => bytes <= self.put,
            "rounds" => bytes > self.put && bytes <= self.rounds,
            "flags" => true,
            _ => bytes > self.put.max(self.rounds),
        };
        algorithms::of(subject.into()).filter(|algorithm| algorithm.way == Way::Shared).find(is_this)
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

/// By the first row that fits. Each row brings the limits further: first slots, then rounds, then memory to memory.
fn resolve_rows(rows: &[Row], most_put: usize, found: Found) -> Resolved {
    let mut resolved = Resolved { put: 0, rounds: 0, shared: 0 };
    for row in rows.iter().filter(|row| row.takes(found.ranks) && (found.direct || !row.direct)) {
        let limit = row.limit.bytes(found.slot, found.ring);
        let Resolved { put, rounds, shared } = resolved;
        match row.algorithm {
            "messages" => break,
            "slots" if shared > put => {}
            "slots" => resolved.put = put.max(limit.min(most_put)),
            "rounds" if shared > put.max(rounds) => {}
            "rounds" => resolved.rounds = rounds.max(limit),
            _ => resolved.shared = shared.max(limit),
        }
        resolved.shared = resolved.shared.max(resolved.put).max(resolved.rounds);
    }
    if !found.direct {
        // Where ranks do not know all lengths alike, only direct access can do it.
        resolved.shared = resolved.shared.min(UNKNOWN_BYTES - 1);
    }
    resolved
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
    by_table: Resolved,
) -> std::result::Result<Resolved, &'static str> {
    if algorithm.direct && !found.direct {
        return Err("the ranks cannot read each other's memory");
    }
    Ok(match algorithm.name {
        // What is larger goes as the table says.
        "slots" => Resolved { put: most_put, ..by_table },
        // What fits a slot is always put there.
        "rounds" => Resolved { put: found.slot, rounds: usize::MAX, shared: by_table.shared },
        "single_copy" | "pieces" => Resolved { put: found.slot, rounds: 0, shared: usize::MAX },
        _ => by_table,
    })
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
