"""Messages by a network between hosts: more ranks than processors, processes that come and go."""

from __future__ import annotations

import os
from collections.abc import Callable
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
    # Two processors, however many there are: who has fewer processors than ranks waits in another way.
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
