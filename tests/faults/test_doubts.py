"""Hangs about which there is a doubt (polling, threads that may still act, locks), and programs that only wait long."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.usefixtures("limosa")

HANG_CODE = 86
ABORT = ["--on-hang=abort"]
SOON = {"LIMOSA_HANG_AFTER": "0.1", "LIMOSA_HANG_GRACE": "2"}
"""A hang with a doubt is reported after a second, and ends the job two seconds later."""


@pytest.mark.parametrize("scene", ["join", "lock"])
def test_a_main_thread_that_waits_for_another_one_is_no_way_out(job, program, scene):
    outcome = job([program("hangs"), scene], n=2, options=ABORT).wait(20)
    assert outcome.code == HANG_CODE, outcome.text
    assert "this job hangs: ranks 0, 1 wait" in outcome.err
    assert "another thread, which waits for a lock or for the end of a thread" in outcome.err
    assert "wait for each other in a circle: 0 -> 1 -> 0" in outcome.err


def test_a_rank_alone_that_waits_for_its_own_thread(job, python, tmp_path):
    script = tmp_path / "alone.py"
    script.write_text(
        "import threading\n"
        "from mpi4py import MPI\n"
        "def work():\n"
        "    raise RuntimeError('no work')\n"
        "threading.Thread(target=work).start()\n"
        "MPI.COMM_SELF.recv(source=0, tag=3)\n"
    )
    outcome = job([python, script], n=1, options=ABORT).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "rank 0 waits" in outcome.err
    assert "alone.py:6 in <module>" in outcome.err


def test_a_rank_alone_whose_threads_wait_for_locks(job, python, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(
        "import queue, threading\n"
        "from mpi4py import MPI\n"
        "answers = queue.Queue()\n"
        "def work():\n"
        "    raise RuntimeError('no work')\n"
        "threading.Thread(target=work).start()\n"
        "answers.get()\n"
    )
    outcome = job([python, script], n=1, options=ABORT, env=SOON).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "this job may hang: rank 0 waits" in outcome.err
    assert "rank 0 is not in the library, and all its threads wait for locks" in outcome.err
    assert "pool.py:7 in <module>" in outcome.err


def test_a_rank_outside_the_library_whose_thread_waits_for_a_lock(job, program):
    outcome = job([program("hangs"), "locked-out"], n=2, options=ABORT, env=SOON).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "rank 0 is not in the library" in outcome.err
    assert "rank 1: MPI_Recv from rank 0, tag 5" in outcome.err


@pytest.mark.parametrize(
    "scene, call",
    [
        ("iprobe", "MPI_Iprobe"),
        ("improbe", "MPI_Improbe"),
        ("test", "MPI_Test"),
        ("testany", "MPI_Testany"),
        ("testsome", "MPI_Testsome"),
        ("get-status", "MPI_Request_get_status"),
        ("get-status-any", "MPI_Request_get_status_any"),
    ],
)
def test_polling_for_what_cannot_come_is_reported_with_a_doubt(job, program, scene, call):
    outcome = job([program("hangs"), scene], n=2, options=ABORT, env=SOON).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "this job may hang: ranks 0, 1 wait" in outcome.err
    assert re.search(rf"rank 0: polls with {call} from rank 1, tag 5,.* on MPI_COMM_WORLD, for \d", outcome.err)
    assert "the job will be ended in 2.0 s if nothing happens" in outcome.err


def test_one_rank_polls_and_the_other_waits(job, program):
    outcome = job([program("hangs"), "poll-and-wait"], n=2, options=ABORT, env=SOON).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "rank 0: polls with MPI_Iprobe from rank 1" in outcome.err
    assert "rank 1: MPI_Recv from rank 0" in outcome.err


def test_a_thread_that_never_sends_is_waited_for_twice(job, program):
    outcome = job([program("hangs"), "never-send"], n=2, options=ABORT, env=SOON).wait(30)
    assert outcome.code == HANG_CODE, outcome.text
    assert "another thread, which sleeps and never called the library" in outcome.err
    assert "the job will be ended in 2.0 s if nothing happens" in outcome.err


def test_a_thread_that_sends_later_ends_the_wait(job, program):
    env = {**SOON, "LIMOSA_HANG_GRACE": "60"}
    outcome = job([program("hangs"), "send-after-3-s"], n=2, options=ABORT, env=env).wait(30)
    assert outcome.code == 0, outcome.text
    assert "rank 0 has another thread, which sleeps and never called the library" in outcome.err


@pytest.mark.parametrize("scene", ["send-after-3-s", "poll-for-a-while", "compute-after-polling", "idle-pool"])
def test_whoever_only_takes_long_is_not_reported(job, program, scene):
    outcome = job([program("hangs"), scene], n=2, options=ABORT).wait(30)
    assert outcome.code == 0, outcome.text
    assert outcome.err == ""


def test_a_pool_whose_threads_do_not_communicate_is_not_reported(job, python, tmp_path):
    script = tmp_path / "threads.py"
    script.write_text(
        "import time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 0:\n"
        "    with ThreadPoolExecutor(2) as pool:\n"
        "        list(pool.map(time.sleep, [5, 5]))\n"
        "MPI.COMM_WORLD.barrier()\n"
    )
    outcome = job([python, script], n=2, options=ABORT, env={**SOON, "LIMOSA_HANG_GRACE": "1"}).wait(60)
    assert outcome.code == 0, outcome.text
    assert outcome.err == ""


def test_an_idle_pool_of_python_is_not_reported(job, python, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(
        "import threading, time\n"
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "def collect():\n"
        "    for _ in range(1, world.size):\n"
        "        assert world.recv(tag=2) == 6\n"
        "if world.rank == 0:\n"
        "    collector = threading.Thread(target=collect)\n"
        "    collector.start()\n"
        "    time.sleep(4)\n"
        "    for to in range(1, world.size):\n"
        "        world.send(3, to, tag=1)\n"
        "    collector.join()\n"
        "else:\n"
        "    world.send(2 * world.recv(source=0, tag=1), 0, tag=2)\n"
    )
    outcome = job([python, script], n=3, options=ABORT, env={**SOON, "LIMOSA_HANG_GRACE": "1"}).wait(60)
    assert outcome.code == 0, outcome.text
    assert outcome.err == ""
