//! Operations that move data.

use proptest::prelude::*;

use super::*;
use crate::exchange::Messages;
use crate::{allgather, alltoall, barrier, by_messages, gather, one_step, scatter};

/// Calls `test` with ranks, count, timing and datatype of all combinations.
fn for_each_case(test: impl Fn(&[Arc<Comm>], usize, Timing, &Arc<Datatype>)) {
    for size in SIZES {
        let comms = world(size);
        for (count, timing) in counts_and_timings() {
            for datatype in &shapes()[..if count > 100 { 2 } else { 3 }] {
                test(&comms, count, timing, datatype);
            }
        }
    }
}

fn bytes(count: usize, datatype: &Datatype) -> usize {
    count * datatype.size() as usize
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_come() {
    // For each rank, the ranks known to have come: itself, and those that its messages' senders knew of.
    for size in 1..40 {
        let schedules: Vec<Schedule> =
            world(size).iter().map(|comm| barrier::plan(&Call::begin(comm)).expect("a plan")).collect();
        let mut known: Vec<Vec<bool>> = (0..size).map(|rank| (0..size).map(|other| other == rank).collect()).collect();
        let rounds = schedules[0].steps.len() / 3;
        assert_eq!(1 << rounds, size.next_power_of_two());
        for round in 0..rounds {
            let before = known.clone();
            for rank in 0..size {
                for step in &schedules[rank].steps[3 * round..3 * round + 3] {
                    if let crate::schedule::Step::Receive { from, .. } = step {
                        known[rank].iter_mut().zip(&before[*from as usize]).for_each(|(known, more)| *known |= more);
                    }
                }
            }
        }
        assert!(known.iter().flatten().all(|known| *known));
        simulate(&schedules, Timing::Late);
    }
}

#[test]
fn in_a_barrier_by_messages_in_one_step_each_hears_from_each() {
    for size in 1..10 {
        let mut schedules: Vec<Schedule> = world(size).iter().map(|comm| Schedule::new(&Call::begin(comm))).collect();
        for (rank, schedule) in schedules.iter_mut().enumerate() {
            one_step::barrier(Messages::new(schedule)).unwrap();
            let heard_of = schedule.steps.iter().filter_map(|step| match step {
                crate::schedule::Step::Receive { from, .. } => Some(*from as usize),
                _ => None,
            });
            let mut heard_of: Vec<usize> = heard_of.chain([rank]).collect();
            heard_of.sort_unstable();
            assert_eq!(heard_of, (0..size).collect::<Vec<_>>());
        }
        simulate(&schedules, Timing::Late);
    }
}

fn bcast_delivers(plan: by_messages::Bcast) {
    for_each_case(|comms, count, timing, datatype| {
        for root in 0..comms.len() {
            let message = content(root, 0, bytes(count, datatype));
            let memories: Vec<Memory> = (0..comms.len())
                .map(|rank| if rank == root { Memory::with(&message, datatype) } else { Memory::new(count, datatype) })
                .collect();
            run_all(comms, timing, |_, s, rank| plan(s, &memories[rank].buffer(), root));
            assert!(memories.iter().all(|memory| memory.data() == message));
        }
    });
}

#[test]
fn every_bcast_delivers() {
    for (name, plan) in by_messages::BCAST {
        println!("{name}");
        bcast_delivers(*plan);
    }
}

#[test]
fn bcast_in_slices_delivers_between_datatypes_of_one_signature() {
    let [int, gaps, backwards] = shapes();
    let message = content(0, 0, 56 * 100);
    let memories =
        [Memory::with(&message, &int), Memory::new(700, &gaps), Memory::new(700, &backwards), Memory::new(1400, &int)];
    run_all(&world(4), Timing::Late, |_, s, rank| {
        by_messages::bcast::scatter_exchange::plan(s, &memories[rank].buffer(), 0)
    });
    assert!(memories.iter().all(|memory| memory.data() == message));
}

fn gather_collects(plan: by_messages::Gather) {
    for_each_case(|comms, count, timing, datatype| {
        let (size, length) = (comms.len(), bytes(count, datatype));
        for (root, in_place) in (0..size).flat_map(|root| [(root, false), (root, true)]) {
            let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&content(rank, 0, length), datatype)).collect();
            let all = Memory::new(count * size, datatype);
            if in_place {
                all.blocks(size).region(root).write(0, &content(root, 0, length));
            }
            run_all(comms, timing, |_, s, rank| {
                let send = sends[rank].buffer();
                let send = if in_place && rank == root { None } else { Some(&send) };
                plan(s, send, Some(&all.blocks(size)).filter(|_| rank == root), root)
            });
            assert_eq!(all.data(), (0..size).flat_map(|rank| content(rank, 0, length)).collect::<Vec<_>>());
        }
    });
}

