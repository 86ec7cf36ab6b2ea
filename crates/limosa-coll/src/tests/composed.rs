//! Operations composed over hosts, with their members placed at random: they have the same results as flat ones, with
//! as few messages between hosts as promised.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::movement::{read, room, scattered};
use super::reduction::algebras;
use super::*;
use crate::composed::{self, Composition};
use crate::hosts::Hosts;
use crate::kind::Signature;
use crate::schedule::{Member, Step};
use limosa_mpi::op::Op;

/// The host of each rank.
fn placements() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0u32..4, 1..=9)
}

/// Returns as many ranks on each host, with the ranks of a host consecutive.
fn consecutive(hosts: &[u32]) -> Vec<u32> {
    let mut sorted = hosts.to_vec();
    sorted.sort_unstable();
    sorted
}

fn timings() -> impl Strategy<Value = Timing> {
    prop::sample::select(TIMINGS.to_vec())
}

/// Returns the schedules of all ranks.
fn schedules(hosts: &[u32], compose: impl Fn(&Hosts, usize) -> Result<Composition>) -> Vec<Schedule> {
    let member = |rank| Member { rank, size: hosts.len(), number: 0, signature: Signature::default() };
    let schedule = |rank| {
        compose(&Hosts::new(rank as u32, hosts.iter().copied()), rank)
            .and_then(|found| found.into_schedule(member(rank)))
    };
    (0..hosts.len()).map(|rank| schedule(rank).expect("the arguments are right")).collect()
}

/// Returns `(from, to)` of all messages between hosts.
fn crossings(hosts: &[u32], schedules: &[Schedule]) -> Vec<(usize, usize)> {
    let sends =
        schedules.iter().enumerate().flat_map(|(rank, schedule)| schedule.steps.iter().map(move |step| (rank, step)));
    let between = sends.filter_map(|(rank, step)| match step {
        Step::Send { to, .. } if hosts[rank] != hosts[*to as usize] => Some((rank, *to as usize)),
        _ => None,
    });
    between.collect()
}

/// Checks that only one rank of each host exchanges messages with other hosts.
fn check_leaders(hosts: &[u32], schedules: &[Schedule]) {
    let mut leaders: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); 4];
    for (from, to) in crossings(hosts, schedules) {
        leaders[hosts[from] as usize].insert(from);
        leaders[hosts[to] as usize].insert(to);
    }
    assert!(leaders.iter().all(|leaders| leaders.len() <= 1), "{hosts:?}: {leaders:?}");
}

fn run(hosts: &[u32], timing: Timing, compose: impl Fn(&Hosts, usize) -> Result<Composition>) {
    let schedules = schedules(hosts, compose);
    check_leaders(hosts, &schedules);
    simulate(&schedules, timing);
}

/// Contributions of each rank, and memory for all.
struct Movement {
    bytes: usize,
    contributions: Vec<Memory>,
    alls: Vec<Memory>,
}

impl Movement {
    fn new(size: usize, count: usize, datatype: &Arc<Datatype>) -> Movement {
        let bytes = count * datatype.size() as usize;
        let contributions = (0..size).map(|rank| Memory::with(&content(rank, 0, bytes), datatype)).collect();
        Movement { bytes, contributions, alls: (0..size).map(|_| Memory::new(count * size, datatype)).collect() }
    }

    /// Returns all contributions, in rank order.
    fn expected(&self) -> Vec<u8> {
        (0..self.alls.len()).flat_map(|rank| content(rank, 0, self.bytes)).collect()
    }

