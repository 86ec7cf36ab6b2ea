"""One run of a program: start the job, wait for it at most so long, read what it printed.

Contract
--------
* What a job printed before it failed or was stopped is kept.
* Nothing of a job is left behind: a rank that went on spinning would spoil every later measurement. This process adopts
  what the launcher leaves (as a "subreaper"), kills it and says so in the record.
* Jobs get the variables of this process, except those by which an outer job or another library would be taken for
  theirs.
"""

import contextlib
import ctypes
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from limosa_lab import machine
from limosa_lab.errors import LabError
from limosa_lab.libraries import Library
from limosa_lab.records import Run, Sample, parse_line
from limosa_lab.schedule import Task
from limosa_lab.wording import ranks

_PR_SET_CHILD_SUBREAPER = 36
_GRACE = 5.0  # seconds for a launcher to end its job when asked to
_TAIL = 2000  # characters of the standard error that are kept


@dataclass(frozen=True)
class Prepared:
    """A library that is ready to run: its version is known and the number of processors it may use."""

    library: Library
    version: str
    processors: int


def adopt_orphans() -> None:
    """Make processes whose parent ends children of this one, so that they can be found and ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    prepared: Prepared,
    binary: Path,
    task: Task,
    options: Sequence[str],
    round_number: int,
    limit: float,
    more: Mapping[str, str] | None = None,
) -> tuple[Run, list[Sample]]:
    """Run a task once with one library.

    Parameters
    ----------
    options
        Options for the program.
    limit
        Longest time in seconds.
    more
        Further variables for the job.

    Returns
    -------
    tuple
        How the run went, and the samples it printed.

    """
    library = prepared.library
    words = [*options, *(["--only", ",".join(task.benches)] if task.benches else [])]
    command = [*library.launcher(task.ranks, prepared.processors), str(binary), *words]
    load, stolen, others = os.getloadavg()[0], psutil.cpu_times().steal, machine.Others()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        job = subprocess.Popen(
            command,
            env=variables(library) | dict(more or {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            in_time = _wait(job.pid, limit)
            seconds = time.perf_counter() - start
        finally:
            left = _end(job)
        used_by_others = others.percent()
        out.seek(0)
        err.seek(0)
        lines = [line for line in out.read().decode(errors="replace").splitlines() if line.startswith("{")]
        errors = err.read().decode(errors="replace")[-_TAIL:]

    code = job.returncode if in_time else None
    samples, unreadable = _read(lines, library, task, round_number, code)
    errors += unreadable
    outcome = _outcome(code, samples)
    return (
        Run(
            library=library.name,
            program=task.program.name,
            ranks=task.ranks,
            round=round_number,
            command=command,
            outcome=outcome,
            exit_code=code,
            seconds=seconds,
            load=load,
            stolen=psutil.cpu_times().steal - stolen,
            left_behind=left,
            errors="" if outcome == "ok" else errors.strip(),
            others=used_by_others,
        ),
        samples,
    )


def _read(
    lines: Sequence[str], library: Library, task: Task, round_number: int, code: int | None
) -> tuple[list[Sample], str]:
    """Read what a program has printed; give also what is wrong with lines of a job that did not end well."""
    samples, errors = [], ""
    for line in lines:
        try:
            sample = parse_line(
                line, library=library.name, program=task.program.name, ranks=task.ranks, round_number=round_number
            )
        except LabError as error:
            # The last line of a job that was stopped may be cut off.
            if code == 0:
                raise
            errors += f"\n{error}"
        else:
            samples.append(sample)
    return samples, errors


def variables(library: Library) -> dict[str, str]:
    """Give the variables for jobs of a library: those of this process, without traces of other MPI jobs."""
    foreign = ("PMI_", "PMIX_", "PMI2_", "OMPI_COMM_", "HYDRA_", "MPI_LOCAL")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(foreign) and name != "LD_LIBRARY_PATH"
    }
    return kept | library.environment()


def describe(run_record: Run) -> str:
    """Say in one line how a run went that was not ``ok``."""
    text = f"{run_record.program} with {run_record.library} on {ranks(run_record.ranks)}: {run_record.outcome}"
    if run_record.outcome == "time limit":
        return f"{text} ({run_record.seconds:.0f} s)"
    last = run_record.errors.splitlines()[-1] if run_record.errors else f"exit code {run_record.exit_code}"
    return f"{text}: {last.strip()} (command: {shlex.join(run_record.command)})"


def _outcome(code: int | None, samples: list[Sample]) -> str:
    if any(not sample.verified for sample in samples):
        return "wrong data"
    if code is None:
        return "time limit"
    return "ok" if code == 0 else "failed"


def _wait(pid: int, limit: float) -> bool:
    """Wait until a process has ended, at most so many seconds; tell whether it has.

    Popen.wait looks only every 50 ms.
    """
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(limit * 1000))
    finally:
        os.close(descriptor)


def _end(job: subprocess.Popen[bytes]) -> int:
    """End what is left of a job; give the number of processes that had to be killed after the launcher had ended."""
    if job.poll() is None:
        job.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(_GRACE)
    if job.poll() is None:
        job.send_signal(signal.SIGKILL)
        job.wait()
    # A rank that is just ending is not counted.
    _, alive = psutil.wait_procs(psutil.Process().children(recursive=True), timeout=1.0)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=_GRACE)
    return len(alive)
