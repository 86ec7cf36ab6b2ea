"""Random collective calls with short and long values, against a model; sometimes the ranks differ."""

from __future__ import annotations

import dataclasses
import functools
import random
import traceback

import limosa
import numpy as np

world = limosa.world
rank, size = world.rank, world.size
CALLS = 600


@dataclasses.dataclass
class Point:
    """An object that is pickled."""

    x: float
    name: str


class Unlucky:
    """An object that cannot be pickled."""

    def __reduce__(self):
        raise ValueError("not with me")


def numbers(random_: random.Random) -> list:
    """Numbers of one kind, one for each rank."""
    make = random_.choice(
        [
            lambda: random_.randrange(-9, 9),
            lambda: random_.choice([1 << 62, -(1 << 63), 5]),
            lambda: 1 << 80,
            random_.random,
            lambda: np.float64(random_.randrange(9)),
            lambda: np.int32(random_.randrange(9)),
            lambda: random_.choice([random_.randrange(9), float(random_.randrange(9))]),
        ]
    )
    return [make() for _ in range(size)]


def arrays(random_: random.Random, first: int | None = None) -> list:
    """Arrays of one dtype and shape, one for each rank, with a first axis of this length."""
    shape = random_.choice(
        [(), (1,), (4,), (5,), (30,), (31,), (2, 2), (3, 1, 2), (1, 1, 1, 1), (0,), (300, 0), (500,)]
    )
    shape = shape if first is None else (first, *shape)
    dtype = random_.choice(["d", "f", "l", "q", "i", "I", "B", "?", ">f8", "D"])
    made = [
        np.array([random_.randrange(2) for _ in range(int(np.prod(shape)))], dtype).reshape(shape) for _ in range(size)
    ]
    return [np.asfortranarray(one) for one in made] if random_.random() < 0.1 else made


def objects(random_: random.Random) -> list:
    """Objects of all kinds and lengths, one for each rank."""
    makers = [
        lambda: None,
        lambda: True,
        lambda: "x" * random_.choice([0, 5, 30, 200, 400, 40000]),
        lambda: bytes(random_.choice([0, 32, 33, 240, 241, 9000])),
        lambda: bytearray(3),
        lambda: {"a": 1, "b": [1, 2, random_.randrange(9)]},
        lambda: Point(random_.random(), "p" * random_.choice([1, 300])),
        lambda: [np.arange(random_.choice([2, 5000]))],
        lambda: np.arange(random_.choice([1, 2, 300])),
        lambda: (1, 2.5),
    ]
    if random_.random() < 0.5:
        return [random_.choice(makers)() for _ in range(size)]
    make = random_.choice(makers)
    return [make() for _ in range(size)]


def check(found: object, wanted: object) -> None:
    """Assert that a value is the right one."""
    assert equal(found, wanted), f"{found!r:.200} instead of {wanted!r:.200}"


def equal(a: object, b: object) -> bool:
    """Whether two values are equal and of the same type."""
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b))
    return type(a) is type(b) and bool(a == b)


def stacked(arrays_: list) -> np.ndarray:
    """Arrays stacked along a new axis, in their dtype; np.stack has only native ones."""
    made = np.empty((len(arrays_), *arrays_[0].shape), arrays_[0].dtype)
    for number, one in enumerate(arrays_):
        made[number, ...] = one
    return made


def collected(values: list) -> object:
    """What `gather` and the like make of values."""
    if all(type(x) is np.ndarray and (x.dtype, x.shape) == (values[0].dtype, values[0].shape) for x in values):
        return stacked(values)
    return list(values)


def moved(random_: random.Random) -> None:
    """Do a call that moves values."""
    values = random_.choice([numbers, arrays, objects])(random_)
    root = random_.randrange(size)
    verb = random_.choice(["bcast", "gather", "allgather", "scatter", "alltoall"])
    if verb == "bcast":
        check(world.bcast(values[rank] if rank == root else None, root), values[root])
    elif verb == "gather":
        wanted = collected(values) if rank == root else None
        check(world.gather(values[rank], root), wanted)
    elif verb == "allgather":
        check(world.allgather(values[rank]), collected(values))
    elif verb == "scatter":
        check(world.scatter(values if rank == root else None, root), values[rank])
    else:
        turned = [values[(rank + to) % size] for to in range(size)]
        arriving = [values[(source + rank) % size] for source in range(size)]
        check(world.alltoall(turned), collected(arriving))