#[test]
fn every_gather_collects() {
    for (name, plan) in by_messages::GATHER {
        println!("{name}");
        gather_collects(*plan);
    }
}

fn scatter_distributes(plan: by_messages::Scatter) {
    for_each_case(|comms, count, timing, datatype| {
        let (size, length) = (comms.len(), bytes(count, datatype));
        for (root, in_place) in (0..size).flat_map(|root| [(root, false), (root, true)]) {
            let all: Vec<u8> = (0..size).flat_map(|rank| content(0, rank, length)).collect();
            let all = Memory::with(&all, datatype);
            let parts: Vec<Memory> = (0..size).map(|_| Memory::new(count, datatype)).collect();
            run_all(comms, timing, |_, s, rank| {
                let part = parts[rank].buffer();
                let part = if in_place && rank == root { None } else { Some(&part) };
                plan(s, Some(&all.blocks(size)).filter(|_| rank == root), part, root)
            });
            for (rank, part) in parts.iter().enumerate() {
                let untouched = in_place && rank == root;
                assert_eq!(part.data(), if untouched { vec![MARK; length] } else { content(0, rank, length) });
            }
        }
    });
}

#[test]
fn every_scatter_distributes() {
    for (name, plan) in by_messages::SCATTER {
        println!("{name}");
        scatter_distributes(*plan);
    }
}

fn allgather_collects(plan: by_messages::Allgather) {
    for_each_case(|comms, count, timing, datatype| {
        let (size, length) = (comms.len(), bytes(count, datatype));
        for in_place in [false, true] {
            let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&content(rank, 0, length), datatype)).collect();
            let alls: Vec<Memory> = (0..size).map(|_| Memory::new(count * size, datatype)).collect();
            for (rank, all) in alls.iter().enumerate().filter(|_| in_place) {
                all.blocks(size).region(rank).write(0, &content(rank, 0, length));
            }
            run_all(comms, timing, |_, s, rank| {
                let send = sends[rank].buffer();
                plan(s, Some(&send).filter(|_| !in_place), &alls[rank].blocks(size))
            });
            let expected: Vec<u8> = (0..size).flat_map(|rank| content(rank, 0, length)).collect();
            assert!(alls.iter().all(|all| all.data() == expected));
        }
    });
}

#[test]
fn every_allgather_collects() {
    for (name, plan) in by_messages::ALLGATHER {
        println!("{name}");
        allgather_collects(*plan);
    }
}

#[test]
fn alltoall_transposes() {
    for_each_case(|comms, count, _, datatype| {
        let (size, length) = (comms.len(), bytes(count, datatype));
        for in_place in [false, true] {
            let row = |rank: usize| (0..size).flat_map(move |to| content(rank, to, length)).collect::<Vec<u8>>();
            let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&row(rank), datatype)).collect();
            let receives: Vec<Memory> =
                (0..size)
                    .map(|rank| {
                        if in_place { Memory::with(&row(rank), datatype) } else { Memory::new(count * size, datatype) }
                    })
                    .collect();
            run_entries(comms, |call, rank| {
                let send = sends[rank].blocks(size);
                alltoall::plan(call, Some(&send).filter(|_| !in_place), &receives[rank].blocks(size))
            });
            for (rank, receive) in receives.iter().enumerate() {
                assert_eq!(receive.data(), (0..size).flat_map(|from| content(from, rank, length)).collect::<Vec<_>>());
            }
        }
    });
}

#[test]
fn exchanges_of_more_ranks_than_one_window_arrive() {
    let size = 71;
    let int = Datatype::named(MPI_INT32_T);
    let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&content(rank, 0, 4), &int)).collect();
    for (_, plan) in by_messages::ALLGATHER {
        let alls: Vec<Memory> = (0..size).map(|_| Memory::new(size, &int)).collect();
        run_all(&world(size), Timing::Late, |_, s, rank| {
            plan(s, Some(&sends[rank].buffer()), &alls[rank].blocks(size))
        });
        let expected: Vec<u8> = (0..size).flat_map(|rank| content(rank, 0, 4)).collect();
        assert!(alls.iter().all(|all| all.data() == expected));
    }
}

