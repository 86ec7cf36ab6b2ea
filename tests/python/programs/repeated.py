"""Calls that are made again and again with arrays like before, as the fast path takes them. Any number of ranks.

Each is compared with what the first call of its kind must give, computed here.
"""

from __future__ import annotations

import threading

import limosa
import numpy as np
from cases import raises, run

world = limosa.world
rank, size = world.rank, world.size
everyone = range(size)
TYPES = ["f8", "f4", "i8", "i4", "u8", "u4", "i2", "c16", "?"]
ROUNDS = 4


def data(kind, of_rank, turn, shape=(3,)):
    """Numbers that differ from rank to rank and from turn to turn, the last near the end of their range."""
    values = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) + 7 * of_rank + 100 * turn)
    made = values.astype(kind)
    if made.dtype.kind in "iu" and made.size:
        made.flat[-1] = np.iinfo(kind).max - of_rank
    return made


def same(got, expected):
    return (
        type(got) is type(expected)
        and got.dtype == expected.dtype
        and got.shape == expected.shape
        and np.array_equal(got, expected, equal_nan=got.dtype.kind in "fc")
    )


def case_movement():
    for kind in TYPES:
        for shape in [(3,), (), (0,), (2, 2), (1, 2, 1), (1, 1, 1, 2)]:
            for turn in range(ROUNDS):
                mine, all_of_them = data(kind, rank, turn, shape), [data(kind, r, turn, shape) for r in everyone]
                assert same(world.allgather(mine), np.array(all_of_them))
                for root in everyone:
                    gathered = world.gather(mine, root)
                    assert same(gathered, np.array(all_of_them)) if rank == root else gathered is None
                    assert same(np.asarray(world.bcast(mine if rank == root else None, root)), all_of_them[root])


def case_blocks():
    for kind in TYPES:
        for shape in [(), (2,), (2, 1)]:
            for turn in range(ROUNDS):
                block = data(kind, rank, turn, (size, *shape))
                blocks = [data(kind, r, turn, (size, *shape)) for r in everyone]
                assert same(world.alltoall(block), np.array([each[rank] for each in blocks]))
                for root in everyone:
                    got = world.scatter(block if rank == root else None, root)
                    assert same(np.asarray(got), np.asarray(blocks[root][rank]))
                    if isinstance(got, np.ndarray):
                        got.fill(0)  # it belongs to this rank, and is no view of what the next call uses


def case_reductions():
    np.seterr(all="ignore")
    functions = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    for kind in TYPES[:-1]:
        for name, function in functions.items():
            if kind == "c16" and name in ("max", "min"):
                continue
            for turn in range(ROUNDS):
                values = [data(kind, r, turn) for r in everyone]
                results = [values[0]]
                for value in values[1:]:
                    results.append(function(results[-1], value))
                mine = values[rank].copy()
                assert same(world.allreduce(mine, name), results[-1])
                assert same(world.allreduce(mine, function), results[-1])
                assert same(world.scan(mine, name), results[rank])
                before = world.exscan(mine, name)
                assert before is None if rank == 0 else same(before, results[rank - 1])
                reduced = world.reduce(mine, name, turn % size)
                assert same(reduced, results[-1]) if rank == turn % size else reduced is None
                assert same(mine, values[rank])


def case_not_a_number_and_zeros():
    for _ in range(ROUNDS):
        mine = np.array([np.nan if rank == size - 1 else 1.0, np.nan if rank == 0 else 2.0, np.inf, -0.0])
        for name, function in {"max": np.maximum, "min": np.minimum, "sum": np.add}.items():
            parts = [
                np.array([np.nan if r == size - 1 else 1.0, np.nan if r == 0 else 2.0, np.inf, -0.0]) for r in everyone
            ]
            expected = parts[0]
            for part in parts[1:]:
                expected = function(expected, part)
            assert same(world.allreduce(mine, name), expected)


def case_ranks_that_differ_after_calls_that_were_equal():
    for turn in range(ROUNDS):
        world.allgather(np.zeros(2) + turn)
        world.allreduce(np.zeros(2) + turn)
    odd = np.zeros(2, "f4") if rank == size - 1 else np.zeros(2)
    got = world.allgather(odd)
    assert len(got) == size and got[size - 1].dtype == (np.dtype("f4"))
    if size == 1:
        return
    with raises(limosa.errors.MismatchError, "different arrays"):
        world.allreduce(odd)
    with raises(limosa.errors.MismatchError, "allreduce(op=sum)", "allreduce(op=max)"):
        world.allreduce(np.zeros(2), "max" if rank == 0 else "sum")
    with raises(limosa.errors.MismatchError, "allgather", "allreduce"):
        world.allgather(np.zeros(2)) if rank == 0 else world.allreduce(np.zeros(2))
    with raises(limosa.errors.MismatchError, "bcast(root=0)", "bcast(root=1)"):
        world.bcast(np.zeros(2), root=0 if rank == 0 else 1)
    with raises(limosa.errors.MismatchError, "barrier", "gather"):
        world.barrier() if rank == 0 else world.gather(np.zeros(2))
    assert same(world.allreduce(np.ones(2)), np.full(2, float(size)))


def case_results_go_into_out():
    for turn in range(ROUNDS):
        out = np.empty(3)
        assert world.allreduce(data("f8", rank, turn), out=out) is out
        assert same(out, sum(data("f8", r, turn) for r in everyone))
        stack = np.empty((size, 3))
        assert world.allgather(data("f8", rank, turn), out=stack) is stack
        assert same(stack, np.array([data("f8", r, turn) for r in everyone]))


def case_messages():
    right, left = (rank + 1) % size, (rank - 1) % size
    big = np.zeros(100_000)
    values = [{"turn": 1}, np.arange(3.0), "text", np.arange(4, dtype="i4").reshape(2, 2), False, None, NotImplemented]
    values += [big, b"bytes", np.float32(2), np.arange(3.0), np.asfortranarray(np.eye(3)), [np.ones(1)]]
    for turn in range(2 * ROUNDS):
        for number, value in enumerate(values):
            request = world.irecv(source=left, tag=1000 + number)
            sent = world.isend(value, to=right, tag=number) if value is big or turn % 4 == 3 or size == 1 else None
            if sent is None:
                world.send(value, to=right, tag=number)
            got = world.recv(source=left, tag=number) if turn % 2 else world.recv(tag=number)
            assert type(got) is type(value)
            assert np.array_equal(got, value) if isinstance(value, np.ndarray) else got == value or value is got
            if sent is not None:
                sent.wait()
            answer = world.isend(number, to=right, tag=1000 + number)
            assert request.wait() == number
            answer.wait()


def case_threads_receive_side_by_side():
    got = {}

    def receive(tag):
        got[tag] = [world.recv(source=rank, tag=tag) for _ in range(50)]

    threads = [threading.Thread(target=receive, args=(tag,)) for tag in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(50):
        for tag in range(3):
            world.send(np.full(2, 1.0 * turn) if tag else {"turn": turn}, to=rank, tag=tag)
    for thread in threads:
        thread.join()
    for tag, values in got.items():
        assert [float(one[0]) if tag else one["turn"] for one in values] == list(range(50))


def case_a_communicator_that_was_freed():
    part = world.dup()
    part.allreduce(np.zeros(1)), part.allreduce(np.zeros(1))
    part.free()
    for call in (lambda: part.allreduce(np.zeros(1)), lambda: part.send(1, to=0), part.recv):
        with raises(limosa.errors.Error):
            call()


run()
