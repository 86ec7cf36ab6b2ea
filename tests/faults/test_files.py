"""Files and killed ranks: what a completed sync has promised is there."""

from __future__ import annotations

import os
import signal
import struct
import time

import pytest

pytestmark = [pytest.mark.usefixtures("limosa"), pytest.mark.quiet]

RANKS, BLOCK, BLOCKS = 3, 1000, 60


def expected() -> bytes:
    """Give what the ranks have written in turns, block by block."""
    numbers = [
        rank * 1_000_000 + block * BLOCK + i for block in range(BLOCKS) for rank in range(RANKS) for i in range(BLOCK)
    ]
    return struct.pack(f"{len(numbers)}i", *numbers)


@pytest.mark.parametrize("env", [{}, {"LIMOSA_DEVICE": "messages"}], ids=str)
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("way", ["independent", "collective", "nonblocking", "ordered"])
def test_a_killed_rank_loses_nothing_that_was_synchronised(job, program, tmp_path, way, victim, env):
    path = tmp_path / "file"
    running = job([program("files"), way, path], n=RANKS, env=env)
    pids = {int(rank): int(pid) for rank, pid in (line.split()[1:] for line in running.read_lines(RANKS))}
    time.sleep(0.05)
    os.kill(pids[victim], signal.SIGKILL)
    outcome = running.wait(20)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert f"rank {victim}" in outcome.err and "SIGKILL" in outcome.err
    promised = expected()
    assert path.read_bytes()[: len(promised)] == promised
