//! Some ranks in one process. The test drives their threads step by step, without helpers.

use std::os::fd::AsFd;
use std::sync::Arc;

use limosa_base::segment::{self, PAGE};
use limosa_base::slots::{BODY_BYTES, NOTES};
use limosa_p2p::{Engine, Failure, Links, Options, Seats, ShmDevice, Wait};

use proptest::prelude::*;

use super::{BackgroundOp, Exchange, Limits, MailboxUse, Mailboxes, NeighbourExchange, Recorder};
use crate::buffer::{Blocks, Buffer};
use crate::kind::{Collective, Signature, Signed};
use crate::notes::{Location, Notes, PostedBytes};
use crate::one_step;
use crate::pieces::{Delivery, Pieces};
use crate::schedule::Member;
use crate::shared::Sent;
use limosa_mpi::consts::{MPI_DOUBLE, MPI_ERR_PROC_ABORTED, MPI_INT32_T, MPI_SUM};
use limosa_mpi::datatype::Datatype;
use limosa_mpi::error::Result;
use limosa_mpi::op::Op;
use limosa_mpi::operation;
use limosa_mpi::topo::Neighbours;

const RANKS: u32 = 2;

/// The mailboxes of two ranks for one persistent operation.
fn mailbox_sets() -> Vec<Arc<Mailboxes>> {
    mailbox_sets_of(RANKS)
}

/// Each rank's mailboxes for one persistent operation.
fn mailbox_sets_of(ranks: u32) -> Vec<Arc<Mailboxes>> {
    let options = Options {
        wait: Wait::Auto,
        spin_ns: 0,
        eager_limit: 16384,
        unexpected_limit: 1 << 28,
        independent_progress: false,
    };
    let file = segment::create(c"limosa-test", PAGE as u64).expect("a memfd");
    let join = |rank| {
        let device = ShmDevice::join(file.as_fd(), PAGE as u64, &Seats::all(rank, ranks), true).expect("joining");
        let engine = Engine::start(Links::from(device), options).expect("starting");
        Mailboxes::join(&engine, 77, (0..ranks).collect(), rank as usize, 64, 0).expect("there is memory")
    };
    (0..ranks).map(join).collect()
}

fn barrier(mailboxes: &Arc<Mailboxes>) -> Arc<BackgroundOp> {
    let limits = Limits { most: usize::MAX, lends: false };
    let member =
        Member { rank: mailboxes.slots.me(), size: mailboxes.size(), number: 0, signature: Signature::default() };
    let exchange = one_step::barrier(Recorder::new(Collective::Barrier, member, limits)).expect("nothing can fail");
    BackgroundOp::new(MailboxUse { mailboxes: mailboxes.clone(), number: None, limits }, exchange)
}

#[test]
fn a_helper_that_was_held_up_does_not_finish_the_next_start() {
    let mailbox_sets = mailbox_sets();
    let barriers: Vec<Arc<BackgroundOp>> = mailbox_sets.iter().map(barrier).collect();
    barriers.iter().for_each(|barrier| barrier.start());
    // Rank 0's helper sees that the operation can be finished. Before it continues, the program finishes the operation
    // and restarts it.
    let seen = mailbox_sets[0].ready();
    assert_eq!(seen.len(), 1);
    assert!(barriers.iter().all(|barrier| barrier.advance()));
    barriers.iter().for_each(|barrier| barrier.start());
    mailbox_sets[0].finish_ready(seen);
    assert!(barriers.iter().all(|barrier| barrier.advance()));
    for mailboxes in &mailbox_sets {
        assert_eq!(mailboxes.slots.least_finished(), 2, "both ranks say that they have finished both starts");
        assert!(mailboxes.pending.lock().open.is_empty());
    }
}

#[test]
fn a_barrier_ends_when_both_have_started_it() {
    let mailbox_sets = mailbox_sets();
    let barriers: Vec<Arc<BackgroundOp>> = mailbox_sets.iter().map(barrier).collect();
    for _ in 0..100 {
        barriers[0].start();
        assert!(!barriers[0].advance());
        barriers[1].start();
        assert!(barriers.iter().all(|barrier| barrier.advance()));
    }
}

