//! Ranks that call different operations, or the same operation with different roots or reduction operations.
//!
//! A [`Signature`] describes a rank's call. A rank that finds a different signature of another rank ends all
//! collectives of the communicator ([`raise`]). Operations under way on any rank, and later calls there, fail with a
//! sentence that names both calls. So no rank waits for a rank that calls something else, and no rank continues with
//! wrong data.
//!
//! Contract
//! - A rank whose call has failed before it began has published nothing of it, and differs from no rank.
//! - Words written by two ranks are compared as far as they describe operations of the same number.
//! - Ranks that name different operations of the standard in one reduction do not conflict, since other libraries let
//!   that pass ([`Signature::conflicts_with`]). The operation of the *leader*, the root or else rank 0, is carried out,
//!   and a warning is printed ([`warn`]). In a scan of short operands, and by messages, where only a tag describes the
//!   calls of other ranks, each rank combines with its own operation. Strict checks make it an error.

use std::collections::BTreeSet;
use std::io::Write;

use limosa_p2p::Engine;
use parking_lot::Mutex;

use super::kind::Signature;
use limosa_mpi::check;
use limosa_mpi::comm::{Comm, Purpose};
use limosa_mpi::consts::MPI_ERR_TRUNCATE;
use limosa_mpi::error::{Error, error_of};
use limosa_mpi::group::Group;
use limosa_mpi::world::has_finalized;

/// The different calls of two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) first: Signature,
    pub(crate) second: Signature,
}

/// Returns how the words of two ranks differ, each with the number of its operation, if they do.
pub(crate) fn between(first: (u64, u64), second: (u64, u64)) -> Option<Difference> {
    let said = |(number, word): (u64, u64), of: u64| {
        if of == number {
            Signature::of_word(word as u32)
        } else if of.wrapping_add(1) == number {
            Signature::of_word((word >> 32) as u32)
        } else {
            None
        }
    };
    // The earlier call first: the later ones may differ only because of it.
    [second.0.wrapping_sub(1), second.0, second.0.wrapping_add(1)]
        .into_iter()
        .filter_map(|of| Some(Difference { first: said(first, of)?, second: said(second, of)? }))
        .find(|difference| difference.first.conflicts_with(difference.second))
}

/// Returns how the words of two ranks that do not conflict differ in the operation of this number.
pub(crate) fn tolerated(first: u64, second: u64) -> Option<Difference> {
    let (first, second) = (Signature::of_word(first as u32)?, Signature::of_word(second as u32)?);
    first.has_other_op(second).then_some(Difference { first, second })
}

/// Printed warnings: the line of the call, and the two calls.
static WARNINGS: Mutex<BTreeSet<(String, u32, u32)>> = Mutex::new(BTreeSet::new());

/// Warns, once for each line of the program, that two ranks of a reduction have named different operations: `rank`,
/// which is this one, with the line `site`, and `other`. The operation of `leader` is carried out.
#[cold]
pub(crate) fn warn([rank, other, leader]: [usize; 3], difference: Difference, site: String) {
    let Difference { first, second } = difference;
    if !WARNINGS.lock().insert((site.clone(), first.word(), second.word())) {
        return;
    }
    let line = check::site_in_words(&site);
    let text = format!(
        "limosa: warning: rank {rank} called {}{line}, but rank {other} called {}: the operation of rank {leader} is \
         carried out; all ranks must name the same one (`limosa run --check` makes this an error with both lines)\n",
        first.describe(second),
        second.describe(first),
    );
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Makes the error that two ranks differ; `None` for a rank whose number is not known.
#[cold]
pub(crate) fn error(ranks: [Option<usize>; 2], difference: Difference) -> Error {
    let Difference { first, second } = difference;
    error_in_words(ranks, difference, &[first.describe(second), second.describe(first)])
}

/// As [`error`], with the calls of both ranks in words.
#[cold]
pub(crate) fn error_in_words(ranks: [Option<usize>; 2], difference: Difference, calls: &[String; 2]) -> Error {
    let detail = format!(
        "{}: all ranks must call the same collectives in the same order, with the same root and operation; collectives \
         on this communicator fail from now on",
        sentence(ranks, calls)
    );
    Error::new(difference.first.class_of_difference(difference.second), detail)
}

/// End of a sentence about lengths that differ.
const MATCHING: &str =
    "all ranks must pass matching counts and datatypes; collectives on this communicator fail from now on";

/// Makes the error that ranks have made these calls with different lengths, and that a rank waits because of it.
#[cold]
pub(crate) fn error_of_lengths(ranks: [Option<usize>; 2], calls: &[String; 2]) -> Error {
    let detail = format!("{}, and a rank waits because of it: {MATCHING}", sentence(ranks, calls));
    Error::new(MPI_ERR_TRUNCATE, detail)
}

/// A message of another length than its receiver expects.
#[derive(Clone, Copy)]
pub(crate) struct OtherLength {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) sent: usize,
    pub(crate) expected: usize,
}

/// Makes the error that a message had another length, and that this rank, `me`, waits for messages that do not come.
#[cold]
pub(crate) fn error_of_wait(me: usize, message: OtherLength) -> Error {
    let OtherLength { from, to, sent, expected } = message;
    let detail = format!(
        "rank {from} sent {sent} bytes where rank {to} expects {expected}, and rank {me} waits because of it: \
         {MATCHING}"
    );
    Error::new(MPI_ERR_TRUNCATE, detail)
}

