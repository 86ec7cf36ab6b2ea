//! Tests of the selection of algorithms: the built-in table, files that change it, and forced algorithms.

use limosa_job::config::{Form, VARIABLES};
use proptest::prelude::*;

use super::SharedPath::{Direct, Messages, Rounds, Slots};
use super::*;
use crate::{by_messages, select};

fn with(text: &str) -> Choices {
    let mut table = Table::builtin();
    table.replace(Table::parse(text).expect("a good table"));
    Choices { table, forced: [Forced::No; SUBJECTS.len()] }
}

fn forcing(variable: &str, word: &str) -> Choices {
    Choices { table: Table::builtin(), forced: forced_by(|name| (name == variable).then_some(word)) }
}

fn subject(name: &str) -> Subject {
    Subject(SUBJECTS.iter().position(|known| *known == name).expect("a subject"))
}

fn found(ranks: usize, direct: bool) -> MemoryTraits {
    MemoryTraits { ranks, direct, slot: 8 << 10, ring: 1 << 20, speaks: false }
}

fn tuned(rows: &str) -> Choices {
    let mut table = Table::builtin();
    table.tune(rows).expect("good rows");
    Choices { table, forced: [Forced::No; SUBJECTS.len()] }
}

/// Returns the end and the path of each range, as [`Resolved`] has them.
fn ranges(resolved: &Resolved) -> Vec<(usize, SharedPath)> {
    resolved.ranges.to_vec()
}

const ALL: usize = usize::MAX;

#[test]
fn the_built_in_table_serves_everything() {
    assert_eq!(Table::builtin().check(), Ok(()));
}

#[test]
fn every_algorithm_by_messages_has_a_plan_of_its_name() {
    fn check<F>(name: &str, plans: &[select::Named<F>]) {
        let known = algorithms::of(subject(name))
            .filter(|algorithm| algorithm.way == TableWay::Messages && !algorithm.composed)
            .map(|algorithm| algorithm.name);
        let (mut known, mut planned): (Vec<_>, Vec<_>) =
            (known.collect(), plans.iter().map(|(name, _)| *name).collect());
        known.sort_unstable();
        planned.sort_unstable();
        assert_eq!(known, planned, "{name}");
    }
    check("barrier", by_messages::BARRIER);
    check("bcast", by_messages::BCAST);
    check("gather", by_messages::GATHER);
    check("scatter", by_messages::SCATTER);
    check("allgather", by_messages::ALLGATHER);
    check("alltoall", by_messages::ALLTOALL);
    check("reduce", by_messages::REDUCE);
    check("allreduce", by_messages::ALLREDUCE);
    check("reduce_scatter", by_messages::REDUCE_SCATTER);
}

#[test]
fn variables_take_the_names_of_all_algorithms_that_can_be_forced() {
    for variable in VARIABLES {
        let Some(operation) = variable.name.strip_prefix("LIMOSA_COLL_").filter(|rest| *rest != "TABLE") else {
            continue;
        };
        let Form::Choice(words) = variable.form else { panic!("{} takes words", variable.name) };
        let mut words = words.to_vec();
        let mut names: Vec<_> = algorithms::of(subject(&operation.to_lowercase()))
            .filter(|algorithm| algorithm.way != TableWay::Background)
            .map(|algorithm| algorithm.name)
            .chain(["auto", "messages"])
            .collect();
        words.sort_unstable();
        names.sort_unstable();
        assert_eq!(words, names, "{}", variable.name);
    }
}

#[test]
fn small_messages_are_put_into_shared_memory_and_large_ones_take_the_way_that_suits() {
    let choices = with("");
    let resolved = |name, ranks, direct| choices.resolve(subject(name), found(ranks, direct));
    assert_eq!(ranges(&resolved("bcast", 2, true)), [(64 << 10, Slots), (ALL, Direct)]);
    assert_eq!(ranges(&resolved("bcast", 4, true)), [(128 << 10, Slots), (ALL, Rounds)]);
    assert_eq!(resolved("allreduce", 4, true).put, 8 << 10);
    assert_eq!(resolved("reduce", 4, true).put, 256 << 10);
    // More ranks do not use the rows for exactly two ranks.
    for (name, put) in [("reduce", 512), ("gather", 64), ("scatter", 64), ("alltoall", 256), ("scan", 512)] {
        assert_eq!(resolved(name, 2, true).put, put << 10, "{name}");
    }
    assert_eq!(ranges(&resolved("alltoall", 4, true)), [(512 << 10, Slots), (ALL, Direct)]);
    assert_eq!(ranges(&resolved("alltoall", 4, false)), [(8 << 10, Slots), (ALL - 1, Rounds)]);
    assert_eq!(ranges(&resolved("bcast", 2, false)), [(8 << 10, Slots), (ALL - 1, Rounds)]);
    assert_eq!(ranges(&resolved("gather", 4, false)), [(8 << 10, Slots), (ALL - 1, Messages)]);
}

