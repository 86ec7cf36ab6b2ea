"""Faults of Python jobs: children of ranks, exceptions, exits, closed outputs. The programs are in scene.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

SCENE = Path(__file__).resolve().parent / "scene.py"
CHILDREN = [
    "fork-exit",
    "fork-fall",
    "fork-objects",
    "fork-call",
    "fork-abort",
    "programs",
    "pool-fork",
    "pool-spawn",
    "pool-forkserver",
]


@pytest.mark.parametrize("scene", CHILDREN)
def test_children_of_ranks_disturb_nobody(job, python, scene):
    outcome = job([python, SCENE, scene], n=2, options=["--on-hang=abort"]).wait(20)
    assert outcome.code == 0, outcome.text
    assert sorted(outcome.out.split("\n")) == ["", "rank 0 done", "rank 1 done"]


@pytest.mark.parametrize("runner", [[], ["-m", "mpi4py"]])
@pytest.mark.parametrize(("scene", "code"), [("raise", 1), ("exit", 7)])
def test_a_rank_that_ends_early_ends_the_job(job, python, runner, scene, code):
    outcome = job([python, *runner, SCENE, scene], n=3, options=["--on-hang=off"]).wait(5)
    assert outcome.code == code, outcome.text
    assert "rank 1 " in outcome.err
    assert "scene.py)" in outcome.err, "the script is named, not the interpreter"
    assert ("ValueError: something is wrong" in outcome.err) == (scene == "raise")
    assert "done" not in outcome.out


def test_an_exception_with_a_message_under_way_is_shown_and_the_hang_reported(job, python):
    outcome = job([python, SCENE, "raise-busy"], n=3, options=["--on-hang=abort"]).wait(10)
    assert outcome.code != 0, outcome.text
    assert "ValueError: something is wrong" in outcome.err


def test_an_exception_that_nobody_catches_says_what_was_wrong(job, python):
    outcome = job([python, SCENE, "wrong-rank"], n=2, options=["--on-hang=off"]).wait(10)
    assert outcome.code != 0, outcome.text
    assert re.search(
        r"MPI\.Exception: MPI_Send(_c)?: the destination rank is 4711, but MPI_COMM_WORLD has ranks 0 to 1\b",
        outcome.err,
    )


def test_every_exception_keeps_its_own_sentence(job, python):
    outcome = job([python, SCENE, "error-texts"], n=2).wait(10)
    assert outcome.code == 0, outcome.text


def test_memory_of_a_device_is_an_error_of_the_call(job, python):
    outcome = job([python, SCENE, "device-memory"], n=2).wait(20)
    assert outcome.code == 0, outcome.text


def test_an_abort_with_code_zero_is_a_failure(job, python):
    outcome = job([python, SCENE, "abort-zero"], n=3).wait(5)
    assert outcome.code == 1, outcome.text
    assert "rank 1" in outcome.err


def test_a_rank_may_close_its_output(job, python):
    outcome = job([python, SCENE, "close-stdout"], n=3).wait(10)
    assert outcome.code == 0, outcome.text
    assert outcome.err.count("done") == 3
