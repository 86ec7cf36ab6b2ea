//! What the ranks of a collective call must agree on, and whether they do. Pure: nothing here calls MPI.
//!
//! A call becomes a [`Record`] of a few numbers, which every rank gives to all others before the call. All ranks then
//! find the same.

use crate::names::{NAMES, OPERATIONS};
use crate::signature::Signature;

/// Numbers of a record.
pub(crate) const WORDS: usize = 8;
/// Instead of a number that does not count at this rank.
pub(crate) const ABSENT: i64 = i64::MIN;

/// Classes of errors in the ABI.
pub(crate) const ERR_TYPE: i32 = 3;
const ERR_ROOT: i32 = 8;
const ERR_OP: i32 = 10;
const ERR_TRUNCATE: i32 = 15;
const ERR_OTHER: i32 = 16;

/// What a rank says of its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    /// The function, by its place in [`NAMES`].
    pub function: usize,
    pub root: Option<i32>,
    /// The handle of a predefined operation, or another number for all functions of programs.
    pub op: Option<i64>,
    /// The block that this rank gives to each, and the one that it takes from each.
    pub blocks: [Option<(Signature, u64)>; 2],
    /// The blocks of different ranks may have different lengths.
    pub is_uneven: bool,
}

impl Record {
    pub(crate) fn words(&self) -> [i64; WORDS] {
        let [(s0, b0), (s1, b1)] =
            self.blocks.map(|block| block.map_or((0, ABSENT), |(signature, bytes)| (signature.0 as i64, bytes as i64)));
        let root = self.root.map_or(ABSENT, i64::from);
        [self.function as i64, root, self.op.unwrap_or(ABSENT), s0, b0, s1, b1, i64::from(self.is_uneven)]
    }

    pub(crate) fn of(words: &[i64]) -> Record {
        let present = |word: i64| (word != ABSENT).then_some(word);
        let block = |at: usize| present(words[at + 1]).map(|bytes| (Signature(words[at] as u64), bytes as u64));
        Record {
            function: words[0] as usize,
            root: present(words[1]).map(|root| root as i32),
            op: present(words[2]),
            blocks: [block(3), block(5)],
            is_uneven: words[7] != 0,
        }
    }
}

/// The class of the error that the ranks have made, and what they differ in; none if they agree.
pub(crate) fn disagreement(records: &[Record]) -> Option<(i32, String)> {
    let name = |record: &Record| Some(NAMES[record.function.min(NAMES.len() - 1)].to_owned());
    if let Some(text) = difference(records, name) {
        return Some((ERR_OTHER, text));
    }
    if let Some(text) = difference(records, |record| Some(format!("root {}", record.root?))) {
        return Some((ERR_ROOT, text));
    }
    if let Some(text) = difference(records, |record| Some(operation(record.op?))) {
        return Some((ERR_OP, text));
    }
    // A rank with two blocks may differ from itself, so each is taken for a rank of its own.
    let blocks =
        |at: usize| records.iter().enumerate().filter_map(move |(rank, record)| Some((rank, record.blocks[at]?)));
    let all: Vec<_> = blocks(0).chain(blocks(1)).collect();
    let bytes: Vec<_> = all.iter().map(|(rank, (_, bytes))| (*rank, format!("{bytes} bytes"))).collect();
    let is_uneven = records.iter().any(|record| record.is_uneven);
    if let Some(text) = said_differently(&bytes).filter(|_| !is_uneven) {
        return Some((ERR_TRUNCATE, text));
    }
    let is_known = |signature: &Signature, bytes: u64| signature.0 != 0 && bytes > 0;
    let known: Vec<_> = all.iter().filter(|(_, (signature, bytes))| is_known(signature, *bytes)).collect();
    if known.windows(2).any(|pair| pair[0].1.0.differs(pair[0].1.1, pair[1].1.0, pair[1].1.1)) {
        let types: Vec<_> = known.iter().map(|(rank, (signature, _))| (*rank, signature.name())).collect();
        let text = said_differently(&types).unwrap_or("structures of different types".into());
        return Some((ERR_TYPE, text));
    }
    None
}

