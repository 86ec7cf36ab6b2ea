"""Jobs that never outlive their test: time limits, process groups, what is left over, and the environments of jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
LIMOSA = BIN / "limosa"

#: Limits are for an idle machine. Other tests run beside, so a job has so many times as long before it counts as hung;
#: limits of `subprocess.run` have it in their number.
PATIENCE = 5

#: No limit is shorter, in seconds of an idle machine: a busy one may stop any process for seconds.
SHORTEST = 30


def patient(limit: float) -> float:
    """The seconds that are waited for what takes at most so many on an idle machine."""
    return max(limit, SHORTEST) * PATIENCE


#: Environments in which the library takes other ways: how ranks reach each other, and how they wait. `{folder}` is one
#: for messages.
VARIANTS: dict[str, dict[str, str]] = {
    "default": {},
    "cma=0": {"LIMOSA_CMA": "0"},
    "wait=poll": {"LIMOSA_WAIT": "poll"},
    "wait=block": {"LIMOSA_WAIT": "block"},
    "device=messages": {"LIMOSA_DEVICE": "messages"},
    "hosts=2": {"LIMOSA_HOSTS": "2"},
    "device=fabric": {"LIMOSA_DEVICE": "fabric", "LIMOSA_HOSTS": "4096"},
    "device=fabric+hosts=2": {"LIMOSA_DEVICE": "fabric", "LIMOSA_HOSTS": "2"},
    "device=file": {"LIMOSA_DEVICE": "file:{folder}"},
    "device=file+hosts=2": {"LIMOSA_DEVICE": "file:{folder}", "LIMOSA_HOSTS": "2"},
}


@dataclass
class Outcome:
    """What a finished job left behind."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Job:
    """A running job in a session of its own."""

    def __init__(self, command: list[str], **options) -> None:
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        self.process = subprocess.Popen(command, text=True, errors="replace", start_new_session=True, **options)

    def wait(self, limit: float) -> Outcome:
        """The outcome; the test fails if the job is still running after `patient(limit)` seconds."""
        __tracebackhide__ = True
        try:
            return self.outcome(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            text = "".join(filter(None, self.process.communicate()))
            raise AssertionError(f"the job did not end within {patient(limit):g} s; its output:\n{text}") from None

    def outcome(self, limit: float) -> Outcome:
        """The outcome; raises `TimeoutExpired` if the job is still running after `patient(limit)` seconds."""
        out, err = self.process.communicate(timeout=patient(limit))
        return Outcome(self.process.returncode, out or "", err or "")

    def read_lines(self, n: int) -> list[str]:
        """The next n lines of the standard output."""
        return [self.process.stdout.readline().rstrip("\n") for _ in range(n)]

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(2)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run_job(command: list[str], limit: float, **options) -> Outcome:
    """The outcome of a job, of which nothing is left; the test fails as in `Job.wait`."""
    __tracebackhide__ = True
    job = Job(command, **options)
    try:
        return job.wait(limit)
    finally:
        job.kill()


SLEEPING_YIELD = "#include <time.h>\nint sched_yield(void) { return nanosleep(&(struct timespec){0, 50000}, 0); }\n"


def sleeping_yield(folder: Path) -> Path:
    """A library for LD_PRELOAD with which MPICH's ranks leave the processors to others while they wait.

    They poll and call `sched_yield`. With more ranks than processors this takes most of a job's CPU time.
    """
    module = folder / "sleeping_yield.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", module]
    subprocess.run(command, input=SLEEPING_YIELD, text=True, check=True)
    return module


def until(is_so: Callable[[], bool], what: str, limit: float = 30) -> None:
    """Returns when it is so; the test fails with `what` if that takes longer than `patient(limit)` seconds."""
    end = time.monotonic() + patient(limit)
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def ranks_of(launcher: int, limosa: Path = LIMOSA) -> list[dict]:
    """What `limosa ps` says of the ranks of a job, whose launcher is this process; nothing if it is not there."""
    command = [limosa, "ps", "--format", "json"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30 * PATIENCE).stdout
    return next((job["ranks"] for job in json.loads(listed) if job["launcher"] == launcher), [])


def waiting_ranks(launcher: int, seconds: float = 0.0) -> set[int]:
    """The ranks of a job that have waited in the library for so many seconds."""
    ranks = ranks_of(launcher)
    return {each["rank"] for each in ranks if each["state"] == "blocked" and each["since_seconds"] >= seconds}


def until_ranks_wait(launcher: int, ranks: set[int], seconds: float = 0.0) -> None:
    """Returns when these ranks of a job have waited in the library for so many seconds."""
    until(lambda: ranks <= waiting_ranks(launcher, seconds), f"ranks {ranks} do not come to wait in the library")


def until_it_waits(process: int) -> None:
    """Returns when the first thread of a process has slept for half a second, has polled for as long, or has ended."""

    def fields() -> list[str]:
        return Path(f"/proc/{process}/task/{process}/stat").read_text().rpartition(")")[2].split()

    def ticks() -> int:
        """Its processor time, in hundredths of a second."""
        return sum(map(int, fields()[11:13]))

    def sleeps() -> bool:
        for _ in range(10):
            if fields()[0] != "S":
                return False
            time.sleep(0.05)
        return True

    before = ticks()
    until(lambda: fields()[0] in "ZX" or sleeps() or ticks() - before >= 50, f"process {process} does not come to wait")


def until_rank_waits_in(launcher: int, rank: int, call: str) -> None:
    """Returns when a thread of this rank of a job waits in this MPI function."""

    def waits() -> bool:
        return any(
            thread["call"] == call for each in ranks_of(launcher) if each["rank"] == rank for thread in each["threads"]
        )

    until(waits, f"rank {rank} does not come to wait in {call}")


def kill_rank_unseen(launcher: int, victim: int, witness: int) -> None:
    """Kills a rank, and lets the launcher know only after a second one has noticed that waits for it in the library."""
    until_ranks_wait(launcher, {witness})
    until(  # before, only the launcher watches it
        lambda: any(each["rank"] == victim and each["state"] != "no MPI" for each in ranks_of(launcher)),
        f"rank {victim} does not start MPI",
    )
    process = next(each["process"] for each in ranks_of(launcher) if each["rank"] == victim)
    os.kill(launcher, signal.SIGSTOP)
    try:
        os.kill(process, signal.SIGKILL)
        until(lambda: witness not in waiting_ranks(launcher), f"rank {witness} does not notice the death")
    finally:
        os.kill(launcher, signal.SIGCONT)
