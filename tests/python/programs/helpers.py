"""What makes programs shorter: `map`, `exchange`, `mpi`, and errors that know mpi4py's names. Any number of ranks."""

from __future__ import annotations

import pickle
import time

import cases
import limosa
import mpi4py.MPI
import numpy as np
from limosa import errors

world = limosa.world
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size


class Unpicklable:
    def __reduce__(self):
        raise ZeroDivisionError("cannot be pickled")


class SpecialError(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


def case_map_gives_results_in_order():
    for number in (0, 1, 2, 50):
        items = range(number) if rank == 0 else None
        assert world.map(lambda x: x * x, items) == [x * x for x in range(number)]
    for chunk in (1, 7, 100):
        assert world.map(str, range(20), chunk=chunk) == [str(x) for x in range(20)]
    root = size - 1
    got = world.map(np.sum, (np.full(50_000, x) for x in range(5)) if rank == root else None, root)
    assert got == [50_000 * x for x in range(5)]
    results = world.map(lambda x: np.full((100, 100), x), range(3))
    assert [one[5, 5] for one in results] == [0, 1, 2]


def case_map_balances_the_load():
    """While one rank works on the first item, the others do the rest."""

    def work(item):
        if item == 0 and size > 1:
            deadline = time.monotonic() + 30
            while world.iprobe(tag=9) is None and time.monotonic() < deadline:
                time.sleep(0.001)
            assert world.recv(tag=9) == "all others are done"
        elif item == 9 and size > 1:
            for other in range(size):
                world.send("all others are done", to=other, tag=9)
        return rank

    ranks = world.map(work, range(10))
    if size > 1:
        assert ranks[0] not in ranks[1:]
        if rank != ranks[0]:
            assert world.recv(tag=9) == "all others are done"


def case_map_passes_on_exceptions():
    def broken(x):
        if x in (3, 4):
            raise ValueError(f"{x} is wrong")
        return x

    with cases.raises(ValueError, "is wrong") as caught:
        world.map(broken, range(10))
    notes = getattr(caught[0], "__notes__", ["for item 3, 3"])
    assert any("for item 3, 3" in note or "for item 4, 4" in note for note in notes), notes
    same = world.allgather(str(caught[0]))
    assert same == same[:1] * size

    def special(x):
        raise SpecialError(x, "text")

    with cases.raises((errors.PeerError, SpecialError), "0 and text"):
        world.map(special, [0])
    with cases.raises(Exception, "cannot be pickled"):
        world.map(lambda x: Unpicklable(), range(4))
    if size > 1:
        with cases.raises(Exception, "cannot be pickled"):
            world.map(lambda x: time.sleep(0.05), [Unpicklable() for _ in range(20)])
    assert world.map(abs, [-1]) == [1]


def case_map_with_wrong_arguments():
    def items():
        yield 1
        raise KeyError("in the generator")

    for call, kind in (
        (lambda: world.map(abs, items()), KeyError),
        (lambda: world.map(abs), errors.ArgumentError),
        (lambda: world.map(abs, [1], chunk=0), errors.ArgumentError),
    ):
        with cases.raises(kind if rank == 0 else errors.PeerError):
            call()
    if size > 1:
        with cases.raises(errors.MismatchError, "map(root=0)", "barrier()"):
            world.map(abs, [1]) if rank == 0 else world.barrier()


def expected_halo(grid, shape, width, dtype):
    """The array of this rank after an exchange, from the mesh as a whole."""
    inner = [length - 2 * width for length in shape]
    whole = [length * count for length, count in zip(inner, grid.dims)]
    mesh = np.arange(np.prod(whole)).reshape(whole).astype(dtype)
    places, known = [], np.full(shape, True)
    for axis, length in enumerate(whole):
        place = np.arange(-width, inner[axis] + width) + grid.coords[axis] * inner[axis]
        if not grid.periodic[axis]:
            known &= ((place >= 0) & (place < length)).reshape(
                [-1 if axis == other else 1 for other in range(len(whole))]
            )
        places.append(place % length)
    return np.where(known, mesh[np.ix_(*places)], -1).astype(dtype)


def case_exchange():
    for dims, periodic in ((1, False), (1, True), (2, False), (2, True), (2, (True, False)), (3, (False, True, True))):
        grid = world.cart(dims, periodic)
        for width, length in ((1, 5), (2, 7), (1, 60)):
            shape = [length + axis for axis in range(dims)]
            expected = expected_halo(grid, shape, width, "f8")
            u = np.full(shape, -1.0)
            core = (slice(width, -width),) * dims
            u[core] = expected[core]
            assert grid.exchange(u, width) is u
            assert np.array_equal(u, expected), (dims, periodic, width, u, expected)
            inside = np.full((*shape, 2), -1.0)[..., 1]
            inside[core] = expected[core]
            grid.exchange(inside, width)
            assert np.array_equal(inside, expected)
    vectors = np.zeros((4, 3))
    vectors[1:-1] = rank
    line = world.cart(1)
    line.exchange(vectors)
    assert vectors[0, 0] == (line.rank - 1 if line.rank else 0)


def case_exchange_that_does_not_fit():
    grid = world.cart(2, periodic=True)
    for bad, width, words in (
        (np.zeros(5), 1, "1 axes"),
        (np.zeros((2, 5)), 1, "too short"),
        (np.zeros((5, 5)), 2, "too short"),
        (np.zeros((5, 5)), 0, "width=0"),
    ):
        with cases.raises(errors.DimsError, words, "exchange on rank"):
            grid.exchange(bad, width)
    for bad in (None, [1, 2], b"12345"):
        with cases.raises(errors.BufferError):
            grid.exchange(bad)
    ring = world.cart(1, periodic=True)
    if size == 2:
        with cases.raises(errors.Error, "exchange on rank"):
            ring.exchange(np.zeros((5, 4 + ring.rank)))
    assert ring.allreduce(1) == size


def case_the_communicator_of_mpi4py():
    assert world.mpi == mpi4py.MPI.COMM_WORLD
    assert world.mpi.Get_size() == size
    with world.split(0, key=-rank) as part:
        assert isinstance(part.mpi, mpi4py.MPI.Intracomm) and part.mpi.rank == part.rank
        sends = []
        if part.rank == size - 1:
            sends = [part.isend("of limosa", to=0), part.mpi.isend("of mpi4py", dest=0)]
        if part.rank == 0:
            assert part.mpi.recv() == "of mpi4py" and part.recv() == "of limosa"
        for request in sends:
            request.wait()
    for made in (world.dup(), world.cart(1), limosa.Comm(mpi4py.MPI.COMM_SELF)):
        assert made.mpi.rank == made.rank and made.mpi.size == made.size
        made.free()
    assert mpi4py.MPI.COMM_SELF != mpi4py.MPI.COMM_NULL


def case_time():
    start = world.time()
    time.sleep(0.01)
    assert 0.009 < world.time() - start < 30


def case_representation():
    grid = world.cart((size, 1), periodic=(True, False))
    shown = f"rank {grid.rank} of {size}, dims ({size}, 1), coords {grid.coords}, periodic (True, False)"
    assert repr(grid) == f"<limosa.Cart: {shown}>"
    assert repr(world) == f"<limosa.Comm: rank {rank} of {size}>"


def case_names_of_mpi4py():
    grid = world.cart(1)
    for thing, name, here in (
        (world, "Allreduce", "allreduce"),
        (world, "Get_rank", "rank"),
        (world, "Get_size", "size"),
        (world, "Gatherv", "gather"),
        (world, "Ibcast", "ibcast"),
        (world, "Isend", "isend"),
        (world, "Create_cart", "cart"),
        (grid, "Get_coords", "coords_of"),
        (grid, "Shift", "shift"),
        (limosa, "COMM_WORLD", "world"),
        (world.ibarrier(), "Wait", "wait"),
    ):
        with cases.raises(AttributeError, f"{name!r}; hint: `{name}` -> `{here}`"):
            getattr(thing, name)
    for thing in (world, limosa, world.ibarrier()):
        with cases.raises(AttributeError, "nonsense") as caught:
            thing.nonsense  # noqa: B018
        assert "hint" not in str(caught[0])
    assert not hasattr(world, "Spawn") and not hasattr(world, "__array__")
    for call, hint in (
        (lambda: world.send(1, dest=0), "`dest` -> `to`"),
        (lambda: world.isend(1, dest=0), "`dest` -> `to`"),
        (lambda: world.sendrecv(1, to=0, sendtag=1), "`sendtag` -> `tag`"),
        (lambda: world.bcast(obj=1), "`obj` -> `x`"),
        (lambda: world.allreduce(sendobj=1), "'x'"),
        (lambda: world.iallreduce(1, recvbuf=2), "`recvbuf` -> `out`"),
        (lambda: world.gather(1, recvobj=2), "`recvobj` -> `out`"),
    ):
        with cases.raises(TypeError, hint):
            call()
    with cases.raises(TypeError, "'colour'"):
        world.send(1, to=0, colour=2)
    with cases.raises(TypeError, "send() is missing the argument 'to'"):
        world.send(1)
    with cases.raises(errors.RankError, "out= names an array to receive into"):
        world.recv(np.zeros(3))
    with cases.raises(TypeError, "cannot be pickled"):
        pickle.dumps(world)


if __name__ == "__main__":
    cases.run()
