"""Values of all kinds between ranks, and collective calls: the cases are in `programs`."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from jobs import LIMOSA, Job

PROGRAMS = Path(__file__).parent / "programs"


def command_of(program: str) -> list[object]:
    """The program's words behind `python`."""
    return [PROGRAMS / f"{program}.py"]


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
        ("nonblocking", 1),
        ("nonblocking", 2),
        ("nonblocking", 3),
        ("helpers", 1),
        ("helpers", 2),
        ("helpers", 4),
        ("repeated", 1),
        ("repeated", 3),
        ("short", 1),
        ("short", 2),
        ("short", 4),
        *((program, n) for program in ("neighbours", "windows", "executor", "files") for n in (1, 2, 4)),
        # The last with their numbers of ranks: they leave sends to the end of the program.
        ("requests", 2),
        ("requests", 3),
    ],
)
def test_cases(engine, outcome_in_turn, program, n):
    outcome = outcome_in_turn(command_of, partial(engine.start, n=n))
    assert outcome.code == 0 and f"cases went well on {n} ranks" in outcome.out, outcome.text


@pytest.mark.parametrize("variable", ["LIMOSA_HOSTS=2", "LIMOSA_DEVICE=messages", "LIMOSA_CMA=0", "LIMOSA_WAIT=block"])
@pytest.mark.parametrize("program", ["neighbours", "windows", "executor", "short", "files"])
def test_cases_in_all_ways_that_ranks_reach_each_other(outcome_in_turn, program, variable):
    apart = ["apart"] if variable.startswith(("LIMOSA_HOSTS", "LIMOSA_DEVICE")) else []
    line = [str(LIMOSA), "run", "-n", "3", "-x", variable, sys.executable]
    outcome = outcome_in_turn(
        lambda name: [*command_of(name), *apart], lambda *words: Job([*line, *(str(word) for word in words)])
    )
    assert outcome.code == 0 and "cases went well on 3 ranks" in outcome.out, outcome.text


@pytest.mark.parametrize("program", ["values", "collectives", "errors", "repeated", "short", "requests"])
def test_the_interface_does_the_same_without_its_compiled_module(engine, outcome_in_turn, program):
    outcome = outcome_in_turn(command_of, partial(engine.start, env={"LIMOSA_PYTHON_FAST_PATH": "0"}))
    assert outcome.code == 0 and "cases went well on 2 ranks" in outcome.out, outcome.text


def test_the_compiled_module_is_there_and_in_use(engine):
    text = "import limosa; print(type(limosa.world._channel).__module__)"
    assert engine.code(text, n=1).out.split() == ["limosa._fast_path"]


def test_compiled_methods_are_documented_as_those_of_python(engine):
    text = """
        import inspect
        import limosa
        assert str(inspect.signature(limosa.world.bcast)) == "(x=None, root=0, *, out=None)"
        for kind in limosa.Comm.__mro__[1:]:
            for name, method in vars(kind).items():
                if name in vars(limosa.Comm) and not name.startswith("__"):
                    print(name, getattr(limosa.Comm, name).__doc__ == method.__doc__)
    """
    shown = engine.code(text, n=1).out.split("\n")
    assert "send True" in shown and "allreduce True" in shown
    assert not [line for line in shown if line.endswith("False")]


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
@pytest.mark.on_mpich(call="barrier()")
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


