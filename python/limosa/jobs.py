"""Jobs that run in the background: through Slurm where it is, on this machine where it is not.

::

    import limosa

    job = limosa.jobs.submit(["wave.py", "--steps", "100"], n=8)
    print(job.id)              # "1234", or "local-3" without a scheduler
    job.wait()                 # its exit code
    print(job.log())

A job lives on when this program ends, and when the user logs out. ``limosa submit``, ``limosa status``, ``limosa log``
and ``limosa cancel`` do the same from a shell. What is known of the user's jobs is kept in a folder for each, below
``${XDG_STATE_HOME:-~/.local/state}/limosa/jobs``; folders of jobs that were submitted more than 30 days ago and have
ended go when another is submitted.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from limosa import _jobs_local, _jobs_slurm
from limosa._jobs_local import JobError, State

__all__ = ["Job", "JobError", "State", "all_jobs", "get", "main", "submit"]

_KEEP = 30 * 24 * 3600
"""So many seconds after its submission a job that has ended is forgotten."""


@dataclass(frozen=True)
class Job:
    """A job that was submitted.

    Examples
    --------
    >>> job = submit(["true"], where="local")
    >>> job.wait(), job.state().name
    (0, 'done')
    """

    id: str
    """Slurm's number, or ``local-`` and a number."""
    where: str
    """``slurm`` or ``local``."""
    name: str
    command: tuple[str, ...]
    folder: str
    """The folder in which it runs."""
    output: str
    """The file with its output."""
    submitted: float
    """When, in seconds since 1970."""
    record: str
    """The folder in which the job is described."""

    def state(self) -> State:
        """Give what has become of the job: its name, its exit code if it has ended, and the reason if there is one."""
        state = _jobs_slurm.state if self.where == "slurm" else _jobs_local.state
        return state(Path(self.record), self.id)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the job has ended; give its exit code, 1 if it is not known.

        Raises
        ------
        TimeoutError
            If it has not ended after so many seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while True:
            state = self.state()
            if state.has_ended:
                return state.code if state.code is not None else 1
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"job {self.id} has not ended within {timeout} s; it is {state.name}")
            time.sleep(pause)
            pause = min(2 * pause, 2.0 if self.where == "slurm" else 0.5)

    def cancel(self) -> None:
        """End the job; one that has ended stays as it is."""
        if not self.state().has_ended:
            (Path(self.record) / "cancelled").touch()
            cancel = _jobs_slurm.cancel if self.where == "slurm" else _jobs_local.cancel
            cancel(Path(self.record), self.id)

    def log(self) -> str:
        """Give what the job has written so far."""
        try:
            return Path(self.output).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def follow(self) -> Iterator[str]:
        """Give what the job writes, as it does, until it has ended."""
        offset = 0
        while True:
            has_ended = self.state().has_ended
            try:
                with Path(self.output).open("rb") as file:
                    file.seek(offset)
                    new = file.read()
            except FileNotFoundError:
                new = b""
            offset += len(new)
            if new:
                yield new.decode(errors="replace")
            elif has_ended:
                return
            else:
                time.sleep(0.2)


