"""What survivors see of a killed rank: errors that name it instead of hangs, and each other.

The launcher, which would end the job, is stopped meanwhile: as if it had not noticed yet.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from jobs import patient, until

pytestmark = pytest.mark.usefixtures("limosa")

PATIENCE = 30

POINT_TO_POINT = "recv recv-large recv-any send ssend flood irecv irecv-test isend waitany".split()
POINT_TO_POINT += "probe mprobe iprobe improbe".split()
BLOCKING = "barrier bcast reduce gather scatter allreduce allgather alltoall scan dup barrier-cold".split()
BLOCKING += [f"{name}-large" for name in "bcast reduce gather scatter allreduce allgather alltoall scan".split()]
BACKGROUND = "ibarrier ibarrier-test ibcast iallreduce ialltoall ilend pallreduce ibarrier-cold iallreduce-test".split()
BACKGROUND += "ibcast-large iallreduce-large ialltoall-large ilend-large pallreduce-large ilend-large-test".split()
WINDOWS = "win-fence win-lock win-start win-wait win-flush".split()
TOPOLOGIES = "neighbour neighbour-large inter-recv inter-any inter-barrier inter-bcast inter-bcast-large".split()
TOPOLOGIES += ["inter-allreduce"]
FILES = "file-open file-write file-read file-ordered file-size file-sync".split()
SOME = "recv send ssend probe barrier bcast-large allreduce-large iallreduce ilend-large".split()
BY_PACKETS = "win-get win-rget".split()
CARRIERS = [{"LIMOSA_DEVICE": "messages"}, {"LIMOSA_HOSTS": "2"}, {"LIMOSA_CMA": "0"}, {"LIMOSA_COLL": "p2p"}]


def end_of(report: Path) -> str:
    """The last line of a survivor's report, once it is there."""
    end = time.monotonic() + patient(PATIENCE)
    while time.monotonic() < end:
        text = report.read_text() if report.exists() else ""
        if text.endswith(("ok\n", "failed\n")):
            return text
        time.sleep(0.01)
    pytest.fail(f"{report.name} hangs; it said: {text!r}")


def until_they_wait(pids: list[int]) -> None:
    """Returns when each of these processes sleeps, or has polled for a while."""
    before = {pid: ticks(pid) for pid in pids}
    until(
        lambda: all(state_of(pid) == "S" or ticks(pid) - before[pid] >= 2 for pid in pids),
        "the survivors do not come to wait",
    )


def survive(
    job, program, tmp_path: Path, scene: str, env: dict[str, str], settle: float | None = None, n: int = 3
) -> None:
    """Kills rank 1 when the others wait for it, or `settle` seconds after they have begun."""
    running = job([program("deaths"), scene, tmp_path / "report"], n=n, options=["--on-hang=off"], env=env)
    pids = {int(rank): int(pid) for rank, pid in (line.split()[1:] for line in running.read_lines(n))}
    os.kill(running.process.pid, signal.SIGSTOP)
    if settle is None:
        until_they_wait([pids[rank] for rank in range(n) if rank != 1])
    else:
        time.sleep(settle)
    os.kill(pids[1], signal.SIGKILL)
    reports = [end_of(tmp_path / f"report.{rank}") for rank in range(n) if rank != 1]
    os.kill(running.process.pid, signal.SIGCONT)
    outcome = running.wait(PATIENCE)
    assert all(report.endswith("ok\n") for report in reports), reports
    assert outcome.code == 128 + signal.SIGKILL
    assert "rank 1" in outcome.err and "SIGKILL" in outcome.err


@pytest.mark.parametrize("wait", ["auto", "block", "poll"])
@pytest.mark.parametrize("scene", [*POINT_TO_POINT, *BLOCKING, *BACKGROUND, *WINDOWS])
def test_a_death_ends_what_needs_the_dead(job, program, tmp_path, scene, wait):
    survive(job, program, tmp_path, scene, {"LIMOSA_WAIT": wait})


@pytest.mark.parametrize("env", [{}, *CARRIERS], ids=str)
@pytest.mark.parametrize("scene", TOPOLOGIES)
def test_a_death_ends_what_neighbours_and_the_other_group_need(job, program, tmp_path, scene, env):
    survive(job, program, tmp_path, scene, env)


