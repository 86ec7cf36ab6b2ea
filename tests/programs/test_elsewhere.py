"""The programs on another library, with the checks that stand before it: `limosa run --mpi mpich --check`.

Correct ones pass in silence, and of the wrong ones those are told that these checks are for.

Every third correct program runs; all do with FULL=1.
"""

from __future__ import annotations

import os

import pytest
from programs import Runner, cases

# Wrong programs, and parts of what is said of them.
TOLD = {
    "p2p:types_differ": ["a message from rank 0 holds MPI_", "and was received as MPI_", "sent by MPI_Send, at p2p.c:"],
    "p2p:message_never_received": ["at MPI_Finalize: a message from rank", "was never received: tag "],
    "collective:barrier_against_bcast": ["MPI_Barrier at rank", "MPI_Bcast at rank", "at collective.c:"],
    "collective:bcast_roots_differ": ["the ranks do not agree: root "],
    "collective:allreduce_operations_differ": ["MPI_SUM at rank", "MPI_MAX at rank"],
    "collective:bcast_lengths_differ": [" bytes at rank"],
    "collective:order_differs": ["the ranks do not agree: MPI_"],
    "background:receive_never_completed": ["a request was never completed: MPI_Irecv from rank", "tag 55"],
    "background:persistent_request_never_freed": ["a persistent request was never freed: MPI_Send_init"],
}

WRONG = {f"{case.theme}:{case.name}": case for case in cases("wrong") if case.on == "here"}
RIGHT = [case for case in cases("right") if case.on == "here"]
SHARE = 1 if os.environ.get("FULL") else 3


@pytest.fixture(scope="module")
def runner(tmp_path_factory) -> Runner:
    made = Runner(tmp_path_factory.mktemp("programs"), mpi="mpich")
    made.build()
    return made


@pytest.mark.parametrize("name", TOLD)
def test_a_wrong_program_is_told(runner, name):
    outcome = runner.run(WRONG[name])
    assert outcome is not None
    lacking = [part for part in TOLD[name] if part not in outcome.err]
    assert not lacking, outcome.text


# What MPICH itself does wrong there, with or without the checks.
NOT_THERE = {
    "inter:every_operation_in_the_background": "MPICH gives a wrong result there, with or without the checks",
    "group:exit_zero_after_finalize": "MPICH's launcher kills one in 571 jobs whose ranks end at once after "
    "MPI_Finalize, with or without the checks",
}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in RIGHT[::SHARE]])
def test_a_correct_program_is_left_alone(runner, case):
    if reason := NOT_THERE.get(f"{case.theme}:{case.name}"):
        pytest.skip(reason)
    outcome = runner.run(case)
    assert outcome is not None, "it did not end"
    assert outcome.code == case.row.get("code", 0), outcome.text
    assert "limosa: " not in outcome.err, outcome.text
