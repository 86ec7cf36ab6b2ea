"""Correct programs with mpi4py. Nothing may be reported about them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cases import case, compute, main
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
other = 1 - rank


@case
def hello():
    assert world.allreduce(1) == size


@case
def objects():
    right, left = (rank + 1) % size, (rank - 1) % size
    assert world.sendrecv({"from": rank}, right, source=left) == {"from": left}


@case
def long_computation_before_receive():
    if rank == 0:
        compute(5)
        assert world.recv(source=1) == "ready"
    else:
        world.ssend("ready", dest=0)


@case
def sleeping_rank():
    if rank == 0:
        time.sleep(5)
    world.Barrier()


@case
def iprobe_loop():
    if rank == 0:
        while not world.iprobe():
            pass
        world.recv()
    else:
        time.sleep(4)
        world.send(1, dest=0)


@case
def test_loop_that_sleeps():
    if rank == 0:
        request = world.irecv(source=1)
        while not request.test()[0]:
            time.sleep(0.01)
    else:
        compute(4)
        world.send(1, dest=0)


@case
def master_and_workers():
    if rank == 0:
        status = MPI.Status()
        tasks, working = list(range(20)), size - 1
        while working:
            world.recv(status=status)
            task = tasks.pop() if tasks else None
            working -= task is None
            world.send(task, dest=status.source)
    else:
        world.send(None, dest=0)
        while (task := world.recv(source=0)) is not None:
            time.sleep(task % 3 * 0.1)
            world.send(task, dest=0)


@case
def errors_handled():
    try:
        world.send(1, dest=size)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK
    world.Barrier()


@case
def thread_that_sends_later():
    def later():
        time.sleep(5)
        world.send(1, dest=other)

    thread = threading.Thread(target=later)
    thread.start()
    world.recv(source=other)
    thread.join()


@case
def child_process():
    if rank == 0:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(4)"], check=True)
    world.Barrier()


@case
def signal_while_waiting():
    signal.signal(signal.SIGALRM, lambda *_: None)
    if rank == 0:
        time.sleep(3)
        world.send(1, dest=1)
    else:
        signal.alarm(1)
        world.recv(source=0)


@case
def exit_zero():
    world.Barrier()
    sys.exit(0)


@case
def large_arrays():
    out, into = np.full(1 << 22, rank, float), np.zeros(1 << 22)
    world.Sendrecv(out, other, 0, into, other, 0)
    assert into[-1] == other


@case
def subgroups():
    half = world.Split(rank % 2)
    for i in range(20):
        if rank % 2:
            half.bcast(i)
        else:
            half.allreduce(i)
    if rank % 2:
        time.sleep(3)
    half.Barrier()
    half.Free()


@case
def garbage_of_requests():
    for i in range(1000):
        request = world.isend(i, dest=rank)
        assert world.recv(source=rank) == i
        request.wait()


@case
def a_counter_and_parts_of_an_array():
    counter, values = np.zeros(1), np.zeros(4 * size)
    count, parts = MPI.Win.Create(counter, 8, comm=world), MPI.Win.Create(values, 8, comm=world)
    for step in range(3):
        count.Fence()
        count.Accumulate(np.ones(1), 0)
        count.Accumulate(np.ones(1), 0)
        count.Fence()
        parts.Fence()
        parts.Put(np.full(4, float(step)), 0, target=4 * rank)
        parts.Fence()
        got = np.empty(4 * size)
        parts.Get(got, 0)
        parts.Fence()
        assert got.tolist() == [step] * (4 * size)
    assert rank > 0 or counter[0] == 6 * size
    parts.Free()
    count.Free()


if __name__ == "__main__":
    main()