/// Makes a buffer of integers.
fn ints(memory: &mut [i32]) -> Buffer {
    Buffer::new(memory.as_mut_ptr().cast(), memory.len() as i64, Datatype::named(MPI_INT32_T), "buf").unwrap()
}

/// Makes blocks of equal numbers of integers for each rank.
fn blocks(memory: &mut [i32]) -> Blocks {
    let count = (memory.len() / RANKS as usize) as i64;
    Blocks::even(memory.as_mut_ptr().cast(), count, Datatype::named(MPI_INT32_T), RANKS as usize, "buf").unwrap()
}

#[test]
fn one_step_algorithms_move_what_they_say() {
    let mailbox_sets = mailbox_sets();
    let run = |kind, describe: &mut dyn FnMut(usize, Recorder) -> Result<Exchange>| {
        let limits = Limits { most: usize::MAX, lends: false };
        let operation = |mailboxes: &Arc<Mailboxes>, describe: &mut dyn FnMut(usize, Recorder) -> Result<Exchange>| {
            let member = Member {
                rank: mailboxes.slots.me(),
                size: mailboxes.size(),
                number: 0,
                signature: Signature::default(),
            };
            let exchange = describe(member.rank, Recorder::new(kind, member, limits)).unwrap();
            BackgroundOp::new(MailboxUse { mailboxes: mailboxes.clone(), number: None, limits }, exchange)
        };
        let operations: Vec<_> = mailbox_sets.iter().map(|mailboxes| operation(mailboxes, describe)).collect();
        operations.iter().for_each(|operation| operation.start());
        while !operations.iter().all(|operation| operation.advance()) {}
    };
    let mut all = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]];
    run(Collective::Alltoall, &mut |rank, executor| one_step::alltoall(executor, None, &blocks(&mut all[rank])));
    assert_eq!(all, [[1, 2, 3, 7, 8, 9], [4, 5, 6, 10, 11, 12]]);
    let mut parts = [[0; 3]; 2];
    run(Collective::Scatter, &mut |rank, executor| {
        one_step::scatter(executor, Some(&blocks(&mut all[1])), Some(&ints(&mut parts[rank])), 1)
    });
    assert_eq!(parts, [[4, 5, 6], [10, 11, 12]]);
    run(Collective::Gather, &mut |rank, executor| {
        one_step::gather(executor, Some(&ints(&mut parts[rank])), Some(&blocks(&mut all[0])), 0)
    });
    assert_eq!(all[0], [4, 5, 6, 10, 11, 12]);
    run(Collective::Bcast, &mut |rank, executor| one_step::bcast(executor, &ints(&mut parts[rank]), 1));
    assert_eq!(parts, [[10, 11, 12]; 2]);
    parts[0] = [1, 2, 3];
    run(Collective::Allgather, &mut |rank, executor| {
        one_step::allgather(executor, Some(&ints(&mut parts[rank])), &blocks(&mut all[rank]))
    });
    assert_eq!(all, [[1, 2, 3, 10, 11, 12]; 2]);
}

