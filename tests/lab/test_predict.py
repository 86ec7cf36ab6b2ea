"""Predictions by simulation, compared with what follows from LogGP by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from limosa_lab.predict import networks, schedules
from limosa_lab.predict.networks import Costs
from limosa_lab.predict.schedules import ALGORITHMS
from limosa_lab.predict.simulation import Cluster, node_aware, simulate

COSTS = Costs(latency=10, overhead=1, gap=2, gap_per_byte=0.01)
FAST = Costs(latency=0.1, overhead=0.1, gap=0.1, gap_per_byte=0.001)
CASES = [schedule for algorithms in ALGORITHMS.values() for schedule in algorithms.values()]


def one_per_host(p):
    return Cluster(p, p, FAST, COSTS)


@pytest.mark.parametrize(("p", "rounds", "overheads"), [(2, 1, 0), (8, 3, 0), (9, 3, 1), (1024, 10, 0)])
def test_a_tree_takes_the_time_of_its_longest_path(p, rounds, overheads):
    """The last process is reached by as many messages, each begun when the one before has arrived."""
    few = Costs(latency=10, overhead=1, gap=1, gap_per_byte=0.01)
    time = simulate(ALGORITHMS["bcast"]["binomial tree"], 1, Cluster(p, p, FAST, few))
    # Of 9 ranks, rank 0 sends to rank 8 first, and after an overhead to rank 4, from which the path is the longest.
    assert time == pytest.approx(rounds * few.time(1) + overheads * few.overhead, rel=1e-9)


def test_a_tree_crosses_hosts_as_often_as_there_are_doublings_of_hosts():
    """The farthest ranks first: on 256 hosts 8 messages by the network, and 5 inside a host."""
    fast_network = Costs(latency=8, overhead=3, gap=3, gap_per_byte=0)
    time = simulate(ALGORITHMS["bcast"]["binomial tree"], 32, Cluster(8192, 256, FAST, fast_network))
    assert time == pytest.approx(8 * fast_network.time(32) + 5 * FAST.time(32))


def test_one_after_the_other_costs_a_gap_each():
    """The last of 4 messages leaves after three others."""
    time = simulate(ALGORITHMS["bcast"]["one after the other"], 1, one_per_host(5))
    assert time == pytest.approx(3 * COSTS.gap + COSTS.time(1))


def test_a_ring_takes_as_many_rounds_as_there_are_others():
    time = simulate(ALGORITHMS["allgather"]["ring"], 800, one_per_host(8))
    assert time == pytest.approx(7 * COSTS.time(100))


def test_messages_of_one_host_wait_for_its_network_card():
    """4 ranks of one host send to 4 of another at the same time: the last waits for three others."""
    cluster = Cluster(8, 2, FAST, COSTS)
    far = simulate(ALGORITHMS["barrier"]["dissemination"], 0, cluster)
    near = simulate(ALGORITHMS["barrier"]["dissemination"], 0, Cluster(8, 1, FAST, COSTS))
    assert near == pytest.approx(3 * FAST.time(0))
    # In the third round all send to the other host.
    assert far > COSTS.time(0) + 3 * COSTS.gap


@given(st.sampled_from(CASES), st.integers(1, 40), st.integers(1, 12), st.sampled_from([0.0, 64.0, 1e6]))
def test_a_network_card_is_shared_by_all_messages(case, p, hosts, n):
    """No algorithm ends before each card has carried what it has to carry, message by message."""
    hosts = min(hosts, p)
    cluster, leaves, enters = Cluster(p, hosts, FAST, COSTS), np.zeros(hosts), np.zeros(hosts)
    for step in case(p, n):
        senders, receivers = cluster.host_of(step.senders), cluster.host_of(step.receivers)
        busy = np.maximum(COSTS.gap, COSTS.transfer(step.bytes)) * (senders != receivers)
        np.add.at(leaves, senders, busy)
        np.add.at(enters, receivers, busy)
    busiest = max(leaves.max(), enters.max())
    # The last message need not keep the card for the whole gap.
    assert simulate(case, n, cluster) >= (busiest - COSTS.gap) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("operation", "name", "ranks", "hosts", "n", "share"),
    [
        ("allreduce", "ring", 4, 2, 16e6, 2 * 3 / 4),
        ("allgather", "ring", 4, 2, 16e6, 3 / 4),
        ("allreduce", "ring", 8, 4, 64e6, 2 * 7 / 8),
        ("bcast", "one after the other", 8, 8, 1e6, 7),
    ],
)
def test_no_host_exceeds_the_bandwidth_of_its_network(operation, name, ranks, hosts, n, share):
    network = networks.known()["ethernet-10g"]
    time = simulate(ALGORITHMS[operation][name], n, Cluster(ranks, hosts, networks.known()["memory"], network))
    assert time >= 0.999 * share * n * network.gap_per_byte


def test_ranks_are_dealt_to_all_hosts():
    for p, hosts in ((9, 8), (10, 4), (8, 2), (7, 7)):
        cluster = Cluster(p, hosts, FAST, COSTS)
        of = cluster.host_of(np.arange(p))
        counts = np.bincount(of, minlength=hosts)
        assert counts.max() - counts.min() <= 1
        assert (np.diff(of) >= 0).all()
        assert cluster.leaders().tolist() == [int(np.flatnonzero(of == host)[0]) for host in range(hosts)]


def test_leaders_and_hosts_go_one_after_the_other():
    cluster = Cluster(64, 8, FAST, COSTS)
    bcast, reduce = ALGORITHMS["bcast"]["binomial tree"], ALGORITHMS["reduce"]["binomial tree"]
    tree = 3 * COSTS.time(32) + 3 * FAST.time(32)
    assert node_aware((None, bcast, bcast), 32, cluster) == pytest.approx(tree)
    assert node_aware((reduce, reduce, None), 32, cluster) == pytest.approx(tree)
    both = node_aware((reduce, ALGORITHMS["allreduce"]["recursive doubling"], bcast), 32, cluster)
    assert both == pytest.approx(tree + 3 * FAST.time(32))
    # Of hosts with 3, 2, 2 and 2 ranks the last one gets the message last.
    uneven = node_aware((None, bcast, bcast), 32, Cluster(9, 4, FAST, COSTS))
    assert uneven == pytest.approx(2 * COSTS.time(32) + FAST.time(32))


# --- The algorithms: against what Limosa and MPICH do ----------------------------------------------------------------

# What the crate limosa-coll calls an algorithm, and what is simulated.
LIMOSAS = {
    ("bcast", "linear"): "one after the other",
    ("bcast", "binomial"): "binomial tree",
    ("bcast", "scatter_exchange"): "scatter and exchange",
    ("reduce", "binomial"): "binomial tree",
    ("reduce", "binomial_rotated"): "binomial tree",
    ("reduce", "sliced"): "slices",
    ("allreduce", "recursive_doubling"): "recursive doubling",
    ("allreduce", "sliced"): "slices",
    ("scatter", "linear"): "one after the other",
    ("scatter", "binomial"): "binomial tree",
    ("gather", "linear"): "all to one",
    ("gather", "binomial"): "binomial tree",
    ("allgather", "exchange"): "exchange",
    ("allgather", "bruck"): "Bruck",
    ("allgather", "ring"): "ring",
    ("alltoall", "exchange"): "exchange",
    ("barrier", "dissemination"): "dissemination",
}


def limosas():
    """Read what the tests of limosa-coll have written: the steps of each rank by operation, algorithm and ranks."""
    found, case = {}, {}
    for line in (Path(__file__).parent / "data" / "schedules.txt").read_text().splitlines():
        if line[0].isdigit():
            rank, _, steps = line.partition(":")
            case[int(rank)] = [
                (word[0], *map(int, word[1:].split(":"))) if word != "w" else ("w",) for word in steps.split()
            ]
        elif not line.startswith("#"):
            operation, name, ranks = line.split()
            case = found.setdefault((operation, name, int(ranks)), {})
    return found


def steps_of(rounds, p):
    """Give the same of a simulated schedule."""
    steps = [[] for _ in range(p)]
    for step in rounds:
        for sender, receiver, n in zip(step.senders.tolist(), step.receivers.tolist(), step.bytes.tolist()):
            steps[receiver].append(("r", sender, n))
            steps[sender].append(("s", receiver, n))
        if step.waits:
            for of_rank in steps:
                of_rank.append(("w",))
    return steps


def order(steps):
    """Give a rank's sends in order, each with what must have arrived before, and all that it receives."""
    sends, posted, arrived = [], [], []
    for step in steps:
        if step[0] == "w":
            arrived, posted = arrived + posted, []
        elif step[0] == "r":
            posted.append(step[1:])
        else:
            sends.append((step[1:], frozenset(arrived)))
    return sends, sorted(arrived + posted)


