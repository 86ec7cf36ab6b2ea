"""Programs that follow the classes and methods of mpiJava 1.2, MPJ Express and Open MPI, and check what they get."""

import pytest
from conftest import RUNS

PROGRAMS = [
    "Messages",
    "Requests",
    "Collectives",
    "Communicators",
    "Types",
    "Mistakes",
    "Environment",
    "Rules",
    "OpenMpi",
    "OpenMpiStructs",
    "OpenMpiBackground",
    "OpenMpiGroups",
    "OpenMpiWindows",
]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("ranks", "n"), RUNS)
def test_program(outcome_of, ranks, name, n):
    outcome = outcome_of(name, ranks, n)
    assert outcome.out == "ok\n", outcome.text
    assert outcome.err == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_on_another_library(java, programs, on_mpich, name):
    # MPICH 5.0 cannot start again: each program is a job.
    outcome = java.run("-cp", programs, name, "once", n=2, options=on_mpich)
    assert outcome.out == "ok\n", outcome.text