/// Describes the calls of two ranks.
pub(crate) fn sentence(ranks: [Option<usize>; 2], calls: &[String; 2]) -> String {
    let named = |rank: Option<usize>| rank.map_or_else(|| "another rank".to_owned(), |rank| format!("rank {rank}"));
    format!("{} called {}, but {} called {}", named(ranks[0]), calls[0], named(ranks[1]), calls[1])
}

/// Describes the different calls of two ranks, for the end of the program.
pub(crate) fn in_words(ranks: [usize; 2], difference: Difference) -> String {
    let Difference { first, second } = difference;
    sentence(ranks.map(Some), &[first.describe(second), second.describe(first)])
}

/// Ends all collectives on a context of a group, because two of its ranks differ. Returns the error of this rank, which
/// may be about a difference that was found earlier.
#[cold]
pub(crate) fn raise(engine: &Engine, context: u64, group: &Group, error: Error) -> Error {
    let peers = || (0..group.size()).filter_map(|rank| group.world_rank(rank));
    if check::is_on() {
        // Ranks may wait for the records of a call that comes no more.
        engine.end_group(Comm::twin_context(context, Purpose::Checks), peers(), error.class, &error.detail);
    }
    engine.end_group(context, peers(), error.class, &error.detail);
    give_up_sends(engine, group);
    engine.lost_group(context).map_or(error, error_of)
}

/// Ends sends to ranks that have left by `MPI_Finalize`, in a group whose collectives have ended. Those that had left
/// before do not hear of that.
#[cold]
pub(crate) fn give_up_sends(engine: &Engine, group: &Group) {
    let peers = (0..group.size()).filter_map(|rank| group.world_rank(rank));
    engine.peers_left(peers.filter(|peer| has_finalized(*peer)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Collective;
    use proptest::prelude::*;

    /// Returns the word of a call, with the signature of the call before it; 0 is an unknown call.
    fn word(calls: &[u32], number: usize) -> (u64, u64) {
        (number as u64, u64::from(calls[number]) | u64::from(calls[number - 1]) << 32)
    }

    proptest! {
        #[test]
        fn ranks_that_call_the_same_never_differ_and_others_do_where_they_meet(
            calls in prop::collection::vec(1u32..4, 8),
            mut others in prop::collection::vec(1u32..4, 8),
            failed in prop::collection::vec(prop::bool::weighted(0.1), 8),
            [at, other_at] in [1usize..8, 1usize..8],
        ) {
            let known = |calls: &[u32]| -> Vec<u32> {
                calls.iter().zip(&failed).map(|(call, failed)| if *failed { 0 } else { *call }).collect()
            };
            prop_assert_eq!(between(word(&calls, at), word(&calls, other_at)), None);
            prop_assert_eq!(between(word(&known(&calls), at), word(&calls, other_at)), None, "a call that failed");
            let spoken_of = |of: usize| (at == of || at == of + 1) && (other_at == of || other_at == of + 1);
            let differs = (0..8).any(|of| spoken_of(of) && calls[of] != others[of]);
            prop_assert_eq!(between(word(&calls, at), word(&others, other_at)).is_some(), differs);
            others.clone_from(&calls);
            others[at] += 1;
            prop_assert!(between(word(&calls, at), word(&others, at)).is_some());
        }

        #[test]
        fn any_words_are_compared_and_described(first: (u64, u64), second: (u64, u64), same: bool) {
            let second = if same { (first.0, second.1) } else { second };
            if let Some(difference) = between(first, second) {
                prop_assert!(!error([Some(0), None], difference).detail.is_empty());
            }
        }
    }

    #[test]
    fn the_sentence_names_what_each_has_called() {
        let said = |first, second| error([Some(2), Some(0)], Difference { first, second });
        let roots = said(Signature::rooted(Collective::Bcast, 1), Signature::rooted(Collective::Bcast, 300));
        assert_eq!(roots.class, limosa_mpi::consts::MPI_ERR_ROOT);
        assert!(
            roots.detail.starts_with("rank 2 called MPI_Bcast with root 1, but rank 0 called MPI_Bcast with root 300:"),
            "{}",
            roots.detail
        );
        let op = |handle| limosa_mpi::op::Op::builtin(handle).expect("it is predefined");
        let (sum, max) = (op(limosa_mpi::consts::MPI_SUM), op(limosa_mpi::consts::MPI_MAX));
        let ops = said(Signature::rooted_reduction(&sum, 1), Signature::rooted_reduction(&max, 1));
        assert_eq!(ops.class, limosa_mpi::consts::MPI_ERR_OP);
        assert!(
            ops.detail.starts_with("rank 2 called MPI_Reduce with MPI_SUM, but rank 0 called MPI_Reduce with MPI_MAX:"),
            "{}",
            ops.detail
        );
        let kinds = said(Collective::Barrier.into(), Signature::making(Collective::Allgather));
        assert_eq!(kinds.class, limosa_mpi::consts::MPI_ERR_OTHER);
        assert!(
            kinds
                .detail
                .starts_with("rank 2 called MPI_Barrier, but rank 0 called a function that makes a communicator:"),
            "{}",
            kinds.detail
        );
    }
}
