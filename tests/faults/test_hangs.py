"""Hang reports: what is said about a job that hangs, and silence about a job that does not."""

from __future__ import annotations

import re
import threading

import pytest
from jobs import patient

pytestmark = pytest.mark.usefixtures("limosa")

HANG_CODE = 86
ABORT = ["--on-hang=abort"]


def test_two_ranks_that_both_receive(job, program):
    outcome = job([program("scene"), "deadlock"], n=2, options=ABORT).wait(10)
    assert outcome.code == HANG_CODE, outcome.text
    for rank in (0, 1):
        assert re.search(rf"rank {rank}: MPI_Recv from rank {1 - rank}, tag 7, on MPI_COMM_WORLD", outcome.err), (
            outcome.err
        )
    assert "circle" in outcome.err


@pytest.mark.parametrize("wait", ["block", "auto", "poll"])
def test_each_way_of_waiting_is_reported(job, program, wait):
    outcome = job([program("scene"), "deadlock"], n=3, options=ABORT, env={"LIMOSA_WAIT": wait}).wait(10)
    assert outcome.code == HANG_CODE, outcome.text
    assert "MPI_Recv" in outcome.err


@pytest.mark.parametrize("n", [2, 4])
def test_a_rank_missing_from_a_collective(job, program, n):
    outcome = job([program("scene"), "missing"], n=n, options=ABORT).wait(10)
    assert outcome.code == HANG_CODE, outcome.text
    assert f"rank {n - 1} is not in MPI_Barrier" in outcome.err, outcome.err
    assert re.search(r"MPI_Recv from rank 0, tag 12", outcome.err), outcome.err


def test_a_rank_that_left_while_another_waits(job, program):
    outcome = job([program("scene"), "left"], n=2, options=ABORT).wait(10)
    assert outcome.code == HANG_CODE, outcome.text
    assert "rank 0 has left by MPI_Finalize while rank 1 waits for it" in outcome.err, outcome.err


def test_the_default_is_to_report_and_to_keep_waiting(job, program):
    running = job([program("scene"), "deadlock"], n=2)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(running.process.stderr.readline()))
    reader.start()
    reader.join(patient(30))
    assert seen, "no report"
    assert "hangs" in seen[0]
    assert running.process.poll() is None


@pytest.mark.parametrize("scene", ["sleeper", "slow-child", "computer", "poller"])
def test_no_false_alarm(job, program, scene):
    outcome = job([program("scene"), scene], n=3, options=ABORT).wait(20)
    assert outcome.code == 0, outcome.text
    assert outcome.err == ""


def test_a_python_program_shows_its_source_line(job, python, tmp_path):
    script = tmp_path / "stuck.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "\n"
        "def exchange():\n"
        "    return comm.recv(source=1 - comm.rank, tag=3)\n"
        "\n"
        "exchange()\n"
    )
    outcome = job([python, script], n=2, options=ABORT).wait(20)
    assert outcome.code == HANG_CODE, outcome.text
    assert outcome.err.count("stuck.py:5") >= 1, outcome.err
    assert "exchange" in outcome.err


@pytest.mark.parametrize(
    "scene, sentence",
    [
        ("tag", "tag 6 from rank 1 lies unreceived at rank 0 while tag 5 is awaited"),
        ("source", "tag 5 from rank 0 lies unreceived at rank 0 while it is awaited from rank 1"),
        (
            "communicator",
            "tag 5 from rank 1 lies unreceived at rank 0 on rows, while a message on MPI_COMM_WORLD is awaited",
        ),
    ],
)
def test_a_message_that_lies_there_unreceived_is_named(job, program, scene, sentence):
    outcome = job([program("hangs"), scene], n=2, options=ABORT).wait(20)
    assert outcome.code == HANG_CODE, outcome.text
    assert f"limosa: {sentence}\n" in outcome.err, outcome.err


def test_whoever_has_done_its_part_of_a_collective_is_not_said_to_be_missing(job, program):
    outcome = job([program("hangs"), "reduction"], n=3, options=["--on-hang=abort"]).wait(20)
    assert outcome.code == HANG_CODE, outcome.text
    assert "ranks 1, 2 have not started MPI_Ireduce on MPI_COMM_WORLD, or have done their part of it; they wait in" in (
        outcome.err
    )


def test_members_of_one_barrier_do_not_wait_for_each_other(job, program):
    outcome = job([program("hangs"), "barrier"], n=5, options=ABORT).wait(20)
    assert outcome.code == HANG_CODE, outcome.text
    assert "limosa: rank 1 is not in MPI_Barrier on MPI_COMM_WORLD; it waits in MPI_Recv from rank 0" in outcome.err
    circles = re.findall(r"in a circle: (.*)", outcome.err)
    assert circles == ["0 -> 1 -> 0"], outcome.err


def test_different_collectives_in_the_background_are_named(job, program):
    outcome = job([program("hangs"), "background"], n=2, options=ABORT).wait(20)
    assert outcome.code != 0, outcome.text
    for call in ("MPI_I?[Bb]arrier", "MPI_I?[Bb]cast"):
        assert re.search(call, outcome.err), outcome.err