@pytest.mark.parametrize("case", limosas(), ids=lambda case: "-".join(map(str, case)))
def test_what_is_simulated_of_limosa_is_what_limosa_does(case):
    operation, name, p = case
    schedule = ALGORITHMS[operation][LIMOSAS[operation, name]]
    # Blocks of 64 bytes; of operations with one message it has as many as there are ranks.
    simulated = steps_of(schedule(p, 64.0 * p if operation != "barrier" else 0.0), p)
    for rank, steps in limosas()[case].items():
        assert order(simulated[rank]) == order(steps), (case, rank)


def rounds(operation, name, p, n):
    return [
        sorted(zip(step.senders.tolist(), step.receivers.tolist(), step.bytes.tolist()))
        for step in ALGORITHMS[operation][name](p, n)
    ]


def test_rabenseifner_halves_at_doubling_distances():
    """MPICH's `reduce_scatter_allgather` and `reduce_scatter_gather`, for 4 ranks and for one more."""
    halving = [[(0, 1, 32), (1, 0, 32), (2, 3, 32), (3, 2, 32)], [(0, 2, 16), (1, 3, 16), (2, 0, 16), (3, 1, 16)]]
    assert rounds("allreduce", "Rabenseifner", 4, 64) == [*halving, *reversed(halving)]
    assert rounds("reduce", "Rabenseifner", 4, 64) == [*halving, [(2, 0, 16), (3, 1, 16)], [(1, 0, 32)]]
    # The first two are one place; of these the odd rank works in an allreduce, and rank 0, the root, in a reduce.
    assert rounds("allreduce", "Rabenseifner", 5, 64)[:2] == [
        [(0, 1, 64)],
        [(1, 2, 32), (2, 1, 32), (3, 4, 32), (4, 3, 32)],
    ]
    assert rounds("allreduce", "Rabenseifner", 5, 64)[-1] == [(1, 0, 64)]
    assert rounds("reduce", "Rabenseifner", 5, 64)[0] == [(1, 0, 64)]
    assert rounds("reduce", "Rabenseifner", 5, 64)[-1] == [(2, 0, 32)]


