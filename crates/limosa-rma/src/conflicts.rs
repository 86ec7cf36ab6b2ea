//! Detection of conflicting accesses: those of one epoch that touch the same bytes of a target although the standard
//! forbids it (MPI-5 section 12.7). Enabled by `LIMOSA_CHECK=1`.
//!
//! | | put | get | accumulate |
//! |---|---|---|---|
//! | put | conflict | conflict | conflict |
//! | get | conflict | | conflict |
//! | accumulate | conflict | conflict | conflict if the types differ, or, of two origins, the operations |
//!
//! Each origin keeps an [`AccessLog`] of its accesses to each target since it last completed them, and compares every
//! access with it. At a fence the origins send their accesses since the last fence to the targets. Each target compares
//! those of different origins ([`between_origins`]). If one target finds a conflict, the fence fails at all members.
//!
//! Contract
//! - A correct program gets no error. Accesses that the order of calls may make correct are therefore accepted:
//!   different operations of one origin (they are ordered), `MPI_NO_OP`, and accesses with a request.
//! - Accesses of different origins are compared at fences only. Under locks, and between `MPI_Win_post` and
//!   `MPI_Win_wait`, a program may order accesses by messages, which the check cannot see.

use std::collections::BTreeMap;

use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::fail;
use limosa_mpi::op::{Op, Reduction};

/// Kind of an access. Two accesses of equal kind may touch the same bytes, unless they are puts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Put,
    Get,
    /// An operation, and the type of the elements.
    Accumulate {
        op: u32,
        element: u32,
    },
    /// `MPI_Compare_and_swap`, which is compatible with any operation.
    Swap {
        element: u32,
    },
}

/// Number of 64-bit words of an encoded act.
const WORDS: usize = 2;

/// Returns the number of a predefined type. Types of equal representation have the same number.
fn number_of(element: &Datatype) -> u32 {
    const NOT_BASIC: u32 = 1 << 31;
    element.as_basic().map_or(element.handle() as u32 | NOT_BASIC, |basic| basic.kind.code() as u32)
}

impl Act {
    /// Returns the act of an operation on elements of a predefined type; `None` if it changes nothing.
    pub fn accumulate(op: &Op, element: &Datatype) -> Option<Act> {
        let op = op.reduction().filter(|reduction| *reduction != Reduction::NoOp)?;
        Some(Act::Accumulate { op: op as u32, element: number_of(element) })
    }

    /// Returns the act of `MPI_Compare_and_swap` on an element of this type.
    pub fn swap(element: &Datatype) -> Act {
        Act::Swap { element: number_of(element) }
    }

    fn words(self) -> [u64; WORDS] {
        let both = |first: u32, second: u32| u64::from(first) << 32 | u64::from(second);
        match self {
            Act::Put => [0, 0],
            Act::Get => [1, 0],
            Act::Accumulate { op, element } => [2, both(op, element)],
            Act::Swap { element } => [3, both(0, element)],
        }
    }

    fn of_words([kind, word]: [u64; WORDS]) -> Option<Act> {
        let element = word as u32;
        Some(match kind {
            0 => Act::Put,
            1 => Act::Get,
            2 => Act::Accumulate { op: (word >> 32) as u32, element },
            3 => Act::Swap { element },
            _ => return None,
        })
    }

    fn element(self) -> Option<u32> {
        match self {
            Act::Accumulate { element, .. } | Act::Swap { element } => Some(element),
            Act::Put | Act::Get => None,
        }
    }

    fn conflicts_with(self, other: Act, of_one_origin: bool) -> bool {
        match (self, other) {
            (Act::Get, Act::Get) => false,
            (Act::Accumulate { op: first, element }, Act::Accumulate { op: second, element: other }) => {
                element != other || (first != second && !of_one_origin)
            }
            (first, second) => first.element().is_none() || first.element() != second.element(),
        }
    }

    /// Describes the act as a predicate of a rank.
    fn describe(self) -> String {
        match self {
            Act::Put => "put".to_owned(),
            Act::Get => "got".to_owned(),
            Act::Accumulate { op, .. } => {
                format!("accumulated with {}", Reduction::name_of(op).unwrap_or("an operation"))
            }
            Act::Swap { .. } => "compared and swapped".to_owned(),
        }
    }
}

/// Byte range: begin and end.
type Range = (u64, u64);

/// Disjoint byte ranges: end by begin.
type Ranges = BTreeMap<u64, u64>;

/// Returns a range that overlaps this one.
fn overlapping(ranges: &Ranges, (low, high): Range) -> Option<Range> {
    let (from, to) = ranges.range(..high).next_back()?;
    (*to > low).then_some((*from, *to))
}

fn add(ranges: &mut Ranges, (mut low, mut high): Range) {
    // Merges all ranges that touch it.
    while let Some((from, to)) = ranges.range(..=high).next_back().filter(|(_, to)| **to >= low).map(|(a, b)| (*a, *b))
    {
        ranges.remove(&from);
        (low, high) = (low.min(from), high.max(to));
    }
    ranges.insert(low, high);
}