def rows(random_: random.Random) -> None:
    """Do a call whose argument is an array with a row for each rank."""
    given = arrays(random_, size)
    verb = random_.choice(["scatter", "alltoall", "reduce_scatter"])
    if verb == "scatter":
        root = random_.randrange(size)
        check(world.scatter(given[rank] if rank == root else None, root), given[root][rank])
    elif verb == "alltoall":
        check(world.alltoall(given[rank]), stacked([one[rank, ...] for one in given]))
    else:
        found = world.reduce_scatter(given[rank], "max")
        wanted = functools.reduce(np.maximum, [one[rank] for one in given])
        assert np.array_equal(found, wanted), (found, wanted)


def reduced(random_: random.Random) -> None:
    """Do a call that combines values."""
    op, function = random_.choice(
        [
            ("sum", lambda a, b: a + b),
            (limosa.SUM, lambda a, b: a + b),
            ("prod", lambda a, b: a * b),
            ("max", max),
            (min, min),
            (lambda a, b: a - 2 * b, lambda a, b: a - 2 * b),
        ]
    )
    if random_.random() < 0.4 and op in ("sum", "max"):
        values = arrays(random_)
        function = np.add if op == "sum" else np.maximum
        while values[0].dtype.char in "?D":
            values = arrays(random_)
    else:
        values = numbers(random_)
    verb = random_.choice(["reduce", "allreduce", "scan", "exscan", "reduce_scatter"])
    root = random_.randrange(size)
    upto = {"scan": rank + 1, "exscan": rank}.get(verb, size)
    wanted = functools.reduce(function, values[:upto]) if upto else None
    if wanted is not None and isinstance(values[0], np.ndarray):
        wanted = np.asarray(wanted)  # not a scalar
    if verb == "reduce":
        found = world.reduce(values[rank], op, root)
        wanted = wanted if rank == root else None
    elif verb == "reduce_scatter":
        found = world.reduce_scatter([values[rank]] * size, op)
    else:
        found = getattr(world, verb)(values[rank], op)
    assert np.array_equal(found, wanted) if wanted is not None else found is None, (verb, found, wanted)
    assert wanted is None or isinstance(wanted, np.ndarray) or type(found) is type(wanted), (verb, found, wanted)


DIFFERENT = [
    ("barrier()", world.barrier),
    ("bcast(root=0)", lambda: world.bcast(1.5)),
    (f"bcast(root={size - 1})", lambda: world.bcast("x" * 300, size - 1)),
    ("gather(root=0)", lambda: world.gather(np.zeros(2))),
    ("allgather()", lambda: world.allgather({})),
    ("scatter(root=0)", lambda: world.scatter([1] * size)),
    ("alltoall()", lambda: world.alltoall([2] * size)),
    ("allreduce(op=sum)", lambda: world.allreduce(1)),
    ("allreduce(op=max)", lambda: world.allreduce(np.zeros(900), "max")),
    ("scan(op=a function)", lambda: world.scan(1, lambda a, b: a)),
    ("reduce_scatter(op=sum)", lambda: world.reduce_scatter([1] * size)),
    ("split()", lambda: world.split(0)),
    ("dup()", world.dup),
]


def differing(random_: random.Random) -> None:
    """One rank does something else: all are told which rank has called what."""
    other = random_.randrange(size)
    (first, call), (second, another) = random_.sample(DIFFERENT, 2)
    try:
        (another if rank == other else call)()
    except limosa.errors.MismatchError as error:
        assert f"rank {other}: {second}" in str(error), error
        assert first in str(error), error
    else:
        raise AssertionError(f"{first} and {second} were not told apart")


def refused(random_: random.Random) -> None:
    """One rank cannot take part: it says why, and the others that it cannot."""
    other = random_.randrange(size)
    wrong = random_.choice(
        [lambda: world.allgather(Unlucky()), lambda: world.allreduce(1, "no such"), lambda: world.gather(1, size)]
    )
    right = random_.choice([lambda: world.allgather(1), lambda: world.allreduce(np.ones(2)), lambda: world.gather("a")])
    try:
        (wrong if rank == other else right)()
    except (limosa.errors.Error, ValueError) as error:
        assert isinstance(error, limosa.errors.PeerError) == (rank != other), error
    else:
        raise AssertionError("no rank was told")


def main() -> None:
    """Do random calls, the same on all ranks."""
    for number in range(CALLS):
        random_ = random.Random(number)
        kinds = [moved, moved, rows, reduced, reduced, *([differing, refused] if size > 1 else [])]
        kind = random_.choices(kinds, [*[8] * 5, *([1, 1] if size > 1 else [])])[0]
        try:
            kind(random_)
        except Exception:
            print(f"rank {rank}, call {number} ({kind.__name__}):\n{traceback.format_exc()}", flush=True)
            raise
    world.barrier()
    if rank == 0:
        print(f"{CALLS} cases went well on {size} ranks")


main()
