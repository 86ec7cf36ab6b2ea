"""Moving elements between ranks: the one operation behind redistribution, indexing, gathering and overlap exchange.

Each element has a place on some ranks (the source) and is wanted on some (the target). Every rank computes from the two
descriptions alone what it sends to which rank and what it gets: a plan, which is kept for the next time. The ranks
compare what they are about to do, so that calls that do not fit together are an error on all of them. Then elements are
packed, exchanged all to all and unpacked, in rounds of some megabytes, whose memory is used again. What is contiguous
in the source is sent, and what is contiguous in the target is received, without packing.
"""

from __future__ import annotations

import itertools
import math
import os
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from limosa import errors
from limosa._agreement import by_rank
from limosa.arrays._map import Map
from limosa.arrays._pieces import Common, Piece, all_of, common, cut, enumerated, merged, through

if TYPE_CHECKING:
    from limosa._comm import Comm

T = TypeVar("T")

#: The indices of a part of an array, for each axis; None if there is no part.
Part: TypeAlias = "Sequence[Sequence[Piece]] | None"

#: From here on the regions of a message are moved as one, their places enumerated.
_MOST_REGIONS = 32
#: What a rank sends in one round, in bytes.
_ROUND = 1 << 24
#: Transposing copies are done in stripes of so many elements, which a cache line or two hold.
_STRIPE = 32
#: Whether also those calls are compared that move nothing.
_CHECK_ALL = os.environ.get("LIMOSA_CHECK", "0") != "0"
#: Smaller copies are done as one, in elements.
_SMALL = 1 << 12


class Wanted:
    """Which part of an array each rank has, or wants.

    Parameters
    ----------
    key
        Says it in full: two with equal keys are the same.
    part
        Gives the part of a rank. It is kept with plans, and must not hold arrays.

    """

    def __init__(self, key: Hashable, part: Callable[[int], Part]) -> None:
        self.key = key
        self.part = part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wanted) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class Layout(Wanted):
    """The parts of an array that the ranks own, or store.

    Parameters
    ----------
    map
        How the array is dealt.
    shape
        Its shape.
    stored
        With the overlaps; without it each index has one owner.
    chosen
        For each axis, the indices of another array that the axis stands for; without it, its own.

    """

    def __init__(
        self, map: Map, shape: Sequence[int], *, stored: bool = False, chosen: Sequence[range] | None = None
    ) -> None:
        self._shape = tuple(shape)
        super().__init__((map, self._shape, stored, None if chosen is None else tuple(chosen)), self._part)
        self.map = map
        self._stored = stored
        self._chosen = chosen
        self._known: dict[tuple[int, int], list[Piece]] = {}

    @cached_property
    def axes(self) -> tuple[Any, ...]:
        """How the axes are dealt."""
        return self.map.axes(self._shape)

    def _part(self, rank: int) -> Part:
        cell = self.map.cell(rank)
        return None if cell is None else [self._along(d, i) for d, i in enumerate(cell)]

    def _along(self, axis: int, cell: int) -> list[Piece]:
        known = self._known.get((axis, cell))
        if known is None:
            known = self.axes[axis].stored(cell) if self._stored else self.axes[axis].owned(cell)
            if self._chosen is not None:
                known = through(self._chosen[axis], known)
            self._known[axis, cell] = known
        return known


class Runs(Layout):
    """The parts of an array of which each rank has so many rows, in the order of ranks."""

    def __init__(self, counts: Sequence[int], rest: Sequence[int], comm: Comm) -> None:
        super().__init__(Map.default(1 + len(rest), comm), (sum(counts), *rest))
        self.key = ("runs", *counts, self.key)
        self._starts = [0, *itertools.accumulate(counts)]

    def _part(self, rank: int) -> Part:
        start, end = self._starts[rank : rank + 2]
        rows = [Piece(range(start, end), range(end - start))] if end > start else []
        return [rows, *(all_of(length) for length in self._shape[1:])]


def whole(shape: Sequence[int]) -> Wanted:
    """Return that every rank wants all of an array."""
    part = [all_of(length) for length in shape]
    return Wanted(("all", *shape), lambda _: part)