#[test]
fn a_file_changes_the_choice_and_leaves_the_rest() {
    let choices = with(
        "bcast messages * 1K - binomial # short\nbcast messages * * - scatter_exchange\nreduce shared * 4K - \
         slots\nreduce shared * 1M - rounds",
    );
    let name = |bytes| choices.by_messages(subject("bcast"), 8, bytes, true, Over::Part).name;
    assert_eq!((name(1024), name(1025)), ("binomial", "scatter_exchange"));
    assert_eq!(with("").by_messages(subject("bcast"), 8, 1025, true, Over::Part).name, "binomial");
    assert_eq!(
        ranges(&choices.resolve(subject("reduce"), found(8, true))),
        [(4 << 10, Slots), (1 << 20, Rounds), (ALL, Messages)]
    );
    assert_eq!(choices.resolve(subject("scan"), found(8, true)), with("").resolve(subject("scan"), found(8, true)));
    let forced = [("bcast", "binomial".to_owned())];
    let numbers = [(Some(&choices.table), &[][..]), (None, &[]), (Some(&choices.table), &forced), (None, &forced)]
        .map(|(changed, forced)| hash(changed, forced));
    assert!((1..4).all(|i| !numbers[..i].contains(&numbers[i])), "{numbers:?}");
    assert_eq!(hash(Some(&choices.table), &forced), numbers[2]);
}

#[test]
fn rows_are_taken_in_order() {
    let choices = with(
        "reduce messages 2 * - sliced\nreduce messages 3-4 10 commuting binomial_rotated\nreduce messages * 20 - \
         binomial\nreduce messages * * - sliced",
    );
    let name = |ranks, bytes, commutes| choices.by_messages(subject("reduce"), ranks, bytes, commutes, Over::Part).name;
    assert_eq!(name(2, 5, true), "sliced");
    assert_eq!(name(3, 10, true), "binomial_rotated");
    assert_eq!(name(3, 10, false), "binomial");
    assert_eq!(name(5, 10, true), "binomial");
    assert_eq!(name(4, 21, true), "sliced");
}

#[test]
fn two_ranks_or_hosts_exchange_whole_operands_as_long_as_these_are_one_packet() {
    let choices = with("");
    let name = |ranks, bytes| choices.by_messages(subject("allreduce"), ranks, bytes, true, Over::Part).name;
    assert_eq!((name(2, 64 << 10), name(2, (64 << 10) + 1)), ("recursive_doubling", "sliced"));
    assert_eq!((name(3, 16 << 10), name(3, 64 << 10)), ("recursive_doubling", "sliced"));
}

#[test]
fn a_forced_algorithm_serves_where_it_can() {
    let rounds = forcing("bcast", "rounds");
    assert_eq!(ranges(&rounds.resolve(subject("bcast"), found(2, true))), [(8 << 10, Slots), (ALL, Rounds)]);
    assert_eq!(rounds.resolve(subject("reduce"), found(2, true)), with("").resolve(subject("reduce"), found(2, true)));
    let tree = forcing("bcast", "binomial");
    assert_eq!(tree.by_messages(subject("bcast"), 8, 1 << 30, true, Over::Part).name, "binomial");
    assert!(!tree.resolve(subject("bcast"), found(2, true)).is_ever_shared());
    assert_eq!(tree.in_background(subject("bcast"), 2), None);
    let slots =
        |operation: &str, ranks| forcing(operation, "slots").resolve(subject(operation), found(ranks, true)).put;
    assert_eq!((slots("reduce", 3), slots("allreduce", 2), slots("allreduce", 3)), (1 << 20, 1 << 20, 8 << 10));
    let pieces = forcing("scan", "pieces");
    assert_eq!(ranges(&pieces.resolve(subject("exscan"), found(4, true))), [(8 << 10, Slots), (ALL, Direct)]);
    assert_eq!(
        pieces.resolve(subject("scan"), found(4, false)),
        with("").resolve(subject("scan"), found(4, false)),
        "it needs direct access"
    );
    let rotated = forcing("reduce", "binomial_rotated");
    assert_eq!(rotated.by_messages(subject("reduce"), 8, 1 << 20, true, Over::Part).name, "binomial_rotated");
    assert_eq!(
        rotated.by_messages(subject("reduce"), 8, 1 << 20, false, Over::Part).name,
        "sliced",
        "the operation does not commute"
    );
}

