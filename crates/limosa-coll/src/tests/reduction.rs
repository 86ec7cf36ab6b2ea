//! Operations that combine data.

use super::*;
use crate::schedule::Step;
use crate::{allreduce, by_messages, scan};
use limosa_mpi::op::Op;

/// An operation on a datatype, and its combination of two elements.
pub(super) struct Algebra {
    pub(super) op: Arc<Op>,
    pub(super) datatype: Arc<Datatype>,
    combine: fn(&[u8], &[u8]) -> Vec<u8>,
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    std::array::from_fn(|i| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("eight bytes")))
}

fn add(left: &[u8], right: &[u8]) -> Vec<u8> {
    let sum = |at: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|i| [left, right][at][i]));
    sum(0).wrapping_add(sum(1)).to_ne_bytes().to_vec()
}

/// Two affine functions after one another: associative, not commutative.
fn compose(left: &[u8], right: &[u8]) -> Vec<u8> {
    let ([a, b], [c, d]) = (words::<2>(left), words::<2>(right));
    [a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// `inout[i] = input[i] op inout[i]`, element by element.
fn compose_all(input: *const u8, inout: *mut u8, count: usize, datatype: &Arc<Datatype>) {
    // SAFETY: the caller has `count` elements at both addresses.
    let (input, inout) = unsafe { (datatype.region(input.cast_mut(), count), datatype.region(inout, count)) };
    let (mut left, mut right) = (vec![0; input.len()], vec![0; inout.len()]);
    input.read(0, &mut left);
    inout.read(0, &mut right);
    let combined: Vec<u8> =
        left.chunks(16).zip(right.chunks(16)).flat_map(|(left, right)| compose(left, right)).collect();
    inout.write(0, &combined);
}

pub(super) fn algebras() -> Vec<Algebra> {
    let word = Datatype::named(MPI_UINT64_T);
    let pair = Datatype::contiguous(2, &word).unwrap();
    let gaps = Datatype::resized(&Datatype::vector(2, 1, 2, &word).unwrap(), -8, 40).unwrap();
    let backwards = Datatype::resized(&gaps, -8, -48).unwrap();
    let affine = Op::user(Arc::new(compose_all), false);
    let mut all =
        vec![Algebra { op: Op::builtin(MPI_SUM).unwrap(), datatype: Datatype::named(MPI_INT32_T), combine: add }];
    for datatype in [pair, gaps, backwards] {
        datatype.commit();
        all.push(Algebra { op: affine.clone(), datatype, combine: compose });
    }
    all
}

impl Algebra {
    pub(super) fn operand(&self, rank: usize, count: usize) -> Vec<u8> {
        content(rank, 0, count * self.datatype.size() as usize)
    }

    /// Combines the operands of these ranks in their order.
    pub(super) fn fold(&self, ranks: std::ops::Range<usize>, count: usize) -> Vec<u8> {
        let width = self.datatype.size() as usize;
        let combine = |left: Vec<u8>, right: Vec<u8>| {
            left.chunks(width).zip(right.chunks(width)).flat_map(|(left, right)| (self.combine)(left, right)).collect()
        };
        ranks.map(|rank| self.operand(rank, count)).reduce(combine).unwrap_or_default()
    }

    pub(super) fn memory(&self, rank: usize, count: usize) -> Memory {
        Memory::with(&self.operand(rank, count), &self.datatype)
    }
}

/// Calls `test` with ranks, count, timing, algebra, and whether to work in place.
fn for_each_case(test: impl Fn(&[Arc<Comm>], usize, Timing, &Algebra, bool)) {
    for size in SIZES {
        let comms = world(size);
        for (count, timing) in counts_and_timings() {
            for algebra in &algebras()[..if count > 100 { 2 } else { 4 }] {
                for in_place in [false, true] {
                    test(&comms, count, timing, algebra, in_place);
                }
            }
        }
    }
}

fn reduce_combines(plan: by_messages::Reduce, any_order: bool) {
    for_each_case(|comms, count, timing, algebra, in_place| {
        if !any_order && !algebra.op.is_commutative() {
            return;
        }
        for root in 0..comms.len() {
            let sends: Vec<Memory> = (0..comms.len()).map(|rank| algebra.memory(rank, count)).collect();
            let result = if in_place { algebra.memory(root, count) } else { Memory::new(count, &algebra.datatype) };
            run_all(comms, timing, |_, s, rank| {
                s.reduce_with(algebra.op.clone(), algebra.datatype.clone());
                let (send, result) = (sends[rank].buffer(), result.buffer());
                let at_root = rank == root;
                plan(s, if at_root && in_place { &result } else { &send }, Some(&result).filter(|_| at_root), root)
            });
            assert_eq!(result.data(), algebra.fold(0..comms.len(), count));
            assert!(
                (0..comms.len()).all(|rank| sends[rank].data() == algebra.operand(rank, count)),
                "a send buffer has changed"
            );
        }
    });
}

#[test]
fn every_reduce_combines_in_rank_order_unless_it_says_otherwise() {
    for (name, plan) in by_messages::REDUCE {
        println!("{name}");
        reduce_combines(*plan, *name != "binomial_rotated");
    }
}

fn allreduce_combines(plan: by_messages::Allreduce) {
    for_each_case(|comms, count, timing, algebra, in_place| {
        let sends: Vec<Memory> = (0..comms.len()).map(|rank| algebra.memory(rank, count)).collect();
        let results: Vec<Memory> = (0..comms.len())
            .map(|rank| if in_place { algebra.memory(rank, count) } else { Memory::new(count, &algebra.datatype) })
            .collect();
        run_all(comms, timing, |_, s, rank| {
            s.reduce_with(algebra.op.clone(), algebra.datatype.clone());
            let (send, result) = (sends[rank].buffer(), results[rank].buffer());
            plan(s, if in_place { &result } else { &send }, &result)
        });
        let expected = algebra.fold(0..comms.len(), count);
        assert!(results.iter().all(|result| result.data() == expected));
        assert!(
            (0..comms.len()).all(|rank| sends[rank].data() == algebra.operand(rank, count)),
            "a send buffer has changed"
        );
    });
}

#[test]
fn every_allreduce_combines_in_rank_order() {
    for (name, plan) in by_messages::ALLREDUCE {
        println!("{name}");
        allreduce_combines(*plan);
    }
}

#[test]
fn all_ranks_of_an_allreduce_get_the_same_bits_every_time() {
    let double = Datatype::named(MPI_DOUBLE);
    let sum = Op::builtin(MPI_SUM).unwrap();
    for (plan, size) in [
        by_messages::allreduce::recursive_doubling::plan as by_messages::Allreduce,
        by_messages::allreduce::sliced::plan,
    ]
    .into_iter()
    .flat_map(|p| SIZES.map(move |n| (p, n)))
    {
        let operand = |rank: usize| -> Vec<u8> {
            let value = |i: usize| (mix(rank as u64, i as u64) as f64 - 1e19) * 10f64.powi((i % 30) as i32 - 15);
            (0..100).flat_map(|i| value(i).to_ne_bytes()).collect()
        };
        let once = |timing| {
            let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&operand(rank), &double)).collect();
            let results: Vec<Memory> = (0..size).map(|_| Memory::new(100, &double)).collect();
            run_all(&world(size), timing, |_, s, rank| {
                s.reduce_with(sum.clone(), double.clone());
                plan(s, &sends[rank].buffer(), &results[rank].buffer())
            });
            let bits: Vec<Vec<u8>> = results.iter().map(Memory::data).collect();
            assert!(bits.iter().all(|other| *other == bits[0]), "ranks got different bits");
            bits[0].clone()
        };
        assert_eq!(once(Timing::Early), once(Timing::LateReversed));
    }
}

