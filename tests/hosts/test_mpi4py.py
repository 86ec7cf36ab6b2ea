"""A part of mpi4py's own suite with its ranks on two hosts, by each device between them."""

from __future__ import annotations

import subprocess

import pytest
from cluster import ROOT, environment


@pytest.mark.parametrize("device", ["device=file", "device=file:local", "device=fabric"])
def test_objects_travel_between_hosts(needs_hosts: None, request: pytest.FixtureRequest, device: str) -> None:
    if device == "device=fabric":
        request.getfixturevalue("needs_fabric")
    command = [ROOT / ".venv/bin/python", ROOT / "tests/mpi4py/run", "--cluster", "2", "-n", "2", "--variants", device]
    command += ["-k", "test_p2p_obj.", "-k", "test_cco_obj.", "-k", "test_dynproc", "--limit", "600"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout + done.stderr
