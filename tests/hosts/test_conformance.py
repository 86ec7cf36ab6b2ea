"""Conformance programs with their ranks on two hosts: shared memory inside, files in a shared folder between, or a
network."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import ROOT, Cluster, environment

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("part", ["p2p_modes", "comm", "coll_move", "rma_errors", "io_basic"])
def test_conformance_on_two_hosts(hosts: Cluster, part: str) -> None:
    run_on_two_hosts(hosts, part, {})


@pytest.mark.parametrize("part", ["p2p_modes", "rma_errors"])
def test_conformance_on_two_hosts_with_a_network(hosts: Cluster, needs_fabric: None, part: str) -> None:
    run_on_two_hosts(hosts, part, {"BETWEEN_HOSTS": "fabric"})


def run_on_two_hosts(hosts: Cluster, part: str, variables: dict[str, str]) -> None:
    env = {**environment(), "SHARED": str(hosts.shared), "TMPDIR": str(hosts.shared), **variables}
    command = [ROOT / ".venv/bin/python", ROOT / "tests/conformance/run", "--mpiexec", HERE / "mpiexec"]
    done = hosts.hosts[0].run(*command, "-k", part, "-n", "3", "-n", "4", "--time-scale", "3", env=env, timeout=900)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout + done.stderr
