"""A program for another library's ABI, and what the tests of both translations do with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from jobs import PATIENCE

PREFIX = Path(sys.executable).parents[1]
LIMOSA = PREFIX / "bin" / "limosa"
HELLO = r"""
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size, sum, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Get_library_version(version, &length);
    printf("rank %d of %d, sum %d, %.6s\n", rank, size, sum, version);
    MPI_Finalize();
    return 0;
}
"""


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command without variables that choose a library."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "LIMOSA_", "MPI4PY_"))}
    return subprocess.run(
        command,
        env=env | variables,
        capture_output=True,
        text=True,
        timeout=120 * PATIENCE,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def doctor(program: Path, **variables: str) -> tuple[int, str]:
    """What the doctor says of a program, and its exit code."""
    found = run(LIMOSA, "doctor", program, **variables)
    return found.returncode, found.stdout + found.stderr
