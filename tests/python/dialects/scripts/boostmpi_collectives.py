"""Every collective with values of several kinds, on the world and on a part of it, in all ways to write the call."""

import operator

import boostmpi as mpi
import numpy


class Point:  # noqa: PLW1641
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


def ints(p):
    return p * p


def points(p):
    return Point(p, 2.5 * p)


def strings(p):
    return "r%d." % p


def lists(p):
    return [p] * (p + 1)


def check(comm):
    size, rank, last = comm.size, comm.rank, comm.size - 1
    for kind in (ints, points, strings, lists):
        values = [kind(p) for p in range(size)]
        mine = values[rank]
        gathered = mpi.all_gather(comm, mine)
        assert type(gathered) is tuple and list(gathered) == values
        for root in {0, last}:
            result = mpi.gather(comm, mine, root)
            assert list(result) == values and type(result) is tuple if rank == root else result is None
            assert mpi.broadcast(comm, mine if rank == root else None, root) == values[root]
            assert mpi.scatter(comm, values if rank == root else None, root) == mine
            assert mpi.scatter(comm, iter([*values, "one more"]) if rank == root else None, root) == mine
        assert list(mpi.all_to_all(comm, (kind(p + rank) for p in range(size)))) == [
            kind(p + rank) for p in range(size)
        ]
        folded = [values[0]]
        for value in values[1:]:
            folded.append(folded[-1] + value)  # for strings and lists the order matters
        for op in (operator.add, lambda x, y: x + y):
            assert mpi.all_reduce(comm, mine, op) == folded[-1]
            assert mpi.scan(comm, mine, op) == folded[rank]
            for root in {0, last}:
                assert mpi.reduce(comm, mine, op, root) == (folded[-1] if rank == root else None)
    assert mpi.all_reduce(comm, (rank * 7) % 5, min) == min((p * 7) % 5 for p in range(size))
    assert mpi.all_reduce(comm, rank, max) == last
    array = mpi.reduce(comm, numpy.arange(3.0) + rank, numpy.maximum, 0)
    assert rank or list(array) == [last, last + 1, last + 2]


world = mpi.Communicator()
check(world)
odd = world.split(world.rank % 2)
assert odd and odd.size == (world.size + 1 - world.rank % 2) // 2 and odd.rank == world.rank // 2
check(odd)
reversed_world = world.split(0, key=-world.rank)
assert reversed_world.rank == world.size - 1 - world.rank
check(reversed_world)
alone = world.split(0 if world.rank == 0 else -1)
assert bool(alone) == (world.rank == 0)
world.barrier()

# Without a communicator it is the world: by keywords, and also as the manual writes it.
assert (
    mpi.all_reduce(value=1, op=operator.add)
    == mpi.all_reduce(1, operator.add)
    == mpi.all_reduce(1, op=operator.add)
    == world.size
)
assert mpi.broadcast(value=mpi.rank, root=0) == mpi.broadcast(mpi.rank, 0) == mpi.broadcast(mpi.rank, root=0) == 0
assert mpi.all_gather(value=None) == mpi.all_gather() == (None,) * world.size
assert (
    mpi.gather(mpi.rank, 0) == mpi.gather(value=mpi.rank, root=0) == (tuple(range(mpi.size)) if mpi.rank == 0 else None)
)
assert mpi.scan(1, operator.add) == mpi.rank + 1 and mpi.reduce(1, operator.add, 0) == (
    mpi.size if mpi.rank == 0 else None
)
for wrong, words in [
    (lambda: mpi.all_reduce(1), "needs op"),
    (lambda: mpi.broadcast(mpi.world, 1), "needs root"),
    (lambda: mpi.reduce(1, operator.add), "needs root"),
    (lambda: mpi.all_gather(1, 2), "Communicator as its first argument"),
    (lambda: mpi.all_to_all(mpi.world, []), "a value for each"),
]:
    try:
        wrong()
    except (TypeError, ValueError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
print("%d is content" % mpi.rank)
