"""Moving elements between ranks: the one operation behind redistribution, indexing, gathering and overlap exchange.

Each element has a place on some ranks (the source) and is wanted on some (the target). Every rank computes from the two
descriptions alone what it sends to whom and what it gets, packs it, and one all-to-all moves it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from limosa.arrays._map import Map
from limosa.arrays._pieces import Common, Piece, all_of, common, enumerated, merged, through

#: The indices of a part of an array, for each axis; None if there is no part.
Part: TypeAlias = "Sequence[Sequence[Piece]] | None"

#: From here on the regions of a message are moved as one, their places enumerated.
_MOST_REGIONS = 32


class Layout:
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
        self.map = map
        self.axes = map.axes(shape)
        self._stored = stored
        self._chosen = chosen
        self._along = cache(self._pieces)

    def part(self, rank: int) -> Part:
        """Return the part of a rank."""
        cell = self.map.cell(rank)
        return None if cell is None else [self._along(d, i) for d, i in enumerate(cell)]

    def _pieces(self, axis: int, cell: int) -> list[Piece]:
        pieces = self.axes[axis].stored(cell) if self._stored else self.axes[axis].owned(cell)
        return pieces if self._chosen is None else through(self._chosen[axis], pieces)


def whole(shape: Sequence[int]) -> Callable[[int], Part]:
    """Return the layout in which every rank wants all of an array."""
    part = [all_of(length) for length in shape]
    return lambda _: part


def only(rank: int, part: Callable[[int], Part]) -> Callable[[int], Part]:
    """Return a layout in which the other ranks have nothing."""
    return lambda other: part(other) if other == rank else None


class Move:
    """Elements of a distributed array on their way to the ranks that want them.

    All ranks of `comm` make it together, then call `start` and `finish`, or nobody if the source is on all of them.

    Parameters
    ----------
    source
        The elements that this rank has.
    sources
        What the ranks have. Each element has one owner.
    target
        Where those that this rank wants are written.
    targets
        What the ranks want. An element may be wanted by many.
    comm
        The communicator of both.

    """

    def __init__(
        self,
        source: NDArray[Any],
        sources: Layout,
        target: NDArray[Any],
        targets: Callable[[int], Part],
        comm: MPI.Intracomm,
    ) -> None:
        self._source = source
        self._target = target
        self._comm = comm
        me = comm.rank
        ours, wanted = sources.part(me), targets(me)
        self._kept = regions(ours, wanted)
        others = [] if sources.map.everywhere else [rank for rank in range(comm.size) if rank != me]
        self._outgoing = {rank: regions(ours, targets(rank)) for rank in others}
        self._incoming = {rank: regions(sources.part(rank), wanted) for rank in others}
        self._request: MPI.Request | None = None
        self._arrived = np.empty(0, source.dtype)

    def start(self) -> None:
        """Send what others want; nothing is waited for."""
        packed, send = _space(self._outgoing, self._source.dtype, self._comm.size)
        self._arrived, receive = _space(self._incoming, self._source.dtype, self._comm.size)
        for region, there, _ in _spread(self._outgoing, packed):
            region[...] = self._source[there]
        self._request = self._comm.Ialltoallv([packed, *send], [self._arrived, *receive])

    def finish(self) -> None:
        """Wait for what this rank wants, and write it into the target."""
        for there, here, _ in self._kept:
            self._target[here] = self._source[there]
        if self._request is not None:
            self._request.Wait()
            self._request = None
            for region, _, here in _spread(self._incoming, self._arrived):
                self._target[here] = region
            self._arrived = np.empty(0, self._source.dtype)


def move(
    source: NDArray[Any], sources: Layout, target: NDArray[Any], targets: Callable[[int], Part], comm: MPI.Intracomm
) -> None:
    """Copy into `target` the elements of a distributed array that this rank wants; arguments as for `Move`."""
    moving = Move(source, sources, target, targets, comm)
    if not sources.map.everywhere:
        moving.start()
    moving.finish()


def regions(source: Part, target: Part) -> list[tuple[Any, Any, tuple[int, ...]]]:
    """Return the regions that two parts have in common: where in the source, where in the target, and their shapes."""
    if source is None or target is None:
        return []
    along = [common(ours, theirs) for ours, theirs in zip(source, target, strict=True)]
    if not all(along):
        return []
    if math.prod(len(parts) for parts in along) > _MOST_REGIONS:
        along = [[merged(parts)] for parts in along]
    return [_region(parts) for parts in itertools.product(*along)]


def _region(parts: Sequence[Common]) -> tuple[Any, Any, tuple[int, ...]]:
    shape = tuple(part.number for part in parts)
    if all(isinstance(part.source, slice) and isinstance(part.target, slice) for part in parts):
        return tuple(part.source for part in parts), tuple(part.target for part in parts), shape
    return (
        np.ix_(*(enumerated(part.source) for part in parts)),
        np.ix_(*(enumerated(part.target) for part in parts)),
        shape,
    )


def _space(regions: dict[int, list[Any]], dtype: np.dtype[Any], size: int) -> tuple[NDArray[Any], list[Any]]:
    """Return room for messages with all ranks, and what MPI is told of it."""
    lengths = [sum(math.prod(shape) for _, _, shape in regions.get(rank, [])) for rank in range(size)]
    counts = [length * dtype.itemsize for length in lengths]
    starts = [0, *itertools.accumulate(counts)][:-1]
    return np.empty(sum(lengths), dtype), [counts, starts, MPI.BYTE]


def _spread(regions: dict[int, list[Any]], packed: NDArray[Any]) -> list[tuple[NDArray[Any], Any, Any]]:
    """Return each region's part of the messages, and where its elements lie on both sides."""
    found = []
    start = 0
    for _, each in sorted(regions.items()):
        for there, here, shape in each:
            end = start + math.prod(shape)
            found.append((packed[start:end].reshape(shape), there, here))
            start = end
    return found
