"""Scientific.MPI and Scientific.BSP: programs as their users wrote them, on several MPI libraries.

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
    outcome = engine.run(SCRIPTS / "scientific_hello.py", n=4)
    assert sorted(re.findall(r"Hello, world! I'm process (\d) of 4\.", outcome.out)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("n", [2, 3])
def test_every_call(engine, n, tmp_path):
    outcome = engine.run(SCRIPTS / "scientific_everything.py", tmp_path / "log", n=n)
    assert sorted(re.findall(rf"processor (\d+) of {n} is content", outcome.out)) == list(map(str, range(n)))
    first, second = (tmp_path / "log").read_text().split("=" * 75 + "\n")
    assert first == "".join(f"Rank {rank}:\n\nfrom rank {rank}\n\n" for rank in range(n))
    assert second == "".join(f"Rank {rank}:\n\nthe end\n\n" for rank in range(n))


@pytest.mark.parametrize(
    ("script", "n", "said"),
    [
        ("scientific_pingpong.py", 2, "1048576 bytes ok"),
        ("scientific_wave.py", 3, "same as on one process\nsame as on one process"),
        ("scientific_cg.py", 3, "process 2 converged after 26 steps"),
        ("scientific_bsp.py", 3, "squares [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]\nsum of squares 91\ndone on 3"),
    ],
)
@pytest.mark.on_mpich(script="scientific_wave.py")
def test_programs(engine, script, n, said):
    assert said in engine.run(SCRIPTS / script, n=n).out


@pytest.mark.parametrize("script", ["hello", "everything", "wave", "cg", "bsp"])
def test_runs_without_a_launcher(script, tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPTS / f"scientific_{script}.py", tmp_path / "log"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_a_star_import_brings_the_operations():
    program = (
        "from Scientific.MPI import *; from mpi4py import MPI; "
        "assert sum == MPI.SUM and max == MPI.MAX; assert world.size == 1"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_exception_on_one_rank_ends_the_job(engine):
    outcome = engine.code(
        """
        from Scientific.MPI import world
        if world.rank == 1:
            raise ValueError("something is wrong")
        world.receiveString(1)
        """,
        n=3,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert outcome.err.count("ValueError: something is wrong") == 1


def test_instances_of_global_classes_have_the_operators_of_the_local_class(engine):
    program = """
        from Scientific.BSP import ParClass, ParBase, ParConstant, processorID, numberOfProcessors

        class LocalVector(ParBase):
            def __parinit__(self, pid, nprocs, value):
                self.value = value + pid
            def made(self, value):
                other = LocalVector.__new__(LocalVector)
                other.value = value
                return other
            def __add__(self, other):
                if not isinstance(other, LocalVector):
                    return NotImplemented
                return self.made(self.value + other.value)
            def __mul__(self, factor):
                return self.made(self.value * factor)
            __rmul__ = __mul__
            def __neg__(self):
                return self.made(-self.value)
            def __abs__(self):
                return abs(self.value)
            def __eq__(self, other):
                return isinstance(other, LocalVector) and self.value == other.value
            def __lt__(self, other):
                return self.value < other.value
            def __iadd__(self, other):
                self.value += other.value
                return self
            def get(self):
                return self.value

        Vector = ParClass(LocalVector)
        a, b = Vector(ParConstant(1)), Vector(ParConstant(10))
        p = processorID
        assert (a + b).get().value == 11 + 2 * p
        assert (a * ParConstant(3)).get().value == 3 * (1 + p)
        assert (3 * a).get().value == 3 * (1 + p)
        assert (-a).get().value == -1 - p
        assert abs(-a).value == 1 + p
        assert (a == Vector(ParConstant(1))).value is True and (a == b).value is False
        assert (a < b).value is True
        a += b
        assert a.get().value == 11 + 2 * p
        try:
            a + 1
        except TypeError:
            pass
        else:
            raise AssertionError("a local class without this operator")
        try:
            a - b
        except TypeError:
            print("ok")
    """
    assert engine.code(program, n=2).out.split() == ["ok", "ok"]
