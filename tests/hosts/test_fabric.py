"""Messages by a network between hosts with more ranks than processors."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import ROOT, Cluster, environment

BIN = ROOT / ".venv" / "bin"


@pytest.fixture(autouse=True, scope="module")
def needs_libfabric() -> None:
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError:
        pytest.skip("libfabric is not installed (on Debian: apt install libfabric1)")


@pytest.mark.parametrize("slots", ["node1:3,node2:1", "node1:4,node2:4"])
def test_a_host_may_have_more_ranks_than_processors(hosts: Cluster, program: Callable[[str], Path], slots: str) -> None:
    around = program("around")
    # Two processors, however many there are: who has fewer processors than ranks waits in another way.
    few = ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])
    command = ["taskset", "-c", few, BIN / "limosa", "run", "-host", slots, around]
    done = hosts.hosts[0].run(*command, env={**environment(), "LIMOSA_DEVICE": "fabric"}, timeout=300)
    ranks = sum(int(part.split(":")[1]) for part in slots.split(","))
    assert (done.returncode, done.stdout) == (0, f"{ranks} ranks on 2 hosts: all data came\n"), done.stderr
