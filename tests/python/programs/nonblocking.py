"""Collective calls that do not wait, against the blocking ones, and in all orders. Any number of ranks."""

from __future__ import annotations

import asyncio
import time

import cases
import limosa
import numpy as np
from limosa import errors
from values import SLICES, VALUES, big, same

world = limosa.world
rank, size = world.rank, world.size
everyone = range(size)
INTERESTING = [*VALUES, *SLICES]
right, left = (rank + 1) % size, (rank - 1) % size


def alike(got, wanted):
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(same, got, wanted))
    return same(got, wanted)


def case_movement():
    for number, value in enumerate(INTERESTING):
        root = number % size
        items = [value] * size
        for name, arguments in (
            ("bcast", (value if rank == root else None, root)),
            ("gather", (value, root)),
            ("allgather", (value,)),
            ("scatter", (items if rank == root else None, root)),
            ("alltoall", (items,)),
        ):
            wanted = getattr(world, name)(*arguments)
            got = getattr(world, f"i{name}")(*arguments).wait()
            assert alike(got, wanted), (name, value, got, wanted)


def case_blocks_and_out():
    for shape in ((size,), (size, 3), (size, 100, 30)):
        block = big(*shape) + 1000.0 * rank
        for name in ("scatter", "alltoall"):
            wanted = getattr(world, name)(block)
            assert same(np.asarray(getattr(world, f"i{name}")(block).wait()), np.asarray(wanted))
            out = np.zeros((*np.shape(wanted), 2))[..., 0]
            assert getattr(world, f"i{name}")(block, out=out).wait() is out and np.array_equal(out, wanted)
    for length in (2, 5000):
        out = np.zeros((size, length))
        assert world.iallgather(big(length) + rank, out=out).wait() is out
        assert np.array_equal(out, world.allgather(big(length) + rank))
        out = np.zeros((length, 2))[:, 1]
        world.ibcast(big(length) if rank == 0 else None, out=None if rank == 0 else out).wait()
        assert rank == 0 or np.array_equal(out, big(length))
        with cases.raises(errors.TruncateError) if rank else cases.raises(errors.Error):
            world.ibcast(big(length), out=np.zeros(1)).wait()
            raise errors.Error("the root has no target")


def case_reductions():
    for x in (rank + 1, 0.5, "x" * rank, [rank], np.arange(3) + rank, big(5000) + rank, big(50, 60)[::2], (rank, rank)):
        for op in ("sum", "max", lambda a, b: a + b):
            for name in ("allreduce", "reduce", "scan", "exscan"):
                wanted = getattr(world, name)(x, op)
                got = getattr(world, f"i{name}")(x, op).wait()
                assert same(got, wanted), (name, x, op, got, wanted)
    out = np.zeros(5000)
    assert world.iallreduce(big(5000), out=out).wait() is out and np.array_equal(out, size * big(5000))
    assert world.iallreduce(out, out=out).wait() is out and np.array_equal(out, size * size * big(5000))
    long = [f"{rank}" * 20_000]
    assert world.iallreduce(long, lambda a, b: a + b).wait() == [str(other) * 20_000 for other in everyone]


def case_reduce_scatter():
    for call in (
        world.reduce_scatter,
        lambda *arguments, **options: world.ireduce_scatter(*arguments, **options).wait(),
    ):
        for shape in ((), (3,), (50, 60)):
            block = np.stack([np.full(shape, 10.0 * rank + other) for other in everyone])
            expected = np.full(shape, 10.0 * sum(everyone) + size * rank)
            for op in ("sum", lambda a, b: a + b):
                assert np.array_equal(call(block, op), expected)
            out = np.zeros((*shape, 2))[..., 0]
            assert call(block, out=out) is out and np.array_equal(out, expected)
        pieces = np.array_split(np.arange(10 * size + 1), size)
        assert np.array_equal(call(pieces), size * pieces[rank])
        assert call([str(other) for other in everyone]) == str(rank) * size
        assert call([rank + other for other in everyone], "max") == size - 1 + rank
        with cases.raises(errors.CountError if rank == 0 else errors.PeerError):
            call([1] * (size + (rank == 0)))


def case_many_in_any_order():
    arrays = [big(3 + 1000 * number) + rank for number in range(12)]
    requests = [(world.iallreduce if number % 2 else world.iallgather)(array) for number, array in enumerate(arrays)]
    order = list(range(12)) if rank % 2 else list(reversed(range(12)))
    for number in order:
        got = requests[number].wait()
        expected = np.stack([big(3 + 1000 * number) + other for other in everyone])
        assert np.array_equal(got, expected.sum(0) if number % 2 else expected), number
    assert limosa.wait_all([world.ibcast(number, number % size) for number in range(30)]) == list(range(30))


