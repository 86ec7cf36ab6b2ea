"""Sessions of `limosa shell` on a terminal, for the tests of both languages."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

import pytest
from jobs import PATIENCE

LIMOSA = str(Path(sys.executable).parent / "limosa")


class Terminal:
    """A session on a terminal."""

    def __init__(self, *options: str) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.execv(LIMOSA, [LIMOSA, "shell", "-n", "2", *options])
        self.seen = ""

    def until(self, pattern: str, limit: float = 30.0) -> None:
        """Read until the pattern is there; what comes after it is kept."""
        deadline = time.monotonic() + limit * PATIENCE
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.seen!r}"
            if select.select([self.descriptor], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.descriptor, 1 << 16).decode(errors="replace").replace("\r", "")
                except OSError:  # the other side has closed it
                    assert re.search(pattern, self.seen), self.seen
        self.seen = self.seen[found.end() :]

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def end(self, text: str = "") -> int:
        """Type this, again if nothing happens, until the end; give the exit code.

        A key that comes before the prompt is ready is lost.
        """
        deadline = time.monotonic() + 20 * PATIENCE
        while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline, f"the session did not end: {self.seen!r}"
            try:
                self.type(text)
                if select.select([self.descriptor], [], [], 0.5)[0]:
                    self.seen += os.read(self.descriptor, 1 << 16).decode(errors="replace")
            except OSError:  # the other side has closed it
                time.sleep(0.05)
        return os.waitstatus_to_exitcode(ended[1])


@pytest.fixture
def terminal():
    started: list[Terminal] = []

    def start(*options: str) -> Terminal:
        started.append(Terminal(*options))
        return started[-1]

    yield start
    for session in started:
        try:
            os.kill(session.pid, signal.SIGKILL)
            os.waitpid(session.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(session.descriptor)
