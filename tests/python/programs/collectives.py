"""Collective calls against what they must give. Any number of ranks."""

from __future__ import annotations

import operator

import cases
import limosa
import numpy as np
from values import SLICES, VALUES, big, same

world = limosa.world
rank, size = world.rank, world.size
everyone = range(size)
INTERESTING = [value for value in (*VALUES, *SLICES)]


def of(value, of_rank):
    """A value that differs from rank to rank where it can."""
    if type(value) is np.ndarray and value.dtype.kind in "if" and value.size:
        return np.asarray(value + np.asarray(of_rank, value.dtype))
    return value


def case_bcast():
    for number, value in enumerate(INTERESTING):
        root = number % size
        assert same(world.bcast(value if rank == root else None, root), value)
    out = np.zeros((100, 100))[:, ::2]
    world.bcast(big(100, 50) if rank == 0 else None, out=None if rank == 0 else out)
    assert rank == 0 or np.array_equal(out, big(100, 50))


def case_gather_and_allgather():
    for number, value in enumerate(INTERESTING):
        root = number % size
        mine = of(value, rank)
        expected = [of(value, other) for other in everyone]
        stacked = type(value) is np.ndarray and not value.dtype.hasobject
        for answer in (world.gather(mine, root), world.allgather(mine)):
            if answer is None:
                assert rank != root
                continue
            assert isinstance(answer, np.ndarray if stacked else list), (type(answer), value)
            assert len(answer) == size
            for got, wanted in zip(answer, expected):
                assert same(np.array(got), np.array(wanted)) if stacked else same(got, wanted), (got, wanted)


def case_gather_what_differs():
    values = ["text", big(3), big(5000), [big(9000)], None, 3.5]
    mine = values[rank % len(values)]
    expected = [values[other % len(values)] for other in everyone]
    for answer in (world.gather(mine, root=size - 1), world.allgather(mine)):
        if answer is not None:
            assert all(map(same, list(answer), expected))
    lengths = world.allgather(np.ones(rank + 1))
    assert [len(one) for one in lengths] == list(range(1, size + 1))


def case_gather_into_out():
    for length in (2, 5000):
        for out in (np.zeros((size, length)), np.zeros((length, size)).T, np.zeros((size, length, 2))[..., 0]):
            assert world.allgather(big(length) + rank, out=out) is out
            assert all(np.array_equal(out[other], big(length) + other) for other in everyone)
            out[...] = 0
            answer = world.gather(big(length) + rank, out=out if rank == 0 else None)
            assert answer is (out if rank == 0 else None)
            assert rank or all(np.array_equal(out[other], big(length) + other) for other in everyone)


def case_scatter():
    for number, value in enumerate(INTERESTING):
        root = number % size
        values = [of(value, other) for other in everyone] if rank == root else None
        assert same(world.scatter(values, root), of(value, rank)), value
    for shape in ((size,), (size, 3), (size, 100, 30)):
        block = big(*shape)
        got = world.scatter(block if rank == 0 else None)
        assert np.array_equal(got, block[rank])
        if len(shape) > 1:
            out = np.zeros((*shape[1:], 2))[..., 1]
            assert world.scatter(block if rank == 0 else None, out=out) is out
            assert np.array_equal(out, block[rank])
    own = big(size, 4)
    got = world.scatter(own if rank == 0 else None)
    got[...] = -1
    assert (own >= 0).all()


def case_alltoall():
    for value in INTERESTING:
        got = world.alltoall([of(value, 10 * rank + other) for other in everyone])
        for other in everyone:
            assert same(
                np.array(got[other]) if type(value) is np.ndarray else got[other],
                np.array(of(value, 10 * other + rank)) if type(value) is np.ndarray else value,
            ), value
    for shape in ((), (3,), (50, 60)):
        block = np.stack(
            [big(*shape) + 100.0 * rank + other if shape else np.array(100.0 * rank + other) for other in everyone]
        )
        expected = np.stack(
            [big(*shape) + 100.0 * other + rank if shape else np.array(100.0 * other + rank) for other in everyone]
        )
        assert same(world.alltoall(block), expected)
        out = np.zeros((*expected.shape, 2))[..., 0]
        assert world.alltoall(block, out=out) is out and np.array_equal(out, expected)


NAMED = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


def fold(function, values):
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def case_reductions_of_arrays():
    for dtype in "?bhilqBHILQefdgFD":
        for length in (1, 7, 5000):
            values = [(np.arange(length) % 3 + other + 1).astype(dtype) for other in everyone]
            for name, function in NAMED.items():
                try:
                    expected = [fold(function, values[: end + 1]).astype(dtype) for end in everyone]
                except TypeError:
                    continue
                where = (name, dtype, length)
                assert same(world.allreduce(values[rank], name), expected[-1]), where
                assert same(world.scan(values[rank], name), expected[rank]), where
                before = world.exscan(values[rank], name)
                assert before is None if rank == 0 else same(before, expected[rank - 1]), where
                reduced = world.reduce(values[rank], function, root=size - 1)
                assert same(reduced, expected[-1]) if rank == size - 1 else reduced is None, where