/// Accesses of this process to one target.
type Accessed = Vec<(Act, Ranges)>;

/// Accesses of this process to each target that are not complete.
pub(crate) struct AccessLog {
    targets: Vec<Accessed>,
    /// The same since the last fence.
    fenced: Vec<Accessed>,
}

impl AccessLog {
    pub fn new(targets: usize) -> AccessLog {
        AccessLog { targets: vec![Accessed::new(); targets], fenced: vec![Accessed::new(); targets] }
    }

    /// Records an access to byte ranges of a target, in the epoch of a fence or not.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_CONFLICT`; the access is then not recorded.
    pub fn note(&mut self, rank: u32, act: Act, ranges: &[Range], in_fence: bool) -> Result<()> {
        let accessed = &mut self.targets[rank as usize];
        for (before, there) in accessed.iter().filter(|(before, _)| act.conflicts_with(*before, true)) {
            if let Some((range, other)) = ranges.iter().find_map(|range| Some((*range, overlapping(there, *range)?))) {
                let (low, high) = (range.0.max(other.0), range.1.min(other.1));
                fail!(
                    MPI_ERR_RMA_CONFLICT,
                    "bytes {low} to {high} of the window at rank {rank} would be {}, but this rank has {} bytes {} to {} \
                     there before, which is not complete: call MPI_Win_flush or MPI_Win_fence in between, or accumulate",
                    act.describe(),
                    before.describe(),
                    other.0,
                    other.1
                )
            }
        }
        note(accessed, act, ranges);
        if in_fence {
            note(&mut self.fenced[rank as usize], act, ranges);
        }
        Ok(())
    }

    /// Marks all accesses to this target as complete.
    pub fn complete(&mut self, rank: u32) {
        self.targets[rank as usize].clear();
    }

    /// Marks all accesses to this target as locally complete: puts may not have reached the target.
    pub fn complete_here(&mut self, rank: u32) {
        self.targets[rank as usize].retain(|(act, _)| *act == Act::Put);
    }

    /// Ends the epoch of a fence. Returns the encoded accesses for each target.
    pub fn fence(&mut self) -> Vec<Vec<u8>> {
        self.targets.iter_mut().for_each(Vec::clear);
        self.fenced.iter_mut().map(|accessed| encode(&std::mem::take(accessed))).collect()
    }
}

fn note(accessed: &mut Accessed, act: Act, ranges: &[Range]) {
    let place = accessed.iter().position(|(before, _)| *before == act).unwrap_or_else(|| {
        accessed.push((act, Ranges::new()));
        accessed.len() - 1
    });
    ranges.iter().for_each(|range| add(&mut accessed[place].1, *range));
}

fn encode(accessed: &Accessed) -> Vec<u8> {
    let words = accessed.iter().flat_map(|(act, ranges)| {
        let head = act.words().into_iter().chain([ranges.len() as u64]);
        head.chain(ranges.iter().flat_map(|(low, high)| [*low, *high]))
    });
    words.flat_map(u64::to_ne_bytes).collect()
}

/// Decodes the result of `encode`, up to the first invalid act.
fn decode(bytes: &[u8]) -> Vec<(Act, Range)> {
    let mut words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")));
    let mut found = Vec::new();
    while let (Some(kind), Some(word), Some(count)) = (words.next(), words.next(), words.next()) {
        let Some(act) = Act::of_words([kind, word]) else { break };
        for _ in 0..count {
            let (Some(low), Some(high)) = (words.next(), words.next()) else { break };
            found.push((act, (low, high)));
        }
    }
    found
}

/// Compares the accesses that the origins, by rank, have reported to target `me`. Returns a sentence about two that
/// conflict.
pub(crate) fn between_origins(me: u32, told: &[Vec<u8>]) -> Option<String> {
    let mut all: Vec<(Range, usize, Act)> = Vec::new();
    for (origin, bytes) in told.iter().enumerate() {
        all.extend(decode(bytes).into_iter().map(|(act, range)| (range, origin, act)));
    }
    all.sort_unstable_by_key(|(range, origin, _)| (*range, *origin));
    let mut open: Vec<(Range, usize, Act)> = Vec::new();
    for (range, origin, act) in all {
        open.retain(|(before, ..)| before.1 > range.0);
        let conflict = open.iter().find(|(_, by, before)| *by != origin && act.conflicts_with(*before, false));
        if let Some((before, by, first)) = conflict {
            return Some(of_two(me, (range.0, range.1.min(before.1)), (*by, *first), (origin, act)));
        }
        open.push((range, origin, act));
    }
    None
}

