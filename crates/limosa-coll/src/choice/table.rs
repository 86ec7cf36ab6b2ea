//! Tables of choices as text.

use super::{SUBJECTS, Subject, TableWay, WAYS, algorithms};

/// The rows of all subjects and ways.
#[derive(Debug)]
pub(super) struct Table {
    /// The rows by subject and way; for each, in the order of the text.
    rows: Vec<Row>,
    /// The rows of `limosa tune`, in the same order: they precede the rows above.
    tuned: Vec<Row>,
}

/// The text of the built-in table.
pub(super) const BUILTIN: &str = include_str!("builtin.table");

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    subject: u8,
    way: u8,
    least_ranks: usize,
    most_ranks: usize,
    pub(super) least_bytes: usize,
    pub(super) limit: Limit,
    pub(super) direct: bool,
    pub(super) commuting: bool,
    pub(super) hosts: bool,
    pub(super) algorithm: &'static str,
}

/// Upper limit of the bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Any,
    Bytes(usize),
    /// Bytes that fit a slot.
    Slot,
    /// This part of a ring buffer.
    Ring(usize),
}

impl Limit {
    pub(super) fn bytes(self, slot: usize, ring: usize) -> usize {
        match self {
            Limit::Any => usize::MAX,
            Limit::Bytes(bytes) => bytes,
            Limit::Slot => slot,
            Limit::Ring(part) => slot.max(ring / part),
        }
    }

    /// Whether this limit is no less than another limit, whatever the sizes of slots and ring buffers.
    fn reaches(self, other: Limit) -> bool {
        match (self, other) {
            (Limit::Any, _) | (Limit::Slot | Limit::Ring(_), Limit::Slot) => true,
            (Limit::Bytes(own), Limit::Bytes(other)) => own >= other,
            (Limit::Ring(own), Limit::Ring(other)) => own <= other,
            _ => false,
        }
    }
}

impl Row {
    pub(super) fn takes(&self, ranks: usize) -> bool {
        (self.least_ranks..=self.most_ranks).contains(&ranks)
    }

    fn place(&self) -> (u8, u8) {
        (self.subject, self.way)
    }

    /// Returns the algorithm of a row by messages.
    pub(super) fn algorithm(&self) -> &'static algorithms::Algorithm {
        let found = algorithms::of(Subject(self.subject.into())).find(|algorithm| algorithm.name == self.algorithm);
        found.expect("names are checked when a table is read")
    }
}

impl Table {
    /// Returns the built-in table.
    pub(super) fn builtin() -> Table {
        let mut rows = Table::parse(BUILTIN).expect("a test reads the built-in table");
        rows.sort_by_key(Row::place);
        Table { rows, tuned: Vec::new() }
    }

    /// Returns the rows of a subject and way, without tuned ones.
    pub(super) fn rows(&self, subject: Subject, way: TableWay) -> &[Row] {
        rows_of(&self.rows, subject, way)
    }

    /// Returns the rows for `ranks` ranks on the shared way, tuned ones first.
    pub(super) fn shared_rows(&self, subject: Subject, ranks: usize) -> impl Iterator<Item = &Row> {
        let tuned = rows_of(&self.tuned, subject, TableWay::Shared);
        tuned.iter().chain(self.rows(subject, TableWay::Shared)).filter(move |row| row.takes(ranks))
    }

    /// Takes the rows that `limosa tune` has found, separated by semicolons: for single numbers of ranks, on the shared
    /// way.
    ///
    /// # Errors
    /// The invalid row, and the reason; the table is unchanged.
    pub(super) fn tune(&mut self, text: &str) -> Result<(), String> {
        let mut tuned = Table::parse(&text.replace(';', "\n"))?;
        tuned.sort_by_key(Row::place);
        if tuned.iter().any(|row| row.way != TableWay::Shared as u8 || row.least_ranks != row.most_ranks) {
            return Err("tuned rows are for `shared`, and for one number of ranks each".into());
        }
        for subject in Subject::all() {
            check_order(rows_of(&tuned, subject, TableWay::Shared), subject)?;
        }
        self.tuned = tuned;
        Ok(())
    }

