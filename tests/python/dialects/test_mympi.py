"""MYMPI (pydusa): programs as its users wrote them, on several MPI libraries.

What they check is in the programs themselves.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def test_hello(engine):
    outcome = engine.run(SCRIPTS / "mympi_hello.py", n=4)
    assert sorted(re.findall(r"Hello, world! I'm process (\d) of 4\.", outcome.out)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("n", [2, 3])
def test_every_call(engine, n):
    outcome = engine.run(SCRIPTS / "mympi_everything.py", n=n)
    assert sorted(re.findall(rf"processor (\d+) of {n} is content", outcome.out)) == list(map(str, range(n)))
    assert len(re.findall(r"mpi generated the error [1-9]", outcome.out)) == n


@pytest.mark.parametrize(
    ("script", "n", "said"),
    [
        ("mympi_pingpong.py", 2, "1048576 bytes ok"),
        ("mympi_wave.py", 3, "same as on one process"),
        ("mympi_cg.py", 3, "process 2 converged after 26 steps"),
    ],
)
@pytest.mark.on_mpich(script="mympi_wave.py")
def test_programs(engine, script, n, said):
    assert said in engine.run(SCRIPTS / script, n=n).out


@pytest.mark.parametrize("script", ["hello", "everything", "wave", "cg"])
def test_runs_without_a_launcher(script):
    done = subprocess.run([sys.executable, SCRIPTS / f"mympi_{script}.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_error_ends_the_job_unless_the_script_asked_otherwise(engine):
    outcome = engine.code(
        """
        from mpi import *
        mpi_init(0, [])
        if mpi_comm_rank(MPI_COMM_WORLD) == 0:
            mpi_send(1, 1, MPI_INT, 99, 0, MPI_COMM_WORLD)
        mpi_recv(1, MPI_INT, 0, 0, MPI_COMM_WORLD)
        """,
        n=3,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert "error: " in outcome.err
    assert "rank" in outcome.err


def test_mpi_finalize_may_be_forgotten(engine):
    outcome = engine.code("import mpi\nmpi.mpi_init(0, [])\nmpi.mpi_barrier(mpi.MPI_COMM_WORLD)\nprint('end')")
    assert outcome.out.count("end") == 2


def test_large_results_share_no_memory_while_the_script_holds_them():
    program = """
        import numpy as np
        from limosa.dialects.mympi.memory import new_array, new_copy
        kind = np.dtype(float)
        held = [new_copy(np.full(50000, float(k)), 50000) for k in range(5)]
        part = new_copy(np.full(50000, 9.0), 50000)[10:20]
        address = held[0].ctypes.data
        assert [array[-1] for array in held] == [0, 1, 2, 3, 4] and (part == 9).all()
        del held[0]
        again = new_array(50000, kind)
        assert again.ctypes.data == address
        for _ in range(5):
            new_array(50000, kind)[:] = -1
        assert [array[-1] for array in held] == [1, 2, 3, 4] and (part == 9).all()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