#[test]
fn rows_for_hosts_are_for_communicators_on_several_and_not_for_the_parts() {
    let choices = with("reduce messages * 1K hosts leaders\nreduce messages * * - binomial");
    let name = |bytes, over| choices.by_messages(subject("reduce"), 8, bytes, true, over).name;
    assert_eq!(name(1024, Over::Hosts), "leaders");
    assert_eq!(name(1025, Over::Hosts), "binomial");
    assert_eq!(name(1024, Over::Flat("all are on one host")), "binomial");
    assert_eq!(name(1024, Over::Part), "binomial");
    let forced = forcing("reduce", "leaders");
    let name = |over| forced.by_messages(subject("reduce"), 8, 1 << 30, false, over).name;
    assert_eq!((name(Over::Hosts), name(Over::Part)), ("leaders", "sliced"));
    let unforced = with("");
    assert_eq!(forced.resolve(subject("reduce"), found(4, true)), unforced.resolve(subject("reduce"), found(4, true)));
    assert_eq!(forced.in_background(subject("reduce"), 4), unforced.in_background(subject("reduce"), 4));
}

#[test]
fn two_ranks_send_what_is_large_in_the_background_by_message() {
    let choices = with("");
    assert_eq!(choices.in_background(subject("bcast"), 2), Some((64 << 10, (128 << 10) - 1)));
    assert_eq!(choices.in_background(subject("bcast"), 3), Some((64 << 10, usize::MAX)));
    assert_eq!(choices.in_background(subject("allreduce"), 3), Some((64 << 10, usize::MAX)));
    assert_eq!(choices.in_background(subject("reduce_scatter"), 3), Some((64 << 10, usize::MAX)));
}

#[test]
fn a_bad_file_is_told_by_line() {
    let told = |text: &str| Table::parse(text).expect_err("it is invalid");
    assert_eq!(
        told("\n# fine\nbcast messages * *"),
        "line 3: `bcast messages * *` has 4 words, but a row has six: operation, way, ranks, bytes, condition, \
         algorithm"
    );
    assert!(
        told("bcasst messages * * - binomial")
            .starts_with("line 1: `bcasst` is not a valid operation; use one of barrier, bcast,")
    );
    assert!(
        told("bcast mesages * * - binomial")
            .starts_with("line 1: `mesages` is not a valid way; use one of shared, background, messages")
    );
    assert!(told("bcast messages 4-2 * - binomial").starts_with("line 1: `4-2` is not a range of ranks"));
    assert!(told("bcast messages * 64k - binomial").starts_with("line 1: `64k` is not a number of bytes"));
    assert!(told("bcast messages * slot - binomial").starts_with("line 1: `slot` is not a number of bytes"));
    assert!(told("bcast shared * 1K.. - rounds").starts_with("line 1: `` is not a number of bytes"));
    assert!(told("bcast shared * slot..1M - rounds").starts_with("line 1: `slot` is not a number of bytes"));
    assert_eq!(
        told("bcast shared * 64K..16K - rounds"),
        "line 1: `64K..16K` is not a range of bytes: it ends before it begins"
    );
    assert_eq!(
        told("bcast background * 16K..64K - mailbox"),
        "line 1: `16K..64K` has a lower bound, which rows of background cannot have; write `64K`"
    );
    assert!(told("bcast messages * * direct binomial").starts_with("line 1: `direct` is not a condition of messages"));
    assert_eq!(
        told("bcast messages * * - bruck"),
        "line 1: `bruck` is not an algorithm of bcast messages; use one of linear, binomial, scatter_exchange, leaders"
    );
    assert_eq!(told("bcast messages * * - leaders"), "line 1: leaders needs the condition `hosts`");
    assert!(
        told("bcast shared * * hosts rounds")
            .starts_with("line 1: `hosts` is not a condition of shared; write -, or direct")
    );
    assert_eq!(told("bcast shared * * - single_copy"), "line 1: single_copy needs the condition `direct`");
    let mut table = Table::builtin();
    table.replace(Table::parse("gather messages 1-8 * - linear").expect("rows"));
    assert!(
        table
            .check()
            .expect_err("nothing for nine ranks")
            .starts_with("the last row of `gather messages` must fit everything")
    );
}

