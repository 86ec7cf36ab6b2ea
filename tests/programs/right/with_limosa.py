"""Correct programs with `import limosa`. Nothing may be reported about them."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import limosa
from cases import case, compute, main

world = limosa.world
rank, size = world.rank, world.size
other = 1 - rank


@case
def hello():
    assert world.allreduce(1) == size


@case
def values_of_all_kinds():
    right, left = (rank + 1) % size, (rank - 1) % size
    for value in (1, 2.5, "text", b"bytes", None, [1, {"a": np.arange(3)}], np.zeros((2, 2))):
        world.sendrecv(value, to=right, source=left)


@case
def long_computation_before_receive():
    if rank == 0:
        compute(5)
        assert world.recv(source=1).sum() == 1 << 20
    else:
        world.send(np.ones(1 << 20), to=0)


@case
def sleeping_rank():
    if rank == size - 1:
        time.sleep(5)
    assert world.allreduce(rank, "max") == size - 1


@case
def iprobe_loop():
    if rank == 0:
        while world.iprobe() is None:
            pass
        world.recv()
    else:
        time.sleep(4)
        world.send(1, to=0)


@case
def test_loop():
    if rank == 0:
        request = world.irecv(source=1)
        while not request.test():
            time.sleep(0.01)
    else:
        compute(4)
        world.send(1, to=0)


@case
def ranks_give_different_types():
    assert world.gather(rank if rank else "zero") in (None, ["zero", *range(1, size)])
    assert world.allgather([rank] * rank) == [[i] * i for i in range(size)]


@case
def integers_of_different_lengths():
    assert world.allreduce(10 ** (30 * rank)) == sum(10 ** (30 * i) for i in range(size))


@case
def errors_handled():
    try:
        world.send(1, to=size)
    except limosa.errors.RankError:
        pass
    world.barrier()


@case
def error_of_a_collective_handled():
    try:
        world.allreduce(np.zeros(rank + 1))
    except limosa.errors.Error:
        pass
    assert world.allreduce(1) == size


@case
def no_neighbour():
    world.send(1, to=None)
    assert world.recv(source=None) is None


@case
def grid():
    grid = world.cart(2, periodic=(True, False))
    for before, after in grid.neighbours:
        grid.sendrecv(np.full(100, rank), to=after, source=before)


@case
def subgroups():
    with world.split(rank % 2) as half:
        for i in range(20):
            half.bcast(i) if rank % 2 else half.allreduce(i)
        if rank % 2:
            time.sleep(3)
        half.barrier()


@case
def roots_change():
    for i in range(50):
        assert world.bcast(i if rank == i % size else None, root=i % size) == i
        world.reduce(i, "max" if i % 2 else "sum", root=(i + 1) % size)


@case
def thread_that_sends_later():
    def later():
        time.sleep(5)
        world.send(1, to=other)

    thread = threading.Thread(target=later)
    thread.start()
    world.recv(source=other)
    thread.join()


@case
def functions_as_operations():
    assert world.allreduce([rank], lambda a, b: a + b) == list(range(size))
    assert world.reduce(np.arange(4), np.maximum) is None or rank == 0


@case
def large_objects():
    mesh = {"name": "mesh", "points": np.zeros((1 << 18, 3))}
    assert world.bcast(mesh if rank == 0 else None)["points"].shape == (1 << 18, 3)


if __name__ == "__main__":
    main()
