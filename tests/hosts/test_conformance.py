"""Conformance programs with their ranks on two hosts: shared memory inside, files in a shared folder between, or a
network."""

from __future__ import annotations

import pytest
from cluster import DEVICES, Cluster
from conformance.c_programs import Programs, Run, runs_of


def chosen(*parts: str) -> pytest.MarkDecorator:
    """The runs with 3 or 4 ranks of programs whose names have one of these parts."""
    runs = [run for part in parts for run in runs_of() if part in run.program and run.np in (3, 4)]
    return pytest.mark.parametrize("run", runs, ids=[run.name for run in runs])


@pytest.fixture(scope="module")
def programs(hosts: Cluster) -> Programs:
    return Programs.on(hosts)


@chosen("p2p_modes", "comm", "coll_move", "rma_errors", "io_basic")
def test_program_on_two_hosts(programs: Programs, run: Run) -> None:
    programs.check(run)


@chosen("p2p_modes", "rma_errors")
def test_program_on_two_hosts_with_a_network(programs: Programs, needs_fabric: None, run: Run) -> None:
    programs.check(run, DEVICES["device=fabric"])
