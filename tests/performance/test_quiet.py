"""A rank that waits sleeps, is woken when there is something for it, and rarely for nothing: counted, not timed."""

from __future__ import annotations

import subprocess
import time

import pytest
from counting import HERE, compiled, tool
from jobs import PATIENCE, ranks_of

pytestmark = pytest.mark.quiet

RANKS = 8
ROUNDS = 20


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    if tool("mpicc") is None or tool("mpiexec") is None or tool("limosa") is None:
        pytest.skip("not run: the library is not installed here; hint: make venv")
    return compiled(HERE / "quiet.c", tmp_path_factory.mktemp("quiet"))


def test_a_blocked_receive_gives_up_its_processor_a_handful_of_times(quiet):
    done = subprocess.run(
        [tool("mpiexec"), "-n", "2", quiet, "receive"], capture_output=True, text=True, timeout=60 * PATIENCE
    )
    assert done.returncode == 0, done.stderr
    # It sleeps once for the second that it waits; the other threads of the library may each do something once.
    assert int(done.stdout.removeprefix("switches ")) <= 6


def test_sleeping_ranks_are_woken_about_once_per_barrier(quiet):
    command = [tool("mpiexec"), "--on-hang=off", "-n", str(RANKS), quiet, "barrier", str(ROUNDS)]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        patience = time.monotonic() + 60 * PATIENCE
        ranks: list[dict] = []
        # In the last barrier all ranks but the first sleep until that one has read a line. Earlier ones are left within
        # milliseconds.
        while time.monotonic() < patience and job.poll() is None:
            time.sleep(0.2)
            ranks = ranks_of(job.pid, tool("limosa"))
            if len(ranks) == RANKS and all(
                rank["state"] == "blocked" and rank["since_seconds"] > 1 for rank in ranks[1:]
            ):
                break
        else:
            pytest.fail(f"the ranks do not come to rest: {ranks}")
        for rank in ranks[1:]:
            # Two steps of a barrier may each have to be waited for, but no more; the wake-ups of start-up come on top.
            assert rank["wakeups"] <= 2 * ROUNDS + 10, rank
            assert rank["idle_wakeups"] <= ROUNDS // 4, rank
            assert rank["sleeps"] == rank["wakeups"] + 1, rank
        out, err = job.communicate("\n", timeout=30 * PATIENCE)
        assert job.returncode == 0, out + err
    finally:
        job.kill()
        job.wait()
