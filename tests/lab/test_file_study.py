"""The simulator of messages by files, against cases that can be computed by hand, and the study's page."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from limosa_lab.file_study import costs, figures, measure, operations, page, results, schemes
from limosa_lab.file_study.schemes import Costs, Shape
from limosa_lab.file_study.simulator import Condition, Delay, Server, Simulation, Use
from limosa_lab.libraries import Limosa

# Times that are easily added up. A look costs nothing and there is no time between two looks but the interval.
COSTS = Costs(
    local_create=1,
    local_look=0,
    byte=0,
    central_create=10,
    central_look=0,
    central_byte=0,
    central_width=1,
    interval=0.5,
    copy=100,
    copy_byte=0,
    latency=20,
    overhead=3,
    network_byte=0,
)


def test_a_server_serves_in_order_and_as_many_at_a_time_as_it_is_wide():
    for width, ends in ((1, [2, 4, 6]), (2, [2, 2, 4])):
        simulation, server, seen = Simulation(), Server(width), []

        def process(simulation=simulation, server=server, seen=seen):
            yield Use(server, 2)
            seen.append(simulation.now)

        for _ in range(3):
            simulation.start(process())
        assert simulation.run() == ends[-1]
        assert seen == ends
        assert (server.requests, server.busy) == (3, 6)


def test_a_condition_lets_all_who_wait_go_on_and_nobody_wait_again():
    simulation, door, seen = Simulation(), Condition(), []

    def guest(at):
        yield Delay(at)
        yield door
        seen.append((at, simulation.now))

    def host():
        yield Delay(5)
        simulation.fulfil(door)

    for process in (guest(1), guest(2), guest(9), host()):
        simulation.start(process)
    assert simulation.run() == 9
    assert seen == [(1, 5), (2, 5), (9, 9)]


def test_processes_that_wait_for_ever_are_an_error():
    simulation = Simulation()

    def process():
        yield Condition()

    simulation.start(process())
    with pytest.raises(RuntimeError, match="1 simulated processes"):
        simulation.run()


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_a_plain_broadcast_in_a_shared_file_system_writes_a_message_and_two_files_for_each_receiver(ranks):
    outcome = schemes.broadcast_central(Shape(ranks, 4), COSTS, 32)
    # The last lock is there after 1 + 2 (ranks - 1) files, and receivers look every half second.
    assert outcome.seconds == 10 * (1 + 2 * (ranks - 1))


def test_polling_takes_time_of_the_shared_file_system():
    costs = dataclasses.replace(COSTS, central_look=1)
    for ranks in (4, 16, 64):
        quiet = schemes.broadcast_central(Shape(ranks, 4), COSTS, 32)
        busy = schemes.broadcast_central(Shape(ranks, 4), costs, 32)
        assert busy.seconds > quiet.seconds + ranks
        assert busy.central_requests > 3 * (ranks - 1)


@pytest.mark.parametrize("look", [1e-5, 2e-4, 2e-3])
def test_looks_that_are_not_simulated_one_by_one_have_the_same_effect(monkeypatch, look):
    costs = dataclasses.replace(
        COSTS, copy=0.1, local_create=1e-4, local_look=1e-5, central_create=1e-3, central_look=look, interval=0.01
    )
    shape = Shape(96, 16)
    for name in ("central files", "local files", "local files, node-aware"):
        exact = schemes.BROADCASTS[name](shape, costs, 32)
        with monkeypatch.context() as patch:
            patch.setattr(schemes, "FEW", 0)
            computed = schemes.BROADCASTS[name](shape, costs, 32)
        assert computed.seconds == pytest.approx(exact.seconds, rel=0.25), name
        assert computed.central_requests == pytest.approx(exact.central_requests, rel=0.35), name


@pytest.mark.parametrize(("ranks", "per_host"), [(2, 2), (4, 4), (8, 4), (12, 4), (7, 3)])
def test_broadcasts_by_copies(ranks, per_host):
    shape = Shape(ranks, per_host)
    here, elsewhere = len(shape.members(0)), ranks - min(per_host, ranks)
    # In the root's host: a message and two files each; then message and lock, and two copies for each of the others.
    own = 1 + 2 * here if here else 0
    plain = schemes.broadcast_local(shape, COSTS, 32)
    assert plain.seconds == own + 2 + 200 * elsewhere
    hosts = len(shape.leaders())
    aware = schemes.broadcast_local_node_aware(shape, COSTS, 32)
    # Copies to the leaders come first; the last leader's multicast, or the root's own, ends it.
    last = len(shape.members(shape.leaders()[-1]))
    inside = max((1 + 2 * n if n else 0) for n in (here, last))
    assert aware.seconds == pytest.approx(2 + 200 * (hosts - 1) + inside, abs=0.5)
    assert (plain.central_requests, aware.central_requests) == (0, 0)


@pytest.mark.parametrize(("ranks", "levels"), [(2, 1), (3, 1), (4, 2), (8, 3), (1024, 10)])
def test_a_tree_over_the_network_takes_a_latency_per_level_when_sending_costs_nothing(ranks, levels):
    costs = dataclasses.replace(COSTS, overhead=0)
    assert schemes.broadcast_network(Shape(ranks, 1), costs, 32).seconds == 20 * levels


def test_a_tree_over_the_network_by_hand():
    # Rank 0 sends at 3 and 6; rank 1 gets its message at 20 and sends until 23; the last arrives at 40.
    assert schemes.broadcast_network(Shape(4, 1), COSTS, 32).seconds == 40
    # With two hosts: one message, then the hosts' memory.
    assert schemes.broadcast_network_node_aware(Shape(4, 2), COSTS, 32).seconds == 20 + 3


def test_aggregation_by_hand():
    # Four ranks of one host, a byte takes a second to write or read: 1 and 3 send 2 bytes each in the first round, one
    # after the other in the host's file system; then 2 sends 4.
    costs = dataclasses.replace(COSTS, byte=1, interval=0.25)
    outcome = schemes.aggregate(Shape(4, 4), costs, 8, central=False)
    # Writes of 3 s each and locks of 1 s: 1 and 3 have both written at 6, their locks come at 7 and 8. Reads of 2 s: at
    # 9 or 10, 2 has read at 10 or 12 and writes for 5 s, its lock takes 1 s, and 0 reads 4 s.
    assert 8 + 2 + 5 + 1 + 4 <= outcome.seconds <= 8 + 4 + 5 + 1 + 4 + 1


def test_aggregation_gathers_everything_for_any_number_of_ranks():
    for ranks in (1, 2, 3, 5, 13, 64):
        for central in (False, True):
            outcome = schemes.aggregate(Shape(ranks, 4), COSTS, 1 << 20, central)
            assert (outcome.seconds > 0) == (ranks > 1)


def test_the_advantage_of_knowing_the_hosts_grows_with_the_ranks():
    costs = dataclasses.replace(
        COSTS, copy=0.1, local_create=1e-4, central_create=1e-3, central_look=2e-4, interval=0.01
    )
    ratios = []
    for ranks in (64, 256, 1024):
        shape = Shape(ranks, 32)
        plain = schemes.broadcast_central(shape, costs, 32).seconds
        ratios.append(plain / schemes.broadcast_local_node_aware(shape, costs, 32).seconds)
    assert ratios == sorted(ratios) and ratios[-1] > 2 * ratios[0], ratios


def made_results() -> dict:
    """Give results as a study would have measured them."""
    times = {"reference, memory": 1e-3, "files, memory": 5e-5, "shared memory": 5e-7}
    samples = [
        {"bench": "pingpong", "series": name, "ranks": 2, "bytes": length, "seconds": [value, value, 2 * value]}
        for name, value in times.items()
        for length in (32, 4096)
    ]
    samples += [
        {"bench": "bcast", "series": name, "ranks": ranks, "bytes": 32, "seconds": [ranks * 5e-5]}
        for name in ("plain", "node-aware")
        for ranks in (2, 4, 8)
    ]
    samples += [
        {"bench": bench, "series": "local files, plain", "ranks": 2, "bytes": 1 << 20, "seconds": [0.01]}
        for bench in ("apart", "agg", "gather")
    ]
    samples.append({"bench": "bcast", "series": "plain", "ranks": 64, "trouble": "it took too long"})
    measured = {name: costs.Cost(1e-5, "measured") for name in ("local_create", "local_look", "byte")}
    return {
        "samples": samples,
        "costs": {name: dataclasses.asdict(cost) for name, cost in {**measured, **costs.ASSUMED}.items()},
        "operations": {"message": {"reference": {"openat": 3.0}, "files": {"openat": 2.0}}},
        "environment": {
            "cpu": "a processor",
            "busy_percent": 0.5,
            "processors": 2,
            "time": "today",
            "options": {"hosts": ["a", "b"]},
        },
    }


def test_the_page_says_what_was_measured_what_was_simulated_and_what_went_wrong(tmp_path):
    written = page.write(results.Results(made_results()), tmp_path)
    html, text = (file.read_text() for file in written)
    for said in (html, text):
        assert "20.0 times less than by plain message and lock files" in said
        assert "A distributed array of 1 MB gathered" in said and "on up to 2 hosts, measured" in said
        assert "64 ranks: it took too long" in said
        assert "simulated" in said and "assumed: scp over a new connection" in said
    assert html.count("<svg") == 9 and "<script" not in html


def test_every_series_is_in_the_figure_of_messages():
    found = made_results()
    names = [f"way {number}" for number in range(12)]
    found["samples"] += [
        {"bench": "pingpong", "series": name, "ranks": 2, "bytes": 32, "seconds": [1e-3]} for name in names
    ]
    drawn = figures.draw(results.Results(found))["Half a round trip, measured"]
    assert all(f">{name}<" in drawn for name in names)


def test_the_assumed_costs_give_the_published_advantage_within_a_factor_of_two():
    gains = results.advantage(results.Results(made_results()))
    for ranks, published in results.PAPER.items():
        assert published / 2 < gains[ranks] < published * 2, gains
    many = [gains[ranks] for ranks in results.SIMULATED if ranks >= 64]
    assert many == sorted(many)


def test_the_model_of_imitated_hosts_by_hand():
    # On one processor everything is done in turn: three messages of 4 s.
    assert schemes.broadcast_here(Shape(4, 2), 4, 1, 1, aware=False) == 12
    # One message of 4 s, and two of 1 s in memory.
    assert schemes.broadcast_here(Shape(4, 2), 4, 1, 1, aware=True) == 6
    # With a second processor the receivers work beside the root, which sends for 6 s; the last one receives for 2 s.
    assert schemes.broadcast_here(Shape(4, 2), 4, 1, 2, aware=False) == 8


def test_the_reference_exchanges_messages_and_leaves_nothing(tmp_path):
    program = measure.build_reference(tmp_path)
    folder = tmp_path / "messages"
    folder.mkdir()
    size = dataclasses.replace(measure.QUICK, sizes=(1, 5000), trips=3)
    found = measure.run_reference(program, folder, "memory", size)
    assert [(sample["bytes"], len(sample["seconds"])) for sample in found] == [(1, 2), (5000, 2)]
    assert list(folder.iterdir()) == []


def test_jobs_on_hosts_have_their_ranks_in_equal_numbers():
    cluster = measure.Cluster(("a", "b", "c"), Path("/shared"))
    assert cluster.options(2) == ("-host", "a:1,b:1")
    assert cluster.options(4) == ("-host", "a:2,b:2")
    assert cluster.options(16) == ("-host", "a:6,b:5,c:5")
    planned = measure.plan(measure.QUICK, {kind: Path(kind) for kind in (measure.DISK, measure.MEMORY)}, cluster)
    between = [run for run in planned if run.options]
    assert {run.variables["LIMOSA_DEVICE"] for run in between} == {"file:/shared", "file:local"}
    assert {run.bench for run in between} == {"pingpong", "apart", "agg", "gather"}


def test_operations_are_counted_that_name_the_folder():
    log = (
        '10 openat(AT_FDCWD</work>, "/messages/1/0/0.msg", O_RDONLY) = 3</messages/1/0/0.msg>\n'
        "10 read(3</messages/1/0/0.msg>, 1) = 1\n"
        '11 openat(AT_FDCWD</work>, "/elsewhere", O_RDONLY) = 3\n'
        "11 +++ exited with 0 +++\n"
    )
    assert operations.counted(log, Path("/messages")) == {"openat": 1, "read": 1}


def test_jobs_over_files_give_their_times_and_failures_are_named(tmp_path):
    variables = {"LIMOSA_DEVICE": f"file:{tmp_path}", "LIMOSA_HOSTS": "2"}
    for bench in ("pingpong", "bcast", "apart", "agg", "gather"):
        run = measure.Run(bench, "files", 2, variables, (2, 5000), 3)
        found = measure.run_job(Limosa(), run)
        assert [(sample["bytes"], len(sample["seconds"])) for sample in found] == [(2, 3), (5000, 3)], found
        assert all(seconds > 0 for sample in found for seconds in sample["seconds"])
    failed = measure.run_job(Limosa(), measure.Run("pingpong", "files", 2, variables, (-1,), 3))
    assert [set(sample) for sample in failed] == [{"bench", "series", "ranks", "trouble"}]
    assert list(tmp_path.iterdir()) == []
