"""Messages by a network between hosts: more ranks than processors, processes that come and go."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import ROOT, Cluster, environment
from runner import Runner

BIN = ROOT / ".venv" / "bin"
DEVICE = "fabric"

#: How often processes are spawned.
ROUNDS = 300 if os.environ.get("FULL") else 20


pytestmark = pytest.mark.usefixtures("needs_fabric")


@pytest.mark.parametrize("slots", ["node1:3,node2:1", "node1:4,node2:4"])
def test_a_host_may_have_more_ranks_than_processors(hosts: Cluster, program: Callable[[str], Path], slots: str) -> None:
    around = program("around")
    # Two processors, however many there are: a job with fewer processors than ranks waits in another way.
    few = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    command = ["taskset", "-c", few, BIN / "limosa", "run", "-host", slots, around]
    done = hosts.hosts[0].run(*command, env={**environment(), "LIMOSA_DEVICE": "fabric"}, timeout=300)
    ranks = sum(int(part.split(":")[1]) for part in slots.split(","))
    assert (done.returncode, done.stdout) == (0, f"{ranks} ranks on 2 hosts: all data came\n"), done.stderr


@pytest.mark.parametrize("device", ["fabric", "shm,fabric"])
def test_spawned_processes_connect_with_all_whoever_is_first(run: Runner, program, device: str) -> None:
    words = ["-host", "node1:2,node2:2", "--universe-size", "1000", program("later"), "again", ROUNDS]
    done = run(*words, variables={"LIMOSA_DEVICE": device}).wait(5 * ROUNDS)
    assert (done.code, done.out, done.err) == (0, f"{ROUNDS} times\n", "")
    run.nothing_stays()


@pytest.mark.parametrize("host", ["node1", "node2"])
def test_a_send_to_a_spawned_process_that_has_left_ends(run: Runner, program, host: str) -> None:
    done = run("-host", "node1,node2", program("later"), "leave", host).wait(60)
    said = "MPI_Send: process 3 cannot be reached any more: it has ended by MPI_Finalize\n"
    assert (done.code, done.out, done.err) == (0, said, "")
    run.nothing_stays()


@pytest.fixture
def astray(hosts: Cluster) -> Iterator[None]:
    """Each host has another interface with the same address, whose network leads to no other host."""
    make = (
        "ip link add nat0 type veth peer name behind && ip link set behind up && "
        "ip address add 10.0.2.15/24 dev nat0 && ip link set nat0 up"
    )
    for host in hosts.hosts:
        assert host.run("sh", "-c", make).returncode == 0
    yield
    for host in hosts.hosts:
        host.run("ip", "link", "delete", "nat0")


@pytest.mark.usefixtures("astray")
def test_hosts_exchange_messages_by_the_interface_of_the_logins(run: Runner, program) -> None:
    done = run("-host", "node1,node2", program("around")).wait(30)
    assert (done.code, done.out) == (0, "2 ranks on 2 hosts: all data came\n"), done.err


@pytest.mark.parametrize("why", ["Connection refused", "no answer within 3 s"])
@pytest.mark.usefixtures("astray")
def test_an_interface_that_does_not_reach_the_other_host_is_named(run: Runner, program, why: str) -> None:
    if why.startswith("no answer"):
        # Each host has an address of its own, and knows where to send what is for the other one.
        for host, other in zip(run.cluster.hosts, reversed(run.cluster.hosts), strict=True):
            change = (
                f"ip address flush dev nat0; ip address add 10.0.2.{host.number}/24 dev nat0; "
                f"ip neighbour add 10.0.2.{other.number} lladdr 02:00:00:00:00:01 dev nat0"
            )
            assert host.run("sh", "-c", change).returncode == 0
    variables = {"LIMOSA_FABRIC_INTERFACE": "nat0", "LIMOSA_HOST_LIMIT": "3"}
    done = run("-host", "node1,node2", program("around"), variables=variables).wait(30)
    assert done.code != 0
    assert f"from the interface nat0 ({why}): a firewall between the hosts" in done.err, done.err


@pytest.mark.parametrize("hosts_of_ranks", ["node1:2", "node1,node2"])
def test_a_rank_that_leaves_without_init_is_told(run: Runner, program, hosts_of_ranks: str) -> None:
    done = run("-host", hosts_of_ranks, "-n", "1", program("around"), ":", "-n", "1", "true").wait(30)
    assert "exited without calling MPI_Init, and all others wait" in done.err, done.err
