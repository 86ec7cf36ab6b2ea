"""Exchanges between neighbours of grids and graphs, against values that all ranks can compute. Any number of ranks."""

from __future__ import annotations

import cases
import limosa
import mpi4py.MPI
import numpy as np
from limosa import errors

world = limosa.world
rank, size = world.rank, world.size


class Unpicklable:
    def __reduce__(self):
        raise ZeroDivisionError("cannot be pickled")


KINDS = {
    "number": lambda a, b: (a, b),
    "short array": lambda a, b: np.array([a, b]),
    "long array": lambda a, b: np.full((100, 70), a * 1000.0 + b),
    "strided": lambda a, b: np.full((200, 6), a * 1000 + b)[:, ::2],
    "text": lambda a, b: f"{a} to {b}",
    "list of arrays": lambda a, b: [np.full(9000, float(a)), b],
}


def equal(a, b):
    if isinstance(a, list):
        return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and np.array_equal(a, b)


def case_grids():
    for dims, periodic in ((1, False), (1, True), (2, False), (2, True), (3, (True, False, True))):
        grid = world.cart(dims, periodic)
        flat = [one for pair in grid.neighbours for one in pair]
        assert grid.neighbour_allgather(("of", grid.rank)) == [None if one is None else ("of", one) for one in flat]
        for make in KINDS.values():
            # Item k goes along axis k // 2, and arrives from the other side: what is sent after comes from before.
            got = grid.neighbour_alltoall([make(grid.rank, place) for place in range(len(flat))])
            for place, (source, value) in enumerate(zip(flat, got, strict=True)):
                assert value is None if source is None else equal(value, make(source, place ^ 1)), (dims, place, value)


def case_graphs():
    everyone = list(range(size))
    star = everyone[1:] if rank == 0 else [0]
    for mine in ([(rank - 1) % size, (rank + 1) % size], star, everyone, []):
        graph = world.graph(mine)
        assert graph.neighbours == graph.sources == tuple(mine)
        assert graph.neighbour_allgather(rank) == mine
        for make in KINDS.values():
            sent = {to: make(rank, to) for to in graph.neighbours}
            for got in (
                graph.exchange(sent),
                dict(zip(graph.sources, graph.neighbour_alltoall([sent[to] for to in mine]))),
            ):
                assert set(got) == set(mine)
                assert all(equal(value, make(source, rank)) for source, value in got.items())
        assert isinstance(graph.mpi, mpi4py.MPI.Distgraphcomm)
        assert graph.allreduce(1) == size
        graph.free()


def case_directed_graphs():
    after, before = (rank + 1) % size, (rank - 1) % size
    with world.graph([after], sources=[before]) as ring:
        assert ring.neighbour_allgather(rank) == [before]
        assert ring.exchange({after: "hello"}) == {before: "hello"}
        assert repr(ring) == (
            f"<limosa.Graph: rank {rank} of {size}, neighbours ({after},)"
            + (f", sources ({before},)>" if before != after else ">")
        )
    with world.graph(range(size) if rank == 0 else (), sources=[0]) as fan:
        items = np.arange(size * 2).reshape(size, 2) if rank == 0 else []
        (row,) = fan.neighbour_alltoall(items)
        assert row.tolist() == [2 * rank, 2 * rank + 1]
    twice = world.graph([after, after], sources=[before, before])
    assert twice.neighbour_alltoall(["first", "second"]) == ["first", "second"]


def case_exchanges_do_not_wait_for_other_ranks():
    """A rank whose neighbours have sent goes on, whatever the rest does."""
    if size < 4:
        return
    pairs = world.graph([rank ^ 1] if rank < 4 else [])
    if rank in (2, 3):
        assert world.recv(source=rank - 2) == "done"
    assert pairs.neighbour_allgather(rank) == ([rank ^ 1] if rank < 4 else [])
    if rank in (0, 1):
        world.send("done", to=rank + 2)


def case_one_rank_is_wrong():
    graph = world.graph(range(size))
    for bad, kind, words in (
        (lambda: graph.neighbour_alltoall([1] * (size + 1)), errors.CountError, f"{size + 1} items for {size}"),
        (lambda: graph.neighbour_alltoall(5), errors.CountError, "for each of the"),
        (lambda: graph.exchange({0: 1, size: 2}), errors.ArgumentError, "the neighbours are"),
        (lambda: graph.exchange([1]), errors.ArgumentError, "a dict"),
        (lambda: graph.neighbour_allgather(Unpicklable()), ZeroDivisionError, "cannot be pickled"),
    ):
        if rank == size - 1:
            with cases.raises(kind, words):
                bad()
        else:
            with cases.raises(errors.PeerError, f"rank {size - 1} could not take part"):
                graph.exchange(dict.fromkeys(range(size), "fine"))
        assert graph.neighbour_allgather(rank) == list(range(size))
    grid = world.cart(1, periodic=True)
    with cases.raises(errors.CountError, "1 items for 2 neighbours"):
        grid.neighbour_alltoall([1])
    assert grid.neighbour_allgather(1) == [1, 1]


def case_graphs_that_do_not_fit():
    for ranks in ([size], [-1], 5, ["a"]):
        with cases.raises(errors.RankError if rank == 0 else errors.PeerError, "rank"):
            world.graph(ranks if rank == 0 else [])
    if size > 1:
        with cases.raises(errors.MismatchError, "rank 1: has rank 0 0 times as a source, but it has this rank 1 times"):
            world.graph([1] if rank == 0 else [])
        with cases.raises(errors.MismatchError, "graph()", "barrier()"):
            world.graph([]) if rank == 0 else world.barrier()
    assert world.allreduce(1) == size


if __name__ == "__main__":
    cases.run()