/// Makes blocks of the given lengths, with gaps and in the reverse order of ranks.
pub(super) fn scattered(memory: &Memory, counts: &[usize]) -> Blocks {
    let counts: Vec<i64> = counts.iter().map(|&count| count as i64).collect();
    let mut next = 1;
    let mut displs = vec![0; counts.len()];
    for rank in (0..counts.len()).rev() {
        displs[rank] = next;
        next += counts[rank] + 1;
    }
    Blocks::uneven(memory.start(), &counts, displs, memory.datatype.clone(), "buf").unwrap()
}

pub(super) fn room(counts: &[usize], datatype: &Arc<Datatype>) -> Memory {
    Memory::new(counts.iter().sum::<usize>() + counts.len() + 1, datatype)
}

pub(super) fn read(region: &Region) -> Vec<u8> {
    let mut stream = vec![0; region.len()];
    region.read(0, &mut stream);
    stream
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn blocks_of_any_length_find_their_places(
        lengths in prop::collection::vec(0usize..20, 1..=6),
        shape in 0usize..3,
        root in 0usize..6,
        in_place: bool,
    ) {
        let size = lengths.len();
        let root = root % size;
        let comms = world(size);
        let datatype = &shapes()[shape];
        let counts = lengths;
        let own = |rank: usize| content(rank, 0, bytes(counts[rank], datatype));
        let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&own(rank), datatype)).collect();
        let alls: Vec<Memory> = (0..size).map(|_| room(&counts, datatype)).collect();
        for (rank, all) in alls.iter().enumerate() {
            scattered(all, &counts).region(rank).write(0, &own(rank));
        }
        let send = |rank: usize, here: bool| Some(sends[rank].buffer()).filter(|_| !(in_place && here));
        run_entries(&comms, |call, rank| {
            let all = scattered(&alls[rank], &counts);
            let all = Some(&all).filter(|_| rank == root);
            gather::plan_v(call, send(rank, rank == root).as_ref(), all, root as i32)
        });
        for rank in 0..size {
            prop_assert_eq!(read(&scattered(&alls[root], &counts).region(rank)), own(rank));
        }
        run_entries(&comms, |call, rank| {
            allgather::plan(call, send(rank, true).as_ref(), &scattered(&alls[rank], &counts))
        });
        for (all, rank) in alls.iter().flat_map(|all| (0..size).map(move |rank| (all, rank))) {
            prop_assert_eq!(read(&scattered(all, &counts).region(rank)), own(rank));
        }
        let parts: Vec<Memory> = (0..size).map(|rank| Memory::new(counts[rank], datatype)).collect();
        run_entries(&comms, |call, rank| {
            let part = Some(parts[rank].buffer()).filter(|_| !(in_place && rank == root));
            let all = scattered(&alls[rank], &counts);
            scatter::plan_v(call, Some(&all).filter(|_| rank == root), part.as_ref(), root as i32)
        });
        for rank in (0..size).filter(|&rank| !(in_place && rank == root)) {
            prop_assert_eq!(parts[rank].data(), own(rank));
        }
    }

    #[test]
    fn blocks_of_any_length_for_each_find_their_places(
        lengths in prop::collection::vec(prop::collection::vec(0usize..20, 6), 1..=6),
        shape in 0usize..3,
        in_place: bool,
    ) {
        let size = lengths.len();
        let comms = world(size);
        let datatype = &shapes()[shape];
        // In place, sent and received blocks of a pair have the same length.
        let length = |from: usize, to: usize| {
            if in_place { lengths[from.min(to)][from.max(to)] } else { lengths[from][to] }
        };
        let mine = |from: usize, to: usize| content(from, to, bytes(length(from, to), datatype));
        let outgoing = |rank: usize| (0..size).map(|to| length(rank, to)).collect::<Vec<_>>();
        let incoming = |rank: usize| (0..size).map(|from| length(from, rank)).collect::<Vec<_>>();
        let rooms: Vec<(Memory, Memory)> = (0..size)
            .map(|rank| (room(&outgoing(rank), datatype), room(&incoming(rank), datatype)))
            .collect();
        for (rank, (send, receive)) in rooms.iter().enumerate() {
            let memory = if in_place { receive } else { send };
            for to in 0..size {
                scattered(memory, &outgoing(rank)).region(to).write(0, &mine(rank, to));
            }
        }
        run_entries(&comms, |call, rank| {
            let send = scattered(&rooms[rank].0, &outgoing(rank));
            alltoall::plan(call, Some(&send).filter(|_| !in_place), &scattered(&rooms[rank].1, &incoming(rank)))
        });
        for (rank, from) in (0..size).flat_map(|rank| (0..size).map(move |from| (rank, from))) {
            prop_assert_eq!(read(&scattered(&rooms[rank].1, &incoming(rank)).region(from)), mine(from, rank));
        }
    }
}