def traceback_of(engine, text: str, **options) -> list[str]:
    """The lines of the one traceback that a job shows, without the rank."""
    outcome = engine.code(text, limit=20, succeeds=False, **options)
    assert outcome.code != 0
    assert outcome.text.count("Traceback") == 1, outcome.text
    assert "MPI_Abort" not in outcome.text
    return [line.split("] ", 1)[1] for line in outcome.err.splitlines() if line.startswith("[rank ")]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("world.send(1, to=99)", "limosa.errors.RankError: send on rank 1: to=99 is not"),
        ("world.send(lambda: 0, to=0)", "pickle"),
        ("world.irecv(source=-1)", "limosa.errors.RankError: irecv on rank 1: source=-1"),
        ("world.recv(out=5)", "limosa.errors.BufferError: recv on rank 1: out is a int"),
        ("mpi.Send(bytes(1), 99)", "mpi4py.MPI.Exception: "),
    ],
)
@pytest.mark.on_mpich(call="mpi.Send(bytes(1), 99)")
def test_a_traceback_has_only_the_frames_of_the_user(engine, call, error):
    program = """
        import limosa
        from mpi4py import MPI

        world, mpi = limosa.world, MPI.COMM_WORLD
        def work():
            CALL
        if world.rank == 1:
            work()
        world.recv(tag=5)
    """
    lines = traceback_of(engine, program.replace("CALL", call))
    frames = [line for line in lines if line.startswith("  File")]
    assert len(frames) == 2, lines
    assert frames[0].endswith("in <module>") and frames[1].endswith("in work") and "program" in frames[1]
    assert lines[lines.index(frames[1]) + 1].strip() == call
    assert any(error in line for line in lines), lines


def test_what_was_printed_before_an_exception_is_not_lost(engine):
    program = """
        import ctypes, limosa
        world = limosa.world
        if world.rank == 1:
            print("by Python", end="")
            ctypes.CDLL(None).printf(b"by C\\n")
            raise ValueError
        world.recv(tag=5)
    """
    outcome = engine.code(program, limit=20, succeeds=False)
    assert "by Python" in outcome.out and ("by C" in outcome.out or engine.name != "limosa"), outcome.text


def test_a_function_of_the_user_that_is_called_by_the_library_is_in_the_traceback(engine):
    program = """
        import limosa
        def broken(a, b):
            return a / 0
        limosa.world.reduce(1, broken, root=0)  # Rank 1 does not call the function: it only sends its value.
        limosa.world.barrier()
    """
    lines = traceback_of(engine, program)
    assert [line.split(" in ")[1] for line in lines if line.startswith("  File")] == ["<module>", "broken"], lines


def test_the_development_mode_shows_the_frames_of_the_library(engine):
    program = "import limosa\nlimosa.world.send(1, to=99)"
    lines = traceback_of(engine, program, env={"PYTHONDEVMODE": "1"})
    assert any("site-packages/limosa/_" in line for line in lines), lines


@pytest.mark.parametrize("request_", ["irecv(source=1 - world.rank, tag=7)", "ibarrier() if world.rank == 0 else None"])
def test_a_deadlock_is_reported_although_a_request_is_under_way(tmp_path, request_):
    script = tmp_path / "script.py"
    script.write_text(
        f"import limosa\nworld = limosa.world\nrequest = world.{request_}\nworld.recv(source=1 - world.rank, tag=5)\n"
    )
    command = [Path(sys.executable).parent / "limosa", "run", "--on-hang", "abort", "-n", "2", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert "this job hangs" in done.stderr and "script.py:4" in done.stderr, done.stderr


def test_the_error_of_a_receive_by_mpi4py_has_the_sentence(engine):
    program = """
        from mpi4py import MPI
        comm = MPI.COMM_SELF
        request = comm.Isend(bytes(8), 0)
        try:
            comm.Recv(bytearray(4), 0)
        except MPI.Exception as error:
            print(error)
        request.Wait()
    """
    said = engine.code(program, n=1).out
    if engine.name == "limosa":
        assert said.strip().endswith(": a message of 8 bytes arrived for a receive buffer of 4 bytes")
    else:
        assert "truncated" in said


MODULES = (
    "import sys, mpi4py.MPI, numpy; before = set(sys.modules); import limosa; {use}; "
    "print(*sorted(set(sys.modules) - before))"
)


def test_the_interface_loads_little_and_the_package_next_to_nothing():
    def loaded(use: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", MODULES.format(use=use)], check=True, capture_output=True, text=True, timeout=300
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
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
