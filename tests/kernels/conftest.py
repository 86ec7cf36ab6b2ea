"""Running kernels as a user does, each job fresh and with a time limit."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from jobs import Job
from limosa_lab.errors import LabError
from limosa_lab.libraries import Limosa, Mpich
from limosa_lab.runner import variables

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

KERNELS = Path(__file__).resolve().parents[2] / "kernels"


@pytest.fixture(scope="session")
def libraries():
    """MPI libraries by name."""
    found = {"limosa": Limosa()}
    try:
        found["mpich"] = Mpich.install(lambda text: print(text, file=sys.stderr))
    except LabError as error:
        print(f"without MPICH: {error}", file=sys.stderr)
    return found


@pytest.fixture
def job(libraries):
    """Run ``python PROGRAM ARGUMENTS`` on n processes; give exit code and all output."""

    def run(program, *arguments, n=2, on="limosa", env=None):
        if on not in libraries:
            pytest.skip("MPICH is not installed and could not be: that needs a connection to the Python package index")
        library = libraries[on]
        command = [
            *library.launcher(n, os.cpu_count() or 1),
            sys.executable,
            str(KERNELS / program),
            *map(str, arguments),
        ]
        outcome = Job(command, env=variables(library) | (env or {})).wait(60)
        return outcome.code, outcome.text

    return run