def case_no_rank_needs_to_look():
    """A rank that waits for something else, or computes, does its share all the same."""
    if size == 1:
        return
    for x in (big(3), big(100_000), {"a": big(50_000)}):
        request = world.iallgather(x)
        if rank == 0:
            assert world.recv(source=size - 1) == "done"
            request.wait()
        else:
            assert len(request.wait()) == size
            if rank == size - 1:
                world.send("done", to=0)
        total = world.ireduce(big(100_000), root=size - 1)
        if rank == 0:
            deadline = time.monotonic() + 30
            while world.iprobe(tag=8) is None and time.monotonic() < deadline:
                sum(range(1000))
            world.recv(source=size - 1, tag=8)
        elif rank == size - 1:
            assert total.wait()[3] == size * big(100_000)[3]
            world.send("done", to=0, tag=8)
        total.wait()


def case_a_receive_needs_no_look():
    x = big(100_000)
    if rank == 0 and size > 1:
        request = world.irecv(source=1, tag=1)
        assert world.recv(source=1, tag=2) == "second"
        assert np.array_equal(request.wait(), x)
    elif rank == 1:
        world.send(x, to=0, tag=1)
        world.send("second", to=0, tag=2)


def case_the_call_does_not_wait():
    """Rank 0 starts when all others have started and gone on."""
    if rank == 0:
        for other in range(1, size):
            assert world.recv(source=other, tag=4) == "started"
    calls = [
        world.ibarrier,
        lambda: world.ibcast(big(5000), 0),
        lambda: world.igather([rank]),
        lambda: world.iallgather(big(5000)),
        lambda: world.iscatter([big(5000)] * size),
        lambda: world.ialltoall(big(size, 5000)),
        lambda: world.iallreduce(big(5000)),
        lambda: world.ireduce(1),
        lambda: world.iscan(1),
        lambda: world.iexscan("1"),
        lambda: world.ireduce_scatter(big(size, 5000)),
    ]
    requests = [call() for call in calls]
    if rank:
        assert not requests[0].done
        world.send("started", to=0, tag=4)
    limosa.wait_all(requests)


def case_dropped_requests_are_completed():
    world.iallreduce(big(5000))
    world.ibarrier()
    assert world.iallreduce(1).wait() == size


def case_test_and_await():
    async def main():
        first, second = await asyncio.gather(world.iallreduce(1), world.ibcast({"a": 1}))
        return first, second

    assert asyncio.run(main()) == (size, {"a": 1})
    request = world.iallgather(rank)
    while not request.test():
        pass
    assert request.done and request.wait() == list(everyone) and not request.cancel()
    assert "iallgather" in repr(request)


def case_functions_that_raise():
    def broken(a, b):
        raise ZeroDivisionError("in the function")

    for x in (1, big(5000), ["x" * 50_000]):
        request = world.iallreduce(x, broken)
        if size > 1:
            with cases.raises(ZeroDivisionError, "in the function"):
                request.wait()
            assert request.test()
            with cases.raises(ZeroDivisionError):
                request.wait()
    world.barrier()


def case_wrong_arguments():
    worst = size - 1
    for call in (
        lambda bad: world.ibcast(1, -1 if bad else 0),
        lambda bad: world.igather(1, size if bad else 0),
        lambda bad: world.iscatter([1] * size, "0" if bad else 0),
        lambda bad: world.iallreduce(1, "average" if bad else "sum"),
        lambda bad: world.ialltoall([1] * (size + bad)),
        lambda bad: world.iallgather(1, out=b"" if bad else None),
    ):
        if rank == worst:
            with cases.raises(errors.Error):
                call(True)
        else:
            with cases.raises(errors.PeerError, f"rank {worst} could not take part"):
                call(False).wait()
    with cases.raises(TypeError if rank == worst else errors.PeerError, "cannot pickle" if rank == worst else ""):
        world.iallgather((number for number in ()) if rank == worst else 1).wait()
    for x in (np.zeros(3 + rank), np.zeros(5000 + rank), np.zeros(3, "f4" if rank else "f8")):
        if size > 1:
            with cases.raises(errors.MismatchError, "different arrays"):
                world.iallreduce(x).wait()
    assert world.iallreduce(1).wait() == size


def case_different_calls():
    verbs = {
        "ibarrier()": world.ibarrier,
        "ibcast(root=0)": lambda: world.ibcast(big(5000)),
        "igather(root=0)": lambda: world.igather(1),
        "iscatter(root=0)": lambda: world.iscatter([1] * size),
        "iallgather()": lambda: world.iallgather(big(5000)),
        "iallreduce(op=sum)": lambda: world.iallreduce(big(5000)),
        "ireduce(root=0, op=max)": lambda: world.ireduce(1, "max"),
    }
    if size == 1:
        return
    others = "rank 1" if size == 2 else f"ranks 1-{size - 1}"
    for a, first in verbs.items():
        for b, second in verbs.items():
            if a != b:
                with cases.raises(errors.MismatchError, f"rank 0: {a}, {others}: {b}"):
                    (second if rank else first)().wait()
    assert world.iallreduce(1).wait() == size


if __name__ == "__main__":
    cases.run()
