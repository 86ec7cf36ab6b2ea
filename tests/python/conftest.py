"""Fixtures of the tests of the Python package: a test runs on several MPI libraries, in fresh jobs with a time limit.

A test that takes `engine` runs once for each library, with "limosa" or "mpich" in its id:

    def test_ranks(engine):
        outcome = engine.code("from mpi4py import MPI; print(MPI.COMM_WORLD.rank)", n=2)
        assert sorted(outcome.out.split()) == ["0", "1"]
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import Job, Outcome, sleeping_yield
from limosa_lab.errors import LabError
from limosa_lab.libraries import Library, Limosa, Mpich
from limosa_lab.runner import variables
from terminals import terminal  # noqa: F401 - a fixture

IN_TURN = Path(__file__).parent / "programs" / "in_turn.py"


class Engine:
    """An MPI library on which Python programs run, each in a job of its own."""

    def __init__(self, library: Library, folder: Path, environment: dict[str, str]) -> None:
        self.library = library
        self.name = library.name
        self._folder = folder
        self._environment = environment
        self._numbers = itertools.count()
        self._jobs: list[Job] = []

    def start(self, *command: object, n: int = 2, env: dict[str, str] | None = None, **popen) -> Job:
        """Start a job of n processes of ``python COMMAND...``; it is killed at the end of the test."""
        line = [*self.library.launcher(n, os.cpu_count() or 1), sys.executable, *map(str, command)]
        environment = variables(self.library) | self._environment | (env or {})
        # Without it a rank writes a whole line at once, and a launcher that joins pieces does not mix two ranks' lines.
        environment.pop("PYTHONUNBUFFERED", None)
        self._jobs.append(Job(line, env=environment, **popen))
        return self._jobs[-1]

    def run(
        self,
        *command: object,
        n: int = 2,
        limit: float = 60.0,
        succeeds: bool = True,
        env: dict[str, str] | None = None,
        **popen,
    ) -> Outcome:
        """Run ``python COMMAND...`` on n processes to its end.

        The test fails if that takes longer than `limit` seconds or, unless `succeeds` is false, if the exit code is not
        0.
        """
        outcome = self.start(*command, n=n, env=env, **popen).wait(limit)
        if succeeds and outcome.code != 0:
            pytest.fail(f"the job on {self.name} ended with exit code {outcome.code}; its output:\n{outcome.text}")
        return outcome

    def code(self, text: str, *arguments: object, **options) -> Outcome:
        """Run a program given as (indented) text; the options are those of `run`."""
        script = self._folder / f"program{next(self._numbers)}.py"
        script.write_text(textwrap.dedent(text))
        return self.run(script, *arguments, **options)

    def end(self) -> None:
        """Kill what still runs."""
        for job in self._jobs:
            job.kill()


@pytest.fixture(scope="session")
def library(request) -> Library:
    """The library that an engine stands for, installed if it is not there yet."""
    try:
        return Limosa() if request.param == "limosa" else Mpich.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        pytest.skip(f"{error}; hint: {error.hint}")


@pytest.fixture(scope="session")
def waits(library, tmp_path_factory) -> dict[str, str]:
    """Variables with which waiting ranks leave the processors to others."""
    return {} if library.name == "limosa" else {"LD_PRELOAD": str(sleeping_yield(tmp_path_factory.mktemp("waits")))}


@pytest.fixture
def engine(library, waits, tmp_path) -> Iterator[Engine]:
    """Limosa, then MPICH from the Python package index: an `Engine`."""
    made = Engine(library, tmp_path, waits)
    yield made
    made.end()


def run_in_turn(programs: dict[str, list[object]], start: Callable[..., Job]) -> dict[str, Outcome]:
    """Run programs in as few jobs as possible: a program that fails or hangs ends its job, and the rest is run anew."""
    found: dict[str, Outcome] = {}
    while left := [program for program in programs if program not in found]:
        listed = json.dumps([[str(word) for word in programs[program]] for program in left])
        job = start(IN_TURN, listed)
        try:
            outcome = job.outcome(120)
        except subprocess.TimeoutExpired:
            job.kill()
            outcome = Outcome(job.process.returncode, *job.process.communicate())
        outs = re.split(r"^program \d+\n", outcome.out, flags=re.MULTILINE)[1:]
        if not outs:
            return found | dict.fromkeys(left, outcome)
        found |= {program: Outcome(0, out, "") for program, out in zip(left, outs)}
        if outcome.code != 0:
            found[left[len(outs) - 1]] = outcome
    return found


@pytest.fixture(scope="session")
def outcomes() -> dict[object, dict[str, Outcome]]:
    """What became of programs that ran in turn, by their test and its other parameters."""
    return {}


@pytest.fixture
def outcome_in_turn(outcomes, request) -> Callable[..., Outcome]:
    """Give the outcome of the test's parameter `program`.

    Its arguments are the command of each program, and what starts a job (`run_in_turn`). The start of Python and NumPy
    costs more than most programs, so the programs of all chosen tests that have the same other parameters run in turn
    in one job, each still a test of its own.
    """

    def outcome_in_turn(command: Callable[[str], list[object]], start: Callable[..., Job]) -> Outcome:
        own = request.node.callspec.params
        others = {name: value for name, value in own.items() if name != "program"}
        key = request.function, str(others)
        if key not in outcomes:
            items = [item for item in request.session.items if getattr(item, "function", None) is request.function]
            chosen = [item.callspec.params for item in items]
            names = [each["program"] for each in chosen if others.items() <= each.items()]
            outcomes[key] = run_in_turn({name: command(name) for name in names}, start)
        return outcomes[key][own["program"]]

    return outcome_in_turn


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every test with an engine one run per library."""
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("library", ["limosa", "mpich"], indirect=True, scope="session")