    /// Replaces the rows of the same subjects and ways.
    pub(super) fn replace(&mut self, rows: Vec<Row>) {
        self.rows.retain(|row| rows.iter().all(|new| new.place() != row.place()));
        self.rows.extend(rows);
        self.rows.sort_by_key(Row::place);
    }

    /// Checks that the table is complete.
    pub(super) fn check(&self) -> Result<(), String> {
        for (subject, name) in SUBJECTS.iter().enumerate() {
            let last = self.rows(Subject(subject), TableWay::Messages).last();
            let fits_all = |row: &Row| {
                row.takes(1)
                    && row.takes(usize::MAX)
                    && row.limit == Limit::Any
                    && !row.direct
                    && !row.commuting
                    && !row.hosts
            };
            if !last.is_some_and(fits_all) {
                return Err(format!(
                    "the last row of `{name} messages` must fit everything: write * for ranks and bytes, and - for the \
                     condition"
                ));
            }
            check_order(self.rows(Subject(subject), TableWay::Shared), Subject(subject))?;
        }
        Ok(())
    }

    /// Parses the rows of a text.
    ///
    /// # Errors
    /// The invalid line, and the reason.
    pub(super) fn parse(text: &str) -> Result<Vec<Row>, String> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.split('#').next().unwrap_or("").trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty());
        // Exact capacity, because each process of a job keeps the table.
        let mut rows = Vec::with_capacity(lines.clone().count());
        for (at, line) in lines {
            rows.push(row(line).map_err(|wrong| format!("line {at}: {wrong}"))?);
        }
        Ok(rows)
    }
}

/// Returns the rows of a subject and way from sorted rows.
fn rows_of(rows: &[Row], subject: Subject, way: TableWay) -> &[Row] {
    let place = (subject.0 as u8, way as u8);
    let first = rows.partition_point(|row| row.place() < place);
    let end = rows.partition_point(|row| row.place() <= place);
    &rows[first..end]
}

/// Checks that no row on the shared way is without effect because an earlier row covers it.
fn check_order(rows: &[Row], subject: Subject) -> Result<(), String> {
    for (at, row) in rows.iter().enumerate() {
        let hides = |earlier: &&Row| {
            // An operand longer than a slot never goes by slots, whatever the limit.
            earlier.algorithm != "slots"
                && earlier.least_ranks <= row.least_ranks
                && earlier.most_ranks >= row.most_ranks
                && earlier.least_bytes <= row.least_bytes
                && earlier.limit.reaches(row.limit)
                && (row.direct || !earlier.direct)
        };
        if let Some(earlier) = rows[..at].iter().find(hides) {
            return Err(format!(
                "the row of `{} shared` with {} has no effect, because an earlier row with {} fits all its ranks and \
                 bytes: put it first, or narrow the earlier row with a range such as 16K..64K",
                subject.name(),
                row.algorithm,
                earlier.algorithm
            ));
        }
    }
    Ok(())
}