@pytest.mark.parametrize(
    ("what", "waits"),
    [
        ("neighbours", ["MPI_Neighbor_alltoall on ", "rank 1 is not in MPI_Neighbor_alltoall"]),
        ("inter-receive", [r"rank 0: MPI_Recv from rank 0 \(world rank 1\), tag 5, on bridge"]),
        ("inter-barrier", ["rank 0 is not in MPI_Barrier on bridge; it waits in MPI_Recv"]),
        ("inter-create", ["rank 0: MPI_Recv from rank 1, tag 5", "MPI_(Comm_split|Intercomm_create)"]),
    ],
)
def test_topologies_and_intercommunicators_are_named(job, program, what, waits):
    outcome = job([program("hangs"), what], n=3, options=ABORT).wait(20)
    assert outcome.code == HANG_CODE, outcome.text
    for wait in waits:
        assert re.search(wait, outcome.err), outcome.err


WRONG_TAG = """
import numpy as np
{imports}
def exchange():
    {receive}
exchange()
"""


@pytest.mark.parametrize(
    "imports, receive, hint",
    [
        (
            "from mpi4py import MPI; comm = MPI.COMM_WORLD",
            "comm.recv(source=1 - comm.rank, tag=3)",
            "Sendrecv or Irecv",
        ),
        ("import limosa; world = limosa.world", "world.recv(1 - world.rank, tag=3)", "sendrecv or irecv"),
    ],
)
def test_a_python_program_gets_hints_in_its_own_language(job, python, tmp_path, imports, receive, hint):
    script = tmp_path / "stuck.py"
    script.write_text(WRONG_TAG.format(imports=imports, receive=receive))
    outcome = job([python, script], n=2, options=ABORT).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert hint in outcome.err, outcome.err
    assert "hint: each of them" in outcome.err
    assert "MPI_Sendrecv" not in outcome.err
    assert "stuck.py:5 in exchange" in outcome.err
    assert "tag 3" in outcome.err


@pytest.mark.parametrize("value", ["1.0", "[0] * 5000"], ids=["short: without a frame of Python", "long: with one"])
def test_verbs_of_the_python_interface_have_their_names(job, python, tmp_path, value):
    script = tmp_path / "sum.py"
    script.write_text(
        "import limosa\nworld = limosa.world\nif world.rank == 0:\n    world.recv(1, tag=3)\n"
        f"world.allreduce({value})\n"
    )
    outcome = job([python, script], n=3, options=ABORT).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "ranks 1, 2: limosa.world.allreduce" in outcome.err, outcome.err
    assert "sum.py:5 in <module>" in outcome.err
    assert "rank 0: limosa.world.recv from rank 1, tag 3, for" in outcome.err
    assert "rank 0 is not in limosa.world.allreduce; it waits in limosa.world.recv from rank 1, tag 3" in outcome.err
    assert "MPI_Allgather" not in outcome.err
    assert "unnamed" not in outcome.err


AWAITED = {
    "Request.test": "from mpi4py import MPI\nrequest = MPI.COMM_WORLD.irecv()\nwhile not request.test()[0]: pass\n",
    "MPI_Test": "from mpi4py import MPI\nr = MPI.COMM_WORLD.Irecv(bytearray(1))\nwhile not r.Test(): pass\n",
    "test": "import limosa\nrequest = limosa.world.irecv()\nwhile not request.test(): pass\n",
    "an awaited request": "import asyncio, limosa\nasync def main(): await limosa.world.irecv()\nasyncio.run(main())\n",
}


@pytest.mark.parametrize("call", AWAITED)
def test_ranks_that_only_poll_are_told_in_the_words_of_their_language(job, python, tmp_path, call):
    script = tmp_path / "poll.py"
    script.write_text(AWAITED[call])
    environment = {"LIMOSA_HANG_AFTER": "0.2", "LIMOSA_HANG_GRACE": "0.1"}
    outcome = job([python, script], n=2, options=ABORT, env=environment).wait(60)
    assert outcome.code == HANG_CODE, outcome.text
    assert f"ranks 0, 1: polls with {call} from any rank" in outcome.err, outcome.err
    assert "poll.py:" in outcome.err


@pytest.mark.parametrize(
    "wait, call",
    [("request.wait()", "Request.wait"), ("MPI.Request.waitall([request])", "Request.waitall")],
)
def test_waits_for_objects_have_the_names_of_mpi4py(job, python, tmp_path, wait, call):
    script = tmp_path / "wait.py"
    script.write_text(f"from mpi4py import MPI\nrequest = MPI.COMM_WORLD.irecv(source=0, tag=5)\n{wait}\n")
    outcome = job([python, script], n=2, options=ABORT).wait(60)
    assert outcome.code == HANG_CODE, outcome.text
    assert f"ranks 0, 1: {call} from rank 0, tag 5, on MPI_COMM_WORLD, for" in outcome.err, outcome.err
    assert "MPI_Wait" not in outcome.err


def test_an_executor_has_its_name(job, python):
    code = "import limosa\nif limosa.world.rank == 0: limosa.Executor()\nelse: limosa.world.recv(0)"
    outcome = job([python, "-c", code], n=2, options=ABORT).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "rank 0: limosa.Executor on limosa.world, which needs" in outcome.err, outcome.err


def test_verbs_in_a_command_line_have_their_names(job, python):
    code = "import limosa; world = limosa.world\nif world.rank: world.bcast(1)"
    outcome = job([python, "-c", code + "\nelse: world.recv()"], n=2, options=ABORT).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "rank 0 is not in limosa.world.bcast; it waits in limosa.world.recv" in outcome.err, outcome.err
