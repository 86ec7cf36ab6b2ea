"""A program that type checkers accept in their strict modes, and that runs. Any number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import limosa
import numpy as np
from limosa import Cart, Comm, Request, errors, wait_all, wait_any, world

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: object, kind: object) -> object:
        """Give the value, as the one of type checkers does."""
        return value


def values() -> None:
    """What is received has the type of `out`, and what all ranks get that of the value."""
    out = np.zeros(3)
    request = world.isend(np.ones(3), to=world.rank)
    assert_type(request, Request[None])
    world.recv(out=out)[:2].sum()
    request.wait()
    parameters = world.bcast({"dt": 0.1} if world.rank == 0 else None)
    assert_type(parameters, dict[str, float])
    assert_type(world.allreduce(1.5, "max"), float)
    assert_type(world.allreduce((0.5, world.rank), "minloc"), tuple[float, int])
    assert_type(world.reduce("text", lambda a, b: a + b), str | None)
    assert_type(world.scan(5, limosa.SUM), int)
    assert_type(world.exscan(5), int | None)
    assert_type(world.allgather(world.rank), list[int])
    assert_type(world.gather("a"), list[str] | None)
    assert_type(world.scatter(["a"] * world.size if world.rank == 0 else None), str)
    assert_type(world.alltoall([1] * world.size), list[int])
    assert_type(world.iallreduce(2).wait(), int)
    assert_type(world.ibcast("text").wait(), str)
    assert_type(world.map(str, range(3)), list[str])
    assert_type(wait_all([world.ibarrier()]), list[Any])
    place, total = wait_any([world.iallreduce(2)])
    assert_type(place, int)
    assert_type(total, int)
    world.allreduce(np.ones(3), np.maximum, out=out)


def communicators() -> None:
    """Within a block a communicator is one, whatever its color was."""
    with world.split(world.rank % 2) as half:
        assert_type(half, Comm)
    assert_type(world.split(None), None)
    with world.cart(1, periodic=True) as ring:
        assert_type(ring, Cart)
        assert_type(ring.coords, tuple[int, ...])
        u = np.zeros(5)
        assert ring.exchange(u) is u
        before, after = ring.neighbours[0]
        ring.sendrecv(1, to=after, source=before)
    try:
        world.send(1, to=world.size)
    except errors.RankError as error:
        assert error.call == "send"


values()
communicators()