    /// Writes a rank's contribution to its place among all.
    fn put_in_place(&self, rank: usize) {
        self.alls[rank].blocks(self.alls.len()).region(rank).write(0, &content(rank, 0, self.bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_moved_arrives(
        hosts in placements(),
        root in 0usize..9,
        count in 0usize..20,
        shape in 0usize..3,
        in_place: bool,
        timing in timings(),
    ) {
        let (size, datatype) = (hosts.len(), &shapes()[shape]);
        let root = root % size;
        let bytes = count * datatype.size() as usize;

        let message = content(root, 1, bytes);
        let memories: Vec<Memory> =
            (0..size)
                .map(|rank| if rank == root { Memory::with(&message, datatype) } else { Memory::new(count, datatype) })
                .collect();
        run(&hosts, timing, |hosts, rank| Ok(composed::bcast(hosts, &memories[rank].buffer(), root)));
        prop_assert!(memories.iter().all(|memory| memory.data() == message));

        let gathered = Movement::new(size, count, datatype);
        if in_place {
            gathered.put_in_place(root);
        }
        run(&hosts, timing, |hosts, rank| {
            let send = Some(gathered.contributions[rank].buffer()).filter(|_| !(in_place && rank == root));
            let all = gathered.alls[rank].blocks(size);
            composed::gather(hosts, send.as_ref(), Some(&all).filter(|_| rank == root), root, bytes)
        });
        prop_assert_eq!(gathered.alls[root].data(), gathered.expected());

        let all = Memory::with(&gathered.expected(), datatype);
        let parts: Vec<Memory> = (0..size).map(|_| Memory::new(count, datatype)).collect();
        run(&hosts, timing, |hosts, rank| {
            let part = Some(parts[rank].buffer()).filter(|_| !(in_place && rank == root));
            composed::scatter(hosts, Some(&all.blocks(size)).filter(|_| rank == root), part.as_ref(), root, bytes)
        });
        for rank in (0..size).filter(|&rank| !(in_place && rank == root)) {
            prop_assert_eq!(parts[rank].data(), content(rank, 0, bytes));
        }

        let gathered = Movement::new(size, count, datatype);
        if in_place {
            (0..size).for_each(|rank| gathered.put_in_place(rank));
        }
        run(&hosts, timing, |hosts, rank| {
            let send = Some(gathered.contributions[rank].buffer()).filter(|_| !in_place);
            composed::allgather(hosts, send.as_ref(), &gathered.alls[rank].blocks(size))
        });
        prop_assert!(gathered.alls.iter().all(|all| all.data() == gathered.expected()));
    }

    #[test]
    fn every_rank_gets_a_block_from_every_rank(
        hosts in placements(),
        count in 0usize..20,
        shape in 0usize..3,
        in_place: bool,
        timing in timings(),
    ) {
        let (size, datatype) = (hosts.len(), &shapes()[shape]);
        let bytes = count * datatype.size() as usize;
        let block = |from: usize, to: usize| content(from, to, bytes);
        let sent = |rank: usize| (0..size).flat_map(|to| block(rank, to)).collect::<Vec<u8>>();
        let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&sent(rank), datatype)).collect();
        let rooms: Vec<Memory> = (0..size).map(|_| Memory::new(count * size, datatype)).collect();
        let receives = if in_place { &sends } else { &rooms };
        run(&hosts, timing, |hosts, rank| {
            let send = Some(sends[rank].blocks(size)).filter(|_| !in_place);
            composed::alltoall(hosts, send.as_ref(), &receives[rank].blocks(size), bytes)
        });
        for (rank, received) in receives.iter().enumerate() {
            prop_assert_eq!(received.data(), (0..size).flat_map(|from| block(from, rank)).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn contributions_of_any_length_find_their_places(
        hosts in placements(),
        lengths in prop::collection::vec(0usize..9, 9),
        shape in 0usize..3,
        in_place: bool,
        timing in timings(),
    ) {
        let (size, datatype) = (hosts.len(), &shapes()[shape]);
        let counts = &lengths[..size];
        let own = |rank: usize| content(rank, 0, counts[rank] * datatype.size() as usize);
        let sends: Vec<Memory> = (0..size).map(|rank| Memory::with(&own(rank), datatype)).collect();
        let alls: Vec<Memory> = (0..size).map(|_| room(counts, datatype)).collect();
        for (rank, all) in alls.iter().enumerate().filter(|_| in_place) {
            scattered(all, counts).region(rank).write(0, &own(rank));
        }
        run(&hosts, timing, |hosts, rank| {
            let send = Some(sends[rank].buffer()).filter(|_| !in_place);
            composed::allgather(hosts, send.as_ref(), &scattered(&alls[rank], counts))
        });
        for (all, rank) in alls.iter().flat_map(|all| (0..size).map(move |rank| (all, rank))) {
            prop_assert_eq!(read(&scattered(all, counts).region(rank)), own(rank));
        }
        // The gaps between the blocks are left alone.
        let marks = |all: &Memory| all.data().iter().filter(|&&byte| byte == MARK).count();
        let all = room(counts, datatype);
        let written = sends.iter().map(|send| send.data()).collect::<Vec<_>>().concat();
        prop_assert!(alls.iter().all(|filled| marks(filled) >= marks(&all) - written.len()));
    }

    #[test]
    fn operands_are_combined_in_rank_order_where_the_operation_does_not_commute(
        hosts in placements(),
        root in 0usize..9,
        count in 0usize..20,
        algebra in 0usize..4,
        in_place: bool,
        timing in timings(),
    ) {
        let (size, algebra) = (hosts.len(), &algebras()[algebra]);
        let hosts = if algebra.op.is_commutative() { hosts } else { consecutive(&hosts) };
        let root = root % size;
        let expected = algebra.fold(0..size, count);
        let sends: Vec<Memory> = (0..size).map(|rank| algebra.memory(rank, count)).collect();
        let result = |rank: usize| {
            if in_place { algebra.memory(rank, count) } else { Memory::new(count, &algebra.datatype) }
        };

        let at_root = result(root);
        run(&hosts, timing, |hosts, rank| {
            let (send, result) = (sends[rank].buffer(), at_root.buffer());
            let is_root = rank == root;
            let send = if is_root && in_place { &result } else { &send };
            composed::reduce(hosts, send, Some(&result).filter(|_| is_root), &algebra.op, root)
        });
        prop_assert_eq!(at_root.data(), expected.clone());

        let results: Vec<Memory> = (0..size).map(result).collect();
        run(&hosts, timing, |hosts, rank| {
            let (send, result) = (sends[rank].buffer(), results[rank].buffer());
            Ok(composed::allreduce(hosts, if in_place { &result } else { &send }, &result, &algebra.op))
        });
        prop_assert!(results.iter().all(|result| result.data() == expected));
        prop_assert!(
            (0..size).all(|rank| sends[rank].data() == algebra.operand(rank, count)),
            "a send buffer has changed"
        );
    }

    #[test]
    fn all_ranks_get_the_same_bits(hosts in placements(), count in 1usize..50) {
        let (size, double, sum) = (hosts.len(), Datatype::named(MPI_DOUBLE), Op::builtin(MPI_SUM).unwrap());
        let value = |rank: usize, i: usize| {
            (mix(rank as u64, i as u64) as f64 - 1e19) * 10f64.powi((i % 30) as i32 - 15)
        };
        let once = |timing| {
            let operand = |rank| (0..count).flat_map(|i| value(rank, i).to_ne_bytes()).collect::<Vec<u8>>();
            let memories: Vec<Memory> = (0..size).map(|rank| Memory::with(&operand(rank), &double)).collect();
            run(&hosts, timing, |hosts, rank| {
                Ok(composed::allreduce(hosts, &memories[rank].buffer(), &memories[rank].buffer(), &sum))
            });
            memories.iter().map(Memory::data).collect::<Vec<_>>()
        };
        let bits = once(Timing::Early);
        prop_assert!(bits.iter().all(|other| *other == bits[0]), "ranks got different bits");
        prop_assert_eq!(bits, once(Timing::LateReversed));
    }

    #[test]
    fn no_rank_leaves_a_composed_barrier_before_all_have_come(hosts in placements()) {
        let schedules = schedules(&hosts, |hosts, _| Ok(composed::barrier(hosts)));
        check_leaders(&hosts, &schedules);
        for late in 0..hosts.len() {
            // Without this rank no rank reaches the end.
            prop_assert!(reached_without(&schedules, late).iter().all(|ended| !ended));
        }
        simulate(&schedules, Timing::Late);
    }
}

/// Returns which ranks reach their ends if one rank does nothing at all.
fn reached_without(schedules: &[Schedule], absent: usize) -> Vec<bool> {
    let size = schedules.len();
    let mut next = vec![0; size];
    let mut sent = vec![0usize; size * size];
    let mut received = vec![0usize; size * size];
    loop {
        let before = next.clone();
        for rank in (0..size).filter(|&rank| rank != absent) {
            while let Some(step) = schedules[rank].steps.get(next[rank]) {
                match step {
                    Step::Send { to, .. } => sent[rank * size + *to as usize] += 1,
                    Step::Receive { from, .. } => received[*from as usize * size + rank] += 1,
                    Step::Wait if (0..size).any(|from| received[from * size + rank] > sent[from * size + rank]) => {
                        break;
                    }
                    _ => {}
                }
                next[rank] += 1;
            }
        }
        if next == before {
            let waits = |rank: usize| (0..size).any(|from| received[from * size + rank] > sent[from * size + rank]);
            return (0..size)
                .map(|rank| rank != absent && next[rank] == schedules[rank].steps.len() && !waits(rank))
                .collect();
        }
    }
}

/// Returns messages between hosts of eight ranks on two hosts of four.
fn crossings_of_eight(compose: impl Fn(&Hosts, usize) -> Result<Composition>) -> Vec<(usize, usize)> {
    let hosts = [0, 0, 0, 0, 1, 1, 1, 1];
    crossings(&hosts, &schedules(&hosts, compose))
}

#[test]
fn messages_between_hosts_are_few() {
    let (int, sum) = (Datatype::named(MPI_INT32_T), Op::builtin(MPI_SUM).unwrap());
    let (one, eight) = (Memory::new(1000, &int), Memory::new(8000, &int));
    let (one, other, eight, sum) = (one.buffer(), Memory::new(1000, &int).buffer(), eight.blocks(8), &sum);
    let all = Some(&eight);
    assert_eq!(crossings_of_eight(|hosts, _| Ok(composed::barrier(hosts))), [(0, 4), (4, 0)]);
    assert_eq!(crossings_of_eight(|hosts, _| Ok(composed::bcast(hosts, &one, 2))), [(2, 4)]);
    assert_eq!(
        crossings_of_eight(|hosts, rank| composed::reduce(hosts, &one, Some(&other).filter(|_| rank == 6), sum, 6)),
        [(0, 6)]
    );
    assert_eq!(crossings_of_eight(|hosts, _| Ok(composed::allreduce(hosts, &one, &other, sum))), [(0, 4), (4, 0)]);
    assert_eq!(
        crossings_of_eight(|hosts, rank| composed::gather(hosts, Some(&one), all.filter(|_| rank == 3), 3, 4000)),
        [(4, 3)]
    );
    assert_eq!(
        crossings_of_eight(|hosts, rank| composed::scatter(hosts, all.filter(|_| rank == 3), Some(&one), 3, 4000)),
        [(3, 4)]
    );
    assert_eq!(crossings_of_eight(|hosts, _| composed::allgather(hosts, Some(&one), &eight)), [(0, 4), (4, 0)]);
}
