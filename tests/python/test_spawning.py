"""`limosa.spawn`, and pools of spawned processes; what becomes of a job whose spawned processes fail."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "spawning.py"


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.on_mpich(n=2)
def test_cases(engine, n):
    assert f"cases went well on {n} ranks" in engine.run(PROGRAM, engine.name, n=n).out


@pytest.mark.parametrize(
    "variable",
    ["LIMOSA_HOSTS=2", "LIMOSA_DEVICE=messages"]
    + [pytest.param(each, marks=pytest.mark.full) for each in ("LIMOSA_CMA=0", "LIMOSA_WAIT=block")],
)
def test_cases_in_all_ways_that_ranks_reach_each_other(variable):
    command = [Path(sys.executable).parent / "limosa", "run", "-n", "2", "-x", variable]
    done = subprocess.run(
        [*command, sys.executable, PROGRAM, "limosa"], capture_output=True, text=True, timeout=600, check=False
    )
    assert "cases went well on 2 ranks" in done.stdout, done.stderr


def test_a_program_without_a_launcher_spawns():
    done = subprocess.run([sys.executable, PROGRAM, "limosa"], capture_output=True, text=True, timeout=600, check=False)
    assert "cases went well on 1 ranks" in done.stdout, done.stderr


FAILING = """
import os
import limosa

def dies():
    os._exit(7)

def raises():
    raise ValueError("wrong from the start")

def leaves(code):
    os._exit(code)

def waits():
    limosa.parent.recv()

if __name__ == "__main__":
    {start}
    workers.recv()
"""


@pytest.fixture
def failing(tmp_path):
    """Run a program that starts something; give its outcome."""

    def run(start: str, n: int = 1) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(FAILING.format(start=start))
        command = [Path(sys.executable).parent / "limosa", "run", "-n", str(n), sys.executable, script]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    return run


def test_a_spawned_process_that_dies_ends_the_job(failing):
    done = failing("workers = limosa.spawn(dies, n=2)")
    assert done.returncode == 7, done.stderr
    assert "exited with code 7" in done.stderr


def test_an_exception_in_a_spawned_process_is_shown_and_ends_the_job(failing):
    done = failing("workers = limosa.spawn(raises)")
    assert done.returncode != 0
    assert "ValueError: wrong from the start" in done.stderr
    assert "in raises" in done.stderr


def test_an_exception_in_the_process_that_has_spawned_ends_the_job(failing, tmp_path):
    done = failing("workers = limosa.spawn(waits, n=2); print(wrong)")
    assert done.returncode == 1, done.stderr
    assert "NameError: name 'wrong' is not defined" in done.stderr
    alone = [sys.executable, tmp_path / "program.py"]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1
    assert "NameError: name 'wrong' is not defined" in done.stderr


POOL = """
import concurrent.futures, contextlib, os, signal, sys, time
import limosa

def dies(how):
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))

def long_value(seconds):
    time.sleep(seconds)
    return bytes(1_000_000)

if __name__ == "__main__":
    with limosa.Executor({arguments}) as pool:
        if pool.is_root:
            assert pool.submit(pow, 2, 5).result() == 32
            futures = [pool.submit(long_value, 0.2), pool.submit(dies, sys.argv[1])]
            with contextlib.suppress(concurrent.futures.BrokenExecutor):
                futures += [pool.submit(pow, 2, 5) for _ in range(1000)]
            texts = set()
            for future in futures[1:]:
                try:
                    future.result(timeout=300)
                except concurrent.futures.BrokenExecutor as error:
                    texts.add(str(error))
            try:
                pool.submit(pow, 2, 5)
            except concurrent.futures.BrokenExecutor:
                print("*".join(texts))
    print("a rank has gone on")
    if pool.is_root:
        sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def pool_with_a_death(tmp_path):
    """Run a program in which a worker of a pool dies; give its outcome."""

    def run(
        how: str, arguments: str = "", *, n: int = 4, code: int = 0, text: str = POOL, options: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "program.py"
        script.write_text(text.replace("{arguments}", arguments))
        launcher = [Path(sys.executable).parent / "limosa", "run", "-n", str(n)] if n else []
        command = [*launcher, sys.executable, *options, script, how, str(code)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)

    return run


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("exit", "exited with code 3"),
        ("SIGKILL", "was killed by signal 9 (SIGKILL"),
        ("SIGSEGV", "was killed by signal 11 (SIGSEGV"),
    ],
)
def test_a_worker_that_dies_breaks_the_pool_and_the_others_go_on(pool_with_a_death, how, text):
    done = pool_with_a_death(how)
    assert done.returncode == 0, done.stderr
    (broken,) = [line for line in done.stdout.splitlines() if text in line]
    assert re.match(r"rank [123] of the pool ", broken)
    assert done.stdout.count("a rank has gone on") == 3
    (lost,) = [line for line in done.stderr.splitlines() if line.startswith("limosa: ")]
    assert lost.startswith(f"limosa: warning: {broken[:6]} (process ")
    assert text in lost