#[test]
fn a_rank_that_waits_asks_others_for_what_it_lends_only_after_a_while() {
    let mailbox_sets = mailbox_sets();
    let limits = Limits { most: 0, lends: true };
    let mut memory = [[1, 2, 3], [0; 3]];
    let bcast = |(mailboxes, memory): (&Arc<Mailboxes>, &mut [i32; 3])| {
        let member =
            Member { rank: mailboxes.slots.me(), size: mailboxes.size(), number: 0, signature: Signature::default() };
        let exchange = one_step::bcast(Recorder::new(Collective::Bcast, member, limits), &ints(memory), 0);
        let mailbox_use = MailboxUse { mailboxes: mailboxes.clone(), number: None, limits };
        BackgroundOp::new(mailbox_use, exchange.expect("there is memory"))
    };
    let bcasts: Vec<_> = mailbox_sets.iter().zip(&mut memory).map(bcast).collect();
    let (root, is_asked) = (&mailbox_sets[0], || mailbox_sets[1].slots.is_room_wanted());
    let end = || {
        bcasts[1].start();
        assert!(bcasts[1].advance() && bcasts[0].advance());
        assert!(!is_asked(), "nothing is lent any more");
    };
    bcasts[0].start();
    root.waits.begin();
    assert!(root.ask_for_lent() && !is_asked(), "the wait has only begun");
    assert!(!root.ask_for_lent() && is_asked(), "it still waits");
    end();
    bcasts[0].start();
    for _ in 0..3 {
        root.waits.end();
        root.waits.begin();
        assert!(root.ask_for_lent() && !is_asked(), "this wait has only begun");
    }
    root.waits.end();
    root.waits.begin();
    assert!(!root.ask_for_lent() && is_asked(), "it has lent for long, whatever it waits for");
    end();
    root.waits.end();
    bcasts[0].start();
    assert!(!root.ask_for_lent() && is_asked(), "no thread waits here that would see others fall behind");
    end();
    bcasts[0].start();
    mailbox_sets[1].begin_wait();
    for _ in 0..6 {
        assert!(root.ask_for_lent() && !is_asked(), "the other rank has a thread at work");
    }
    assert!(!root.ask_for_lent() && is_asked(), "that thread may wait for something else");
    mailbox_sets[1].end_wait();
    end();
    assert_eq!(memory[1], [1, 2, 3]);
}

#[test]
fn ranks_that_wait_for_different_operations_let_each_other_go_on() {
    let mailbox_sets = mailbox_sets();
    let limits = Limits { most: 0, lends: true };
    let mut memory = [[[1, 2, 3], [0; 3]], [[0; 3], [4, 5, 6]]];
    let bcasts: Vec<Vec<_>> = (0..2)
        .map(|rank| {
            let bcast = |root: usize, memory: &mut [i32; 3]| {
                let number = root as u64;
                let member = Member { rank, size: 2, number, signature: Signature::default() };
                let exchange = one_step::bcast(Recorder::new(Collective::Bcast, member, limits), &ints(memory), root);
                let mailbox_use = MailboxUse { mailboxes: mailbox_sets[rank].clone(), number: None, limits };
                BackgroundOp::new(mailbox_use, exchange.expect("there is memory"))
            };
            (0..2).map(|root| bcast(root, &mut memory[root][rank])).collect()
        })
        .collect();
    bcasts.iter().flatten().for_each(|bcast| bcast.start());
    // Each rank waits for the broadcast of which it is the root, and looks at no other.
    assert!((0..2).all(|rank| !bcasts[rank][rank].advance()), "the other rank has not read it");
    mailbox_sets.iter().for_each(|mailboxes| mailboxes.fetch_ready());
    assert!((0..2).all(|rank| bcasts[rank][rank].advance()));
    assert_eq!(memory, [[[1, 2, 3]; 2], [[4, 5, 6]; 2]]);
}

#[test]
fn neighbours_wait_for_each_other_only() {
    // The third rank takes no part.
    let mailbox_sets = mailbox_sets_of(3);
    for (most, count) in [(64, 3), (64, 100), (0, 3)] {
        let limits = Limits { most, lends: true };
        let (mut sent, mut received) = ([vec![1; count], vec![2; count]], [vec![0; count], vec![0; count]]);
        let one = |memory: &mut Vec<i32>| {
            let (start, int) = (memory.as_mut_ptr().cast(), Datatype::named(MPI_INT32_T));
            Blocks::uneven(start, &[count as i64], vec![0], int, "buf").unwrap()
        };
        let mut operation = |rank: usize| {
            let (sources, destinations) = (vec![1 - rank as i32], vec![1 - rank as i32]);
            let (order, before, sent_as) = (vec![0], vec![0], vec![]);
            let neighbours = &Arc::new(Neighbours { sources, destinations, order, before, sent_as });
            let (send, receive) = (one(&mut sent[rank]), one(&mut received[rank]));
            let exchange =
                NeighbourExchange { neighbours, send: Sent::Blocks(&send), receive: &receive, own: Vec::new() };
            let member = Member { rank, size: 3, number: 0, signature: Signature::default() };
            let exchange = Exchange::with_neighbours(member, Collective::NeighborAlltoall, limits, exchange).unwrap();
            BackgroundOp::new(MailboxUse { mailboxes: mailbox_sets[rank].clone(), number: None, limits }, exchange)
        };
        let operations = [operation(0), operation(1)];
        operations[0].start();
        assert!(!operations[0].advance());
        operations[1].start();
        operations.iter().for_each(|operation| _ = operation.advance());
        assert!(operations.iter().all(|operation| operation.advance()), "each has read the block of its neighbour");
        assert_eq!(received, [vec![2; count], vec![1; count]]);
    }
}

