"""Jobs that never outlive their test: for the fixtures of the fault tests and of the tests of the Python package."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass

import pytest

#: Limits are for an idle machine. Other tests run beside, so a job has so many times as long before it counts as hung.
PATIENCE = 5


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
        """The outcome; the test fails if the job is still running after `limit` seconds times `PATIENCE`."""
        try:
            return self.outcome(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.process.communicate()
            pytest.fail(f"the job did not end within {limit * PATIENCE} s; its output:\n{out}{err}")

    def outcome(self, limit: float) -> Outcome:
        """The outcome; raises `TimeoutExpired` if the job is still running after `limit` seconds times `PATIENCE`."""
        out, err = self.process.communicate(timeout=limit * PATIENCE)
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
