//! The messages of every algorithm by messages that `limosa predict` simulates, as text:
//! `tests/lab/data/schedules.txt`, with which the tests of the laboratory compare its simulation.
//! `LIMOSA_WRITE_SCHEDULES=1` writes the file anew.
//!
//! A line for each rank: `s4:64` sends 64 bytes to rank 4, `r4:64` receives them from there, `w` waits for all before.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::by_messages;
use crate::schedule::Step;
use crate::select::Named;
use limosa_mpi::op::Op;

/// Bytes of a block, and of a rank's slice of a message.
const BLOCK: usize = 64;
/// Numbers of ranks; of the last, which is for windows and groups of partners, a few ranks are written.
const RANKS: [usize; 6] = [2, 3, 5, 8, 13, 35];
const FEW: [usize; 3] = [0, 1, 34];

/// Appends the messages of each plan of an operation. `plan` writes the schedule of a rank with a message of all
/// blocks, a second one, and a block.
fn append<F>(text: &mut String, operation: &str, plans: &[Named<F>], plan: impl Fn(&F, &mut Schedule, [&Memory; 3])) {
    for (name, with) in plans {
        for ranks in RANKS {
            writeln!(text, "{operation} {name} {ranks}").expect("a text has room");
            for (rank, comm) in world(ranks).iter().enumerate() {
                if ranks == RANKS[5] && !FEW.contains(&rank) {
                    continue;
                }
                let word = Datatype::named(MPI_UINT64_T);
                let memories = [ranks, ranks, 1].map(|blocks| Memory::new(blocks * BLOCK / 8, &word));
                let mut schedule = Schedule::new(&Call::begin(comm));
                schedule.reduce_with(Op::builtin(MPI_SUM).expect("it is predefined"), word);
                plan(with, &mut schedule, memories.each_ref());
                let words = schedule.steps.iter().filter_map(|step| match step {
                    Step::Send { to, region } => Some(format!(" s{to}:{}", region.len())),
                    Step::Receive { from, region } => Some(format!(" r{from}:{}", region.len())),
                    Step::Wait => Some(" w".to_owned()),
                    Step::Copy { .. } | Step::Reduce { .. } => None,
                });
                writeln!(text, "{rank}:{}", words.collect::<String>()).expect("a text has room");
            }
        }
    }
}

#[test]
fn messages_of_the_algorithms_are_those_that_the_laboratory_simulates() {
    let mut text = format!("# Written by {}: operation, algorithm, ranks.\n", file!());
    append(&mut text, "bcast", by_messages::BCAST, |plan, s, [whole, ..]| plan(s, &whole.buffer(), 0).unwrap());
    append(&mut text, "reduce", by_messages::REDUCE, |plan, s, [whole, other, _]| {
        let result = other.buffer();
        let at_root = Some(&result).filter(|_| s.rank() == 0);
        plan(s, &whole.buffer(), at_root, 0).unwrap();
    });
    append(&mut text, "allreduce", by_messages::ALLREDUCE, |plan, s, [whole, other, _]| {
        plan(s, &whole.buffer(), &other.buffer()).unwrap();
    });
    append(&mut text, "scatter", by_messages::SCATTER, |plan, s, [whole, _, block]| {
        let all = whole.blocks(s.size());
        let at_root = Some(&all).filter(|_| s.rank() == 0);
        plan(s, at_root, Some(&block.buffer()), 0).unwrap();
    });
    append(&mut text, "gather", by_messages::GATHER, |plan, s, [whole, _, block]| {
        let all = whole.blocks(s.size());
        let at_root = Some(&all).filter(|_| s.rank() == 0);
        plan(s, Some(&block.buffer()), at_root, 0).unwrap();
    });
    append(&mut text, "allgather", by_messages::ALLGATHER, |plan, s, [whole, _, block]| {
        let all = whole.blocks(s.size());
        plan(s, Some(&block.buffer()), &all).unwrap();
    });
    append(&mut text, "alltoall", by_messages::ALLTOALL, |plan, s, [whole, other, _]| {
        let (send, receive) = (whole.blocks(s.size()), other.blocks(s.size()));
        plan(s, Some(&send), &receive).unwrap();
    });
    append(
        &mut text,
        "barrier",
        &[("dissemination", by_messages::barrier::dissemination::plan as fn(&mut _))],
        |plan, s, _| plan(s),
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab/data/schedules.txt");
    if std::env::var_os("LIMOSA_WRITE_SCHEDULES").is_some() {
        std::fs::write(&file, &text).expect("the file can be written");
    }
    let known = std::fs::read_to_string(&file).expect("the file is there");
    assert!(known == text, "the messages differ from {}: see the head of {}", file.display(), file!());
}
