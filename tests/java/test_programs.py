"""Programs that follow the classes and methods of mpiJava 1.2, MPJ Express and Open MPI, and check what they get."""

import pytest

RANKS = {
    "processes": [],
    "threads": ["--threads"],
    "machines": ["--threads", "--per-jvm", "1"],
    "threads of machines": ["--threads", "--per-jvm", "2"],
}
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


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("ranks", RANKS)
def test_program(java, ranks, name, n):
    outcome = java.program(name, n=n, options=RANKS[ranks])
    assert outcome.out == "ok\n", outcome.text
    assert outcome.err == ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_on_another_library(java, mpich, name):
    # MPICH 5.0 cannot start again.
    outcome = java.program(name, "once", n=3, options=["--mpi", "mpich"])
    assert outcome.out == "ok\n", outcome.text