#[test]
fn costs_grow_with_ranks_and_bytes() {
    for name in SUBJECTS {
        for algorithm in algorithms::of(subject(name)) {
            let sum = |p: f64, n: f64| {
                let cost = (algorithm.cost)(p, n);
                cost.latencies * 1e-6 + (cost.transferred + cost.combined + cost.copied) * 1e-10
            };
            assert!(sum(2.0, 1024.0) > 0.0, "{name} {}", algorithm.name);
            assert!(sum(16.0, 65536.0) >= sum(4.0, 1024.0), "{name} {}", algorithm.name);
        }
    }
    let binomial = algorithms::of(subject("bcast")).find(|algorithm| algorithm.name == "binomial").expect("it exists");
    assert_eq!(
        (binomial.cost)(8.0, 100.0),
        algorithms::Cost { latencies: 3.0, transferred: 300.0, combined: 0.0, copied: 0.0 }
    );
}

#[test]
fn a_row_that_never_takes_effect_is_refused() {
    let told = |text: &str| {
        let mut table = Table::builtin();
        table.replace(Table::parse(text).expect("rows"));
        table.check()
    };
    for (rows, ignored) in [
        ("bcast shared * * - rounds\nbcast shared * slot - slots", "slots"),
        ("bcast shared * 64K direct single_copy\nbcast shared 2 4K..64K direct rounds", "rounds"),
        ("reduce shared 2-8 * - messages\nreduce shared 4 1M direct pieces", "pieces"),
        ("reduce shared * ring/4 - rounds\nreduce shared * ring/8 direct pieces", "pieces"),
    ] {
        let wrong = told(rows).expect_err(rows);
        assert!(wrong.contains(&format!("with {ignored} has no effect")), "{wrong}");
    }
    for rows in [
        "bcast shared * slot - slots\nbcast shared * 1M - rounds\nbcast shared * * direct single_copy",
        "bcast shared * 64K direct single_copy\nbcast shared 2 * direct rounds",
        "reduce shared 4 16K..* - rounds\nreduce shared 4 16K direct pieces",
        // The second row is for ranks that cannot read each other's memory, or for other numbers of ranks.
        "bcast shared * * direct single_copy\nbcast shared * * - rounds",
        "bcast shared 2 * - rounds\nbcast shared 3- slot - slots",
    ] {
        assert_eq!(told(rows), Ok(()), "{rows}");
    }
}

#[test]
fn tuned_rows_count_for_their_numbers_of_ranks_and_bytes_only() {
    let choices = tuned("bcast shared 4 1K..32K direct single_copy;bcast shared 4 256K..512K - messages");
    let bcast = |choices: &Choices, ranks| choices.resolve(subject("bcast"), found(ranks, true));
    assert_eq!(
        ranges(&bcast(&choices, 4)),
        [
            ((1 << 10) - 1, Slots),
            (32 << 10, Direct),
            (128 << 10, Slots),
            ((256 << 10) - 1, Rounds),
            (512 << 10, Messages),
            (ALL, Rounds)
        ]
    );
    let (now, algorithm) =
        (bcast(&choices, 4), |bytes| bcast(&choices, 4).algorithm(Collective::Bcast, bytes).unwrap().name);
    assert_eq!([100, 2000, 100_000, 200_000].map(algorithm), ["slots", "single_copy", "slots", "rounds"]);
    assert_eq!([1000, 2000, 40_000, 200_000].map(|bytes| now.puts(bytes)), [true, false, true, false]);
    assert_eq!([1000, 200_000, 300_000, 600_000].map(|bytes| now.is_shared(bytes)), [true, true, false, true]);
    let builtin = with("");
    for ranks in [2, 3, 5] {
        assert_eq!(bcast(&choices, ranks), bcast(&builtin, ranks));
    }
    assert_eq!(choices.resolve(subject("gather"), found(4, true)), builtin.resolve(subject("gather"), found(4, true)));
    // Without direct access the built-in rows hold there, too.
    let paths = ranges(&choices.resolve(subject("bcast"), found(4, false)));
    assert_eq!(paths[..2], [(8 << 10, Slots), ((256 << 10) - 1, Rounds)]);
}