/// Whether the bytes at a location lie in the slot or the note of the rank.
fn is_inside(mailboxes: &Mailboxes, rank: usize, number: u64, start: *const u8, len: usize) -> bool {
    let (slots, start) = (&mailboxes.slots, start as usize);
    let inside = |first: usize, bytes: usize| start >= first && len <= bytes && start - first <= bytes - len;
    inside(slots.slot_of(rank, number) as usize, slots.slot_bytes())
        || inside(slots.body_of(rank, number) as usize, BODY_BYTES)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn notes_that_make_no_sense_are_errors(
        notes in prop::collection::vec(
            (any::<u8>(), [0u64..200, 0u64..200], 0u8..4, prop::collection::vec(any::<u16>(), 8)),
            200,
        ),
    ) {
        let mailbox_sets = mailbox_sets();
        for (number, (form, [first, second], widening, line)) in (1..).zip(notes) {
            let slot = mailbox_sets[0].slots.slot_of(0, number);
            for (at, word) in line.iter().enumerate() {
                // Lines with small and with large places and lengths.
                let word = if widening & 1 == 0 { u64::from(*word) % 80 } else { u64::MAX - u64::from(*word) };
                // SAFETY: the slot has 64 bytes.
                unsafe { slot.cast::<u64>().add(at).write_unaligned(word) };
            }
            let widen = |word: u64| if widening & 2 == 0 { word } else { u64::MAX - word };
            let (bcast, gather) = (Signed::from(Collective::Bcast), Signed::from(Collective::Gather));
            mailbox_sets[0].slots.post(number, bcast.word, form.into(), &[widen(first), widen(second), 0, 0, 0, 0]);
            let reader = &mailbox_sets[1];
            for found in [reader.find(0, number, bcast), reader.find_part(0, number, bcast)] {
                if let Ok(PostedBytes { len, place: Location::Here(start) }) = found {
                    prop_assert!(is_inside(reader, 0, number, start, len), "form {form:#x}: {len} bytes at {start:?}");
                }
            }
            let other = mailbox_sets[1].find(0, number, gather).unwrap_err();
            prop_assert!(other.detail.contains("rank 0 called MPI_Bcast, but rank 1 called MPI_Gather(v)"), "{}", other.detail);
            prop_assert!(mailbox_sets[1].find(0, number + NOTES, bcast).is_err(), "there is no note yet");
        }
    }
}

// ---- long reductions -----------------------------------------------------------------------------------------------

/// The operation of one rank in a long reduction, with its buffers.
struct ReductionRank {
    operand: Vec<f64>,
    result: Vec<f64>,
    operation: Arc<BackgroundOp>,
}

/// Which reduction, in place or not.
type Reducing = (Collective, fn() -> Delivery, bool);

fn operand(rank: usize, count: usize) -> Vec<f64> {
    (0..count).map(|at| 1.0 / (rank * 7 + at % 101 + 1) as f64).collect()
}

