"""Files, killed ranks and file systems in trouble: what a completed sync has promised is there."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

RANKS, BLOCK, BLOCKS = 3, 1000, 60
CARRIERS = [{}, {"LIMOSA_DEVICE": "messages"}, {"LIMOSA_HOSTS": "2"}, {"LIMOSA_CMA": "0"}]


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


def mounted(folder, how: str) -> list[str]:
    """The start of a command that sees a file system of its own in `folder`."""
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    line = [*own, "sh", "-c", f'{how} && exec "$@"', "sh"]
    tried = subprocess.run([*line, "true"], capture_output=True, text=True, cwd=folder)
    if tried.returncode != 0:
        pytest.skip(f"file systems cannot be mounted here: {tried.stderr.strip()}")
    return line


def look_at(running, n: int) -> None:
    outcome = running.wait(60)
    assert outcome.code == 0, outcome.text
    assert sorted(outcome.out.splitlines()) == [f"rank {rank} done" for rank in range(n)]


@pytest.mark.parametrize("env", CARRIERS, ids=str)
@pytest.mark.parametrize("n", [1, 3])
def test_a_full_disk_is_told_at_all_ranks(job, program, tmp_path, n, env):
    wrapper = mounted(tmp_path, f"mount -t tmpfs -o size=2m none {tmp_path}")
    look_at(job([program("storage"), "full", tmp_path], n=n, env=env, wrapper=wrapper), n)


@pytest.mark.parametrize("env", CARRIERS, ids=str)
def test_a_read_only_file_system_is_told_at_all_ranks(job, program, tmp_path, env):
    how = f"mount -t tmpfs none {tmp_path} && echo data > {tmp_path}/data && mount -o remount,ro {tmp_path}"
    look_at(job([program("storage"), "read-only", tmp_path], n=3, env=env, wrapper=mounted(tmp_path, how)), 3)


@pytest.mark.parametrize("env", CARRIERS, ids=str)
def test_an_open_file_may_be_deleted(job, program, tmp_path, env):
    look_at(job([program("storage"), "deleted", tmp_path], n=3, env=env), 3)