#[test]
fn a_row_may_begin_at_a_size() {
    let choices = with("bcast messages 2-8 1K..64K - linear\nbcast messages * * - binomial");
    let name = |ranks, bytes| choices.by_messages(subject("bcast"), ranks, bytes, true, Over::Part).name;
    assert_eq!([1023, 1024, 65536, 65537].map(|bytes| name(4, bytes)), ["binomial", "linear", "linear", "binomial"]);
    assert_eq!(name(9, 2000), "binomial");
    let choices = with("bcast shared * 4K..ring/4 direct slots\nbcast shared * * - rounds");
    assert_eq!(
        ranges(&choices.resolve(subject("bcast"), found(3, true))),
        [(4095, Rounds), (256 << 10, Slots), (ALL, Rounds)]
    );
}

proptest! {
    /// Each size uses the first row that fits it, and beside tuned rows the built-in table.
    #[test]
    fn the_first_row_that_fits_decides(
        rows in prop::collection::vec((0..40_usize, prop::option::of(1..40_usize), 0..3_usize), 0..6),
        sizes in prop::collection::vec(0..5000_usize, 40),
    ) {
        let words = ["direct single_copy", "- rounds", "- messages"];
        let text: Vec<_> = rows.iter().map(|(from, more, word)| {
            let end = more.map_or("*".to_owned(), |more| (100 * (from + more)).to_string());
            format!("bcast shared 4 {}..{end} {}", 100 * from, words[*word])
        }).collect();
        let mut table = Table::builtin();
        // Rows without any effect are refused.
        prop_assume!(table.tune(&text.join(";")).is_ok());
        let choices = Choices { table, forced: [Forced::No; SUBJECTS.len()] };
        let builtin = with("").resolve(subject("bcast"), found(4, true));
        let now = choices.resolve(subject("bcast"), found(4, true));
        for size in sizes.into_iter().filter(|size| *size > 0) {
            let fits = |&&(from, more, _): &&(usize, Option<usize>, usize)| {
                100 * from <= size && more.is_none_or(|more| size <= 100 * (from + more))
            };
            let path = rows.iter().find(fits).map_or(builtin.path(size), |row| [Direct, Rounds, Messages][row.2]);
            prop_assert_eq!(now.path(size), path);
            prop_assert_eq!(now.puts(size), path == Slots);
            prop_assert_eq!(now.takes_rounds(size), path == Rounds);
            prop_assert_eq!(now.is_shared(size), path != Messages);
        }
    }

    /// The reader accepts any text or rejects it with a message.
    #[test]
    fn any_text_is_read_or_refused(text in "([a-z_]{1,9}|bcast|shared|messages|background| |\\*|[0-9]{1,21}|[KMG]|\\.\\.|-|slot|ring/|direct|rounds|\n|;|#){0,14}") {
        if let Err(told) = Table::parse(&text) {
            prop_assert!(told.starts_with("line "), "{}", told);
        }
        let _ = Table::builtin().tune(&text);
    }
}

#[test]
fn invalid_tuned_rows_are_refused() {
    for (text, wrong) in [
        ("bcast shared 4 slot slots", "has 5 words"),
        ("bcast messages 4 * - binomial", "tuned rows are for `shared`"),
        ("bcast shared 2-4 * - rounds", "one number of ranks each"),
        ("bcast shared 4 * - rounds;bcast shared 4 slot - slots", "has no effect"),
    ] {
        let mut table = Table::builtin();
        let told = table.tune(text).expect_err(text);
        assert!(told.contains(wrong), "{told}");
        assert!(table.shared_rows(subject("bcast"), 4).all(|row| row.takes(5)));
    }
}