#[cold]
fn of_two(me: u32, (low, high): Range, first: (usize, Act), second: (usize, Act)) -> String {
    format!(
        "bytes {low} to {high} of the window at rank {me} were {} by rank {} and {} by rank {} between the same two \
         fences: use another fence in between, or accumulate with one operation and type",
        first.1.describe(),
        first.0,
        second.1.describe(),
        second.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SUM: Act = Act::Accumulate { op: 1, element: 7 };
    const MAX: Act = Act::Accumulate { op: 2, element: 7 };
    const SUM_OF_FLOATS: Act = Act::Accumulate { op: 1, element: 8 };
    const SWAP: Act = Act::Swap { element: 7 };
    const ALL: [Act; 6] = [Act::Put, Act::Get, SUM, MAX, SUM_OF_FLOATS, SWAP];

    fn act() -> impl Strategy<Value = Act> {
        prop::sample::select(&ALL[..])
    }

    #[test]
    fn the_table() {
        let allowed = |one: bool| {
            let pairs = ALL.iter().enumerate().flat_map(|(i, a)| ALL[i..].iter().map(move |b| (*a, *b)));
            pairs.filter(|(a, b)| !a.conflicts_with(*b, one)).collect::<Vec<_>>()
        };
        let of_two = [(Act::Get, Act::Get), (SUM, SUM), (SUM, SWAP), (MAX, MAX), (MAX, SWAP)];
        let last = [(SUM_OF_FLOATS, SUM_OF_FLOATS), (SWAP, SWAP)];
        assert_eq!(allowed(false), [&of_two[..], &last].concat());
        let mut of_one = [&of_two[..], &last].concat();
        of_one.insert(2, (SUM, MAX));
        assert_eq!(allowed(true), of_one);
    }

    proptest! {
        /// Compares with a model that lists the acts of every byte.
        #[test]
        fn one_origins_accesses_are_compared_byte_by_byte(
            accesses in prop::collection::vec((act(), 0u64..24, 1u64..6, prop::bool::weighted(0.1)), 1..30),
        ) {
            let mut access_log = AccessLog::new(1);
            let mut bytes: Vec<Vec<Act>> = vec![Vec::new(); 32];
            for (act, low, len, completes) in accesses {
                let at = low as usize..(low + len) as usize;
                let conflicts = bytes[at.clone()].iter().flatten().any(|before| act.conflicts_with(*before, true));
                prop_assert_eq!(access_log.note(0, act, &[(low, low + len)], true).is_err(), conflicts);
                if !conflicts {
                    bytes[at].iter_mut().for_each(|acts| acts.push(act));
                }
                if completes {
                    access_log.complete(0);
                    bytes.iter_mut().for_each(Vec::clear);
                }
            }
        }

        #[test]
        fn accesses_of_several_origins_are_compared_byte_by_byte(
            accesses in prop::collection::vec((0usize..3, act(), 0u64..40, 1u64..4), 1..10),
        ) {
            let mut logs: Vec<AccessLog> = (0..3).map(|_| AccessLog::new(1)).collect();
            let mut bytes: Vec<Vec<(usize, Act)>> = vec![Vec::new(); 48];
            for (origin, act, low, len) in accesses {
                logs[origin].complete(0);
                logs[origin].note(0, act, &[(low, low + len)], true).expect("nothing is open");
                bytes[low as usize..(low + len) as usize].iter_mut().for_each(|acts| acts.push((origin, act)));
            }
            let conflicts = bytes.iter().any(|acts| acts.iter().enumerate().any(|(i, (origin, act))| {
                acts[i..].iter().any(|(other, later)| origin != other && act.conflicts_with(*later, false))
            }));
            let told: Vec<Vec<u8>> = logs.iter_mut().map(|access_log| access_log.fence().remove(0)).collect();
            prop_assert_eq!(between_origins(0, &told).is_some(), conflicts);
            let again: Vec<Vec<u8>> = logs.iter_mut().map(|access_log| access_log.fence().remove(0)).collect();
            prop_assert!(between_origins(0, &again).is_none(), "a fence begins anew");
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, other: Vec<u8>) {
            let _ = between_origins(0, &[bytes, other]);
        }
    }

    #[test]
    fn the_sentences_say_who_and_where() {
        let mut access_log = AccessLog::new(3);
        access_log.note(2, Act::Put, &[(0, 8), (16, 24)], true).expect("the first one");
        let error = access_log.note(2, Act::Get, &[(20, 40)], true).expect_err("they overlap");
        assert!(
            error.detail.starts_with(
                "bytes 20 to 24 of the window at rank 2 would be got, but this rank has put bytes 16 to 24 there before"
            ),
            "{}",
            error.detail
        );
        access_log.note(1, Act::Get, &[(20, 40)], true).expect("another target");
        access_log.complete_here(1);
        access_log.note(1, Act::Put, &[(20, 40)], true).expect("what is got is complete");
        access_log.complete_here(1);
        access_log.note(1, Act::Get, &[(20, 40)], true).expect_err("what is put is not");
        let sentence = of_two(7, (4, 8), (0, Act::Put), (2, Act::Accumulate { op: u32::MAX, element: 0 }));
        assert!(
            sentence.starts_with(
                "bytes 4 to 8 of the window at rank 7 were put by rank 0 and accumulated with an operation by rank 2 between"
            ),
            "{sentence}"
        );
    }
}
