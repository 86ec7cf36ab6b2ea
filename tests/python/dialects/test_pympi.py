"""pyMPI: programs as its users wrote them, on several MPI libraries. What they check is in the programs themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def test_hello(engine):
    outcome = engine.run(SCRIPTS / "pympi_hello.py", n=4)
    assert sorted(re.findall(r"Hello, world! I'm process (\d) of 4\.", outcome.out)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("n", [2, 3])
def test_every_call(engine, n):
    outcome = engine.run(SCRIPTS / "pympi_everything.py", "-color=3", n=n)
    assert sorted(re.findall(rf"processor (\d+) of {n} is content", outcome.out)) == list(map(str, range(n)))
    assert "".join(f"[ {rank} ]" for rank in range(n)) + "".join(f"line {rank}\n" for rank in range(n)) in outcome.out
    assert "hidden" not in outcome.out
    assert outcome.err.count("traced 1and 0\n") == 1


@pytest.mark.parametrize(
    ("script", "n", "said"),
    [
        ("pympi_pingpong.py", 2, "1048576 bytes ok"),
        ("pympi_wave.py", 3, "same as on one process\nsame as on one process"),
        ("pympi_cg.py", 3, "\n".join(f"process {rank} converged after 26 steps" for rank in range(3))),
        ("pympi_fractal.py", 3, "picture ok"),
    ],
)
@pytest.mark.on_mpich(script="pympi_wave.py")
def test_programs(engine, script, n, said):
    assert said in engine.run(SCRIPTS / script, n=n).out


@pytest.mark.parametrize("script", ["hello", "everything", "wave", "cg", "fractal"])
def test_runs_without_a_launcher(script):
    done = subprocess.run(
        [sys.executable, SCRIPTS / f"pympi_{script}.py", "-color=3"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def test_an_exception_on_one_rank_ends_the_job(engine):
    outcome = engine.code(
        """
        import mpi
        if mpi.rank == 1:
            raise ValueError("something is wrong")
        mpi.recv(1)
        """,
        n=3,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert outcome.err.count("ValueError: something is wrong") == 1


@pytest.mark.parametrize("how", ["sys.exit(7)", "mpi.abort(7)"])
def test_the_exit_status_is_the_script_s(engine, how):
    outcome = engine.code(f"import mpi, sys\nmpi.barrier()\nif mpi.rank == 0:\n    {how}\n", succeeds=False, limit=30)
    assert outcome.code == 7


def test_a_bad_color_is_an_error():
    done = subprocess.run(
        [sys.executable, SCRIPTS / "pympi_hello.py", "-color=red"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode != 0
    assert "-color=red: the colour must be an integer" in done.stderr


def test_messages_that_pympi_did_not_send_are_an_error(engine):
    outcome = engine.code(
        """
        import mpi
        from mpi4py import MPI
        if mpi.rank == 0:
            MPI.Intracomm.fromhandle(int(mpi.WORLD)).Send(b"foreign", 1)
        else:
            try:
                mpi.recv()
            except RuntimeError as error:
                print(error)
        """
    )
    assert "was not sent by pyMPI: use one interface on both sides" in outcome.out