def only(rank: int, wanted: Wanted) -> Wanted:
    """Return that the other ranks want nothing."""
    return Wanted(("only", rank, wanted.key), lambda other: wanted.part(other) if other == rank else None)


class Region(NamedTuple):
    """Elements that go from one rank to one: where they are in the source, where in the target, and their shape."""

    there: Any
    here: Any
    shape: tuple[int, ...]


class Plan:
    """What one rank does in a move.

    Parameters
    ----------
    source
        What the ranks have. Each element has one owner.
    target
        What the ranks want. An element may be wanted by many.
    itemsize
        Size of an element in bytes.

    """

    def __init__(self, source: Layout, target: Wanted, itemsize: int) -> None:
        comm = source.map.comm
        me = comm.rank
        ours, wanted = source.part(me), target.part(me)
        others = [] if source.map.everywhere else [rank for rank in range(comm.size) if rank != me]
        most = max(_ROUND // max(itemsize * len(others), 1), 1)
        self.kept = regions(ours, wanted)
        self.outgoing = {rank: _rounds(ours, target.part(rank), most) for rank in others}
        self.incoming = {rank: _rounds(source.part(rank), wanted, most) for rank in others}
        self.own_rounds = max((len(each) for each in (*self.outgoing.values(), *self.incoming.values())), default=0)
        self.digest = zlib.crc32(repr((source.key, target.key, itemsize)).encode())


#: Plans that were made before: programs do the same over and over.
_plan = lru_cache(maxsize=256)(Plan)


class Move:
    """Elements of a distributed array on their way to the ranks that want them.

    All ranks of `comm` make it together, then call `start` and `finish`.

    Parameters
    ----------
    source
        The elements that this rank has.
    target
        Where those that this rank wants are written.
    plan, rounds
        What `agreed` has returned.
    comm
        The communicator.

    """

    def __init__(self, source: NDArray[Any], target: NDArray[Any], plan: Plan, rounds: int, comm: Comm) -> None:
        self._source = source
        self._target = target
        self._plan = plan
        self._rounds = rounds
        self._comm = comm
        self._rooms: list[tuple[_Room, _Room]] = []
        self._under_way: list[tuple[MPI.Request, list[tuple[Region, NDArray[Any]]]]] = []

    def start(self) -> None:
        """Send what others want, as far as one round goes; nothing is waited for."""
        if self._rounds:
            # A round is packed while the one before travels.
            self._rooms = [(_Room(self._source.dtype), _Room(self._source.dtype)) for _ in range(min(self._rounds, 2))]
            self._post(0)

    def finish(self) -> None:
        """Wait for what this rank wants, and write it into the target."""
        if self._source is not self._target:
            for region in self._plan.kept:
                _put(self._target, region.here, _get(self._source, region.there))
        for turn in range(self._rounds):
            if turn + 1 < self._rounds:
                self._post(turn + 1)
            request, arrived = self._under_way.pop(0)
            request.Wait()
            for region, values in arrived:
                _put(self._target, region.here, values)

    def _post(self, turn: int) -> None:
        for_sent, for_received = self._rooms[turn % 2]
        size = self._comm.size
        outgoing, incoming = (_of_turn(each, turn) for each in (self._plan.outgoing, self._plan.incoming))
        send = _in_place(self._source, outgoing, lambda region: region.there, size)
        if send is None:
            packed, send = for_sent.message(outgoing, size)
            for region, values in _spread(outgoing, packed):
                copy(values, _get(self._source, region.there))
        receive = _in_place(self._target, incoming, lambda region: region.here, size)
        arrived = []
        if receive is None:
            packed, receive = for_received.message(incoming, size)
            arrived = list(_spread(incoming, packed))
        self._under_way.append((self._comm.mpi.Ialltoallv(send, receive), arrived))


class _Room:
    """Memory of the messages of a round, which a later one uses again."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._memory = np.empty(0, dtype)

    def message(self, regions: dict[int, list[Region]], size: int) -> tuple[NDArray[Any], list[Any]]:
        """Return room for the elements of regions, and what MPI is told of it."""
        numbers = [sum(math.prod(region.shape) for region in regions.get(rank, ())) for rank in range(size)]
        total = sum(numbers)
        if self._memory.size < total:
            self._memory = np.empty(total, self._memory.dtype)
        counts = [number * self._memory.itemsize for number in numbers]
        room = self._memory[:total]
        return room, [room, counts, [0, *itertools.accumulate(counts)][:-1], MPI.BYTE]


def _in_place(
    values: NDArray[Any], regions: dict[int, list[Region]], place: Callable[[Region], Any], size: int
) -> list[Any] | None:
    """Return what MPI is told of the messages of a round if each is contiguous in an array; otherwise None."""
    if not values.flags.c_contiguous:
        return None
    counts, starts = [0] * size, [0] * size
    for rank, found in regions.items():
        if len(found) != 1 or place(found[0])[-1] is not Ellipsis:
            return None
        part = _get(values, place(found[0]))
        if not part.flags.c_contiguous:
            return None
        counts[rank] = part.nbytes
        starts[rank] = part.ctypes.data - values.ctypes.data
    return [values, counts, starts, MPI.BYTE]


def agreed(what: str, source: Layout, target: Wanted, dtype: np.dtype[Any], shape: Sequence[int]) -> tuple[Plan, int]:
    """Return the plan of this rank, and the number of rounds, when all ranks are about to do the same.

    Parameters
    ----------
    what
        What is done, for messages.
    source, target
        As for `Plan`.
    dtype, shape
        Those of the whole array.

    Raises
    ------
    limosa.errors.MismatchError
        On every rank: they are about to do different things, or with different arrays.

    """
    if dtype.hasobject:
        raise TypeError(f"elements of the type {dtype} cannot be moved to other ranks; hint: numbers, or limosa.world")
    comm = source.map.comm
    plan = _plan(source, target, dtype.itemsize)
    if source.map.everywhere or comm.size == 1:
        return plan, 0
    digest = zlib.crc32(f"{what} {dtype}".encode(), plan.digest)

    def call() -> tuple[str, str]:
        return f"{what}: an array of the shape {tuple(shape)}, {dtype}, {source.map}", str(target.key)

    return plan, max(compared(comm, digest, plan.own_rounds, call))


def compared(comm: Comm, digest: int, number: int, call: Callable[[], tuple[str, str]]) -> list[int]:
    """Return a number of each rank if all ranks have called the same.

    Parameters
    ----------
    comm
        The communicator.
    digest
        The CRC-32 of what must be the same.
    number
        What the others get to know.
    call
        Gives what messages say of this rank, and details for ranks that say the same.

    """
    seen: list[int] = comm.allgather(number << 32 | digest)
    if not all(isinstance(each, int) for each in seen):
        raise errors.MismatchError(
            f"the ranks called different things: rank {comm.rank}: {call()[0]}, others: allgather"
        )
    if any(each & 0xFFFFFFFF != digest for each in seen):
        calls: list[tuple[str, str]] = comm.allgather(call())
        short = len({said for said, _ in calls}) > 1
        told = by_rank([said if short else f"{said} {details}" for said, details in calls])
        raise errors.MismatchError(f"the ranks called different things: {told}")
    return [each >> 32 for each in seen]


def exchanged(comm: Comm, what: str, value: T) -> list[T]:
    """Return the values of all ranks if they are about to do the same."""
    compared(comm, zlib.crc32(what.encode()), 0, lambda: (what, ""))
    return comm.allgather(value)


def checked(comm: Comm, what: str) -> None:
    """Compare what the ranks are about to do without communication, if all is to be checked (``LIMOSA_CHECK=1``)."""
    if _CHECK_ALL:
        exchanged(comm, what, None)


def move(
    what: str, source: NDArray[Any], sources: Layout, target: NDArray[Any], targets: Wanted, shape: Sequence[int]
) -> None:
    """Copy into `target` the elements of a distributed array that this rank wants.

    All ranks call it together, or none needs to if the source is on all of them. Arguments as for `Move` and
    `agreed`.
    """
    moving = Move(source, target, *agreed(what, sources, targets, source.dtype, shape), sources.map.comm)
    moving.start()
    moving.finish()


def regions(source: Part, target: Part) -> list[Region]:
    """Return the regions that two parts have in common."""
    return [_region(parts) for parts in _shared(source, target)]


def _shared(source: Part, target: Part) -> Iterator[Sequence[Common]]:
    if source is None or target is None:
        return iter(())
    along = [common(ours, theirs) for ours, theirs in zip(source, target, strict=True)]
    if not all(along):
        return iter(())
    if math.prod(len(parts) for parts in along) > _MOST_REGIONS:
        along = [[merged(parts)] for parts in along]
    return itertools.product(*along)


def _rounds(source: Part, target: Part, most: int) -> list[list[Region]]:
    """Return the regions that two parts have in common, for each round: of `most` elements together."""
    rounds: list[list[Region]] = []
    room = 0
    for parts in _shared(source, target):
        for piece in _small(parts, most):
            region = _region(piece)
            size = math.prod(region.shape)
            if size > room:
                rounds.append([])
                room = most
            rounds[-1].append(region)
            room -= size
    return rounds


def _small(parts: Sequence[Common], most: int) -> Iterator[Sequence[Common]]:
    """Cut a region into ones of at most so many elements."""
    size = math.prod(part.number for part in parts)
    if size <= most:
        yield parts
        return
    axis = next(d for d, part in enumerate(parts) if part.number > 1)
    step = max(most // (size // parts[axis].number), 1)
    for piece in cut(parts[axis], step):
        yield from _small([*parts[:axis], piece, *parts[axis + 1 :]], most)


def _region(parts: Sequence[Common]) -> Region:
    shape = tuple(part.number for part in parts)
    if all(isinstance(part.source, slice) and isinstance(part.target, slice) for part in parts):
        return Region((*(part.source for part in parts), ...), (*(part.target for part in parts), ...), shape)
    return Region(
        np.ix_(*(enumerated(part.source) for part in parts)),
        np.ix_(*(enumerated(part.target) for part in parts)),
        shape,
    )


def _get(values: NDArray[Any], place: Any) -> NDArray[Any]:
    found: NDArray[Any] = values[place]
    return found


def _put(target: NDArray[Any], place: Any, values: NDArray[Any]) -> None:
    if place[-1] is Ellipsis:  # slices
        copy(target[place], values)
    else:
        target[place] = values


def copy(target: NDArray[Any], source: NDArray[Any]) -> None:
    """Copy an array into one of the same shape, in stripes where the rows of one are the columns of the second."""
    if target.size > _SMALL and target.ndim > 1:
        along = _fastest(target)
        if along != _fastest(source):
            key: list[Any] = [slice(None)] * target.ndim
            for start in range(0, target.shape[along], _STRIPE):
                key[along] = slice(start, start + _STRIPE)
                target[tuple(key)] = source[tuple(key)]
            return
    target[...] = source


def _fastest(values: NDArray[Any]) -> int:
    """Return the axis along which neighbours are nearest in memory."""
    return (
        min(
            (abs(stride), -d) if n > 1 else (math.inf, -d)
            for d, (stride, n) in enumerate(zip(values.strides, values.shape, strict=True))
        )[1]
        * -1
    )


def _of_turn(rounds: dict[int, list[list[Region]]], turn: int) -> dict[int, list[Region]]:
    """Return the regions of a round."""
    return {rank: turns[turn] for rank, turns in sorted(rounds.items()) if turn < len(turns)}


def _spread(regions: dict[int, list[Region]], packed: NDArray[Any]) -> Iterator[tuple[Region, NDArray[Any]]]:
    """Give regions, and the part of the messages that each has."""
    start = 0
    for region in itertools.chain.from_iterable(regions.values()):
        end = start + math.prod(region.shape)
        yield region, packed[start:end].reshape(region.shape)
        start = end