def case_logical_reductions():
    for dtype in "?iB":
        mine = np.array([0, rank == 0, 1, rank % 2], dtype)
        all_of = [np.array([0, other == 0, 1, other % 2], dtype) for other in everyone]
        for name, function in (("land", np.logical_and), ("lor", np.logical_or), ("lxor", np.logical_xor)):
            assert same(world.allreduce(mine, name), fold(function, all_of).astype(dtype) if size > 1 else mine), (
                name,
                dtype,
            )
    assert world.allreduce(rank < 1000, "land") is True
    assert world.allreduce(rank == 0, limosa.LOR) is True


def case_reductions_of_other_values():
    assert world.allreduce(rank + 1) == size * (size + 1) // 2
    assert world.allreduce(10**30) == size * 10**30
    assert world.allreduce(0.5) == 0.5 * size
    assert world.allreduce(str(rank)) == "".join(map(str, everyone))
    assert world.allreduce([rank]) == list(everyone)
    assert world.scan([rank]) == list(range(rank + 1))
    assert world.exscan([rank]) == (None if rank == 0 else list(range(rank)))
    assert world.allreduce(rank, max) == size - 1
    assert world.allreduce(rank, operator.add) == sum(everyone)
    assert world.reduce("word" * rank, limosa.MAX) == ("word" * (size - 1) if rank == 0 else None)
    total = world.allreduce(np.float64(rank))
    assert type(total) is np.float64 and total == sum(everyone)
    assert world.allreduce(rank if rank else np.float64(0)) == sum(everyone)


def case_locations():
    assert world.allreduce((-abs(rank - 1), rank), "maxloc") == (0, 1) if size > 1 else (-1, 0)
    assert world.allreduce((5, rank), limosa.MINLOC) == (5, 0)
    values, places = world.allreduce((np.array([rank, -rank]), np.array([rank, rank])), "maxloc")
    assert values.tolist() == [size - 1, 0] and places.tolist() == [size - 1, 0]


def case_functions_keep_the_order_of_ranks():
    def join(a, b):
        return a + b

    long = [f"{rank}" * 20_000]
    expected = [str(other) * 20_000 for other in everyone]
    for commutative in (False, True):
        for root in everyone:
            answer = world.reduce(long, limosa.Op(join, commutative=commutative), root)
            assert answer is None if rank != root else sorted(answer) == expected
            assert rank != root or commutative or answer == expected
    assert world.allreduce(long, join) == expected
    assert world.scan(long, join) == expected[: rank + 1]
    matrix = np.array([[1.0, rank], [0.0, 2.0]])
    product = fold(np.matmul, [np.array([[1.0, other], [0.0, 2.0]]) for other in everyone])
    assert np.array_equal(world.allreduce(matrix, np.matmul), product)
    shears = [np.eye(100) + np.eye(100, k=other + 1) for other in everyone]
    assert np.array_equal(world.allreduce(shears[rank], lambda a, b: a @ b), fold(np.matmul, shears))


def case_reduce_in_place():
    x = big(5000) + rank
    assert world.allreduce(x, out=x) is x
    assert np.array_equal(x, size * big(5000) + sum(everyone))
    out = np.zeros((5000, 2))[:, 1]
    world.reduce(big(5000), out=out)
    assert np.array_equal(out, size * big(5000) if rank == 0 else np.zeros(5000))
    sliced = big(200, 200)[::2, ::-3]
    assert np.array_equal(world.allreduce(sliced), size * sliced)
    assert np.array_equal(world.allreduce(np.asfortranarray(big(90, 90)) if rank else big(90, 90)), size * big(90, 90))


def case_split():
    part = world.split(rank % 2, key=-rank)
    members = [other for other in everyone if other % 2 == rank % 2]
    assert part.size == len(members) and part.rank == members[::-1].index(rank)
    assert part.allgather(rank) == members[::-1]
    part.free()
    nobody = world.split(None if rank == 0 else 1)
    assert (nobody is None) == (rank == 0)
    if nobody is not None:
        with nobody as others:
            assert others.allreduce(1) == size - 1


def case_grid():
    ring = world.cart([0], periodic=True)
    before, after = ring.neighbours[0]
    assert (before, after) == ((ring.rank - 1) % size, (ring.rank + 1) % size)
    assert ring.sendrecv(ring.rank, to=after, source=before) == before
    line = world.cart(1)
    before, after = line.shift(0)
    assert (before is None) == (line.rank == 0) and (after is None) == (line.rank == size - 1)
    ghost = np.full(3, -1.0)
    line.sendrecv(np.full(3, float(line.rank)), to=after, source=before, out=ghost)
    assert ghost[0] == (line.rank - 1 if line.rank else -1)
    plane = world.cart((0, 1), periodic=(False, True))
    assert plane.dims == (size, 1) and plane.periodic == (False, True)
    for other in everyone:
        assert plane.rank_at(plane.coords_of(other)) == other
    assert plane.rank_at((0, -1)) == plane.rank_at((0, 0)) and plane.rank_at((-1, 0)) is None
    assert plane.shift(-1) == (plane.rank, plane.rank)
    row = plane.sub(0)
    assert row.dims == (size,) and row.allreduce(1) == size
    assert plane.sub(1).size == 1


if __name__ == "__main__":
    cases.run()
