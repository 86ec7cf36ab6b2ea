"""Fixtures of the tests of the Octave package: a test runs Octave scripts in fresh jobs with a time limit.

def test_ranks(octave):
    outcome = octave.code("printf('%d\\n', limosa_rank())", n=2)
    assert sorted(outcome.out.split()) == ["0", "1"]
"""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from jobs import PATIENCE, Job, Outcome
from limosa import _octave
from mpitb_programs import Programs
from terminals import terminal  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "target" / "octave-modules"
PREFIX = Path(sys.executable).parent.parent
LIMOSA = PREFIX / "bin" / "limosa"
IN_TURN = Path(__file__).with_name("in_turn.m")

#: For an Octave that is no rank.
OPTIONS = ["--no-gui", "--quiet", "--norc", "--no-history", "--no-window-system"]


#: What a rank prints when a program has ended that it has run in turn (in_turn.m).
ENDED = "\x1dended\n"


class InTurn:
    """A job that runs programs in turn: the start of Octave costs more than most of them."""

    def __init__(self, line: list[str], n: int, folder: Path) -> None:
        self._job = Job(line, stdin=subprocess.PIPE, cwd=folder)
        self._n = n
        self.is_over = False
        self._printed = [self._turns(stream) for stream in (self._job.process.stdout, self._job.process.stderr)]

    def _turns(self, stream: TextIO) -> queue.Queue[str | None]:
        """What the ranks print in each turn, then what they print until the job ends, and None."""
        turns: queue.Queue[str | None] = queue.Queue()

        def read() -> None:
            lines: list[str] = []
            ended = 0
            for line in stream:
                lines.append(line.removesuffix(ENDED))
                ended += line.endswith(ENDED)
                if ended == self._n:
                    turns.put("".join(lines))
                    lines, ended = [], 0
            self.is_over = True
            turns.put("".join(lines))
            turns.put(None)

        threading.Thread(target=read, daemon=True).start()
        return turns

    def run(self, statements: str, limit: float) -> Outcome:
        """Run statements; the test fails if they take too long or end the job."""
        texts: list[str] = []
        try:
            # Octave gives a line when it sees the character behind it, so the next line begins here.
            print(statements, end="\n ", file=self._job.process.stdin, flush=True)
            texts = [turns.get(timeout=limit * PATIENCE) for turns in self._printed]
        except (BrokenPipeError, queue.Empty):
            self._job.kill()
        if self.is_over or not texts:
            pytest.fail(f"the program has not ended as it should; its output:\n{''.join(texts)}{self.end().text}")
        return Outcome(0, *texts)

    def end(self) -> Outcome:
        """End the job; the outcome has what it has printed since the last turn."""
        try:
            self._job.process.stdin.close()
            self._job.process.wait(10 * PATIENCE)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            pass
        self._job.kill()
        return Outcome(self._job.process.wait(), *("".join(iter(turns.get, None)) for turns in self._printed))


class Octave:
    """Octave with the package in its path; each program is run in a job of its own, or with others in turn."""

    def __init__(self, folder: Path, jobs: dict[tuple[object, ...], InTurn]) -> None:
        self.folder = folder
        self._in_turn = jobs
        self._numbers = itertools.count()
        self._jobs: list[Job] = []

    def start(self, script: Path, *arguments: object, n: int = 2, paths=(), env=None, **popen) -> Job:
        """Start ``limosa run SCRIPT ARGUMENTS...`` on n processes; the last of `paths` is a toolbox of the past."""
        options = ["--dialect", paths[-1]] if paths else []
        line = [LIMOSA, "run", "-n", n, *options, script, *arguments]
        self._jobs.append(Job([str(word) for word in line], env=os.environ | (env or {}), cwd=self.folder, **popen))
        return self._jobs[-1]

    def run(self, script: Path, *arguments: object, limit: float = 60.0, succeeds: bool = True, **options) -> Outcome:
        """Run a script to its end; the test fails if it takes too long or, if it should succeed, its code is not 0."""
        outcome = self.start(script, *arguments, **options).wait(limit)
        if succeeds and outcome.code != 0:
            pytest.fail(f"the job ended with exit code {outcome.code}; its output:\n{outcome.text}")
        return outcome

    def code(self, text: str, *arguments: object, **options) -> Outcome:
        """Run a program given as (indented) text; the options are those of `run`."""
        return self.run(self._write(text), *arguments, **options)

    def run_in_turn(self, script: Path, *, n: int = 2, paths=(), limit: float = 60.0, before: str = "") -> Outcome:
        """Run a script that leaves its job to the next one, after the statements `before`; the test fails if it fails.

        The job is that of all such scripts of the module with as many ranks and the same toolbox.
        """
        options = ["--dialect", paths[-1]] if paths else []
        key = n, *options
        if key not in self._in_turn or self._in_turn[key].is_over:
            line = [LIMOSA, "run", "-n", n, "--stdin", "all", *options, IN_TURN]
            self._in_turn[key] = InTurn([str(word) for word in line], n, self.folder)
        return self._in_turn[key].run(f"cd ('{self.folder}'); {before} __limosa_source__ ('{script}');", limit)

    def code_in_turn(self, text: str, **options) -> Outcome:
        """Run a program given as (indented) text; the options are those of `run_in_turn`."""
        return self.run_in_turn(self._write(text), **options)

    def _write(self, text: str) -> Path:
        script = self.folder / f"program{next(self._numbers)}.m"
        script.write_text(textwrap.dedent(text))
        return script

    def end(self) -> None:
        """Kill what still runs."""
        for job in self._jobs:
            job.kill()


@pytest.fixture(scope="session")
def modules() -> Path:
    """The folder with the modules of all toolboxes, compiled as for a user's first script, if they are not there."""
    for program, package in {"octave-cli": "octave", "mkoctfile": "octave-dev"}.items():
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed; on Debian:  sudo apt-get install {package}")
    names = dict.fromkeys(name for toolbox in _octave.TOOLBOXES.values() for name in toolbox)
    made = _octave.modules(shutil.which("octave-cli"), ["limosa", *names])
    link = BUILT.with_name(f"{BUILT.name}-{os.getpid()}")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(made)
    link.replace(BUILT)
    return BUILT


@pytest.fixture(scope="module")
def jobs_in_turn() -> Iterator[dict[tuple[object, ...], InTurn]]:
    """The jobs that run programs of a module in turn. Ranks that have nothing to do say nothing and end well."""
    jobs: dict[tuple[object, ...], InTurn] = {}
    yield jobs
    outcomes = [job.end() for job in jobs.values() if not job.is_over]
    assert all(outcome == Outcome(0, "", "") for outcome in outcomes), outcomes


@pytest.fixture
def octave(modules, jobs_in_turn, tmp_path) -> Iterator[Octave]:
    """Octave with the compiled package."""
    made = Octave(tmp_path, jobs_in_turn)
    yield made
    made.end()


@pytest.fixture
def mpitb(octave) -> Programs:
    """Runs programs with MPITB's interface."""
    return Programs(octave)