@pytest.mark.parametrize("env", CARRIERS, ids=str)
@pytest.mark.parametrize("scene", [*SOME, *WINDOWS])
def test_a_death_is_noticed_whatever_carries_the_messages(job, program, tmp_path, scene, env):
    survive(job, program, tmp_path, scene, env)


@pytest.mark.parametrize("env", [{}, *CARRIERS], ids=str)
@pytest.mark.parametrize("scene", FILES)
def test_a_death_ends_collective_calls_on_files(job, program, tmp_path, scene, env):
    survive(job, program, tmp_path, scene, env)


@pytest.mark.parametrize("env", [{}, *CARRIERS[:2]], ids=str)
@pytest.mark.parametrize("settle", [0.004 * i for i in range(8)])
def test_a_death_in_the_middle_of_collective_accesses_loses_nothing(job, program, tmp_path, settle, env):
    survive(job, program, tmp_path, "file-storm", env, settle=settle, n=4)


@pytest.mark.parametrize("scene", BY_PACKETS)
def test_nothing_is_written_after_a_death_has_ended_a_get(job, program, tmp_path, scene):
    survive(job, program, tmp_path, scene, {"LIMOSA_DEVICE": "messages"})


@pytest.mark.parametrize("env", CARRIERS[:2], ids=str)
@pytest.mark.parametrize("settle", [0.008 * i for i in range(4)])
@pytest.mark.parametrize("scene", ["storm", "storm-reductions", "win-storm"])
def test_all_survivors_get_the_same_error_whoever_hears_first_of_the_death(job, program, tmp_path, scene, settle, env):
    survive(job, program, tmp_path, scene, env, settle=settle, n=4)


@pytest.mark.parametrize("settle", [0.003 * i for i in range(12)])
@pytest.mark.parametrize(("scene", "n"), [("storm", 3), ("storm-reductions", 3), ("storm-reductions", 5)])
def test_a_death_in_the_middle_of_anything_ends_everything(job, program, tmp_path, scene, n, settle):
    survive(job, program, tmp_path, scene, {}, settle=settle, n=n)


def test_a_fatal_death_is_the_launchers_to_tell(job, program):
    """The ranks that need the dead have the default error handler: what is said is said once, and names the signal."""
    running = job([program("scene"), "wait"], n=4, options=["--on-hang=off"])
    pids = {int(rank): int(pid) for rank, pid in (line.split()[1:] for line in running.read_lines(4))}
    os.kill(running.process.pid, signal.SIGSTOP)
    os.kill(pids[2], signal.SIGKILL)
    time.sleep(0.1)
    os.kill(running.process.pid, signal.SIGCONT)
    outcome = running.wait(PATIENCE)
    assert outcome.code == 128 + signal.SIGKILL
    assert "rank 2" in outcome.err and "MPI_ERR_PROC_ABORTED" not in outcome.err


def test_a_death_counts_more_than_the_aborts_that_follow_it(job, program, tmp_path):
    """The launcher sees both at the same time."""
    running = job([program("deaths"), "abort", tmp_path / "report"], n=3)
    pids = {int(rank): int(pid) for rank, pid in (line.split()[1:] for line in running.read_lines(3))}
    os.kill(running.process.pid, signal.SIGSTOP)
    os.kill(pids[1], signal.SIGKILL)
    until(lambda: all(state_of(pids[rank]) in "ZX" for rank in (0, 2)), "the ranks do not abort")
    os.kill(running.process.pid, signal.SIGCONT)
    outcome = running.wait(PATIENCE)
    assert outcome.code == 128 + signal.SIGKILL, outcome.text
    assert "rank 1" in outcome.err and "SIGKILL" in outcome.err


@pytest.mark.parametrize("env", [{}, *CARRIERS], ids=str)
def test_ranks_of_a_job_that_ends_get_no_errors_of_its_end(job, program, env):
    outcome = job([program("scene"), "end-late"], n=3, env=env).wait(PATIENCE)
    assert outcome.code == 6, outcome.text
    assert outcome.out == "", outcome.text


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; of a process that is gone, those of a dead one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"]


def state_of(pid: int) -> str:
    return stat(pid)[0]


def ticks(pid: int) -> int:
    """The CPU time of a process, in hundredths of a second."""
    return sum(int(field) for field in stat(pid)[11:13])


def test_a_rank_that_has_finished_is_not_dead(job, program):
    outcome = job([program("deaths"), "finish", "nothing"], n=3).wait(PATIENCE)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("done") == 3