/// A reduction in which rank `rank` has `count` numbers, and gets as many.
fn reducing(mailboxes: &Arc<Mailboxes>, (kind, delivery, in_place): Reducing, count: usize) -> ReductionRank {
    let (rank, size) = (mailboxes.slots.me(), mailboxes.size());
    let mut operand = operand(rank, count);
    let mut result = vec![0.0; count];
    let buffer = |start: *mut f64| {
        Buffer::new(start.cast(), count as i64, Datatype::named(MPI_DOUBLE), "buf").expect("a buffer")
    };
    let input = buffer(operand.as_mut_ptr());
    let into = if in_place { input.clone() } else { buffer(result.as_mut_ptr()) };
    let sum = Op::builtin(MPI_SUM).expect("predefined");
    let member = Member { rank, size, number: 0, signature: Signature::default() };
    let limits = Limits { most: 0, lends: true };
    let exchange =
        Exchange::reduction(member, kind, limits, &sum, &input, Some(&into), delivery()).expect("there is memory");
    ReductionRank {
        operand,
        result,
        operation: BackgroundOp::new(MailboxUse { mailboxes: mailboxes.clone(), number: None, limits }, exchange),
    }
}

/// Returns the expected result of a rank, combined in the order that the contract says.
fn wanted((kind, ..): Reducing, rank: usize, size: usize, count: usize) -> Vec<f64> {
    let operands: Vec<_> = (0..size).map(|rank| operand(rank, count)).collect();
    let number = |at: usize| match kind {
        Collective::Scan => {
            (0..=rank).map(|rank| operands[rank][at]).reduce(|before, own| before + own).expect("there is one")
        }
        Collective::Reduce if rank != 1 => 0.0,
        _ => (0..size).rev().map(|rank| operands[rank][at]).reduce(|behind, own| own + behind).expect("there is one"),
    };
    (0..count).map(number).collect()
}

fn error_of(part: &ReductionRank) -> String {
    assert!(part.operation.advance(), "it has ended");
    let end = operation::Operation::look(&*part.operation).expect("it has ended");
    let detail = end.error.expect("it has failed").detail.to_string();
    assert!(
        operation::Operation::finish(&*part.operation).expect("it has ended").error.is_some(),
        "a look leaves the error"
    );
    detail
}

const REDUCTIONS: [Reducing; 4] = [
    (Collective::Allreduce, || Delivery::All, false),
    (Collective::Allreduce, || Delivery::All, true),
    (Collective::Reduce, || Delivery::To(1), false),
    (Collective::Scan, || Delivery::Prefixes { with_own: true }, true),
];

/// Numbers of some pieces, the last of which is shorter.
const COUNT: usize = 5000;

#[test]
fn one_rank_that_looks_combines_a_long_reduction_for_all() {
    for reduction in REDUCTIONS {
        for busy in 0..3 {
            let mailbox_sets = mailbox_sets_of(3);
            let parts: Vec<_> = mailbox_sets.iter().map(|mailboxes| reducing(mailboxes, reduction, COUNT)).collect();
            for _ in 0..3 {
                for part in &parts {
                    part.operation.start();
                    assert!(
                        std::ptr::eq(part, &parts[2]) || !parts[0].operation.advance(),
                        "not all ranks have started"
                    );
                }
                assert!(parts[busy].operation.advance(), "no other rank is needed");
                if !reduction.2 {
                    let got: Vec<_> = parts.iter().map(|part| &part.result).collect();
                    (0..3).for_each(|rank| assert_eq!(*got[rank], wanted(reduction, rank, 3, COUNT), "rank {rank}"));
                }
                assert!(parts.iter().all(|part| part.operation.advance()));
                for (mailboxes, part) in mailbox_sets.iter().zip(&parts) {
                    assert!(mailboxes.pending.lock().open.is_empty());
                    assert_eq!(mailboxes.reductions.load(std::sync::atomic::Ordering::Relaxed), 0);
                    assert!(operation::Operation::finish(&*part.operation).expect("it has ended").error.is_none());
                }
                if reduction.2 {
                    break;
                }
            }
            let got = |rank: usize| if reduction.2 { &parts[rank].operand } else { &parts[rank].result };
            (0..3).for_each(|rank| assert_eq!(*got(rank), wanted(reduction, rank, 3, COUNT), "rank {rank}"));
        }
    }
}