def _home() -> Path:
    """Give the folder of all jobs."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if state.startswith("/") else Path.home() / ".local" / "state") / "limosa" / "jobs"


def _words(command: Sequence[str], n: int | None) -> list[str]:
    """Give the command line of a job."""
    launcher = Path(sys.executable).with_name("limosa")
    limosa = str(launcher) if launcher.exists() else "limosa"
    if n is not None:
        return [limosa, "run", "-n", str(n), *command]
    # A script of Python is run as `limosa run` would.
    return [sys.executable, *command] if command[0].endswith(".py") else list(command)


def submit(
    command: Sequence[str],
    *,
    n: int | None = None,
    name: str | None = None,
    output: str | Path | None = None,
    folder: str | Path | None = None,
    where: str | None = None,
    options: Sequence[str] = (),
) -> Job:
    r"""Start a command in the background, as a job of Slurm where there is Slurm.

    Parameters
    ----------
    command
        The program and its arguments.
    n
        Run it as an MPI program on so many processes (``limosa run -n``), under Slurm on the hosts of its allocation.
        Without a number the command runs as it is, once.
    name
        A name for people; otherwise that of the program.
    output
        The file for its output; otherwise one that only `Job.log` needs to know.
    folder
        The folder in which it runs; otherwise the present one.
    where
        ``slurm`` or ``local``; otherwise ``slurm`` if ``sbatch`` is in PATH.
    options
        Options for ``sbatch``, such as ``--time=10``.

    Raises
    ------
    JobError
        If the job cannot be started; it says why and what to do.

    Examples
    --------
    >>> job = submit(["echo", "hello"], where="local")
    >>> job.wait(), job.log()
    (0, 'hello\n')
    """
    if isinstance(command, str) or not command:
        raise JobError("a job needs a command", 'give a list of words, such as ["wave.py", "--steps", "100"]')
    if n is not None and n < 1:
        raise JobError(f"a job cannot have {n} processes", "give a number above 0")
    chosen = where or ("slurm" if shutil.which("sbatch") else "local")
    if chosen not in ("slurm", "local"):
        raise JobError(f"there is no scheduler `{chosen}`", "give slurm or local")
    if options and chosen == "local":
        raise JobError(
            f"options for sbatch ({' '.join(options)}) mean nothing to a job without Slurm", "leave them out"
        )
    place = Path(folder or ".").absolute()
    if not place.is_dir():
        raise JobError(f"there is no folder {place}", "make it, or name a different one")
    if chosen == "local" and not (place / command[0]).exists() and not shutil.which(command[0]):
        raise JobError(
            f"`{command[0]}` cannot be started: it is neither in {place} nor in PATH", "give the path of the program"
        )
    record = _new_record()
    file = place / output if output else record / "output"
    words, called = _words(command, n), name or Path(command[0]).name
    try:
        if chosen == "slurm":
            number = _jobs_slurm.submit(record, words, called, n or 1, place, file, options)
        else:
            number = _jobs_local.submit(record, words, place, file)
        job = Job(number, chosen, called, tuple(command), str(place), str(file), time.time(), str(record))
        _jobs_local.write(record / "job.json", json.dumps(asdict(job)))
    except JobError:
        shutil.rmtree(record, ignore_errors=True)
        raise
    return job


def _new_record() -> Path:
    """Make the folder for one more job, and forget old ones."""
    home = _home()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for job in all_jobs():
            if job.submitted + _KEEP < time.time() and job.state().has_ended:
                shutil.rmtree(job.record, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix="job-", dir=home))
    except OSError as error:
        hint = "make room, or set XDG_STATE_HOME to a folder that you may write"
        raise JobError(f"the folder {home}, in which jobs are kept, cannot be used: {error}", hint) from None


def all_jobs() -> list[Job]:
    """Give all jobs that are known, the oldest first.

    Examples
    --------
    >>> job = submit(["true"], where="local")
    >>> job in all_jobs()
    True
    """
    jobs = []
    for file in _home().glob("job-*/job.json"):
        try:
            read = json.loads(file.read_text())
            jobs.append(Job(**{**read, "command": tuple(read["command"]), "record": str(file.parent)}))
        except (OSError, ValueError, TypeError, KeyError):
            continue  # it goes just now, or was damaged: nothing can be said of it
    return sorted(jobs, key=lambda job: job.submitted)


def get(number: str | int) -> Job:
    """Give the job with this id.

    Raises
    ------
    JobError
        If there is none.

    Examples
    --------
    >>> get(submit(["true"], where="local").id).command
    ('true',)
    """
    known = all_jobs()
    for job in known:
        if job.id == str(number):
            return job
    hint = f"`limosa status` lists them; the last one is {known[-1].id}" if known else "`limosa submit` starts one"
    raise JobError(f"no job {number} was submitted by you with `limosa submit`", hint)


def _table(jobs: Sequence[Job]) -> str:
    rows = [("ID", "NAME", "STATE", "CODE", "COMMAND")]
    for job in jobs:
        state = job.state()
        code = "" if state.code is None else str(state.code)
        told = f"{state.name} ({state.reason})" if state.reason else state.name
        rows.append((job.id, job.name, told, code, shlex.join(job.command)))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = ["  ".join([*(row[at].ljust(widths[at]) for at in range(4)), row[4]]) for row in rows]
    return "\n".join(line.rstrip()[:160] for line in lines)


def _submit(options: argparse.Namespace) -> int:
    job = submit(
        options.command,
        n=options.np,
        name=options.name,
        output=options.output,
        folder=options.chdir,
        where=options.on,
        options=options.option,
    )
    print(job.id, flush=True)
    return job.wait() if options.wait else 0


def _status(options: argparse.Namespace) -> int:
    jobs = [get(number) for number in options.id] if options.id else all_jobs()
    if options.format == "json":
        print(json.dumps([{**asdict(job), "state": asdict(job.state())} for job in jobs], indent=2))
    elif jobs:
        print(_table(jobs))
    else:
        print("no jobs: `limosa submit COMMAND` starts one", file=sys.stderr)
    return 0


def _log(options: argparse.Namespace) -> int:
    known = all_jobs()
    if options.id is None and not known:
        raise JobError("no job was submitted by you with `limosa submit`")
    job = known[-1] if options.id is None else get(options.id)
    for text in job.follow() if options.follow else [job.log()]:
        sys.stdout.write(text)
        sys.stdout.flush()
    return 0


def _cancel(options: argparse.Namespace) -> int:
    for job in [get(number) for number in options.id]:
        job.cancel()
    return 0


def _parsers() -> dict[str, tuple[argparse.ArgumentParser, Any]]:
    """Give the command line of each command, and what carries it out."""
    submits = argparse.ArgumentParser(
        prog="limosa submit",
        usage="limosa submit [options] COMMAND [ARGUMENT...]",
        description="Start a command in the background: through Slurm's sbatch where that is, else on this machine. "
        "Prints the id of the job.",
    )
    submits.add_argument("-n", "-np", "--np", type=int, metavar="N", help="run it on N processes, by `limosa run`")
    submits.add_argument("--name", help="name of the job, for people")
    submits.add_argument("-o", "--output", metavar="FILE", help="file for its output")
    submits.add_argument("-D", "--chdir", metavar="DIR", help="folder in which it runs")
    submits.add_argument("--on", choices=["slurm", "local"], help="what runs it")
    submits.add_argument(
        "--option", action="append", default=[], metavar="OPTION", help="option for sbatch: --option=--time=10"
    )
    submits.add_argument("--wait", action="store_true", help="wait for the end, and end with the job's exit code")
    submits.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    status = argparse.ArgumentParser(prog="limosa status", description="Show what has become of submitted jobs.")
    status.add_argument("id", nargs="*", help="which jobs (default: all)")
    status.add_argument("--format", choices=["text", "json"], default="text", help="for people or for programs")
    log = argparse.ArgumentParser(prog="limosa log", description="Print what a submitted job has written.")
    log.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    log.add_argument("id", nargs="?", help="which job (default: the newest)")
    cancel = argparse.ArgumentParser(prog="limosa cancel", description="End submitted jobs.")
    cancel.add_argument("id", nargs="+", help="which jobs")
    return {"submit": (submits, _submit), "status": (status, _status), "log": (log, _log), "cancel": (cancel, _cancel)}


def main(words: Sequence[str]) -> int:
    """Carry out ``limosa submit``, ``status``, ``log`` or ``cancel``; give the exit code."""
    parser, action = _parsers()[words[0]]
    options = parser.parse_args(words[1:])
    if words[0] == "submit" and options.command[:1] == ["--"]:
        del options.command[0]
    if words[0] == "submit" and not options.command:
        parser.error("a command is needed")
    try:
        return int(action(options))
    except JobError as error:
        print(f"limosa: {error}" + (f"\nhint: {error.hint}" if error.hint else ""), file=sys.stderr)
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing is written any more at the end
        return 141
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
