"""Background jobs without a scheduler: each has a *keeper*, a process that outlives the one that submitted the job.

The keeper holds a lock on the file ``lock`` of the job's folder for as long as it lives, so that no process mistakes
another process of the same number for it. It starts the command, waits, and leaves its exit code in the file ``code``.
It is this module, run as ``python -m limosa._jobs_local RECORD FOLDER OUTPUT WORD...``, in a session of its own, so
that the end of a login does not end it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_PATIENCE = 10.0
"""Seconds that a job may take to end after it was asked to."""

_OF_A_RANK = ("LIMOSA_JOB_", "PMI_", "PMIX_")
"""How variables begin that make a process a rank: a job that a rank submits is not one of its ranks."""


class JobError(Exception):
    """A job cannot be started or found; `hint` says what to do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


@dataclass(frozen=True)
class State:
    """What has become of a job."""

    name: str
    """``waiting``, ``running``, ``done``, ``failed``, ``cancelled`` or ``lost``."""
    code: int | None = None
    """The exit code, once the job has ended; 128 and a number if a signal of that number ended it."""
    reason: str = ""
    """Why it waits, or what else there is to say."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.name not in ("waiting", "running")


def write(file: Path, text: str) -> None:
    """Write a file so that no reader sees half of it."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def ended(record: Path) -> State | None:
    """Give how the job has ended if it has left its exit code."""
    try:
        code = int((record / "code").read_text())
    except (FileNotFoundError, ValueError):
        return None
    if (record / "cancelled").exists() and code != 0:
        return State("cancelled", code)
    return State("failed" if code else "done", code)


def submit(record: Path, words: Sequence[str], folder: Path, output: Path) -> str:
    """Start the keeper of a job; give the job's id."""
    number = _next_number(record.parent)
    command = [sys.executable, "-m", __name__, str(record), str(folder), str(output), *words]
    read, told = os.pipe()
    try:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if not name.startswith(_OF_A_RANK)},
        )
    finally:
        os.close(told)
    with os.fdopen(read, "rb") as answers:
        answer = answers.read().decode(errors="replace")
    if answer != "started":
        raise JobError(answer or "the process that looks after the job has ended", "check the command and the folder")
    return f"local-{number}"


def _next_number(home: Path) -> int:
    """Give the next number of a job; two programs that ask at the same time get different ones."""
    with (home / "last").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        digits = re.match(r"\d+", file.read())
        number = int(digits.group()) + 1 if digits else 1
        file.seek(0)
        file.truncate()
        file.write(str(number))
        file.flush()
    return number


def _is_kept(record: Path) -> bool:
    """Whether the keeper of a job lives."""
    try:
        with (record / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def state(record: Path, number: str) -> State:
    """Give what has become of a job."""
    is_kept = _is_kept(record)
    # The code is written before the lock goes.
    done = ended(record)
    if done is not None:
        return done
    if is_kept:
        return State("running")
    return State("lost", None, "it was killed, or the machine was restarted")


def cancel(record: Path, number: str) -> None:
    """End a job: its keeper passes the request on, and kills what does not follow it."""
    try:
        keeper = int((record / "keeper").read_text())
    except (FileNotFoundError, ValueError):
        raise JobError(f"job {number} has no process to be ended") from None
    if _is_kept(record):
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGTERM)
    end = time.monotonic() + 3 * _PATIENCE
    while not state(record, number).has_ended:
        if time.monotonic() > end:
            raise JobError(f"job {number} does not end", f"kill process {keeper}")
        time.sleep(0.02)


class _Keeper:
    """The process that looks after one job."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.lock = (record / "lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.asked = 0.0
        self.child: subprocess.Popen[bytes] | None = None

    def run(self, folder: str, output: str, words: Sequence[str]) -> None:
        """Start the command, say whether that went well, and wait for its end."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        write(self.record / "keeper", str(os.getpid()))
        try:
            with Path(output).open("wb") as file:
                self.child = subprocess.Popen(
                    words, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
                )
        except OSError as error:
            os.write(1, f"the job cannot be started: {error}".encode())
            return
        os.write(1, b"started")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = self.child.wait()
        write(self.record / "code", str(code if code >= 0 else 128 - code))

    def _end(self, number: int, frame: FrameType | None) -> None:
        """Ask the command to end, and kill it if it has not done so in time."""
        if self.child is None:
            sys.exit(1)
        with contextlib.suppress(ProcessLookupError):
            if number == signal.SIGALRM:
                os.killpg(self.child.pid, signal.SIGKILL)
            else:
                os.killpg(self.child.pid, signal.SIGTERM)
                signal.setitimer(signal.ITIMER_REAL, _PATIENCE)


def main() -> None:
    """Look after a job."""
    record, folder, output, *words = sys.argv[1:]
    _Keeper(Path(record)).run(folder, output, words)


if __name__ == "__main__":
    main()