#[test]
fn threads_of_all_ranks_share_the_pieces_of_a_long_reduction() {
    for _ in 0..20 {
        let mailbox_sets = mailbox_sets_of(4);
        let parts: Vec<_> = mailbox_sets.iter().map(|mailboxes| reducing(mailboxes, REDUCTIONS[0], COUNT)).collect();
        std::thread::scope(|scope| {
            for (part, mailboxes) in parts.iter().zip(&mailbox_sets) {
                // The helper, and the program.
                scope.spawn(move || mailboxes.serve());
                scope.spawn(move || {
                    part.operation.start();
                    while !part.operation.advance() {
                        std::thread::yield_now();
                    }
                });
            }
        });
        (0..4).for_each(|rank| assert_eq!(parts[rank].result, wanted(REDUCTIONS[0], rank, 4, COUNT), "rank {rank}"));
    }
}

#[test]
fn ranks_that_disagree_about_a_long_reduction_all_get_an_error() {
    type Case = fn(usize) -> (Reducing, usize);
    let lengths: Case = |rank| (REDUCTIONS[0], if rank == 2 { COUNT + 8 } else { COUNT });
    let roots: Case = |rank| {
        let delivery: fn() -> Delivery = if rank == 0 { || Delivery::To(0) } else { || Delivery::To(1) };
        ((Collective::Reduce, delivery, false), COUNT)
    };
    let cases = [(lengths, "do not match"), (roots, "another root")];
    for (case, wanted) in cases {
        let mailbox_sets = mailbox_sets_of(3);
        let parts: Vec<_> = mailbox_sets
            .iter()
            .enumerate()
            .map(|(rank, mailboxes)| {
                let (reduction, count) = case(rank);
                reducing(mailboxes, reduction, count)
            })
            .collect();
        parts.iter().for_each(|part| part.operation.start());
        for part in &parts {
            let detail = error_of(part);
            assert!(detail.contains(wanted), "{detail}");
            assert!(part.result.iter().all(|number| *number == 0.0), "nothing was written");
        }
    }
}

#[test]
fn a_piece_that_fails_is_an_error_at_all_ranks() {
    let mailbox_sets = mailbox_sets_of(3);
    let parts: Vec<_> = mailbox_sets.iter().map(|mailboxes| reducing(mailboxes, REDUCTIONS[0], COUNT)).collect();
    parts.iter().for_each(|part| part.operation.start());
    // Rank 2 posts an address at which it has no operand.
    let slots = &mailbox_sets[2].slots;
    // SAFETY: the note was posted; its body is not read meanwhile.
    let [len, _, result, shape, ..] = unsafe { *slots.body_of(2, 1) };
    slots.post(
        1,
        slots.signature_of(2, 1),
        slots.tag_of(2, 1).expect("it was posted"),
        &[len, 64, result, shape, 0, 0],
    );
    let details: Vec<_> = [0, 1, 2].map(|rank| error_of(&parts[rank])).into();
    assert!(details[0].contains("bytes of rank 2's buffer cannot be accessed from here"), "{}", details[0]);
    for detail in &details[1..] {
        assert!(detail.contains("rank 0 could not combine its share of the operands of MPI_Allreduce"), "{detail}");
    }
}

fn class_of(part: &ReductionRank) -> Option<i32> {
    assert!(part.operation.advance(), "it has ended");
    operation::Operation::finish(&*part.operation).expect("it has ended").error.map(|error| error.class)
}

fn death() -> Failure {
    Failure::PeerDied("process 1 has died".to_owned())
}

#[test]
fn all_ranks_get_the_class_of_a_death_during_a_piece() {
    let mailbox_sets = mailbox_sets_of(3);
    let parts: Vec<_> = mailbox_sets.iter().map(|mailboxes| reducing(mailboxes, REDUCTIONS[0], COUNT)).collect();
    parts.iter().for_each(|part| part.operation.start());
    // Rank 2 cannot access the memory of rank 1, before any rank knows that rank 1 has died.
    let slots = &mailbox_sets[2].slots;
    assert!(slots.take_piece(1, u64::MAX).is_some());
    slots.fail_piece(1, true);
    slots.count_piece(1);
    for part in &parts {
        assert_eq!(class_of(part), Some(MPI_ERR_PROC_ABORTED));
    }
}