#[test]
fn two_ranks_exchange_operands_in_one_step_and_only_the_higher_one_copies_its_own() {
    let (int, sum) = (Datatype::named(MPI_INT32_T), Op::builtin(MPI_SUM).unwrap());
    let comms = world(2);
    for (comm, expected) in comms.iter().zip([(1, 0), (1, 1)]) {
        let (operand, result) = (Memory::new(1000, &int), Memory::new(1000, &int));
        let mut schedule = Schedule::new(&Call::begin(comm));
        schedule.reduce_with(sum.clone(), int.clone());
        by_messages::allreduce::recursive_doubling::plan(&mut schedule, &operand.buffer(), &result.buffer()).unwrap();
        let count = |is_one: fn(&Step) -> bool| schedule.steps.iter().filter(|step| is_one(step)).count();
        let found = (count(|step| matches!(step, Step::Send { .. })), count(|step| matches!(step, Step::Copy { .. })));
        assert_eq!(found, expected, "sends and copies of rank {}", comm.rank());
    }
}

fn reduce_scatter_combines(plan: by_messages::ReduceScatter) {
    for_each_case(|comms, count, timing, algebra, in_place| {
        let size = comms.len();
        // Parts of different lengths, some of them empty.
        let counts: Vec<usize> = (0..size).map(|rank| if rank % 3 == 1 { 0 } else { count.min(50) + rank }).collect();
        let total: usize = counts.iter().sum();
        let sends: Vec<Memory> = (0..size).map(|rank| algebra.memory(rank, total)).collect();
        let results: Vec<Memory> = (0..size)
            .map(
                |rank| {
                    if in_place { algebra.memory(rank, total) } else { Memory::new(counts[rank], &algebra.datatype) }
                },
            )
            .collect();
        run_all(comms, timing, |_, s, rank| {
            s.reduce_with(algebra.op.clone(), algebra.datatype.clone());
            let (send, result) = (sends[rank].buffer(), results[rank].buffer());
            plan(s, if in_place { &result } else { &send }, &counts, &result.slice(0, counts[rank]))
        });
        let (all, width) = (algebra.fold(0..size, total), algebra.datatype.size() as usize);
        let mut first = 0;
        for rank in 0..size {
            let length = counts[rank] * width;
            assert_eq!(results[rank].data()[..length], all[first..first + length]);
            first += length;
        }
    });
}

