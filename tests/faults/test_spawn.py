"""Spawned processes that cannot be started or die, a launcher that dies, and an accept without a connection."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from jobs import patient

pytestmark = pytest.mark.usefixtures("limosa")

PATIENCE = 60


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pids: list[int]) -> bool:
    """Whether all of them end."""
    end = time.monotonic() + patient(PATIENCE)
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def pids_of(job, n: int) -> list[int]:
    """Reads `pid IS_SPAWNED PID` lines; gives the spawned ones last."""
    return [int(line.split()[2]) for line in sorted(job.read_lines(n))]


def test_a_program_that_is_missing_is_an_error(job, program):
    outcome = job([program("spawn"), "refused", "/no/such/program"], n=2).wait(PATIENCE)
    assert outcome.code == 0, outcome.text
    assert outcome.out.startswith("refused: ") and "/no/such/program" in outcome.out


def test_a_program_that_is_not_executable_is_an_error(job, program, tmp_path):
    file = tmp_path / "data.txt"
    file.write_text("no program\n")
    outcome = job([program("spawn"), "refused", file], n=2).wait(PATIENCE)
    assert outcome.code == 0, outcome.text
    assert outcome.out.startswith("refused: ") and str(file) in outcome.out


def test_processes_that_end_before_they_initialise_are_an_error(job, program):
    outcome = job([program("spawn"), "early"], n=2).wait(PATIENCE)
    assert (outcome.code, outcome.out) == (0, "refused\nrefused\n"), outcome.text


@pytest.mark.parametrize("by_itself", [True, False], ids=["raises", "killed"])
def test_the_death_of_a_spawned_process_ends_the_job(job, program, by_itself):
    running = job([program("spawn"), "die" if by_itself else "wait"], n=2, options=["--on-hang=off"])
    if not by_itself:
        os.kill(pids_of(running, 4)[3], signal.SIGKILL)
    outcome = running.wait(PATIENCE)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert "SIGKILL" in outcome.err


def test_a_killed_launcher_leaves_no_spawned_process(job, program):
    running = job([program("spawn"), "wait"], n=2, options=["--on-hang=off"])
    pids = pids_of(running, 4)
    os.kill(running.process.pid, signal.SIGKILL)
    assert ends(pids)


def test_an_accept_to_which_nobody_connects_is_named(job, program):
    env = {"LIMOSA_HANG_AFTER": "0.1", "LIMOSA_HANG_GRACE": "1"}
    outcome = job([program("spawn"), "accept"], n=2, options=["--on-hang=abort"], env=env).wait(PATIENCE)
    assert outcome.code == 86, outcome.text
    assert "this job may hang: ranks 0, 1 wait" in outcome.err
    assert "rank 0: MPI_Comm_accept" in outcome.err
    assert "rank 0 waits for another group to connect or accept" in outcome.err
