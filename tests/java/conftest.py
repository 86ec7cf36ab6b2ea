"""Fixtures of the tests for Java: a test runs a program in a fresh job with a time limit."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Job, Outcome
from limosa import _java
from limosa_lab.errors import LabError
from limosa_lab.libraries import Mpich

LIMOSA = Path(sys.executable).parent / "limosa"
PROGRAMS = Path(__file__).parent / "programs"


class Java:
    """Runs Java programs with ``limosa run``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._jobs: list[Job] = []

    def start(self, *words: object, n=2, env=None, options=()) -> Job:
        """Start a program."""
        line = [str(word) for word in (LIMOSA, "run", "-n", n, *options, *words)]
        self._jobs.append(Job(line, env=os.environ | (env or {}), cwd=self.folder))
        return self._jobs[-1]

    def run(self, *words: object, limit=60.0, succeeds=True, **options) -> Outcome:
        """Run a program to its end; the test fails if it takes too long or, if it should succeed, its code is not 0."""
        outcome = self.start(*words, **options).wait(limit)
        if succeeds and outcome.code != 0:
            pytest.fail(f"the job ended with exit code {outcome.code}; its output:\n{outcome.text}")
        return outcome

    def program(self, name: str, *words: object, **options) -> Outcome:
        """Run one of the programs beside the tests."""
        return self.run(PROGRAMS / f"{name}.java", *words, **options)

    def write(self, text: str, name: str = "Main") -> Path:
        """Write a source file."""
        file = self.folder / f"{name}.java"
        file.write_text(textwrap.dedent(text))
        return file

    def body(self, text: str, **options) -> Outcome:
        """Run statements, in the main method of a program that has called Init and will call Finalize."""
        code = textwrap.indent(textwrap.dedent(text), " " * 8)
        source = f"""\
import java.util.Arrays;
import mpi.*;

public class Main {{
    public static void main(String[] args) throws Exception {{
        MPI.Init(args);
        Intracomm world = MPI.COMM_WORLD;
        int rank = world.Rank();
        int size = world.Size();
{code}
        MPI.Finalize();
    }}
}}
"""
        return self.run(self.write(source), **options)

    def end(self) -> None:
        """Kill what still runs."""
        for job in self._jobs:
            job.kill()


@pytest.fixture(scope="session")
def jdk() -> Path:
    """The compiler of a JDK that is new enough; without one, these tests are reported as not run."""
    try:
        _java.jar()
        return _java.find("javac")
    except _java.JavaError as error:
        pytest.skip(f"not run: {error}")


@pytest.fixture(scope="session")
def mpich() -> None:
    """Another library with the ABI, from PyPI."""
    try:
        Mpich.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        pytest.skip(f"{error}; hint: {error.hint}")


@pytest.fixture
def java(jdk, tmp_path) -> Iterator[Java]:
    """Java with the package mpi."""
    made = Java(tmp_path)
    yield made
    made.end()
