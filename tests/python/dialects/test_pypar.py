"""pypar: programs as its users wrote them, on several MPI libraries. What they check is in the programs themselves."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent / "scripts"


def test_hello(engine):
    outcome = engine.run(SCRIPTS / "pypar_hello.py", n=4)
    assert sorted(re.findall(r"Hello, world! I'm process (\d) of 4\.", outcome.out)) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("n", [2, 3])
def test_every_function_with_every_kind_of_data(engine, n):
    outcome = engine.run(SCRIPTS / "pypar_everything.py", n=n)
    assert sorted(re.findall(rf"processor (\d+) of {n} is content", outcome.out)) == list(map(str, range(n)))


@pytest.mark.parametrize(
    ("script", "n", "said"),
    [
        ("pypar_pingpong.py", 2, "1048576 bytes ok"),
        ("pypar_wave.py", 3, "same as on one process"),
        ("pypar_cg.py", 3, r"converged after \d+ steps"),
        ("pypar_ring.py", 3, 'Processor 0 received message "P0P1P2" of 6 bytes from processor 2'),
        ("pypar_master_slave.py", 4, "17 pieces of work done"),
        ("pypar_mandelbrot.py blockwise", 3, "picture ok"),
        ("pypar_mandelbrot.py cyclic", 3, "picture ok"),
        ("pypar_mandelbrot.py dynamic", 3, "picture ok"),
        ("pypar_mapreduce.py", 3, "pi is about 3.14159\nwords counted\nforeach ok\nmaster and slaves ok"),
        ("pypar_pool.py", 3, "pool ok"),
        ("pypar_bsend.py", 3, "all arrived"),
    ],
)
@pytest.mark.on_mpich(script="pypar_wave.py")
def test_programs(engine, script, n, said):
    name, *arguments = script.split()
    outcome = engine.run(SCRIPTS / name, *arguments, n=n)
    assert re.search(said, outcome.out), outcome.text


@pytest.mark.parametrize("script", ["pypar_hello.py", "pypar_wave.py", "pypar_cg.py", "pypar_pool.py"])
def test_runs_without_a_launcher(script):
    done = subprocess.run([sys.executable, SCRIPTS / script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_unit_tests_start_their_own_jobs():
    done = subprocess.run([sys.executable, SCRIPTS / "pypar_unittest.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "Ran 2 tests" in done.stderr
    assert "FAILED (failures=1)" in done.stderr
    assert "as it should" in done.stderr


def test_an_exception_on_one_rank_ends_the_job(engine):
    outcome = engine.code(
        """
        import pypar
        if pypar.rank() == 1:
            raise ValueError("something is wrong")
        pypar.receive(1)
        """,
        n=3,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert outcome.err.count("ValueError: something is wrong") == 1


def test_an_array_on_the_root_only_is_an_error_and_no_hang(engine):
    outcome = engine.code(
        """
        import numpy, pypar
        pypar.scatter(numpy.arange(4.0) if pypar.rank() == 0 else None, 0)
        """,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert "scatter works with arrays of numbers and strings only, not with NoneType" in outcome.err


@pytest.mark.parametrize("length", [2, 64, 100_000])
def test_a_broadcast_that_fills_arrays_on_some_ranks_only_is_an_error_and_no_hang(engine, length):
    outcome = engine.code(
        """
        import sys, numpy, pypar
        x = pypar.broadcast(numpy.ones(int(sys.argv[1])) if pypar.rank() == 0 else None, 0)
        if pypar.rank() == 0:
            pypar.barrier()
        """,
        length,
        succeeds=False,
        limit=30,
    )
    assert outcome.code != 0
    assert "pass an array of the same type and size on every rank" in outcome.err


def test_a_string_that_cannot_be_filled_is_warned_of(engine):
    program = """
        import warnings, pypar
        rank, size = pypar.rank(), pypar.size()
        buffer = " " * 5
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if rank == 0:
                pypar.send("hello", 1, use_buffer=True)
                pypar.send("hello", 1, use_buffer=True)
                pypar.send("hello", 1, use_buffer=True)
            elif rank == 1:
                pypar.receive(0, buffer=buffer)
                assert [str(one.message)[:14] for one in caught] == ["pypar.receive:"], caught
                assert caught[0].filename == __file__ and "bytearray" in str(caught[0].message)
                assert pypar.receive(0, buffer=buffer) == "hello"
                filled = bytearray(5)
                pypar.receive(0, buffer=filled)
                assert filled == b"hello" and len(caught) == 1, caught
            pypar.broadcast(buffer if rank else "12345", 0)
            assert len(caught) == (rank == 1) + (rank != 0), caught
            text = pypar.broadcast(buffer if rank else "12345", 0)
            assert text == "12345"
            pypar.gather("ab", 0, buffer="    " if rank == 0 else None)
            assert len(caught) == (rank == 1) + 1, caught
            assert pypar.scatter("abcd", 0, buffer="  ") == "abcd"[2 * rank : 2 * rank + 2]
            assert len(caught) == (rank == 1) + 1, caught
        print("ok")
    """
    assert engine.code(program, n=2).out.split() == ["ok", "ok"]