#[test]
fn a_rank_that_finds_another_rank_given_up_gives_up_too() {
    let mailbox_sets = mailbox_sets_of(3);
    let parts: Vec<_> = mailbox_sets.iter().map(|mailboxes| reducing(mailboxes, REDUCTIONS[0], COUNT)).collect();
    parts.iter().for_each(|part| part.operation.start());
    // Rank 1 has taken a piece and died. Rank 2 learns of it; rank 0 does not yet.
    let slots = &mailbox_sets[1].slots;
    assert!(slots.take_piece(1, u64::MAX).is_some());
    slots.withdraw(1);
    assert_eq!(class_of(&parts[0]), Some(MPI_ERR_PROC_ABORTED));
    assert!(slots.is_withdrawn(0, 1), "no thread may begin to access its memory");
    assert!(!slots.has_pieces(1, 1));
    assert!(parts[2].operation.fail(&death()));
    assert_eq!(class_of(&parts[2]), Some(MPI_ERR_PROC_ABORTED));
}

/// Content of an operand or a result after the operation has failed and the rank has used the memory again.
const MARK: f64 = -1.0;

/// Drives a rank of a living process, which learns after `looks` polls that another rank has died. If the operation
/// fails, the rank uses its memory again at once; returns true if it has failed.
fn survive(part: &mut ReductionRank, looks: u64) -> bool {
    part.operation.start();
    let mut left = looks;
    while !part.operation.advance() {
        std::thread::yield_now();
        left = left.saturating_sub(1);
        if left == 0 {
            part.operation.fail(&death());
        }
    }
    let class = class_of(part);
    assert!(matches!(class, None | Some(MPI_ERR_PROC_ABORTED)), "class {class:?}");
    if class.is_some() {
        part.operand.fill(MARK);
        part.result.fill(MARK);
    }
    class.is_some()
}

#[test]
fn a_rank_that_dies_with_a_piece_in_its_hands_ends_the_operation_at_all_others() {
    const LONG: usize = 40_000;
    let mailbox_sets = mailbox_sets_of(4);
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let pieces = Pieces::new(LONG * size_of::<f64>(), 4, size_of::<f64>()).count();
    let mut parts: Vec<_> = mailbox_sets.iter().map(|mailboxes| reducing(mailboxes, REDUCTIONS[0], LONG)).collect();
    for number in 1..=150 {
        for (rank, part) in parts.iter_mut().enumerate() {
            part.operand.copy_from_slice(&operand(rank, LONG));
        }
        let moment = next(20_000);
        let looks: Vec<u64> = (0..4).map(|_| 1 + next(30)).collect();
        let failed: Vec<bool> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (rank, part) in parts.iter_mut().enumerate() {
                let (mailboxes, looks) = (&mailbox_sets[rank], looks[rank]);
                scope.spawn(move || mailboxes.serve());
                threads.push(scope.spawn(move || {
                    if rank != 1 {
                        return survive(part, looks);
                    }
                    part.operation.start();
                    (0..moment).for_each(|_| std::hint::spin_loop());
                    mailboxes.slots.take_piece(number, pieces).is_some()
                }));
            }
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        // Completes the operation of the dead process, so that the next round can begin.
        let dead = &parts[1].operation;
        if failed[1] {
            assert!(failed.iter().all(|failed| *failed), "no rank can have a result");
            dead.fail(&death());
        }
        assert!(dead.advance());
        let _ = operation::Operation::finish(&**dead);
        for (rank, part) in parts.iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let is_untouched = |numbers: &[f64]| numbers.iter().all(|number| *number == MARK);
            if failed[rank] {
                assert!(is_untouched(&part.operand) && is_untouched(&part.result), "rank {rank}, round {number}");
            } else {
                assert_eq!(part.result, wanted(REDUCTIONS[0], rank, 4, LONG), "rank {rank}");
            }
        }
    }
}