#[test]
fn every_reduce_scatter_combines_in_rank_order() {
    for (name, plan) in by_messages::REDUCE_SCATTER {
        println!("{name}");
        reduce_scatter_combines(*plan);
    }
}

#[test]
fn groups_of_ranks_are_combined_in_order() {
    let algebra = &algebras()[1];
    for size in [32, 33, 34, 70] {
        let sends: Vec<Memory> = (0..size).map(|rank| algebra.memory(rank, size)).collect();
        for in_place in [false, true] {
            let results: Vec<Memory> = (0..size)
                .map(|rank| if in_place { algebra.memory(rank, size) } else { Memory::new(size, &algebra.datatype) })
                .collect();
            run_all(&world(size), Timing::Late, |_, s, rank| {
                s.reduce_with(algebra.op.clone(), algebra.datatype.clone());
                let (send, result) = (sends[rank].buffer(), results[rank].buffer());
                by_messages::allreduce::sliced::plan(s, if in_place { &result } else { &send }, &result)
            });
            let expected = algebra.fold(0..size, size);
            assert!(results.iter().all(|result| result.data() == expected));
        }
    }
}

#[test]
fn scans_combine_the_ranks_before() {
    for_each_case(|comms, count, timing, algebra, in_place| {
        for exclusive in [false, true] {
            let sends: Vec<Memory> = (0..comms.len()).map(|rank| algebra.memory(rank, count)).collect();
            let results: Vec<Memory> = (0..comms.len())
                .map(|rank| if in_place { algebra.memory(rank, count) } else { Memory::new(count, &algebra.datatype) })
                .collect();
            let schedules: Vec<Schedule> = (0..comms.len())
                .map(|rank| {
                    let (send, result) = (sends[rank].buffer(), results[rank].buffer());
                    let send = Some(&send).filter(|_| !in_place);
                    let plan = if exclusive { scan::plan_exclusive } else { scan::plan };
                    plan(&Call::begin(&comms[rank]), send, &result, &algebra.op).unwrap()
                })
                .collect();
            simulate(&schedules, timing);
            for (rank, result) in results.iter().enumerate() {
                let before = if exclusive { rank } else { rank + 1 };
                let untouched = if in_place {
                    algebra.operand(0, count)
                } else {
                    vec![MARK; count * algebra.datatype.size() as usize]
                };
                assert_eq!(result.data(), if before == 0 { untouched } else { algebra.fold(0..before, count) });
            }
        }
    });
}

#[test]
fn a_schedule_runs_again_with_new_operands() {
    let algebra = &algebras()[2];
    let comms = world(5);
    let memories: Vec<Memory> = (0..5).map(|rank| algebra.memory(rank, 300)).collect();
    let plan =
        |rank: usize| allreduce::plan(&Call::begin(&comms[rank]), None, &memories[rank].buffer(), &algebra.op).unwrap();
    let schedules: Vec<Schedule> = (0..5).map(plan).collect();
    for _ in 0..3 {
        for (rank, memory) in memories.iter().enumerate() {
            memory.region().write(0, &algebra.operand(rank, 300));
        }
        simulate(&schedules, Timing::Late);
        assert!(memories.iter().all(|memory| memory.data() == algebra.fold(0..5, 300)));
    }
}
