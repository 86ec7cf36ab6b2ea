"""Jobs on 32 hosts: the logins form a tree, and only hosts that exchange messages are connected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster import Cluster
from runner import Runner

COUNT = 32
HOSTS = f"node[1-{COUNT}]"
LIMIT = 300


@pytest.fixture(scope="module")
def hosts(needs_hosts: None) -> Iterator[Cluster]:
    with Cluster(COUNT) as made:
        yield made


@pytest.fixture(params=["file", "file:local", "fabric"])
def choice(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_job_on_many_hosts_starts_and_ends(run: Runner, program, device: str) -> None:
    variables = {"LIMOSA_DEVICE": run.device if device == "file" else device}
    done = run("-host", HOSTS, "-n", COUNT, program("around"), variables=variables).wait(LIMIT)
    assert (done.code, done.out, done.err) == (0, f"{COUNT} ranks on {COUNT} hosts: all data came\n", "")
    run.nothing_stays()


def test_couriers_connect_only_hosts_that_exchange_messages(run: Runner, program) -> None:
    job = run("-host", HOSTS, "-n", COUNT, program("pairs"), variables={"LIMOSA_DEVICE": "file:local"})
    assert job.read_lines(COUNT) == ["ready"] * COUNT
    called = {host.name: sum(" courier " in line for line in host.processes()) for host in run.cluster.hosts}
    # The first host of each pair calls the last one, also where the last one has something to send first. A host sees
    # the called program, and the shell or sshd that has started it.
    assert [name for name, count in called.items() if count] == ["node1", "node2", f"node{COUNT}"]
