"""Programs of one rank without a launcher: `python program.py`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from jobs import PATIENCE


def alone(text: str, limit: float = 60 * PATIENCE, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program without a launcher; it is killed when its time is over."""
    command = [sys.executable, "-c", f"from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n{text}"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LIMOSA_")}
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=variables | env, check=False)


@pytest.mark.parametrize(
    "text",
    [
        "comm.recv(source=0, tag=5)",
        "comm.Recv(bytearray(8), source=0, tag=5)",
        "import numpy, threading\n"
        "threading.Thread(target=lambda: 1 / 0).start()  # as a pool whose only worker has failed\n"
        "comm.Recv(bytearray(8), tag=5)",
    ],
)
def test_a_hang_is_reported_and_ends_the_process_if_asked_for(text):
    done = alone(text, LIMOSA_ON_HANG="abort", LIMOSA_HANG_GRACE="1")
    assert done.returncode == 86, done.stderr
    assert "limosa: this job hangs: rank 0 waits" in done.stderr or "this job may hang" in done.stderr
    assert "tag 5, on MPI_COMM_WORLD" in done.stderr
    assert "limosa: ending the job because of the hang (LIMOSA_ON_HANG=abort)" in done.stderr


def test_without_that_the_process_goes_on_and_is_told_once():
    text = (
        "import threading, time\n"
        "lock = threading.Lock(); lock.acquire()\n"
        "def later():\n"
        "    comm.Iprobe(tag=6)  # from now on it counts as a thread that uses the library\n"
        "    lock.acquire(timeout=6)\n"
        "    comm.Send(bytes(8), 0, tag=5)\n"
        "threading.Thread(target=later).start()\n"
        "comm.Recv(bytearray(8), tag=5)\n"
        "print('went on')"
    )
    done = alone(text)
    assert done.returncode == 0 and done.stdout == "went on\n", done.stderr
    assert done.stderr.count("hang") <= 1, done.stderr


@pytest.mark.parametrize("variables", [{"LIMOSA_ON_HANG": "abort"}, {"LIMOSA_ON_HANG": "off"}])
def test_a_thread_that_works_may_still_send(variables):
    text = (
        "import threading, time\n"
        "def later():\n"
        "    end = time.monotonic() + 4\n"
        "    while time.monotonic() < end: sum(range(1000))\n"
        "    comm.send('result', dest=0, tag=5)\n"
        "threading.Thread(target=later).start()\n"
        "print(comm.recv(tag=5))"
    )
    done = alone(text, **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "result\n", "")


@pytest.mark.parametrize(
    "receive", ["comm.recv(tag=5)", "comm.Probe(tag=5), comm.recv(tag=5)", "comm.mprobe(tag=5).recv()"]
)
def test_a_message_from_a_thread_of_the_same_rank_ends_a_probe(engine, receive):
    text = f"""
        import threading, time
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        def later():
            time.sleep(0.5)
            comm.send("from here", dest=comm.rank, tag=5)
        threading.Thread(target=later).start()
        {receive}
        print("arrived")
    """
    assert engine.code(text, n=2, limit=30).out.count("arrived") == 2
