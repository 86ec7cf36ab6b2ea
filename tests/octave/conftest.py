"""Fixtures of the tests of the Octave package: a test runs Octave scripts in fresh jobs with a time limit.

def test_ranks(octave):
    outcome = octave.code("printf('%d\\n', limosa_rank())", n=2)
    assert sorted(outcome.out.split()) == ["0", "1"]
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Job, Outcome
from limosa import _octave
from limosa_lab.errors import LabError
from limosa_lab.libraries import Mpich
from mpitb_programs import Programs
from terminals import terminal  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "target" / "octave-modules"
PREFIX = Path(sys.executable).parent.parent
LIMOSA = PREFIX / "bin" / "limosa"

#: For an Octave that is no rank.
OPTIONS = ["--no-gui", "--quiet", "--norc", "--no-history", "--no-window-system"]


class Octave:
    """Octave with the package in its path; each program is run in a job of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
        script = self.folder / f"program{next(self._numbers)}.m"
        script.write_text(textwrap.dedent(text))
        return self.run(script, *arguments, **options)

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


@pytest.fixture
def octave(modules, tmp_path) -> Iterator[Octave]:
    """Octave with the compiled package."""
    made = Octave(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="session")
def mpich() -> Mpich:
    """Another library with the ABI, from PyPI."""
    try:
        return Mpich.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        pytest.skip(f"{error}; hint: {error.hint}")


@pytest.fixture
def mpitb(octave) -> Programs:
    """Runs programs with MPITB's interface."""
    return Programs(octave)