fn operation(op: i64) -> String {
    let found = OPERATIONS.iter().find(|(_, handle)| *handle as i64 == op);
    found.map_or("a function of the program", |(name, _)| name).to_owned()
}

/// In what the records differ, in words; those without are left out.
fn difference(records: &[Record], of: impl Fn(&Record) -> Option<String>) -> Option<String> {
    let all: Vec<_> = records.iter().enumerate().filter_map(|(rank, record)| Some((rank, of(record)?))).collect();
    said_differently(&all)
}

/// `root 0 at ranks 0 to 2, root 1 at rank 3`, if not all say the same.
fn said_differently(all: &[(usize, String)]) -> Option<String> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (rank, text) in all {
        match groups.iter_mut().find(|(known, _)| known == text) {
            Some((_, ranks)) => ranks.push(*rank),
            None => groups.push((text, vec![*rank])),
        }
    }
    for (_, ranks) in &mut groups {
        // A rank with two blocks comes twice.
        ranks.sort_unstable();
        ranks.dedup();
    }
    groups.sort_by_key(|(_, ranks)| ranks[0]);
    let words = |(text, ranks): &(&str, Vec<usize>)| format!("{text} at {}", ranks_in_words(ranks));
    (groups.len() > 1).then(|| groups.iter().map(words).collect::<Vec<_>>().join(", "))
}

/// `rank 3`, `ranks 0 to 2`, `ranks 0, 2, 5 and 12 more`.
fn ranks_in_words(ranks: &[usize]) -> String {
    let (first, last) = (ranks[0], ranks[ranks.len() - 1]);
    match ranks.len() {
        1 => format!("rank {first}"),
        n if last.wrapping_sub(first) == n - 1 => format!("ranks {first} to {last}"),
        n => {
            let shown: Vec<_> = ranks.iter().take(5).map(usize::to_string).collect();
            let more = if n > 5 { format!(" and {} more", n - 5) } else { String::new() };
            format!("ranks {}{more}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> Record {
        let function = NAMES.iter().position(|other| *other == name).unwrap();
        Record { function, root: None, op: None, blocks: [None; 2], is_uneven: false }
    }

    fn told(records: &[Record]) -> Option<(i32, String)> {
        let sent: Vec<Record> = records.iter().map(|record| Record::of(&record.words())).collect();
        assert_eq!(sent, records);
        disagreement(&sent)
    }

    #[test]
    fn different_calls_are_told_with_their_ranks() {
        let (barrier, bcast) = (record("MPI_Barrier"), Record { root: Some(0), ..record("MPI_Bcast") });
        let text = "MPI_Barrier at ranks 0, 2, MPI_Bcast at rank 1".to_owned();
        assert_eq!(told(&[barrier, bcast, barrier]), Some((ERR_OTHER, text)));
        assert_eq!(told(&[barrier; 4]), None);
    }

    #[test]
    fn different_roots_are_told() {
        let from = |root| Record { root: Some(root), ..record("MPI_Bcast") };
        let text = "root 0 at ranks 0 to 2, root 1 at rank 3".to_owned();
        assert_eq!(told(&[from(0), from(0), from(0), from(1)]), Some((ERR_ROOT, text)));
    }

    #[test]
    fn what_does_not_count_at_a_rank_is_left_out() {
        let gives = |block| Record { root: Some(0), blocks: [block, None], ..record("MPI_Gather") };
        let takes = |block| Record { root: Some(0), blocks: [None, block], ..record("MPI_Gather") };
        let (ints, doubles) = (Some((Signature(68), 8)), Some((Signature(200), 8)));
        assert_eq!(told(&[takes(ints), gives(ints), gives(ints)]), None);
        assert_eq!(told(&[gives(ints), gives(Some((Signature(0), 8)))]), None, "MPI_BYTE goes with anything");
        assert_eq!(told(&[takes(ints), gives(doubles)]).map(|(class, _)| class), Some(ERR_TYPE));
        let text = "8 bytes at rank 0, 16 bytes at rank 1".to_owned();
        assert_eq!(told(&[takes(ints), gives(Some((Signature(68), 16)))]), Some((ERR_TRUNCATE, text)));
    }
}