def test_pairwise_exchanges_go_by_pairs_among_a_power_of_two():
    assert [[receiver for _, receiver, _ in step] for step in rounds("alltoall", "pairwise", 4, 4)] == [
        [1, 0, 3, 2],
        [2, 3, 0, 1],
        [3, 2, 1, 0],
    ]
    assert [receiver for _, receiver, _ in rounds("alltoall", "pairwise", 3, 3)[1]] == [2, 0, 1]


def test_bruck_sends_the_blocks_whose_number_has_the_bit():
    assert [step[0] for step in rounds("alltoall", "Bruck", 5, 5)] == [(0, 1, 2), (0, 2, 2), (0, 4, 1)]


def test_pipelines_pass_segments_on():
    """In a chain and in a tree with the children 2 r + 1 and 2 r + 2; the last segment has the rest."""
    segment = schedules.SEGMENT
    n = 2 * segment + 10
    assert rounds("bcast", "chain, segments", 3, n) == [
        [(0, 1, segment)],
        [(0, 1, segment), (1, 2, segment)],
        [(0, 1, 10), (1, 2, segment)],
        [(1, 2, 10)],
    ]
    assert rounds("reduce", "chain, segments", 3, segment) == [[(2, 1, segment)], [(1, 0, segment)]]
    assert rounds("bcast", "binary tree, segments", 6, segment) == [
        [(0, 1, segment)],
        [(0, 2, segment)],
        [(1, 3, segment), (2, 5, segment)],
        [(1, 4, segment)],
    ]
    edges = {(a, b) for step in rounds("bcast", "binary tree, segments", 100, n) for a, b, _ in step}
    assert edges == {((rank - 1) // 2, rank) for rank in range(1, 100)}


@given(st.integers(1, 70), st.sampled_from([1.0, 1e5, 3e5]))
def test_pipelines_carry_all_bytes_to_each_rank(p, n):
    for name in ("binary tree, segments", "chain, segments"):
        got = np.zeros(p)
        for step in ALGORITHMS["bcast"][name](p, n):
            # A rank has received at least as much as it has sent on.
            np.add.at(got, step.receivers, step.bytes)
        assert got[1:] == pytest.approx(n)


def deliver(schedule, p, n, start):
    """Follow which ranks' data each rank has, if every message carries all that its sender has."""
    has, arriving = [set(part) for part in start], [set() for _ in start]
    for step in schedule(p, n):
        for sender, receiver in zip(step.senders, step.receivers):
            arriving[receiver] |= has[sender]
        if step.waits:
            has = [known | more for known, more in zip(has, arriving)]
    return has


@given(st.integers(1, 70))
def test_every_schedule_brings_the_data_where_they_belong(p):
    own = [{rank} for rank in range(p)]
    everything = set(range(p))
    for name, algorithms in ALGORITHMS.items():
        for schedule in algorithms.values():
            root = [{0}] + [set()] * (p - 1)
            has = deliver(schedule, p, 1024.0, root if name in ("bcast", "scatter") else own)
            if name in ("bcast", "scatter"):
                assert all(0 in part for part in has), (name, p)
            elif name in ("reduce", "gather"):
                assert has[0] == everything, (name, p)
            else:
                assert all(part == everything for part in has), (name, p)


@given(st.integers(1, 70))
def test_a_rank_sends_and_receives_once_a_round(p):
    for algorithms in ALGORITHMS.values():
        for schedule in algorithms.values():
            for step in schedule(p, 64.0):
                assert len(np.unique(step.senders)) == len(step.senders) == len(step.receivers)
                assert len(np.unique(step.receivers)) == len(step.receivers)
                assert (step.senders != step.receivers).all()


@given(st.integers(2, 70))
def test_scatter_and_gather_move_every_block_over_the_root_once(p):
    for name in ("scatter", "gather"):
        steps = list(ALGORITHMS[name]["binomial tree"](p, float(p)))
        ends = [step.senders if name == "scatter" else step.receivers for step in steps]
        moved = sum(step.bytes[end == 0].sum() for step, end in zip(steps, ends))
        assert moved == pytest.approx(p - 1)


# --- The command -------------------------------------------------------------------------------------------------


def test_command_predicts(capsys):
    assert main(["predict", "--ranks", "512", "--hosts", "16", "bcast", "32B", "1MB"]) == 0
    said = capsys.readouterr().out
    assert "512 ranks on 16 hosts, predicted" in said
    assert "hosts and leaders" in said
    assert "Predicted, not measured" in said
    assert "10 Gbit/s" in said


def test_more_networks_come_from_a_file(tmp_path, capsys):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"mine": {"latency": 1000, "overhead": 1, "gap": 1, "gap_per_byte": 0.1}}))
    assert (
        main(["predict", "--networks", str(file), "--network", "mine", "--ranks", "4", "--hosts", "4", "barrier"]) == 0
    )
    assert "2 ms" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--ranks", "4", "--hosts", "5", "bcast", "8"], "there are only 4 ranks"),
        (["--ranks", "4", "bcast"], "a size is missing"),
        (["--ranks", "4", "--network", "avian", "bcast", "8"], "there is no network `avian`"),
        (["--ranks", "4", "--models", "/none", "bcast", "8"], "cannot read"),
        (["--ranks", "4", "--networks", "/none", "bcast", "8"], "cannot read /none"),
    ],
)
def test_what_cannot_be_predicted_is_said(words, message, capsys):
    assert main(["predict", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--ranks", "0", "barrier"], ["--ranks", "4", "bcast", "8X"], ["--ranks", "4", "sum"]]
)
def test_wrong_words_are_refused(words, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["predict", *words])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "text", ["{", '{"x": 3}', '{"x": {"latency": -1, "overhead": 0, "gap": 0, "gap_per_byte": 0}}']
)
def test_damaged_networks_are_an_error(tmp_path, text):
    file = tmp_path / "networks.json"
    file.write_text(text)
    with pytest.raises(LabError):
        networks.read(file)
