"""Where ranks are: `limosa stack`, `limosa ps --stacks`, and the line in which a Python rank crashed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import jobs
import pytest

pytestmark = pytest.mark.usefixtures("limosa")


def until(run: list[str], shows_all: Callable[[str], bool]) -> str:
    """The output of a command, once it shows all: the ranks come one after the other to where they stay."""
    texts = [""]

    def looked() -> bool:
        texts.append(subprocess.run(run, capture_output=True, text=True, timeout=300).stdout)
        return shows_all(texts[-1])

    jobs.until(looked, f"{run} does not show all ranks where they stay")
    return texts[-1]


@pytest.mark.parametrize("command", [["stack"], ["ps", "--stacks"]])
def test_the_stacks_of_python_ranks(job, python, limosa, tmp_path, command):
    script = tmp_path / "waits.py"
    script.write_text(
        "import time\n"
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "def wait():\n"
        "    world.recv(source=0, tag=4) if world.rank else time.sleep(600)\n"
        "wait()\n"
    )
    running = job([python, script], n=2)
    text = until(
        [limosa, *command, str(running.process.pid)],
        lambda text: "from rank 0, tag 4" in text and text.count("waits.py:5)") == 2,
    )
    assert "rank 0, process" in text
    assert "rank 1, process" in text
    assert "from rank 0, tag 4, on MPI_COMM_WORLD" in text
    assert "wait (" in text


def test_the_stacks_of_other_programs(job, program, limosa):
    running = job([program("scene"), "deadlock"], n=2)
    text = until([limosa, "stack", str(running.process.pid)], lambda text: text.count("from rank") == 2)
    assert "from rank 0, tag 7" in text
    assert "thread" in text.lower()


def test_a_job_that_does_not_exist(limosa):
    for command in (["stack", "nonsense"], ["ps", "nonsense"]):
        done = subprocess.run([limosa, *command], capture_output=True, text=True, timeout=300)
        assert done.returncode == 2
        assert "limosa: no job of yours is called `nonsense`" in done.stderr


@pytest.mark.parametrize("mine", [None, ""])
def test_a_python_rank_that_crashes_says_in_which_line(job, python, tmp_path, monkeypatch, mine):
    script = tmp_path / "crash.py"
    script.write_text(
        "import ctypes\n"
        "from mpi4py import MPI\n"
        "def crash():\n"
        "    ctypes.c_int.from_address(8).value = 1\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    crash()\n"
        "MPI.COMM_WORLD.barrier()\n"
    )
    monkeypatch.delenv("PYTHONFAULTHANDLER", raising=False)
    outcome = job([python, script], n=2, env={} if mine is None else {"PYTHONFAULTHANDLER": mine}).wait(60)
    assert outcome.code == 128 + 11, outcome.text
    assert "SIGSEGV" in outcome.err
    assert ("line 4 in crash" in outcome.err) == (mine is None), "the user's own setting counts"
