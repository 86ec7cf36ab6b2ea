"""boostmpi and boost.mpi: programs as their users wrote them, on several MPI libraries.

What they check is in the programs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def test_hello(engine):
    outcome = engine.run(SCRIPTS / "boostmpi_hello.py", n=3)
    assert sorted(re.findall(r"Hello, world! I'm process (\d) of 3\.", outcome.out)) == ["0", "1", "2"]


@pytest.mark.parametrize("script", ["boostmpi_collectives.py", "boostmpi_nonblocking.py"])
@pytest.mark.parametrize("n", [3, 5])
def test_every_function(engine, script, n):
    outcome = engine.run(SCRIPTS / script, n=n)
    assert sorted(re.findall(r"(\d+) is content", outcome.out)) == list(map(str, range(n)))


@pytest.mark.parametrize(
    ("script", "n", "said"),
    [
        ("boostmpi_pingpong.py", 2, "all came back"),
        ("boostmpi_wave.py", 3, "same as on one process"),
        ("boostmpi_cg.py", 3, r"converged after \d+ steps"),
        ("boostmpi_ring.py", 4, "0-1-2-3"),
    ],
)
@pytest.mark.on_mpich(script="boostmpi_wave.py")
def test_programs(engine, script, n, said):
    outcome = engine.run(SCRIPTS / script, n=n)
    assert re.search(said, outcome.out), outcome.text


@pytest.mark.parametrize("script", ["boostmpi_hello.py", "boostmpi_wave.py", "boostmpi_cg.py"])
def test_runs_without_a_launcher(script):
    done = subprocess.run([sys.executable, SCRIPTS / script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_abort_ends_the_job_with_its_code(engine):
    outcome = engine.run(SCRIPTS / "boostmpi_ring.py", n=1, succeeds=False)
    assert outcome.code == 3
    assert "at least two" in outcome.text


def test_an_operation_that_raises_ends_the_job(engine):
    outcome = engine.code(
        """
        import boostmpi as mpi

        def op(x, y):
            raise ArithmeticError("cannot combine")

        mpi.all_reduce(mpi.world, mpi.rank, op)
        """,
        n=3,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert "ArithmeticError: cannot combine" in outcome.err


def test_a_real_installation_beside_wins_or_coexists(tmp_path):
    (tmp_path / "boost").mkdir()
    (tmp_path / "boost" / "numeric.py").write_text("here = 'boost.numeric of another package'")
    (tmp_path / "boostmpi").mkdir()
    (tmp_path / "boostmpi" / "__init__.py").write_text("real = True")
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import boost.numeric, boost.mpi, boostmpi
print(boost.numeric.here, boost.mpi.size, boostmpi.real)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "boost.numeric of another package 1 True\n", done.stderr