def test_the_exit_code_of_the_root_of_a_broken_pool_counts(pool_with_a_death):
    done = pool_with_a_death("SIGKILL", code=5)
    assert done.returncode == 5, done.stderr


def test_a_spawned_worker_that_dies_breaks_the_pool(pool_with_a_death):
    done = pool_with_a_death("exit", "3, spawn=True", n=1)
    assert done.returncode == 0, done.stderr
    assert "of the pool exited with code 3" in done.stdout


POOL_OF_MPI4PY = """
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor, MPIPoolExecutor
""" + POOL.replace("limosa.Executor({arguments})", "{arguments}").replace("pool.is_root:", "pool is not None:")


@pytest.mark.parametrize(
    ("arguments", "n", "options", "survivors", "how"),
    [
        ("MPICommExecutor()", 4, [], 3, "exit"),
        ("MPICommExecutor()", 4, [], 3, "SIGKILL"),
        ("MPICommExecutor(use_pkl5=True)", 4, [], 3, "exit"),
        ("MPIPoolExecutor()", 4, ["-m", "mpi4py.futures"], 1, "SIGKILL"),
        ("MPIPoolExecutor(3)", 1, [], 1, "exit"),
        ("MPIPoolExecutor(3)", 0, [], 1, "SIGKILL"),
    ],
    ids=["exit", "signal", "with pkl5", "of all ranks", "spawned", "spawned without a launcher"],
)
def test_a_worker_of_mpi4py_futures_that_dies_breaks_the_pool(pool_with_a_death, how, arguments, n, options, survivors):
    text = {"exit": "exited with code 3", "SIGKILL": "was killed by signal 9 (SIGKILL)"}[how]
    done = pool_with_a_death(how, arguments, n=n, text=POOL_OF_MPI4PY, options=options)
    assert done.returncode == 0, done.stderr
    (broken,) = [line for line in done.stdout.splitlines() if text in line]
    assert re.match(r"worker [012] of the pool ", broken)
    assert done.stdout.count("a rank has gone on") == survivors
    (lost,) = [line for line in done.stderr.splitlines() if line.startswith("limosa: ")]
    assert re.match(r"limosa: warning: rank [123] \(process ", lost)
    assert text[:-1] in lost


IDLE = """
import os, threading, time
from concurrent.futures import BrokenExecutor
import limosa
from mpi4py.futures import MPICommExecutor

def dies_later():
    threading.Timer(0.2, os._exit, [3]).start()
    return os.getpid()

def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False

if __name__ == "__main__":
    with {arguments} as pool:
        if pool is not None and getattr(pool, "is_root", True):
            pid = pool.submit(dies_later).result()
            while PAUSE and lives(pid):
                time.sleep(0.05)
            try:
                while PAUSE < 2:
                    pool.submit(pow, 2, 5).result(timeout=300)
            except BrokenExecutor as error:
                print(error)
    print("a rank has gone on")
"""


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("pool", ["limosa.Executor()", "MPICommExecutor()"])
@pytest.mark.parametrize("pause", ["0", "1"], ids=["while the other works", "while none works"])
def test_a_worker_that_dies_between_calls_breaks_the_pool(pool_with_a_death, pause, pool, n):
    done = pool_with_a_death("exit", pool, n=n, text=IDLE.replace("PAUSE", pause))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^(rank|worker) [012] of the pool exited with code 3$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("pool", ["limosa.Executor()", "limosa.Executor(2, spawn=True)", "MPICommExecutor()"])
def test_a_worker_may_have_died_when_the_pool_ends(pool_with_a_death, pool):
    n = 1 if "spawn" in pool else 3
    done = pool_with_a_death("exit", pool, n=n, text=IDLE.replace("PAUSE", "2"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("a rank has gone on") == (n + 1) // 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("arguments", "n"), [("", 3), ("2, spawn=True", 1)])
def test_a_pool_that_is_never_shut_down_ends_with_the_program(pool_with_a_death, arguments, n):
    text = (
        "import time\nimport limosa\nif __name__ == '__main__':\n"
        "    pool = limosa.Executor({arguments})\n    if pool:\n        pool.submit(time.sleep, 0.2)\n"
        "    print('a rank has gone on')\n"
    )
    done = pool_with_a_death("exit", arguments, n=n, text=text)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.count("a rank has gone on") == n


def test_a_broken_pool_that_is_not_noticed_ends_the_job(failing):
    done = failing("pool = limosa.Executor(2, spawn=True); pool.submit(leaves, 9).result()")
    assert done.returncode == 1, done.stderr
    assert "BrokenExecutor: rank 1 of the pool exited with code 9" in done.stderr


def test_a_program_that_spawns_while_it_is_imported_is_told_how_to_avoid_that(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import limosa\ndef f(): pass\nlimosa.spawn(f)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode != 0
    assert "PeerError" in done.stderr and "__main__" in done.stderr, done.stderr
