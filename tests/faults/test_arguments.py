"""Wrong arguments: the right error class when errors are returned, a clear end of the job when they are fatal."""

from __future__ import annotations

import re

import pytest
from conftest import is_limosa

# mistake: the function, and what the message must name besides
MISTAKES = {
    "rank": ("MPI_Send", "4711"),
    "count": ("MPI_Recv", "-17"),
    "tag": ("MPI_Send", "-99"),
    "truncation": ("MPI_Recv", "16"),
    "root": ("MPI_Bcast", "1234"),
    "null-comm": ("MPI_Comm_size", "comm"),
    "freed-comm": ("MPI_Barrier", "comm"),
    "uncommitted": ("MPI_Send", "commit"),
    "buffer": ("MPI_Send", "buf"),
    "errors-abort": ("MPI_Send", "4711"),
}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_errors_are_returned_with_the_right_class(job, program, limosa, n):
    outcome = job([program("bad_arguments")], n=n).wait(60)
    assert outcome.code == 0, outcome.text
    assert "PASS bad_arguments" in outcome.out


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_fatal_error_ends_the_job_and_says_why(job, program, mistake):
    outcome = job([program("fatal"), mistake], n=3).wait(20)
    function, detail = MISTAKES[mistake]
    assert outcome.code != 0
    assert "went on" not in outcome.out
    if is_limosa():
        assert function in outcome.err, outcome.err
        assert "rank 1" in outcome.err, outcome.err
        assert detail.lower() in outcome.err.lower(), outcome.err
        sentences = re.findall(r"^limosa: error in .* on rank 1: (.*)$", outcome.err, re.MULTILINE)
        assert [outcome.err.count(sentence) for sentence in sentences] == [1], outcome.err


@pytest.mark.parametrize("handler", ["world-handler", "self-handler"])
def test_errors_without_a_communicator_go_to_the_handler_that_the_program_has_set(job, program, limosa, handler):
    outcome = job([program("fatal"), handler], n=3).wait(20)
    assert outcome.code == 0, outcome.text
    assert outcome.out.count("went on") == 3, outcome.text
    assert "error in" not in outcome.err, outcome.err


@pytest.mark.parametrize("mistake", ["before-init", "after-finalize", "init-twice"])
def test_calls_outside_init_and_finalize_are_fatal(job, program, mistake):
    outcome = job([program("fatal"), mistake], n=2).wait(20)
    assert outcome.code != 0
    if is_limosa():
        assert "MPI_" in outcome.err
        assert ("MPI_Init" if mistake != "after-finalize" else "MPI_Finalize") in outcome.err


@pytest.mark.parametrize(
    ("mistake", "function", "detail"),
    [
        ("session-handler", "MPI_Session_init", "MPI_ERRHANDLER_NULL"),
        ("session-world", "MPI_Barrier", "between MPI_Init and MPI_Finalize only"),
        ("session-world-after", "MPI_Barrier", "between MPI_Init and MPI_Finalize only"),
        ("session-finalize", "MPI_Finalize", "call MPI_Init first"),
        ("session-set", "MPI_Group_from_session_pset", "mpi://WORLD, mpi://SELF"),
        ("session-stale", "MPI_Group_from_session_pset", "all sessions have ended"),
        ("session-over", "MPI_Barrier", "all sessions have ended"),
    ],
)
def test_misuse_of_sessions_is_fatal_and_says_why(job, program, limosa, mistake, function, detail):
    outcome = job([program("fatal"), mistake], n=2).wait(20)
    assert outcome.code != 0
    assert "went on" not in outcome.out
    assert function in outcome.err, outcome.err
    assert detail in outcome.err, outcome.err


@pytest.mark.parametrize(("mistake", "code"), [("abort", 42), ("abort-self", 43)])
def test_abort_passes_its_code_on(job, program, mistake, code):
    outcome = job([program("fatal"), mistake], n=3).wait(20)
    assert outcome.code == code, outcome.text
    assert "went on" not in outcome.out


def test_a_bad_table_of_collectives_is_refused_with_its_line(job, program, limosa, tmp_path):
    table = tmp_path / "choices"
    table.write_text("# bytes\nbcast messages * * - bruck\n")
    outcome = job([program("bad_arguments")], n=2, env={"LIMOSA_COLL_TABLE": str(table)}).wait(20)
    assert outcome.code != 0
    assert "MPI_Init" in outcome.err, outcome.err
    assert f"file {table}, line 2: `bruck` is not an algorithm of bcast messages" in outcome.err, outcome.err


def test_ranks_that_choose_differently_are_named(job, program, limosa):
    line = ["env", "LIMOSA_COLL_BCAST=binomial", program("bad_arguments"), ":", "-n", "2", program("bad_arguments")]
    outcome = job(line, n=1).wait(20)
    assert outcome.code != 0
    assert "chooses other algorithms of collectives than rank" in outcome.err, outcome.err
