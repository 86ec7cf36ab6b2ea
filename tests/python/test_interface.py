"""Values of all kinds between ranks, and collective calls: the cases are in `programs`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "n"),
    [
        ("values", 2),
        ("values", 3),
        ("collectives", 1),
        ("collectives", 2),
        ("collectives", 3),
        ("errors", 2),
        ("errors", 3),
        ("requests", 2),
        ("requests", 3),
    ],
)
def test_cases(engine, program, n):
    assert f"cases went well on {n} ranks" in engine.run(PROGRAMS / f"{program}.py", n=n).out


RAISES = """
    import limosa
    import numpy as np

    world = limosa.world
    print("started", flush=True)
    if world.rank == 1:
        raise ValueError("one rank is wrong")
    world.{call}
"""


@pytest.mark.parametrize(
    "call", ["recv(source=1)", "allreduce(np.ones(3))", "allgather({})", "bcast(root=1)", "barrier()"]
)
def test_an_uncaught_exception_ends_the_job_and_only_its_traceback_is_shown(engine, call):
    outcome = engine.code(RAISES.format(call=call), n=3, limit=20, succeeds=False)
    assert outcome.code != 0
    marked = [line for line in outcome.err.splitlines() if line.startswith("[rank ")]
    assert marked[0] == "[rank 1] Traceback (most recent call last):", outcome.text
    assert marked[-1] == "[rank 1] ValueError: one rank is wrong"
    assert all(line.startswith("[rank 1] ") for line in marked)
    assert outcome.text.count("Traceback") == 1


def test_errors_of_the_interface_end_the_job_in_the_same_way(engine):
    program = """
        import limosa
        if limosa.world.rank == 1:
            limosa.world.send(1, to=5)
        limosa.world.barrier()
    """
    outcome = engine.code(program, limit=20, succeeds=False)
    assert outcome.code != 0
    words = "[rank 1] limosa.errors.RankError: send on rank 1: to=5 is not in the communicator, whose ranks are 0 to 1"
    assert words in outcome.err.splitlines()


MODULES = (
    "import sys, mpi4py.MPI, numpy; before = set(sys.modules); import limosa; {use}; "
    "print(*sorted(set(sys.modules) - before))"
)


def test_the_interface_loads_little_and_the_package_next_to_nothing():
    def loaded(use: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", MODULES.format(use=use)], check=True, capture_output=True, text=True, timeout=60
        )
        return set(done.stdout.split())

    assert loaded("pass") <= {"limosa", "__future__"}
    ours = {name for name in loaded("limosa.world, limosa.Request, limosa.Op") if not name.startswith("limosa")}
    heavy = {
        "asyncio",
        "multiprocessing",
        "concurrent",
        "matplotlib",
        "subprocess",
        "importlib.metadata",
        "mpi4py.futures",
    }
    assert not ours & heavy, ours
    assert len(ours) < 10, ours


def test_importing_the_package_does_not_need_or_start_mpi():
    code = (
        "import sys, limosa; assert 'mpi4py' not in sys.modules; limosa.errors; assert 'mpi4py.MPI' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
