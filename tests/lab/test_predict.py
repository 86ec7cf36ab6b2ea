"""Predictions by simulation, compared with what follows from LogGP by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limosa_lab.cli import main
from limosa_lab.errors import LabError
from limosa_lab.predict import networks
from limosa_lab.predict.networks import Costs
from limosa_lab.predict.schedules import ALGORITHMS
from limosa_lab.predict.simulation import Cluster, node_aware, simulate

COSTS = Costs(latency=10, overhead=1, gap=2, gap_per_byte=0.01)
FAST = Costs(latency=0.1, overhead=0.1, gap=0.1, gap_per_byte=0.001)


def one_per_host(p):
    return Cluster(p, p, FAST, COSTS)


@pytest.mark.parametrize(("p", "rounds"), [(2, 1), (8, 3), (9, 3), (1024, 10)])
def test_a_tree_takes_the_time_of_its_longest_path(p, rounds):
    """The last process is reached by as many messages, each begun when the one before has arrived."""
    time = simulate(ALGORITHMS["bcast"]["binomial tree"], 1, one_per_host(p))
    assert time == pytest.approx(rounds * COSTS.time(1), rel=1e-9)


def test_one_after_the_other_costs_an_overhead_each():
    """The last of 4 messages begins after three overheads."""
    time = simulate(ALGORITHMS["bcast"]["one after the other"], 1, one_per_host(5))
    assert time == pytest.approx(3 * COSTS.overhead + COSTS.time(1))


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


def test_leaders_and_hosts_are_added():
    cluster = Cluster(64, 8, FAST, COSTS)
    tree = ALGORITHMS["bcast"]["binomial tree"]
    time = node_aware(tree, tree, 32, cluster, "down")
    assert time == pytest.approx(3 * COSTS.time(32) + 3 * FAST.time(32))
    assert node_aware(tree, tree, 32, cluster, "both") == pytest.approx(3 * COSTS.time(32) + 6 * FAST.time(32))


def deliver(schedule, p, n, start):
    """Follow which ranks' data each rank has, if every message carries all that its sender has."""
    has = [set(part) for part in start]
    for step in schedule(p, n):
        sent = [set(has[sender]) for sender in step.senders]
        for receiver, part in zip(step.receivers, sent):
            has[receiver] |= part
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
    assert main(["predict", "--ranks", "8192", "--hosts", "256", "bcast", "32B", "1MB"]) == 0
    said = capsys.readouterr().out
    assert "8192 ranks on 256 hosts, predicted" in said
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