fn row(line: &str) -> Result<Row, String> {
    let count = line.split_whitespace().count();
    if count != 6 {
        return Err(format!(
            "`{line}` has {count} words, but a row has six: operation, way, ranks, bytes, condition, algorithm"
        ));
    }
    let mut words = line.split_whitespace();
    let [subject, way, ranks, limit, condition, name] = std::array::from_fn(|_| words.next().unwrap_or_default());
    let subject = index(&SUBJECTS, subject, "operation")?;
    let way = index(&WAYS, way, "way")?;
    let (least_ranks, most_ranks) = range(ranks)?;
    let (least_bytes, limit) = sizes(limit, way)?;
    let (mut direct, mut commuting, mut hosts) = (false, false, false);
    match condition {
        "-" => {}
        "direct" if way != TableWay::Messages as usize => direct = true,
        "commuting" if way == TableWay::Messages as usize => commuting = true,
        "hosts" if way == TableWay::Messages as usize => hosts = true,
        _ => {
            return Err(format!(
                "`{condition}` is not a condition of {}; write -, or {}",
                WAYS[way],
                if way == 2 { "commuting, or hosts" } else { "direct" }
            ));
        }
    }
    let Some(known) = names(Subject(subject), way).find(|known| *known == name) else {
        return Err(format!(
            "`{name}` is not an algorithm of {} {}; use one of {}",
            SUBJECTS[subject],
            WAYS[way],
            names(Subject(subject), way).collect::<Vec<_>>().join(", ")
        ));
    };
    let algorithm =
        algorithms::of(Subject(subject)).find(|algorithm| algorithm.name == name && algorithm.way as usize == way);
    if algorithm.is_some_and(|algorithm| algorithm.direct && !direct) {
        return Err(format!("{name} needs the condition `direct`"));
    }
    if algorithm.is_some_and(|algorithm| algorithm.commuting && !commuting) {
        return Err(format!("{name} needs the condition `commuting`"));
    }
    if algorithm.is_some_and(|algorithm| algorithm.composed && !hosts) {
        return Err(format!("{name} needs the condition `hosts`"));
    }
    let (subject, way) = (subject as u8, way as u8);
    Ok(Row { subject, way, least_ranks, most_ranks, least_bytes, limit, direct, commuting, hosts, algorithm: known })
}

/// Returns the names that a row may have.
fn names(subject: Subject, way: usize) -> impl Iterator<Item = &'static str> {
    algorithms::of(subject)
        .filter(move |algorithm| algorithm.way as usize == way)
        .map(|algorithm| algorithm.name)
        .chain((way != TableWay::Messages as usize).then_some("messages"))
}

fn index(words: &[&str], word: &str, what: &str) -> Result<usize, String> {
    words
        .iter()
        .position(|known| *known == word)
        .ok_or_else(|| format!("`{word}` is not a valid {what}; use one of {}", words.join(", ")))
}

fn range(word: &str) -> Result<(usize, usize), String> {
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| *number > 0);
    let found = match word.split_once('-') {
        _ if word == "*" => Some((1, usize::MAX)),
        None => number(word).map(|number| (number, number)),
        Some((from, "")) => number(from).map(|from| (from, usize::MAX)),
        Some((from, to)) => number(from).zip(number(to)).filter(|(from, to)| from <= to),
    };
    found.ok_or_else(|| format!("`{word}` is not a range of ranks; write a number, 3-8, 3- or *"))
}

/// Parses the sizes of a row: a limit, or from..limit, both inclusive.
fn sizes(word: &str, way: usize) -> Result<(usize, Limit), String> {
    let Some((from, limit)) = word.split_once("..") else { return Ok((0, self::limit(word, way)?)) };
    if way == TableWay::Background as usize {
        return Err(format!("`{word}` has a lower bound, which rows of background cannot have; write `{limit}`"));
    }
    let limit = self::limit(limit, way)?;
    let from = bytes(from).ok_or_else(|| format!("`{from}` is not a number of bytes; write one such as 16K"))?;
    match limit {
        Limit::Bytes(most) if most < from => Err(format!("`{word}` is not a range of bytes: it ends before it begins")),
        _ => Ok((from, limit)),
    }
}

fn limit(word: &str, way: usize) -> Result<Limit, String> {
    let in_memory = way == TableWay::Shared as usize;
    let part = word.strip_prefix("ring/").and_then(|part| part.parse::<usize>().ok()).filter(|part| *part > 0);
    match (word, part) {
        ("*", _) => Ok(Limit::Any),
        ("slot", _) if in_memory => Ok(Limit::Slot),
        (_, Some(part)) if in_memory => Ok(Limit::Ring(part)),
        _ => bytes(word).map(Limit::Bytes).ok_or_else(|| {
            let more = if in_memory { ", slot, ring/8" } else { "" };
            format!("`{word}` is not a number of bytes; write one such as 4096, 64K or 1M, or *{more}, or from..to")
        }),
    }
}

fn bytes(word: &str) -> Option<usize> {
    let shift = match word.as_bytes().last()? {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let digits = if shift > 0 { &word[..word.len() - 1] } else { word };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}
